/**
 * What logs say that turns have used. A log is read forward from where it was read to; what a reader has to know from
 * before that place is its state, which is kept with the place.
 */
import { cut } from '../../../contract/base/text.ts'
import type { UsageLog } from '../../../harnesses/harness.ts'
import { saysLimit } from '../../../harnesses/rate-limits.ts'
import { formatUsd, parseUsd } from '../../../kernel/money.ts'
import { present } from '../../../kernel/present.ts'
import { type AcpUsage, parseAcpLine } from '../../../runtimes/acp/transcript.ts'
import { type ByteLog, linesOf } from './entries.ts'
import { countOf, isJson, type Json, objectOf, parseLine, textOf } from './json.ts'

const FIRST_WINDOW_BYTES = 256 * 1024
/** A longer line tells of no turn. */
const MAX_WINDOW_BYTES = 32 * 1024 * 1024
const MAX_NAME = 200

export interface SpentTurn {
  readonly id: string
  readonly source: 'protocol' | 'log'
  readonly at: number | undefined
  readonly model?: string
  readonly input: number
  readonly output: number
  readonly cache_read?: number
  readonly cache_write?: number
  readonly cost_usd?: string
  /** When it began, where its log says that. */
  readonly began?: number
  /** `open`: it goes on, and this is known so far. `cut`: its process ended in it. Absent: it has ended. */
  readonly state?: 'open' | 'cut'
}

export interface SpentLimit {
  readonly message: string
  readonly source: 'protocol' | 'log'
  readonly at: number | undefined
}

/** Where a log was read to, and what has to be known from before. */
export interface Place {
  readonly offset: number
  readonly state: string
}

export interface SpentStretch {
  readonly position: Place
  readonly turns: readonly SpentTurn[]
  /** Turns that have ended and told nothing. */
  readonly untold: readonly string[]
  /** The last word of a provider that limits it. */
  readonly limit?: SpentLimit
  /** The last turn may go on: the position is where it begins. */
  readonly open: boolean
  readonly more: boolean
}

interface Line {
  readonly offset: number
  readonly text: string
}
type Read = Pick<SpentStretch, 'turns' | 'untold' | 'limit'> & {
  readonly state: Json
  /** The turn that may go on, where it begins, and the state there. */
  readonly last?: { readonly turn: SpentTurn; readonly from: number; readonly state: Json }
}
/** How the lines of a log are read. */
export type SpentReader = (lines: readonly Line[], state: Json) => Read

/** The next stretch; undefined: there is nothing new. `settled`: the last turn has ended. */
export async function readSpent(
  log: ByteLog,
  reader: SpentReader,
  place: Place | undefined,
  settled: boolean,
): Promise<SpentStretch | undefined> {
  const end = await log.endOffset()
  const start = await log.startOffset()
  // One that is shorter than it was is another one: what counts already is known by its name.
  const known = place !== undefined && place.offset <= end
  const from = Math.max(known ? place.offset : 0, start)
  if (from >= end) return undefined
  const state = (known ? parseLine(place.state) : undefined) ?? {}
  for (let size = FIRST_WINDOW_BYTES; ; size *= 4) {
    const { lines, end: reached } = await linesOf(log, from, Math.min(end, from + size), true)
    const whole = from + size >= end
    if (lines.length === 0) {
      if (whole) return undefined
      if (size < MAX_WINDOW_BYTES) continue
      // Its newline is far off: the rest of it is no JSON, and is passed over.
      return {
        position: { offset: from + size, state: JSON.stringify(state) },
        turns: [],
        untold: [],
        open: false,
        more: true,
      }
    }
    const read = reader(lines, state)
    const { last } = read
    const holdsBack = last !== undefined && (whole ? !settled : last.from > from)
    if (holdsBack) {
      const position = { offset: last.from, state: JSON.stringify(last.state) }
      const nothing = position.offset === place?.offset && read.turns.length === 0
      return {
        position,
        turns: read.turns,
        untold: read.untold,
        ...present({ limit: read.limit }),
        open: whole,
        more: !whole && !nothing,
      }
    }
    return {
      position: { offset: reached, state: JSON.stringify(read.state) },
      turns: last === undefined ? read.turns : [...read.turns, last.turn],
      untold: read.untold,
      ...present({ limit: read.limit }),
      open: false,
      more: !whole,
    }
  }
}

// ---- logs of harnesses ----------------------------------------------------------------------------------------------

/** By what is known of the harness' log. Turns of a conversation from before `since` are not this session's; `log` names it. */
export const harnessReader =
  (rules: UsageLog, since: number, log: string): SpentReader =>
  (lines, before) => {
    let model = textOf(before['model'])
    const turns: SpentTurn[] = []
    let last: { turn: SpentTurn; from: number; state: Json } | undefined
    let limit: SpentLimit | undefined
    for (const { offset, text } of lines) {
      if (rules.limit !== undefined && text.includes(rules.limit.mark)) limit = limitIn(parseLine(text), rules) ?? limit
      if (rules.modelLine !== undefined && text.includes(rules.modelLine.mark))
        model = textOf(at(parseLine(text), rules.modelLine.model)) ?? model
      const turn = text.includes(rules.mark) ? turnIn(parseLine(text), rules, model, `${log}-${offset}`) : undefined
      if (turn === undefined || (turn.at !== undefined && turn.at < since)) continue
      if (rules.id === undefined) {
        turns.push(turn)
        continue
      }
      if (last?.turn.id === turn.id) {
        last = { ...last, turn }
        continue
      }
      if (last !== undefined) turns.push(last.turn)
      last = { turn, from: offset, state: present({ model }) }
    }
    return {
      turns,
      untold: [],
      ...present({ limit }),
      state: present({ model }),
      ...(last === undefined ? {} : { last }),
    }
  }

function limitIn(line: Json | undefined, rules: UsageLog): SpentLimit | undefined {
  const message = rules.limit === undefined ? undefined : textOf(at(line, rules.limit.text))
  if (message === undefined || !saysLimit(message)) return undefined
  return { message, source: 'log', at: timeIn(at(line, rules.at)) }
}

function turnIn(
  line: Json | undefined,
  rules: UsageLog,
  known: string | undefined,
  place: string,
): SpentTurn | undefined {
  if (line === undefined) return undefined
  if (Object.entries(rules.where).some(([path, value]) => at(line, path) !== value)) return undefined
  const count = (path: string | undefined) => (path === undefined ? undefined : countOf(at(line, path)))
  const id = rules.id === undefined ? place : at(line, rules.id)
  if (count(rules.input[0]) === undefined) return undefined
  const sum = (paths: readonly string[]) => paths.reduce((all, path) => all + (count(path) ?? 0), 0)
  if ((typeof id !== 'string' && typeof id !== 'number') || id === '') return undefined
  const cached = count(rules.cache_read)
  const named = rules.model === undefined ? undefined : textOf(at(line, rules.model))
  const model = rules.unnamed?.some((end) => named?.endsWith(end)) ? known : (named ?? known)
  return {
    id: cut(String(id), MAX_NAME),
    source: 'log',
    at: timeIn(at(line, rules.at)),
    input: Math.max(sum(rules.input) - (rules.inputHasCache === true ? (cached ?? 0) : 0), 0),
    output: sum(rules.output),
    ...present({
      model: shortModel(model),
      cache_read: cached,
      cache_write: count(rules.cache_write),
      cost_usd: costIn(rules.cost === undefined ? undefined : at(line, rules.cost)),
    }),
  }
}

function at(line: Json | undefined, path: string): unknown {
  let value: unknown = line
  for (const name of path.split('.'))
    value = isJson(value) ? value[name] : Array.isArray(value) ? value[Number(name)] : undefined
  return value
}

function costIn(value: unknown): string | undefined {
  const cost = typeof value === 'number' ? parseUsd(value) : undefined
  return cost === undefined || cost === 0n ? undefined : formatUsd(cost)
}

/** A time as text, or in seconds. */
function timeIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value * 1000
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

// ---- the agent protocol ---------------------------------------------------------------------------------------------

/**
 * By the log of a run over the agent protocol: a turn ends with what it used, its cost is what the conversation's grew by.
 * A turn that goes on counts as far as its cost is known, and so does one whose process ended in it.
 */
export const acpReader =
  (run: string): SpentReader =>
  (lines, before) => {
    const turns: SpentTurn[] = []
    const untold: string[] = []
    let limit: SpentLimit | undefined
    let state = before
    for (const { offset, text } of lines) {
      state = { ...state, ...modelNamed(text) }
      const record = parseAcpLine(text, offset)
      if (record?.kind === 'replay') state = { ...state, loaded: true }
      if (record?.kind === 'usage' && record.cost !== undefined) state = { ...state, cost: record.cost }
      // What a conversation cost that was loaded is known only once the agent has said it.
      if (record?.kind === 'user')
        state = {
          ...state,
          key: textOf(record.delivery_id) || `${run}-${offset}`,
          base: state['cost'] ?? (state['loaded'] === true ? undefined : 0),
          began: timeIn(record.at),
        }
      if (record?.kind !== 'turn_end') continue
      const id = textOf(state['key']) || `${run}-${offset}`
      const cost = grownBy(state['base'], state['cost'])
      if (record.stop_reason === 'error' && record.message !== undefined && saysLimit(record.message))
        limit = { message: record.message, source: 'protocol', at: timeIn(record.at) }
      if (record.usage === undefined && cost === undefined) untold.push(id)
      else
        turns.push({
          id,
          source: 'protocol',
          at: timeIn(record.at),
          ...tokensOf(record.usage ?? {}),
          ...present({
            model: modelOf(record.model, state),
            cost_usd: cost,
            began: countOf(state['began']),
            state: record.stop_reason === 'exited' ? ('cut' as const) : undefined,
          }),
        })
      const { key: _key, base: _base, began: _began, ...rest } = state
      state = rest
    }
    const open = openTurn(state)
    if (open !== undefined) turns.push(open)
    return { turns, untold, ...present({ limit }), state }
  }

/** The turn that goes on, as soon as it is known to cost something. */
function openTurn(state: Json): SpentTurn | undefined {
  const id = textOf(state['key'])
  const cost = grownBy(state['base'], state['cost'])
  if (id === undefined || cost === undefined || state['base'] === state['cost']) return undefined
  return {
    id,
    source: 'protocol',
    at: undefined,
    input: 0,
    output: 0,
    cost_usd: cost,
    state: 'open',
    ...present({ model: modelOf(undefined, state), began: countOf(state['began']) }),
  }
}

const modelOf = (named: string | undefined, state: Json): string | undefined => {
  const model = named ?? textOf(state['model'])
  return model === undefined ? undefined : cut(model, MAX_NAME)
}

/**
 * Agents differ in whether `input` counts what came from a cache, and `output` what was thought: the total that they give
 * says it. Without one each kind stands for itself.
 */
function tokensOf(usage: AcpUsage): Pick<SpentTurn, 'input' | 'output' | 'cache_read' | 'cache_write'> {
  const {
    input_tokens: input = 0,
    output_tokens: output = 0,
    reasoning_tokens: thought = 0,
    total_tokens: total,
  } = usage
  const { cache_read_tokens: cache_read, cache_creation_tokens: cache_write } = usage
  const cached = (cache_read ?? 0) + (cache_write ?? 0)
  const apart = input + output + cached + thought
  const within = [0, cached, thought, cached + thought].find((part) => apart - part === total) ?? 0
  const inInput = cached > 0 && (within === cached || within === cached + thought) ? cached : 0
  return {
    input: Math.max(input - inInput, 0),
    output: within - inInput === thought ? output : output + thought,
    ...present({ cache_read, cache_write }),
  }
}

function grownBy(before: unknown, now: unknown): string | undefined {
  if (typeof before !== 'number' || typeof now !== 'number') return undefined
  const [first, last] = [parseUsd(before), parseUsd(now)]
  return first === undefined || last === undefined || last < first ? undefined : formatUsd(last - first)
}

/** Agents say the model as they open a conversation, and when it changes. */
function modelNamed(line: string): { readonly model?: string } {
  if (!line.includes('"currentModelId"') && !line.includes('"model"')) return {}
  const message = parseLine(line)
  const opened = textOf(at(message, 'result.models.currentModelId'))
  if (opened !== undefined) return { model: opened }
  const options = at(message, 'result.configOptions') ?? at(message, 'params.update.configOptions')
  const chosen = Array.isArray(options) ? options.map(objectOf).find((one) => one['category'] === 'model') : undefined
  const model = textOf(chosen?.['currentValue'])
  return model === undefined ? {} : { model }
}

const shortModel = (model: string | undefined) => (model === undefined ? undefined : cut(model, MAX_NAME))
