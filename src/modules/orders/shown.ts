/** Orders as JSON: what an order comes to is kept as text for as long as nothing that it says is another. */
import type { Database } from '../../kernel/database.ts'
import type { ResolvedOrder } from './definitions/definition.ts'
import type { SeenOrder } from './orders.ts'
import { type LastRun, lastRuns, newestRuns, wireRun } from './runs/rows.ts'
import { wireOrder } from './wire.ts'

interface Known {
  readonly key: string
  readonly text: string
}

export class OrderTexts {
  /** What files and overrides say of an order is read anew as a whole, so that the object stands for all of it. */
  readonly #known = new WeakMap<ResolvedOrder, Known>()

  /** One for each, in the same order. */
  of(db: Database, seen: readonly SeenOrder[]): readonly string[] {
    const newest = newestRuns(db, scopedOf(seen))
    const keys = seen.map((one) => keyOf(one, newest.get(one.order.scoped)))
    const stale = seen.filter(({ order }, index) => this.#known.get(order)?.key !== keys[index])
    const runs = stale.length === 0 ? undefined : lastRuns(db, scopedOf(stale))
    return seen.map((one, index) => {
      const { order } = one
      const key = keys[index] ?? ''
      const known = this.#known.get(order)
      if (known?.key === key) return known.text
      const run = runs?.get(order.scoped)
      const text = JSON.stringify(wireOrder(one, run === undefined ? undefined : wireRun(run)))
      this.#known.set(order, { key, text })
      return text
    })
  }
}

const scopedOf = (seen: readonly SeenOrder[]): readonly string[] => seen.map(({ order }) => order.scoped)

/** Everything that may change while the order stays the same. */
function keyOf(seen: SeenOrder, run: LastRun | undefined): string {
  const { state, enabled, suspended, running, outlook, evaluatedAt, holdsLog, endsChain } = seen
  const next = outlook.kind === 'wait' ? outlook.next : undefined
  return `${run?.n} ${run?.status} ${running} ${state.enabled} ${enabled} ${suspended} ${holdsLog} ${endsChain} ${evaluatedAt} ${next} ${outlook.kind} ${outlook.reason}\n${state.error ?? ''}`
}
