/**
 * What is on its way from transcripts to chats (decisions 143 to 146).
 *
 * I1  An entry and its delivery are one write, and so is the end of a delivery with all that follows from it.
 * I2  Nothing is lost: an attempt whose end nobody heard of is made again, under the same id.
 * I3  One attempt at a time and in order within a conversation; a delivery that is given up lets the next one go on.
 * I4  Every delivery ends: it is delivered, or dead after ten answers or a day.
 */
import { cut } from '../../../contract/base/text.ts'
import { MAX_CLAIM, type PublishReceipt } from '../../../contract/messaging/deliveries.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import { Due, type Slice, type TimeChange } from '../../../kernel/due.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import { problem } from '../../../kernel/problem.ts'
import { type Adapter, type AdapterKey, nameOfKey } from '../adapters/adapter.ts'
import type { Adapters } from '../adapters/registry.ts'
import type { Reader } from '../base/rows.ts'
import { type Delivery, isOver, type OutboxDraft, statusOf, type Way } from './delivery.ts'
import { afterFailure, type Failure, GIVEN_UP_AFTER_MS, isFault } from './rules.ts'
import * as store from './store.ts'

/** Deliveries of a kind that one write looks at. */
const BATCH = 500
/** Of one adapter; the text of each is in its transcript. */
const MAX_PENDING = 10_000

/** A delivery that has ended, or begins anew, inside the write that makes it so. */
export interface Settled {
  readonly id: string
  readonly transcript_id: string
  readonly sequence: number
  readonly session_id: string | undefined
  readonly root: number
  readonly status: 'pending' | 'delivered' | 'dead'
  readonly receipt: PublishReceipt | undefined
  /** Where the entry was written as delivered in the same write. */
  readonly said?: OutboxDraft
}

export interface OutboxDeps {
  readonly db: Database
  readonly events: EventLog
  readonly clock: Clock
  readonly log: Logger
  /** From 0 to 1. */
  readonly random: () => number
  readonly adapters: Adapters
  /** What follows from it elsewhere. */
  readonly settled: (tx: Tx, delivery: Settled) => void
}

export class Outbox {
  readonly #deps: OutboxDeps
  /** Told that something may be due for an adapter, after the commit. */
  readonly #watchers = new Map<string, Set<() => void>>()
  readonly #outcomes = new Map<string, Set<() => void>>()
  /** How many more of an adapter can come at least before they are counted again: what ends is not added. */
  readonly #room = new Map<string, number>()
  readonly #moments: Due
  #looks = false
  #closed = false

  constructor(deps: OutboxDeps) {
    this.#deps = deps
    const { db, clock, log } = deps
    this.#moments = new Due({
      name: 'deliveries of adapters',
      db,
      clock,
      log,
      next: () => nextMoment(store.nextMoments(db)),
      work: (now, slice) => db.write((tx) => this.#sweep(tx, now, slice)),
      adjust: (change) => this.#adjust(change),
    })
  }

  /** Takes up what a crash left. */
  async start(): Promise<void> {
    const { db, clock } = this.#deps
    await db.write((tx) => store.releaseUnleased(tx, clock.now()))
    await this.#moments.start()
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const waiting of [...this.#outcomes.values(), ...this.#watchers.values()])
      for (const done of [...waiting]) done()
    await this.#moments.stop()
  }

  /** Nothing is begun any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** How what is said there gets out: `enqueue` inside the write of the entry, which has its id and status. */
  way(tx: Tx, { provider, account_id }: AdapterKey): Way | undefined {
    const adapter = this.#deps.adapters.find(provider, account_id, tx)
    if (adapter === undefined) return undefined
    const online = adapter.status === 'online'
    if (adapter.transport === 'stream')
      return { online, status: 'delivered', enqueue: (write, draft) => this.#read(write, draft) }
    return { online, status: 'pending', enqueue: (write, draft) => this.#send(write, adapter, draft) }
  }

  #send(tx: Tx, adapter: Adapter, draft: OutboxDraft): void {
    this.#refuseFull(tx, adapter)
    store.insert(tx, draft, this.#deps.clock.now())
    this.#due(tx, adapter)
  }

  /** Its adapter has it from the stream of the transcript. */
  #read(tx: Tx, draft: OutboxDraft): void {
    const delivery = store.insertDelivered(tx, draft, this.#deps.clock.now())
    this.#succeeded(tx, delivery, {})
    this.#deps.settled(tx, { ...settledOf(delivery, 'delivered'), said: draft })
  }

  find(id: string, reader: Reader = this.#deps.db): Delivery | undefined {
    return store.find(reader, id)
  }

  /** 404 where the adapter has none of this id. */
  need(key: AdapterKey, id: string, reader: Reader = this.#deps.db): Delivery {
    const found = store.find(reader, id)
    if (found === undefined || found.provider !== key.provider || found.account_id !== key.account_id)
      throw problem('delivery-not-found', `delivery not found: ${cut(id, 80)}`)
    return found
  }

  /** What the adapter said of it, if anything. */
  receipt(id: string): PublishReceipt | undefined {
    return this.find(id)?.receipt
  }

  counts(key: AdapterKey): { readonly pending: number; readonly dead: number } {
    return store.countsOf(this.#deps.db, key)
  }

  /** Resolves when it has ended, or when the time is over. */
  async outcome(id: string, waitMs: number, signal: AbortSignal): Promise<void> {
    const now = this.find(id)
    if (now !== undefined && !isOver(now) && waitMs > 0 && !signal.aborted && !this.#closed)
      await this.#over(id, waitMs, signal)
  }

  /** Begins an attempt of what is due, of each conversation one. */
  take(tx: Tx, adapter: Adapter, limit: number, leaseMs: number | undefined): readonly Delivery[] {
    const now = this.#deps.clock.now()
    if (adapter.paused_until > now) return []
    const leaseUntil = leaseMs === undefined ? undefined : now + leaseMs
    const taken = store.take(tx, adapter, Math.min(limit, MAX_CLAIM), now, leaseUntil)
    if (leaseUntil !== undefined && taken.length > 0) tx.afterCommit(() => this.#armSoon())
    return taken
  }

  /** When there may be something due; undefined: when something comes. */
  dueAt(adapter: Adapter): number | undefined {
    const at = store.dueAt(this.#deps.db, adapter)
    return at === undefined ? undefined : Math.max(at, adapter.paused_until)
  }

  /** Calls the listener after each commit that may make something due, or lets something be claimed. */
  onDue(key: AdapterKey, listener: () => void): () => void {
    const name = nameOfKey(key)
    const listeners = this.#watchers.get(name) ?? new Set()
    this.#watchers.set(name, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#watchers.get(name) === listeners) this.#watchers.delete(name)
    }
  }

  /** It is in the chat; also where its lease has ended, or it was given up. The same again changes nothing. */
  delivered(tx: Tx, before: Delivery, receipt: PublishReceipt): Delivery {
    if (before.state === 'delivered') return before
    const after = store.setDelivered(tx, before, receipt, this.#deps.clock.now())
    this.#succeeded(tx, after, receipt)
    this.#tell(tx, after)
    this.#due(tx, after)
    return after
  }

  #succeeded(tx: Tx, delivery: Delivery, { message_id }: PublishReceipt): void {
    this.#deps.adapters.succeeded(tx, delivery)
    this.#deps.events.append(tx, {
      type: 'extmsg.outbound',
      ...signed(delivery),
      payload: { ...about(delivery), ...(message_id === undefined ? {} : { message_id }) },
    })
  }

  /** An attempt has failed; undefined where it is not the one that is under way. */
  failed(tx: Tx, before: Delivery, attempt: number, failure: Failure): Delivery | undefined {
    if (before.state !== 'flying' || before.attempts !== attempt) return undefined
    const { clock, random, adapters } = this.#deps
    const now = clock.now()
    const next = afterFailure(before, failure, now, random())
    const after = store.setFailed(tx, before, next, failure, now)
    adapters.failed(tx, after, { error: failure.error, counts: isFault(failure), pauseMs: failure.pauseMs })
    if (after.state === 'dead') this.#buried(tx, after, failure)
    this.#due(tx, after)
    return after
  }

  /** Pending again, with ten new attempts, or due now. */
  retry(tx: Tx, adapter: Adapter, before: Delivery): Delivery {
    if (before.state === 'delivered' || before.state === 'flying')
      throw problem(
        'conflict-wrong-state',
        `delivery ${before.id} is ${statusOf(before)}: only what is pending or dead is retried`,
      )
    const now = this.#deps.clock.now()
    if (before.state === 'dead') this.#refuseFull(tx, adapter)
    const after = before.state === 'dead' ? store.setPending(tx, before, now) : store.setDue(tx, before, now)
    if (before.state === 'dead') this.#deps.settled(tx, settledOf(after, 'pending'))
    this.#due(tx, after)
    return adapter.transport === 'stream' ? this.delivered(tx, after, {}) : after
  }

  remove(tx: Tx, before: Delivery): void {
    if (before.state !== 'dead')
      throw problem(
        'conflict-wrong-state',
        `delivery ${before.id} is ${statusOf(before)}: only what is dead is deleted`,
      )
    store.remove(tx, before)
  }

  /** How many of a conversation are not over. */
  pendingIn(tx: Tx, transcriptId: string): number {
    return store.countPendingIn(tx, transcriptId)
  }

  /**
   * A transcript is deleted: its pending deliveries are dead, which events report, and no delivery of it is kept. Handles at
   * most `limit` of them and returns how many; fewer than `limit`: nothing is left.
   */
  forget(tx: Tx, transcriptId: string, limit: number): number {
    const why = { kind: 'permanent', error: 'the transcript was deleted' } as const
    const pending = store.newestPendingIn(tx, transcriptId, limit)
    for (const one of pending) this.#kill(tx, one, why)
    return pending.length + store.removeOf(tx, transcriptId, limit - pending.length)
  }

  /** The adapter is removed: at most `limit` of its pending deliveries are dead now. How many. */
  bury(tx: Tx, adapter: Adapter, limit: number): number {
    const pending = store.newestPendingOf(tx, adapter, limit)
    const why = { kind: 'unsupported', error: 'the adapter was removed' } as const
    for (const one of pending) this.#kill(tx, one, why)
    return pending.length
  }

  /** The adapter reads the stream of the transcript from now on: at most `limit` pending ones are delivered by that. How many. */
  streamed(tx: Tx, adapter: Adapter, limit: number): number {
    const pending = adapter.transport === 'stream' ? store.pendingOf(tx, adapter, limit) : []
    for (const one of pending) this.delivered(tx, one, {})
    return pending.length
  }

  /** Another URL or transport: what waits may be due in another way. */
  changed(tx: Tx, key: AdapterKey): void {
    this.#due(tx, key)
  }

  list(key: AdapterKey, wanted: store.Wanted): readonly Delivery[] {
    return store.list(this.#deps.db, key, wanted)
  }

  total(key: AdapterKey, wanted: Pick<store.Wanted, 'states' | 'transcript'>): number {
    return store.total(this.#deps.db, key, wanted)
  }

  #refuseFull(tx: Tx, adapter: AdapterKey): void {
    const name = nameOfKey(adapter)
    const room = this.#room.get(name) ?? 0
    const left = room > 0 ? room : MAX_PENDING - store.pendingCount(tx, adapter)
    this.#room.set(name, left - 1)
    if (left > 0) return
    this.#room.delete(name)
    const why = `${name} has ${MAX_PENDING} pending deliveries, and takes none`
    throw problem('unavailable', why, { retryAfterSec: 60 })
  }

  #kill(tx: Tx, before: Delivery, why: store.Why): void {
    const after = store.setFailed(tx, before, { state: 'dead', answered: before.answered }, why, this.#deps.clock.now())
    this.#buried(tx, after, why)
  }

  #buried(tx: Tx, delivery: Delivery, { kind, error }: store.Why): void {
    this.#deps.events.append(tx, {
      type: 'extmsg.outbound_failed',
      ...signed(delivery),
      payload: { ...about(delivery), failure_kind: kind, error },
    })
    this.#tell(tx, delivery)
  }

  #tell(tx: Tx, delivery: Delivery): void {
    this.#deps.settled(tx, settledOf(delivery, delivery.state === 'dead' ? 'dead' : 'delivered'))
    tx.afterCommit(() => {
      for (const done of [...(this.#outcomes.get(delivery.id) ?? [])]) done()
    })
  }

  #due(tx: Tx, key: AdapterKey): void {
    const name = nameOfKey(key)
    tx.afterCommit(() => {
      this.#armSoon()
      for (const listener of [...(this.#watchers.get(name) ?? [])]) listener()
    })
  }

  #over(id: string, waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#outcomes.get(id) ?? new Set()
      this.#outcomes.set(id, waiting.add(done))
      const cancel = this.#deps.clock.after(waitMs, done)
      signal.addEventListener('abort', done, { once: true })
      const outcomes = this.#outcomes
      function done() {
        cancel()
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        if (waiting.size === 0 && outcomes.get(id) === waiting) outcomes.delete(id)
        resolve()
      }
    })
  }

  /** Once for all writes of a commit. */
  #armSoon(): void {
    if (this.#looks) return
    this.#looks = true
    queueMicrotask(() => {
      this.#looks = false
      this.#moments.changed()
    })
  }

  /** Leases run on for as long as nobody could answer; what waits is due again where the clock was ahead. */
  async #adjust({ pausedMs }: TimeChange): Promise<void> {
    const { db, clock } = this.#deps
    await db.write((tx) => store.adjustTimes(tx, clock.now(), pausedMs))
    for (const listeners of this.#watchers.values()) for (const listener of [...listeners]) listener()
  }

  /** Ends leases that are over, and gives up what has waited too long. */
  #sweep(tx: Tx, now: number, slice: Slice): void {
    for (const one of store.expiredLeases(tx, now, BATCH)) {
      this.failed(tx, one, one.attempts, LEASE_ENDED)
      if (slice.isOver) return
    }
    for (const one of store.waitingSince(tx, now - GIVEN_UP_AFTER_MS, BATCH)) {
      this.#kill(tx, one, {
        kind: one.failure_kind ?? 'transient',
        error: one.last_error ?? 'nobody took it for 24 h',
      })
      this.#due(tx, one)
      if (slice.isOver) return
    }
  }
}

/** When the next lease ends, or the next one has waited too long. */
function nextMoment({ lease, oldest }: ReturnType<typeof store.nextMoments>): number | undefined {
  const givenUp = oldest === undefined ? undefined : oldest + GIVEN_UP_AFTER_MS
  if (lease === undefined || givenUp === undefined) return lease ?? givenUp
  return Math.min(lease, givenUp)
}

const LEASE_ENDED: Failure = {
  kind: 'transient',
  error: 'the lease ended without an answer',
  final: false,
  answered: true,
  pauseMs: 0,
}

const about = (one: Delivery) => ({
  provider: one.provider,
  account_id: one.account_id,
  conversation_id: one.conversation_id,
  transcript_id: one.transcript_id,
  sequence: one.sequence,
  delivery_id: one.id,
  ...(one.session_id === undefined ? {} : { session: one.session_id }),
  attempts: one.attempts,
})

const signed = (one: Delivery) => ({ actor: nameOfKey(one), subject: one.session_id ?? nameOfKey(one) })

const settledOf = (one: Delivery, status: Settled['status']): Settled => ({
  id: one.id,
  transcript_id: one.transcript_id,
  sequence: one.sequence,
  session_id: one.session_id,
  root: one.root,
  status,
  receipt: one.receipt,
})
