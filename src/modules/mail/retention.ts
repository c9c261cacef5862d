/**
 * Mail that was read or archived long ago goes, where `mail.retention_ttl` says so; ids of deleted messages are forgotten
 * after their time. What nobody has read stays.
 */
import { TOMBSTONE_DAYS } from '../../contract/messaging/mail.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Sweep, sweepOfRows } from '../../kernel/retention.ts'
import type { Store } from '../../kernel/store.ts'
import type { Mail } from './mail.ts'
import { forgetDeleted, settledBefore } from './store.ts'

export interface MailRetentionDeps {
  readonly store: Pick<Store, 'db'>
  readonly clock: Clock
  readonly mail: Pick<Mail, 'delete'>
  /** Undefined: mail is kept. */
  readonly keepMs: () => number | undefined
}

export const sweepsOfMail = ({ store: { db }, clock, mail, keepMs }: MailRetentionDeps): readonly Sweep[] => [
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
    name: 'mail_tombstones',
    keptMs: () => TOMBSTONE_DAYS * 86_400_000,
    has: (before) => db.get('SELECT 1 FROM mail_deleted WHERE at < ? LIMIT 1', before) !== undefined,
    remove: forgetDeleted,
  }),
]
