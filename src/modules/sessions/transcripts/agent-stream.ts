/** The stream of an agent: over its sessions, one after the other (decision 69). */
import type { Clock } from '../../../kernel/clock.ts'
import type { Attachment, Feed, Sink } from '../../../kernel/feed.ts'
import type { SessionRecord } from '../record/record.ts'
import { endedFrame, Follower, type SessionTail, type StreamFormat, type StreamState } from './stream.ts'
import type { Place } from './transcript.ts'

export interface AgentFeedDeps {
  /** The session that the agent speaks by now, or spoke by last. */
  readonly current: () => SessionRecord | undefined
  /** False: the agent is gone, and with it the stream. */
  readonly exists: () => boolean
  readonly tail: (session: SessionRecord) => SessionTail
  readonly format: (session: SessionRecord) => StreamFormat
  readonly onChange: (wake: () => void) => () => void
  readonly clock: Clock
  /** Where the client goes on. */
  readonly resume: AgentResume | undefined
  readonly headers: Readonly<Record<string, string>>
}

interface AgentResume {
  readonly session: SessionRecord
  readonly place: Place | undefined
  readonly question: string | undefined
}

export function agentFeed(deps: AgentFeedDeps): Feed {
  return {
    headers: deps.headers,
    attach: (sink): Attachment => {
      const stream = new AgentStream(deps, sink)
      return { drained: () => stream.drained(), detach: () => stream.stop() }
    },
  }
}

class AgentStream {
  readonly #deps: AgentFeedDeps
  readonly #sink: Sink
  readonly #unlisten: () => void
  #follower: Follower | undefined
  #tail: SessionTail | undefined
  /** The last session that was told to its end. */
  #told: string | undefined
  #resume: AgentFeedDeps['resume']
  #over = false

  constructor(deps: AgentFeedDeps, sink: Sink) {
    this.#deps = deps
    this.#sink = sink
    this.#resume = deps.resume
    this.#unlisten = deps.onChange(() => this.#look())
    this.#look()
  }

  drained(): void {
    this.#follower?.drained()
  }

  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#unlisten()
    this.#follower?.stop()
  }

  /** Follows the session of now, once the one before has been told. */
  #look(): void {
    if (this.#over) return
    // One that is being told is told to its end, also when its agent is gone.
    if (this.#follower !== undefined) return
    if (!this.#deps.exists()) {
      this.stop()
      this.#sink.end()
      return
    }
    const resume = this.#resume
    this.#resume = undefined
    const session = resume?.session ?? this.#deps.current()
    if (session === undefined || session.id === this.#told) return
    const tail = this.#deps.tail(session)
    this.#tail = tail
    this.#follower = new Follower(
      tail,
      {
        format: this.#deps.format(session),
        after: resume?.place,
        lost: undefined,
        question: resume?.question,
        onEnd: (state) => this.#ended(session.id, state),
      },
      this.#sink,
    )
  }

  #ended(id: string, state: StreamState | undefined): void {
    this.#follower = undefined
    this.#told = id
    if (this.#tail !== undefined) this.#sink.write(this.#tail.encode([endedFrame(id, state, this.#deps.clock)]))
    this.#look()
  }
}
