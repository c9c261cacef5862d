/**
 * One page of events from one log or from many, in the order of time, then name, then seq.
 *
 * P1  A log is opened when an event of it may be next, and not before: quiet ones cost a comparison.
 * P2  A page is read in turns of the event loop, and it ends at a number of bytes or after so much work; its cursor goes on.
 * P3  The stored bytes are the answer: nothing is parsed.
 *
 * Other lists are filled by `Page.of`. These are not, since that takes all items in one turn: a page of many logs is put
 * together in several, is counted beside it, and may end where it found nothing.
 */
import { MAX_EXACT_TOTAL } from '../../contract/base/paging.ts'
import type { EventFilter, EventLog, LoggedEvent, Range } from '../event-log.ts'
import { PAGE_BYTES } from '../page.ts'

/** Place of an event in the order of pages, or a place between two. */
export interface PageKey {
  readonly at: number
  readonly source: string
  readonly seq: number
}

export interface ListedLog {
  readonly name: string
  readonly log: EventLog
  readonly filter: EventFilter
  /** Only events after this one. */
  readonly after: number
  /** And up to this one. */
  readonly upTo: number
}

export interface PageQuery {
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Where the page before ended. */
  readonly beyond: PageKey | undefined
}

export interface PagedEvent {
  readonly event: LoggedEvent
  readonly source: string
}

/** Rows looked at for one page, and again as many for its total. */
const MAX_PAGE_ROWS = 50_000
const MAX_COUNTED_ROWS = 20_000
const TURN_MS = 10
/** What is fetched of one log among many: few at first, because most of them have little to add. */
const FIRST_FETCH = 16
const MAX_FETCH_CHARACTERS = 256 * 1024

export class EventPages {
  readonly events: PagedEvent[] = []
  /** `<log>: <message>` of those that could not be read. */
  readonly failures: string[] = []
  /** Where the next page starts; undefined at the end. */
  next: PageKey | undefined
  total = 0
  /** True: there may be more than `total`. */
  capped = false
  readonly #query: PageQuery
  readonly #clock: () => number
  /** Those that may have more, by what may come first of them. */
  readonly #readers: Reader[]
  readonly #uncounted: ListedLog[]
  #bytes = 0
  #rows = 0
  #countedRows = 0
  #read = false

  /** `clock` gives milliseconds that only go forward. */
  constructor(logs: readonly ListedLog[], query: PageQuery, clock: () => number) {
    this.#query = query
    this.#clock = clock
    const compare = keyOrder(query.order)
    this.#readers = logs
      .map((log) => new Reader(log, query, logs.length === 1))
      .sort((a, b) => compare(a.place, b.place))
    this.#uncounted = [...logs].reverse()
  }

  /** Works for a turn at most; true when the page is done. */
  step(): boolean {
    const until = this.#clock() + TURN_MS
    while (!this.#read) {
      const looked = this.#rows
      this.#read = this.#readOn()
      // Only a look at the disk takes time; what it brought is as good as in the page.
      if (this.#rows > looked && this.#clock() > until) return false
    }
    for (let log = this.#uncounted.pop(); log !== undefined; log = this.#uncounted.pop()) {
      this.#count(log)
      if (this.#clock() > until) return this.#uncounted.length === 0
    }
    return true
  }

  /** Takes an event, or reads on in the log that may have the next one; true where the page ends. */
  #readOn(): boolean {
    const [first] = this.#readers
    if (first === undefined) return true
    const event = first.waiting
    if (event === undefined) {
      if (this.#rows >= MAX_PAGE_ROWS) {
        this.next = first.place
        return true
      }
      this.#advance(first)
      return false
    }
    const bytes = Buffer.byteLength(event.envelope)
    const last = this.events.at(-1)
    const full = this.events.length >= this.#query.limit || this.#bytes + bytes > PAGE_BYTES
    if (full && last !== undefined) {
      this.next = { at: last.event.at, source: last.source, seq: last.event.seq }
      return true
    }
    this.events.push({ event, source: first.name })
    this.#bytes += bytes
    first.take()
    this.#settle()
    return false
  }

  #advance(reader: Reader): void {
    try {
      this.#rows += reader.fetch(this.#query.limit - this.events.length + 1)
    } catch (error) {
      this.failures.push(`${reader.name}: ${error instanceof Error ? error.message : String(error)}`)
      reader.finished = true
    }
    this.#settle()
  }

  /** Puts the first reader where it belongs now. */
  #settle(): void {
    const [reader] = this.#readers
    if (reader === undefined) return
    if (reader.finished) {
      this.#readers.shift()
      return
    }
    const compare = keyOrder(this.#query.order)
    let low = 1
    let high = this.#readers.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#readers[middle]
      if (other !== undefined && compare(other.place, reader.place) < 0) low = middle + 1
      else high = middle
    }
    if (low === 1) return
    this.#readers.shift()
    this.#readers.splice(low - 1, 0, reader)
  }

  #count(listed: ListedLog): void {
    const { filter, log } = listed
    if (filter.payload !== undefined) {
      // Only what was looked at is known: a whole log would have to be parsed.
      this.total = this.events.length
      this.capped = this.next !== undefined || this.#query.beyond !== undefined
      return
    }
    try {
      const left = Math.max(MAX_COUNTED_ROWS - this.#countedRows, 1)
      const { total, capped, examined } = log.count(filter, rangeOf(listed, this.#query), MAX_EXACT_TOTAL, left)
      this.total += total
      this.capped ||= capped
      this.#countedRows += examined
    } catch {
      // Its failure was noted when its events were read, or it has none on this page.
      this.capped = true
    }
  }
}

/** What one log has for the page. */
class Reader {
  readonly name: string
  finished = false
  readonly #listed: ListedLog
  readonly #query: PageQuery
  readonly #alone: boolean
  /** Where nothing is fetched: everything before it was looked at. */
  #place: PageKey
  #range: Range | undefined
  #fetched: readonly LoggedEvent[] = []
  #taken = 0
  #size = FIRST_FETCH

  constructor(listed: ListedLog, query: PageQuery, alone: boolean) {
    this.name = listed.name
    this.#listed = listed
    this.#query = query
    this.#alone = alone
    this.#place = earliestPlace(listed, query)
  }

  get waiting(): LoggedEvent | undefined {
    return this.#fetched[this.#taken]
  }

  /** Where its next event is, or the first place where it may be. */
  get place(): PageKey {
    const event = this.waiting
    return event === undefined ? this.#place : { at: event.at, source: this.name, seq: event.seq }
  }

  take(): void {
    const event = this.waiting
    if (event === undefined) return
    this.#taken++
    this.#place = { at: event.at, source: this.name, seq: event.seq }
    this.finished = this.#range === undefined && this.waiting === undefined
  }

  /** Looks for more; returns how many rows that took. */
  fetch(wanted: number): number {
    const { log, filter } = this.#listed
    const { order } = this.#query
    const range = this.#range ?? beyondKey(this.#listed, rangeOf(this.#listed, this.#query), this.#query)
    const size = this.#alone ? wanted : Math.min(this.#size, wanted)
    const characters = this.#alone ? PAGE_BYTES : MAX_FETCH_CHARACTERS
    const { events, reached, reachedAt, complete, examined } = log.scanEnvelopes(filter, range, order, size, characters)
    this.#size *= 4
    this.#fetched = events
    this.#taken = 0
    if (reachedAt !== undefined) this.#place = { at: reachedAt, source: this.name, seq: reached }
    if (complete) this.#range = undefined
    else this.#range = order === 'asc' ? { ...range, after: reached } : { ...range, upTo: reached - 1 }
    this.finished = complete && events.length === 0
    return Math.max(examined, 1)
  }
}

/** Not after the first event that a log may have for the page: known without a look at the disk. */
function earliestPlace({ name, log }: ListedLog, { order, fromMs, toMs, beyond }: PageQuery): PageKey {
  if (order === 'desc') {
    const at = Math.min(log.newestAt, Math.floor(toMs ?? log.newestAt), beyond?.at ?? log.newestAt)
    return { at, source: name, seq: Number.MAX_SAFE_INTEGER }
  }
  return { at: Math.max(log.oldestAt, Math.floor(fromMs ?? 0), beyond?.at ?? 0), source: name, seq: 0 }
}

function rangeOf({ log, after, upTo }: ListedLog, { fromMs, toMs }: PageQuery): Range {
  const time = log.rangeOfTime(fromMs, toMs)
  return { after: Math.max(time.after, after), upTo: Math.min(time.upTo, upTo) }
}

/** The part of a range that comes after a key in the order of the page. */
function beyondKey({ log, name }: ListedLog, range: Range, { beyond: key, order }: PageQuery): Range {
  if (key === undefined) return range
  if (order === 'desc') {
    const upTo =
      name === key.source ? key.seq - 1 : log.rangeOfTime(undefined, name < key.source ? key.at : key.at - 1).upTo
    return { after: range.after, upTo: Math.min(range.upTo, upTo) }
  }
  const after =
    name === key.source ? key.seq : log.rangeOfTime(name > key.source ? key.at : key.at + 1, undefined).after
  return { after: Math.max(range.after, after), upTo: range.upTo }
}

function keyOrder(order: 'asc' | 'desc'): (a: PageKey, b: PageKey) => number {
  const sign = order === 'asc' ? 1 : -1
  return (a, b) => {
    if (a.at !== b.at) return sign * (a.at - b.at)
    if (a.source !== b.source) return a.source < b.source ? -sign : sign
    return sign * (a.seq - b.seq)
  }
}
