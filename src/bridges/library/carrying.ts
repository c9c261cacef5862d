/**
 * The way out: claims what is to be said, has it said, and tells the supervisor what became of it.
 *
 * C1  What is done in the journal is acknowledged and never said again.
 * C2  Nothing is said without a lease: what a killed bridge had begun goes on only while its lease lasts.
 */
import { backoffMs } from '../../client/backoff.ts'
import { delay } from '../../client/clock.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { Journal, Progress } from './journal.ts'
import { type LogFields, reasonOf } from './log.ts'
import type { Delivery, Outcome, Supervisor } from './shapes.ts'
import type { World } from './world.ts'

const MOST_AT_ONCE = 50
const CLAIMED_AT_ONCE = 20

/** What speaks with the provider. */
export interface Chat {
  /** Resolves when something could be said. */
  ready(signal: AbortSignal): Promise<void>
  /** Says what was not said before, part by part; `said` is called for each that is in the chat for certain. */
  say(
    delivery: Delivery,
    progress: Progress,
    said: (part: number, messageId: string) => void,
    signal: AbortSignal,
  ): Promise<Outcome>
  health(): LogFields
}

interface Parts {
  readonly chat: Chat
  readonly supervisor: Supervisor
  readonly journal: Journal
  readonly world: World
}

export class Carrying {
  readonly #parts: Parts
  readonly #open = new Map<string, Promise<void>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get open(): number {
    return this.#open.size
  }

  /** Resolves when nothing is on its way any more. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.values())
  }

  /** Goes on with what an earlier life had begun. `signal` ends it. */
  resume(signal: AbortSignal): void {
    const { journal, world } = this.#parts
    for (const delivery of journal.open()) {
      const isDone = journal.progress(delivery.delivery_id).messageId !== undefined
      if (isDone || delivery.lease_expires_at > world.clock.now()) this.#start(delivery, signal)
      else journal.settled(delivery.delivery_id)
    }
  }

  /** Claims until `claiming` is aborted; what was claimed goes on until `signal` is. */
  async claim(claiming: AbortSignal, signal: AbortSignal): Promise<void> {
    const { chat, supervisor, world } = this.#parts
    for (let failures = 0; !claiming.aborted; ) {
      try {
        await chat.ready(claiming)
        if (this.#open.size >= MOST_AT_ONCE) await Promise.race(this.#open.values())
        const claimed = await supervisor.claim(CLAIMED_AT_ONCE, claiming)
        failures = 0
        for (const delivery of claimed) this.#start(delivery, signal)
      } catch (error) {
        if (claiming.aborted) return
        world.log.warn('cannot claim deliveries', { reason: reasonOf(error), failures })
        await pause(world, failures, error, claiming)
        failures += 1
      }
    }
  }

  #start(delivery: Delivery, signal: AbortSignal): void {
    const { delivery_id: id } = delivery
    // Claimed again while it is still being said: its lease is longer now, and that is all.
    if (this.#open.has(id)) return
    const work = this.#carry(delivery, signal)
      .catch((error: unknown) => {
        if (!signal.aborted)
          this.#parts.world.log.error('delivery broke off', { delivery: id, reason: reasonOf(error) })
      })
      .finally(() => this.#open.delete(id))
    this.#open.set(id, work)
  }

  async #carry(delivery: Delivery, signal: AbortSignal): Promise<void> {
    const { chat, journal, world } = this.#parts
    const { delivery_id: id } = delivery
    const progress = journal.begin(delivery)
    if (progress.messageId !== undefined) return this.#ack(delivery, progress.messageId, signal)
    const outcome = await chat.say(delivery, progress, (part, messageId) => journal.said(id, part, messageId), signal)
    if (!outcome.delivered) return this.#fail(delivery, outcome, signal)
    journal.done(id, outcome.message_id)
    world.log.info('delivered', { delivery: id, message: outcome.message_id, attempt: delivery.attempt })
    await this.#ack(delivery, outcome.message_id, signal)
  }

  async #ack({ delivery_id: id, conversation }: Delivery, messageId: string, signal: AbortSignal): Promise<void> {
    const { supervisor, journal, world } = this.#parts
    await persist(world, 'acknowledge', id, signal, () => supervisor.ack(id, messageId, conversation, signal))
    journal.settled(id)
  }

  async #fail(delivery: Delivery, outcome: Outcome & { delivered: false }, signal: AbortSignal): Promise<void> {
    const { supervisor, journal, world } = this.#parts
    const { delivery_id: id, attempt } = delivery
    world.log.warn('not delivered', { delivery: id, attempt, failure: outcome.kind, reason: outcome.error })
    await persist(world, 'report', id, signal, () => supervisor.fail(id, attempt, outcome, signal))
    journal.settled(id)
  }
}

/** Until the supervisor has answered, whatever it says: what it refuses it does not want to know. */
async function persist(
  world: World,
  what: string,
  delivery: string,
  signal: AbortSignal,
  send: () => Promise<void>,
): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await send()
    } catch (error) {
      signal.throwIfAborted()
      const fields = { delivery, reason: reasonOf(error) }
      if (isRefusal(error)) return world.log.warn(`the supervisor does not take it: cannot ${what}`, fields)
      world.log.warn(`cannot ${what} yet`, fields)
      await pause(world, failures, error, signal)
    }
  }
}

const PASSING = [401, 403, 408, 425, 429]

/** The same again would be answered the same. */
export const isRefusal = (error: unknown): error is ApiProblem =>
  error instanceof ApiProblem &&
  error.status < 500 &&
  !PASSING.includes(error.status) &&
  error.code !== 'city-not-found'

/** Before the next try; as long as the server asks for, if it does. */
export async function pause(world: World, failures: number, error: unknown, signal: AbortSignal): Promise<void> {
  const asked = error instanceof ApiProblem ? error.retryAfterSec : undefined
  await delay(world.clock, backoffMs(failures, world.random(), asked), signal).catch(() => undefined)
}
