/** Work that is wished for more often than it can be done: once after the last wish, one at a time, with pauses. */
import { type Clock, delay } from '../../client/clock.ts'

export class Paced {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #paceMs: number
  readonly #work: () => Promise<void>
  #isWished = false
  #running: Promise<void> | undefined

  /** `work` handles its failures; one of it ends only what was wished. */
  constructor(clock: Clock, signal: AbortSignal, paceMs: number, work: () => Promise<void>) {
    this.#clock = clock
    this.#signal = signal
    this.#paceMs = paceMs
    this.#work = work
  }

  wish(): void {
    this.#isWished = true
    this.#running ??= this.#run()
      // The signal, which whoever gave it knows of.
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined
      })
  }

  async #run(): Promise<void> {
    // Wishes seldom come alone.
    await delay(this.#clock, this.#paceMs / 5, this.#signal)
    while (this.#isWished) {
      this.#isWished = false
      await this.#work()
      await delay(this.#clock, this.#paceMs, this.#signal)
    }
  }
}
