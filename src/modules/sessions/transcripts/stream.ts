/**
 * Streams of sessions (sheet 04 §5.2, decision 69): what there is, then what comes.
 *
 * ST1  A subscriber is a place in the transcript. Replay and live are one loop over places: nothing is lost or doubled
 *      where they meet, and a resumed stream goes on where the `id:` says.
 * ST2  A stretch is read and encoded once per format: all who are at the same place get the same Buffer.
 * ST3  A client that does not take its bytes is fed at its own pace; nobody waits for it, and what is kept is bounded.
 * ST4  A session that is closed ends its streams, after everything it said.
 * ST5  An entry that goes on while it is followed keeps its id: pieces with one id are one text, and no two entries share one.
 * ST6  A transcript that is another one by now (its log was found, replaced or cut) is told anew from its snapshot, and
 *      said to be.
 */
import type { PendingInteraction, SessionState } from '../../../contract/sessions/session-model.ts'
import type { SessionTranscriptResponse } from '../../../contract/sessions/session-transcript.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Attachment, Feed, Sink } from '../../../kernel/feed.ts'
import { frame } from '../../../kernel/streams/frame.ts'
import {
  formatPlace,
  formatResume,
  type Item,
  type OpenItem,
  type Page,
  type Place,
  type Transcript,
} from './transcript.ts'

const SNAPSHOT_ITEMS = 100
const BATCH_ITEMS = 50
const MAX_KEPT_BATCHES = 64
/** Logs that nobody tells about are looked at this often, while somebody listens. */
const POLL_MS = 1_000

/** What a session is doing, as far as its streams tell. */
export interface StreamState {
  readonly state: SessionState
  readonly reason: string | undefined
  readonly running: boolean
  readonly activity: 'idle' | 'in-turn' | undefined
  readonly pending: PendingInteraction | undefined
}

export interface StreamSource {
  readonly id: string
  transcript(): Promise<Transcript>
  /** Undefined: its record is gone. */
  state(): StreamState | undefined
  /** Called when there may be more to read, or its state changed. */
  listen(wake: () => void): () => void
  /** A message is being typed: what the terminal shows of it comes behind it, so it waits until it is on record. */
  held(): boolean
  /** Its log is written by somebody who tells nobody. */
  readonly polled: boolean
}

/** How stretches become frames of one format. */
export interface StreamFormat {
  /** Same key, same bytes. */
  readonly key: string
  /** Whole entries again while they grow, instead of what is new of them. */
  readonly upsert: boolean
  /** False for what a frame of the format would say nothing of. */
  readonly shows: (item: Item) => boolean
  readonly frame: (stretch: FrameInput) => string
  /** The `id:` of a frame at that place. */
  readonly id: (place: Place) => string
}

export interface FrameInput {
  readonly items: readonly Item[]
  readonly place: Place
  readonly text: boolean
  /** Absent where something is added to what was sent before. */
  readonly snapshot?: Snapshot
}

export interface Snapshot {
  readonly page: Page
  readonly droppedBytes: number
  /** Why what the client has is void. */
  readonly reset: ResetReason | undefined
}

export type ResetReason = NonNullable<SessionTranscriptResponse['reset_reason']>

/** Frames in the form that goes onto the socket; given by the HTTP layer. */
export type Encode = (frames: readonly string[]) => Buffer

export interface StreamDeps {
  readonly clock: Clock
  readonly encode: Encode
}

interface Batch {
  readonly bytes: Buffer | undefined
  readonly place: Place
  /** Something was said in a turn: not by a terminal, whose turns nobody knows. */
  readonly inTurn: boolean
  /** What it was read from. */
  readonly source: string
  /** The place is in no log any more. */
  readonly gone?: ResetReason
}

/** What the streams of one session share. */
export class SessionTail {
  readonly source: StreamSource
  readonly #deps: StreamDeps
  readonly #followers = new Set<Follower>()
  readonly #batches = new Map<string, Promise<Batch>>()
  readonly #open = new Map<string, OpenItem | 'none'>()
  /** What was read last was read from. */
  #source: string | undefined
  #unlisten: (() => void) | undefined
  #cancelPoll: (() => void) | undefined

  constructor(source: StreamSource, deps: StreamDeps) {
    this.source = source
    this.#deps = deps
  }

  get encode(): Encode {
    return this.#deps.encode
  }

  get clock(): Clock {
    return this.#deps.clock
  }

  get idle(): boolean {
    return this.#followers.size === 0
  }

  join(follower: Follower): () => void {
    this.#followers.add(follower)
    this.#unlisten ??= this.source.listen(() => this.#wake())
    this.#poll()
    return () => {
      this.#followers.delete(follower)
      if (this.#followers.size > 0) return
      this.#unlisten?.()
      this.#unlisten = undefined
      this.#cancelPoll?.()
      this.#cancelPoll = undefined
      this.#batches.clear()
      this.#open.clear()
    }
  }

  /**
   * What follows `place`, encoded; the same for all who ask for it (ST2). `source` is what the place was found in, where
   * that is known.
   */
  batch(format: StreamFormat, place: Place, source: string | undefined): Promise<Batch> {
    const key = `${format.key} ${formatPlace(place)} ${source ?? ''}`
    const known = this.#batches.get(key)
    if (known !== undefined) return known
    const made = this.#read(format, place, source)
    this.#batches.set(key, made)
    const forget = () => {
      if (this.#batches.get(key) === made) this.#batches.delete(key)
    }
    // Nothing new is no answer for the next one who asks.
    made.then((batch) => batch.bytes === undefined && forget(), forget)
    const [oldest] = this.#batches.size > MAX_KEPT_BATCHES ? this.#batches.keys() : []
    if (oldest !== undefined) this.#batches.delete(oldest)
    return made
  }

  /** The transcript of now; what is kept of another one is forgotten. */
  async transcript(): Promise<Transcript> {
    const transcript = await this.source.transcript()
    if (this.#source !== transcript.source) {
      this.#batches.clear()
      this.#open.clear()
    }
    this.#source = transcript.source
    return transcript
  }

  /** A log is read by its name: what was read counts only if the name still meant the same file afterwards (ST6). */
  async isAnother(transcript: Transcript): Promise<boolean> {
    return transcript.source !== '' && (await this.transcript()).source !== transcript.source
  }

  async #read(format: StreamFormat, place: Place, placeSource: string | undefined): Promise<Batch> {
    const transcript = await this.transcript()
    const { source } = transcript
    const gone = (await goneFrom(transcript, place)) ?? rewritten(placeSource, source)
    if (gone !== undefined) return { bytes: undefined, place, inTurn: false, source, gone }
    const from = format.upsert ? await transcript.opening(place) : place
    const page = await transcript.forward(from, BATCH_ITEMS)
    const reached = page.place ?? place
    const behind = page.items.filter((item) => isBehind(item.id, item.entry.end, place) && format.shows(item))
    const items = format.upsert ? behind : await this.#joined(transcript, place, behind)
    if (await this.isAnother(transcript)) return this.#read(format, place, source)
    if (items.length === 0) {
      // What is open stays so over what says nothing; where nothing was, something may begin with it.
      const open = this.#open.get(formatPlace(place))
      if (open !== 'none') this.#rememberAs(reached, open)
      return { bytes: undefined, place: reached, inTurn: false, source }
    }
    this.remember(reached, items.at(-1))
    const frame = format.frame({ items, place: reached, text: transcript.text })
    return { bytes: this.encode([frame]), place: reached, inTurn: !transcript.text, source }
  }

  /** What was shown last before `place`: what is read there may go on with it. */
  remember(place: Place, last: Item | undefined): void {
    this.#rememberAs(place, openOf(last))
  }

  #rememberAs(place: Place, open: OpenItem | 'none' | undefined): void {
    this.#open.delete(formatPlace(place))
    if (open === undefined) return
    this.#open.set(formatPlace(place), open)
    const [oldest] = this.#open.size > MAX_KEPT_BATCHES ? this.#open.keys() : []
    if (oldest !== undefined) this.#open.delete(oldest)
  }

  /** ST5. */
  async #joined(transcript: Transcript, place: Place, items: readonly Item[]): Promise<readonly Item[]> {
    const [first, ...others] = items
    if (first?.entry.run === undefined) return items
    const known = this.#open.get(formatPlace(place))
    const open = known ?? (await transcript.open(place)) ?? 'none'
    if (open === 'none' || open.run !== first.entry.run || open.chapter !== chapterOf(first)) return items
    return [{ ...first, id: open.id, goesOn: true }, ...others]
  }

  #wake(): void {
    for (const follower of this.#followers) follower.pump()
  }

  #poll(): void {
    if (!this.source.polled || this.#cancelPoll !== undefined) return
    this.#cancelPoll = this.#deps.clock.after(POLL_MS, () => {
      this.#cancelPoll = undefined
      if (this.#followers.size === 0) return
      this.#wake()
      this.#poll()
    })
  }
}

/** Our own logs only grow; those of others are replaced and cut, and found later than begun (ST6). */
async function goneFrom(transcript: Transcript, place: Place): Promise<ResetReason | undefined> {
  if (transcript.empty || place.chapter === 0) return undefined
  if (!transcript.covers(place)) return 'stream_changed'
  return transcript.source === '' || (await transcript.has(place)) ? undefined : 'history_rewritten'
}

/** A place of one file means nothing in the one that took its name, even where a line begins there. */
const rewritten = (before: string | undefined, now: string): ResetReason | undefined =>
  before === undefined || before === '' || now === '' || before === now ? undefined : 'history_rewritten'

const chapterOf = ({ id }: Item): number => Number(id.split('-')[0])

function openOf(item: Item | undefined): OpenItem | 'none' | undefined {
  if (item === undefined) return undefined
  const { run } = item.entry
  return run === undefined ? 'none' : { chapter: chapterOf(item), id: item.id, run }
}

/** True where something of the entry is not before `place`. */
function isBehind(id: string, end: number, place: Place): boolean {
  const [chapter, at = ''] = id.split('-')
  if (Number(chapter) !== place.chapter) return Number(chapter) > place.chapter
  const sub = at.split('.')[1]
  if (sub !== undefined) return end > place.offset || Number(sub) > place.sub
  return end > place.offset
}

export interface FollowOptions {
  readonly format: StreamFormat
  /** Undefined: what there is first. */
  readonly after: Place | undefined
  /** Why the place that the client named is gone: it begins anew, and is told so where the format can. */
  readonly lost: ResetReason | undefined
  /** The question that the client was told of last, as far as it says so. */
  readonly question: string | undefined
  readonly onEnd: (state: StreamState | undefined) => void
}

/** One client at one session. */
export class Follower {
  readonly #tail: SessionTail
  readonly #options: FollowOptions
  readonly #sink: Sink
  readonly #leave: () => void
  #place: Place | undefined
  /** What the place is in; undefined for one that a client brought. */
  #source: string | undefined
  #reset: ResetReason | undefined
  #blocked = false
  #over = false
  #pumping = false
  #again = false
  #activity: string | undefined
  /** What was sent last belongs to a turn of which the client does not know that it has ended. */
  #inTurn = false
  #pending: string | undefined
  /** It was told what is pending on this connection. */
  #told = false

  constructor(tail: SessionTail, options: FollowOptions, sink: Sink) {
    this.#tail = tail
    this.#options = options
    this.#sink = sink
    this.#place = options.after
    this.#reset = options.lost
    this.#pending = options.question
    this.#leave = tail.join(this)
    this.pump()
  }

  drained(): void {
    this.#blocked = false
    this.pump()
  }

  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#leave()
  }

  /** Sends what there is to send; calls while it runs are one more round. */
  pump(): void {
    this.#again = true
    if (this.#pumping || this.#over || this.#blocked) return
    this.#pumping = true
    void this.#run().finally(() => {
      this.#pumping = false
      if (this.#again && !this.#blocked && !this.#over) this.pump()
    })
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#over && !this.#blocked) {
      this.#again = false
      // What cannot be read now is tried again at the next sign of life.
      const more = await this.#step().catch(() => false)
      if (more) this.#again = true
    }
  }

  /** True where there may be more. */
  async #step(): Promise<boolean> {
    // Taken before the read: what is said between the two is sent before the state that follows it.
    const state = this.#tail.source.state()
    if (this.#place === undefined) return this.#snapshot()
    if (this.#tail.source.held()) return false
    const batch = await this.#tail.batch(this.#options.format, this.#place, this.#source)
    if (this.#over) return false
    if (batch.gone !== undefined) {
      this.#reset = batch.gone
      return this.#snapshot()
    }
    const moved = formatPlace(batch.place) !== formatPlace(this.#place)
    this.#place = batch.place
    this.#source = batch.source
    if (batch.bytes !== undefined) {
      this.#write(batch.bytes)
      this.#inTurn = batch.inTurn
    }
    if (moved) return true
    this.#tell(state)
    if (state === undefined || state.state === 'closed') this.#end(state)
    return false
  }

  async #snapshot(): Promise<boolean> {
    const transcript = await this.#tail.transcript()
    const page = await transcript.newest(SNAPSHOT_ITEMS)
    const droppedBytes = await transcript.dropped(page)
    if (await this.#tail.isAnother(transcript)) return true
    if (this.#over) return false
    const place = page.place ?? { chapter: 0, offset: 0, sub: 0 }
    this.#place = place
    this.#source = transcript.source
    this.#tail.remember(place, page.items.at(-1))
    const snapshot = { page, droppedBytes, reset: this.#reset }
    const frame = this.#options.format.frame({ items: page.items, place, text: transcript.text, snapshot })
    this.#write(this.#tail.encode([frame]))
    return true
  }

  /** Activity and question, where they changed. */
  #tell(state: StreamState | undefined): void {
    const frames: string[] = []
    const pending = state?.pending
    const place = this.#place === undefined ? '' : this.#options.format.id(this.#place)
    if (this.#pending !== undefined && pending?.request_id !== this.#pending) {
      frames.push(frame('pending_cleared', { request_id: this.#pending }, place))
    }
    if (pending !== undefined && !(this.#told && pending.request_id === this.#pending))
      frames.push(frame('pending', pending, formatResume(place, pending.request_id)))
    this.#pending = pending?.request_id
    this.#told = true
    const activity = state?.state === 'closed' ? 'idle' : state?.activity
    // A turn that was over before anybody looked has ended all the same.
    const ended = this.#inTurn && activity === 'idle'
    if (activity !== undefined && (ended || activity !== this.#activity)) frames.push(frame('activity', { activity }))
    this.#activity = activity
    if (activity === 'idle') this.#inTurn = false
    if (frames.length > 0) this.#write(this.#tail.encode(frames))
  }

  #end(state: StreamState | undefined): void {
    this.stop()
    this.#options.onEnd(state)
  }

  #write(bytes: Buffer): void {
    if (!this.#sink.write(bytes)) this.#blocked = true
  }
}

export const endedFrame = (sessionId: string, state: StreamState | undefined, clock: Clock): string =>
  frame('ended', {
    session_id: sessionId,
    state: state?.state ?? 'deleted',
    reason: state?.reason ?? (state === undefined ? 'deleted' : 'closed'),
    at: isoTime(clock.now()),
  })

/** The stream of one session: ends with it. */
export function sessionFeed(
  tail: SessionTail,
  options: Omit<FollowOptions, 'onEnd'> & {
    /** A person is watching, for as long as the stream is open. */
    readonly attend: (() => () => void) | undefined
    readonly headers: Readonly<Record<string, string>>
  },
): Feed {
  const { attend, headers, ...follow } = options
  return {
    headers,
    attach(sink): Attachment {
      const leave = attend?.()
      const follower = new Follower(
        tail,
        {
          ...follow,
          onEnd: (state) => {
            sink.write(tail.encode([endedFrame(tail.source.id, state, tail.clock)]))
            sink.end()
          },
        },
        sink,
      )
      return {
        drained: () => follower.drained(),
        detach: () => {
          leave?.()
          follower.stop()
        },
      }
    },
  }
}
