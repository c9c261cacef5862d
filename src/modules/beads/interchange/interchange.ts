/**
 * A bead as a line of JSON in the shape of the bd tool, and back (sheet 03 §11, decision 48). Pure.
 *
 * X1  A bead that came from a line and did not change here goes out as that line: same keys, same values, same order of
 *     lists; only the order of keys and the output-only counts are ours.
 * X2  What changed here goes out as it is here; the rest of the line is still as it came.
 *
 * Both come from one idea: with what a line means for us we keep the *differences* between the line and what we would
 * write (`Leftover`): the value that came in, and ours at that time. As long as ours is the same, theirs goes out.
 */
import { cut } from '../../../contract/base/text.ts'
import { MAX_PERSON, MAX_TITLE } from '../../../contract/base/work.ts'
import { type BeadStatus, DEFAULT_ISSUE_TYPE, MAX_LABEL, PARENT_CHILD } from '../../../contract/beads.ts'
import { isTooDeep, TOO_DEEP } from '../../../kernel/json.ts'
import { MIRRORED_COLUMNS, parseMirrored } from '../store/columns.ts'
import { isList, isObject, type Json, type JsonObject, own, parseExact } from './exact-json.ts'
import { compact, differences, type Leftover, leftoverOf } from './leftover.ts'
import {
  byComment,
  byEdge,
  commentJson,
  edgeJson,
  isMirror,
  type LineBead,
  type LineColumns,
  type LineComment,
  type LineEdge,
  MIRRORED_KEYS,
  ownLine,
  UNSET_PRIORITY,
} from './line.ts'
import { flagAt, LineFault, numberOf, objectsAt, quote, textAt, textsAt, timeAt, wellFormed } from './line-values.ts'

/** A line as JSON, before anything is made of it. */
export interface ReadLine {
  readonly id: string
  readonly object: JsonObject
  /** Why it is left out, where it is no bead. */
  readonly skip?: string
}

/** Not kept: whoever writes a line counts again. */
const OUTPUT_ONLY = ['dependency_count', 'dependent_count', 'comment_count', 'is_blocked'] as const
const OLDER_NAMES = { issue_type: 'type', parent: 'parent_id', from: 'sender' } as const
const COLUMN_BY_KEY: ReadonlyMap<string, (typeof MIRRORED_COLUMNS)[number]> = new Map(
  MIRRORED_COLUMNS.map((column) => [`svc.${column}`, column]),
)
const STATUSES: ReadonlyMap<string, BeadStatus> = new Map([
  ['open', 'open'],
  ['in_progress', 'in_progress'],
  ['closed', 'closed'],
])
/** An edge to something outside of all stores informs; it can never be done, so it must not block. */
const EXTERNAL = 'external:'
const EXTERNAL_TYPE = 'relates-to'
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const MAX_ID = 256
const MAX_TYPE = 64

/** Parses a line; throws a LineFault. */
export function readLine(text: string): ReadLine {
  const object = parseObject(text)
  const type = own(object, '_type')
  const status = own(object, 'status')
  if (type !== undefined && type !== null && type !== 'issue') {
    return { id: '', object, skip: `lines of type ${quote(type)} are no beads` }
  }
  const id = own(object, 'id')
  if (typeof id !== 'string' || !ID.test(id) || id.length > MAX_ID) throw new LineFault(`id: ${quote(id)} is no id`)
  return status === 'tombstone' ? { id, object, skip: 'it was deleted (tombstone)' } : { id, object }
}

function parseObject(text: string): JsonObject {
  let value: Json
  try {
    value = parseExact(text)
  } catch (error) {
    throw new LineFault(`not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (!isObject(value)) throw new LineFault('not a JSON object')
  if (isTooDeep(value)) throw new LineFault(TOO_DEEP)
  return value
}

/** The bead of a line; `createdAt` is asked where it does not say when it was created. Throws a LineFault. */
export function toBead({ id, object }: ReadLine, createdAt: () => number): LineBead {
  const { named, names } = withNames(object)
  const created_at = timeAt(named, 'created_at') ?? createdAt()
  const metadata = readMetadata(named)
  const edges = readEdges(id, named, created_at)
  const bare: LineBead = {
    id,
    columns: readColumns(named, created_at, metadata, edges),
    labels: readLabels(named),
    metadata: { ...metadata.texts, ...mirroredTexts(named) },
    edges,
    comments: readComments(id, named, created_at),
  }
  const leftover = compact({
    keys: differences(named, ownLine(bare, metadata.leftover), ['parent']),
    metadata: metadata.leftover.metadata,
    names,
    gc: metadata.leftover.gc,
  })
  return { ...bare, columns: { ...bare.columns, interchange: leftover } }
}

/** The line under the names that we use, without what is only output. */
function withNames(object: JsonObject) {
  const names: Record<string, string> = {}
  const older = new Map<string, string>()
  for (const [ours, theirs] of Object.entries(OLDER_NAMES)) {
    if (Object.hasOwn(object, ours) || !Object.hasOwn(object, theirs)) continue
    names[ours] = theirs
    older.set(theirs, ours)
  }
  const entries = Object.entries(object).filter(([key]) => !OUTPUT_ONLY.some((one) => one === key))
  const named = Object.fromEntries(entries.map(([key, value]) => [older.get(key) ?? key, value]))
  return { named: readPriority(named) === null ? named : withoutMark(named), names }
}

function readColumns(
  line: JsonObject,
  created_at: number,
  { columns }: ReadMetadata,
  edges: readonly LineEdge[],
): LineColumns {
  const status = readStatus(line)
  const updated_at = timeAt(line, 'updated_at') ?? created_at
  return {
    ...parseMirrored(columns),
    title: readTitle(line),
    status,
    issue_type: textAt(line, 'issue_type', MAX_TYPE) || DEFAULT_ISSUE_TYPE,
    priority: readPriority(line),
    created_at,
    updated_at,
    closed_at: status === 'closed' ? (timeAt(line, 'closed_at') ?? updated_at) : null,
    close_reason: status === 'closed' ? (textAt(line, 'close_reason') ?? null) : null,
    assignee: textAt(line, 'assignee', MAX_PERSON) || null,
    from: textAt(line, 'from', MAX_PERSON) || null,
    parent: edges.find(({ type }) => type === PARENT_CHILD)?.depends_on_id ?? null,
    ref: textAt(line, 'ref', MAX_ID) || null,
    description: textAt(line, 'description') || null,
    ephemeral: flagAt(line, 'ephemeral'),
    no_history: flagAt(line, 'no_history'),
    defer_until: timeAt(line, 'defer_until') ?? null,
    needs: readNeeds(line),
    interchange: null,
  }
}

function readStatus(line: JsonObject): BeadStatus {
  const status = textAt(line, 'status') ?? ''
  return STATUSES.get(status) ?? 'open'
}

function readTitle(line: JsonObject): string {
  const title = textAt(line, 'title') ?? ''
  if (title === '') throw new LineFault('title: is required')
  if (title.length > MAX_TITLE && [...title].length > MAX_TITLE)
    throw new LineFault(`title: is longer than ${MAX_TITLE} characters`)
  return title
}

function readPriority(line: JsonObject): number | null {
  const value = numberOf(own(line, 'priority'))
  if (value == null || (value === UNSET_PRIORITY.written && isMarkedUnset(line))) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 4) return value
  throw new LineFault('priority: must be a whole number from 0 to 4')
}

/** Metadata of another form is refused where it is read. */
function isMarkedUnset(line: JsonObject): boolean {
  const metadata = own(line, 'metadata')
  return isObject(metadata) && own(metadata, UNSET_PRIORITY.key) === UNSET_PRIORITY.mark
}

/** The line of a bead that has no priority here, with the mark of that, where it has the one that is written for it. */
export function markedUnset({ object, ...read }: ReadLine): ReadLine {
  const metadata = own(object, 'metadata') ?? {}
  if (numberOf(own(object, 'priority')) !== UNSET_PRIORITY.written || !isObject(metadata)) return { object, ...read }
  return { ...read, object: { ...object, metadata: { ...metadata, [UNSET_PRIORITY.key]: UNSET_PRIORITY.mark } } }
}

/** The line without the mark that it has no priority, where it was given one since. */
function withoutMark(line: JsonObject): JsonObject {
  const { metadata, ...others } = line
  if (!isMarkedUnset(line) || !isObject(metadata)) return line
  const { [UNSET_PRIORITY.key]: _mark, ...rest } = metadata
  return Object.keys(rest).length === 0 ? others : { ...others, metadata: rest }
}

function readLabels(line: JsonObject): readonly string[] {
  const labels = textsAt(line, 'labels').filter((label) => label !== '')
  const long = labels.find((label) => label.length > MAX_LABEL)
  if (long !== undefined) throw new LineFault(`labels: one is longer than ${MAX_LABEL} characters`)
  return [...new Set(labels)].sort()
}

function readNeeds(line: JsonObject): readonly string[] | null {
  const needs = textsAt(line, 'needs')
  return needs.length === 0 ? null : needs
}

interface ReadMetadata {
  readonly columns: ReadonlyMap<string, string>
  readonly texts: Readonly<Record<string, string>>
  readonly leftover: Leftover
}

function readMetadata(line: JsonObject): ReadMetadata {
  const given = own(line, 'metadata') ?? {}
  if (!isObject(given)) throw new LineFault('metadata: must be an object')
  const gc: string[] = []
  const columns = new Map<string, string>()
  const texts: [string, string][] = []
  const named: [string, Json][] = []
  for (const [key, value] of Object.entries(given)) {
    const alias = key.startsWith('gc.') ? `svc.${key.slice(3)}` : undefined
    const renamed = alias !== undefined && !Object.hasOwn(given, alias)
    const name = renamed ? alias : key
    if (renamed) gc.push(alias)
    named.push([name, value])
    const column = COLUMN_BY_KEY.get(name)
    const text = name === UNSET_PRIORITY.key && value === UNSET_PRIORITY.mark ? undefined : metadataText(value)
    if (column !== undefined) {
      if (text !== '' && text !== undefined && fits(column, text)) columns.set(column, text)
    } else if (text !== undefined && !isMirror(name)) {
      texts.push([wellFormed(name), text])
    }
  }
  const read = { columns, texts: Object.fromEntries(texts) }
  const unset: readonly [string, Json][] =
    readPriority(line) === null ? [[UNSET_PRIORITY.key, UNSET_PRIORITY.mark]] : []
  const ours = Object.fromEntries<Json>([
    ...texts,
    ...unset,
    ...[...columns].map(([column, text]): [string, Json] => [`svc.${column}`, text]),
  ])
  return { ...read, leftover: { metadata: differences(Object.fromEntries(named), ours), gc: gc.sort() } }
}

const fits = (column: string, text: string): boolean => column !== 'attempt' || /^(?:0|[1-9]\d{0,8})$/.test(text)

/** Metadata is text here; what is not, is its JSON. Null is no value. */
function metadataText(value: Json): string | undefined {
  if (value === null) return undefined
  return typeof value === 'string' ? wellFormed(value) : JSON.stringify(value)
}

function mirroredTexts(line: JsonObject): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const key of MIRRORED_KEYS) {
    const text = metadataText(own(line, key) ?? null)
    if (text !== undefined) texts[`bd.${key}`] = text
  }
  return texts
}

function readEdges(id: string, line: JsonObject, createdAt: number): readonly LineEdge[] {
  const given = objectsAt(line, 'dependencies')
  const edges: LineEdge[] = []
  for (const [n, element] of given.entries()) {
    const edge = readEdge(element, `dependencies[${n}]`, createdAt)
    if (!edges.some((other) => excludes(other, edge))) edges.push(kept(edge, element, edgeJson(id, edge)))
  }
  const parent = textAt(line, 'parent', MAX_ID) || undefined
  if (parent !== undefined && !edges.some(({ type }) => type === PARENT_CHILD)) {
    const edge = { depends_on_id: parent, type: PARENT_CHILD, created_at: createdAt, created_by: null, metadata: null }
    edges.push({ ...edge, interchange: null })
  }
  return inGivenOrder(edges, byEdge)
}

/** One parent, and one other edge between two beads. */
function excludes(a: LineEdge, b: LineEdge): boolean {
  if (a.type === PARENT_CHILD || b.type === PARENT_CHILD) return a.type === b.type
  return a.depends_on_id === b.depends_on_id
}

function readEdge(element: JsonObject, at: string, createdAt: number): LineEdge {
  // The second form is what `bd show` writes: the other bead, with the type of the edge.
  const depends_on_id = textAt(element, 'depends_on_id', MAX_ID, at) ?? textAt(element, 'id', MAX_ID, at) ?? ''
  if (depends_on_id === '') throw new LineFault(`${at}.depends_on_id: is required`)
  const type = (textAt(element, 'type', MAX_TYPE, at) ?? textAt(element, 'dependency_type', MAX_TYPE, at)) || 'blocks'
  const metadata = own(element, 'metadata')
  return {
    depends_on_id,
    type: depends_on_id.startsWith(EXTERNAL) ? EXTERNAL_TYPE : type,
    created_at: timeAt(element, 'created_at', at) ?? createdAt,
    created_by: textAt(element, 'created_by', undefined, at) ?? null,
    metadata: typeof metadata === 'string' ? wellFormed(metadata) : null,
    interchange: null,
  }
}

function readComments(id: string, line: JsonObject, createdAt: number): readonly LineComment[] {
  const comments = new Map<string, LineComment>()
  for (const [n, element] of objectsAt(line, 'comments').entries()) {
    const at = `comments[${n}]`
    const text = textAt(element, 'text', undefined, at)
    if (text === undefined) throw new LineFault(`${at}.text: is required`)
    const comment: LineComment = {
      id: commentId(id, own(element, 'id'), n),
      author: textAt(element, 'author', undefined, at) ?? null,
      text,
      created_at: timeAt(element, 'created_at', at) ?? createdAt,
      interchange: null,
    }
    if (!comments.has(comment.id)) comments.set(comment.id, kept(comment, element, commentJson(id, comment)))
  }
  return inGivenOrder([...comments.values()], byComment)
}

/** Comments have ids of their own in one city; counted ones are only unique within their bead. */
function commentId(bead: string, given: Json | undefined, n: number): string {
  if (typeof given === 'string' && given.length >= 16 && given.length <= MAX_ID) return wellFormed(given)
  const part =
    given === undefined || given === null ? `#${n}` : typeof given === 'string' ? given : JSON.stringify(given)
  return `${bead}:${cut(wellFormed(part), MAX_ID)}`
}

/** The comment under another id here; it goes out under the one that it came with. */
export function withCommentId(comment: LineComment, id: string): LineComment {
  const leftover = leftoverOf(comment.interchange)
  const keys = { ...leftover.keys, id: { in: leftover.keys?.id?.in ?? comment.id, ours: id } }
  return { ...comment, id, interchange: compact({ ...leftover, keys }) }
}

/** The element with what it says beyond what we would write. */
function kept<T extends { readonly interchange: string | null }>(element: T, given: JsonObject, ours: JsonObject): T {
  return { ...element, interchange: compact({ keys: differences(given, ours) }) }
}

/** Remembers positions where the order of the list is not ours. */
export function inGivenOrder<T extends { readonly interchange: string | null }>(
  elements: readonly T[],
  compare: (a: T, b: T) => number,
): readonly T[] {
  const sorted = elements.every((element, index) => {
    const before = elements[index - 1]
    return before === undefined || compare(before, element) <= 0
  })
  if (sorted) return elements
  return elements.map((element, n) => ({ ...element, interchange: compact({ ...leftoverOf(element.interchange), n }) }))
}

// ---- other ids ------------------------------------------------------------------------------------------------------

/** The line with other ids, wherever it names beads. */
export function withIds({ id, object, ...rest }: ReadLine, rename: (id: string) => string): ReadLine {
  const renamed = (value: Json | undefined): Json | undefined => (typeof value === 'string' ? rename(value) : value)
  const replaced = (part: JsonObject, keys: readonly string[]): JsonObject =>
    Object.fromEntries(
      Object.entries(part).map(([key, value]) => [key, keys.includes(key) ? (renamed(value) ?? value) : value]),
    )
  const inList = (value: Json, keys: readonly string[]): Json =>
    isList(value) ? value.map((part) => (isObject(part) ? replaced(part, keys) : part)) : value
  const need = (value: Json): Json => {
    if (typeof value !== 'string') return value
    const colon = value.indexOf(':') + 1
    return value.slice(0, colon) + rename(value.slice(colon))
  }
  const entries = Object.entries(object).map(([key, value]): [string, Json] => {
    if (key === 'id' || key === 'parent' || key === 'parent_id') return [key, renamed(value) ?? value]
    if (key === 'dependencies') return [key, inList(value, ['issue_id', 'depends_on_id', 'id'])]
    if (key === 'comments') return [key, ownComments(inList(value, ['issue_id']), id, rename(id))]
    if (key === 'needs' && isList(value)) return [key, value.map(need)]
    if (key === 'metadata' && isObject(value)) return [key, replaced(value, ['svc.root_bead_id', 'gc.root_bead_id'])]
    return [key, value]
  })
  return { id: rename(id), object: Object.fromEntries(entries), ...rest }
}

/** Comments of a copy must not meet those of the bead that it was copied from. */
function ownComments(comments: Json, original: string, bead: string): Json {
  if (bead === original || !isList(comments)) return comments
  return comments.map((comment) =>
    isObject(comment) && typeof comment.id === 'string' ? { ...comment, id: `${bead}:${comment.id}` } : comment,
  )
}
