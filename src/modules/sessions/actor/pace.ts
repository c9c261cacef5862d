/**
 * Paces the loop of one session.
 *
 * P1  An effect that failed, or after which nothing differs, is tried again after a pause that grows. A situation that
 *     differs is tried at once, and other effects wait for nothing.
 * P2  After many effects without a rest in between the loop rests: whatever they change, other sessions get their turn.
 */
import { backoffMs } from '../../../kernel/backoff.ts'
import type { Clock } from '../../../kernel/clock.ts'

const PAUSE = { firstMs: 1_000, longestMs: 30_000 }
const MAX_EFFECTS_IN_A_ROW = 50

interface Hold {
  /** The situation that is not tried again yet. */
  readonly mark: string
  /** On the clock that only goes forward. */
  readonly until: number
  readonly failures: number
}

export class Pace<Kind extends string> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #holds = new Map<Kind, Hold>()
  #inARow = 0
  #restsUntil = 0

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** How long this effect waits in this situation, in ms; 0: it may be done now. */
  pauseMs(kind: Kind, mark: string): number {
    const now = this.#clock.monotonic()
    const rest = Math.max(this.#restsUntil - now, 0)
    const hold = this.#holds.get(kind)
    return hold?.mark === mark ? Math.max(hold.until - now, rest) : rest
  }

  /** Whether this effect waits, in whatever situation. */
  holds(kind: Kind): boolean {
    return (this.#holds.get(kind)?.until ?? 0) > this.#clock.monotonic()
  }

  /** The effect was done; it failed where `after` says nothing else than `before`. */
  did(kind: Kind, before: string, after: string): void {
    if (before === after) this.failed(kind, after)
    else this.#holds.delete(kind)
    if (++this.#inARow < MAX_EFFECTS_IN_A_ROW) return
    this.#inARow = 0
    this.#restsUntil = this.#clock.monotonic() + PAUSE.firstMs
  }

  failed(kind: Kind, mark: string): void {
    const failures = (this.#holds.get(kind)?.failures ?? 0) + 1
    const until = this.#clock.monotonic() + backoffMs(PAUSE, failures)
    this.#holds.set(kind, { mark, until, failures })
  }

  /** There is nothing to do until something changes. */
  rested(): void {
    this.#inARow = 0
  }
}
