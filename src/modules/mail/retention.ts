/**
 * Mail that was read or archived long ago goes, where `mail.retention_ttl` says so; ids of deleted messages are forgotten
 * after their time. What nobody has read stays.
 */
import { TOMBSTONE_DAYS } from '../../contract/messaging/mail.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Store } from '../../kernel/store.ts'
import type { Mail } from './mail.ts'
import { forgetDeleted, settledBefore } from './store.ts'

const FIRST_MS = 60_000
const EVERY_MS = 10 * 60_000
/** In one write. */
const BATCH = 50
/** In one sweep; the rest goes with the next ones. */
const MAX_BATCHES = 200

export interface MailRetentionDeps {
  readonly city: { readonly name: string }
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  readonly log: Logger
  readonly mail: Pick<Mail, 'delete'>
  /** Undefined: mail is kept. */
  readonly keepMs: () => number | undefined
}

export class MailRetention {
  readonly #deps: MailRetentionDeps
  #cancel: (() => void) | undefined
  #closed = false

  constructor(deps: MailRetentionDeps) {
    this.#deps = deps
  }

  start(afterMs = FIRST_MS): void {
    if (this.#closed) return
    const { clock, log, city } = this.#deps
    this.#cancel = clock.after(afterMs, () => {
      this.sweep()
        .catch((error: unknown) => log.warn({ city: city.name, err: error }, 'retention of mail failed'))
        .finally(() => this.start(EVERY_MS))
    })
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  async sweep(): Promise<void> {
    const { store, clock, keepMs, mail } = this.#deps
    // What goes for its age is gone for good: not while the clock cannot say how old it is.
    if (!store.log.agesCount()) return
    const ttl = keepMs()
    const now = clock.now()
    if (ttl !== undefined)
      await this.#inBatches(() => {
        const ids = settledBefore(store.db, now - ttl, BATCH)
        if (ids.length === 0) return undefined
        return store.db.write((tx) => {
          for (const id of ids) mail.delete(tx, id, 'retention')
          return ids.length
        })
      })
    const forgotten = now - TOMBSTONE_DAYS * 86_400_000
    if (store.db.get('SELECT 1 FROM mail_deleted WHERE at < ? LIMIT 1', forgotten) === undefined) return
    await this.#inBatches(() => store.db.write((tx) => forgetDeleted(tx, forgotten, BATCH)))
  }

  /** Until there is no whole batch left. */
  async #inBatches(batch: () => Promise<number> | undefined): Promise<void> {
    for (let done = 0; done < MAX_BATCHES && !this.#closed; done++) {
      if ((await batch()) !== BATCH) return
    }
  }
}
