/**
 * Streams of transcripts (decision 158).
 *
 * S1  A follower is a sequence. Replay and live are one: what is written is always the one after it, so nothing is lost or
 *     doubled where they meet.
 * S2  A frame is encoded once for all who get it live. Who does not take its bytes is fed from the store at its own pace.
 * S3  A follower whom retention has overtaken is ended: it would miss something without knowing.
 * S4  Ends of deliveries that a follower could not be told at once are told as they stand when it can.
 */

import type { EntryDeliveryStatus } from '../../../contract/messaging/entries.ts'
import type { Attachment, Feed, Sink } from '../../../kernel/feed.ts'
import { problem } from '../../../kernel/problem.ts'
import { frame } from '../../../kernel/streams/frame.ts'
import { type Replay, startReplay, stopReplay } from '../../../kernel/streams/replays.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import type { EntryRow, TranscriptRow } from './rows.ts'
import { entryView } from './rows.ts'
import type { TranscriptChange, Transcripts } from './store.ts'

const FIRST_PAGE = 50
const MAX_PAGE = 500
/** Outbound entries of which a follower is told how they stand by now. */
const MAX_TOLD = 20
const MAX_LATE = 1_000

export interface StreamsDeps {
  readonly transcripts: Transcripts
  /** Frames in the form that goes onto the socket. */
  readonly encode: (frames: readonly string[]) => Buffer
}

export class TranscriptStreams {
  readonly #deps: StreamsDeps
  readonly #followers = new Map<string, { readonly all: Set<Follower>; readonly unlisten: () => void }>()
  /** Those who see only what they are a member of. */
  readonly #readers = new Map<Follower, Mailbox>()

  constructor(deps: StreamsDeps) {
    this.#deps = deps
  }

  /**
   * What comes after a sequence; from the end where it is undefined or beyond (decision 15). `reader`: who may follow it only
   * while it is a member.
   */
  follow({ id, next, earliest }: TranscriptRow, after: number | undefined, reader?: Mailbox): Feed {
    const head = next - 1
    if (after !== undefined && after !== 0 && after < earliest - 1)
      throw problem('cursor-expired', `entries ${after + 1} to ${earliest - 1} are no longer kept`, {
        oldest_seq: earliest,
        head_seq: head,
      })
    const start = after === undefined ? head : Math.min(Math.max(after, earliest - 1), head)
    const late = after === undefined || after === 0 ? [] : this.#deps.transcripts.newestOutbound(id, start, MAX_TOLD)
    const follower = new Follower(this.#deps, id, start, late, () => {
      if (reader !== undefined) this.#readers.delete(follower)
      this.#leave(id, follower)
    })
    if (reader !== undefined) this.#readers.set(follower, reader)
    this.#join(id, follower)
    return follower
  }

  /** Somebody is a member no longer. */
  left(id: string, mailbox: Mailbox): void {
    for (const follower of [...(this.#followers.get(id)?.all ?? [])])
      if (this.#readers.get(follower) === mailbox) follower.end()
  }

  /** Ends every one of them: each has what there was. */
  end(): void {
    for (const { all } of [...this.#followers.values()]) for (const follower of [...all]) follower.end()
  }

  #join(id: string, follower: Follower): void {
    const known = this.#followers.get(id)
    if (known !== undefined) {
      known.all.add(follower)
      return
    }
    const all = new Set([follower])
    this.#followers.set(id, { all, unlisten: this.#deps.transcripts.onChange(id, (change) => this.#tell(all, change)) })
  }

  #leave(id: string, follower: Follower): void {
    const known = this.#followers.get(id)
    if (known === undefined || !known.all.delete(follower) || known.all.size > 0) return
    known.unlisten()
    this.#followers.delete(id)
  }

  #tell(all: ReadonlySet<Follower>, change: TranscriptChange): void {
    const { encode } = this.#deps
    if (change.kind === 'deleted') {
      for (const follower of [...all]) follower.end()
      return
    }
    const frame = change.kind === 'entry' ? entryFrame(change.entry) : deliveryFrame(change.sequence, change.status)
    const batch = encode([frame])
    for (const follower of [...all]) {
      if (change.kind === 'entry') follower.said(change.entry.sequence, batch)
      else follower.delivered(change.sequence, batch)
    }
  }
}

class Follower implements Feed, Attachment, Replay {
  readonly #deps: StreamsDeps
  readonly #id: string
  readonly #leave: () => void
  /** Sequence of the last entry that was written. */
  #position: number
  /** Outbound entries of which it is still to be told how they stand. */
  readonly #late: Set<number>
  #sink: Sink | undefined
  #pageSize = FIRST_PAGE
  /** It has everything: what comes is written at once. */
  #live = false
  #blocked = false
  #over = false

  constructor(deps: StreamsDeps, id: string, position: number, late: readonly number[], leave: () => void) {
    this.#deps = deps
    this.#id = id
    this.#position = position
    this.#late = new Set(late)
    this.#leave = leave
  }

  attach(sink: Sink): Attachment {
    this.#sink = sink
    if (!this.#over) startReplay(this, true)
    else sink.end()
    return this
  }

  drained(): void {
    this.#blocked = false
    if (!this.#over && !this.#live) startReplay(this, false)
  }

  detach(): void {
    if (this.#over) return
    this.#over = true
    stopReplay(this)
    this.#leave()
  }

  /** Nothing more comes; what it has not taken yet it asks for again. */
  end(): void {
    if (this.#over) return
    this.detach()
    this.#sink?.end()
  }

  said(sequence: number, batch: Buffer): void {
    if (!this.#live || sequence <= this.#position) return
    if (sequence !== this.#position + 1) {
      this.#live = false
      startReplay(this, false)
      return
    }
    this.#position = sequence
    this.#write(batch)
  }

  delivered(sequence: number, batch: Buffer): void {
    // Who has not got the entry yet gets it as it stands.
    if (sequence > this.#position) return
    if (this.#live && !this.#blocked) this.#write(batch)
    else if (this.#late.size < MAX_LATE) this.#late.add(sequence)
  }

  replayPage(): boolean {
    if (this.#over || this.#blocked || this.#sink === undefined) return false
    const page = this.#readPage()
    if (page === undefined) {
      this.end()
      return false
    }
    this.#pageSize = Math.min(this.#pageSize * 4, MAX_PAGE)
    const { late, entries } = page
    const frames = [...late, ...entries.map(entryFrame)]
    this.#position = entries.at(-1)?.sequence ?? this.#position
    if (frames.length > 0) this.#write(this.#deps.encode(frames))
    if (entries.length > 0) return !this.#blocked
    this.#live = true
    return false
  }

  /** Undefined where some of it is gone, or its store is: what cannot be read cannot be promised. */
  #readPage(): { readonly late: readonly string[]; readonly entries: readonly EntryRow[] } | undefined {
    try {
      const entries = this.#deps.transcripts.pageAfter(this.#id, this.#position, this.#pageSize)
      return entries === undefined ? undefined : { late: this.#lateFrames(), entries }
    } catch {
      return undefined
    }
  }

  #lateFrames(): readonly string[] {
    const sequences = [...this.#late].sort((a, b) => a - b)
    this.#late.clear()
    return sequences.flatMap((sequence) => {
      const status = this.#deps.transcripts.entry(this.#id, sequence)?.deliveryStatus
      return status === undefined ? [] : [deliveryFrame(sequence, status)]
    })
  }

  #write(batch: Buffer): void {
    if (this.#sink?.write(batch) !== false) return
    this.#blocked = true
    this.#live = false
  }
}

const entryFrame = (entry: EntryRow): string => frame('entry', entryView(entry), entry.sequence)
const deliveryFrame = (sequence: number, status: EntryDeliveryStatus): string => frame('delivery', { sequence, status })
