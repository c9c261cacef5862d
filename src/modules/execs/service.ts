/**
 * The commands of one running city: checks and conditions and commands of orders, by one runner (decisions 97 and 98).
 *
 * E1  A command that a committed transaction has begun ends once: its owner is told in the write that removes its row, or has
 *     cancelled it.
 * E2  Whatever the supervisor dies of, no command runs twice and none is forgotten: a start is committed before anything is
 *     started, and its claim tells whether it has begun.
 * E3  Each owner has slots of its own: so many of its commands have processes, the others wait in the order in which they were
 *     begun. Waiting costs no time: a time limit counts from the start, and owners are told of the start of what has waited.
 * E4  Where a command has ended, none of its processes runs any more, and no file of it is left.
 */

import { resolve } from 'node:path'
import { type Clock, delay, nextTurn } from '../../kernel/clock.ts'
import type { Database, Tx } from '../../kernel/database.ts'
import type { Stopping } from '../../kernel/family.ts'
import type { Logger } from '../../kernel/log.ts'
import { isDirectory } from '../../kernel/look.ts'
import { Problem, problem } from '../../kernel/problem.ts'
import { END, ERROR, endOf, NEVER_BEGAN, NOBODY_KNOWS, startError, type Why } from './ends.ts'
import { environmentOf, type Surroundings } from './environment.ts'
import { checked, LIMITS, SLOTS } from './limits.ts'
import {
  EXEC_OWNERS,
  type Exec,
  type ExecEnd,
  type ExecListener,
  type ExecOutcome,
  type ExecOwner,
  type ExecRuntime,
  type ExecStart,
  type NewExec,
} from './ports.ts'
import { bytesFor, secretsOf, tailText } from './redact.ts'
import * as rows from './store.ts'

export interface ExecsDeps extends Surroundings {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly runtime: ExecRuntime
  /** One has ended; told after the commit. */
  readonly ended: (kind: ExecEnd['kind']) => void
  /** The pack that is not trusted and has this directory; undefined where there is none. */
  readonly untrustedPack: (directory: string) => string | undefined
}

const POLL_MS = 200
/** Writes of an end that the disk, or its owner, refuses. */
const RETRY_MS = { first: 100, longest: 10_000 }
const MAX_REFUSALS = 5
/** How long the end of the supervisor waits for commands that are just ending. */
const LEAVE_MS = 3_000
/** One with processes, as this run of the supervisor knows it. */
interface Live {
  readonly row: rows.ExecRow
  /** Its wrapper was started by this process and has ended. */
  gone: boolean
  error: string | undefined
  cancelDeadline: () => void
  /** There once it has ended or is being ended; settled when that is recorded. */
  over: Promise<void> | undefined
}

export class Execs {
  readonly #deps: ExecsDeps
  readonly #listeners = new Map<ExecOwner, ExecListener>()
  readonly #live = new Map<string, Live>()
  /** Cancelled between the commit of their start and the start. */
  readonly #abandoned = new Set<string>()
  readonly #closing = new AbortController()
  #starting: Promise<void> = Promise.resolve()
  #isPolling = false

  constructor(deps: ExecsDeps) {
    this.#deps = deps
  }

  /** Who is told of the ends of its commands. */
  own(owner: ExecOwner, listener: ExecListener): void {
    this.#listeners.set(owner, listener)
  }

  /** It runs once the transaction has committed; true: it has to wait for a slot, and its owner is told of its start. */
  begin(tx: Tx, exec: NewExec): boolean {
    const { runtime, clock } = this.#deps
    const spec = checked(exec)
    if (rows.queueSpan(tx) >= LIMITS.queued)
      throw problem('unavailable', `${LIMITS.queued} commands are waiting already`)
    const isFree = rows.nextQueued(tx, exec.owner, 1).length === 0 && this.#room(tx, exec.owner) > 0
    rows.insert(tx, exec, spec, clock.now())
    const row = isFree ? rows.byId(tx, exec.id) : undefined
    if (row === undefined) return true
    const begun = rows.begun(tx, row, runtime.boot, clock.now())
    tx.afterCommit(() => this.#startSoon([begun]))
    return false
  }

  /** Its owner is not told. One that waits is gone at once, one that runs is ended after the commit. */
  cancel(tx: Tx, id: string): void {
    const row = rows.byId(tx, id)
    if (row === undefined || row.state === 'canceled') return
    if (row.state === 'queued') {
      rows.remove(tx, id)
      if (row.starts > 0) tx.afterCommit(() => this.#remove(id))
      return
    }
    rows.canceled(tx, id)
    tx.afterCommit(() => {
      const live = this.#live.get(id)
      if (live === undefined) this.#abandoned.add(id)
      else void this.#end(live, 'canceled')
    })
  }

  /** One that waits or runs. */
  find(id: string): Exec | undefined {
    return rows.byId(this.#deps.db, id)
  }

  get counts(): { readonly running: number; readonly queued: number } {
    return { running: rows.countActive(this.#deps.db), queued: rows.countQueued(this.#deps.db) }
  }

  /** Takes up what an earlier run of the supervisor has left. */
  async recover(): Promise<void> {
    const { db, runtime } = this.#deps
    for (const row of rows.active(db)) if (!this.#live.has(row.id)) await this.#takeUp(row)
    for (const id of runtime.list()) if (rows.byId(db, id) === undefined) this.#remove(id)
    await db.write((tx) => this.#promote(tx))
  }

  /** Ends what runs; where the supervisor ends and the city does not, it runs on. */
  async stop({ preserve, force }: Pick<Stopping, 'preserve' | 'force'>): Promise<void> {
    this.#closing.abort(new Error('the city stops'))
    await this.#starting
    if (!preserve) {
      const left = rows.active(this.#deps.db).map((row) => this.#live.get(row.id) ?? this.#watch(row))
      await Promise.all(left.map((live) => this.#end(live, 'stopped', force ? 0 : undefined)))
    }
    // What is just ending is recorded, so that the next run need not guess why it ended.
    const ending = [...this.#live.values()].flatMap(({ over }) => over ?? [])
    await Promise.race([Promise.all(ending), delay(this.#deps.clock, LEAVE_MS)])
    for (const live of this.#live.values()) live.cancelDeadline()
    this.#live.clear()
  }

  // --- Starting ----------------------------------------------------------------------------------------------------

  /** E3. What is promoted is started after the commit; what never comes so far, by the next run of the supervisor. */
  #promote(tx: Tx): void {
    const { runtime, clock } = this.#deps
    if (this.#closing.signal.aborted) return
    const begun = EXEC_OWNERS.flatMap((owner) =>
      rows.nextQueued(tx, owner, this.#room(tx, owner)).map((row) => rows.begun(tx, row, runtime.boot, clock.now())),
    )
    if (begun.length === 0) return
    tx.afterCommit(() => this.#startSoon(begun))
    for (const row of begun) this.#listeners.get(row.owner)?.started?.(tx, row)
  }

  #room(tx: Tx, owner: ExecOwner): number {
    if (this.#closing.signal.aborted) return 0
    return Math.max(0, SLOTS[owner] - (rows.activeByOwner(tx).get(owner) ?? 0))
  }

  /** One in a turn of the event loop: to start a process takes milliseconds. */
  #startSoon(begun: readonly rows.ExecRow[]): void {
    this.#starting = this.#starting.then(async () => {
      for (const row of begun) {
        await nextTurn()
        if (this.#closing.signal.aborted) return
        this.#start(row)
      }
    })
  }

  #start(row: rows.ExecRow): void {
    const live = this.#watch(row)
    if (this.#abandoned.delete(row.id)) return void this.#end(live, 'canceled')
    try {
      const refusal = this.#refusalOf(row)
      if (refusal !== undefined) throw new Error(refusal)
      const launch = {
        ...rows.startOf(row),
        command: row.command,
        cwd: this.#cwdOf(row),
        stdin: JSON.stringify(row.stdin),
      }
      this.#deps.runtime.start({ ...launch, env: environmentOf(row, this.#deps) }, (error) => {
        live.gone = true
        live.error = error
        this.#look(live)
      })
    } catch (error) {
      void this.#finish(live, { kind: 'not_started' }, startError(error))
    }
  }

  #refusalOf(row: rows.ExecRow): string | undefined {
    const pack = this.#deps.untrustedPack(row.about.file_dir)
    if (pack !== undefined)
      return `untrusted_pack: the pack ${pack} is not trusted: nothing of it is started until \`svcctl pack trust ${pack}\``
    const cwd = this.#cwdOf(row)
    return isDirectory(cwd) ? undefined : `the working directory ${cwd} is not there`
  }

  #cwdOf({ cwd }: rows.ExecRow): string {
    return resolve(this.#deps.city.path, cwd)
  }

  // --- Watching ----------------------------------------------------------------------------------------------------

  #watch(row: rows.ExecRow): Live {
    const live: Live = {
      // What it reads may be large, and is kept in the store.
      row: { ...row, stdin: null },
      gone: false,
      error: undefined,
      cancelDeadline: () => {},
      over: undefined,
    }
    this.#live.set(row.id, live)
    this.#setDeadline(live, row.timeout_ms)
    if (!this.#isPolling) void this.#poll()
    return live
  }

  #setDeadline(live: Live, ms: number): void {
    live.cancelDeadline()
    live.cancelDeadline = this.#deps.clock.after(ms, () => void this.#end(live, 'timed_out'))
  }

  /** Sees what no event tells: the end of one that was adopted, a wrapper that was killed, a flood. */
  async #poll(): Promise<void> {
    this.#isPolling = true
    while (this.#live.size > 0 && !this.#closing.signal.aborted) {
      await delay(this.#deps.clock, POLL_MS)
      for (const live of this.#live.values()) this.#look(live)
    }
    this.#isPolling = false
  }

  #look(live: Live): void {
    if (live.over !== undefined || this.#live.get(live.row.id) !== live) return
    const { runtime } = this.#deps
    const start = rows.startOf(live.row)
    const sight = runtime.look(start)
    if (sight.state === 'done') void this.#finish(live, endOf(sight))
    else if (sight.state === 'lost') void this.#finish(live, endOf(sight), NOBODY_KNOWS)
    else if (sight.state === 'running' && runtime.outputBytes(start) > runtime.maxOutputBytes)
      void this.#end(live, 'flooded')
    else if (sight.state !== 'running' && live.gone)
      void this.#finish(live, { kind: 'not_started' }, live.error ?? NEVER_BEGAN)
  }

  /** E2. */
  async #takeUp(row: rows.ExecRow): Promise<void> {
    const { runtime, db } = this.#deps
    const start = rows.startOf(row)
    const isOfThisBoot = row.boot === runtime.boot
    const mayRevoke = row.state === 'running' && isOfThisBoot
    const sight = runtime.look(start)
    const neverBegan = sight.state === 'revoked' || (sight.state === 'unclaimed' && mayRevoke && runtime.revoke(start))
    if (row.state === 'running' && neverBegan) {
      await db.write((tx) => {
        const begun = rows.begun(tx, row, runtime.boot, this.#deps.clock.now())
        tx.afterCommit(() => this.#startSoon([begun]))
      })
      return
    }
    const live = this.#watch(row)
    this.#abandoned.delete(row.id)
    if (row.state === 'canceled') return void this.#end(live, 'canceled')
    const now = runtime.look(start)
    if (now.state === 'done') return void this.#finish(live, endOf(now))
    if (now.state !== 'running') return void this.#finish(live, endOf(now), NOBODY_KNOWS)
    // The clock of the machine may have been set meanwhile: what counts is how long it runs.
    const elapsedMs = now.elapsedMs ?? this.#deps.clock.now() - (row.started_at ?? 0)
    this.#setDeadline(live, Math.max(0, Math.min(row.timeout_ms, row.timeout_ms - elapsedMs)))
  }

  // --- Ending ------------------------------------------------------------------------------------------------------

  /** Ends it, where it has not ended by itself. */
  #end(live: Live, why: Why, graceMs: number = LIMITS.graceMs): Promise<void> {
    live.over ??= this.#cut(live, why, graceMs)
    return live.over
  }

  #finish(live: Live, end: ExecEnd, error?: string): Promise<void> {
    live.over ??= this.#settle(live, end, error)
    return live.over
  }

  /** Asks its processes to end, ends those that do not, and records why. */
  async #cut(live: Live, why: Why, graceMs: number): Promise<void> {
    const { runtime, db } = this.#deps
    const start = rows.startOf(live.row)
    try {
      const sight = runtime.look(start)
      // It was just in time.
      if (sight.state === 'done' && why !== 'flooded') return await this.#settle(live, endOf(sight))
      const neverBegan = sight.state === 'unclaimed' && runtime.revoke(start)
      if (neverBegan && why === 'stopped') {
        live.cancelDeadline()
        await db.write((tx) => rows.back(tx, live.row.id))
        this.#live.delete(live.row.id)
        return
      }
      if (!neverBegan && graceMs > 0) await this.#ask(start, graceMs)
    } catch (error) {
      this.#warn(live, error, 'command not asked to end')
    }
    await this.#settle(live, END[why], ERROR[why])
  }

  async #ask(start: ExecStart, graceMs: number): Promise<void> {
    const { runtime, clock } = this.#deps
    const until = clock.monotonic() + graceMs
    runtime.terminate(start)
    while (runtime.look(start).state === 'running' && clock.monotonic() < until) await delay(clock, 20)
  }

  async #settle(live: Live, end: ExecEnd, error?: string): Promise<void> {
    const { runtime } = this.#deps
    const { row } = live
    live.cancelDeadline()
    try {
      const left = await runtime.end(rows.startOf(row))
      if (left.length > 0)
        this.#deps.log.warn({ exec: row.id, pids: left }, 'processes of a command could not be ended')
    } catch (thrown) {
      this.#warn(live, thrown, 'command not ended')
    }
    await this.#record(live, this.#outcomeOf(row, end, error))
    if (this.#live.get(row.id) === live) this.#live.delete(row.id)
  }

  #outcomeOf(row: rows.ExecRow, end: ExecEnd, error: string | undefined): ExecOutcome {
    const { runtime, env, clock } = this.#deps
    const { tailBytes } = LIMITS
    const start = rows.startOf(row)
    const secrets = secretsOf(row, env)
    const bytes = runtime.tail(start, bytesFor(tailBytes, secrets))
    const size = runtime.outputBytes(start)
    const flooded = size > runtime.maxOutputBytes
    const why = flooded && end.kind !== 'timed_out' && end.kind !== 'interrupted' ? ERROR.flooded : error
    return {
      ...(why === ERROR.flooded ? END.flooded : end),
      ...(why === undefined ? {} : { error: why }),
      output: tailText(bytes, secrets, tailBytes, bytes.length >= size),
      truncated: size > tailBytes,
      ended_at: clock.now(),
    }
  }

  /** E1. */
  async #record(live: Live, outcome: ExecOutcome): Promise<void> {
    const { db, clock, runtime } = this.#deps
    const { id } = live.row
    let refusals = 0
    for (let pause = RETRY_MS.first; ; pause = Math.min(pause * 2, RETRY_MS.longest)) {
      try {
        await db.write((tx) => this.#recorded(tx, id, outcome, refusals < MAX_REFUSALS))
        if (rows.byId(db, id) === undefined) this.#remove(id)
        return
      } catch (error) {
        this.#warn(live, error, 'end of a command not recorded')
        if (this.#closing.signal.aborted) return
        // The disk may take writes again; what its owner throws is no reason to keep it for ever.
        if (error instanceof Problem && error.code === 'unavailable') await runtime.dropOutput(rows.startOf(live.row))
        else refusals++
        await delay(clock, pause)
      }
    }
  }

  #recorded(tx: Tx, id: string, outcome: ExecOutcome, tell: boolean): void {
    const row = rows.byId(tx, id)
    if (row === undefined) return
    const isCutOff = outcome.kind === 'interrupted' && row.state === 'running'
    if (isCutOff && row.idempotent && row.interruptions < LIMITS.interruptions) {
      rows.again(tx, id)
    } else {
      rows.remove(tx, id)
      tx.afterCommit(() => this.#deps.ended(outcome.kind))
      if (tell && row.state === 'running') this.#listeners.get(row.owner)?.ended(tx, row, outcome)
    }
    this.#promote(tx)
  }

  /** What it leaves, the next start of the city removes. */
  #remove(id: string): void {
    this.#deps.runtime.remove(id).catch((error: unknown) => {
      this.#deps.log.warn({ exec: id, err: error }, 'files of a command not removed')
    })
  }

  #warn({ row }: Live, error: unknown, what: string): void {
    this.#deps.log.warn({ exec: row.id, owner: row.owner, ref: row.ref, err: error }, what)
  }
}
