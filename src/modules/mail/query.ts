/**
 * Lists of mail: what a page is made of, and how large the whole is.
 *
 * A page is found in two steps, first which messages, then they themselves, a few at a time: a thousand of the largest
 * would be 256 MiB, and most of them would not fit into the answer.
 */
import { MAX_EXACT_TOTAL } from '../../contract/base/paging.ts'
import { MAIL_STATUSES, type MailStatus, type Message } from '../../contract/messaging/mail.ts'
import type { Database, Row, SqlValue } from '../../kernel/database.ts'
import type { Page, Paged } from '../../kernel/page.ts'
import type { Mailbox } from '../../messaging/address.ts'
import { type MailRecord, parseMail, wireMessage } from './record.ts'
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

type MailPage = Page<readonly ['number']>

export interface Total {
  readonly total: number
  readonly capped: boolean
}

/** Messages that are read at once, until the page is full. */
const LOADED_AT_ONCE = 32
/** Texts that are counted for the total of a search; the same look fills the first page. */
const MAX_COUNTED = 500
/** Further ones that one page looks at where filters take little of what the index finds; the rest is for the next pages. */
const MAX_FURTHER = 1_500
/** Of those that are found, as many are looked up at once. */
const SLICE = 128

type Pages = Pick<Database, 'get' | 'all' | 'rows'>

interface Sql {
  readonly where: string
  readonly values: readonly SqlValue[]
}

/** Newest first. */
export function mailList(db: Pages, filter: MailFilter, page: MailPage): Paged<Message> & { readonly total: Total } {
  const [before = Number.MAX_SAFE_INTEGER] = page.after ?? []
  if (filter.match === undefined)
    return { ...shown(db, page, listed(db, filter, before, page.ask), 'DESC'), total: mailTotal(db, filter) }
  const newest = textsOf(db, filter, Number.MAX_SAFE_INTEGER, MAX_COUNTED + 1)
  const texts = page.after === undefined ? newest : textsOf(db, filter, before, MAX_COUNTED + 1)
  const { found, reached } = searched(db, filter, { before, texts }, page.ask)
  const total = searchTotal(db, filter, newest)
  return { ...page.behind(reached), ...shown(db, page, found, 'DESC'), total }
}

/** Oldest first. */
export function threadPage(db: Pages, filter: MailFilter, page: MailPage): Paged<Message> {
  const { where, values } = sqlOf(filter)
  const [after = 0] = page.after ?? []
  const sql = `SELECT m.seq FROM mail AS m WHERE ${where} AND m.seq > ? ORDER BY m.seq LIMIT ?`
  return shown(db, page, seqsOf(db.all(sql, ...values, after, page.ask)), 'ASC')
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

function listed(db: Pages, filter: MailFilter, before: number, limit: number): readonly number[] {
  const { where, values } = sqlOf(filter)
  const sql = `SELECT m.seq FROM mail AS m WHERE ${where} AND m.seq < ? ORDER BY m.seq DESC LIMIT ?`
  return seqsOf(db.all(sql, ...values, before, limit))
}

interface Looked {
  readonly before: number
  readonly texts: readonly number[]
}

/**
 * Of what the index finds, filters may take little: then it is asked once more, for many. Not again and again for some, since
 * what begins with something is put together anew by each look.
 */
function searched(
  db: Pages,
  filter: MailFilter,
  { before, texts }: Looked,
  limit: number,
): { readonly found: readonly number[]; readonly reached: readonly [seq: number] | undefined } {
  const first = messagesOf(db, filter, { before, texts }, limit)
  const last = texts.at(-1)
  if (texts.length <= MAX_COUNTED || first.length >= limit || last === undefined)
    return { found: first, reached: undefined }
  const further = textsOf(db, filter, last, MAX_FURTHER)
  const found = [...first, ...messagesOf(db, filter, { before, texts: further }, limit - first.length)]
  const end = further.at(-1)
  // Texts down to there were looked at, and there may be more.
  const isCut = further.length >= MAX_FURTHER && found.length < limit && end !== undefined
  return { found, reached: isCut ? [end] : undefined }
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
function messagesOf(db: Pages, filter: MailFilter, { before, texts }: Looked, limit: number): readonly number[] {
  const { where, values } = sqlOf(filter)
  const found: number[] = []
  for (let at = 0; at < texts.length && found.length < limit; at += SLICE) {
    const rows = db.all(
      `SELECT m.seq FROM json_each(?) AS f CROSS JOIN mail AS m INDEXED BY mail_text ON m.text = f.value
       WHERE ${where} AND m.seq < ? ORDER BY m.seq DESC LIMIT ?`,
      JSON.stringify(texts.slice(at, at + SLICE)),
      ...values,
      before,
      limit - found.length,
    )
    found.push(...seqsOf(rows))
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

const shown = (db: Pages, page: MailPage, found: readonly number[], order: 'ASC' | 'DESC'): Paged<Message> =>
  page.of(loaded(db, found, order), ({ seq }) => [seq], wireMessage)

function* loaded(db: Pages, found: readonly number[], order: 'ASC' | 'DESC'): Generator<MailRecord, void> {
  const sql = `${SELECT_MAIL} WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq ${order}`
  for (let from = 0; from < found.length; from += LOADED_AT_ONCE)
    yield* db.all(sql, JSON.stringify(found.slice(from, from + LOADED_AT_ONCE))).map(parseMail)
}

const seqsOf = (rows: readonly Row[]): readonly number[] => rows.map(({ seq }) => Number(seq))

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
