/** What all bridges do: be registered, carry both ways, say how they are, and end well. */
import { backoffMs } from '../../client/backoff.ts'
import { delay } from '../../client/clock.ts'
import { Carrying, type Chat, isRefusal } from './carrying.ts'
import type { Journal } from './journal.ts'
import { reasonOf } from './log.ts'
import { Posting } from './posting.ts'
import type { Supervisor } from './shapes.ts'
import { Unusable, type World } from './world.ts'

const RENEWED_EVERY_MS = 30_000
const HEALTH_EVERY_MS = 60_000
/** What is being said when the bridge is asked to end may still be said for so long. */
const LAST_WORDS_MS = 10_000

export class Bridge {
  readonly posting: Posting
  readonly #supervisor: Supervisor
  readonly #journal: Journal
  readonly #world: World
  readonly #ending: AbortSignal

  /** `ending`: it is asked to end. */
  constructor(supervisor: Supervisor, journal: Journal, world: World, ending: AbortSignal) {
    this.#supervisor = supervisor
    this.#journal = journal
    this.#world = world
    this.#ending = ending
    this.posting = new Posting({
      supervisor,
      journal,
      world,
      onUnknown: () => supervisor.register(ending),
    })
  }

  /** Until it is asked to end. Throws `Unusable` where the supervisor will not have it. */
  async run(chat: Chat): Promise<void> {
    const ending = this.#ending
    const over = new AbortController()
    const carrying = new Carrying({ chat, supervisor: this.#supervisor, journal: this.#journal, world: this.#world })
    await this.#register()
    if (ending.aborted) return
    carrying.resume(over.signal)
    await Promise.all([
      carrying.claim(ending, over.signal),
      this.posting.run(ending),
      this.#every(RENEWED_EVERY_MS, () => this.#renew()),
      this.#every(HEALTH_EVERY_MS, () => this.#tell(chat, carrying)),
    ])
    this.#world.log.info('ending', { in_flight: carrying.open })
    const cancel = this.#world.clock.after(LAST_WORDS_MS, () => over.abort(new Error('the bridge ends')))
    await carrying.idle()
    cancel()
  }

  async #register(): Promise<void> {
    for (let failures = 0; !this.#ending.aborted; failures += 1) {
      try {
        await this.#supervisor.register(this.#ending)
        return this.#world.log.info('registered')
      } catch (error) {
        if (this.#ending.aborted) return
        if (isRefusal(error) || isDenied(error))
          throw new Unusable(`the supervisor does not take the adapter: ${reasonOf(error)}`)
        this.#world.log.warn('cannot register yet', { reason: reasonOf(error), failures })
        await delay(this.#world.clock, backoffMs(failures, this.#world.random()), this.#ending).catch(() => undefined)
      }
    }
  }

  async #renew(): Promise<void> {
    try {
      await this.#supervisor.register(this.#ending)
    } catch (error) {
      if (!this.#ending.aborted) this.#world.log.warn('cannot renew the registration', { reason: reasonOf(error) })
    }
  }

  #tell(chat: Chat, carrying: Carrying): void {
    this.#world.log.info('health', { ...chat.health(), waiting: this.#journal.waiting(), in_flight: carrying.open })
  }

  async #every(ms: number, work: () => Promise<void> | void): Promise<void> {
    while (!this.#ending.aborted) {
      await delay(this.#world.clock, ms, this.#ending).catch(() => undefined)
      if (!this.#ending.aborted) await work()
    }
  }
}

const isDenied = (error: unknown): boolean =>
  error instanceof Error && 'status' in error && (error.status === 401 || error.status === 403)
