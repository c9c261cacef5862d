/** Claims of adapters that ask for their deliveries, and how they wait (decision 142). */
import type { ClaimedDelivery } from '../../../contract/messaging/deliveries.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import { type Adapter, nameOfKey } from '../adapters/adapter.ts'
import type { Adapters } from '../adapters/registry.ts'
import { entryView } from '../entries/rows.ts'
import type { Said } from './callbacks.ts'
import type { Delivery } from './delivery.ts'
import type { Outbox } from './outbox.ts'
import { ENTRY_GONE } from './rules.ts'

export interface Claim {
  readonly limit: number
  readonly waitMs: number
  readonly leaseMs: number
}

export interface ClaimsDeps {
  readonly db: Database
  readonly clock: Clock
  readonly adapters: Adapters
  readonly outbox: Outbox
  /** What a delivery says; undefined: it is gone. */
  readonly said: (delivery: Delivery, tx: Tx) => Said | undefined
}

export class Claims {
  readonly #deps: ClaimsDeps

  constructor(deps: ClaimsDeps) {
    this.#deps = deps
  }

  /** What is due, at once or as soon as there is something; nothing where the time is over, or nobody waits any more. */
  async claim(first: Adapter, claim: Claim, signal: AbortSignal): Promise<readonly ClaimedDelivery[]> {
    const { clock, adapters, outbox } = this.#deps
    const until = clock.monotonic() + claim.waitMs
    using _ = adapters.waits(first)
    for (;;) {
      const adapter = adapters.need(first.provider, first.account_id)
      if (adapter.transport !== 'pull')
        throw problem(
          'conflict-wrong-state',
          `${nameOfKey(adapter)} has the transport ${adapter.transport}: only pull claims`,
        )
      const due = outbox.dueAt(adapter)
      const items = due !== undefined && due <= clock.now() ? await this.#take(adapter, claim) : []
      const left = until - clock.monotonic()
      if (items.length > 0 || left <= 0 || signal.aborted || outbox.closed) return items
      await this.#news(adapter, due === undefined ? left : Math.min(left, Math.max(due - clock.now(), 1)), signal)
    }
  }

  #take(key: Adapter, { limit, leaseMs }: Claim): Promise<readonly ClaimedDelivery[]> {
    const { db, adapters, outbox } = this.#deps
    return db.write((tx) => {
      const adapter = adapters.find(key.provider, key.account_id, tx)
      if (adapter?.transport !== 'pull') return []
      adapters.seen(tx, adapter)
      return outbox.take(tx, adapter, limit, leaseMs).flatMap((delivery) => this.#given(tx, delivery))
    })
  }

  #given(tx: Tx, delivery: Delivery): readonly ClaimedDelivery[] {
    const { outbox, said } = this.#deps
    const { id, attempts, lease_until = 0 } = delivery
    const message = said(delivery, tx)
    if (message === undefined) {
      outbox.failed(tx, delivery, attempts, ENTRY_GONE)
      return []
    }
    const { conversation, entry } = message
    const lease_expires_at = isoTime(lease_until)
    return [{ delivery_id: id, attempt: attempts, conversation, entry: entryView(entry), lease_expires_at }]
  }

  /** Resolves when there may be something, or after a time. */
  #news(adapter: Adapter, ms: number, signal: AbortSignal): Promise<void> {
    const { clock, outbox } = this.#deps
    return new Promise((resolve) => {
      const cancel = clock.after(ms, done)
      const unlisten = outbox.onDue(adapter, done)
      signal.addEventListener('abort', done, { once: true })
      function done() {
        cancel()
        unlisten()
        signal.removeEventListener('abort', done)
        resolve()
      }
    })
  }
}
