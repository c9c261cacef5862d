/** Many messages archived at once, by their ids or by what they have in common (sheet 06 §1.4). */
import type { MailArchived, MailArchiveFilter, MailArchiveRequest } from '../../contract/messaging/mail.ts'
import type { Database, SqlValue, Tx } from '../../kernel/database.ts'
import { invalidField } from '../../kernel/problem.ts'
import type { Mailbox } from '../../messaging/address.ts'
import type { Mail } from './mail.ts'

const DEFAULT_LIMIT = 100

type Archiving = MailArchived['results'][number]

interface Deps {
  readonly mail: Pick<Mail, 'move'>
  /** The only mailbox that the caller may change; undefined: any. */
  readonly own: Mailbox | undefined
  /** Whose mailbox is meant, and which keys senders of this name have; neither fails. */
  readonly mailboxOf: (word: string) => Mailbox
  readonly sendersOf: (word: string) => readonly string[]
}

/** Refuses what contradicts itself, or would be everything. */
export function checkArchiving({ ids, filter, limit }: MailArchiveRequest): void {
  if ((ids === undefined) === (filter === undefined)) throw invalidField('body', 'has either `ids` or `filter`')
  if (filter === undefined) {
    if (limit !== undefined) throw invalidField('body.limit', 'goes with `filter`', limit)
    return
  }
  const { to, all_recipients: all, from, subject_prefix: prefix, subject_contains: contains } = filter
  if ((to === undefined) === (all === undefined))
    throw invalidField('body.filter', 'has either `to` or `all_recipients`', filter)
  if (from === undefined && prefix === undefined && contains === undefined)
    throw invalidField('body.filter', 'has `from`, `subject_prefix` or `subject_contains`', filter)
}

export function archiveMany(tx: Tx, request: MailArchiveRequest, actor: string, deps: Deps): MailArchived {
  const { ids, filter = {}, limit = DEFAULT_LIMIT, dry_run = false } = request
  const wanted = ids ?? matching(tx, filter, limit, deps)
  const results = wanted.map((id, index) => {
    const result = archiveOne(tx, id, dry_run, actor, deps)
    // A dry run changes nothing: what is named twice would be archived once all the same.
    const isAgain = result.status === 'archived' && wanted.indexOf(id) < index
    return isAgain ? { id, status: 'unchanged' as const } : result
  })
  return { dry_run, results, total: results.length }
}

function archiveOne(tx: Tx, id: string, dryRun: boolean, actor: string, { mail, own }: Deps): Archiving {
  const row = tx.get('SELECT status, mailbox FROM mail WHERE id = ?', id)
  if (row === undefined) return { id, status: 'not_found', error: `there is no message ${id}` }
  if (own !== undefined && row.mailbox !== own)
    return { id, status: 'not_found', error: `${id} is not in the mailbox of this token's agent` }
  if (row.status === 'archived') return { id, status: 'unchanged' }
  if (!dryRun) mail.move(tx, id, 'archive', actor)
  return { id, status: 'archived' }
}

/** Ids of the oldest messages that are as the filter says. */
function matching(
  db: Pick<Database, 'all'> | Tx,
  filter: MailArchiveFilter,
  limit: number,
  { own, mailboxOf, sendersOf }: Deps,
): readonly string[] {
  const { to, from, subject_prefix: prefix, subject_contains: contains, empty_body: empty, include_read: read } = filter
  const parts: string[] = [read === true ? "m.status <> 'archived'" : "m.status = 'unread'"]
  const values: SqlValue[] = []
  const add = (sql: string, ...of: readonly SqlValue[]) => {
    parts.push(sql)
    values.push(...of)
  }
  const mailbox = own ?? (to === undefined ? undefined : mailboxOf(to))
  if (mailbox !== undefined) add('m.mailbox = ?', mailbox)
  if (from !== undefined) {
    const keys = sendersOf(from)
    add(`(m.sender IN (${keys.map(() => '?').join(', ')}) OR lower(m."from") = lower(?))`, ...keys, from)
  }
  if (prefix !== undefined) add("m.subject LIKE ? ESCAPE '\\'", `${literally(prefix)}%`)
  if (contains !== undefined) add("m.subject LIKE ? ESCAPE '\\'", `%${literally(contains)}%`)
  if (empty === true) add("trim(t.body, char(32, 9, 10, 11, 12, 13)) = ''")
  return db
    .all(
      `SELECT m.id FROM mail AS m CROSS JOIN mail_texts AS t ON t.text = m.text
       WHERE ${parts.join(' AND ')} ORDER BY m.seq LIMIT ?`,
      ...values,
      limit,
    )
    .map(({ id }) => String(id))
}

const literally = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')
