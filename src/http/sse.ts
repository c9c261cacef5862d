/** Server-sent events: frames, heartbeat, back-pressure (sheet 02 §5, decision 16). */
import type { IncomingMessage } from 'node:http'
import { HEARTBEAT_MS } from '../contract/base/streams.ts'
import { type Clock, isoTime, nextTurn } from '../kernel/clock.ts'
import { taggedEnvelope } from '../kernel/event-log.ts'
import type { Attachment, Feed, Sink } from '../kernel/feed.ts'
import type { Framing, ScopedEvent } from '../kernel/streams/hub.ts'
import type { Answer } from './answer.ts'

/** A client that takes nothing for this long is cut off; it resumes by its cursor. */
const DRAIN_MS = 30_000
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  Connection: 'keep-alive',
  'X-Accel-Buffering': 'no',
}

/**
 * Frames as one chunk of HTTP's chunked coding, ready for the socket: made once, then the same bytes for every client
 * of the scope. Only a line feed ends a line in JSON text, and JSON.stringify escapes it, so `data:` is always one line.
 */
export function toChunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

export const cityFraming: Framing = {
  frame: ({ id, event }: ScopedEvent) => `id: ${id}\nevent: event\ndata: ${event.envelope}\n\n`,
  batch: (frames) => toChunk(frames.join('')),
}

export const supervisorFraming: Framing = {
  frame: ({ id, event, city }: ScopedEvent) =>
    `id: ${id}\nevent: tagged_event\ndata: ${taggedEnvelope(event.envelope, city)}\n\n`,
  batch: (frames) => toChunk(frames.join('')),
}

const heartbeat = (clock: Clock): Buffer => {
  const timestamp = `${isoTime(clock.now()).slice(0, 19)}Z`
  return toChunk(`event: heartbeat\ndata: ${JSON.stringify({ timestamp })}\n\n`)
}

/** Commits the 200 and connects the feed to the client, until either ends. */
export function serveStream(
  request: IncomingMessage,
  response: Answer,
  feed: Feed,
  clock: Clock,
  onEnd: () => void,
): OpenStream {
  response.begin(200, { ...STREAM_HEADERS, ...feed.headers })
  response.flushHeaders()
  return new OpenStream(request, response, feed, clock, onEnd)
}

export class OpenStream implements Sink {
  readonly #response: Answer
  readonly #clock: Clock
  readonly #bare: boolean
  #attachment: Attachment | undefined
  #cancelHeartbeat: () => void
  #cancelDrain: (() => void) | undefined
  #over = false

  constructor(request: IncomingMessage, response: Answer, feed: Feed, clock: Clock, onEnd: () => void) {
    this.#response = response
    this.#clock = clock
    this.#bare = request.httpVersion === '1.0'
    this.#cancelHeartbeat = clock.after(HEARTBEAT_MS, () => this.#beat())
    const socket = request.socket
    const drained = () => this.#drained()
    socket.on('drain', drained)
    response.on('close', () => {
      this.#over = true
      socket.removeListener('drain', drained)
      this.#cancelHeartbeat()
      this.#cancelDrain?.()
      // A stream that never got its socket has a subscription all the same.
      this.#attach(feed)
      onEnd()
    })
    // Behind another answer on the same connection (pipelining) the socket is not ours yet, and when it is, the head is
    // written after everybody was told: frames go straight to the socket and must wait until then.
    if (response.socket === null) response.once('socket', () => void nextTurn().then(() => this.#attach(feed)))
    else this.#attach(feed)
  }

  #attach(feed: Feed): void {
    this.#attachment ??= feed.attach(this)
    // The client may be gone already.
    if (this.#over) this.#attachment.detach()
  }

  write(batch: Buffer): boolean {
    const { socket } = this.#response
    if (this.#over || socket === null) return true
    if (socket.write(this.#bare ? unchunk(batch) : batch)) return true
    this.#cancelDrain ??= this.#clock.after(DRAIN_MS, () => socket.destroy())
    return false
  }

  end(): void {
    if (this.#over) return
    this.#attachment?.settle?.()
    this.#over = true
    this.#response.end()
  }

  #drained(): void {
    this.#cancelDrain?.()
    this.#cancelDrain = undefined
    this.#attachment?.drained()
  }

  #beat(): void {
    if (this.#over) return
    // One that is behind needs no sign of life, and its buffer stays bounded.
    if (this.#cancelDrain === undefined) this.write(heartbeat(this.#clock))
    this.#cancelHeartbeat = this.#clock.after(HEARTBEAT_MS, () => this.#beat())
  }
}

function unchunk(chunk: Buffer): Buffer {
  return chunk.subarray(chunk.indexOf('\n') + 1, -2)
}
