/**
 * How many starts are under way at once: a storm of them would starve what runs already. They begin one in each turn of
 * the loop, for a beginning works without a pause: it renders a prompt.
 */
import { nextTurn } from '../../../kernel/clock.ts'

export class Slots {
  readonly #limit: () => number
  readonly #waiting: (() => void)[] = []
  #taken = 0
  #begun: Promise<void> = Promise.resolve()

  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Resolves with the way to give the slot back, in the order of asking; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    while (this.#taken >= this.#limit()) await this.#turn(signal)
    this.#taken++
    let given = false
    const giveBack = () => {
      if (given) return
      given = true
      this.#taken--
      this.#waiting.shift()?.()
    }
    this.#begun = this.#begun.then(nextTurn)
    await this.#begun
    if (!signal.aborted) return giveBack
    giveBack()
    throw signal.reason
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const next = () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        const at = this.#waiting.indexOf(next)
        if (at >= 0) this.#waiting.splice(at, 1)
        // It was called while the abort was on its way: the turn goes to the one behind it.
        else this.#waiting.shift()?.()
        reject(signal.reason)
      }
      this.#waiting.push(next)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }
}
