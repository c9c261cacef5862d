/**
 * Mail that was read or archived long ago goes, where `mail.retention_ttl` says so; ids of deleted messages are forgotten
 * after their time. What nobody has read stays, unless the session that could read it was deleted.
 */
import { TOMBSTONE_DAYS } from '../../contract/messaging/mail.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Sweep, sweepOfRows } from '../../kernel/retention.ts'
import type { Store } from '../../kernel/store.ts'
import type { Mailbox } from '../../messaging/address.ts'
import type { Mail } from './mail.ts'
import { forgetDeleted, leftBehind, settledBefore } from './store.ts'

export interface MailRetentionDeps {
  readonly store: Pick<Store, 'db'>
  readonly clock: Clock
  readonly mail: Pick<Mail, 'delete'>
  /** Undefined: mail is kept. */
  readonly keepMs: () => number | undefined
  /** True for the mailbox of a session that was deleted. */
  readonly isGone: (mailbox: Mailbox) => boolean
}

const DAY_MS = 86_400_000
/** How long unread mail of deleted sessions stays where no time is set. */
const LEFT_DAYS = 30

export const sweepsOfMail = ({ store: { db }, clock, mail, keepMs, isGone }: MailRetentionDeps): readonly Sweep[] => [
  sweepOfRows(db, clock, {
    name: 'mail',
    keptMs: keepMs,
    has: (before) => settledBefore(db, before, 1).length > 0,
    remove: (tx, before, limit) => {
      const ids = settledBefore(tx, before, limit)
      for (const id of ids) mail.delete(tx, id, 'retention')
      return ids.length
    },
  }),
  sweepOfRows(db, clock, {
    name: 'mail_left_behind',
    keptMs: () => keepMs() ?? LEFT_DAYS * DAY_MS,
    has: (before) => leftBehind(db, { before, isGone }, 1).length > 0,
    remove: (tx, before, limit) => {
      const ids = leftBehind(tx, { before, isGone }, limit)
      for (const id of ids) mail.delete(tx, id, 'retention')
      return ids.length
    },
  }),
  sweepOfRows(db, clock, {
    name: 'mail_tombstones',
    keptMs: () => TOMBSTONE_DAYS * DAY_MS,
    has: (before) => db.get('SELECT 1 FROM mail_deleted WHERE at < ? LIMIT 1', before) !== undefined,
    remove: forgetDeleted,
  }),
]
