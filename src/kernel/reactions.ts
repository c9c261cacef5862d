/**
 * Reactions: named consumers of a log, each of which does what an event calls for in a write of its own (architecture §3).
 *
 * E1  What a reaction does for an event and its cursor's step past it are one write: a crash loses neither nor repeats one.
 * E2  Each goes on by itself: an event that one cannot handle delays nobody else, and is passed over after a few tries.
 * E3  A store that refuses writes is waited for, however long: that is not the event's fault.
 * E4  While nothing happens nothing is written; the cursor on disk moves with what called for something, and now and then.
 * E5  Retention takes no event that a started reaction has still to look at.
 * E6  A write handles a page of events at most, and a slice of time where there is more than one: writers wait no longer.
 * E7  Events that a reaction leads to itself, and the events of those, end after a bounded chain.
 * E8  Once `stop` has resolved, nothing reacts any more.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, delay } from './clock.ts'
import type { Database, Tx } from './database.ts'
import { type EventLog, type Scan, type StoredEvent, typeMatches } from './event-log.ts'
import type { Logger } from './log.ts'
import { Problem } from './problem.ts'

export const REACTIONS_SCHEMA = `
CREATE TABLE reaction_cursors (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

export interface Reaction {
  /** Names its cursor: never changed, never used for something else. */
  readonly name: string
  /** Exact types, or `prefix.*`; absent: every event. */
  readonly types?: readonly string[]
  /** Where it begins in a log that it has never seen. */
  readonly since: 'start' | 'head'
  /** False: nothing to do, and so nothing to write. Reads only; looked at after the event's commit, so state may be newer. */
  concerns?(event: StoredEvent): boolean
  /** Does what the event calls for, if it still does. Has to be idempotent, and to leave the outside to `afterCommit`. */
  react(tx: Tx, event: StoredEvent): void
}

export interface ReactionsDeps {
  readonly db: Database
  readonly log: EventLog
  readonly clock: Clock
  readonly logger: Logger
  readonly reactions: readonly Reaction[]
  /** An event was passed over. */
  readonly skipped: (reaction: string) => void
}

const PAGE_EVENTS = 100
const PAGE_CHARACTERS = 1024 * 1024
const SLICE_MS = 20
const MAX_TRIES = 5
const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 10_000
/** Events looked at and passed by, after which the cursor is written all the same: what a restart looks at again. */
const MAX_UNSAVED = 1_000
/** An honest cascade is as deep as things are nested in each other. */
const MAX_CHAIN = 1_000
/** Marks of own events that are kept; beyond, a chain counts from the beginning again. */
const MAX_MARKS = 10_000
/** Events that are kept for the steps to come, in number and in characters; more are read from the log. */
const MAX_FRESH = { events: 1_000, characters: PAGE_CHARACTERS }

/** All reactions to one log. */
export class Reactions {
  readonly #deps: ReactionsDeps
  readonly #stopping = new AbortController()
  #consumers: readonly Consumer[] = []
  #unsubscribe: () => void = () => {}

  constructor(deps: ReactionsDeps) {
    this.#deps = deps
  }

  /** Takes each up where it was; resolves before they have caught up. */
  async start(): Promise<void> {
    const { db, log, reactions } = this.#deps
    // A new one that begins at the head has to know later where that was.
    const unknown = reactions.filter(({ name, since }) => since === 'head' && readCursor(db, name) === undefined)
    const { head } = log
    if (unknown.length > 0) {
      await db.write((tx) => {
        for (const { name } of unknown) writeCursor(tx, name, head)
      })
    }
    if (this.#stopping.signal.aborted) return
    this.#consumers = reactions.map(
      (reaction) => new Consumer(reaction, this.#deps, readCursor(db, reaction.name) ?? 0, this.#stopping.signal),
    )
    this.#unsubscribe = log.onCommit((events) => {
      for (const consumer of this.#consumers) consumer.committed(events)
    })
    for (const consumer of this.#consumers) consumer.wake()
  }

  /** Lets the writes under way end, and nothing follow them (E8). What is not looked at yet stays kept (E5). */
  async stop(): Promise<void> {
    this.#unsubscribe()
    this.#stopping.abort(new Error('the reactions are stopped'))
    await Promise.all(this.#consumers.map((consumer) => consumer.idle))
  }
}

interface Mark {
  readonly from: number
  readonly upTo: number
  readonly depth: number
}

interface Handled {
  readonly reached: number
  readonly marks: readonly Mark[]
}

/** One reaction at its cursor. */
class Consumer {
  readonly #reaction: Reaction
  readonly #deps: ReactionsDeps
  readonly #signal: AbortSignal
  #cursor: number
  #unsaved = 0
  #woken = false
  #running: Promise<void> | undefined
  /** What the try under way looks at. */
  #page: readonly StoredEvent[] = []
  /** Events to be taken one by one, because one among them failed. */
  #alone = 0
  #tries = 0
  /** What was committed last, without gaps up to the head: the next step need not read it back. */
  #fresh: StoredEvent[] = []
  #freshCharacters = 0
  /** Events that this reaction led to and has not reached yet, oldest first (E7). */
  readonly #marks: Mark[] = []

  constructor(reaction: Reaction, deps: ReactionsDeps, cursor: number, signal: AbortSignal) {
    this.#reaction = reaction
    this.#deps = deps
    this.#cursor = cursor
    this.#signal = signal
    this.#pin()
  }

  /** Resolves when nothing is under way. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve()
  }

  committed(events: readonly StoredEvent[]): void {
    const concerned = events.some((event) => this.#isOfType(event))
    if (concerned || this.#running !== undefined) this.#keep(events)
    if (concerned) this.wake()
    else if (this.#running === undefined) {
      // Idle means at the head: what is of no interest is passed without a look at the log.
      this.#passTo(events.at(-1)?.seq ?? this.#cursor)
    }
  }

  wake(): void {
    this.#woken = true
    if (this.#running !== undefined || this.#signal.aborted) return
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      if (this.#woken) this.wake()
    })
  }

  async #run(): Promise<void> {
    // Not in the middle of the commit that woke it.
    await nextTurn()
    while (!this.#signal.aborted) {
      this.#woken = false
      try {
        if (await this.#step()) return
      } catch (error) {
        await this.#failed(error)
      }
    }
  }

  /** Looks at the next events; true where there are no more. */
  async #step(): Promise<boolean> {
    const limit = this.#alone > 0 ? 1 : PAGE_EVENTS
    const scan = this.#scanFresh(limit) ?? this.#scanLog(limit)
    this.#page = scan.events
    const endless = scan.events.find((event) => this.#depthOf(event) >= MAX_CHAIN)
    const events = scan.events.filter((event) => endless === undefined || event.seq < endless.seq)
    const all = await this.#handle(events.filter((event) => this.#concerns(event)))
    this.#tries = 0
    this.#alone = Math.max(this.#alone - 1, 0)
    if (!all) return false
    if (endless !== undefined) await this.#skip(endless, 'the reaction goes on answering itself')
    else await this.#pass(scan.events.length, scan.reached)
    return endless === undefined && scan.complete && !this.#woken
  }

  /** Adds what was committed to what is fresh; where that is too much, nothing is. */
  #keep(events: readonly StoredEvent[]): void {
    const follows = this.#fresh.at(-1)?.seq === (events[0]?.seq ?? 0) - 1
    if (!follows) this.#forget()
    for (const event of events) {
      this.#fresh.push(event)
      this.#freshCharacters += event.envelope.length
    }
    if (this.#fresh.length > MAX_FRESH.events || this.#freshCharacters > MAX_FRESH.characters) this.#forget()
  }

  #forget(): void {
    this.#fresh = []
    this.#freshCharacters = 0
  }

  #scanLog(limit: number): Scan {
    const { log } = this.#deps
    const range = { after: this.#cursor, upTo: log.head }
    const { types } = this.#reaction
    return log.scan(types === undefined ? {} : { types }, range, 'asc', limit, PAGE_CHARACTERS)
  }

  /** As the log would answer, from memory; undefined where what comes next is not there. */
  #scanFresh(limit: number): Pick<Scan, 'events' | 'reached' | 'complete'> | undefined {
    const fresh = this.#fresh
    // Sequence numbers have no gaps.
    let at = this.#cursor + 1 - (fresh[0]?.seq ?? 0)
    if (at >= fresh.length) this.#forget()
    if (at < 0 || at >= fresh.length) return undefined
    const events: StoredEvent[] = []
    let characters = 0
    for (; at < fresh.length && events.length < limit && characters < PAGE_CHARACTERS; at++) {
      const event = fresh[at]
      if (event === undefined || !this.#isOfType(event)) continue
      events.push(event)
      characters += event.envelope.length
    }
    const reached = fresh[at - 1]?.seq ?? this.#cursor
    if (at === fresh.length) this.#forget()
    return { events, reached, complete: reached === this.#deps.log.head }
  }

  #isOfType({ type }: StoredEvent): boolean {
    return this.#reaction.types?.some((pattern) => typeMatches(pattern, type)) ?? true
  }

  /** A question that cannot be answered is for `react`, which may fail. */
  #concerns(event: StoredEvent): boolean {
    try {
      return this.#reaction.concerns?.(event) ?? true
    } catch {
      return true
    }
  }

  /** Reacts to these, or to as many as fit into a slice; true where that was all. */
  async #handle(events: readonly StoredEvent[]): Promise<boolean> {
    if (events.length === 0) return true
    const { reached, marks } = await this.#deps.db.write((tx) => this.#react(tx, events))
    this.#unsaved = 0
    for (const mark of marks) if (this.#marks.length < MAX_MARKS) this.#marks.push(mark)
    this.#passTo(reached)
    return reached === events.at(-1)?.seq
  }

  #react(tx: Tx, events: readonly StoredEvent[]): Handled {
    const { clock, log } = this.#deps
    const started = clock.monotonic()
    const marks: Mark[] = []
    let reached = this.#cursor
    for (const event of events) {
      const from = log.next
      this.#reaction.react(tx, event)
      if (log.next > from) marks.push({ from, upTo: log.next - 1, depth: this.#depthOf(event) + 1 })
      reached = event.seq
      if (clock.monotonic() - started > SLICE_MS) break
    }
    writeCursor(tx, this.#reaction.name, reached)
    return { reached, marks }
  }

  /** Nothing up to here is left to do. The cursor on disk follows only after many such events (E4). */
  async #pass(examined: number, reached: number): Promise<void> {
    this.#unsaved += examined
    this.#passTo(reached)
    if (this.#unsaved < MAX_UNSAVED) return nextTurn()
    await this.#deps.db.write((tx) => writeCursor(tx, this.#reaction.name, reached))
    this.#unsaved = 0
  }

  async #failed(error: unknown): Promise<void> {
    const fields = { reaction: this.#reaction.name, after_seq: this.#cursor, err: error }
    const { logger } = this.#deps
    if (error instanceof Problem && error.code === 'unavailable') {
      logger.warn(fields, 'reaction waits for the store')
      return this.#wait(LONGEST_RETRY_MS)
    }
    const [first] = this.#page
    if (this.#alone === 0 || first === undefined) {
      // One of them: at once again, one by one.
      this.#alone = Math.max(this.#page.length, 1)
      return
    }
    this.#tries++
    logger.warn({ ...fields, seq: first.seq, try: this.#tries }, 'reaction failed')
    if (this.#tries < MAX_TRIES) return this.#wait(Math.min(FIRST_RETRY_MS * 2 ** (this.#tries - 1), LONGEST_RETRY_MS))
    const why = error instanceof Error ? error.message : String(error)
    await this.#skip(first, why).catch(() => this.#wait(LONGEST_RETRY_MS))
  }

  async #skip(event: StoredEvent, why: string): Promise<void> {
    const { logger, db, skipped } = this.#deps
    await db.write((tx) => writeCursor(tx, this.#reaction.name, event.seq))
    this.#tries = 0
    this.#unsaved = 0
    this.#alone = Math.max(this.#alone - 1, 0)
    this.#passTo(event.seq)
    skipped(this.#reaction.name)
    logger.error({ reaction: this.#reaction.name, seq: event.seq, type: event.type, why }, 'reaction skipped an event')
  }

  #wait(ms: number): Promise<void> {
    return delay(this.#deps.clock, ms, this.#signal).catch(() => {})
  }

  #depthOf({ seq }: StoredEvent): number {
    const mark = this.#marks.find(({ upTo }) => upTo >= seq)
    return mark !== undefined && mark.from <= seq ? mark.depth : 0
  }

  #passTo(seq: number): void {
    this.#cursor = Math.max(this.#cursor, seq)
    while ((this.#marks[0]?.upTo ?? Number.POSITIVE_INFINITY) <= this.#cursor) this.#marks.shift()
    this.#pin()
  }

  #pin(): void {
    this.#deps.log.pin(`reaction ${this.#reaction.name}`, this.#cursor)
  }
}

function readCursor(db: Database, name: string): number | undefined {
  const row = db.get('SELECT seq FROM reaction_cursors WHERE name = ?', name)
  return row === undefined ? undefined : Number(row.seq)
}

function writeCursor(tx: Tx, name: string, seq: number): void {
  tx.run('INSERT OR REPLACE INTO reaction_cursors (name, seq) VALUES (?, ?)', name, seq)
}
