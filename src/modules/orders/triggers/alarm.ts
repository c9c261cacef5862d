/**
 * One timer for everything that waits for a time: it goes off at the earliest of them, and now and then to see whether
 * somebody set the clock. While nothing is due that costs one look at a number a minute, however many orders there are.
 */
import type { Clock } from '../../../kernel/clock.ts'

/** Timers know nothing of a clock that is set, nor of a machine that slept. */
const LONGEST_WAIT_MS = 30_000
/** Clocks are adjusted a little all the time. */
const JUMP_MS = 2_000

export class Alarm {
  readonly #clock: Clock
  readonly #rings: (due: readonly string[]) => void
  /** The clock was set: every time is to be worked out anew. */
  readonly #jumped: () => void
  readonly #times = new Map<string, number>()
  #earliest = Number.POSITIVE_INFINITY
  #cancel: (() => void) | undefined
  #armedFor = Number.POSITIVE_INFINITY
  #wall: number
  #elapsed: number
  #isOn = false

  constructor(clock: Clock, rings: (due: readonly string[]) => void, jumped: () => void) {
    this.#clock = clock
    this.#rings = rings
    this.#jumped = jumped
    this.#wall = clock.now()
    this.#elapsed = clock.monotonic()
  }

  start(): void {
    this.#isOn = true
    this.#wall = this.#clock.now()
    this.#elapsed = this.#clock.monotonic()
    this.#arm()
  }

  stop(): void {
    this.#isOn = false
    this.#disarm()
  }

  /** When this one is to ring; undefined: not at all. */
  set(name: string, at: number | undefined): void {
    const before = this.#times.get(name)
    if (before === at) return
    if (at === undefined) this.#times.delete(name)
    else this.#times.set(name, at)
    if (at !== undefined && at < this.#earliest) this.#earliest = at
    // The earliest went: the timer goes off once for nothing, which is cheaper than a look at all of them now.
    this.#arm()
  }

  #arm(): void {
    if (!this.#isOn || this.#times.size === 0) {
      this.#disarm()
      return
    }
    const now = this.#clock.now()
    const at = Math.min(Math.max(this.#earliest, now), now + LONGEST_WAIT_MS)
    if (this.#cancel !== undefined && this.#armedFor <= at) return
    this.#disarm()
    this.#armedFor = at
    this.#cancel = this.#clock.after(at - now, () => this.#goOff())
  }

  #disarm(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#armedFor = Number.POSITIVE_INFINITY
  }

  #goOff(): void {
    this.#cancel = undefined
    this.#armedFor = Number.POSITIVE_INFINITY
    const [now, elapsed] = [this.#clock.now(), this.#clock.monotonic()]
    const step = now - this.#wall - (elapsed - this.#elapsed)
    this.#wall = now
    this.#elapsed = elapsed
    if (Math.abs(step) > JUMP_MS) this.#jumped()
    if (now >= this.#earliest) {
      const due = [...this.#times].filter(([, at]) => at <= now).map(([name]) => name)
      for (const name of due) this.#times.delete(name)
      this.#earliest = Math.min(Number.POSITIVE_INFINITY, ...this.#times.values())
      if (due.length > 0) this.#rings(due)
    }
    this.#arm()
  }
}
