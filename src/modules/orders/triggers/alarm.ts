/** One timer for all orders that wait for a time: it goes off at the earliest of them, and knows when somebody set the clock. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'

export interface AlarmDeps {
  readonly db: Pick<Database, 'countDue'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly rings: (due: readonly string[]) => void
  /** The clock was set: every time is to be worked out again. */
  readonly jumped: () => void
}

export class Alarm {
  readonly #rings: AlarmDeps['rings']
  readonly #times = new Map<string, number>()
  #earliest = Number.POSITIVE_INFINITY
  readonly #due: Due

  constructor({ db, clock, log, rings, jumped }: AlarmDeps) {
    this.#rings = rings
    this.#due = new Due({
      name: 'orders',
      db,
      clock,
      log,
      next: () => (this.#times.size === 0 ? undefined : this.#earliest),
      work: (now) => this.#ring(now),
      adjust: ({ stepMs }) => {
        if (stepMs !== 0) jumped()
      },
    })
  }

  start(): Promise<void> {
    return this.#due.start()
  }

  stop(): Promise<void> {
    return this.#due.stop()
  }

  /** When this one is to ring; undefined: not at all. */
  set(name: string, at: number | undefined): void {
    const before = this.#times.get(name)
    if (before === at) return
    if (at === undefined) this.#times.delete(name)
    else this.#times.set(name, at)
    // Where the earliest went the timer goes off once for nothing, which is cheaper than a look at all of them now.
    if (at !== undefined && at < this.#earliest) this.#earliest = at
    if (this.#times.size === 0) this.#due.changed()
    else if (at !== undefined) this.#due.noticed(at)
  }

  #ring(now: number): void {
    const due = [...this.#times].filter(([, at]) => at <= now).map(([name]) => name)
    for (const name of due) this.#times.delete(name)
    this.#earliest = Math.min(Number.POSITIVE_INFINITY, ...this.#times.values())
    if (due.length > 0) this.#rings(due)
  }
}
