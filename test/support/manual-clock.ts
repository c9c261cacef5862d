/** Time that stands still until a test moves it. */
import type { Clock } from '../../src/kernel/clock.ts'

interface Timer {
  readonly at: number
  readonly work: () => void
}

export class ManualClock implements Clock {
  #wall: number
  #elapsed = 0
  readonly #timers = new Set<Timer>()

  constructor(now = Date.UTC(2026, 4, 1, 10)) {
    this.#wall = now
  }

  now(): number {
    return this.#wall
  }

  monotonic(): number {
    return this.#elapsed
  }

  after(ms: number, work: () => void): () => void {
    const timer = { at: this.#elapsed + ms, work }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that have not fired: what is left of them at the end of a test has leaked. */
  get pending(): number {
    return this.#timers.size
  }

  /** Fires what is due within `ms`, in order, and lets its consequences happen; both clocks go on. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsed + ms
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.#move(Math.max(due.at, this.#elapsed))
      due.work()
      await settled()
    }
    this.#move(until)
    await settled()
  }

  /** Somebody sets the machine's clock: wall time jumps, timers do not notice. */
  step(ms: number): void {
    this.#wall += ms
  }

  /** The process stands still: time passes on both clocks, and no timer fires before the next `advance`. */
  pause(ms: number): void {
    this.#move(this.#elapsed + ms)
  }

  /** Work that takes so long: no timer fires meanwhile. */
  pass(ms: number): void {
    this.#move(this.#elapsed + ms)
  }

  #move(elapsed: number): void {
    // Work that took its time may have passed what was waited for.
    if (elapsed <= this.#elapsed) return
    this.#wall += elapsed - this.#elapsed
    this.#elapsed = elapsed
  }
}

/** Lets promises and group commits that are under way happen. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve))
}
