/**
 * Turns from the logs that harnesses and hosts write: read from where they were read to, once per session and pause, one
 * stretch at a time. Sessions take turns after each stretch, so that a long log delays no other session.
 *
 * V1  What was found and how far the log was read are one write: after a crash nothing is counted twice, and nothing is
 *     lost that the log still has.
 * V2  Nobody waits for it but who asks what a turn cost, within a bound.
 */
import type { UsageTurn } from '../../contract/sessions/usage.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Database, Tx } from '../../kernel/database.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Ledger, LogPosition, Spender, Turn } from './ledger.ts'

const PAUSE_MS = 1_000
/** Between two looks at a turn that goes on, though its log says no more. */
const OPEN_PAUSE_MS = 10_000
const MAX_DUE = 10_000
const RECENT_MS = 600_000
const MAX_UNTOLD = 1_000
/** The end of a turn is told before it is on disk. */
const TURN_LOOKS_MS = [0, 50, 200, 750] as const

/** A turn as a log tells of it; when, where it says so. */
type LoggedTurn = Omit<Turn, 'at'> & { readonly at: number | undefined }

interface LoggedLimit {
  readonly message: string
  readonly source: 'protocol' | 'log'
  readonly at: number | undefined
}

/** A stretch of a log, and what turns it tells of. */
export interface Stretch {
  readonly log: string
  readonly position: LogPosition
  readonly turns: readonly LoggedTurn[]
  /** Turns that have ended and told nothing. */
  readonly untold: readonly string[]
  /** The last word of a provider that limits it. */
  readonly limit?: LoggedLimit
  /** The last turn may still grow: its beginning is where the position is. */
  readonly open: boolean
  /** There is more behind it. */
  readonly more: boolean
}

/** What a stretch has changed. */
export interface Recorded {
  /** When its turns were; one at least. */
  readonly times: readonly number[]
  /** When the last one of them ended that has succeeded. */
  readonly endedAt: number | undefined
}

/** A session whose logs are to be read. */
interface Reading {
  settled: boolean
  readonly done: PromiseWithResolvers<void>
}

export interface HarvestDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly ledger: Ledger
  readonly spender: (sessionId: string) => Spender | undefined
  /** What its logs say from there on; `settled`: what is open there has ended. Undefined: nothing new. */
  readonly read: (
    sessionId: string,
    reached: ReadonlyMap<string, LogPosition>,
    settled: boolean,
  ) => Promise<Stretch | undefined>
  readonly recorded: (tx: Tx, sessionId: string, now: number, found: Recorded) => void
  readonly limited: (tx: Tx, sessionId: string, limit: LoggedLimit) => void
}

export class Harvest {
  readonly #deps: HarvestDeps
  readonly #due = new Set<string>()
  readonly #settling = new Set<string>()
  readonly #untold = new Set<string>()
  readonly #waiting = new Map<string, Reading>()
  #reading: Promise<void> = Promise.resolve()
  #isReading = false
  #closed = false

  constructor(deps: HarvestDeps) {
    this.#deps = deps
  }

  /** There may be more in its logs. */
  grew(id: string, pauseMs = PAUSE_MS): void {
    if (this.#closed || this.#due.has(id) || this.#due.size >= MAX_DUE) return
    this.#due.add(id)
    this.#deps.clock.after(pauseMs, () => {
      this.#due.delete(id)
      void this.#queue(id, this.#settling.delete(id))
    })
  }

  /** The turn with that key, as soon as its log tells it; undefined where it does not in time. */
  async turn(id: string, key: string): Promise<UsageTurn | undefined> {
    for (const ms of TURN_LOOKS_MS) {
      await new Promise<void>((resolve) => this.#deps.clock.after(ms, resolve))
      await this.#queue(id, false)
      const found = this.#deps.ledger.turn(id, key)
      if (found !== undefined || this.#closed || this.#untold.delete(`${id} ${key}`)) return found
    }
    return undefined
  }

  /** Resolves when nothing is being read; nothing is afterwards. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#reading
  }

  /** Resolves when all that its logs have now is read. */
  #queue(id: string, settled: boolean): Promise<void> {
    const known = this.#waiting.get(id)
    if (known !== undefined) {
      known.settled ||= settled
      return known.done.promise
    }
    const reading: Reading = { settled, done: Promise.withResolvers() }
    this.#waiting.set(id, reading)
    if (!this.#isReading) this.#reading = this.#readAll()
    return reading.done.promise
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [id, reading] = next
      if (await this.#read(id, reading.settled)) this.#goOn(id, reading)
      else reading.done.resolve()
    }
    this.#isReading = false
  }

  #next(): readonly [string, Reading] | undefined {
    for (const found of this.#waiting) {
      this.#waiting.delete(found[0])
      return found
    }
    return undefined
  }

  /** Behind all that wait. */
  #goOn(id: string, reading: Reading): void {
    const newer = this.#waiting.get(id)
    if (newer === undefined) this.#waiting.set(id, reading)
    else void newer.done.promise.then(reading.done.resolve)
  }

  /** A stretch; true: there is more. */
  async #read(id: string, settled: boolean): Promise<boolean> {
    const { ledger, spender, log } = this.#deps
    try {
      const who = this.#closed ? undefined : spender(id)
      if (who === undefined) return false
      const found = await this.#deps.read(id, ledger.positions(id), settled)
      if (found === undefined) {
        await this.#cut(id)
        return false
      }
      await this.#keep(who, found)
      if (found.open) {
        // Quiet until then: it has ended.
        this.#settling.add(id)
        this.grew(id, 2 * PAUSE_MS)
      }
      return found.more || !who.runs
    } catch (error) {
      log.warn({ session: id, err: error }, 'usage not read')
      return false
    }
  }

  /** All is read of a session without a process: a turn that is open has no end. */
  async #cut(id: string): Promise<void> {
    const { db, ledger, spender } = this.#deps
    const who = spender(id)
    if (who === undefined || !ledger.hasOpen(id)) return
    if (!who.runs) await db.write((tx) => ledger.cutOpen(tx, who))
    // Its process may have ended a moment ago, before anybody knows.
    else this.grew(id, OPEN_PAUSE_MS)
  }

  async #keep(who: Spender, { log, position, turns, untold, limit }: Stretch): Promise<void> {
    const { db, ledger, recorded, limited, clock } = this.#deps
    const now = clock.now()
    await db.write((tx) => {
      const times: number[] = []
      let endedAt: number | undefined
      for (const turn of turns) {
        const at = turn.at ?? now
        const state = ledger.record(tx, who, { ...turn, at })
        if (state !== undefined) times.push(at)
        if (state === 'ended') endedAt = Math.max(endedAt ?? at, at)
      }
      ledger.reached(tx, who.id, log, position)
      if (times.length > 0) recorded(tx, who.id, now, { times, endedAt })
      // What a provider said long ago is over.
      if (limit !== undefined && (limit.at ?? now) > now - RECENT_MS && (endedAt ?? 0) <= (limit.at ?? now))
        limited(tx, who.id, limit)
    })
    for (const key of untold) {
      for (const oldest of this.#untold) {
        if (this.#untold.size < MAX_UNTOLD) break
        this.#untold.delete(oldest)
      }
      this.#untold.add(`${who.id} ${key}`)
    }
  }
}
