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
import { Due } from '../../../kernel/due.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { BeadRecord } from '../store/record.ts'
import { type BeadStore, MAX_REMOVED_IN_SLICE } from '../store/store.ts'
import type { WorkConfig } from './city.ts'
import { keptAmong, type WorkSteps } from './steps.ts'

export interface ExpiryDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write' | 'countDue'>
  readonly events: Pick<EventLog, 'agesCount' | 'onCommit'>
  readonly beads: Pick<BeadStore, 'load' | 'inUse' | 'sliceOf' | 'removeSome'>
  readonly clock: Clock
  readonly log: Logger
  readonly steps: WorkSteps
  readonly policies: () => WorkConfig['beads']['policies']
}

/** What stays because it is in use is looked at again after this. */
const AGAIN_MS = 3_600_000
/** What closes one after the other goes together. */
const TOGETHER_MS = 1_000

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
  /** When there may be something to delete. */
  #at = Number.POSITIVE_INFINITY
  #stopped = false
  #unsubscribe: (() => void) | undefined
  readonly #due: Due

  constructor(deps: ExpiryDeps) {
    this.#deps = deps
    const { db, clock, log } = deps
    this.#due = new Due({
      name: 'closed beads',
      db,
      clock,
      log,
      togetherMs: TOGETHER_MS,
      next: () => (this.#rules.length === 0 || this.#at === Number.POSITIVE_INFINITY ? undefined : this.#at),
      work: (now) => this.#sweepAll(now),
      // Whatever the clock was set to, what is due is found out again.
      adjust: () => {
        this.#at = Math.min(this.#at, clock.now())
      },
    })
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#deps.events.onCommit((events) => {
      if (this.#rules.length > 0 && events.some(({ type }) => type === 'bead.closed')) this.#closed()
    })
    this.configured()
    await this.#due.start()
  }

  /** There may be other policies than before. */
  configured(): void {
    const policies = Object.entries(this.#deps.policies() ?? {})
    this.#rules = policies.flatMap(([type, { delete_after_close: kept = 'off' }]) =>
      kept === 'off' ? [] : [{ type, keptMs: parseDurationMs(kept) }],
    )
    this.#at = this.#deps.clock.now()
    this.#due.changed()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe?.()
    await this.#due.stop()
  }

  #closed(): void {
    this.#at = Math.min(this.#at, this.#deps.clock.now() + Math.min(...this.#rules.map(({ keptMs }) => keptMs)))
    this.#due.changed()
  }

  async #sweepAll(now: number): Promise<void> {
    // What closes meanwhile brings it forward again.
    this.#at = now + AGAIN_MS
    for (const rule of this.#deps.events.agesCount() ? this.#rules : []) {
      const next = await this.#sweep(rule)
      this.#at = Math.min(this.#at, next)
    }
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
