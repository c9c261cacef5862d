/**
 * Many logs as one stream: membership, composite cursors, merged lists. To everybody else the cursor is opaque.
 *
 * M1  A log that joins is part of every open stream from the position it had when it was registered.
 * M2  Live events have one order and one id each; only a replay computes ids of its own.
 * M3  A log that cannot be read is named in `partial_errors`, and keeps its last known position.
 * M4  A log that leaves ends no stream, nor a replay of others: what nobody could read any more is passed over.
 */
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { Clock } from '../clock.ts'
import { type Positions, parseComposite } from '../cursor.ts'
import type { EventFilter, EventLog, LoggedEvent, Scan, StoredEvent } from '../event-log.ts'
import type { Feed } from '../feed.ts'
import { problem } from '../problem.ts'
import type { ListedLog } from './event-pages.ts'
import {
  type Backlog,
  type BacklogPage,
  Channel,
  type Framing,
  MAX_PAGE_CHARACTERS,
  pageSizeAfter,
  type ResumePoint,
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

/** Least that is read from one of many logs at a time; together they hold about a page. */
const MIN_READ_EVENTS = 50

export class MergedLog {
  readonly #members = new Map<string, Member>()
  readonly #channel: Channel
  /** `name:seq` of every member, kept sorted, so that an id is one join. */
  #names: string[] = []
  #parts: string[] = []

  constructor(framing: Framing, clock: Clock) {
    // The id is one of ours: every position in it was reached, and what follows is all there or the stream ends.
    const openBacklog = (afterId: string, filter: EventFilter) =>
      this.#backlog(this.#startPositions(afterId), filter, true)
    this.#channel = new Channel(framing, 0, { openBacklog, headId: () => this.head() }, clock)
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
    return this.#channel.subscribe(filter, head, this.#backlog(start, filter, false))
  }

  /** What a list has to read, and `<log>: <message>` for each log that cannot be read; refuses where there is none. */
  listed(filter: EventFilter, afterCursor: string | undefined): { logs: ListedLog[]; failures: string[] } {
    const start = afterCursor === undefined ? undefined : this.#startPositions(afterCursor)
    if (start !== undefined) this.#refuseExpired(start, afterCursor ?? '')
    const { city, ...others } = filter
    const logs: ListedLog[] = []
    const failures: string[] = []
    for (const { source } of this.#members.values()) {
      const { name, log } = source
      const own = name === SUPERVISOR_SOURCE
      // `city` selects a whole log, and what the supervisor's own log has about that city.
      if (city !== undefined && !own && city !== name) continue
      if (log === undefined) {
        failures.push(`${name}: its log cannot be read at the moment`)
        continue
      }
      const after = start?.get(name) ?? 0
      logs.push({ name, log, filter: own && city !== undefined ? { ...others, city } : others, after, upTo: log.head })
    }
    if (failures.length > 0 && failures.length === this.#members.size)
      throw problem('unavailable', 'no event log can be read', { retryAfterSec: 1 })
    return { logs, failures }
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
    const scoped = events.map((event): ScopedEvent<StoredEvent> => {
      this.#parts[slot] = `${name}:${event.seq}`
      return { id: this.#parts.join(','), event, city: event.city ?? name, log: name }
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

  #backlog(starts: Map<string, number>, filter: EventFilter, gapless: boolean): Backlog {
    const fence = new Map<string, Fence>()
    for (const [name, { source, position }] of this.#members)
      fence.set(name, { log: source.log, uid: source.uid, upTo: position })
    const isMember = (name: string, uid: string) => this.#members.get(name)?.source.uid === uid
    const resume = { at: this.#channel.head + 1, id: this.head() }
    return new MergedBacklog(starts, fence, filter, resume, gapless, isMember)
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

/** What a replay reads of one log. */
interface Fence {
  readonly log: EventLog | undefined
  readonly uid: string
  readonly upTo: number
}

interface Reader {
  readonly name: string
  readonly uid: string
  /** Its place in the composite id. */
  readonly slot: number
  readonly log: EventLog
  readonly upTo: number
  position: number
  buffer: readonly LoggedEvent[]
  taken: number
}

/** Replays several logs up to a fence, interleaved by time, with ids of its own. */
class MergedBacklog implements Backlog {
  readonly #readers: Reader[] = []
  readonly #filter: EventFilter
  readonly #resume: ResumePoint
  readonly #names: readonly string[]
  readonly #parts: string[]
  readonly #isMember: (name: string, uid: string) => boolean
  #size: number | undefined

  constructor(
    starts: ReadonlyMap<string, number>,
    fence: ReadonlyMap<string, Fence>,
    filter: EventFilter,
    resume: ResumePoint,
    gapless: boolean,
    isMember: (name: string, uid: string) => boolean,
  ) {
    this.#filter = filter
    this.#isMember = isMember
    this.#resume = resume
    this.#names = [...fence.keys()].sort((a, b) => (a < b ? -1 : 1))
    this.#parts = this.#names.map((name) => `${name}:${starts.get(name) ?? 0}`)
    for (const [slot, name] of this.#names.entries()) {
      const { log, uid, upTo } = fence.get(name) ?? { log: undefined, uid: '', upTo: 0 }
      if (log === undefined) continue
      const start = starts.get(name) ?? 0
      // A start before the oldest was refused, unless it means "whatever there is".
      const position = gapless ? start : Math.max(start, log.oldest - 1)
      this.#readers.push({ name, uid, slot, log, upTo, position, buffer: [], taken: 0 })
    }
  }

  read(): BacklogPage {
    const events: ScopedEvent[] = []
    let characters = 0
    this.#size = pageSizeAfter(this.#size)
    while (events.length < this.#size && characters < MAX_PAGE_CHARACTERS) {
      const next = this.#earliest()
      if (next === undefined) return this.#page(events, this.#resume)
      if (next === 'later') break
      events.push(next)
      characters += next.event.envelope.length
    }
    return this.#page(events, undefined)
  }

  get place(): string {
    return `${this.#parts.join()} ${this.#readers.map((reader) => `${reader.slot}:${positionOf(reader)}`).join()} ${this.#size ?? 0}`
  }

  follow(page: BacklogPage): boolean {
    // It may have events that this reader is to get live.
    if (page.fence > this.#resume.at) return false
    for (const [index, reader] of this.#readers.entries()) {
      reader.position = page.positions[index] ?? reader.position
      reader.buffer = []
      reader.taken = 0
    }
    for (const [slot, part] of page.parts.entries()) this.#parts[slot] = part
    this.#size = pageSizeAfter(this.#size)
    return true
  }

  #page(events: readonly ScopedEvent[], resume: ResumePoint | undefined): BacklogPage {
    const positions = this.#readers.map(positionOf)
    return { events, resume, fence: this.#resume.at, positions, parts: [...this.#parts] }
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
    return { id: this.#parts.join(','), event, city: event.city ?? best.name, log: best.name }
  }

  #fill(reader: Reader): boolean | 'later' {
    if (reader.taken < reader.buffer.length) return true
    if (reader.position >= reader.upTo) return false
    // A reader so slow that retention overtook it: its stream ends, and its cursor answers 410.
    if (reader.position < reader.log.oldest - 1) throw new Error('what comes next is no longer retained')
    const scan = this.#scan(reader)
    // M4.
    if (scan === undefined) {
      reader.position = reader.upTo
      return false
    }
    reader.position = scan.complete ? reader.upTo : scan.reached
    reader.buffer = scan.events
    reader.taken = 0
    if (scan.events.length > 0) return true
    return scan.complete ? false : 'later'
  }

  /** Undefined where it cannot be read any more because it has left. */
  #scan({ name, uid, log, position, upTo }: Reader): Scan<LoggedEvent> | undefined {
    const limit = Math.max(MIN_READ_EVENTS, Math.ceil((this.#size ?? 0) / this.#readers.length))
    try {
      return log.scanEnvelopes(this.#filter, { after: position, upTo }, 'asc', limit, MAX_PAGE_CHARACTERS)
    } catch (error) {
      if (this.#isMember(name, uid)) throw error
      return undefined
    }
  }
}

/** Everything up to here was given: what is read and not given yet comes after it. */
function positionOf({ buffer, taken, position }: Reader): number {
  const next = buffer[taken]
  return next === undefined ? position : next.seq - 1
}

const timeOf = (reader: Reader): number => reader.buffer[reader.taken]?.at ?? Number.POSITIVE_INFINITY
