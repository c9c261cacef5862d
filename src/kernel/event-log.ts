/**
 * The event log of one database: append inside a write, read ranges, keep what retention allows.
 *
 * I1  seq grows by exactly one per append, also across restarts and failed writes.
 * I2  No reader sees an event before it is on disk.
 * I3  An event row never changes; its envelope is stored as the bytes that every client gets.
 * I4  `at` never goes backwards within a log, so a time bound is a seq bound; the envelope's `ts` is what the clock said. Times
 *     that turn out to be ahead of the clock are brought back to it, once and all together.
 */
import { envelopeTest, type PayloadMatch } from '../contract/base/payload-match.ts'
import type { EventType, PayloadOf, SubjectOf } from '../contract/event-types.ts'
import { MAX_EVENT_BYTES } from '../contract/events.ts'
import { AgeTrust, type Clock, isoTime } from './clock.ts'
import type { Database, Tx } from './database.ts'
import { countRows, planScan, selectRows, type TypeTable } from './event-scan.ts'
import { jsonText } from './json.ts'
import { problem } from './problem.ts'

/** Tables of a log; part of the first migration of every database that has one. */
export const EVENT_LOG_SCHEMA = `
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  type INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  subject TEXT,
  city TEXT,
  envelope TEXT NOT NULL
) STRICT;
CREATE INDEX events_type ON events (type);
CREATE INDEX events_actor ON events (actor);
CREATE INDEX events_subject ON events (subject) WHERE subject IS NOT NULL;
CREATE INDEX events_city ON events (city) WHERE city IS NOT NULL;
CREATE TABLE event_types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, count INTEGER NOT NULL) STRICT;
CREATE TABLE log_state (id INTEGER PRIMARY KEY CHECK (id = 1), bytes INTEGER NOT NULL) STRICT;
INSERT INTO log_state VALUES (1, 0);
`

interface DraftOf<T extends string, P> {
  readonly type: T
  readonly actor: string
  readonly subject?: string
  readonly message?: string
  readonly payload: P
  /** Tag of the event at supervisor scope, in the supervisor's own log. */
  readonly city?: string
}
/** An event of the catalogue, not yet in the log. */
export type EventDraft = { [T in EventType]: DraftOf<T, PayloadOf<T>> & SubjectOf<T> }[EventType]
/** What a client may emit: the caller has checked that the type is not reserved. */
export type CustomEventDraft = DraftOf<string, object>

/** What has to be known of an event to send it. */
export interface LoggedEvent {
  readonly seq: number
  /** Milliseconds; never goes backwards within a log. */
  readonly at: number
  readonly city: string | undefined
  /** The JSON of the envelope, without `city`. */
  readonly envelope: string
}

export interface StoredEvent extends LoggedEvent {
  readonly type: string
  readonly actor: string
  readonly subject: string | undefined
}

/** An event as it is stored, but for its number and its time. */
export interface EncodedEvent {
  readonly draft: CustomEventDraft
  /** What follows the time in the JSON of the envelope. */
  readonly rest: string
  /** Of the envelope, but for its number and its time. */
  readonly bytes: number
}

interface AppendedEvent extends StoredEvent {
  readonly bytes: number
}

export interface EventFilter {
  /** Exact types, or `prefix.*`; any of them. */
  readonly types?: readonly string[]
  readonly actor?: string
  readonly subject?: string
  readonly city?: string
  /** Looked at last and by itself: it is in no index. */
  readonly payload?: readonly PayloadMatch[]
}

/** A range of a log: after < seq ≤ upTo. */
export interface Range {
  readonly after: number
  readonly upTo: number
}

export interface Scan<E extends LoggedEvent = StoredEvent> {
  readonly events: readonly E[]
  /** The seq up to which (ascending) or down to which (descending) the range was looked at. */
  readonly reached: number
  /** True where the whole range was looked at. */
  readonly complete: boolean
  /** Rows that were looked at. */
  readonly examined: number
  /** Time of the row at `reached`; undefined where the scan is complete, or looked at none. */
  readonly reachedAt: number | undefined
}

export interface Count {
  readonly total: number
  /** True: there may be more. */
  readonly capped: boolean
  /** Rows that were looked at one by one for it. */
  readonly examined: number
}

export interface Retention {
  readonly maxAgeMs: number
  readonly maxBytes: number
}

/** Rows looked at in one go, and the time for it: a scan is a part of a turn of the event loop. */
const MAX_EXAMINED = 20_000
const MAX_SCAN_MS = 8
/** A type with fewer rows is looked up by its index, whatever else is asked for. */
const RARE_ROWS = 20_000
/** Rows fetched at a time: few where events are large, more while what came was small. */
const FETCH = { first: 128, ofLarge: 16, most: 256, largeBytes: 8 * 1024, smallPage: 256 * 1024 }
/** Totals that are kept: what is in a range of a log never changes. */
const MAX_KEPT_COUNTS = 16
/** A write that removes events takes a few milliseconds. */
const PRUNE_BATCH = 400
/** A time on record that is further ahead of the clock than this was a wrong reading of it. */
const AHEAD_MS = 60_000

export class EventLog {
  readonly #db: Database
  readonly #clock: Clock
  readonly #typeIds = new Map<string, number>()
  readonly #typeNames = new Map<number, string>()
  /** Only of types that have an event. */
  readonly #typeCounts = new Map<string, number>()
  /** Types that are in memory and not on disk yet. */
  readonly #unsavedTypes = new Set<string>()
  readonly #listeners = new Set<(events: readonly StoredEvent[]) => void>()
  readonly #pins = new Map<string, number>()
  /** Whose pins the last pruning had to stop at. */
  #holders: readonly string[] = []
  #appended: AppendedEvent[] = []
  #head = 0
  #oldest = 0
  #bytes = 0
  #lastAt = 0
  #oldestAt = 0
  #appendedBytes = 0
  #lastTypeId = 0
  readonly #ages: AgeTrust
  readonly #counts = new Map<string, Count>()
  readonly #typeTable: TypeTable = {
    countOf: (type) => this.countOfType(type),
    idOf: (type) => this.#typeIds.get(type) ?? -1,
  }

  constructor(db: Database, clock: Clock) {
    this.#db = db
    this.#clock = clock
    this.#load()
    this.#ages = new AgeTrust(clock, this.#lastAt)
    db.join({
      mark: () => this.#appended.length,
      undo: (mark) => {
        this.#appended.length = mark
        this.#forgetUnsaved()
      },
      beforeCommit: (tx) => this.#storeCounters(tx),
      committed: () => this.#publish(),
    })
  }

  /** Newest committed seq; 0 while empty. */
  get head(): number {
    return this.#head
  }
  /** Oldest retained seq; 0 while empty. */
  get oldest(): number {
    return this.#oldest
  }
  get bytes(): number {
    return this.#bytes
  }
  /** Time of the newest event, and of the oldest; 0 while empty. */
  get newestAt(): number {
    return this.#lastAt
  }
  get oldestAt(): number {
    return this.#oldestAt
  }
  /** The seq that the next event appended gets; means something inside a write only. */
  get next(): number {
    return this.#head + this.#appended.length + 1
  }

  /** Appends inside a write; returns the seq it has if that write commits. */
  append(tx: Tx, draft: EventDraft): number {
    return this.appendEncoded(tx, encodeEvent(draft))
  }

  /** As `append`, for a type outside the catalogue. */
  appendCustom(tx: Tx, draft: CustomEventDraft): number {
    return this.appendEncoded(tx, encodeEvent(draft))
  }

  /** As `append`, of one that was encoded before: a write that others wait for is the shorter. */
  appendEncoded(tx: Tx, { draft, rest, bytes: fixed }: EncodedEvent): number {
    const { type, actor, subject, city } = draft
    const now = this.#clock.now()
    if (this.isAhead) this.bringBack(tx)
    const at = Math.max(now, this.#appended.at(-1)?.at ?? (this.isAhead ? now : this.#lastAt))
    const seq = this.next
    const ts = isoTime(now)
    const bytes = fixed + `${seq}`.length + ts.length
    if (bytes > MAX_EVENT_BYTES) throw problem('payload-too-large', `an event takes at most ${MAX_EVENT_BYTES} bytes`)
    const envelope = `{"seq":${seq},"type":${JSON.stringify(type)},"ts":"${ts}",${rest}`
    tx.run(
      'INSERT INTO events (seq, type, at, actor, subject, city, envelope) VALUES (?, ?, ?, ?, ?, ?, ?)',
      seq,
      this.#typeId(type),
      at,
      actor,
      subject ?? null,
      city ?? null,
      envelope,
    )
    this.#appended.push({ seq, at, type, actor, subject, city, envelope, bytes })
    return seq
  }

  /** True where the newest event is of a time that has not come: the clock was wrong when it was written. */
  get isAhead(): boolean {
    return this.#appended.length === 0 && this.#lastAt > this.#clock.now() + AHEAD_MS
  }

  /** Brings the times of events that are ahead of the clock back to it; their order stays (I4). */
  bringBack(tx: Tx): void {
    const now = this.#clock.now()
    const first = this.#firstSince(now + 1)
    tx.run('UPDATE events SET at = ? WHERE seq >= ?', now, first)
    tx.afterCommit(() => {
      this.#lastAt = Math.min(this.#lastAt, now)
      this.#oldestAt = Math.min(this.#oldestAt, now)
    })
  }

  /** Calls `listener` with each batch after its commit; returns how to stop. */
  onCommit(listener: (events: readonly StoredEvent[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Keeps retention from passing `seq` as long as the name is pinned; undefined takes the pin away. */
  pin(name: string, seq: number | undefined): void {
    if (this.#pins.get(name) === seq) return
    if (seq === undefined) this.#pins.delete(name)
    else this.#pins.set(name, seq)
    // It has moved on; where that was not far enough the next pruning says so.
    if (this.#holders.includes(name)) this.#holders = this.#holders.filter((holder) => holder !== name)
  }

  /** How many retained events have exactly this type. */
  countOfType(type: string): number {
    return this.#typeCounts.get(type) ?? 0
  }

  /** Seq bounds of a time span: events older than `fromMs` or newer than `toMs` are outside. */
  rangeOfTime(fromMs: number | undefined, toMs: number | undefined): Range {
    const after = (fromMs === undefined ? this.#oldest : this.#firstSince(fromMs)) - 1
    const upTo = toMs === undefined ? this.#head : this.#firstSince(Math.floor(toMs) + 1) - 1
    return { after: Math.max(after, 0), upTo: Math.min(upTo, this.#head) }
  }

  /**
   * At most `limit` events of the range that match, from its newest end (`desc`) or its oldest (`asc`). Looks at a
   * bounded number of rows for a bounded time: a scan that is not `complete` goes on from `reached`.
   */
  scan(
    filter: EventFilter,
    range: Range,
    order: 'asc' | 'desc',
    limit: number,
    maxCharacters = Number.POSITIVE_INFINITY,
  ): Scan {
    return this.#scan(WHOLE, filter, range, order, limit, maxCharacters, (row) => this.#storedOf(row))
  }

  /** As `scan`, of each event only what is sent: a column that nobody looks at costs as much as one that is. */
  scanEnvelopes(
    filter: EventFilter,
    range: Range,
    order: 'asc' | 'desc',
    limit: number,
    maxCharacters: number,
  ): Scan<LoggedEvent> {
    return this.#scan(SENT, filter, range, order, limit, maxCharacters, loggedOf)
  }

  #scan<E extends LoggedEvent>(
    columns: string,
    filter: EventFilter,
    range: Range,
    order: 'asc' | 'desc',
    limit: number,
    maxCharacters: number,
    eventOf: (row: Row) => E,
  ): Scan<E> {
    const bounded = { after: Math.max(range.after, this.#oldest - 1, 0), upTo: Math.min(range.upTo, this.#head) }
    const end = order === 'asc' ? bounded.upTo : bounded.after + 1
    const types = filter.types === undefined ? undefined : this.#typesMatching(filter.types)
    if (bounded.upTo <= bounded.after || types?.length === 0)
      return { events: [], reached: end, complete: true, examined: 0, reachedAt: undefined }
    const plan = planScan(filter, types, this.#typeTable, RARE_ROWS)
    const walk = new RowWalk(limit, maxCharacters, filter.payload, this.#clock, eventOf)
    const sparse = plan.checksRows || filter.payload !== undefined
    let rest = bounded
    for (let size = this.#firstFetch(); ; size = walk.nextFetch(size)) {
      const wanted = sparse ? size : Math.min(size, limit - walk.events.length)
      const { sql, values } = selectRows(plan, this.#typeTable, columns, rest, order, wanted)
      const rows = this.#db.rows(sql, ...values)
      const cut = rows.some((row) => walk.take(row))
      const { events, reached, examined, reachedAt } = walk
      if (cut || (rows.length === wanted && walk.tired))
        return { events, reached, examined, complete: reached === end, reachedAt }
      if (rows.length < wanted) return { events, reached: end, complete: true, examined, reachedAt: undefined }
      rest = order === 'asc' ? { ...rest, after: reached } : { ...rest, upTo: reached - 1 }
    }
  }

  /** Size of the filtered set, exact up to `cap`, as far as a look at `maxExamined` rows tells. Payloads are not looked at. */
  count(filter: EventFilter, range: Range, cap: number, maxExamined = MAX_EXAMINED): Count {
    const after = Math.max(range.after, this.#oldest - 1, 0)
    const upTo = Math.min(range.upTo, this.#head)
    const exactly = (total: number): Count => ({ total, capped: false, examined: 0 })
    if (upTo <= after) return exactly(0)
    const { types, actor, subject, city } = filter
    const otherFilters = actor !== undefined || subject !== undefined || city !== undefined
    if (types === undefined && !otherFilters) return exactly(upTo - after)
    const matching = types === undefined ? undefined : this.#typesMatching(types)
    if (matching?.length === 0) return exactly(0)
    const whole = after <= this.#oldest - 1 && upTo === this.#head
    if (matching !== undefined && !otherFilters && whole)
      return exactly(matching.reduce((sum, name) => sum + this.countOfType(name), 0))
    const key = JSON.stringify([types, actor, subject, city, after, upTo, cap])
    const kept = this.#counts.get(key)
    if (kept !== undefined) return kept
    const plan = planScan(filter, matching, this.#typeTable, RARE_ROWS)
    const limit = plan.checksRows ? maxExamined : cap + 1
    const { sql, values } = countRows(plan, this.#typeTable, { after, upTo }, limit)
    const [examined = 0, holding = 0] = this.#db.rows(sql, ...values)[0]?.map(Number) ?? []
    const capped = holding > cap || (plan.checksRows && examined >= maxExamined)
    const count = { total: Math.min(holding, cap), capped, examined: plan.checksRows ? examined : 0 }
    // One that a smaller look cut short would keep others from looking further.
    if (maxExamined === MAX_EXAMINED || !capped) this.#keepCount(key, { ...count, examined: 0 })
    return count
  }

  /** Who has still to read what retention would have taken by now: the log grows for as long as they do not. */
  get holders(): readonly string[] {
    return this.#holders
  }

  /** False while the clock cannot say how old something of this store is. */
  agesCount(): boolean {
    return this.#ages.holds()
  }

  /** True where `prune` would find something: cheap, and writes nothing. */
  needsPruning({ maxAgeMs, maxBytes }: Retention): boolean {
    const agesCount = this.agesCount()
    if (this.#oldest >= this.#head) return false
    if (this.#bytes > maxBytes) return true
    return agesCount && this.#oldestAt < this.#clock.now() - maxAgeMs
  }

  /** Deletes what retention no longer keeps, at most a batch; returns how many events went. Never the newest one. */
  prune(tx: Tx, { maxAgeMs, maxBytes }: Retention): number {
    const cut = this.#pruneUpTo(tx, maxAgeMs, maxBytes)
    if (cut < this.#oldest || this.#oldest === 0) return 0
    const gone = tx.all(
      'SELECT type, count(*) AS n, sum(octet_length(envelope)) AS bytes FROM events WHERE seq <= ? GROUP BY type',
      cut,
    )
    tx.run('DELETE FROM events WHERE seq <= ?', cut)
    let bytes = 0
    for (const row of gone) {
      bytes += Number(row.bytes)
      tx.run('UPDATE event_types SET count = count - ? WHERE id = ?', Number(row.n), Number(row.type))
    }
    tx.run('UPDATE log_state SET bytes = bytes - ?', bytes)
    const dead = tx.all('DELETE FROM event_types WHERE count <= 0 RETURNING name').map(({ name }) => String(name))
    const oldestAt = Number(tx.get('SELECT at FROM events WHERE seq = ?', cut + 1)?.at ?? 0)
    tx.afterCommit(() => {
      this.#oldest = cut + 1
      this.#oldestAt = oldestAt
      this.#bytes -= bytes
      for (const row of gone) {
        const name = this.#typeNames.get(Number(row.type)) ?? ''
        this.#typeCounts.set(name, this.countOfType(name) - Number(row.n))
      }
      // One that was appended in the same commit has its row again.
      const again = new Set(this.#appended.map(({ type }) => type))
      for (const name of dead) if (!again.has(name)) this.#forgetType(name)
    })
    return cut - this.#oldest + 1
  }

  #storedOf(row: Row): StoredEvent {
    const [, , , , type, actor, subject] = row
    return {
      ...loggedOf(row),
      type: this.#typeNames.get(Number(type)) ?? '',
      actor: String(actor),
      subject: subject === null ? undefined : String(subject),
    }
  }

  #load(): void {
    // One aggregate each: SQLite answers a lone min or max from the index, and reads the whole table for two of them.
    const [head, oldest, lastAt, oldestAt] =
      this.#db.rows(
        `SELECT (SELECT max(seq) FROM events), (SELECT min(seq) FROM events),
          (SELECT at FROM events ORDER BY seq DESC LIMIT 1), (SELECT at FROM events ORDER BY seq LIMIT 1)`,
      )[0] ?? []
    this.#head = Number(head ?? 0)
    this.#oldest = Number(oldest ?? 0)
    this.#lastAt = Number(lastAt ?? 0)
    this.#oldestAt = Number(oldestAt ?? 0)
    this.#bytes = Number(this.#db.get('SELECT bytes FROM log_state')?.bytes ?? 0)
    for (const [id, name, count] of this.#db.rows('SELECT id, name, count FROM event_types')) {
      this.#knowType(Number(id), String(name), Number(count))
    }
  }

  #knowType(id: number, name: string, count: number): void {
    this.#lastTypeId = Math.max(this.#lastTypeId, id)
    this.#typeIds.set(name, id)
    this.#typeNames.set(id, name)
    if (count > 0) this.#typeCounts.set(name, count)
  }

  #forgetType(name: string): void {
    this.#typeNames.delete(this.#typeIds.get(name) ?? -1)
    this.#typeIds.delete(name)
    this.#typeCounts.delete(name)
  }

  /** Types whose only events were undone. */
  #forgetUnsaved(): void {
    for (const name of this.#unsavedTypes) {
      if (this.#appended.some(({ type }) => type === name)) continue
      this.#unsavedTypes.delete(name)
      this.#forgetType(name)
    }
  }

  #typeId(name: string): number {
    const known = this.#typeIds.get(name)
    if (known !== undefined) return known
    // Not their number: the ids of types whose first write was undone are not on disk.
    const id = this.#lastTypeId + 1
    this.#knowType(id, name, 0)
    this.#unsavedTypes.add(name)
    return id
  }

  #storeCounters(tx: Tx): void {
    if (this.#appended.length === 0) return
    const added = new Map<string, number>()
    this.#appendedBytes = 0
    for (const event of this.#appended) {
      added.set(event.type, (added.get(event.type) ?? 0) + 1)
      this.#appendedBytes += event.bytes
    }
    for (const [name, count] of added) {
      tx.run(
        'INSERT INTO event_types (id, name, count) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET count = count + excluded.count',
        this.#typeId(name),
        name,
        count,
      )
    }
    tx.run('UPDATE log_state SET bytes = bytes + ?', this.#appendedBytes)
  }

  #publish(): void {
    const events = this.#appended
    const last = events.at(-1)
    if (last === undefined) return
    this.#appended = []
    this.#unsavedTypes.clear()
    if (this.#oldest === 0) {
      this.#oldest = events[0]?.seq ?? 0
      this.#oldestAt = events[0]?.at ?? 0
    }
    this.#head = last.seq
    this.#lastAt = last.at
    this.#bytes += this.#appendedBytes
    for (const { type } of events) this.#typeCounts.set(type, this.countOfType(type) + 1)
    for (const listener of this.#listeners) this.#db.afterwards(() => listener(events))
  }

  #typesMatching(patterns: readonly string[]): readonly string[] {
    const found = new Set<string>()
    for (const pattern of patterns) {
      if (!pattern.endsWith('.*')) {
        if (this.countOfType(pattern) > 0) found.add(pattern)
        continue
      }
      for (const [name, count] of this.#typeCounts) if (count > 0 && typeMatches(pattern, name)) found.add(name)
    }
    return [...found]
  }

  /**
   * The first retained seq of this time or later; one past the head where there is none. Found by halves, because `at`
   * never goes backwards (I4): an index of it would cost every append more than the few look-ups cost here.
   */
  #firstSince(ms: number): number {
    if (this.#oldest === 0 || ms > this.#lastAt) return this.#head + 1
    if (ms <= this.#oldestAt) return this.#oldest
    let low = this.#oldest
    let high = this.#head + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const at = Number(this.#db.rows('SELECT at FROM events WHERE seq = ?', middle)[0]?.[0] ?? 0)
      if (at < ms) low = middle + 1
      else high = middle
    }
    return low
  }

  #keepCount(key: string, count: Count): void {
    const [oldest] = this.#counts.size >= MAX_KEPT_COUNTS ? this.#counts.keys() : []
    if (oldest !== undefined) this.#counts.delete(oldest)
    this.#counts.set(key, count)
  }

  #firstFetch(): number {
    const average = this.#bytes / Math.max(this.#head - this.#oldest + 1, 1)
    return average > FETCH.largeBytes ? FETCH.ofLarge : FETCH.first
  }

  #pruneUpTo(tx: Tx, maxAgeMs: number, maxBytes: number): number {
    const byAge = this.agesCount() ? this.#firstSince(this.#clock.now() - maxAgeMs) - 1 : 0
    const wanted = this.#bytes > maxBytes ? this.#oldest + this.#rowsFreeing(tx, this.#bytes - maxBytes) - 1 : 0
    const goal = Math.min(Math.max(byAge, wanted), this.#oldest + PRUNE_BATCH - 1, this.#head - 1)
    this.#holders = [...this.#pins].filter(([, seq]) => seq < goal).map(([name]) => name)
    return Math.min(goal, ...this.#pins.values())
  }

  #rowsFreeing(tx: Tx, bytes: number): number {
    let rows = 0
    let freed = 0
    for (const row of tx.all('SELECT octet_length(envelope) AS n FROM events ORDER BY seq LIMIT ?', PRUNE_BATCH)) {
      if (freed >= bytes) break
      freed += Number(row.n)
      rows++
    }
    return rows
  }
}

/** True where `pattern` is the type itself, or `prefix.*` above it. */
export function typeMatches(pattern: string, type: string): boolean {
  return pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

/** The part of an append that needs no transaction, and most of its time. */
export function encodeEvent(draft: CustomEventDraft): EncodedEvent {
  const { type, actor, subject, message, payload } = draft
  const rest = jsonText({ actor, subject, message, payload }).slice(1)
  const around = '{"seq":,"type":,"ts":"",'.length + Buffer.byteLength(JSON.stringify(type))
  return { draft, rest, bytes: around + Buffer.byteLength(rest) }
}

/** Where an event stands among those of all cities: the city that it is about, and the log whose sequence `seq` counts. */
export interface EventTag {
  readonly city: string
  readonly log: string
}

/** The JSON of an envelope with its tag, as it is at supervisor scope. */
export const taggedEnvelope = (envelope: string, { city, log }: EventTag): string =>
  `${envelope.slice(0, -1)},"city":${JSON.stringify(city)},"log":${JSON.stringify(log)}}`

/** True where an event passes the filter; the same rules as the log's own scans. */
export function eventMatches(filter: EventFilter, event: StoredEvent): boolean {
  if (filter.actor !== undefined && filter.actor !== event.actor) return false
  if (filter.subject !== undefined && filter.subject !== event.subject) return false
  if (filter.city !== undefined && filter.city !== event.city) return false
  if (filter.types !== undefined && !filter.types.some((pattern) => typeMatches(pattern, event.type))) return false
  return filter.payload === undefined || envelopeTest(filter.payload)(event.envelope)
}

type Row = readonly unknown[]

/** Columns behind `seq` and the envelope; those of a whole event begin as those of one that is only sent. */
const SENT = 'at, city'
const WHOLE = `${SENT}, type, actor, subject`

const loggedOf = ([seq, envelope, at, city]: Row): LoggedEvent => ({
  seq: Number(seq),
  at: Number(at),
  city: city === null ? undefined : String(city),
  envelope: String(envelope),
})

/** Rows of one scan: takes those that match, and knows when it is enough. */
class RowWalk<E extends LoggedEvent> {
  readonly events: E[] = []
  reached = 0
  reachedAt: number | undefined
  examined = 0
  readonly #limit: number
  readonly #maxCharacters: number
  readonly #holds: ((envelope: string) => boolean) | undefined
  readonly #clock: Clock
  readonly #eventOf: (row: Row) => E
  readonly #began: number
  #taken = 0
  /** Characters of envelopes since the last fetch. */
  #fetched = 0

  constructor(
    limit: number,
    maxCharacters: number,
    payload: readonly PayloadMatch[] | undefined,
    clock: Clock,
    eventOf: (row: Row) => E,
  ) {
    this.#eventOf = eventOf
    this.#limit = limit
    this.#maxCharacters = maxCharacters
    this.#holds = payload === undefined ? undefined : envelopeTest(payload)
    this.#clock = clock
    this.#began = clock.monotonic()
  }

  /** Looks at a row of `selectRows`; true where the scan ends with it. */
  take(row: Row): boolean {
    const [seq, envelope, at] = row
    this.reached = Number(seq)
    this.reachedAt = Number(at)
    this.examined++
    if (typeof envelope !== 'string') return false
    this.#fetched += envelope.length
    if (this.#holds !== undefined && !this.#holds(envelope)) return false
    this.#taken += envelope.length
    this.events.push(this.#eventOf(row))
    return this.events.length >= this.#limit || this.#taken >= this.#maxCharacters
  }

  /** True where the scan has taken its share of the turn. */
  get tired(): boolean {
    return this.examined >= MAX_EXAMINED || this.#clock.monotonic() - this.#began > MAX_SCAN_MS
  }

  /** How many rows to fetch next, `last` rows after the call before. */
  nextFetch(last: number): number {
    const got = this.#fetched
    this.#fetched = 0
    return got < FETCH.smallPage ? Math.min(last * 2, FETCH.most) : FETCH.ofLarge
  }
}
