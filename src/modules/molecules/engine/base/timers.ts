/**
 * Timers of molecules: rows that are due at a time (decision 91).
 *
 * T1  What a timer does and its end are one write; a crash loses none and repeats none.
 * T2  One timer of the clock for all of them, one write at a time; a write does a batch, or as much as fits into a slice.
 * T3  Time-outs that passed while the city was down, or the machine slept, are due a minute after that; everything else at
 *     once. A timer that was set while the clock was ahead waits for no longer than it was set for.
 * T4  A timer that fails is done once more as a failure of its step; one that fails even so waits.
 */
import type { Clock } from '../../../../kernel/clock.ts'
import type { Database, Tx } from '../../../../kernel/database.ts'
import { Due, type Slice, type TimeChange } from '../../../../kernel/due.ts'
import type { Logger } from '../../../../kernel/log.ts'
import { Problem } from '../../../../kernel/problem.ts'

/**
 * `timeout`: of a step. `deadline`: of the molecule. `gate`: its time has come. `retry`: the next attempt. `check`: the
 * check once more. `go`: steps that wait for the next write. `scan`: older events of a gate. `event`: an event came.
 * `keep`: the molecule is deleted. `stop`: it has ended, and something of it is still under way.
 */
export type TimerKind = 'timeout' | 'deadline' | 'gate' | 'retry' | 'check' | 'go' | 'scan' | 'event' | 'keep' | 'stop'

export interface DueTimer {
  readonly step: number
  readonly kind: TimerKind
  readonly data: string | null
}

export interface TimersDeps {
  readonly db: Pick<Database, 'get' | 'write' | 'countDue'>
  readonly clock: Clock
  readonly logger: Logger
}

interface Firing {
  fire(tx: Tx, timer: DueTimer): void
  /** The timer failed so: its step does. */
  failed(tx: Tx, timer: DueTimer, why: string): void
  /** Deletes a molecule that was kept long enough; in writes of its own. */
  swept(step: number): Promise<void>
}

const BATCH = 50
const GRACE_MS = 60_000
/** The data of a timer that is for a date, and not for so long after it was set. */
export const CALENDAR = 'calendar'
const KINDS: ReadonlySet<string> = new Set<TimerKind>([
  'timeout',
  'deadline',
  'gate',
  'retry',
  'check',
  'go',
  'scan',
  'event',
  'keep',
  'stop',
])
const isKind = (value: unknown): value is TimerKind => typeof value === 'string' && KINDS.has(value)

export class Timers {
  readonly #deps: TimersDeps
  readonly #due: Due
  #firing: Firing | undefined
  /** The one that failed in the last write. */
  #broken: { readonly timer: DueTimer; readonly why: string } | undefined

  constructor(deps: TimersDeps) {
    this.#deps = deps
    this.#due = new Due({
      name: 'timers of molecules',
      db: deps.db,
      clock: deps.clock,
      log: deps.logger,
      next: () => this.#next(),
      work: (now, slice) => this.#fireSome(now, slice),
      adjust: (change) => this.#adjust(change),
    })
  }

  set(tx: Tx, step: number, kind: TimerKind, dueAt: number, data: string | null): void {
    const due = Math.ceil(dueAt)
    tx.run(
      'INSERT OR REPLACE INTO molecule_timers (step, kind, due_at, data, set_at) VALUES (?, ?, ?, ?, ?)',
      step,
      kind,
      due,
      data,
      this.#deps.clock.now(),
    )
    tx.afterCommit(() => this.#due.noticed(due))
  }

  drop(tx: Tx, step: number, kind: TimerKind): void {
    tx.run('DELETE FROM molecule_timers WHERE step = ? AND kind = ?', step, kind)
  }

  dropAll(tx: Tx, step: number): void {
    tx.run('DELETE FROM molecule_timers WHERE step = ?', step)
  }

  /** The city starts. */
  async start(firing: Firing): Promise<void> {
    this.#firing = firing
    await this.#due.start()
  }

  /** Resolves when nothing is under way any more. */
  stop(): Promise<void> {
    return this.#due.stop()
  }

  #next(): number | undefined {
    const row = this.#deps.db.get('SELECT due_at AS at FROM molecule_timers ORDER BY due_at LIMIT 1')
    return row === undefined ? undefined : Number(row.at)
  }

  /** T3 */
  #adjust({ stepMs, pausedMs }: TimeChange): Promise<void> {
    const now = this.#deps.clock.now()
    const wasAway = pausedMs > 0 || stepMs >= 0
    return this.#deps.db.write((tx) => {
      tx.run(
        `UPDATE molecule_timers SET due_at = due_at - (set_at - ?), set_at = ? WHERE set_at > ? AND data IS NOT ?`,
        now,
        now,
        now,
        CALENDAR,
      )
      if (!wasAway) return
      tx.run(
        `UPDATE molecule_timers SET due_at = ? WHERE due_at < ? AND kind IN ('timeout', 'deadline')`,
        now + GRACE_MS,
        now,
      )
    })
  }

  async #fireSome(now: number, slice: Slice): Promise<void> {
    const { db } = this.#deps
    const broken = this.#broken
    this.#broken = undefined
    const swept: number[] = []
    try {
      await db.write((tx) => {
        swept.length = 0
        if (broken !== undefined) return this.#failOne(tx, broken.timer, broken.why)
        for (const timer of this.#dueBy(tx, now)) {
          if (timer.kind === 'keep') swept.push(timer.step)
          else this.#fireOne(tx, timer)
          if (slice.isOver) break
        }
      })
    } catch (error) {
      if (this.#broken === undefined || (error instanceof Problem && error.code === 'unavailable')) throw error
      if (broken !== undefined) await this.#putOff(broken.timer)
    }
    for (const step of swept) await this.#firing?.swept(step)
  }

  #fireOne(tx: Tx, timer: DueTimer): void {
    try {
      tx.run('DELETE FROM molecule_timers WHERE step = ? AND kind = ?', timer.step, timer.kind)
      this.#firing?.fire(tx, timer)
    } catch (error) {
      this.#broken = { timer, why: error instanceof Error ? error.message : String(error) }
      throw error
    }
  }

  #failOne(tx: Tx, timer: DueTimer, why: string): void {
    this.#deps.logger.error({ step: timer.step, timer: timer.kind, why }, 'timer of a molecule failed')
    tx.run('DELETE FROM molecule_timers WHERE step = ? AND kind = ?', timer.step, timer.kind)
    try {
      this.#firing?.failed(tx, timer, why)
    } catch (error) {
      this.#broken = { timer, why }
      throw error
    }
  }

  async #putOff(timer: DueTimer): Promise<void> {
    this.#broken = undefined
    const { db, clock } = this.#deps
    const at = clock.now() + GRACE_MS
    await db.write((tx) => {
      tx.run('UPDATE molecule_timers SET due_at = ? WHERE step = ? AND kind = ?', at, timer.step, timer.kind)
    })
  }

  #dueBy(tx: Tx, now: number): readonly DueTimer[] {
    return tx
      .all(
        `SELECT step, kind, data FROM molecule_timers WHERE due_at <= ? ORDER BY due_at, step, kind LIMIT ${BATCH}`,
        now,
      )
      .map((row) => ({
        step: Number(row.step),
        kind: isKind(row.kind) ? row.kind : 'timeout',
        data: row.data === null ? null : String(row.data),
      }))
  }
}
