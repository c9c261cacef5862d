/** The conditions of the query language: which fields there are, and what can be said about each. */

import { parseDurationMs } from '../../../contract/base/durations.ts'
import { BEAD_STATUSES } from '../../../contract/beads.ts'
import { parseDay, parseTime } from '../../../kernel/clock.ts'
import { invalidField, type Problem } from '../../../kernel/problem.ts'
import { COLUMN_NAMES, COLUMNS, type ColumnName, namesAsked } from '../store/columns.ts'
import {
  anyOf,
  type Comparison,
  type Edge,
  type Moment,
  type NumberField,
  not,
  type Query,
  type State,
  statusIs,
  type TextField,
  type TimeField,
  type WordField,
} from './query.ts'

export type Field =
  | { readonly type: 'text'; readonly column: TextField }
  | { readonly type: 'words'; readonly column: WordField }
  | { readonly type: 'number'; readonly column: NumberField }
  | { readonly type: 'time'; readonly column: TimeField }
  | { readonly type: 'edge'; readonly edge: Edge }
  | { readonly type: 'flag'; readonly state: State }
  | { readonly type: 'metadata'; readonly key: string }
  | { readonly type: 'label' | 'has' | 'is' }

const edge = (name: Edge): Field => ({ type: 'edge', edge: name })

/** What a column is asked for as; titles and texts are looked for by their words, and whole. */
const isWords = (name: ColumnName): name is 'title' | 'description' => name === 'title' || name === 'description'
const isText = (name: ColumnName): name is Exclude<TextField, 'id'> =>
  namesAsked(name).length > 0 && ['text', 'status'].includes(COLUMNS[name].kind)
const isNumber = (name: ColumnName): name is NumberField =>
  namesAsked(name).length > 0 && COLUMNS[name].kind === 'number'
const isTime = (name: ColumnName): name is TimeField => namesAsked(name).length > 0 && COLUMNS[name].kind === 'time'

function fieldOf(column: ColumnName): Field | undefined {
  if (isWords(column)) return { type: 'words', column }
  if (isText(column)) return { type: 'text', column }
  if (isNumber(column)) return { type: 'number', column }
  return isTime(column) ? { type: 'time', column } : undefined
}

/** Of the columns, by each of their names. */
const COLUMN_FIELDS = COLUMN_NAMES.flatMap((name) => {
  const field = fieldOf(name)
  return field === undefined ? [] : namesAsked(name).map((asked): [string, Field] => [asked, field])
})

export const FIELDS: ReadonlyMap<string, Field> = new Map([
  ...COLUMN_FIELDS,
  ['id', { type: 'text', column: 'id' }],
  ['text', { type: 'words', column: 'text' }],
  ['label', { type: 'label' }],
  ['blocked-by', edge('blocked-by')],
  ['blocks', edge('blocks')],
  ['child-of', edge('child-of')],
  ['ephemeral', { type: 'flag', state: 'ephemeral' }],
  ['is_blocked', { type: 'flag', state: 'blocked' }],
  ['has', { type: 'has' }],
  ['is', { type: 'is' }],
])
const STATES: readonly State[] = ['blocked', 'ready', 'claimed', 'deferred', 'ephemeral']
const ABSENT = 'none'
export const METADATA = 'metadata.'

export interface Value {
  readonly text: string
  readonly quoted: boolean
  /** Followed by a star: the beginning of a word. */
  readonly starred: boolean
  readonly column: number
}
/** One condition as it is written. */
export interface Condition {
  readonly name: string
  readonly column: number
  readonly op: string
  readonly opColumn: number
  readonly values: readonly Value[]
}

export const mistake = (column: number, expected: string): Problem =>
  invalidField('query.q', `column ${column}: expected ${expected}`)

export function allow({ op, opColumn, name }: Condition, ...ops: readonly string[]): void {
  if (!ops.includes(op)) throw mistake(opColumn, `one of ${ops.join(' ')} after ${name}`)
}

export function conditionOf(field: Field, condition: Condition): Query {
  switch (field.type) {
    case 'text':
      return textCondition(field.column, condition)
    case 'words':
      // Equality with all of a title; what looks for words in it was seen to before.
      return textCondition(field.column === 'description' ? 'description' : 'title', condition)
    case 'number':
      return numberCondition(field.column, condition)
    case 'time':
      return timeCondition(field.column, condition)
    case 'metadata':
      return metadataCondition(field.key, condition)
    case 'edge':
      return each(condition, ({ text: id }) => ({ kind: 'edge', edge: field.edge, id }))
    case 'flag':
      return each(condition, (value) => flagCondition(field.state, value))
    case 'label':
      return each(condition, (value) =>
        isAbsent(value) ? not({ kind: 'has', what: 'label' }) : { kind: 'label', label: value.text },
      )
    case 'has':
      return each(condition, hasCondition)
    case 'is':
      return each(condition, isCondition)
  }
}

/** Any of the values; none of them with `!=`. */
function each(condition: Condition, one: (value: Value) => Query): Query {
  allow(condition, '=', '!=', ':')
  const found = anyOf(condition.values.map(one))
  return condition.op === '!=' ? not(found) : found
}

const isAbsent = ({ text: value, quoted }: Value): boolean => !quoted && value.toLowerCase() === ABSENT

function textCondition(field: TextField, condition: Condition): Query {
  allow(condition, '=', '!=', '~', ':')
  if (field === 'status') {
    const values = condition.values.map(statusOf)
    return condition.op === '!=' ? not(statusIs(...values)) : statusIs(...values)
  }
  if (condition.op === '~')
    return anyOf(condition.values.map((value): Query => ({ kind: 'contains', field, text: value.text })))
  return present(condition, { kind: 'has', what: field }, (values) => ({ kind: 'one-of', field, values }))
}

function metadataCondition(key: string, condition: Condition): Query {
  allow(condition, '=', '!=', '~', ':')
  if (condition.op === '~')
    return anyOf(condition.values.map((value): Query => ({ kind: 'metadata-contains', key, text: value.text })))
  return present(condition, { kind: 'has-metadata', key }, (values) => ({ kind: 'metadata', key, values }))
}

/** `none` among the values is what has none. */
function present({ op, values }: Condition, has: Query, among: (values: readonly string[]) => Query): Query {
  const named = values.filter((value) => !isAbsent(value)).map((value) => value.text)
  const parts = [...(named.length === 0 ? [] : [among(named)]), ...(named.length < values.length ? [not(has)] : [])]
  return op === '!=' ? not(anyOf(parts)) : anyOf(parts)
}

function statusOf({ text: value, column }: Value) {
  const status = BEAD_STATUSES.find((known) => known === value.toLowerCase())
  if (status === undefined) throw mistake(column, `one of ${BEAD_STATUSES.join(', ')}`)
  return status
}

function numberCondition(field: NumberField, condition: Condition): Query {
  const comparison = comparisonOf(condition)
  const parts = condition.values.map((value): Query => {
    if (isAbsent(value) && comparison === '=') return not({ kind: 'has', what: field })
    if (!/^[0-9]{1,9}$/.test(value.text)) throw mistake(value.column, `a number or ${ABSENT}`)
    return { kind: 'number', field, op: comparison, value: Number(value.text) }
  })
  return condition.op === '!=' ? not(anyOf(parts)) : anyOf(parts)
}

function timeCondition(field: TimeField, condition: Condition): Query {
  const comparison = comparisonOf(condition)
  const parts = condition.values.map((value): Query => {
    if (isAbsent(value) && comparison === '=') return not({ kind: 'has', what: field })
    const moment = parseMoment(value)
    if ('ago_ms' in moment && comparison === '=')
      throw mistake(condition.opColumn, 'one of < <= > >= before a duration')
    return { kind: 'time', field, op: comparison, value: moment }
  })
  return condition.op === '!=' ? not(anyOf(parts)) : anyOf(parts)
}

function comparisonOf(condition: Condition): Comparison {
  allow(condition, '=', '!=', ':', '<', '<=', '>', '>=')
  const { op, values } = condition
  if (op !== '<' && op !== '<=' && op !== '>' && op !== '>=') return '='
  const second = values[1]
  if (second !== undefined) throw mistake(second.column, `one value after ${op}`)
  return op
}

function parseMoment({ text: value, column }: Value): Moment {
  const day = parseDay(value)
  if (day !== undefined) return { day_ms: day }
  const at = parseTime(value)
  if (at !== undefined) return { at_ms: at }
  try {
    return { ago_ms: Math.round(parseDurationMs(value)) }
  } catch {
    throw mistake(column, 'a duration (7d), a day (2026-11-01) or a time (2026-11-01T09:00:00Z)')
  }
}

function hasCondition({ text: name, column }: Value): Query {
  const lower = name.toLowerCase()
  if (lower.startsWith(METADATA) && name.length > METADATA.length)
    return { kind: 'has-metadata', key: name.slice(METADATA.length) }
  const field = FIELDS.get(lower)
  if (field?.type === 'label') return { kind: 'has', what: 'label' }
  if (field?.type === 'text' || field?.type === 'number' || field?.type === 'time')
    return { kind: 'has', what: field.column }
  if (field?.type === 'words' && field.column !== 'text') return { kind: 'has', what: field.column }
  throw mistake(column, 'a field such as assignee, label, parent or metadata.<key>')
}

function flagCondition(state: State, { text: name, column }: Value): Query {
  const lower = name.toLowerCase()
  if (lower !== 'true' && lower !== 'false') throw mistake(column, 'true or false')
  return lower === 'true' ? { kind: 'state', state } : not({ kind: 'state', state })
}

function isCondition({ text: name, column }: Value): Query {
  const lower = name.toLowerCase()
  const state = STATES.find((known) => known === lower)
  if (state !== undefined) return { kind: 'state', state }
  const status = BEAD_STATUSES.find((known) => known === lower)
  if (status !== undefined) return statusIs(status)
  throw mistake(column, `one of ${[...STATES, ...BEAD_STATUSES].join(', ')}`)
}
