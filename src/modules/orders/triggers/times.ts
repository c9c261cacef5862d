/** Times of cron orders: each schedule is made once, and what is next is worked out once. */
import { createSchedule, type Schedule } from '../../../automation/cron.ts'
import type { ResolvedOrder } from '../definitions/definition.ts'

interface Known {
  readonly key: string
  readonly schedule: Schedule
  /** The next time after that one. */
  after: number
  next: number | undefined
}

export class Times {
  readonly #known = new Map<string, Known>()

  /** The next time, and the last one until now that is behind `since`. */
  of(order: ResolvedOrder, since: number, now: number): { next: number | undefined; open: number | undefined } {
    const known = this.#of(order)
    if (known === undefined) return { next: undefined, open: undefined }
    const isKnown = known.after <= since && (known.next === undefined || known.next > since)
    if (!isKnown) this.#ask(known, since)
    // Nothing between what is decided and now: the answer is the same at every look until then.
    if (known.next === undefined || known.next > now) return { next: known.next, open: undefined }
    const latest = known.schedule.latest(now)
    return { next: known.schedule.next(now), open: latest !== undefined && latest > since ? latest : undefined }
  }

  #ask(known: Known, since: number): void {
    known.after = since
    known.next = known.schedule.next(since)
  }

  #of({ scoped, definition, zone }: ResolvedOrder): Known | undefined {
    if (definition?.trigger.kind !== 'cron') return undefined
    const key = `${zone} ${definition.trigger.schedule}`
    const before = this.#known.get(scoped)
    if (before?.key === key) return before
    const known: Known = {
      key,
      schedule: createSchedule(definition.trigger.schedule, zone),
      after: Number.POSITIVE_INFINITY,
      next: undefined,
    }
    this.#known.set(scoped, known)
    return known
  }

  /** Those that there are no more. */
  keep(scoped: ReadonlySet<string>): void {
    for (const name of this.#known.keys()) if (!scoped.has(name)) this.#known.delete(name)
  }
}
