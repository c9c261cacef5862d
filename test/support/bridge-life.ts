/** One life of the IRC bridge within a test, with a supervisor that only remembers. Time runs faster there. */
import { randomUUID } from 'node:crypto'
import { IrcChat } from '../../src/bridges/irc/chat.ts'
import type { Login } from '../../src/bridges/irc/link.ts'
import { Bridge } from '../../src/bridges/library/bridge.ts'
import { Journal } from '../../src/bridges/library/journal.ts'
import { Log } from '../../src/bridges/library/log.ts'
import { Occasion } from '../../src/bridges/library/occasion.ts'
import type { Conversation, Delivery, InboundMessage, Outcome, Supervisor } from '../../src/bridges/library/shapes.ts'
import type { World } from '../../src/bridges/library/world.ts'
import type { Clock } from '../../src/client/clock.ts'

const FASTER = 10

/** Ten seconds of it are one of ours. */
const fastClock: Clock = {
  now: () => Date.now() * FASTER - EPOCH * (FASTER - 1),
  after(ms, work) {
    const timer = setTimeout(work, ms / FASTER)
    return () => clearTimeout(timer)
  },
}
const EPOCH = Date.now()

export function testWorld(): World & { readonly logged: string[] } {
  const logged: string[] = []
  return {
    clock: fastClock,
    random: () => 0,
    newKey: randomUUID,
    log: new Log(fastClock, (line) => void logged.push(line)),
    logged,
  }
}

export class RememberingSupervisor implements Supervisor {
  readonly posted: InboundMessage[] = []
  readonly past: InboundMessage[] = []
  readonly acked = new Map<string, string>()
  readonly failed = new Map<string, Outcome>()
  readonly #open: Delivery[] = []
  readonly #more = new Occasion()

  async register(): Promise<void> {}

  give(delivery: Delivery): void {
    this.#open.push(delivery)
    this.#more.happened()
  }

  async claim(limit: number, signal: AbortSignal): Promise<readonly Delivery[]> {
    while (this.#open.length === 0) await this.#more.next(signal)
    return this.#open.splice(0, limit)
  }

  async ack(delivery: string, messageId: string): Promise<void> {
    this.acked.set(delivery, messageId)
  }

  async fail(delivery: string, _attempt: number, outcome: Outcome & { delivered: false }): Promise<void> {
    this.failed.set(delivery, outcome)
  }

  async post(message: InboundMessage): Promise<void> {
    this.posted.push(message)
  }

  async postPast(messages: readonly InboundMessage[]): Promise<void> {
    this.past.push(...messages)
  }
}

export interface LifeOptions {
  readonly port: number
  readonly channel: string
  /** Further ones. */
  readonly also?: readonly string[]
  readonly root: string
  readonly login?: Partial<Login>
}

export class BridgeLife implements AsyncDisposable {
  readonly supervisor = new RememberingSupervisor()
  readonly chat: IrcChat
  readonly world = testWorld()
  /** Resolves when the bridge has ended; rejects where it could not run. */
  readonly over: Promise<void>
  readonly #journal: Journal
  readonly #ending = new AbortController()
  readonly #cut = new AbortController()

  constructor({ port, channel, also = [], root, login }: LifeOptions) {
    this.#journal = new Journal(root)
    const bridge = new Bridge(this.supervisor, this.#journal, this.world, this.#ending.signal)
    const place = { host: '127.0.0.1', port, tls: false }
    this.chat = new IrcChat(
      {
        account: 'test',
        channels: [channel, ...also],
        login: { place, nick: 'svc', password: undefined, saslUser: undefined, ...login },
      },
      this.#journal,
      bridge.posting,
      this.world,
    )
    const connected = this.chat.run(this.#cut.signal)
    this.over = Promise.all([
      Promise.race([bridge.run(this.chat), connected.then(() => new Promise<void>(() => undefined))]),
    ]).then(() => undefined)
    this.over.catch(() => undefined)
  }

  ready(): Promise<void> {
    return this.chat.ready(AbortSignal.timeout(20_000))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error('the test ends'))
    await this.over.catch(() => undefined)
    this.#cut.abort(new Error('the test ends'))
    this.#journal[Symbol.dispose]()
  }
}

export const deliveryOf = (id: string, target: string, text: string, more: Partial<Delivery> = {}): Delivery => ({
  delivery_id: id,
  attempt: 1,
  conversation: conversationOf(target),
  text,
  attachments: [],
  lease_expires_at: fastClock.now() + 600_000,
  ...more,
})

const conversationOf = (target: string): Conversation => ({
  provider: 'irc',
  account_id: 'test',
  conversation_id: target,
  kind: target.startsWith('#') ? 'room' : 'dm',
})
