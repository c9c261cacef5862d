/**
 * What goes from a city for its age or its number, in one periodic round for all families.
 *
 * R1  Families give sweeps; a round runs each of them, and one that fails keeps no other from running.
 * R2  A round that removed something is one event, `retention.swept`, which says how much of what.
 * R3  While the clock cannot say how old something is, nothing goes for its age.
 * R4  A write removes a batch; others have their turn in between.
 */
import type { RetentionSweptPayload } from '../contract/sessions/session-model.ts'
import { type Clock, nextTurn } from './clock.ts'
import type { Database, Tx } from './database.ts'
import type { EventLog } from './event-log.ts'
import type { Logger } from './log.ts'

const FIRST_MS = 60_000
const EVERY_MS = 10 * 60_000
/** Whoever has changed a setting sees soon what comes of it, and has a moment to take back a slip. */
const CHANGED_MS = 5_000
/** Rows in one write. */
const BATCH = 50
/** Batches of one sweep in one round; the rest goes with the next rounds. */
const MAX_BATCHES = 200

/** How many of each kind went, by the names that the event has. */
export type Swept = Readonly<Record<string, number>>

export interface Round {
  /** False where nothing may go for its age (R3). */
  readonly agesCount: boolean
  /** True once the city stops. */
  readonly isOver: boolean
}

export interface Sweep {
  readonly name: string
  /** What somebody may set; a change of it brings the next round forward. */
  readonly setting?: () => unknown
  readonly run: (round: Round) => Promise<Swept>
}

export interface RowSweep {
  /** What the event calls the rows. */
  readonly name: string
  /** How long a row is kept; undefined: for ever. */
  readonly keptMs: () => number | undefined
  /** True where something of that age may be there: cheap, so that no round writes for nothing. */
  readonly has: (before: number) => boolean
  /** Removes at most `limit` of what is older; how many went. */
  readonly remove: (tx: Tx, before: number, limit: number) => number
}

/** Rows that go for their age. */
export function sweepOfRows(db: Pick<Database, 'write'>, clock: Clock, rows: RowSweep): Sweep {
  const run = async (round: Round): Promise<Swept> => {
    const keptMs = round.agesCount ? rows.keptMs() : undefined
    if (keptMs === undefined) return {}
    const before = clock.now() - keptMs
    let gone = 0
    for (let batch = 0; batch < MAX_BATCHES && !round.isOver && rows.has(before); batch++) {
      const removed = await db.write((tx) => rows.remove(tx, before, BATCH))
      gone += removed
      if (removed < BATCH) break
      await nextTurn()
    }
    return { [rows.name]: gone }
  }
  return { name: rows.name, setting: rows.keptMs, run }
}

export interface RetentionDeps {
  readonly city: string
  readonly db: Pick<Database, 'write'>
  readonly log: Pick<EventLog, 'append' | 'agesCount'>
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly sweeps: readonly Sweep[]
}

export class RetentionRounds {
  readonly #deps: RetentionDeps
  #cancel: (() => void) | undefined
  #running: Promise<unknown> | undefined
  #settings = ''
  #closed = false

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#arm(FIRST_MS)
  }

  /** Another configuration is in force. */
  reconfigured(): void {
    if (this.#running === undefined && this.#settings !== this.#settingsNow()) this.#arm(CHANGED_MS)
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#closed = true
    this.#cancel?.()
    await this.#running
  }

  /** One round over everything; what went, undefined where nothing did. */
  async round(): Promise<RetentionSweptPayload | undefined> {
    const { db, log, city } = this.#deps
    const isClosed = () => this.#closed
    const agesCount = log.agesCount()
    const swept: Record<string, number> = {}
    for (const sweep of this.#deps.sweeps) {
      if (this.#closed) break
      const went = await this.#run(sweep, {
        agesCount,
        get isOver() {
          return isClosed()
        },
      })
      for (const [name, count] of Object.entries(went)) if (count > 0) swept[name] = (swept[name] ?? 0) + count
    }
    if (this.#closed || Object.keys(swept).length === 0) return undefined
    const payload = payloadOf(swept)
    await db.write((tx) => log.append(tx, { type: 'retention.swept', actor: 'supervisor', subject: city, payload }))
    return payload
  }

  async #run(sweep: Sweep, round: Round): Promise<Swept> {
    try {
      return await sweep.run(round)
    } catch (error) {
      if (!this.#closed)
        this.#deps.logger.warn({ sweep: sweep.name, err: error }, 'retention failed, next round goes on')
      return {}
    }
  }

  #arm(afterMs: number): void {
    if (this.#closed) return
    this.#settings = this.#settingsNow()
    this.#cancel?.()
    this.#cancel = this.#deps.clock.after(afterMs, () => {
      this.#running = this.round()
        .catch((error: unknown) => this.#deps.logger.warn({ err: error }, 'retention not recorded'))
        .finally(() => {
          this.#running = undefined
          this.#arm(this.#settings === this.#settingsNow() ? EVERY_MS : CHANGED_MS)
        })
    })
  }

  #settingsNow(): string {
    return JSON.stringify(this.#deps.sweeps.map(({ setting }) => setting?.() ?? null))
  }
}

const OF_SESSIONS = { runs: 0, run_bytes: 0, closed_sessions: 0, delivery_texts: 0, text_bytes: 0 }

/** What sessions left has its own members, all else stands by its name. */
function payloadOf(swept: Swept): RetentionSweptPayload {
  const rest = Object.entries(swept).filter(([name]) => !(name in OF_SESSIONS))
  const own = Object.entries(swept).filter(([name]) => name in OF_SESSIONS)
  return {
    ...OF_SESSIONS,
    ...Object.fromEntries(own),
    ...(rest.length === 0 ? {} : { other: Object.fromEntries(rest) }),
  }
}
