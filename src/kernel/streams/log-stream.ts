/** The streams of one log: replay from a sequence number, then live, until the log's owner ends them. */
import type { Clock } from '../clock.ts'
import type { EventFilter, EventLog } from '../event-log.ts'
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

/** Events of one log need no tag. */
const UNTAGGED = { city: '', log: '' }

export class LogStream {
  readonly #log: EventLog
  readonly #channel: Channel
  readonly #stop: () => void

  constructor(log: EventLog, framing: Framing, clock: Clock) {
    this.#log = log
    this.#channel = new Channel(
      framing,
      log.head,
      {
        openBacklog: (afterId, filter) => this.#backlog(Number(afterId), filter),
        // The position of the channel is the sequence number of the log.
        headId: () => String(this.#channel.head),
      },
      clock,
    )
    this.#stop = log.onCommit((events) => {
      if (this.#channel.idle) this.#channel.skip(events.length)
      else this.#channel.publish(events.map((event) => ({ id: String(event.seq), event, ...UNTAGGED })))
    })
  }

  /** Events after `after`; from the head where it is undefined or ahead of the head (decision 15). */
  follow(filter: EventFilter, after: number | undefined): Feed {
    const { head, oldest } = this.#log
    if (after === undefined || after >= head) return this.#channel.subscribe(filter, String(head), undefined)
    refuseExpired(after, this.#log)
    return this.#channel.subscribe(filter, String(after), this.#backlog(Math.max(after, oldest - 1), filter))
  }

  /** Ends every open stream after everything in the log was sent. */
  end(): void {
    this.#channel.end()
  }

  /** No more events will come from this log. */
  close(): void {
    this.#stop()
    this.#channel.end()
  }

  #backlog(after: number, filter: EventFilter): Backlog {
    return new LogBacklog(this.#log, after, filter)
  }
}

class LogBacklog implements Backlog {
  readonly #log: EventLog
  readonly #filter: EventFilter
  #position: number
  #size: number | undefined

  constructor(log: EventLog, after: number, filter: EventFilter) {
    this.#log = log
    this.#position = after
    this.#filter = filter
  }

  get place(): string {
    return `${this.#position} ${this.#size ?? 0}`
  }

  read(): BacklogPage {
    const upTo = this.#log.head
    this.#size = pageSizeAfter(this.#size)
    // A reader so slow that retention overtook it: its stream ends, and its cursor answers 410.
    if (this.#position < this.#log.oldest - 1) throw new Error('what comes next is no longer retained')
    const range = { after: this.#position, upTo }
    const scan = this.#log.scanEnvelopes(this.#filter, range, 'asc', this.#size, MAX_PAGE_CHARACTERS)
    this.#position = scan.complete ? upTo : scan.reached
    return {
      events: scan.events.map((event): ScopedEvent => ({ id: String(event.seq), event, ...UNTAGGED })),
      resume: scan.complete ? { at: upTo + 1, id: String(upTo) } : undefined,
      fence: upTo + 1,
      positions: [this.#position],
      parts: [],
    }
  }

  follow({ positions: [position = this.#position] }: BacklogPage): boolean {
    this.#position = position
    this.#size = pageSizeAfter(this.#size)
    return true
  }
}

/** 410 where events after the position are no longer retained; `0` asks for whatever there is. */
export function refuseExpired(after: number, log: EventLog): void {
  if (after === 0 || after >= log.oldest - 1) return
  throw problem(
    'cursor-expired',
    `events ${after + 1} to ${log.oldest - 1} are no longer retained; the oldest is ${log.oldest}`,
    {
      oldest_seq: log.oldest,
      head_seq: log.head,
    },
  )
}
