/**
 * From committed events to subscribers. One writer, many cursors.
 *
 * H1  Every live subscriber of a filter gets the same Buffer: an event is encoded once per scope.
 * H2  The writer never waits for a reader, and a reader that is behind is fed from the log at its own pace.
 * H3  Replay and live are one loop over positions, so nothing is lost or doubled where they meet.
 * H4  What a channel keeps in memory is bounded, and nothing at all while nobody listens.
 * H5  Giving a batch to very many takes its time. As long a pause follows, in which what is committed gathers: one batch for
 *     all of it then, and the process has time for others, too. Who joins the live ones has what they have.
 * H6  Backlogs are read in the turns of `replays.ts`, which all streams of the process share.
 */
import type { Clock } from '../clock.ts'
import { type EventFilter, type EventTag, eventMatches, type LoggedEvent, type StoredEvent } from '../event-log.ts'
import type { Attachment, Feed, Sink } from '../feed.ts'
import { othersReplay, type Replay, type SharedPage, SharedPages, startReplay, stopReplay } from './replays.ts'

/** One event at one scope, with the id that a client resumes from. */
export interface ScopedEvent<E extends LoggedEvent = LoggedEvent> extends EventTag {
  readonly id: string
  readonly event: E
}

/** How events become bytes; given by the HTTP layer. */
export interface Framing {
  frame(scoped: ScopedEvent): string
  /** Frames in the form that goes onto the socket. */
  batch(frames: readonly string[]): Buffer
}

export interface BacklogPage {
  readonly events: readonly ScopedEvent[]
  /** Where the channel goes on; undefined: there is more to read. */
  readonly resume: ResumePoint | undefined
  /** The page has nothing from this position of the channel on. */
  readonly fence: number
  /** Where the next page begins: for others who read the same. */
  readonly positions: readonly number[]
  readonly parts: readonly string[]
}

/** Everything before a position of a channel, which the id stands for in full. */
export interface ResumePoint {
  readonly at: number
  readonly id: string
}

/** A replay's first page is small, so that its first frame is soon there; from then on each is four times the last. */
const FIRST_PAGE_EVENTS = 50
const MAX_PAGE_EVENTS = 1_000
export const MAX_PAGE_CHARACTERS = 512 * 1024
export const pageSizeAfter = (last: number | undefined): number =>
  last === undefined ? FIRST_PAGE_EVENTS : Math.min(last * 4, MAX_PAGE_EVENTS)

/** What a subscriber has missed, read from the log page by page. */
export interface Backlog {
  /** Readers of one channel and filter that are at the same place read the same page. */
  readonly place: string
  read(): BacklogPage
  /** Goes on behind a page that another read here; false where it has to read itself. */
  follow(page: BacklogPage): boolean
}

/** Starts a backlog after the event with this id; it ends the stream where something after it is no longer retained. */
export type OpenBacklog = (afterId: string, filter: EventFilter) => Backlog

/** The log behind a channel. */
export interface ChannelSource {
  readonly openBacklog: OpenBacklog
  /** Id of the newest event that was published. */
  readonly headId: () => string
}

const MAX_RING_EVENTS = 2_048
const MAX_RING_BYTES = 4 * 1024 * 1024
const MAX_BATCH_EVENTS = 1_000
const MAX_BATCH_CHARACTERS = 1024 * 1024
/** A delivery that took less needs no pause (H5), and none is longer than the other. */
const MIN_PAUSED_MS = 1
const MAX_PAUSE_MS = 20

interface Entry extends ScopedEvent<StoredEvent> {
  frame: string | undefined
}

interface Group {
  readonly filter: EventFilter
  readonly live: Set<Subscriber>
  members: number
  /** The last batch that a member was given from the ring: those who fell behind together catch up with the same bytes. */
  caughtUp: CatchUp | undefined
}

/** What follows a position, as far as one batch goes. */
interface CatchUp {
  readonly from: number
  readonly next: number
  readonly head: number
  readonly lastId: string | undefined
  readonly batch: Buffer | undefined
}

export class Channel {
  readonly #framing: Framing
  readonly #source: ChannelSource
  readonly #groups = new Map<string, Group>()
  readonly #subscribers = new Set<Subscriber>()
  #ring: Entry[] = []
  #ringBytes = 0
  /** Position of the newest event; the ring holds the last few up to it. */
  #head: number
  /** The last of the ring, which the live ones have not been given yet. */
  #fresh: Entry[] = []
  #freshCharacters = 0
  readonly #pages = new SharedPages<BacklogPage>()
  #endPause: (() => void) | undefined
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>

  constructor(framing: Framing, head: number, source: ChannelSource, clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock
    this.#framing = framing
    this.#head = head
    this.#source = source
  }

  get head(): number {
    return this.#head
  }
  get headId(): string {
    return this.#source.headId()
  }
  get ringStart(): number {
    return this.#head - this.#ring.length + 1
  }
  /** True while nobody listens: publishers need not make ids. */
  get idle(): boolean {
    return this.#subscribers.size === 0
  }
  get subscribers(): number {
    return this.#subscribers.size
  }

  /** Moves the head without keeping anything; only while idle. */
  skip(count: number): void {
    this.#head += count
    this.#dropRing()
  }

  /** Call once per commit, with the events in order. */
  publish(events: readonly ScopedEvent<StoredEvent>[]): void {
    const entries = events.map((scoped): Entry => ({ ...scoped, frame: undefined }))
    this.#head += entries.length
    this.#keep(entries)
    for (const group of this.#groups.values()) group.caughtUp = undefined
    this.#fresh = this.#fresh.length === 0 ? entries : this.#fresh.concat(entries)
    for (const { event } of entries) this.#freshCharacters += event.envelope.length
    const full = this.#fresh.length > MAX_BATCH_EVENTS || this.#freshCharacters > MAX_BATCH_CHARACTERS
    if (this.#endPause === undefined || full) this.#deliver()
  }

  /** Gives the live ones what they have not been given yet: before another joins them, or their stream ends. */
  settle(): void {
    if (this.#fresh.length > 0) this.#deliver()
  }

  #deliver(): void {
    let rest = this.#fresh
    let next = this.#head + 1 - rest.length
    this.#fresh = []
    this.#freshCharacters = 0
    if (rest.length === 0) return
    const began = this.#clock.monotonic()
    while (rest.length > 0) {
      const entries = upToCharacters(rest)
      rest = rest.slice(entries.length)
      next += entries.length
      this.#deliverBatch(entries, next)
    }
    this.#pause(this.#clock.monotonic() - began)
  }

  /** `next` is the position behind them. */
  #deliverBatch(entries: readonly Entry[], next: number): void {
    const lastId = entries.at(-1)?.id ?? ''
    for (const group of this.#groups.values()) {
      if (group.live.size === 0) continue
      const batch = this.encode(entries, group.filter)
      if (batch === undefined) continue
      for (const subscriber of group.live) subscriber.deliver(batch, next, lastId)
    }
  }

  #pause(ms: number): void {
    if (ms < MIN_PAUSED_MS) return
    this.#endPause?.()
    this.#endPause = this.#clock.after(Math.min(ms, MAX_PAUSE_MS), () => {
      this.#endPause = undefined
      this.#deliver()
    })
  }

  /** A feed that starts with what `backlog` has, or at the head where there is none. */
  subscribe(filter: EventFilter, startId: string, backlog: Backlog | undefined): Feed {
    // Attached now, not when the sink comes: every event from this line on is kept for it (style R7).
    const subscriber = new Subscriber(this, this.#groupOf(filter), startId, backlog)
    this.#subscribers.add(subscriber)
    return subscriber
  }

  /** Ends every stream after it got everything that is in the log. */
  end(): void {
    this.settle()
    for (const subscriber of [...this.#subscribers]) subscriber.finish()
  }

  /** For subscribers: the batch of these entries for a filter; undefined where none matches. */
  encode(entries: readonly Entry[], filter: EventFilter): Buffer | undefined {
    const frames: string[] = []
    for (const entry of entries) {
      if (!eventMatches(filter, entry.event)) continue
      entry.frame ??= this.#framing.frame(entry)
      frames.push(entry.frame)
    }
    return frames.length === 0 ? undefined : this.#framing.batch(frames)
  }

  /** The next page of a backlog, read and encoded once for all who are at its place. */
  readPage(backlog: Backlog, filter: EventFilter): SharedPage<BacklogPage> {
    const place = `${filterKey(filter)} ${backlog.place}`
    const known = this.#pages.get(place)
    // One that ends before what the ring still has leads back here, and would for ever.
    const leadsOn = (known?.page.resume?.at ?? this.ringStart) >= this.ringStart
    if (known !== undefined && leadsOn && backlog.follow(known.page)) return known
    const page = backlog.read()
    const shared = { page: { ...page, events: [] }, batch: this.#encodePage(page.events) }
    if (othersReplay()) this.#pages.keep(place, shared)
    return shared
  }

  #encodePage(events: readonly ScopedEvent[]): Buffer | undefined {
    return events.length === 0 ? undefined : this.#framing.batch(events.map((scoped) => this.#framing.frame(scoped)))
  }

  /** The next batch of the ring from a position in it. */
  catchUp(group: Group, from: number): CatchUp {
    const known = group.caughtUp
    if (known !== undefined && known.from === from && known.head === this.#head) return known
    const start = from - this.ringStart
    const entries = upToCharacters(this.#ring.slice(start, start + MAX_BATCH_EVENTS))
    group.caughtUp = {
      from,
      next: from + entries.length,
      head: this.#head,
      lastId: entries.at(-1)?.id,
      batch: this.encode(entries, group.filter),
    }
    return group.caughtUp
  }

  openBacklog(afterId: string, filter: EventFilter): Backlog {
    return this.#source.openBacklog(afterId, filter)
  }

  leave(subscriber: Subscriber, group: Group): void {
    if (!this.#subscribers.delete(subscriber)) return
    group.live.delete(subscriber)
    group.members--
    if (group.members === 0) this.#groups.delete(filterKey(group.filter))
    if (this.idle) this.#dropRing()
  }

  #groupOf(filter: EventFilter): Group {
    const key = filterKey(filter)
    const group = this.#groups.get(key) ?? { filter, live: new Set(), members: 0, caughtUp: undefined }
    group.members++
    this.#groups.set(key, group)
    return group
  }

  #keep(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#ring.push(entry)
      this.#ringBytes += entry.event.envelope.length
    }
    let drop = 0
    while (this.#ring.length - drop > MAX_RING_EVENTS || this.#ringBytes > MAX_RING_BYTES) {
      this.#ringBytes -= this.#ring[drop]?.event.envelope.length ?? 0
      drop++
    }
    if (drop > 0) this.#ring = this.#ring.slice(drop)
  }

  #dropRing(): void {
    this.#endPause?.()
    this.#endPause = undefined
    this.#fresh = []
    this.#freshCharacters = 0
    this.#ring = []
    this.#ringBytes = 0
  }
}

const filterKey = (filter: EventFilter): string =>
  JSON.stringify([filter.types, filter.actor, filter.subject, filter.city, filter.payload])

function upToCharacters(entries: readonly Entry[]): readonly Entry[] {
  let characters = 0
  const end = entries.findIndex(({ event }) => {
    characters += event.envelope.length
    return characters > MAX_BATCH_CHARACTERS
  })
  return end < 0 ? entries : entries.slice(0, Math.max(end, 1))
}

class Subscriber implements Feed, Attachment, Replay {
  readonly #channel: Channel
  readonly #group: Group
  #sink: Sink | undefined
  #backlog: Backlog | undefined
  /** Position of the next event to send; meaningful without a backlog and outside the live set. */
  #next: number
  #lastId: string
  #blocked = false
  #finishing = false
  #closed = false
  #isNew = true

  constructor(channel: Channel, group: Group, startId: string, backlog: Backlog | undefined) {
    this.#channel = channel
    this.#group = group
    this.#lastId = startId
    this.#backlog = backlog
    this.#next = channel.head + 1
  }

  attach(sink: Sink): Attachment {
    this.#sink = sink
    this.#pump()
    return this
  }

  drained(): void {
    // A live one was never held back: its position is the channel's.
    if (this.#group.live.has(this)) return
    this.#blocked = false
    this.#pump()
  }

  settle(): void {
    this.#channel.settle()
  }

  headId(): string | undefined {
    if (!this.#group.live.has(this)) return undefined
    this.#channel.settle()
    // What was kept back may have been more than its client takes.
    return this.#group.live.has(this) ? this.#channel.headId : undefined
  }

  detach(): void {
    if (this.#closed) return
    this.#closed = true
    this.#backlog = undefined
    stopReplay(this)
    this.#channel.leave(this, this.#group)
  }

  /** Live delivery: the batch ends right before position `next`. */
  deliver(batch: Buffer, next: number, lastId: string): void {
    if (this.#sink === undefined || this.#sink.write(batch)) return
    this.#group.live.delete(this)
    this.#next = next
    this.#lastId = lastId
    this.#blocked = true
  }

  finish(): void {
    this.#finishing = true
    if (this.#group.live.delete(this)) this.#next = this.#channel.head + 1
    this.#pump()
  }

  #pump(): void {
    while (!this.#closed && !this.#blocked && this.#sink !== undefined) {
      if (this.#backlog !== undefined) {
        startReplay(this, this.#isNew)
        return
      }
      if (this.#next > this.#channel.head) {
        this.#caughtUp(this.#sink)
        return
      }
      if (this.#next < this.#channel.ringStart) {
        this.#backlog = this.#channel.openBacklog(this.#lastId, this.#group.filter)
        continue
      }
      const { batch, next, lastId } = this.#channel.catchUp(this.#group, this.#next)
      this.#next = next
      this.#lastId = lastId ?? this.#lastId
      this.#send(batch, this.#sink)
    }
  }

  replayPage(): boolean {
    const [backlog, sink] = [this.#backlog, this.#sink]
    if (backlog === undefined || sink === undefined || this.#blocked) return false
    this.#isNew = false
    const shared = this.#readPage(backlog)
    if (shared === undefined) {
      // Its log is gone (unregistered, directory lost), or what comes next is: what cannot be read cannot be promised.
      this.detach()
      sink.end()
      return false
    }
    const { resume } = shared.page
    if (resume !== undefined) {
      this.#backlog = undefined
      this.#next = resume.at
      this.#lastId = resume.id
    }
    this.#send(shared.batch, sink)
    if (resume !== undefined) this.#pump()
    return this.#backlog !== undefined && !this.#blocked && !this.#closed
  }

  #readPage(backlog: Backlog): SharedPage<BacklogPage> | undefined {
    try {
      return this.#channel.readPage(backlog, this.#group.filter)
    } catch {
      return undefined
    }
  }

  #caughtUp(sink: Sink): void {
    if (!this.#finishing) {
      this.#channel.settle()
      this.#group.live.add(this)
      return
    }
    this.detach()
    sink.end()
  }

  #send(batch: Buffer | undefined, sink: Sink): void {
    if (batch !== undefined && !sink.write(batch)) this.#blocked = true
  }
}
