/** Tells what depends on a bead that closed or opened, where one write could not tell all of it (store/shifts.ts). */
import { type Clock, nextTurn } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import { isShifting } from '../store/shifts.ts'
import type { BeadStore } from '../store/store.ts'

export interface ShiftingDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write'>
  readonly beads: Pick<BeadStore, 'shiftOn'>
  readonly clock: Clock
  readonly log: Logger
}

const RETRY_MS = 5_000

export class Shifting {
  readonly #deps: ShiftingDeps
  #working = false
  #stopped = false
  #cancel: (() => void) | undefined

  constructor(deps: ShiftingDeps) {
    this.#deps = deps
  }

  /** The city starts: a crash may have left some. */
  start(): void {
    if (isShifting(this.#deps.db)) this.noticed()
  }

  /** There is something to tell. */
  noticed(): void {
    if (this.#working || this.#stopped) return
    this.#working = true
    void this.#work()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  async #work(): Promise<void> {
    const { db, beads, clock, log } = this.#deps
    try {
      // A slice at a time, so that others have their turn in between.
      for (let more = true; more && !this.#stopped; await nextTurn()) more = await db.write((tx) => beads.shiftOn(tx))
      this.#working = false
      if (!this.#stopped && isShifting(db)) this.noticed()
    } catch (error) {
      this.#working = false
      if (this.#stopped) return
      log.warn({ err: error }, 'dependents not told yet')
      this.#cancel = clock.after(RETRY_MS, () => this.noticed())
    }
  }
}
