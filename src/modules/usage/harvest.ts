/**
 * Turns from the logs that harnesses and hosts write: read from where they were read to, once per session and pause, one
 * session at a time.
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
  /** `times`: when its turns were; one at least. */
  readonly recorded: (tx: Tx, sessionId: string, now: number, times: readonly number[]) => void
  readonly limited: (tx: Tx, sessionId: string, limit: LoggedLimit) => void
}

export class Harvest {
  readonly #deps: HarvestDeps
  readonly #due = new Set<string>()
  readonly #settling = new Set<string>()
  readonly #untold = new Set<string>()
  #reading: Promise<void> = Promise.resolve()
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

  #queue(id: string, settled: boolean): Promise<void> {
    this.#reading = this.#reading.then(() => this.#read(id, settled))
    return this.#reading
  }

  async #read(id: string, settled: boolean): Promise<void> {
    const { ledger, spender, log } = this.#deps
    try {
      for (;;) {
        const who = this.#closed ? undefined : spender(id)
        if (who === undefined) return
        const found = await this.#deps.read(id, ledger.positions(id), settled)
        if (found === undefined) return
        await this.#keep(who, found)
        if (found.open) {
          // Quiet until then: it has ended.
          this.#settling.add(id)
          this.grew(id, 2 * PAUSE_MS)
        }
        if (!found.more) return
      }
    } catch (error) {
      log.warn({ session: id, err: error }, 'usage not read')
    }
  }

  async #keep(who: Spender, { log, position, turns, untold, limit }: Stretch): Promise<void> {
    const { db, ledger, recorded, limited, clock } = this.#deps
    const now = clock.now()
    await db.write((tx) => {
      const times: number[] = []
      for (const turn of turns) {
        const at = turn.at ?? now
        if (ledger.record(tx, who, { ...turn, at })) times.push(at)
      }
      ledger.reached(tx, who.id, log, position)
      if (times.length > 0) recorded(tx, who.id, now, times)
      const last = times.at(-1)
      // What a provider said long ago is over.
      if (limit !== undefined && (limit.at ?? now) > now - RECENT_MS && (last ?? 0) <= (limit.at ?? now))
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
