/**
 * Deletes closed beads of types that are kept for a while only (`[beads.policies.<type>] delete_after_close`).
 *
 * P1  A bead goes soon after that time has passed since it was closed, with its event; never before. What something open is
 *     below, depends on or tracks stays until that is over, however old it is; so does what a molecule is at.
 * P2  A write deletes a slice, so that others have their turn in between; what a crash leaves goes after the next start.
 * P3  While the clock cannot tell how old something is, nothing goes.
 * P4  Without such types there is no timer, and nothing is read.
 */
import { parseDurationMs } from '../../../contract/base/durations.ts'
import { type Clock, nextTurn } from '../../../kernel/clock.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { BeadRecord } from '../store/record.ts'
import { type BeadStore, MAX_REMOVED_IN_SLICE } from '../store/store.ts'
import type { WorkConfig } from './city.ts'
import { keptAmong, type WorkSteps } from './steps.ts'

export interface ExpiryDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write'>
  readonly events: Pick<EventLog, 'agesCount' | 'onCommit'>
  readonly beads: Pick<BeadStore, 'load' | 'inUse' | 'sliceOf' | 'removeSome'>
  readonly clock: Clock
  readonly log: Logger
  readonly steps: WorkSteps
  readonly policies: () => WorkConfig['beads']['policies']
}

/** What stays because it is in use is looked at again after this, and a clock that was set is noticed. */
const LONGEST_SLEEP_MS = 3_600_000
const RETRY_MS = 5_000
/** What closes one after the other goes together. */
const SOONEST_MS = 1_000

/** A type, and how long its closed beads are kept. */
interface Rule {
  readonly type: string
  readonly keptMs: number
}

/** Where a look at the closed beads of a type goes on. */
interface Place {
  readonly at: number
  readonly id: string
}

const CLOSED = `FROM beads INDEXED BY beads_closed_type WHERE issue_type = ? AND closed_at IS NOT NULL`
const RIPE = `SELECT id, closed_at ${CLOSED} AND (closed_at, id) > (?, ?) AND closed_at <= ?
  ORDER BY closed_at, id LIMIT ${MAX_REMOVED_IN_SLICE}`
const NEXT = `SELECT closed_at ${CLOSED} AND closed_at > ? ORDER BY closed_at LIMIT 1`

export class Expiry {
  readonly #deps: ExpiryDeps
  #rules: readonly Rule[] = []
  #wakesAt = Number.POSITIVE_INFINITY
  #working = false
  #stopped = false
  #cancel: (() => void) | undefined
  #unsubscribe: (() => void) | undefined

  constructor(deps: ExpiryDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#unsubscribe = this.#deps.events.onCommit((events) => {
      if (this.#rules.length > 0 && events.some(({ type }) => type === 'bead.closed')) this.#closed()
    })
    this.configured()
  }

  /** There may be other policies than before. */
  configured(): void {
    const policies = Object.entries(this.#deps.policies() ?? {})
    this.#rules = policies.flatMap(([type, { delete_after_close: kept = 'off' }]) =>
      kept === 'off' ? [] : [{ type, keptMs: parseDurationMs(kept) }],
    )
    if (this.#rules.length > 0) this.#armAt(this.#deps.clock.now())
    else this.#disarm()
  }

  stop(): void {
    this.#stopped = true
    this.#unsubscribe?.()
    this.#disarm()
  }

  #closed(): void {
    this.#armAt(this.#deps.clock.now() + Math.min(...this.#rules.map(({ keptMs }) => keptMs)))
  }

  #disarm(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#wakesAt = Number.POSITIVE_INFINITY
  }

  #armAt(at: number): void {
    if (this.#stopped || at >= this.#wakesAt) return
    this.#wakesAt = at
    if (this.#working) return
    this.#cancel?.()
    const ms = Math.min(Math.max(at - this.#deps.clock.now(), SOONEST_MS), LONGEST_SLEEP_MS)
    this.#cancel = this.#deps.clock.after(ms, () => void this.#wake())
  }

  async #wake(): Promise<void> {
    const { clock, log, events } = this.#deps
    this.#disarm()
    this.#working = true
    let next = clock.now() + LONGEST_SLEEP_MS
    try {
      const rules = events.agesCount() ? this.#rules : []
      for (const rule of rules) next = Math.min(next, await this.#sweep(rule))
    } catch (error) {
      if (!this.#stopped) log.warn({ err: error }, 'closed beads not deleted yet')
      next = clock.now() + RETRY_MS
    }
    this.#working = false
    // What came up meanwhile has its time already, without a timer.
    const at = Math.min(next, this.#wakesAt)
    this.#disarm()
    if (this.#rules.length > 0) this.#armAt(at)
  }

  /** Deletes what is old enough; when the next of this type will be. */
  async #sweep(rule: Rule): Promise<number> {
    const { db, beads, clock, log } = this.#deps
    const upTo = clock.now() - rule.keptMs
    let deleted = 0
    for (let after: Place = { at: -1, id: '' }; this.#holds(rule); await nextTurn()) {
      const page = db
        .all(RIPE, rule.type, after.at, after.id, upTo)
        .map((row) => ({ at: Number(row.closed_at), id: String(row.id) }))
      const slice = page.slice(0, beads.sliceOf(page.map(({ id }) => id)))
      deleted += await this.#removeAll(rule, slice, upTo)
      after = slice.at(-1) ?? after
      if (page.length < MAX_REMOVED_IN_SLICE && slice.length === page.length) break
    }
    if (deleted > 0) log.info({ type: rule.type, deleted }, 'closed beads deleted, as their policy says')
    const next = db.get(NEXT, rule.type, upTo)
    return next === undefined ? Number.POSITIVE_INFINITY : Number(next.closed_at) + rule.keptMs
  }

  /** Whether nobody has said otherwise since. */
  #holds(rule: Rule): boolean {
    return !this.#stopped && this.#rules.includes(rule)
  }

  /** First the edges that closed beads have to these go, a slice in each write. */
  async #removeAll(rule: Rule, page: readonly Place[], upTo: number): Promise<number> {
    const ids = page.map(({ id }) => id)
    while (this.#holds(rule) && this.#ripe(ids, rule, upTo).length > 0) {
      const removed = await this.#deps.db.write((tx) => this.#remove(tx, ids, rule, upTo))
      if (removed > 0) return removed
      await nextTurn()
    }
    return 0
  }

  #remove(tx: Tx, ids: readonly string[], rule: Rule, upTo: number): number {
    const ripe = this.#ripe(ids, rule, upTo)
    return this.#deps.beads.removeSome(tx, childrenFirst(ripe), 'supervisor', MAX_REMOVED_IN_SLICE)
  }

  /** Those of them that are to go by now. */
  #ripe(ids: readonly string[], { type }: Rule, upTo: number): readonly BeadRecord[] {
    const { beads, steps } = this.#deps
    const old = beads
      .load(ids)
      .filter(({ issue_type, closed_at }) => issue_type === type && closed_at !== null && closed_at <= upTo)
    const names = old.map(({ id }) => id)
    const used = beads.inUse(names).union(keptAmong(steps, names))
    return old.filter(({ id }) => !used.has(id))
  }
}

function childrenFirst(records: readonly BeadRecord[]): readonly BeadRecord[] {
  const parents = new Map(records.map(({ id, parent }) => [id, parent]))
  const depth = (id: string): number => {
    let above = 0
    for (let at = parents.get(id); at != null && parents.has(at); at = parents.get(at)) above++
    return above
  }
  return records
    .map((record) => ({ record, above: depth(record.id) }))
    .sort((a, b) => b.above - a.above)
    .map(({ record }) => record)
}
