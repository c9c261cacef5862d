/** Servers throw out who sends too fast: a few lines at once, then one at a time. */
import { type Clock, delay } from '../../client/clock.ts'

const AT_ONCE = 5
const EVERY_MS = 2_000

export class Pace {
  readonly #clock: Clock
  /** When the next line would be due if nothing could be sent ahead. */
  #due = 0
  #turn: Promise<void> = Promise.resolve()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when one more line may go, in the order of asking. */
  take(signal: AbortSignal): Promise<void> {
    const turn = this.#turn.then(() => this.#wait(signal))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const ahead = (AT_ONCE - 1) * EVERY_MS
    const now = this.#clock.now()
    const wait = this.#due - ahead - now
    if (wait > 0) await delay(this.#clock, wait, signal)
    this.#due = Math.max(this.#due, this.#clock.now()) + EVERY_MS
  }
}
