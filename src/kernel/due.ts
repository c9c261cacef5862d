/**
 * Rows that become due at a time: one timer of the clock for all rows of a kind, armed for the earliest.
 *
 * D1  Work begins soon after the earliest row is due and never before; one write at a time, a slice of 15 ms each.
 * D2  The timer wakes at least every 30 s, so it notices when the clock was set or the machine slept.
 * D3  A pause of the process or the machine is reported before anything lapses, and whoever waits in the sockets is heard
 *     first: nobody could renew meanwhile.
 * D4  Work that fails, or can do nothing, is tried again after 1 s, doubled up to a minute.
 * D5  Without rows there is no timer; after `stop` nothing begins, and what was under way has ended.
 */
import { type Backoff, backoffMs } from './backoff.ts'
import { type Clock, nextTurn } from './clock.ts'
import type { Database } from './database.ts'
import type { Logger } from './log.ts'

export const LONGEST_SLEEP_MS = 30_000
const SLICE_MS = 15
/** Clocks are adjusted a little all the time. */
const JUMP_MS = 2_000
/** A timer that comes this late means that the process stood still. */
const PAUSE_MS = 1_000
/** After a pause, requests that wait in the sockets have this long to be heard. */
const HEARING_MS = 1_000
const RETRY: Backoff = { firstMs: 1_000, longestMs: 60_000 }

/** What happened to time since the rows were set; both are 0 at the start of the city. */
export interface TimeChange {
  /** Milliseconds by which the clock was set forward, or back where negative; a sleep counts as forward. */
  readonly stepMs: number
  /** Milliseconds in which nobody may have been heard; 0 where the process ran all the time. */
  readonly pausedMs: number
}

/** The share of one write. */
export class Slice {
  readonly #clock: Clock
  #began: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True once the write that asks has taken its share; the first call begins it. */
  get isOver(): boolean {
    this.#began ??= this.#clock.monotonic()
    return this.#clock.monotonic() - this.#began > SLICE_MS
  }
}

export interface DueOptions {
  /** For the log and the metrics: `bead leases`. */
  readonly name: string
  readonly db: Pick<Database, 'countDue'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** When the earliest row is due, in ms since the epoch; undefined where none waits. */
  readonly next: () => number | undefined
  /** Does some of what is due, in one write; false where nothing could be done yet. Called until nothing is due. */
  readonly work: (now: number, slice: Slice) => unknown
  /** Moves the times of rows where the clock was set or stood still, and at the start. */
  readonly adjust?: (change: TimeChange) => unknown
  /** What becomes due one after the other within this time is done together. */
  readonly togetherMs?: number
}

export class Due {
  readonly #options: DueOptions
  #cancel: (() => void) | undefined
  /** The time of the row that the timer is for. */
  #armedFor = Number.POSITIVE_INFINITY
  /** When the timer was to wake, on both clocks. */
  #planned = { wall: 0, elapsed: 0, delayMs: 0 }
  #seen: { readonly wall: number; readonly elapsed: number } | undefined
  #stepMs = 0
  #working: Promise<void> | undefined
  #heard = false
  #failures = 0
  #started = false
  #stopped = false

  constructor(options: DueOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#options.next() !== undefined) await this.#options.adjust?.({ stepMs: 0, pausedMs: 0 })
    this.#started = true
    this.#arm()
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#disarm()
    await this.#working
  }

  /** A row is due at this time. */
  noticed(at: number): void {
    if (this.#working === undefined && this.#failures === 0 && at < this.#armedFor) this.#armAt(at)
  }

  /** Rows have changed in any way: looks for the earliest one again. */
  changed(): void {
    if (this.#working === undefined && this.#failures === 0) this.#arm()
  }

  #arm(): void {
    const next = this.#options.next()
    if (next === undefined) {
      this.#disarm()
      this.#seen = undefined
    } else this.#armAt(next)
  }

  #armAt(at: number): void {
    if (this.#stopped || !this.#started) return
    const { clock, togetherMs = 0 } = this.#options
    this.#disarm()
    this.#look()
    const wall = clock.now()
    const delayMs = Math.min(Math.max(at - wall, togetherMs), LONGEST_SLEEP_MS)
    this.#armedFor = at
    this.#planned = { wall, elapsed: clock.monotonic(), delayMs }
    this.#cancel = clock.after(delayMs, () => this.#wake())
  }

  #disarm(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#armedFor = Number.POSITIVE_INFINITY
  }

  #wake(): void {
    this.#cancel = undefined
    this.#working = this.#workAll().then(
      (again) => this.#done(again),
      (error: unknown) => this.#failed(error),
    )
  }

  /** Does all that is due; `heard` where others have their turn first. */
  async #workAll(): Promise<'done' | 'idle' | 'heard'> {
    const { clock, next, work, db, name } = this.#options
    if (await this.#adjust()) return 'heard'
    for (let at = next(); at !== undefined && at <= clock.now() && !this.#stopped; at = next()) {
      if ((await work(clock.now(), new Slice(clock))) === false) return 'idle'
      db.countDue(name, 'done')
      await nextTurn()
    }
    return 'done'
  }

  /** True where the process stood still, and those that wait in the sockets have not been heard since. */
  async #adjust(): Promise<boolean> {
    this.#look()
    const pausedMs = this.#pausedMs()
    const stepMs = this.#stepMs
    this.#stepMs = 0
    if (pausedMs === 0 && stepMs === 0) return false
    await this.#options.adjust?.({ stepMs, pausedMs })
    // Once only: a machine that is always late would never do anything.
    this.#heard = pausedMs > 0 && !this.#heard
    return this.#heard
  }

  /** The whole time since the timer was armed, where it comes late: the pause may have begun right after that. */
  #pausedMs(): number {
    const { clock } = this.#options
    const { wall, elapsed, delayMs } = this.#planned
    const passedMs = Math.max(clock.now() - wall, clock.monotonic() - elapsed)
    if (passedMs - delayMs > PAUSE_MS) return passedMs
    this.#heard = false
    return 0
  }

  /** Notices whether the clock was set since the last look. */
  #look(): void {
    const { clock } = this.#options
    const seen = { wall: clock.now(), elapsed: clock.monotonic() }
    const before = this.#seen ?? seen
    this.#seen = seen
    const stepMs = seen.wall - before.wall - (seen.elapsed - before.elapsed)
    if (Math.abs(stepMs) > JUMP_MS) this.#stepMs += stepMs
  }

  #done(how: 'done' | 'idle' | 'heard'): void {
    this.#working = undefined
    if (how === 'idle') this.#tryAgain()
    else {
      this.#failures = 0
      if (this.#stopped) return
      if (how === 'heard') this.#armAt(this.#options.clock.now() + HEARING_MS)
      else this.#arm()
    }
  }

  #failed(error: unknown): void {
    this.#working = undefined
    if (this.#stopped) return
    const { db, log, name } = this.#options
    db.countDue(name, 'failed')
    log.warn({ due: name, err: error }, 'rows that are due could not be worked on, trying again')
    this.#tryAgain()
  }

  #tryAgain(): void {
    this.#failures++
    this.#armAt(this.#options.clock.now() + backoffMs(RETRY, this.#failures))
  }
}
