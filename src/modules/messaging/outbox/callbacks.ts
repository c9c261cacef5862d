/**
 * Posts deliveries to adapters that have a callback (decisions 143, 144, 150).
 *
 * C1  At most eight are under way for an adapter; of a conversation one, which the store sees to.
 * C2  An attempt is on disk before its call begins. Where the process dies meanwhile it is made again.
 * C3  Whoever ends this ends the calls too; what they would have said is not recorded, and they are made again.
 */
import type { Transport } from '../../../contract/messaging/adapters.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { LONGEST_SLEEP_MS } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import { sign } from '../../../messaging/signature.ts'
import { type Adapter, type AdapterKey, nameOfKey } from '../adapters/adapter.ts'
import type { Adapters } from '../adapters/registry.ts'
import { below } from '../adapters/url.ts'
import type { EntryRow } from '../entries/rows.ts'
import { outcomeOf, silence } from './answers.ts'
import type { Delivery } from './delivery.ts'
import type { Outbox } from './outbox.ts'
import { type Post, type Posted, post } from './post.ts'
import { ENTRY_GONE, type Outcome } from './rules.ts'

const MAX_UNDER_WAY = 8
/** Where the store took no write. */
const TRIED_AGAIN_MS = 1_000

/** What is said, with where. */
export interface Said {
  readonly conversation: Conversation
  readonly entry: EntryRow
}

export interface CallbacksDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly adapters: Adapters
  readonly outbox: Outbox
  /** Undefined: it is gone. */
  readonly said: (delivery: Delivery) => Said | undefined
  /** Absent: a real one. */
  readonly call?: (post: Post, clock: Clock, signal: AbortSignal) => Promise<Posted>
}

export class Callbacks {
  readonly #deps: CallbacksDeps
  readonly #lanes = new Map<string, Lane>()
  readonly #ending = new AbortController()

  constructor(deps: CallbacksDeps) {
    this.#deps = deps
  }

  /** Follows an adapter as it is now: after its registration, and after each change. */
  follow({ provider, account_id, transport }: AdapterKey & { readonly transport: Transport }): void {
    const name = nameOfKey({ provider, account_id })
    if (this.#ending.signal.aborted) return
    if (transport !== 'callback') {
      this.leave({ provider, account_id })
      return
    }
    const lane = this.#lanes.get(name) ?? new Lane({ provider, account_id }, this.#deps, this.#ending.signal)
    this.#lanes.set(name, lane)
    lane.look()
  }

  leave(key: AdapterKey): void {
    this.#lanes.get(nameOfKey(key))?.close()
    this.#lanes.delete(nameOfKey(key))
  }

  /** Ends what is under way, and waits for it. */
  async close(): Promise<void> {
    this.#ending.abort(new Error('the city stops'))
    const lanes = [...this.#lanes.values()]
    this.#lanes.clear()
    for (const lane of lanes) lane.close()
    await Promise.all(lanes.map((lane) => lane.idle()))
  }
}

/** The calls to one adapter. */
class Lane {
  readonly #key: AdapterKey
  readonly #deps: CallbacksDeps
  readonly #ending: AbortSignal
  readonly #underWay = new Set<Promise<void>>()
  readonly #unlisten: () => void
  #looking: Promise<void> | undefined
  #again = false
  #closed = false
  #cancel: () => void = () => {}

  constructor(key: AdapterKey, deps: CallbacksDeps, ending: AbortSignal) {
    this.#key = key
    this.#deps = deps
    this.#ending = ending
    this.#unlisten = deps.outbox.onDue(key, () => this.look())
  }

  close(): void {
    this.#closed = true
    this.#unlisten()
    this.#cancel()
  }

  async idle(): Promise<void> {
    await this.#looking
    await Promise.all(this.#underWay)
  }

  /** Begins what is due, as far as there is room. */
  look(): void {
    this.#again = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      if (this.#again) this.look()
    })
  }

  async #look(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false
      this.#cancel()
      try {
        await this.#beginDue()
      } catch (error) {
        this.#deps.log.warn({ err: error, adapter: nameOfKey(this.#key) }, 'deliveries not begun')
        this.#lookIn(TRIED_AGAIN_MS)
      }
    }
    if (this.#closed) this.#again = false
  }

  async #beginDue(): Promise<void> {
    const { adapters, outbox, clock } = this.#deps
    const adapter = adapters.find(this.#key.provider, this.#key.account_id)
    const room = MAX_UNDER_WAY - this.#underWay.size
    // One that ends makes room, and looks.
    if (adapter === undefined || adapter.transport !== 'callback' || room <= 0) return
    const at = outbox.dueAt(adapter)
    if (at === undefined) return
    const wait = at - clock.now()
    if (wait > 0) this.#lookIn(wait)
    else await this.#begin(room)
  }

  #lookIn(ms: number): void {
    this.#cancel = this.#deps.clock.after(Math.min(ms, LONGEST_SLEEP_MS), () => this.look())
  }

  async #begin(room: number): Promise<void> {
    const { db, adapters, outbox } = this.#deps
    const { provider, account_id } = this.#key
    const begun = await db.write((tx) => {
      const adapter = adapters.find(provider, account_id, tx)
      if (adapter?.transport !== 'callback') return undefined
      return { adapter, taken: outbox.take(tx, adapter, room, undefined) }
    })
    if (begun === undefined) return
    for (const delivery of begun.taken) this.#run(begun.adapter, delivery)
    // There may be more due than there was room for at the time.
    this.#again = true
  }

  #run(adapter: Adapter, delivery: Delivery): void {
    const running = this.#attempt(adapter, delivery).finally(() => {
      this.#underWay.delete(running)
      this.look()
    })
    this.#underWay.add(running)
  }

  async #attempt(adapter: Adapter, delivery: Delivery): Promise<void> {
    const outcome = await this.#call(adapter, delivery)
    if (this.#ending.aborted) return
    await this.#record(delivery, outcome)
  }

  async #call(adapter: Adapter, delivery: Delivery): Promise<Outcome> {
    const { clock, said, adapters, call = post } = this.#deps
    const message = said(delivery)
    if (message === undefined) return { delivered: false, ...ENTRY_GONE }
    try {
      const secrets = adapters.secrets(adapter).map(({ secret }) => secret)
      return outcomeOf(
        await call(postOf(adapter, delivery, message, secrets, clock.now()), clock, this.#ending),
        clock.now(),
      )
    } catch (error) {
      return { delivered: false, ...silence(error) }
    }
  }

  /** Until it is on disk: what was delivered would be delivered again. */
  async #record({ id, attempts }: Delivery, outcome: Outcome): Promise<void> {
    const { db, outbox, clock, log } = this.#deps
    for (;;) {
      try {
        return await db.write((tx) => {
          const now = outbox.find(id, tx)
          if (now === undefined) return
          if (outcome.delivered) outbox.delivered(tx, now, outcome.receipt)
          else outbox.failed(tx, now, attempts, outcome)
        })
      } catch (error) {
        log.warn({ err: error, delivery: id }, 'the outcome of a delivery is not recorded yet')
        if (this.#ending.aborted) return
        await new Promise<void>((resolve) => clock.after(TRIED_AGAIN_MS, resolve))
      }
    }
  }
}

function postOf(
  adapter: Adapter,
  delivery: Delivery,
  { conversation, entry }: Said,
  secrets: readonly string[],
  now: number,
): Post {
  const { id, attempts, session_id } = delivery
  const { replyTo, sequence, transcriptId } = entry
  const body = Buffer.from(
    JSON.stringify({
      delivery_id: id,
      idempotency_key: id,
      attempt: attempts,
      ...(session_id === undefined ? {} : { session_id }),
      conversation,
      transcript_id: transcriptId,
      sequence,
      text: entry.text,
      ...(replyTo === undefined ? {} : { reply_to_message_id: replyTo }),
      attachments: entry.attachments,
      metadata: entry.metadata,
    }),
  )
  return {
    url: below(adapter.callback_url ?? '', 'publish'),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'x-svc-request': 'true',
      ...(secrets.length === 0 ? {} : sign(secrets, id, now, body)),
    },
    body,
  }
}
