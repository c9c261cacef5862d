/** From what is asked to SQL: parameters of a list become a query, a query becomes a condition on `beads b`. */

import type { QueryOf } from '../../../contract/base/operation.ts'
import type { listBeads, listReadyBeads } from '../../../contract/beads.ts'
import type { SqlValue } from '../../../kernel/database.ts'
import { invalidField, timeMs } from '../../../kernel/problem.ts'
import { MIRRORED_COLUMNS } from '../store/columns.ts'
import { labelTest } from '../store/labels.ts'
import { IS_READY } from '../store/ready.ts'
import { BLOCKING_SQL } from '../store/shifts.ts'
import { segmented } from '../store/words.ts'
import { noRig } from '../work/drafts.ts'
import { patternOf } from './pattern.ts'
import {
  allOf,
  anyOf,
  conditions,
  MAX_WORDS,
  type Moment,
  not,
  type Query,
  type State,
  statusIs,
  type TextField,
  type TimeField,
  type Words,
  wordsAsked,
  wordsIn,
} from './query.ts'
import { parseQuery } from './query-language.ts'

type ReadyFilters = Omit<QueryOf<typeof listReadyBeads>, 'index' | 'wait' | 'limit' | 'cursor' | 'sort'>
type SharedFilters = Omit<ReadyFilters, 'exclude_type' | 'exclude_label'>
export type ListFilters = Omit<QueryOf<typeof listBeads>, 'index' | 'wait' | 'limit' | 'cursor' | 'order'>

/** A condition and the values of its question marks. */
export interface Sql {
  readonly text: string
  readonly values: readonly SqlValue[]
}

export interface Meaning {
  /** Milliseconds. */
  readonly now: number
  /** Every name of somebody. */
  readonly identities: (name: string) => readonly string[]
  /** Words are looked up among some beads only; among all where absent. */
  readonly among?: WordsAmong
}

/** The numbers of those of some beads that have words. */
export type WordsAmong = (expression: string) => readonly number[]

/** What `list-beads` and `export-beads` ask for; 404 for a rig that the city does not have. */
export function listQuery(filters: ListFilters, hasRig: (name: string) => boolean): Query {
  const { status, all = false, closed_before, closed_after } = filters
  const speaksOfClosed = closed_before !== undefined || closed_after !== undefined
  const parts: Query[] = []
  if (status !== undefined) parts.push(statusIs(...status))
  else if (!all && !speaksOfClosed) parts.push(NOT_CLOSED)
  return allOf([...parts, ...sharedParts(filters, hasRig), ...between(filters, 'closed')])
}

/** What `list-ready-beads` asks for beyond being ready. */
export function readyQuery(filters: ReadyFilters, hasRig: (name: string) => boolean): readonly Query[] {
  const { exclude_type = [], exclude_label = [] } = filters
  return [
    ...sharedParts(filters, hasRig),
    ...(exclude_type.length === 0 ? [] : [not({ kind: 'one-of', field: 'issue_type', values: exclude_type })]),
    ...exclude_label.map((label) => not({ kind: 'label', label })),
  ]
}

/** What `query-beads` asks for: closed beads only where the text speaks of them. */
export function spokenQuery(source: string, all: boolean): Query {
  const query = parseQuery(source)
  const speaksOfClosed = [...conditions(query)].some(
    (one) =>
      (one.kind === 'one-of' && one.field === 'status') ||
      (one.kind === 'time' && one.field === 'closed_at') ||
      (one.kind === 'has' && one.what === 'closed_at'),
  )
  return all || speaksOfClosed ? query : allOf([NOT_CLOSED, query])
}

const NOT_CLOSED: Query = not(statusIs('closed'))
const EXACT = ['parent', 'routed_to', 'root_bead_id'] as const

function sharedParts(filters: SharedFilters, hasRig: (name: string) => boolean): readonly Query[] {
  const { type, label = [], assignee, assignees, unassigned, rig, priority, metadata = [], ephemeral, q } = filters
  const parts: Query[] = []
  if (type !== undefined) parts.push({ kind: 'one-of', field: 'issue_type', values: type })
  for (const one of label) parts.push({ kind: 'label', label: one })
  if (assignee !== undefined) parts.push(assigned(assignee))
  if (assignees !== undefined) parts.push(anyOf(assignees.map(assigned)))
  if (unassigned !== undefined) parts.push(unassigned ? UNASSIGNED : not(UNASSIGNED))
  if (rig !== undefined && !hasRig(rig)) throw noRig(rig, 'query.rig')
  if (rig !== undefined) parts.push({ kind: 'one-of', field: 'rig', values: [rig] })
  for (const field of EXACT) {
    const value = filters[field]
    if (value !== undefined) parts.push({ kind: 'one-of', field, values: [value] })
  }
  if (priority !== undefined) parts.push({ kind: 'number', field: 'priority', op: '=', value: priority })
  for (const one of metadata) parts.push(metadataPart(one))
  if (ephemeral !== undefined) parts.push(ephemeral === 'only' ? EPHEMERAL : not(EPHEMERAL))
  if (q !== undefined) parts.push(...searched(q))
  return [...parts, ...between(filters, 'created'), ...between(filters, 'updated')]
}

const UNASSIGNED: Query = not({ kind: 'has', what: 'assignee' })
const EPHEMERAL: Query = { kind: 'state', state: 'ephemeral' }
const assigned = (name: string): Query =>
  name === '' ? UNASSIGNED : { kind: 'one-of', field: 'assignee', values: [name] }

function metadataPart(text: string): Query {
  const equals = text.indexOf('=')
  if (equals === 0) throw invalidField('query.metadata', 'must start with a key', text.slice(0, 80))
  if (equals < 0) return { kind: 'has-metadata', key: text }
  return { kind: 'metadata', key: text.slice(0, equals), values: [text.slice(equals + 1)] }
}

type Timed = 'created' | 'updated' | 'closed'
const SIDES = [
  ['after', '>'],
  ['before', '<'],
] as const

function between(filters: Partial<Record<`${Timed}_${'before' | 'after'}`, string>>, name: Timed): readonly Query[] {
  return SIDES.flatMap(([side, op]): readonly Query[] => {
    const text = filters[`${name}_${side}`]
    if (text === undefined) return []
    return [{ kind: 'time', field: `${name}_at`, op, value: { at_ms: timeMs(`query.${name}_${side}`, text) } }]
  })
}

/** All of the words, phrases in quotes; the last word may be a beginning. */
function searched(text: string): readonly Query[] {
  const pieces = [...text.matchAll(/"([^"]*)"|[^\s"]+/g)]
    .map(([whole, phrase]) => ({ text: phrase ?? whole, quoted: phrase !== undefined }))
    .filter((piece) => wordsIn(piece.text).length > 0)
  if (pieces.length === 0) throw invalidField('query.q', 'must have a word with a letter or a digit', text.slice(0, 80))
  if (wordsAsked(text) > MAX_WORDS) throw invalidField('query.q', `must have at most ${MAX_WORDS} words`)
  const last = pieces.length - 1
  return pieces.map((piece, index) => ({
    kind: 'words',
    field: 'text',
    text: piece.text,
    open: index === last && !piece.quoted,
  }))
}

/** The condition of a query; it is true or false of every bead, never null. */
export function whereOf(query: Query, meaning: Meaning): Sql {
  switch (query.kind) {
    case 'and':
    case 'or':
      return joined(query.kind, query.parts, meaning)
    case 'not': {
      const { text, values } = whereOf(query.part, meaning)
      return { text: `NOT (${text})`, values }
    }
    case 'one-of':
      return oneOf(query, meaning)
    case 'contains':
      return containsSql(query.field, query.text)
    case 'number':
      return sql(`b.${query.field} IS NOT NULL AND b.${query.field} ${query.op} ?`, query.value)
    case 'time':
      return timeSql(query.field, query.op, query.value, meaning.now)
    case 'has':
      return hasSql(query.what)
    case 'label':
      return labelTest(query.label)
    case 'metadata':
    case 'metadata-contains':
    case 'has-metadata':
      return metadataSql(query)
    case 'edge':
      return edgeSql(query.edge, query.id)
    case 'state':
      return stateSql(query.state, meaning.now)
    case 'words':
      return wordsSql(match(query), meaning)
  }
}

const sql = (text: string, ...values: readonly SqlValue[]): Sql => ({ text, values })
const marks = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

function joined(kind: 'and' | 'or', parts: readonly Query[], meaning: Meaning): Sql {
  if (parts.length === 0) return sql(kind === 'and' ? '1' : '0')
  // The text index is asked once: it puts words together better than the engine does afterwards.
  const matches = parts.flatMap((part) => (part.kind === 'words' ? [`(${match(part)})`] : []))
  const operator = kind === 'and' ? ' AND ' : ' OR '
  const all = [
    ...parts.filter((part) => part.kind !== 'words').map((part) => whereOf(part, meaning)),
    ...(matches.length === 0 ? [] : [wordsSql(matches.join(operator), meaning)]),
  ]
  return { text: all.map(({ text }) => `(${text})`).join(operator), values: all.flatMap(({ values }) => values) }
}

const NEVER_NULL: ReadonlySet<TextField> = new Set(['id', 'title', 'status', 'issue_type', 'rig'])

type OneOf = Extract<Query, { readonly kind: 'one-of' }>

function oneOf({ field, values: named }: OneOf, meaning: Meaning): Sql {
  const values = field === 'assignee' ? named.flatMap(meaning.identities) : named
  const column = `b."${field}"`
  const among = sql(
    `${NEVER_NULL.has(field) ? '' : `${column} IS NOT NULL AND `}${column} IN (${marks(values)})`,
    ...values,
  )
  if (field !== 'title' && field !== 'description') return within(field, among.text, among.values)
  // No index has these texts; that of their words leaves few to be compared.
  const expression = wordsOfTexts({ field, values })
  if (expression === undefined) return among
  const narrowed = wordsSql(expression, meaning)
  return { text: `${narrowed.text} AND ${among.text}`, values: [...narrowed.values, ...among.values] }
}

/** The words of some texts, for the index of words; undefined where one has none. */
export function wordsOfTexts({ field, values }: Pick<OneOf, 'field' | 'values'>): string | undefined {
  if (field !== 'title' && field !== 'description') return undefined
  const phrases = values.map((text) => match({ field, text: wordsIn(text).slice(0, MAX_WORDS).join(' '), open: false }))
  return values.some((text) => wordsIn(text).length === 0) ? undefined : phrases.map((one) => `(${one})`).join(' OR ')
}

/** Reasons are not in the indexes that lists read, and have one of their own. */
function within(field: TextField, text: string, values: readonly SqlValue[]): Sql {
  if (field !== 'close_reason') return { text, values }
  return { text: `b.n IN (SELECT n FROM beads b INDEXED BY beads_reason WHERE ${text})`, values }
}

function containsSql(field: TextField, text: string): Sql {
  const { operator, pattern } = patternOf(text)
  return within(field, `b."${field}" IS NOT NULL AND b."${field}" ${operator}`, [pattern])
}

const DAY_MS = 86_400_000
function timeSql(field: TimeField, op: string, moment: Moment, now: number): Sql {
  const column = `b.${field}`
  const known = `${column} IS NOT NULL AND ${column}`
  if ('at_ms' in moment) return sql(`${known} ${op} ?`, moment.at_ms)
  if ('ago_ms' in moment) return sql(`${known} ${op} ?`, now - moment.ago_ms)
  const { day_ms: from } = moment
  const to = from + DAY_MS
  switch (op) {
    case '<':
      return sql(`${known} < ?`, from)
    case '<=':
      return sql(`${known} < ?`, to)
    case '>':
      return sql(`${known} >= ?`, to)
    case '>=':
      return sql(`${known} >= ?`, from)
    default:
      return sql(`${known} >= ? AND ${column} < ?`, from, to)
  }
}

function hasSql(what: TextField | TimeField | 'priority' | 'attempt' | 'label'): Sql {
  if (what === 'label') return sql(`b.labels <> '[]'`)
  if (what === 'rig') return sql(`b.rig <> ''`)
  return sql(`b."${what}" IS NOT NULL`)
}

type OfMetadata = Extract<Query, { readonly kind: 'metadata' | 'metadata-contains' | 'has-metadata' }>

function metadataSql(query: OfMetadata): Sql {
  const column = MIRRORED_COLUMNS.find((mirrored) => `svc.${mirrored}` === query.key)
  const value = column === undefined ? 'value' : `CAST(b.${column} AS TEXT)`
  const test = valueTest(query, value)
  if (column !== undefined) return { text: `b.${column} IS NOT NULL AND ${test.text}`, values: test.values }
  return {
    text: `EXISTS (SELECT 1 FROM bead_metadata WHERE bead = b.id AND key = ? AND ${test.text})`,
    values: [query.key, ...test.values],
  }
}

function valueTest(query: OfMetadata, value: string): Sql {
  if (query.kind === 'has-metadata') return sql(`${value} <> ''`)
  if (query.kind === 'metadata-contains') {
    const { operator, pattern } = patternOf(query.text)
    return sql(`${value} ${operator}`, pattern)
  }
  return sql(`${value} IN (${marks(query.values)})`, ...query.values)
}

function edgeSql(edge: 'blocked-by' | 'blocks' | 'child-of', id: string): Sql {
  if (edge === 'child-of') return sql('b.parent IS NOT NULL AND b.parent = ?', id)
  const [own, other] = edge === 'blocked-by' ? ['issue_id', 'depends_on_id'] : ['depends_on_id', 'issue_id']
  return sql(`EXISTS (SELECT 1 FROM bead_deps WHERE ${own} = b.id AND ${other} = ? AND ${BLOCKING_SQL})`, id)
}

function stateSql(state: State, now: number): Sql {
  switch (state) {
    case 'blocked':
      return sql('b.blockers > 0')
    case 'ready':
      return sql(IS_READY, now)
    case 'claimed':
      return sql(`b.status = 'in_progress' AND b.assignee IS NOT NULL`)
    case 'deferred':
      return sql(`b.defer_until IS NOT NULL AND b.defer_until > ?`, now)
    case 'ephemeral':
      return sql('b.ephemeral = 1')
  }
}

function wordsSql(expression: string, { among }: Meaning): Sql {
  return among === undefined
    ? sql('b.n IN (SELECT rowid FROM bead_words WHERE bead_words MATCH ?)', expression)
    : sql('b.n IN (SELECT value FROM json_each(?))', JSON.stringify(among(expression)))
}

/** Beginnings that are shorter are in everything; they are taken as whole words. */
const SHORTEST_BEGINNING = 3

/** The last word where it is the beginning of one. */
export function beginningOf({ text, open }: Pick<Words, 'text' | 'open'>): string | undefined {
  const last = wordsIn(text).at(-1) ?? ''
  return open && [...last].length >= SHORTEST_BEGINNING ? last : undefined
}

/** The expression of the text index for some words; quoting makes it a text and nothing else. */
export function match(words: Omit<Words, 'kind'>): string {
  const { field, text, endings = [] } = words
  const beginning = beginningOf(words)
  const columns = field === 'text' ? 'title description' : field
  if (beginning === undefined) return `{${columns}} : ${quoted(text)}`
  if (endings.length === 0) return `{${columns}} : ${quoted(text)} *`
  // A beginning makes the index put all that begins so together first, whatever part of it is asked for; words do not.
  const before = text.slice(0, text.lastIndexOf(beginning))
  return `{${columns}} : (${endings.map((ending) => quoted(before + ending)).join(' OR ')})`
}

const quoted = (text: string): string => `"${segmented(text).replaceAll('\0', ' ').replaceAll('"', '""')}"`
