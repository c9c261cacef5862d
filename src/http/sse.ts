/** Server-sent events: frames, heartbeat, back-pressure (sheet 02 §5, decision 16). */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { HEARTBEAT_MS } from '../contract/base/streams.ts'
import { cut } from '../contract/base/text.ts'
import { type Clock, isoTime, nextTurn } from '../kernel/clock.ts'
import { contained } from '../kernel/contained.ts'
import { taggedEnvelope } from '../kernel/event-log.ts'
import type { Attachment, Feed, Sink } from '../kernel/feed.ts'
import { frame, textFrame } from '../kernel/streams/frame.ts'
import type { Framing, ScopedEvent } from '../kernel/streams/hub.ts'
import type { Answer } from './answer.ts'
import { waitForClient } from './patience.ts'

/** A batch goes to the socket in pieces of this size, so that a slow client shows with each that it still reads. */
const PIECE_BYTES = 16 * 1024
export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

/**
 * Frames as one chunk of HTTP's chunked coding, ready for the socket: made once, then the same bytes for every client
 * of the scope.
 */
export function toChunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

export const cityFraming: Framing = {
  frame: ({ id, event }: ScopedEvent) => textFrame('event', event.envelope, id),
  batch: (frames) => toChunk(frames.join('')),
}

export const supervisorFraming: Framing = {
  frame: ({ id, event, ...tag }: ScopedEvent) => textFrame('tagged_event', taggedEnvelope(event.envelope, tag), id),
  batch: (frames) => toChunk(frames.join('')),
}

/** `id`: where a client that has missed nothing resumes, though no event of its filter came for long. */
const heartbeat = (clock: Clock, id: string | undefined): Buffer => {
  const timestamp = `${cut(isoTime(clock.now()), 19)}Z`
  return toChunk(frame('heartbeat', { timestamp }, id))
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
  /** What of the batch the socket has not been given yet. */
  #unsent: Buffer | undefined
  #over = false

  constructor(request: IncomingMessage, response: Answer, feed: Feed, clock: Clock, onEnd: () => void) {
    this.#response = response
    this.#clock = clock
    this.#bare = request.httpVersion === '1.0'
    this.#cancelHeartbeat = clock.after(HEARTBEAT_MS, () => this.#contained(() => this.#beat()))
    const socket = request.socket
    const drained = () => this.#contained(() => this.#drained())
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
    const bytes = this.#bare ? unchunk(batch) : batch
    // The end of a stream writes what is left at once: behind a batch that is still on its way, this one is next.
    this.#unsent = this.#unsent === undefined ? bytes : Buffer.concat([this.#unsent, bytes])
    return this.#cancelDrain === undefined && this.#push(socket)
  }

  end(): void {
    if (this.#over) return
    this.#attachment?.settle?.()
    this.#over = true
    const { socket } = this.#response
    if (this.#unsent !== undefined) socket?.write(this.#unsent)
    this.#unsent = undefined
    this.#response.end()
  }

  /** Gives the socket piece after piece while it takes them; false: the rest waits for it. */
  #push(socket: Socket): boolean {
    for (let rest = this.#unsent; rest !== undefined; rest = this.#unsent) {
      this.#unsent = rest.length > PIECE_BYTES ? rest.subarray(PIECE_BYTES) : undefined
      if (socket.write(this.#unsent === undefined ? rest : rest.subarray(0, PIECE_BYTES))) continue
      // It resumes by its cursor.
      this.#cancelDrain = waitForClient(socket, this.#clock, { givenUp: () => socket.destroy() })
      return false
    }
    return true
  }

  #drained(): void {
    this.#cancelDrain?.()
    this.#cancelDrain = undefined
    const { socket } = this.#response
    if (this.#over || (socket !== null && !this.#push(socket))) return
    this.#attachment?.drained()
  }

  #beat(): void {
    if (this.#over) return
    // One that is behind needs no sign of life, and its buffer stays bounded.
    if (this.#cancelDrain === undefined) this.write(heartbeat(this.#clock, this.#attachment?.headId?.()))
    this.#cancelHeartbeat = this.#clock.after(HEARTBEAT_MS, () => this.#contained(() => this.#beat()))
  }

  /** What threw ends this stream and nothing else. */
  #contained(work: () => void): void {
    contained(work, (error) => this.#response.destroy(error instanceof Error ? error : new Error(String(error))))
  }
}

function unchunk(chunk: Buffer): Buffer {
  return chunk.subarray(chunk.indexOf('\n') + 1, -2)
}
