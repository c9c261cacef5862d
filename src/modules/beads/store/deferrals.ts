/**
 * Beads whose date comes: `deferred` of each is cleared soon afterwards, so that what is looked for among is what still
 * waits. The date itself stays, nothing of the bead changes that anybody sees, and no event tells of it: whether a bead is
 * ready is a matter of its date alone, before and after.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'

export interface DeferralsDeps {
  readonly db: Pick<Database, 'get' | 'write'>
  readonly clock: Clock
  readonly log: Logger
}

/** Timers of more than 24 days fire at once, and a clock that was set is noticed sooner. */
const LONGEST_SLEEP_MS = 3_600_000
const RETRY_MS = 5_000
/** In one write: other writers wait no longer than for these. */
const SLICE = 250
/** Dates that come one after the other are seen to together. */
const SOONEST_MS = 1_000

const NEXT = 'SELECT defer_until FROM beads INDEXED BY beads_deferred WHERE deferred = 1 ORDER BY defer_until LIMIT 1'
const CLEAR = `UPDATE beads SET deferred = 0 WHERE n IN (SELECT n FROM beads INDEXED BY beads_deferred
  WHERE deferred = 1 AND defer_until <= ? ORDER BY defer_until LIMIT ${SLICE})`

export class Deferrals {
  readonly #deps: DeferralsDeps
  #cancel: (() => void) | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(deps: DeferralsDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#arm()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** A bead waits for this date. */
  noticed(date: number): void {
    if (date < this.#wakesAt) this.#armAt(date)
  }

  #arm(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY
    const next = this.#deps.db.get(NEXT)
    if (next !== undefined) this.#armAt(Number(next.defer_until))
  }

  #armAt(date: number): void {
    if (this.#stopped) return
    this.#cancel?.()
    this.#wakesAt = date
    const ms = Math.min(Math.max(date - this.#deps.clock.now(), SOONEST_MS), LONGEST_SLEEP_MS)
    this.#cancel = this.#deps.clock.after(ms, () => void this.#wake())
  }

  async #wake(): Promise<void> {
    const { db, clock, log } = this.#deps
    try {
      for (let cleared = SLICE; cleared === SLICE && !this.#stopped; )
        cleared = await db.write((tx) => tx.run(CLEAR, clock.now()))
      if (!this.#stopped) this.#arm()
    } catch (error) {
      if (this.#stopped) return
      log.warn({ err: error }, 'dates of beads not looked at')
      this.#armAt(clock.now() + RETRY_MS)
    }
  }
}
