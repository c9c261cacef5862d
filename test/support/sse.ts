/** Reads a stream of server-sent events byte by byte; every frame is checked against the contract. */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { TaggedEventEnvelope } from '../../src/contract/events.ts'
import { assertLine, assertValid, type Documented, framesOf, isValid, operationFor, responseOf } from './document.ts'
import type { Api, CallOptions } from './http.ts'

const FRAME_DEADLINE_MS = 40_000

export interface SseFrame {
  /** As it came, with its empty line. */
  readonly text: string
  readonly event: string
  readonly id: string | undefined
  readonly data: string
}

/** An event frame; `city` is '' on a city's stream. */
export interface EventFrame extends SseFrame {
  readonly id: string
  readonly envelope: TaggedEventEnvelope
}

export class SseReader implements AsyncDisposable {
  readonly headers: IncomingHttpHeaders
  /** Events, in order. */
  readonly events: EventFrame[] = []
  readonly heartbeats: SseFrame[] = []
  /** What the streams of sessions and agents send, in order. */
  readonly frames: SseFrame[] = []
  /** Resolves when the server ends the stream, or the connection breaks. */
  readonly ended: Promise<void>
  readonly #response: IncomingMessage
  readonly operation: Documented
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  #rest = ''
  #over = false
  #failure: unknown
  #wake: () => void = () => {}
  #taken = 0

  constructor(response: IncomingMessage, operation: Documented) {
    this.#response = response
    this.operation = operation
    this.headers = response.headers
    response.on('data', (chunk: Buffer) => this.#take(chunk))
    this.ended = new Promise((resolve) => {
      const end = () => {
        this.#over = true
        resolve()
        this.#wake()
      }
      response.on('end', end).on('close', end).on('error', end)
    })
  }

  /** True when the server ended it in order, not by breaking the connection. */
  get complete(): boolean {
    return this.#response.complete
  }

  get response(): IncomingMessage {
    return this.#response
  }

  /** Waits for the next event frame that `wanted` takes; earlier ones are passed over. */
  async next(wanted: (frame: EventFrame) => boolean = () => true, deadlineMs = FRAME_DEADLINE_MS): Promise<EventFrame> {
    await this.until(() => this.events.slice(this.#taken).some(wanted), deadlineMs)
    const index = this.events.findIndex((frame, at) => at >= this.#taken && wanted(frame))
    const frame = this.events[index]
    assert.ok(frame)
    this.#taken = index + 1
    return frame
  }

  /** Waits until `enough` holds of what came so far. */
  async until(enough: () => boolean, deadlineMs = FRAME_DEADLINE_MS): Promise<void> {
    const end = performance.now() + deadlineMs
    while (!enough()) {
      if (this.#failure !== undefined) throw this.#failure
      const sofar = [...this.events, ...this.frames]
        .slice(-20)
        .map(({ text }) => text.slice(0, 300))
        .join('')
      assert.ok(!this.#over, `the stream ended; ${this.events.length} events, last:\n${sofar}`)
      assert.ok(performance.now() < end, `not within ${deadlineMs} ms; ${this.events.length} events, last:\n${sofar}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(end - performance.now(), 1))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#response.destroy()
    await this.ended
    if (this.#failure !== undefined) throw this.#failure
  }

  #take(chunk: Buffer): void {
    try {
      this.#rest += this.#decoder.decode(chunk, { stream: true })
      for (let end = this.#rest.indexOf('\n\n'); end >= 0; end = this.#rest.indexOf('\n\n')) {
        this.#add(this.#rest.slice(0, end + 2))
        this.#rest = this.#rest.slice(end + 2)
      }
    } catch (error) {
      this.#failure ??= error
    }
    this.#wake()
  }

  #add(text: string): void {
    const frame = parseFrame(text)
    const kind = framesOf(this.operation).get(frame.event)
    assert.ok(kind, `an undeclared kind of frame: ${text.slice(0, 500)}`)
    // A heartbeat has one where its client has missed nothing.
    if (frame.event !== 'heartbeat') assert.equal(frame.id !== undefined, kind.hasId, text.slice(0, 500))
    const data: unknown = JSON.parse(frame.data)
    assertValid(kind.ref, data)
    if (frame.event === 'heartbeat') {
      this.heartbeats.push(frame)
      return
    }
    if (frame.event !== 'event' && frame.event !== 'tagged_event') {
      this.frames.push(frame)
      return
    }
    const tagged = frame.event === 'tagged_event'
    assertLine(tagged ? 'supervisorStreamLine' : 'cityStreamLine', data)
    const envelope = tagged ? data : { ...Object(data), city: '', log: '' }
    if (!isValid<TaggedEventEnvelope>('openapi.json#/components/schemas/TaggedEventStreamEnvelope', envelope)) return
    this.events.push({ ...frame, id: frame.id ?? '', envelope })
  }
}

/** The lines of a frame, which must stand in this order and nothing else with them (sheet 02 §5.1). */
export function parseFrame(text: string): SseFrame {
  const [, , id, event = '', data = ''] =
    /^(id: ([^\n]*)\n)?event: ([^\n]*)\ndata: ([^\n]*)\n\n$/.exec(text) ??
    assert.fail(`not a frame: ${JSON.stringify(text.slice(0, 500))}`)
  return { text, event, id, data }
}

/** Opens a stream; fails where it is refused. */
export async function openStream(api: Api, path: string, options: CallOptions = {}): Promise<SseReader> {
  const response = await api.open('GET', path, options)
  const operation = operationFor('GET', path)
  assert.ok(operation)
  if (response.statusCode !== 200) {
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    assert.fail(`${path}: ${response.statusCode} ${Buffer.concat(chunks)}`)
  }
  assert.ok(responseOf(operation, 200))
  const { headers } = response
  assert.equal(headers['content-type'], 'text/event-stream')
  assert.equal(headers['cache-control'], 'no-cache')
  assert.equal(headers['connection'], 'keep-alive')
  assert.equal(headers['x-accel-buffering'], 'no')
  assert.match(String(headers['x-svc-request-id']), /^[0-9a-f]{16}$/)
  return new SseReader(response, operation)
}
