/**
 * Lists of mail: what a page is made of, and how large the whole is.
 *
 * A page is found in two steps, first which messages and how large they are, then they themselves: a thousand of the
 * largest would be 256 MiB.
 */
import { MAX_EXACT_TOTAL } from '../../contract/base/paging.ts'
import { MAIL_STATUSES, type MailStatus } from '../../contract/messaging/mail.ts'
import type { Database, SqlValue } from '../../kernel/database.ts'
import type { Mailbox } from '../../messaging/address.ts'
import { type MailRecord, parseMail } from './record.ts'
import { boxWord, countMails, SELECT_MAIL } from './store.ts'

export interface MailFilter {
  readonly mailbox?: Mailbox | undefined
  /** Any of them; absent: whatever it has. */
  readonly statuses?: readonly MailStatus[]
  /** Keys of senders, any of them. */
  readonly senders?: readonly string[]
  readonly thread?: string | undefined
  /** Of a thread: only what this one was sent, or has sent. */
  readonly party?: Mailbox | undefined
  /** Without copies. */
  readonly originals?: boolean
  readonly since?: number | undefined
  readonly rig?: string | undefined
  /** What its text has, for the index. */
  readonly match?: string | undefined
}

export interface MailPage {
  readonly items: readonly MailRecord[]
  /** `seq` of the last one that was looked at, where there may be more. */
  readonly next: number | undefined
}

export interface Total {
  readonly total: number
  readonly capped: boolean
}

/** Characters of an answer, more or less: bodies are nearly all of it. */
const PAGE_BYTES = 8 * 1024 * 1024
/** What one message takes beside its body. */
const ROW_BYTES = 2_048
/** Texts that are counted for the total of a search; the same look fills the first page. */
const MAX_COUNTED = 500
/** Further ones that one page looks at where filters take little of what the index finds; the rest is for the next pages. */
const MAX_FURTHER = 1_500
/** Of those that are found, as many are looked up at once. */
const SLICE = 128

type Pages = Pick<Database, 'get' | 'all' | 'rows'>

interface Sized {
  readonly seq: number
  readonly bytes: number
}

interface Sql {
  readonly where: string
  readonly values: readonly SqlValue[]
}

/** Newest first, before `cursor`. */
export function mailList(
  db: Pages,
  filter: MailFilter,
  cursor: number | undefined,
  limit: number,
): MailPage & { readonly total: Total } {
  const before = cursor ?? Number.MAX_SAFE_INTEGER
  if (filter.match === undefined)
    return { ...loaded(db, listed(db, filter, before, limit), limit, 'DESC'), total: mailTotal(db, filter) }
  const newest = textsOf(db, filter, Number.MAX_SAFE_INTEGER, MAX_COUNTED + 1)
  const first = cursor === undefined ? newest : textsOf(db, filter, cursor, MAX_COUNTED + 1)
  const found = searched(db, filter, { before, texts: first }, limit)
  return { ...loaded(db, found, limit, 'DESC'), total: searchTotal(db, filter, newest) }
}

/** Oldest first, after `cursor`. */
export function threadPage(db: Pages, filter: MailFilter, cursor: number | undefined, limit: number): MailPage {
  const { where, values } = sqlOf(filter)
  const found = db.all(
    `SELECT m.seq, octet_length(t.body) AS bytes FROM mail AS m CROSS JOIN mail_texts AS t ON t.text = m.text
     WHERE ${where} AND m.seq > ? ORDER BY m.seq LIMIT ?`,
    ...values,
    cursor ?? 0,
    limit + 1,
  )
  return loaded(db, { sized: found.map(sizedOf), reached: undefined }, limit, 'ASC')
}

/** Of what is not searched for: exact where the counters tell it, else up to a bound. */
export function mailTotal(db: Pages, filter: Omit<MailFilter, 'match'>): Total {
  const { mailbox, rig, statuses = MAIL_STATUSES, ...others } = filter
  if (Object.values(others).every((value) => value === undefined || value === false)) {
    const counts = countMails(db, mailbox, rig)
    return { total: statuses.reduce((sum, status) => sum + counts[status], 0), capped: false }
  }
  const { where, values } = sqlOf(filter)
  const row = db.get(
    `SELECT count(*) AS n FROM (SELECT 1 FROM mail AS m WHERE ${where} LIMIT ${MAX_EXACT_TOTAL + 1})`,
    ...values,
  )
  const n = Number(row?.n)
  return { total: Math.min(n, MAX_EXACT_TOTAL), capped: n > MAX_EXACT_TOTAL }
}

interface Found {
  readonly sized: readonly Sized[]
  /** Texts down to here were looked at, and there may be more. */
  readonly reached: number | undefined
}

function listed(db: Pages, filter: MailFilter, before: number, limit: number): Found {
  const { where, values } = sqlOf(filter)
  const rows = db.all(
    `SELECT m.seq, octet_length(t.body) AS bytes FROM mail AS m CROSS JOIN mail_texts AS t ON t.text = m.text
     WHERE ${where} AND m.seq < ? ORDER BY m.seq DESC LIMIT ?`,
    ...values,
    before,
    limit + 1,
  )
  return { sized: rows.map(sizedOf), reached: undefined }
}

interface Looked {
  readonly before: number
  readonly texts: readonly number[]
}

/**
 * Of what the index finds, filters may take little: then it is asked once more, for many. Not again and again for some, since
 * what begins with something is put together anew by each look.
 */
function searched(db: Pages, filter: MailFilter, { before, texts }: Looked, limit: number): Found {
  const first = messagesOf(db, filter, { before, texts }, limit + 1)
  const last = texts.at(-1)
  if (texts.length <= MAX_COUNTED || first.length > limit || last === undefined)
    return { sized: first, reached: undefined }
  const further = textsOf(db, filter, last, MAX_FURTHER)
  const more = messagesOf(db, filter, { before, texts: further }, limit + 1 - first.length)
  const sized = [...first, ...more]
  const isAll = further.length < MAX_FURTHER || sized.length > limit
  return { sized, reached: isAll ? undefined : further.at(-1) }
}

/** Texts that the index finds, newest first. */
const textsOf = (db: Pages, filter: MailFilter, before: number, limit: number): readonly number[] =>
  db
    .rows(
      'SELECT rowid FROM mail_search WHERE mail_search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?',
      matchIn(filter),
      before,
      limit,
    )
    .map(([text]) => Number(text))

/** The newest messages of these texts that the filter takes; most pages are full after few texts. */
function messagesOf(db: Pages, filter: MailFilter, { before, texts }: Looked, limit: number): readonly Sized[] {
  const { where, values } = sqlOf(filter)
  const found: Sized[] = []
  for (let at = 0; at < texts.length && found.length < limit; at += SLICE) {
    const rows = db.all(
      `SELECT m.seq, octet_length(t.body) AS bytes FROM json_each(?) AS f
       CROSS JOIN mail AS m INDEXED BY mail_text ON m.text = f.value CROSS JOIN mail_texts AS t ON t.text = m.text
       WHERE ${where} AND m.seq < ? ORDER BY m.seq DESC LIMIT ?`,
      JSON.stringify(texts.slice(at, at + SLICE)),
      ...values,
      before,
      limit - found.length,
    )
    found.push(...rows.map(sizedOf))
  }
  return found
}

function searchTotal(db: Pages, filter: MailFilter, texts: readonly number[]): Total {
  const { where, values } = sqlOf(filter)
  const row = db.get(
    `SELECT count(*) AS n FROM json_each(?) AS f CROSS JOIN mail AS m INDEXED BY mail_text ON m.text = f.value WHERE ${where}`,
    JSON.stringify(texts),
    ...values,
  )
  return { total: Number(row?.n), capped: texts.length > MAX_COUNTED }
}

/** A page of what was found: as many as asked for, and as fit into an answer. */
function loaded(db: Pages, { sized, reached }: Found, limit: number, order: 'ASC' | 'DESC'): MailPage {
  let bytes = 0
  let taken = 0
  for (const one of sized.slice(0, limit)) {
    bytes += one.bytes + ROW_BYTES
    if (bytes > PAGE_BYTES && taken > 0) break
    taken++
  }
  const page = sized.slice(0, taken).map(({ seq }) => seq)
  const rows = db.all(
    `${SELECT_MAIL} WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq ${order}`,
    JSON.stringify(page),
  )
  return { items: rows.map(parseMail), next: taken < sized.length ? page.at(-1) : reached }
}

const sizedOf = (row: { readonly [column: string]: unknown }): Sized => ({
  seq: Number(row.seq),
  bytes: Number(row.bytes),
})

function matchIn({ match = '', mailbox }: MailFilter): string {
  const words = `{subject "from" body} : (${match})`
  return mailbox === undefined ? words : `boxes : "${boxWord(mailbox)}" AND ${words}`
}

function sqlOf({ mailbox, statuses, senders, thread, party, originals, since, rig }: MailFilter): Sql {
  const parts: string[] = []
  const values: SqlValue[] = []
  const add = (sql: string, ...of: readonly SqlValue[]) => {
    parts.push(sql)
    values.push(...of)
  }
  if (mailbox !== undefined) add('m.mailbox = ?', mailbox)
  if (statuses !== undefined) add(statusSql(statuses))
  // Of several, the rows would have to be sorted.
  if (senders?.length === 1) add('m.sender = ?', ...senders)
  else if (senders !== undefined) add(`m.sender IN (${senders.map(() => '?').join(', ')})`, ...senders)
  if (thread !== undefined) add('m.thread_id = ?', thread)
  if (party !== undefined) add('(m.mailbox = ? OR (m.sender = ? AND m.copy_of IS NULL))', party, party)
  if (originals === true) add('m.copy_of IS NULL')
  if (rig !== undefined) add('m.rig = ?', rig)
  // Times grow with numbers.
  if (since !== undefined)
    add('m.seq >= coalesce((SELECT seq FROM mail WHERE created_at >= ? ORDER BY created_at, seq LIMIT 1), 9e15)', since)
  return { where: parts.length === 0 ? 'TRUE' : parts.join(' AND '), values }
}

/** In words that the partial indexes know. */
function statusSql(statuses: readonly MailStatus[]): string {
  if (statuses.length === 1) return `m.status = '${statuses[0] ?? ''}'`
  return statuses.includes('archived') ? 'TRUE' : "m.status <> 'archived'"
}
