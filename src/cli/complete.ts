/** What may come next on a command line. Quick or silent: a slow server must not hold up a keystroke (sheet 08 §4.6). */

import { SERVE_FLAGS } from '../contract/base/serve-flags.ts'
import {
  type ArgumentSpec,
  argumentName,
  type CommandSpec,
  type Completed,
  type FlagSpec,
  flagName,
  flagWords,
  GLOBAL_FLAGS,
  Input,
  takesValue,
} from './base/command.ts'
import { Context, globalOptions } from './base/context.ts'
import type { Io } from './base/io.ts'
import { shippedText } from './base/package-files.ts'
import { remembered } from './completion/cache.ts'
import { LOOK_UPS, tab } from './completion/look-ups.ts'
import { NOUNS, SERVE_SUMMARY } from './nouns.ts'
import { flagsOf, meant, nextWords } from './parse.ts'
import { OUTPUT_FORMATS } from './print/format.ts'
import { knownFields } from './print/known-fields.ts'
import { EVENT_TYPES } from './tables/event-types.ts'

const BUDGET_MS = 300
/** Instead of candidates: what comes here is the path of a file, which shells know best. */
const FILES = ':files'

/** Candidates as `word` or `word<tab>description`; `words` are those after the program's name, the last one unfinished. */
export async function completions(words: readonly string[], io: Io): Promise<readonly string[]> {
  const before = words.slice(0, -1)
  const current = words.at(-1) ?? ''
  const candidates = await candidatesFor(before, current, io)
  return candidates.filter((candidate) => candidate === FILES || candidate.startsWith(current))
}

async function candidatesFor(before: readonly string[], current: string, io: Io): Promise<readonly string[]> {
  // A value in the same word as its flag is the same value.
  const [, flag, inside] = /^(--[a-z-]+)=(.*)$/s.exec(current) ?? []
  if (flag !== undefined && inside !== undefined) {
    const values = await candidatesFor([...before, flag], inside, io)
    return values.map((value) => (value === FILES ? value : `${flag}=${value}`))
  }
  const words = before[0] === 'help' ? before.slice(1) : before
  const nounAt = words.findIndex((word) => Object.hasOwn(NOUNS, word) || word === 'serve')
  const noun = words[nounAt]
  if (noun === 'serve') return serveWords(words.at(-1) ?? '', current)
  const { spec, depth, specs } = await named(noun, words.slice(nounAt + 1))
  const flags = [...(spec === undefined ? [] : flagsOf(spec)), ...GLOBAL_FLAGS].filter(({ hidden }) => hidden !== true)
  const open = flags.find((one) => takesValue(one.flags) && flagWords(one.flags).includes(words.at(-1) ?? ''))
  if (open?.complete === 'field') return fieldNames(spec, current)
  if (open !== undefined) return valuesOf(open, { before: words, current, io })
  if (current.startsWith('-'))
    return flags.flatMap((one) =>
      flagWords(one.flags)
        .filter((word) => word.startsWith('--'))
        .map((word) => tab(word, one.description)),
    )
  if (noun === undefined) return firstWords(before[0] === 'help')
  if (spec === undefined) return nextWords(depth, specs).map(({ word, summary }) => tab(word, summary))
  return argumentValues(spec, flags, { before: words, current, io })
}

const firstWords = (isHelp: boolean): readonly string[] => [
  tab('serve', SERVE_SUMMARY),
  ...Object.entries(NOUNS).map(([word, { summary }]) => tab(word, summary)),
  ...(isHelp
    ? [tab('exit-codes', 'What the numbers mean that commands end with'), tab('output', 'Formats, order and columns')]
    : [tab('help', 'All about a command')]),
]

function serveWords(last: string, current: string): readonly string[] {
  const open = SERVE_FLAGS.find(({ flag, value }) => flag === last && value !== undefined)
  if (open !== undefined) return open.value === 'DIR' ? [FILES] : (open.choices ?? [])
  return current.startsWith('-') ? SERVE_FLAGS.map(({ flag, does }) => tab(flag, does)) : []
}

interface Named {
  /** The command, where the words name one. */
  readonly spec?: CommandSpec
  /** Commands that share the words, the first `depth` of their paths. */
  readonly specs: readonly CommandSpec[]
  readonly depth: number
}

/** What the words after a noun come to; words in between, such as flags, are passed over. */
async function named(noun: string | undefined, words: readonly string[]): Promise<Named> {
  const commands = noun === undefined ? [] : ((await NOUNS[noun]?.load())?.commands ?? [])
  let specs = commands.filter(({ path }) => path[0] === noun)
  let depth = 1
  for (const said of ['', ...words]) {
    const word = meant(said, new Set(specs.map(({ path }) => path[depth] ?? '')))
    const below = specs.filter(({ path }) => word !== undefined && path[depth] === word)
    if (below.length > 0) [specs, depth] = [below, depth + 1]
    const spec = specs.find(({ path }) => path.length === depth)
    if (spec !== undefined) return { spec, specs, depth }
  }
  return { specs, depth }
}

interface Words {
  readonly before: readonly string[]
  /** The unfinished one. */
  readonly current: string
  readonly io: Io
}

async function valuesOf(flag: FlagSpec, words: Words): Promise<readonly string[]> {
  return flag.choices ?? lookUp(flag.complete ?? CALLED[flagName(flag.flags)] ?? 'none', words)
}

/** Of the last one in a list with commas. */
async function fieldNames(spec: CommandSpec | undefined, current: string): Promise<readonly string[]> {
  const said = current.slice(0, current.lastIndexOf(',') + 1)
  const sign = /^[-+]/.exec(current.slice(said.length))?.[0] ?? ''
  return knownFields(spec?.operations ?? [], await shippedText('openapi.json')).map((field) => `${said}${sign}${field}`)
}

/** Where a declaration does not say what a value is: by what it is called. */
const CALLED: Readonly<Record<string, Completed>> = {
  agent: 'agent',
  assignee: 'agent',
  base: 'provider-base',
  cityName: 'city',
  city_name: 'city',
  file: 'file',
  key: 'config-key',
  provider: 'provider',
  request_id: 'request',
  rig: 'rig',
  session: 'session',
  template: 'agent',
}
/** And by what it is of: `rig get <name>`. */
const OF_NOUN: Readonly<Record<string, Completed>> = {
  agent: 'agent',
  bead: 'bead',
  city: 'city',
  convoy: 'convoy',
  formula: 'formula',
  mail: 'message',
  pack: 'pack',
  provider: 'provider',
  request: 'request',
  rig: 'rig',
  service: 'service',
  session: 'session',
  token: 'token',
  transcript: 'transcript',
  worktree: 'worktree',
}
const MAKES_NEW = ['create', 'add', 'adopt', 'put']

function completedBy({ path: [noun, verb] }: CommandSpec, { name, complete }: ArgumentSpec): Completed {
  const called = argumentName(name)
  if (complete !== undefined) return complete
  if (noun === 'config' && called === 'path') return 'config-file'
  if (verb !== undefined && MAKES_NEW.includes(verb)) return 'none'
  const isItself = ['id', 'name', 'names', noun].includes(called)
  return (isItself ? OF_NOUN[noun] : CALLED[called]) ?? 'none'
}

async function argumentValues(spec: CommandSpec, flags: readonly FlagSpec[], words: Words): Promise<readonly string[]> {
  const given = operands(words.before, flags).length - spec.path.length
  const argument = spec.arguments?.[given] ?? spec.arguments?.findLast(({ name }) => name.includes('...'))
  if (argument === undefined) return []
  return argument.choices ?? lookUp(completedBy(spec, argument), words)
}

function operands(words: readonly string[], flags: readonly FlagSpec[]): readonly string[] {
  const valued = new Set(flags.filter((flag) => takesValue(flag.flags)).flatMap((flag) => flagWords(flag.flags)))
  return words.filter((word, at) => !word.startsWith('-') && !valued.has(words[at - 1] ?? ''))
}

async function lookUp(what: Completed, { before, current, io }: Words): Promise<readonly string[]> {
  if (what === 'file') return [FILES]
  if (what === 'event-type') return EVENT_TYPES
  if (what === 'output') return OUTPUT_FORMATS.map(({ name, does }) => tab(name, does))
  const ask = LOOK_UPS[what]
  if (ask === undefined) return []
  const scope = givenScope(before)
  const { SVC_API, SVC_CITY, SVC_HOME, SVC_TOKEN } = io.env
  // Of beads there are too many for one answer, so what is typed is part of the question.
  const typed = what === 'bead' ? current : ''
  return remembered(io, [what, typed, scope, io.cwd, SVC_API, SVC_CITY, SVC_HOME, SVC_TOKEN], async () => {
    const context = new Context(io, globalOptions(new Input(scope)))
    using limit = context.within(BUDGET_MS)
    return await ask({ current: typed, context, client: await context.client(), signal: limit.signal })
  })
}

/** The server and the city that the words before name, as `--flag value` or `--flag=value`. */
const givenScope = (before: readonly string[]): readonly (readonly [string, unknown])[] =>
  before.flatMap((word, at): (readonly [string, unknown])[] => {
    const [spelling = '', inside] = word.startsWith('--') ? word.split(/=(.*)/s) : [word]
    const flag = GLOBAL_FLAGS.find(({ flags }) => flagWords(flags).includes(spelling))
    if (flag === undefined) return []
    const value = takesValue(flag.flags) ? (inside ?? before[at + 1]) : true
    return value === undefined ? [] : [[flagName(flag.flags), value]]
  })
