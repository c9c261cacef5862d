/**
 * Lets the leases of a city lapse in time.
 *
 * L1  No lease lapses before its time, and each does soon after it.
 * L2  A timer that comes much too late means that the machine slept or the process hung: holders could not renew either,
 *     so leases start again in full, as at the start of the city.
 * L3  One timer, one write at a time; without leases there is neither.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Claims } from './claim.ts'

export interface LeaseTimerDeps {
  readonly db: Pick<Database, 'write'>
  readonly claims: Pick<Claims, 'expire' | 'restartLeases' | 'nextExpiry'>
  readonly clock: Clock
  readonly log: Logger
}

/** Timers of more than 24 days fire at once, and a clock that was set is noticed sooner. */
const LONGEST_SLEEP_MS = 3_600_000
const MUCH_TOO_LATE_MS = 60_000
const RETRY_MS = 5_000

export class LeaseTimer {
  readonly #deps: LeaseTimerDeps
  #cancel: (() => void) | undefined
  #armedFor = Number.POSITIVE_INFINITY
  #working = false
  #stopped = false

  constructor(deps: LeaseTimerDeps) {
    this.#deps = deps
  }

  /** The city starts: nobody could renew while it was down. */
  async start(): Promise<void> {
    if (this.#deps.claims.nextExpiry() === undefined) return
    await this.#deps.db.write((tx) => this.#deps.claims.restartLeases(tx))
    this.#arm()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** A lease was given or renewed. */
  noticed(expiresAt: number): void {
    if (!this.#working && expiresAt < this.#armedFor) this.#armAt(expiresAt)
  }

  #arm(): void {
    const next = this.#deps.claims.nextExpiry()
    if (next === undefined) this.#armedFor = Number.POSITIVE_INFINITY
    else this.#armAt(next)
  }

  #armAt(at: number): void {
    if (this.#stopped) return
    this.#cancel?.()
    const now = this.#deps.clock.now()
    const wakeAt = Math.min(Math.max(at, now), now + LONGEST_SLEEP_MS)
    this.#armedFor = at
    this.#cancel = this.#deps.clock.after(wakeAt - now, () => void this.#wake(wakeAt))
  }

  async #wake(planned: number): Promise<void> {
    this.#working = true
    this.#cancel = undefined
    try {
      await this.#lapse(planned)
      this.#working = false
      if (!this.#stopped) this.#arm()
    } catch (error) {
      this.#working = false
      if (this.#stopped) return
      this.#deps.log.warn({ err: error }, 'leases not looked at')
      this.#armAt(this.#deps.clock.now() + RETRY_MS)
    }
  }

  async #lapse(planned: number): Promise<void> {
    const { db, claims, clock } = this.#deps
    const late = clock.now() - planned > MUCH_TOO_LATE_MS
    if (late) await db.write((tx) => claims.restartLeases(tx))
    // A batch at a time, so that other writes come in between.
    while (!this.#stopped && isDue(claims.nextExpiry(), clock.now())) await db.write((tx) => claims.expire(tx))
  }
}

const isDue = (at: number | undefined, now: number): boolean => at !== undefined && at <= now
