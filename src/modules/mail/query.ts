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
/** Texts that the index finds, and that are looked at for one page; the rest is for the next pages. */
const MAX_EXAMINED = 2_000
const CHUNK = 256
/** Texts that are counted for the total of a search. */
const MAX_COUNTED = 500

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
export function mailPage(db: Pages, filter: MailFilter, cursor: number | undefined, limit: number): MailPage {
  const before = cursor ?? Number.MAX_SAFE_INTEGER
  const found = filter.match === undefined ? listed(db, filter, before, limit) : searched(db, filter, before, limit)
  return loaded(db, found, limit, 'DESC')
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

/** Exact where the counters tell it, else up to a bound. */
export function mailTotal(db: Pages, filter: MailFilter): Total {
  const { mailbox, rig, statuses = MAIL_STATUSES, match, ...others } = filter
  if (match !== undefined) return searchTotal(db, filter, match)
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

/** Asks the index for some texts after the others until the page is full: of what it finds, filters may take little. */
function searched(db: Pages, filter: MailFilter, before: number, limit: number): Found {
  const { where, values } = sqlOf(filter)
  const sized: Sized[] = []
  let from = before
  for (let examined = 0; examined < MAX_EXAMINED; examined += CHUNK) {
    const texts = db
      .rows(
        'SELECT rowid FROM mail_search WHERE mail_search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?',
        matchIn(filter),
        from,
        CHUNK,
      )
      .map(([text]) => Number(text))
    const rows = db.all(
      `SELECT m.seq, octet_length(t.body) AS bytes FROM json_each(?) AS f
       CROSS JOIN mail AS m INDEXED BY mail_text ON m.text = f.value CROSS JOIN mail_texts AS t ON t.text = m.text
       WHERE ${where} AND m.seq < ? ORDER BY m.seq DESC LIMIT ?`,
      JSON.stringify(texts),
      ...values,
      before,
      limit + 1 - sized.length,
    )
    sized.push(...rows.map(sizedOf))
    if (texts.length < CHUNK || sized.length > limit) return { sized, reached: undefined }
    from = texts.at(-1) ?? 0
  }
  return { sized, reached: from }
}

function searchTotal(db: Pages, filter: MailFilter, match: string): Total {
  const { where, values } = sqlOf(filter)
  const row = db.get(
    `SELECT count(DISTINCT f.text) AS texts, count(m.seq) AS n FROM (
       SELECT rowid AS text FROM mail_search WHERE mail_search MATCH ? ORDER BY rowid DESC LIMIT ${MAX_COUNTED + 1}
     ) AS f LEFT JOIN mail AS m INDEXED BY mail_text ON m.text = f.text AND ${where}`,
    matchIn({ ...filter, match }),
    ...values,
  )
  return { total: Number(row?.n), capped: Number(row?.texts) > MAX_COUNTED }
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
