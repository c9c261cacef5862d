/**
 * The event log of one database: append inside a write, read ranges, keep what retention allows.
 *
 * I1  seq grows by exactly one per append, also across restarts and failed writes.
 * I2  No reader sees an event before it is on disk.
 * I3  An event row never changes; its envelope is stored as the bytes that every client gets.
 * I4  `at` never goes backwards within a log, so a time bound is a seq bound; the envelope's `ts` is the true clock.
 */
import type { EventType, PayloadOf } from '../contract/event-types.ts'
import { MAX_EVENT_BYTES } from '../contract/events.ts'
import { type Clock, isoTime } from './clock.ts'
import type { Database, SqlValue, Tx } from './database.ts'
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
export type EventDraft = { [T in EventType]: DraftOf<T, PayloadOf<T>> }[EventType]
/** What a client may emit: the caller has checked that the type is not reserved. */
export type CustomEventDraft = DraftOf<string, object>

export interface StoredEvent {
  readonly seq: number
  /** Milliseconds; never goes backwards within a log. */
  readonly at: number
  readonly type: string
  readonly actor: string
  readonly subject: string | undefined
  readonly city: string | undefined
  /** The JSON of the envelope, without `city`. */
  readonly envelope: string
}

export interface EventFilter {
  /** Exact types, or `prefix.*`; any of them. */
  readonly types?: readonly string[]
  readonly actor?: string
  readonly subject?: string
  readonly city?: string
}

/** A range of a log: after < seq ≤ upTo. */
export interface Range {
  readonly after: number
  readonly upTo: number
}

export interface Scan {
  readonly events: readonly StoredEvent[]
  /** The seq up to which (ascending) or down to which (descending) the range was looked at. */
  readonly reached: number
  /** True where the whole range was looked at. */
  readonly complete: boolean
}

export interface Retention {
  readonly maxAgeMs: number
  readonly maxBytes: number
}

/** Rows looked at in one go for filters that no single index answers: bounds the time of one read. */
const MAX_EXAMINED = 20_000
const PRUNE_BATCH = 2_000
/** Types that an index is asked for one by one; the engine takes 500 parts in a union. */
const MAX_TYPE_PARTS = 50

export class EventLog {
  readonly #db: Database
  readonly #clock: Clock
  readonly #typeIds = new Map<string, number>()
  readonly #typeNames = new Map<number, string>()
  readonly #typeCounts = new Map<string, number>()
  readonly #listeners = new Set<(events: readonly StoredEvent[]) => void>()
  readonly #pins = new Map<string, number>()
  #appended: StoredEvent[] = []
  #head = 0
  #oldest = 0
  #bytes = 0
  #lastAt = 0
  #appendedBytes = 0
  #lastTypeId = 0

  constructor(db: Database, clock: Clock) {
    this.#db = db
    this.#clock = clock
    this.#load()
    db.join({
      mark: () => this.#appended.length,
      undo: (mark) => {
        this.#appended.length = mark
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
  /** The seq that the next event appended gets; means something inside a write only. */
  get next(): number {
    return this.#head + this.#appended.length + 1
  }

  /** Appends inside a write; returns the seq it has if that write commits. */
  append(tx: Tx, draft: EventDraft): number {
    return this.#append(tx, draft)
  }

  /** As `append`, for a type outside the catalogue. */
  appendCustom(tx: Tx, draft: CustomEventDraft): number {
    return this.#append(tx, draft)
  }

  /** Calls `listener` with each batch after its commit; returns how to stop. */
  onCommit(listener: (events: readonly StoredEvent[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Keeps retention from passing `seq` as long as the name is pinned; undefined takes the pin away. */
  pin(name: string, seq: number | undefined): void {
    if (seq === undefined) this.#pins.delete(name)
    else this.#pins.set(name, seq)
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
   * bounded number of rows: a scan that is not `complete` goes on from `reached`.
   */
  scan(
    filter: EventFilter,
    range: Range,
    order: 'asc' | 'desc',
    limit: number,
    maxCharacters = Number.POSITIVE_INFINITY,
  ): Scan {
    const bounded = { after: Math.max(range.after, this.#oldest - 1, 0), upTo: Math.min(range.upTo, this.#head) }
    const end = order === 'asc' ? bounded.upTo : bounded.after + 1
    if (bounded.upTo <= bounded.after) return { events: [], reached: end, complete: true }
    const types = filter.types === undefined ? undefined : this.#typesMatching(filter.types)
    if (types?.length === 0) return { events: [], reached: end, complete: true }
    const plan = planScan(filter, types, (name) => this.countOfType(name))
    const events = this.#query(plan, bounded, order, limit, maxCharacters)
    const last = events.at(-1)
    const cut =
      events.length >= limit || events.reduce((sum, { envelope }) => sum + envelope.length, 0) >= maxCharacters
    if (cut && last !== undefined) return { events, reached: last.seq, complete: last.seq === end }
    if (!plan.bounded) return { events, reached: end, complete: true }
    const examined = this.#examined(plan, bounded, order)
    return examined === undefined
      ? { events, reached: end, complete: true }
      : { events, reached: examined, complete: false }
  }

  /** Size of the filtered set, exact up to `cap`. */
  count(filter: EventFilter, range: Range, cap: number): { total: number; capped: boolean } {
    const after = Math.max(range.after, this.#oldest - 1, 0)
    const upTo = Math.min(range.upTo, this.#head)
    if (upTo <= after) return { total: 0, capped: false }
    const whole = after <= this.#oldest - 1 && upTo === this.#head
    const { types, ...others } = filter
    const otherFilters = Object.values(others).some((value) => value !== undefined)
    if (types === undefined && !otherFilters) return { total: upTo - after, capped: false }
    const matching = types === undefined ? undefined : this.#typesMatching(types)
    if (matching?.length === 0) return { total: 0, capped: false }
    if (matching !== undefined && !otherFilters && whole) {
      return { total: matching.reduce((sum, name) => sum + this.countOfType(name), 0), capped: false }
    }
    const plan = planScan(filter, matching, (name) => this.countOfType(name))
    const { from, values } = candidates(
      plan,
      this.#typeIds,
      { after, upTo },
      'desc',
      plan.bounded ? MAX_EXAMINED : cap + 1,
    )
    const rest = conditions(plan.rest, this.#typeIds)
    const row = this.#db.rows(`SELECT count(*) FROM (${from}) AS c ${rest.where}`, ...values, ...rest.values)[0]
    const total = Number(row?.[0] ?? 0)
    if (total > cap) return { total: cap, capped: true }
    return { total, capped: plan.bounded && this.#examined(plan, { after, upTo }, 'desc') !== undefined }
  }

  /** True where `prune` would find something: cheap, and writes nothing. */
  needsPruning({ maxAgeMs, maxBytes }: Retention): boolean {
    if (this.#oldest >= this.#head) return false
    if (this.#bytes > maxBytes) return true
    const oldestAt = Number(this.#db.rows('SELECT at FROM events WHERE seq = ?', this.#oldest)[0]?.[0] ?? 0)
    return oldestAt < this.#clock.now() - maxAgeMs
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
    tx.afterCommit(() => {
      this.#oldest = cut + 1
      this.#bytes -= bytes
      for (const row of gone) {
        const name = this.#typeNames.get(Number(row.type)) ?? ''
        this.#typeCounts.set(name, this.countOfType(name) - Number(row.n))
      }
    })
    return cut - this.#oldest + 1
  }

  #load(): void {
    // One aggregate each: SQLite answers a lone min or max from the index, and reads the whole table for two of them.
    const [head, oldest, lastAt] =
      this.#db.rows(
        `SELECT (SELECT max(seq) FROM events), (SELECT min(seq) FROM events),
          (SELECT at FROM events ORDER BY seq DESC LIMIT 1)`,
      )[0] ?? []
    this.#head = Number(head ?? 0)
    this.#oldest = Number(oldest ?? 0)
    this.#lastAt = Number(lastAt ?? 0)
    this.#bytes = Number(this.#db.get('SELECT bytes FROM log_state')?.bytes ?? 0)
    for (const [id, name, count] of this.#db.rows('SELECT id, name, count FROM event_types')) {
      this.#knowType(Number(id), String(name), Number(count))
    }
  }

  #knowType(id: number, name: string, count: number): void {
    this.#lastTypeId = Math.max(this.#lastTypeId, id)
    this.#typeIds.set(name, id)
    this.#typeNames.set(id, name)
    this.#typeCounts.set(name, count)
  }

  #append(tx: Tx, draft: CustomEventDraft): number {
    const now = this.#clock.now()
    const at = Math.max(now, this.#appended.at(-1)?.at ?? this.#lastAt)
    const seq = this.next
    const { type, actor, subject, message, payload, city } = draft
    const envelope = JSON.stringify({ seq, type, ts: isoTime(now), actor, subject, message, payload })
    if (Buffer.byteLength(envelope) > MAX_EVENT_BYTES) {
      throw problem('payload-too-large', `an event takes at most ${MAX_EVENT_BYTES} bytes`)
    }
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
    this.#appended.push({ seq, at, type, actor, subject, city, envelope })
    return seq
  }

  #typeId(name: string): number {
    const known = this.#typeIds.get(name)
    if (known !== undefined) return known
    // Not their number: the ids of types whose first write was undone are not on disk.
    const id = this.#lastTypeId + 1
    this.#knowType(id, name, 0)
    return id
  }

  #storeCounters(tx: Tx): void {
    if (this.#appended.length === 0) return
    const added = new Map<string, number>()
    this.#appendedBytes = 0
    for (const event of this.#appended) {
      added.set(event.type, (added.get(event.type) ?? 0) + 1)
      this.#appendedBytes += Buffer.byteLength(event.envelope)
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
    if (this.#oldest === 0) this.#oldest = events[0]?.seq ?? 0
    this.#head = last.seq
    this.#lastAt = last.at
    this.#bytes += this.#appendedBytes
    for (const { type } of events) this.#typeCounts.set(type, this.countOfType(type) + 1)
    for (const listener of this.#listeners) listener(events)
  }

  #typesMatching(patterns: readonly string[]): readonly string[] {
    const all = [...this.#typeCounts].filter(([, count]) => count > 0).map(([name]) => name)
    return all.filter((name) => patterns.some((pattern) => typeMatches(pattern, name)))
  }

  /**
   * The first retained seq of this time or later; one past the head where there is none. Found by halves, because `at`
   * never goes backwards (I4): an index of it would cost every append more than the few look-ups cost here.
   */
  #firstSince(ms: number): number {
    if (this.#oldest === 0) return this.#head + 1
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

  #query(
    plan: Plan,
    range: Range,
    order: 'asc' | 'desc',
    limit: number,
    maxCharacters: number,
  ): readonly StoredEvent[] {
    const { from, values } = candidates(plan, this.#typeIds, range, order, plan.bounded ? MAX_EXAMINED : limit)
    const rest = conditions(plan.rest, this.#typeIds)
    const sql = `SELECT seq, type, at, actor, subject, city, envelope FROM (${from}) AS c ${rest.where} ORDER BY seq ${order} LIMIT ?`
    if (maxCharacters === Number.POSITIVE_INFINITY)
      return this.#db.rows(sql, ...values, ...rest.values, limit).map((row) => this.#toEvent(row))
    const events: StoredEvent[] = []
    let characters = 0
    this.#db.each(sql, [...values, ...rest.values, limit], (row) => {
      const event = this.#toEvent(row)
      events.push(event)
      characters += event.envelope.length
      return characters < maxCharacters
    })
    return events
  }

  /** Where a bounded scan stopped, or undefined where it saw the whole range. */
  #examined(plan: Plan, range: Range, order: 'asc' | 'desc'): number | undefined {
    const { from, values } = candidates(plan, this.#typeIds, range, order, MAX_EXAMINED, 'seq')
    const edge = order === 'asc' ? 'max(seq)' : 'min(seq)'
    const [count, reached] = this.#db.rows(`SELECT count(*), ${edge} FROM (${from})`, ...values)[0] ?? []
    return Number(count) < MAX_EXAMINED ? undefined : Number(reached)
  }

  #toEvent(row: readonly unknown[]): StoredEvent {
    const [seq, type, at, actor, subject, city, envelope] = row
    return {
      seq: Number(seq),
      at: Number(at),
      type: this.#typeNames.get(Number(type)) ?? '',
      actor: String(actor),
      subject: subject === null ? undefined : String(subject),
      city: city === null ? undefined : String(city),
      envelope: String(envelope),
    }
  }

  #pruneUpTo(tx: Tx, maxAgeMs: number, maxBytes: number): number {
    const byAge = this.#firstSince(this.#clock.now() - maxAgeMs) - 1
    const wanted = this.#bytes > maxBytes ? this.#oldest + this.#rowsFreeing(tx, this.#bytes - maxBytes) - 1 : 0
    const pinned = Math.min(...this.#pins.values(), Number.MAX_SAFE_INTEGER)
    return Math.min(Math.max(byAge, wanted), this.#oldest + PRUNE_BATCH - 1, this.#head - 1, pinned)
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

/** True where an event passes the filter; the same rules as the log's own scans. */
export function eventMatches(filter: EventFilter, event: StoredEvent): boolean {
  if (filter.actor !== undefined && filter.actor !== event.actor) return false
  if (filter.subject !== undefined && filter.subject !== event.subject) return false
  if (filter.city !== undefined && filter.city !== event.city) return false
  return filter.types === undefined || filter.types.some((pattern) => typeMatches(pattern, event.type))
}

/** Which index leads, and what is left to check row by row. */
interface Plan {
  readonly lead:
    | { readonly column: 'subject' | 'actor' | 'city'; readonly value: string }
    | { readonly types: readonly string[] }
    | undefined
  readonly rest: {
    readonly types?: readonly string[]
    readonly subject?: string
    readonly actor?: string
    readonly city?: string
  }
  /** True where rows are checked that the index cannot rule out. */
  readonly bounded: boolean
}

function planScan(filter: EventFilter, types: readonly string[] | undefined, countOf: (type: string) => number): Plan {
  const rare = types !== undefined && types.reduce((sum, name) => sum + countOf(name), 0) <= MAX_EXAMINED
  const byType = types === undefined ? {} : { types }
  const { actor, subject, city } = filter
  const rest = {
    ...(actor === undefined ? {} : { actor }),
    ...(subject === undefined ? {} : { subject }),
    ...(city === undefined ? {} : { city }),
  }
  const lead = leadOf(rest)
  const few = types !== undefined && types.length <= MAX_TYPE_PARTS
  if (types !== undefined && few && (rare || lead === undefined)) {
    return { lead: { types }, rest, bounded: Object.keys(rest).length > 0 }
  }
  if (lead === undefined) return { lead: undefined, rest: byType, bounded: types !== undefined }
  const { [lead.column]: _, ...others } = rest
  const left = { ...others, ...byType }
  return { lead, rest: left, bounded: Object.keys(left).length > 0 }
}

function leadOf(rest: { readonly subject?: string; readonly actor?: string; readonly city?: string }) {
  if (rest.subject !== undefined) return { column: 'subject', value: rest.subject } as const
  if (rest.city !== undefined) return { column: 'city', value: rest.city } as const
  if (rest.actor !== undefined) return { column: 'actor', value: rest.actor } as const
  return undefined
}

type Ids = ReadonlyMap<string, number>

/** SQL of the rows that the leading index gives, in order, at most `limit` of them (per type). */
function candidates(plan: Plan, ids: Ids, range: Range, order: 'asc' | 'desc', limit: number, columns = '*') {
  const values: SqlValue[] = []
  const select = (where: string, value?: SqlValue): string => {
    if (value !== undefined) values.push(value)
    values.push(range.after, range.upTo, limit)
    return `SELECT ${columns} FROM events WHERE ${where} seq > ? AND seq <= ? ORDER BY seq ${order} LIMIT ?`
  }
  if (plan.lead === undefined) return { from: select(''), values }
  if ('column' in plan.lead) return { from: select(`${plan.lead.column} = ? AND`, plan.lead.value), values }
  const parts = plan.lead.types.map((name) => `SELECT * FROM (${select('type = ? AND', ids.get(name) ?? -1)})`)
  if (parts.length === 1) return { from: parts[0] ?? '', values }
  values.push(limit)
  return { from: `SELECT * FROM (${parts.join(' UNION ALL ')}) ORDER BY seq ${order} LIMIT ?`, values }
}

function conditions(rest: Plan['rest'], ids: Ids): { where: string; values: SqlValue[] } {
  const parts: string[] = []
  const values: SqlValue[] = []
  for (const column of ['subject', 'actor', 'city'] as const) {
    const value = rest[column]
    if (value === undefined) continue
    parts.push(`c.${column} = ?`)
    values.push(value)
  }
  if (rest.types !== undefined) {
    // One text for every set of types: statements are kept by their text.
    parts.push('c.type IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(rest.types.map((name) => ids.get(name) ?? -1)))
  }
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values }
}
