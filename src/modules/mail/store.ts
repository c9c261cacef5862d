/**
 * Mail in the city's store.
 *
 * M1  A message and what finds it (index, counts) are one write; so is its event.
 * M2  What is deleted is in no table any more but for its id; a text goes with the last message that has it.
 */
import { createHash } from 'node:crypto'
import { cut } from '../../contract/base/text.ts'
import type { Database, Row, SqlValue, Tx } from '../../kernel/database.ts'
import { type Mailbox, parseMailbox } from '../../messaging/address.ts'
import { spaced } from '../../messaging/search.ts'
import { type MailRecord, parseMail } from './record.ts'

export type Reader = Pick<Database, 'get' | 'all'> | Tx

/** Everything of a message; its text is in another table. */
export const SELECT_MAIL = 'SELECT m.*, t.body FROM mail AS m CROSS JOIN mail_texts AS t ON t.text = m.text'

/** A word that stands for a mailbox in the index; what is found by it is looked at all the same. */
export const boxWord = (mailbox: Mailbox): string => `box${cut(createHash('sha256').update(mailbox).digest('hex'), 20)}`

/** What a text is indexed by. */
interface Text {
  readonly boxes: string
  readonly subject: string
  readonly from: string
  readonly body: string
}

export type NewMail = Omit<MailRecord, 'seq' | 'text' | 'body' | 'status' | 'read' | 'read_at' | 'archived_at'>

/** All messages of one text, in their order; as they are then. */
export function insertMails(tx: Tx, drafts: readonly NewMail[], body: string): readonly MailRecord[] {
  const [first] = drafts
  if (first === undefined) return []
  const text = lastSeq(tx) + 1
  const records = drafts.map((draft, index): MailRecord => {
    const seq = text + index
    insertMail(tx, draft, seq, text)
    const state = { status: 'unread', read: false, read_at: undefined, archived_at: undefined } as const
    return { ...draft, ...state, body, seq, text }
  })
  const boxes = [...new Set(drafts.map(({ mailbox }) => boxWord(mailbox)))].join(' ')
  insertText(tx, text, { boxes, subject: first.subject, from: first.from, body })
  return records
}

/** The highest that a message has, or had: it is never used again. */
const lastSeq = (tx: Tx): number => Number(tx.get("SELECT seq FROM sqlite_sequence WHERE name = 'mail'")?.seq ?? 0)

function insertMail(tx: Tx, draft: NewMail, seq: number, text: number): void {
  const { cc, silent, ...plain } = draft
  const fields: Record<string, SqlValue | undefined> = {
    ...plain,
    seq,
    text,
    cc_json: JSON.stringify(cc),
    silent: silent ? 1 : 0,
    status: 'unread',
  }
  const names = Object.keys(fields)
  tx.run(
    `INSERT INTO mail (${names.map((name) => `"${name}"`).join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    ...Object.values(fields).map((value) => value ?? null),
  )
  tx.run(
    `INSERT INTO mail_counts (mailbox, rig, status, n) VALUES (?, ?, 'unread', 1) ON CONFLICT DO UPDATE SET n = n + 1`,
    draft.mailbox,
    draft.rig,
  )
}

function insertText(tx: Tx, text: number, { boxes, subject, from, body }: Text): void {
  tx.run(
    'INSERT INTO mail_texts (text, boxes, subject, "from", body) VALUES (?, ?, ?, ?, ?)',
    text,
    boxes,
    subject,
    from,
    body,
  )
  tx.run(
    'INSERT INTO mail_search (rowid, boxes, subject, "from", body) VALUES (?, ?, ?, ?, ?)',
    text,
    boxes,
    ...[subject, from, body].map(spaced),
  )
}

/** The index forgets only what it is told word for word. */
function removeText(tx: Tx, text: number): void {
  const row = tx.get('SELECT boxes, subject, "from", body FROM mail_texts WHERE text = ?', text)
  if (row === undefined) return
  tx.run(
    `INSERT INTO mail_search (mail_search, rowid, boxes, subject, "from", body) VALUES ('delete', ?, ?, ?, ?, ?)`,
    text,
    String(row.boxes),
    ...[row.subject, row.from, row.body].map((value) => spaced(String(value))),
  )
  tx.run('DELETE FROM mail_texts WHERE text = ?', text)
}

const parsed = (row: Row | undefined): MailRecord | undefined => (row === undefined ? undefined : parseMail(row))

export const findMail = (db: Reader, id: string): MailRecord | undefined =>
  parsed(db.get(`${SELECT_MAIL} WHERE m.id = ?`, id))

/** The thread of this id, or the one that a message of this id is in. */
export function findThread(db: Reader, id: string): string | undefined {
  const row =
    db.get('SELECT thread_id FROM mail WHERE thread_id = ? LIMIT 1', id) ??
    db.get('SELECT thread_id FROM mail WHERE id = ?', id)
  return row === undefined ? undefined : String(row.thread_id)
}

/** Those of these senders of whom there is something; the first where there is of none. */
export function knownSenders(db: Reader, keys: readonly string[]): readonly string[] {
  const known = keys.filter((key) => db.get('SELECT 1 FROM mail WHERE sender = ? LIMIT 1', key) !== undefined)
  return known.length === 0 ? keys.slice(0, 1) : known
}

/** When the newest message was sent; 0: there is none. */
export const newestAt = (db: Reader): number =>
  Number(db.get('SELECT created_at FROM mail ORDER BY seq DESC LIMIT 1')?.created_at ?? 0)

export type MailState = Pick<MailRecord, 'status' | 'read' | 'read_at' | 'archived_at'>

export function setState(tx: Tx, record: MailRecord, state: MailState): MailRecord {
  const { status, read, read_at, archived_at } = state
  tx.run(
    'UPDATE mail SET status = ?, read = ?, read_at = ?, archived_at = ? WHERE seq = ?',
    status,
    read ? 1 : 0,
    read_at ?? null,
    archived_at ?? null,
    record.seq,
  )
  return { ...record, ...state }
}

export function removeMail(tx: Tx, { seq, id, text }: MailRecord, now: number): void {
  tx.run('DELETE FROM mail WHERE seq = ?', seq)
  tx.run('INSERT OR REPLACE INTO mail_deleted (id, at) VALUES (?, ?)', id, now)
  if (tx.get('SELECT 1 FROM mail WHERE text = ? LIMIT 1', text) === undefined) removeText(tx, text)
}

export const wasDeleted = (db: Reader, id: string, since: number): boolean =>
  db.get('SELECT 1 FROM mail_deleted WHERE id = ? AND at >= ?', id, since) !== undefined

/** Ids that have been remembered long enough. */
export const forgetDeleted = (tx: Tx, before: number, limit: number): number =>
  tx.run(
    'DELETE FROM mail_deleted WHERE id IN (SELECT id FROM mail_deleted WHERE at < ? ORDER BY at LIMIT ?)',
    before,
    limit,
  )

/** Read or archived before `time`, longest ago first. */
export const settledBefore = (db: Reader, time: number, limit: number): readonly string[] =>
  db
    .all(
      `SELECT id FROM mail WHERE status <> 'unread' AND coalesce(archived_at, read_at) < ?
       ORDER BY coalesce(archived_at, read_at) LIMIT ?`,
      time,
      limit,
    )
    .map(({ id }) => String(id))

/** Unread messages from before `time` in mailboxes of sessions that are gone, some of them. */
export function leftBehind(
  db: Reader,
  { before, isGone }: { readonly before: number; readonly isGone: (mailbox: Mailbox) => boolean },
  limit: number,
): readonly string[] {
  const boxes = db
    .all(
      "SELECT DISTINCT mailbox FROM mail_counts WHERE mailbox >= 'session:' AND mailbox < 'session;' AND status = 'unread' AND n > 0",
    )
    .map(({ mailbox }) => parseMailbox(String(mailbox)))
    .filter(isGone)
  const ids: string[] = []
  for (const box of boxes) {
    if (ids.length >= limit) break
    const sql = "SELECT id FROM mail WHERE mailbox = ? AND status = 'unread' AND created_at < ? ORDER BY seq LIMIT ?"
    ids.push(...db.all(sql, box, before, limit - ids.length).map(({ id }) => String(id)))
  }
  return ids
}

/** Unread messages of one sender in a mailbox. */
export interface UnreadOf {
  readonly sender: string
  readonly from: string
  readonly count: number
  readonly newest: readonly { readonly id: string; readonly subject: string }[]
}

/** Who is still waiting for a mailbox to be read, and with which messages; the newest ones are named. */
export function unreadBySender(
  db: Reader,
  mailbox: Mailbox,
  most: { senders: number; named: number },
): readonly UnreadOf[] {
  const rows = db.all(
    `SELECT sender, max("from") AS "from", count(*) AS n FROM mail WHERE mailbox = ? AND status = 'unread'
     GROUP BY sender ORDER BY max(seq) DESC LIMIT ?`,
    mailbox,
    most.senders,
  )
  return rows.map(({ sender, from, n }) => ({
    sender: String(sender),
    from: String(from),
    count: Number(n),
    newest: db
      .all(
        "SELECT id, subject FROM mail WHERE mailbox = ? AND status = 'unread' AND sender = ? ORDER BY seq DESC LIMIT ?",
        mailbox,
        String(sender),
        most.named,
      )
      .map(({ id, subject }) => ({ id: String(id), subject: String(subject) })),
  }))
}

// --- What is unread ----------------------------------------------------------------------------------------------------

/** Unread messages of a mailbox, in the order in which they are told. */
export function unreadMails(db: Reader, mailbox: Mailbox, after: number, limit: number): readonly MailRecord[] {
  return db
    .all(
      `${SELECT_MAIL} WHERE m.mailbox = ? AND m.status = 'unread' AND m.seq > ? ORDER BY m.priority DESC, m.seq LIMIT ?`,
      mailbox,
      after,
      limit,
    )
    .map(parseMail)
}

export const unreadIds = (db: Reader, mailbox: Mailbox, limit: number): readonly string[] =>
  db
    .all(
      "SELECT id FROM mail WHERE mailbox = ? AND status = 'unread' ORDER BY priority DESC, seq LIMIT ?",
      mailbox,
      limit,
    )
    .map(({ id }) => String(id))

/** True where somebody is to be told of something. */
export const hasNews = (db: Reader, mailbox: Mailbox): boolean =>
  db.get("SELECT 1 FROM mail WHERE mailbox = ? AND status = 'unread' AND silent = 0 LIMIT 1", mailbox) !== undefined

/** The newest of what somebody is to be told of after `after`; undefined: there is nothing. */
export function newestToTell(db: Reader, mailbox: Mailbox, after: number): number | undefined {
  const row = db.get(
    `SELECT max(seq) AS newest, min(silent) AS silent FROM mail WHERE mailbox = ? AND status = 'unread' AND seq > ?`,
    mailbox,
    after,
  )
  return row?.silent === 0 ? Number(row.newest) : undefined
}

export interface Counts {
  readonly unread: number
  readonly read: number
  readonly archived: number
}

/** From counters, however many there are. */
export function countMails(db: Reader, mailbox: Mailbox | undefined, rig: string | undefined): Counts {
  const parts = [
    ...(mailbox === undefined ? [] : ([['mailbox = ?', mailbox]] as const)),
    ...(rig === undefined ? [] : ([['rig = ?', rig]] as const)),
  ]
  const where = parts.length === 0 ? '' : `WHERE ${parts.map(([sql]) => sql).join(' AND ')}`
  const rows = db.all(
    `SELECT status, sum(n) AS n FROM mail_counts ${where} GROUP BY status`,
    ...parts.map(([, value]) => value),
  )
  const of = (status: string) => Number(rows.find((row) => row.status === status)?.n ?? 0)
  return { unread: of('unread'), read: of('read'), archived: of('archived') }
}
