/** What may come next on a command line. Quick or silent: a slow server must not hold up a keystroke (sheet 08 §4.6). */
import type { Client } from '../client/client.ts'
import type { Bead } from '../contract/beads.ts'
import type { SessionResponse } from '../contract/session-model.ts'
import {
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
import { listCities } from './base/discovery.ts'
import { printable } from './base/failure.ts'
import type { Io } from './base/io.ts'
import { NOUNS, SERVE_SUMMARY } from './nouns.ts'
import { flagsOf, nextWords } from './parse.ts'
import { OUTPUT_FORMATS } from './print/format.ts'
import { cutTo } from './print/text-width.ts'
import { EVENT_TYPES } from './tables/event-types.ts'

const BUDGET_MS = 300
const MOST_SESSIONS = 200
const MOST_BEADS = 50
/** Of a title beside an id. */
const MOST_COLUMNS = 60

/** Candidates as `word` or `word<tab>description`; `words` are those after the program's name, the last one unfinished. */
export async function completions(words: readonly string[], io: Io): Promise<readonly string[]> {
  const before = words.slice(0, -1)
  const current = words.at(-1) ?? ''
  const candidates = await candidatesFor(before, current, io)
  return candidates.filter((candidate) => candidate.startsWith(current))
}

async function candidatesFor(before: readonly string[], current: string, io: Io): Promise<readonly string[]> {
  const nounAt = before.findIndex((word) => Object.hasOwn(NOUNS, word))
  const noun = before[nounAt]
  const { spec, depth, specs } = await named(noun, before.slice(nounAt + 1))
  const flags = [...(spec === undefined ? [] : flagsOf(spec)), ...GLOBAL_FLAGS]
  const open = flags.find((flag) => takesValue(flag.flags) && flagWords(flag.flags).includes(before.at(-1) ?? ''))
  if (open?.complete === 'field') return fieldNames(spec, current)
  if (open !== undefined) return valuesOf(open, { before, current, io })
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
  if (spec === undefined) return nextWords(depth, specs).map(({ word, summary }) => tab(word, summary))
  return argumentValues(spec, flags, { before, current, io })
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
  for (const word of ['', ...words]) {
    const below = specs.filter(({ path }) => path[depth] === word)
    if (below.length > 0) [specs, depth] = [below, depth + 1]
    const spec = specs.find(({ path }) => path.length === depth)
    if (spec !== undefined) return { spec, specs, depth }
  }
  return { specs, depth }
}

const tab = (word: string, description: string | undefined): string =>
  description === undefined || description === '' ? word : `${word}\t${printable(description.replaceAll(/\s+/g, ' '))}`

interface Words {
  readonly before: readonly string[]
  /** The unfinished one. */
  readonly current: string
  readonly io: Io
}

async function valuesOf(flag: FlagSpec, words: Words): Promise<readonly string[]> {
  return flag.choices ?? lookUp(flag.complete ?? 'none', words)
}

/** Of the last one in a list with commas. */
async function fieldNames(spec: CommandSpec | undefined, current: string): Promise<readonly string[]> {
  const { knownFields } = await import('./print/known-fields.ts')
  const said = current.slice(0, current.lastIndexOf(',') + 1)
  const sign = /^[-+]/.exec(current.slice(said.length))?.[0] ?? ''
  return (await knownFields(spec?.operations[0])).map((field) => `${said}${sign}${field}`)
}

async function argumentValues(spec: CommandSpec, flags: readonly FlagSpec[], words: Words): Promise<readonly string[]> {
  const given = operands(words.before, flags).length - spec.path.length
  const argument = spec.arguments?.[given] ?? spec.arguments?.findLast(({ name }) => name.includes('...'))
  if (argument === undefined) return []
  return argument.choices ?? lookUp(argument.complete ?? 'none', words)
}

function operands(words: readonly string[], flags: readonly FlagSpec[]): readonly string[] {
  const valued = new Set(flags.filter((flag) => takesValue(flag.flags)).flatMap((flag) => flagWords(flag.flags)))
  return words.filter((word, at) => !word.startsWith('-') && !valued.has(words[at - 1] ?? ''))
}

const LOOK_UPS: Partial<Readonly<Record<Completed, (look: Look) => Promise<readonly string[]>>>> = {
  city: async ({ client, signal }) => (await listCities(client, signal)).map(({ name, status }) => tab(name, status)),
  agent: async (look) => {
    const { body } = await look.client.call('list-agents', {
      params: await inCity(look),
      query: { limit: 1000 },
      signal: look.signal,
    })
    return body.items.map(({ name, state }) => tab(name, state))
  },
  bead: async (look) => {
    const [{ client, current, signal }, params] = [look, await inCity(look)]
    // What is typed may be that of an old one: then it is looked for, and not only among the newest.
    const { body } =
      current === ''
        ? await client.call('list-beads', { params, query: { limit: MOST_BEADS }, signal })
        : await client.call('query-beads', {
            params,
            query: { q: `id~${JSON.stringify(current)}`, limit: MOST_BEADS },
            signal,
          })
    return body.items.map(aboutBead)
  },
  'closed-bead': async (look) => {
    const query = { status: ['closed' as const], limit: MOST_BEADS }
    const { body } = await look.client.call('list-beads', { params: await inCity(look), query, signal: look.signal })
    return body.items.map(aboutBead)
  },
  convoy: async (look) => {
    const query = { limit: MOST_BEADS }
    const { body } = await look.client.call('list-convoys', { params: await inCity(look), query, signal: look.signal })
    return body.items.map(({ id, progress, title }) =>
      tab(id, `${progress.closed} of ${progress.total}: ${cutTo(title, MOST_COLUMNS)}`),
    )
  },
  rig: async (look) => {
    const { body } = await look.client.call('list-rigs', { params: await inCity(look), signal: look.signal })
    return body.items.map(({ name, path }) => tab(name, path))
  },
  session: async (look) => {
    const query = { limit: MOST_SESSIONS }
    const { body } = await look.client.call('list-sessions', { params: await inCity(look), query, signal: look.signal })
    const about = ({ template, state, title }: SessionResponse) => `${template}, ${state}: ${title}`
    const named = body.items.flatMap((one) => (one.alias === undefined ? [] : tab(one.alias, about(one))))
    return [...named, ...body.items.map((one) => tab(one.id, about(one)))]
  },
}

const aboutBead = ({ id, status, title }: Bead): string => tab(id, `${status}: ${cutTo(title, MOST_COLUMNS)}`)

interface Look {
  readonly current: string
  readonly context: Context
  readonly client: Client
  readonly signal: AbortSignal
}

const inCity = async ({ context, signal }: Look) => ({ cityName: await context.needCity(undefined, signal) })

async function lookUp(what: Completed, { before, current, io }: Words): Promise<readonly string[]> {
  if (what === 'event-type') return EVENT_TYPES
  if (what === 'output') return OUTPUT_FORMATS.map(({ name, does }) => tab(name, does))
  const ask = LOOK_UPS[what]
  if (ask === undefined) return []
  const context = new Context(io, globalOptions(new Input(givenScope(before))))
  using limit = context.within(BUDGET_MS)
  return await ask({ current, context, client: await context.client(), signal: limit.signal })
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
