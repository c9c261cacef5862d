/** Lists of transcripts and of their entries, page by page. */
import { type ListOrder, MAX_EXACT_TOTAL } from '../../../contract/base/paging.ts'
import type { TranscriptEntry } from '../../../contract/messaging/entries.ts'
import type { Database, SqlValue } from '../../../kernel/database.ts'
import { Page, type Paged, type PageWanted } from '../../../kernel/page.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { searchExpression } from '../../../messaging/search.ts'
import { type EntryRow, entryOf, entryView, type TranscriptRow, transcriptOf } from './rows.ts'

/** Matches that are looked at one by one before they are only counted. */
const LOOKED_AT = 1_001

interface Listed<Item> extends Paged<Item> {
  readonly total: number
}

/** Columns of a conversation that a list is filtered by. */
export interface ConversationWanted {
  readonly transcript_id?: string | undefined
  readonly scope_id?: string | undefined
  readonly provider?: string | undefined
  readonly account_id?: string | undefined
  readonly conversation_id?: string | undefined
  readonly parent_conversation_id?: string | undefined
  readonly kind?: string | undefined
}

export interface TranscriptsWanted extends ConversationWanted, PageWanted {
  /** Only those that one of them reads. */
  readonly readers?: readonly Mailbox[] | undefined
}

interface Where {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

export function conversationWhere(wanted: ConversationWanted): readonly Where[] {
  const { transcript_id: id, provider, kind, ...others } = wanted
  const columns = {
    id,
    provider: provider?.trim().toLowerCase(),
    kind: kind?.trim().toLowerCase(),
    scope_id: others.scope_id?.trim(),
    account_id: others.account_id?.trim(),
    conversation_id: others.conversation_id?.trim(),
    parent_conversation_id: others.parent_conversation_id?.trim(),
  }
  return Object.entries(columns).flatMap(([column, value]) =>
    value === undefined ? [] : [{ sql: `t.${column} = ?`, values: [value] }],
  )
}

/** Newest entry first. */
export function listTranscripts<Item>(
  db: Database,
  wanted: TranscriptsWanted,
  wire: (row: TranscriptRow) => Item,
): Listed<Item> {
  const { limit, cursor, readers, ...conversation } = wanted
  const where = [...conversationWhere(conversation), ...(readers === undefined ? [] : [readBy(readers)])]
  const kind = `transcripts ${JSON.stringify(readers ?? '')} ${JSON.stringify(conversation)}`
  const page = new Page(kind, ['number', 'string'], { limit, cursor })
  const behind = page.after === undefined ? [] : [{ sql: '(t.touched_at, t.id) < (?, ?)', values: page.after }]
  const rows = select(db, '*', [...where, ...behind], 'ORDER BY t.touched_at DESC, t.id DESC LIMIT ?', page.ask)
  const shown = page.of(
    rows,
    (row) => [Number(row.touched_at), String(row.id)],
    (row) => wire(transcriptOf(row)),
  )
  return { ...shown, total: Number(select(db, 'count(*) AS total', where, '')[0]?.total) }
}

const readBy = (readers: readonly Mailbox[]): Where => ({
  sql: `t.id IN (SELECT transcript_id FROM transcript_members WHERE mailbox IN (${readers.map(() => '?').join(', ')}))`,
  values: readers,
})

function select(db: Database, what: string, where: readonly Where[], end: string, ...values: readonly SqlValue[]) {
  const sql = where.length === 0 ? '' : `WHERE ${where.map((one) => one.sql).join(' AND ')}`
  return db.all(`SELECT ${what} FROM transcripts AS t ${sql} ${end}`, ...where.flatMap((one) => one.values), ...values)
}

export interface EntriesWanted extends PageWanted {
  readonly after?: number | undefined
  readonly before?: number | undefined
  readonly order?: ListOrder | undefined
  /** Words that somebody typed. */
  readonly q?: string | undefined
}

/** What was said in a transcript between two sequences, or what of it has these words. */
export function listEntries(
  db: Database,
  transcript: Pick<TranscriptRow, 'id' | 'earliest' | 'next'>,
  wanted: EntriesWanted,
): Listed<TranscriptEntry> & { readonly total_capped?: true } {
  const { id, earliest, next } = transcript
  const { order = 'asc', q } = wanted
  const kind = `entries ${id} ${order} ${wanted.after ?? 0} ${wanted.before ?? ''} ${q ?? ''}`
  const page = new Page(kind, ['number'], wanted)
  const [reached] = page.after ?? []
  // What is before the earliest is gone, whether or not its rows are.
  const range = {
    id,
    after: Math.max(wanted.after ?? 0, earliest - 1),
    before: Math.min(wanted.before ?? next, next),
    order,
  }
  const expression = q === undefined ? undefined : searchExpression(q, { db, table: 'transcript_terms' })
  const found =
    q === undefined
      ? { rows: entriesIn(db, rest(range, reached), page.ask), total: Math.max(0, range.before - range.after - 1) }
      : expression === undefined
        ? { rows: [], total: 0 }
        : searched(db, range, { expression, reached, most: page.ask })
  const capped = q !== undefined && found.total > MAX_EXACT_TOTAL
  return {
    ...page.of(found.rows, ({ sequence }) => [sequence], entryView),
    total: capped ? MAX_EXACT_TOTAL : found.total,
    ...(capped ? { total_capped: true } : {}),
  }
}

interface EntryRange {
  readonly id: string
  readonly after: number
  readonly before: number
  readonly order: ListOrder
}

/** What follows an entry in a range, in its order. */
function rest(range: EntryRange, reached: number | undefined): EntryRange {
  if (reached === undefined) return range
  return range.order === 'asc'
    ? { ...range, after: Math.max(range.after, reached) }
    : { ...range, before: Math.min(range.before, reached) }
}

function entriesIn(db: Database, { id, after, before, order }: EntryRange, limit: number): readonly EntryRow[] {
  const sql = `SELECT * FROM transcript_entries WHERE transcript_id = ? AND sequence > ? AND sequence < ?
    ORDER BY sequence ${order} LIMIT ?`
  return db.all(sql, id, after, before, limit).map(entryOf)
}

interface Search {
  readonly expression: string
  readonly reached: number | undefined
  readonly most: number
}

/**
 * The look that finds the first page counts too, as far as it goes; where there is more, the rest is counted inside the store:
 * handing over each row would take most of the time. What begins with something is put together anew by each look: one goes
 * all the way.
 */
function searched(db: Database, range: EntryRange, { expression, reached, most }: Search) {
  const found = matching(db, range, expression)
  const far = expression.includes('"*') ? MAX_EXACT_TOTAL + 1 : Math.max(most, LOOKED_AT)
  const seen = idsOf(db, found, far)
  const total = seen.length < far || far > MAX_EXACT_TOTAL ? seen.length : countOf(db, found)
  const ids =
    reached === undefined ? seen.slice(0, most) : idsOf(db, matching(db, rest(range, reached), expression), most)
  const rows = db.all(
    'SELECT e.* FROM json_each(?) AS wanted JOIN transcript_entries AS e ON e.id = wanted.value ORDER BY wanted.key',
    JSON.stringify(ids),
  )
  return { rows: rows.map(entryOf), total }
}

const idsOf = (db: Database, found: Where | undefined, limit: number): readonly number[] =>
  found === undefined ? [] : db.rows(`${found.sql} LIMIT ?`, ...found.values, limit).map(([row]) => Number(row))

function countOf(db: Database, found: Where | undefined): number {
  if (found === undefined) return 0
  const row = db.get(`SELECT count(*) AS n FROM (${found.sql} LIMIT ${MAX_EXACT_TOTAL + 1})`, ...found.values)
  return Number(row?.n)
}

/** Rows of a transcript ascend with their sequence: what is between two sequences is between two rows. */
function matching(db: Database, range: EntryRange, expression: string): Where | undefined {
  const { id, after, before, order } = range
  const edge = (end: ListOrder) =>
    db.get(
      `SELECT id FROM transcript_entries WHERE transcript_id = ? AND sequence > ? AND sequence < ?
       ORDER BY sequence ${end} LIMIT 1`,
      id,
      after,
      before,
    )?.id
  const [first, last] = [edge('asc'), edge('desc')]
  if (first === undefined || last === undefined) return undefined
  const wanted = `tag : "${id.slice('cv-'.length)}" AND text : (${expression})`
  return {
    sql: `SELECT rowid FROM transcript_search WHERE transcript_search MATCH ? AND rowid >= ? AND rowid <= ?
      ORDER BY rowid ${order}`,
    values: [wanted, Number(first), Number(last)],
  }
}
