/** A bead as it goes out in a line: keys in bd's order, what came in wherever it is still the same. Pure. */

import { type BeadColumns, COLUMN_NAMES, COLUMNS, type ColumnName, MIRRORED_COLUMNS } from '../store/columns.ts'
import type { Json, JsonObject } from './exact-json.ts'
import { compareText, type Leftover, leftoverOf, restored } from './leftover.ts'

export interface LineEdge {
  readonly depends_on_id: string
  readonly type: string
  readonly created_at: number
  readonly created_by: string | null
  readonly metadata: string | null
  readonly interchange: string | null
}

export interface LineComment {
  readonly id: string
  readonly author: string | null
  readonly text: string
  readonly created_at: number
  readonly interchange: string | null
}

/** What a line does not say of a bead: where it is kept, and who holds it for how long. */
const UNSAID = ['rig', 'lease_ms', 'lease_expires_at'] as const
export type LineColumns = Omit<BeadColumns, (typeof UNSAID)[number]>
/** Columns that are keys of a line under their own names. */
const LINE_KEYS = COLUMN_NAMES.filter(isLineKey)

function isLineKey(name: ColumnName): name is keyof LineColumns {
  const others: readonly string[] = [...UNSAID, ...MIRRORED_COLUMNS, 'interchange']
  return !others.includes(name)
}

export interface LineBead {
  readonly id: string
  readonly columns: LineColumns
  /** Sorted, each once. */
  readonly labels: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly edges: readonly LineEdge[]
  readonly comments: readonly LineComment[]
}

/** Numbers that are not kept but counted when the line is written. */
export interface LineCounts {
  readonly dependency_count: number
  readonly dependent_count: number
  readonly comment_count: number
}

/** Keys in bd's order; others stand between these and the counts. */
const ORDER = [
  '_type',
  'id',
  'title',
  'description',
  'design',
  'acceptance_criteria',
  'notes',
  'status',
  'priority',
  'issue_type',
  'assignee',
  'owner',
  'estimated_minutes',
  'created_at',
  'created_by',
  'updated_at',
  'started_at',
  'closed_at',
  'close_reason',
  'defer_until',
  'external_ref',
  'metadata',
  'labels',
  'dependencies',
  'comments',
] as const
const RANK: ReadonlyMap<string, number> = new Map(ORDER.map((key, index) => [key, index]))
/** Keys of bd alone that can be seen and changed as metadata `bd.<key>`. */
export const MIRRORED_KEYS = [
  'design',
  'acceptance_criteria',
  'notes',
  'owner',
  'created_by',
  'external_ref',
  'estimated_minutes',
] as const
export const isMirror = (key: string): boolean => MIRRORED_KEYS.some((one) => key === `bd.${one}`)

/**
 * A bead without a priority: bd takes an absent one for the most urgent, so the default of both is written, and metadata says
 * that it is nobody's word.
 */
export const UNSET_PRIORITY = { written: 2, key: 'svc.priority', mark: 'none' } as const

/** The line of a bead, without its line feed. */
export function toLine(bead: LineBead, counts: LineCounts): string {
  const leftover = leftoverOf(bead.columns.interchange)
  const line = restored(ownLine(bead, leftover), leftover.keys ?? {}, ['parent'])
  const names = new Map(Object.entries(leftover.names ?? {}))
  const entries = Object.entries(line).map(([key, value]): [string, Json] => [names.get(key) ?? key, value])
  return JSON.stringify({ ...Object.fromEntries(entries.sort(byRank)), ...counts })
}

function byRank([a]: readonly [string, Json], [b]: readonly [string, Json]): number {
  const difference = (RANK.get(a) ?? ORDER.length) - (RANK.get(b) ?? ORDER.length)
  return difference === 0 ? compareText(a, b) : difference
}

/** What we would write of a bead; its lists and metadata as they came, as far as they are the same. */
export function ownLine({ id, columns, labels, metadata, edges, comments }: LineBead, leftover: Leftover): JsonObject {
  const mirrored = MIRRORED_KEYS.map((key) => [key, metadata[`bd.${key}`]] as const)
  const fields: readonly (readonly [string, Json | undefined])[] = [
    ['_type', 'issue'],
    ['id', id],
    ...LINE_KEYS.map((name): [string, Json | undefined] => [name, lineValue(name, columns[name])]),
    ['priority', columns.priority ?? UNSET_PRIORITY.written],
    ...mirrored.map(([key, text]): [string, Json | undefined] => [key, mirroredValue(key, text)]),
    ['metadata', metadataJson(columns, metadata, leftover)],
    ['labels', labels.length === 0 ? undefined : [...labels].sort()],
    ['dependencies', elements(edges, byEdge, (edge) => edgeJson(id, edge))],
    ['comments', elements(comments, byComment, (comment) => commentJson(id, comment))],
  ]
  return Object.fromEntries(fields.filter((field): field is [string, Json] => field[1] !== undefined))
}

function lineValue(name: keyof LineColumns, value: LineColumns[keyof LineColumns]): Json | undefined {
  if (value === null || value === false) return undefined
  return COLUMNS[name].kind === 'time' && typeof value === 'number' ? lineTime(value) : value
}

function mirroredValue(key: string, text: string | undefined): Json | undefined {
  return key === 'estimated_minutes' && text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : text
}

function metadataJson(
  columns: LineColumns,
  metadata: Readonly<Record<string, string>>,
  leftover: Leftover,
): JsonObject | undefined {
  const entries: [string, Json][] = Object.entries(metadata).filter(([key]) => !isMirror(key))
  for (const column of MIRRORED_COLUMNS) {
    if (columns[column] !== null) entries.push([`svc.${column}`, String(columns[column])])
  }
  if (columns.priority === null) entries.push([UNSET_PRIORITY.key, UNSET_PRIORITY.mark])
  const gc = new Set(leftover.gc)
  const whole = Object.entries(restored(Object.fromEntries(entries), leftover.metadata ?? {}))
    .map(([key, value]): [string, Json] => [gc.has(key) ? `gc.${key.slice('svc.'.length)}` : key, value])
    .sort(([a], [b]) => compareText(a, b))
  return whole.length === 0 ? undefined : Object.fromEntries(whole)
}

/** A list in our order, or in the one that it came in; what was added here stands at its end. */
function elements<T extends { readonly interchange: string | null }>(
  list: readonly T[],
  compare: (a: T, b: T) => number,
  json: (element: T) => JsonObject,
): readonly Json[] | undefined {
  if (list.length === 0) return undefined
  const parts = list.map((element) => ({ element, leftover: leftoverOf(element.interchange) }))
  const last = Number.MAX_SAFE_INTEGER
  return parts
    .sort((a, b) => (a.leftover.n ?? last) - (b.leftover.n ?? last) || compare(a.element, b.element))
    .map(({ element, leftover }) => restored(json(element), leftover.keys ?? {}))
}

export function edgeJson(
  issue_id: string,
  { depends_on_id, type, created_at, created_by, metadata }: LineEdge,
): JsonObject {
  return {
    issue_id,
    depends_on_id,
    type,
    created_at: lineTime(created_at),
    ...(created_by === null ? {} : { created_by }),
    ...(metadata === null ? {} : { metadata }),
  }
}

export function commentJson(issue_id: string, { id, author, text, created_at }: LineComment): JsonObject {
  return { id, issue_id, ...(author === null ? {} : { author }), text, created_at: lineTime(created_at) }
}

export const byEdge = (a: LineEdge, b: LineEdge): number =>
  a.created_at - b.created_at || compareText(a.depends_on_id, b.depends_on_id) || compareText(a.type, b.type)
export const byComment = (a: LineComment, b: LineComment): number =>
  a.created_at - b.created_at || compareText(a.id, b.id)

/** As bd writes it: without a fraction where there is none. */
function lineTime(ms: number): string {
  const text = new Date(ms).toISOString()
  return ms % 1000 === 0 ? `${text.slice(0, -5)}Z` : text
}
