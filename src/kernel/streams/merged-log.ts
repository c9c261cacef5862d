/**
 * Many logs as one stream: membership, composite cursors, merged lists. To everybody else the cursor is opaque.
 *
 * M1  A log that joins is part of every open stream from the position it had when it was registered.
 * M2  Live events have one order and one id each; only a replay computes ids of its own.
 * M3  A log that cannot be read is named in `partial_errors`, and keeps its last known position.
 */
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { Clock } from '../clock.ts'
import { type Positions, parseComposite } from '../cursor.ts'
import type { EventFilter, EventLog, Range, StoredEvent } from '../event-log.ts'
import type { Feed } from '../feed.ts'
import { problem } from '../problem.ts'
import {
  type Backlog,
  type BacklogPage,
  Channel,
  type Framing,
  MAX_PAGE_CHARACTERS,
  pageSizeAfter,
  type ScopedEvent,
} from './hub.ts'

/** One log of the merged stream. */
export interface LogSource {
  readonly name: string
  /** Stays with the log, also when a name is used again. */
  readonly uid: string
  /** Undefined while it cannot be read. */
  readonly log: EventLog | undefined
  /** Head of the supervisor's log when it was registered; 0 for the supervisor's own. */
  readonly registeredAt: number
  /** Its own head at that moment. */
  readonly startHead: number
  /** Last head that was seen, for while it cannot be read. */
  readonly knownHead: number
  /** Uid of the log that had the name before, if any. */
  readonly previousUid: string | undefined
}

interface Member {
  source: LogSource
  position: number
  stop: () => void
}

export interface MergedKey {
  readonly at: number
  readonly source: string
  readonly seq: number
}

export interface MergedEvent extends ScopedEvent {
  readonly source: string
}

export interface MergedPage {
  readonly events: readonly MergedEvent[]
  readonly total: number
  readonly capped: boolean
  /** Where the next page starts; undefined at the end. */
  readonly next: MergedKey | undefined
  readonly failures: readonly string[]
}

export interface MergedQuery {
  readonly filter: EventFilter
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
  readonly afterCursor: string | undefined
  readonly beyond: MergedKey | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

/** Least that is read from one of many logs at a time; together they hold about a page. */
const MIN_READ_EVENTS = 50
const MAX_EXACT_TOTAL = 10_000

export class MergedLog {
  readonly #members = new Map<string, Member>()
  readonly #channel: Channel
  /** `name:seq` of every member, kept sorted, so that an id is one join. */
  #names: string[] = []
  #parts: string[] = []

  constructor(framing: Framing, clock: Clock) {
    const backlog = (afterId: string, filter: EventFilter) => this.#backlog(this.#startPositions(afterId), filter)
    this.#channel = new Channel(framing, 0, backlog, clock)
  }

  get streams(): number {
    return this.#channel.subscribers
  }

  /** True where no city's log is known (decision 17). */
  get empty(): boolean {
    return this.#members.size <= (this.#members.has(SUPERVISOR_SOURCE) ? 1 : 0)
  }

  /** Composite cursor of everything committed so far. */
  head(): string {
    return this.#parts.length === 0 ? '0' : this.#parts.join(',')
  }

  /** Adds a log, or replaces what is known of it (its file was opened, or lost). */
  put(source: LogSource): void {
    const before = this.#members.get(source.name)
    before?.stop()
    const position = source.log?.head ?? Math.max(source.knownHead, before?.position ?? 0)
    const stop = source.log?.onCommit((events) => this.#publish(source.name, events)) ?? (() => {})
    this.#members.set(source.name, { source, position, stop })
    this.#index()
  }

  remove(name: string): void {
    this.#members.get(name)?.stop()
    this.#members.delete(name)
    this.#index()
  }

  /** A stream after the cursor, at the head without one; refuses before anything is sent (spec §4 rule 3). */
  follow(filter: EventFilter, cursor: string | undefined): Feed {
    if (this.empty) throw problem('no-event-providers', 'no event providers available', { retryAfterSec: 1 })
    const head = this.head()
    if (cursor === undefined) return this.#channel.subscribe(filter, head, undefined)
    const start = this.#startPositions(cursor)
    this.#refuseExpired(start, cursor)
    return this.#channel.subscribe(filter, head, this.#backlog(start, filter))
  }

  /** One page over all logs, by time, then source, then seq. */
  page(query: MergedQuery): MergedPage {
    const start = query.afterCursor === undefined ? undefined : this.#startPositions(query.afterCursor)
    if (start !== undefined) this.#refuseExpired(start, query.afterCursor ?? '')
    const failures: string[] = []
    const found: MergedEvent[] = []
    const stops: MergedKey[] = []
    let total = 0
    let capped = false
    for (const { source } of this.#members.values()) {
      try {
        const one = readSource(source, query, start?.get(source.name))
        if (one === undefined) continue
        found.push(...one.events)
        if (one.stop !== undefined) stops.push(one.stop)
        total += one.total
        capped ||= one.capped
      } catch (error) {
        failures.push(`${source.name}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    if (failures.length > 0 && failures.length === this.#members.size) {
      throw problem('unavailable', 'no event log can be read', { retryAfterSec: 1 })
    }
    return { ...cutPage(found, stops, query), total, capped, failures }
  }

  #index(): void {
    const members = [...this.#members].sort(([a], [b]) => (a < b ? -1 : 1))
    this.#names = members.map(([name]) => name)
    this.#parts = members.map(([name, { position }]) => `${name}:${position}`)
  }

  #publish(name: string, events: readonly StoredEvent[]): void {
    const member = this.#members.get(name)
    const last = events.at(-1)
    if (member === undefined || last === undefined) return
    const slot = this.#names.indexOf(name)
    member.position = last.seq
    if (this.#channel.idle) {
      this.#parts[slot] = `${name}:${last.seq}`
      this.#channel.skip(events.length)
      return
    }
    const scoped = events.map((event): ScopedEvent => {
      this.#parts[slot] = `${name}:${event.seq}`
      return { id: this.#parts.join(','), event, city: event.city ?? name }
    })
    this.#channel.publish(scoped)
  }

  /** Where each log starts for this cursor (decision 15). */
  #startPositions(cursor: string): Map<string, number> {
    const given = parseComposite(cursor)
    const starts = new Map<string, number>()
    for (const [name, { source, position }] of this.#members) {
      starts.set(name, given === undefined ? 0 : startOf(source, position, given))
    }
    return starts
  }

  #refuseExpired(starts: ReadonlyMap<string, number>, cursor: string): void {
    const given = parseComposite(cursor)
    if (given === undefined) return
    const errors = []
    let first: EventLog | undefined
    for (const [name, start] of starts) {
      const log = this.#members.get(name)?.source.log
      // Only what the client itself names can be too old; a start of ours begins at the oldest retained.
      if (log === undefined || given.get(name) !== start || start === 0 || start >= log.oldest - 1) continue
      first ??= log
      errors.push({
        location: `cursor.${name}`,
        message: `events ${start + 1} to ${log.oldest - 1} of ${name} are no longer retained; oldest ${log.oldest}, head ${log.head}`,
        value: start,
      })
    }
    if (first === undefined) return
    throw problem(
      'cursor-expired',
      `the cursor is older than what is retained: ${errors.map((one) => one.location.slice(7)).join(', ')}`,
      {
        errors,
        oldest_seq: first.oldest,
        head_seq: first.head,
      },
    )
  }

  #backlog(starts: Map<string, number>, filter: EventFilter): Backlog {
    const fence = new Map<string, { log: EventLog | undefined; upTo: number }>()
    for (const [name, { source, position }] of this.#members) fence.set(name, { log: source.log, upTo: position })
    return new MergedBacklog(starts, fence, filter, this.#channel.head + 1)
  }
}

function startOf(source: LogSource, head: number, given: Positions): number {
  const named = given.get(source.name)
  const supervisor = given.get(SUPERVISOR_SOURCE)
  const registeredAfter = supervisor !== undefined && supervisor <= source.registeredAt
  if (named !== undefined) {
    // The name may have belonged to another log when the cursor was made.
    const another = registeredAfter && source.previousUid !== undefined && source.previousUid !== source.uid
    return another ? source.startHead : Math.min(named, head)
  }
  return registeredAfter ? Math.min(source.startHead, head) : head
}

interface Reader {
  readonly name: string
  /** Its place in the composite id. */
  readonly slot: number
  readonly log: EventLog
  readonly upTo: number
  position: number
  buffer: readonly StoredEvent[]
  taken: number
}

/** Replays several logs up to a fence, interleaved by time, with ids of its own. */
class MergedBacklog implements Backlog {
  readonly #readers: Reader[] = []
  readonly #filter: EventFilter
  readonly #resumeAt: number
  readonly #names: readonly string[]
  readonly #parts: string[]
  #size: number | undefined

  constructor(
    starts: ReadonlyMap<string, number>,
    fence: ReadonlyMap<string, { log: EventLog | undefined; upTo: number }>,
    filter: EventFilter,
    resumeAt: number,
  ) {
    this.#filter = filter
    this.#resumeAt = resumeAt
    this.#names = [...fence.keys()].sort((a, b) => (a < b ? -1 : 1))
    this.#parts = this.#names.map((name) => `${name}:${starts.get(name) ?? 0}`)
    for (const [slot, name] of this.#names.entries()) {
      const { log, upTo } = fence.get(name) ?? { log: undefined, upTo: 0 }
      if (log === undefined) continue
      // A start before the oldest was refused, unless it means "whatever there is".
      const position = Math.max(starts.get(name) ?? 0, log.oldest - 1)
      this.#readers.push({ name, slot, log, upTo, position, buffer: [], taken: 0 })
    }
  }

  read(): BacklogPage {
    const events: ScopedEvent[] = []
    let characters = 0
    this.#size = pageSizeAfter(this.#size)
    while (events.length < this.#size && characters < MAX_PAGE_CHARACTERS) {
      const next = this.#earliest()
      if (next === undefined) return { events, resumeAt: this.#resumeAt }
      if (next === 'later') return { events, resumeAt: undefined }
      events.push(next)
      characters += next.event.envelope.length
    }
    return { events, resumeAt: undefined }
  }

  /** The next event by time; 'later' after a bounded scan that found nothing yet. */
  #earliest(): ScopedEvent | 'later' | undefined {
    let best: Reader | undefined
    for (const reader of this.#readers) {
      const filled = this.#fill(reader)
      if (filled === 'later') return 'later'
      if (!filled) continue
      if (best === undefined || timeOf(reader) < timeOf(best)) best = reader
    }
    const event = best?.buffer[best.taken]
    if (best === undefined || event === undefined) return undefined
    best.taken++
    this.#parts[best.slot] = `${best.name}:${event.seq}`
    return { id: this.#parts.join(','), event, city: event.city ?? best.name }
  }

  #fill(reader: Reader): boolean | 'later' {
    if (reader.taken < reader.buffer.length) return true
    if (reader.position >= reader.upTo) return false
    // A reader so slow that retention overtook it: its stream ends, and its cursor answers 410.
    if (reader.position < reader.log.oldest - 1) throw new Error('what comes next is no longer retained')
    const scan = reader.log.scan(
      this.#filter,
      { after: reader.position, upTo: reader.upTo },
      'asc',
      Math.max(MIN_READ_EVENTS, Math.ceil((this.#size ?? 0) / this.#readers.length)),
      MAX_PAGE_CHARACTERS,
    )
    reader.position = scan.complete ? reader.upTo : scan.reached
    reader.buffer = scan.events
    reader.taken = 0
    if (scan.events.length > 0) return true
    return scan.complete ? false : 'later'
  }
}

const timeOf = (reader: Reader): number => reader.buffer[reader.taken]?.at ?? Number.POSITIVE_INFINITY

function readSource(source: LogSource, query: MergedQuery, start: number | undefined) {
  const { log } = source
  // `city` selects a whole log, and what the supervisor's own log has about that city.
  const { city, ...others } = query.filter
  const own = source.name === SUPERVISOR_SOURCE
  if (city !== undefined && !own && city !== source.name) return undefined
  if (log === undefined) throw new Error('its log cannot be read at the moment')
  const filter = own && city !== undefined ? { ...others, city } : others
  const time = log.rangeOfTime(query.fromMs, query.toMs)
  const whole = { after: Math.max(time.after, start ?? 0), upTo: time.upTo }
  const { total, capped } = log.count(filter, whole, MAX_EXACT_TOTAL)
  const range = query.beyond === undefined ? whole : beyondKey(log, source.name, whole, query.beyond, query.order)
  const scan = log.scan(filter, range, query.order, query.limit + 1)
  const events = scan.events.map(
    (event): MergedEvent => ({
      id: '',
      event,
      city: event.city ?? source.name,
      source: source.name,
    }),
  )
  return {
    events,
    total,
    capped,
    stop: scan.complete || scan.events.length > query.limit ? undefined : keyAt(log, source.name, scan.reached),
  }
}

/** The part of a range that comes after a key in the page order. */
function beyondKey(log: EventLog, name: string, range: Range, key: MergedKey, order: 'asc' | 'desc'): Range {
  if (order === 'desc') {
    const upTo =
      name === key.source ? key.seq - 1 : log.rangeOfTime(undefined, name < key.source ? key.at : key.at - 1).upTo
    return { after: range.after, upTo: Math.min(range.upTo, upTo) }
  }
  const after =
    name === key.source ? key.seq : log.rangeOfTime(name > key.source ? key.at : key.at + 1, undefined).after
  return { after: Math.max(range.after, after), upTo: range.upTo }
}

function keyAt(log: EventLog, source: string, seq: number): MergedKey {
  const event = log.scan({}, { after: seq - 1, upTo: seq }, 'asc', 1).events[0]
  return { at: event?.at ?? 0, source, seq }
}

const keyOf = ({ event, source }: MergedEvent): MergedKey => ({ at: event.at, source, seq: event.seq })

function compareKeys(a: MergedKey, b: MergedKey): number {
  if (a.at !== b.at) return a.at - b.at
  if (a.source !== b.source) return a.source < b.source ? -1 : 1
  return a.seq - b.seq
}

/** The page's rows in order; nothing past the point where some log's scan stopped early. */
function cutPage(found: readonly MergedEvent[], stops: readonly MergedKey[], { order, limit }: MergedQuery) {
  const sign = order === 'asc' ? 1 : -1
  const sorted = [...found].sort((a, b) => sign * compareKeys(keyOf(a), keyOf(b)))
  const nearest = [...stops].sort((a, b) => sign * compareKeys(a, b))[0]
  const sure = nearest === undefined ? sorted : sorted.filter((one) => sign * compareKeys(keyOf(one), nearest) <= 0)
  const events = sure.slice(0, limit)
  const last = events.at(-1)
  return { events, next: sure.length > limit && last !== undefined ? keyOf(last) : nearest }
}
