/**
 * What sessions are told of mail (decisions 136, 137): a digest of what is unread and was not told before, in the
 * conversation that the agent has. Who begins a new one knows nothing, and is told again.
 */
import type { Tx } from '../../kernel/database.ts'
import type { Reaction } from '../../kernel/reactions.ts'
import { type Mailbox, parseMailbox } from '../../messaging/address.ts'
import type { DigestReader, DigestSource } from '../../messaging/digest.ts'
import { countMails, hasNews, newestToTell, type Reader, unreadMails } from './store.ts'
import { mailText, TOLD_MESSAGES } from './text.ts'

export class MailDigests implements DigestSource {
  unread(tx: Tx, mailbox: Mailbox): readonly string[] {
    return hasNews(tx, mailbox) ? [mailbox] : []
  }

  begin(tx: Tx, { sessionId, conversation, delivery }: DigestReader, reference: string): string | undefined {
    const mailbox = parseMailbox(reference)
    const told = toldOf(tx, sessionId, mailbox, conversation)
    const newest = newestToTell(tx, mailbox, told)
    if (newest === undefined) return undefined
    tx.run(
      'INSERT OR REPLACE INTO mail_digests (delivery, session_id, mailbox, conversation, seq) VALUES (?, ?, ?, ?, ?)',
      delivery,
      sessionId,
      mailbox,
      conversation,
      newest,
    )
    const { unread } = countMails(tx, mailbox, undefined)
    return mailText(unreadMails(tx, mailbox, told, TOLD_MESSAGES), unread, freshIn(tx, mailbox, told))
  }

  ended(tx: Tx, delivery: string, delivered: boolean): void {
    const row = tx.get('SELECT * FROM mail_digests WHERE delivery = ?', delivery)
    if (row === undefined) return
    tx.run('DELETE FROM mail_digests WHERE delivery = ?', delivery)
    if (!delivered) return
    tx.run(
      `INSERT INTO mail_told (session_id, mailbox, conversation, seq) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET conversation = excluded.conversation, seq = excluded.seq
       WHERE conversation <> excluded.conversation OR seq < excluded.seq`,
      String(row.session_id),
      String(row.mailbox),
      String(row.conversation),
      Number(row.seq),
    )
  }
}

/** What a session was told goes with it. */
export const forgetting: Reaction = {
  name: 'mail-told',
  types: ['session.deleted'],
  since: 'head',
  react: (tx, { subject = '' }) => {
    tx.run('DELETE FROM mail_told WHERE session_id = ?', subject)
    tx.run('DELETE FROM mail_digests WHERE session_id = ?', subject)
  },
}

/** Up to which message it was told in this conversation; 0: of none. */
function toldOf(db: Reader, sessionId: string, mailbox: Mailbox, conversation: string): number {
  const row = db.get(
    'SELECT seq FROM mail_told WHERE session_id = ? AND mailbox = ? AND conversation = ?',
    sessionId,
    mailbox,
    conversation,
  )
  return Number(row?.seq ?? 0)
}

const freshIn = (db: Reader, mailbox: Mailbox, after: number): number =>
  Number(
    db.get("SELECT count(*) AS n FROM mail WHERE mailbox = ? AND status = 'unread' AND seq > ?", mailbox, after)?.n ??
      0,
  )
