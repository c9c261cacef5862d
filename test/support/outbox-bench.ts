/** An outbox with adapters in a store of its own, for tests. */
import type { TestContext } from 'node:test'
import pino from 'pino'
import type { Transport } from '../../src/contract/messaging/adapters.ts'
import type { Tx } from '../../src/kernel/database.ts'
import { problem } from '../../src/kernel/problem.ts'
import { normalConversation } from '../../src/messaging/conversation.ts'
import { type Adapter, definitionOf } from '../../src/modules/messaging/adapters/adapter.ts'
import { Adapters } from '../../src/modules/messaging/adapters/registry.ts'
import type { Delivery } from '../../src/modules/messaging/outbox/delivery.ts'
import { Outbox, type Settled } from '../../src/modules/messaging/outbox/outbox.ts'
import { type Opened, opened } from '../../src/modules/messaging/testing.ts'
import { ManualClock } from './manual-clock.ts'

export class OutboxBench {
  readonly clock: ManualClock
  readonly store: Opened
  readonly adapters: Adapters
  readonly outbox: Outbox
  /** What was told of ends, in order. */
  readonly settled: Settled[] = []
  /** What chance says next. */
  chance = 0.5
  #said = 0

  constructor(t: Pick<TestContext, 'after'>, clock = new ManualClock()) {
    this.clock = clock
    t.after(() => {
      void this.outbox.close()
      void this.adapters.close()
    })
    this.store = opened(t, clock)
    const { db, log: events } = this.store
    const log = pino({ level: 'silent' })
    this.adapters = new Adapters({ db, events, clock, log })
    this.outbox = new Outbox({
      db,
      events,
      clock,
      log,
      random: () => this.chance,
      adapters: this.adapters,
      settled: (_, delivery) => void this.settled.push(delivery),
    })
  }

  async register(transport: Transport, account = 'a', url = 'http://127.0.0.1:9/'): Promise<Adapter> {
    const body = { provider: 'chat', account_id: account, transport }
    const definition = definitionOf(transport === 'callback' ? { ...body, callback_url: url } : body, () => '')
    const wanted = { secret: undefined, generate: false, actor: 'api' }
    const { adapter } = await this.write((tx) => this.adapters.register(tx, definition, wanted))
    return adapter
  }

  /** Says something in a conversation; its delivery. */
  async say(conversation: string, text = 'hello', account = 'a'): Promise<Delivery> {
    const ref = { provider: 'chat', account_id: account, conversation_id: conversation, kind: 'room' }
    const normal = normalConversation(ref, 'alpha')
    this.#said++
    const id = `dl-${this.#said}`
    await this.write((tx) => {
      const { id: transcript } = this.store.transcripts.ensure(tx, normal)
      const actor = { id: 'api', display_name: 'api', is_bot: false }
      const way = this.outbox.way(tx, normal)
      if (way === undefined) throw problem('no-adapter', 'nobody carries it')
      const draft = { kind: 'outbound', actor, text, deliveryId: id, deliveryStatus: way.status } as const
      const entry = this.store.transcripts.append(tx, transcript, draft)
      const { sequence } = entry
      way.enqueue(tx, { id, transcript_id: transcript, sequence, conversation: normal, root: 0, entry })
    })
    return this.get(id)
  }

  get(id: string): Delivery {
    const found = this.outbox.find(id)
    if (found === undefined) throw new Error(`no delivery ${id}`)
    return found
  }

  /** Begins what is due, as a claim would. */
  take(account = 'a', leaseMs = 60_000, limit = 100): Promise<readonly Delivery[]> {
    return this.write((tx) => this.outbox.take(tx, this.adapters.need('chat', account, tx), limit, leaseMs))
  }

  write<T>(change: (tx: Tx) => T): Promise<T> {
    return this.store.db.write(change)
  }

  /** Types of events with what they are about, from one sequence on. */
  events(after = 0): readonly string[] {
    const { log } = this.store
    return log.scan({}, { after, upTo: log.head }, 'asc', 1_000).events.map(({ type }) => type)
  }
}
