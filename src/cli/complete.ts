/** What may come next on a command line. Quick or silent: a slow server must not hold up a keystroke (sheet 08 §4.6). */
import {
  argumentName,
  type CommandSpec,
  type Completed,
  type FlagSpec,
  flagWords,
  GLOBAL_FLAGS,
  Input,
  takesValue,
} from './command.ts'
import { Context, globalOptions } from './context.ts'
import { listCities } from './discovery.ts'
import type { Io } from './io.ts'
import { NOUNS, SERVE_SUMMARY } from './nouns.ts'
import { EVENT_TYPES } from './operation-help.ts'
import { summaryOf } from './parse.ts'

const BUDGET_MS = 300

/** Candidates as `word` or `word<tab>description`; `words` are those after the program's name, the last one unfinished. */
export async function completions(words: readonly string[], io: Io): Promise<readonly string[]> {
  const before = words.slice(0, -1)
  const current = words.at(-1) ?? ''
  const candidates = await candidatesFor(before, current, io)
  return candidates.filter((candidate) => candidate.startsWith(current))
}

async function candidatesFor(before: readonly string[], current: string, io: Io): Promise<readonly string[]> {
  const noun = before.find((word) => Object.hasOwn(NOUNS, word))
  const specs =
    noun === undefined ? [] : ((await NOUNS[noun]?.load())?.commands ?? []).filter(({ path }) => path[0] === noun)
  const spec = specs.find(({ path }) => path.length === 1) ?? specs.find(({ path }) => before.includes(path[1] ?? ''))
  const flags = [...(spec?.flags ?? []), ...GLOBAL_FLAGS]
  const open = flags.find((flag) => takesValue(flag.flags) && flagWords(flag.flags).includes(before.at(-1) ?? ''))
  if (open !== undefined) return valuesOf(open, before, io)
  if (current.startsWith('-'))
    return flags.flatMap((flag) =>
      flagWords(flag.flags)
        .filter((word) => word.startsWith('--'))
        .map((word) => tab(word, flag.description)),
    )
  if (noun === undefined)
    return ['serve', ...Object.keys(NOUNS)].map((word) =>
      tab(word, word === 'serve' ? SERVE_SUMMARY : NOUNS[word]?.summary),
    )
  if (spec === undefined) return specs.map((candidate) => tab(candidate.path[1] ?? '', summaryOf(candidate)))
  return argumentValues(spec, flags, before, io)
}

const tab = (word: string, description: string | undefined): string =>
  description === undefined || description === '' ? word : `${word}\t${description.replaceAll(/\s+/g, ' ')}`

async function valuesOf(flag: FlagSpec, before: readonly string[], io: Io): Promise<readonly string[]> {
  return flag.choices ?? lookUp(flag.complete ?? 'none', before, io)
}

async function argumentValues(
  spec: CommandSpec,
  flags: readonly FlagSpec[],
  before: readonly string[],
  io: Io,
): Promise<readonly string[]> {
  const given = operands(before, flags).length - spec.path.length
  const argument = spec.arguments?.[given] ?? spec.arguments?.findLast(({ name }) => name.includes('...'))
  if (argument === undefined) return []
  return argument.choices ?? lookUp(argument.complete ?? 'none', before, io)
}

function operands(words: readonly string[], flags: readonly FlagSpec[]): readonly string[] {
  const valued = new Set(flags.filter((flag) => takesValue(flag.flags)).flatMap((flag) => flagWords(flag.flags)))
  return words.filter((word, at) => !word.startsWith('-') && !valued.has(words[at - 1] ?? ''))
}

async function lookUp(what: Completed, before: readonly string[], io: Io): Promise<readonly string[]> {
  if (what === 'event-type') return EVENT_TYPES
  return what === 'city' ? cityNames(before, io) : []
}

async function cityNames(before: readonly string[], io: Io): Promise<readonly string[]> {
  const api = before[before.indexOf('--api') + 1]
  const input = new Input(before.includes('--api') && api !== undefined ? [[argumentName('<api>'), api]] : [])
  const context = new Context(io, globalOptions(input))
  using limit = context.within(BUDGET_MS)
  return (await listCities(await context.client(), limit.signal)).map((city) => tab(city.name, city.status))
}
