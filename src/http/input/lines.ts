/**
 * Streamed bodies: lines of JSON, read while they come in (decision 8).
 *
 * L1  At most one line and one chunk are in memory: the handler pulls, and the client waits meanwhile.
 * L2  A line that is too long, or is not UTF-8, is reported as such and the lines after it are read.
 * L3  A client that sends nothing for 15 s while it is waited for is refused, and so is one that needs an hour.
 * L4  Whatever is left when the answer is given is thrown away for a bounded time, then the connection is cut.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { BodyLine, BodyLines } from '../../kernel/call.ts'
import { type Clock, nextTurn } from '../../kernel/clock.ts'
import { problem } from '../../kernel/problem.ts'
import { discard, tooLarge } from './body.ts'

export const MAX_LINE_BYTES = 1024 * 1024
const IDLE_MS = 15_000
const TOTAL_MS = 3_600_000

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = '\ufeff'
const BLANK = /^[ \t\r]*$/

/** The body of a request without one. */
export async function* noLines(): AsyncGenerator<BodyLine> {}

export class RequestLines implements BodyLines {
  readonly #request: IncomingMessage
  readonly #limit: number
  readonly #clock: Clock
  readonly #until: number
  #size = 0
  #ended = false

  constructor(request: IncomingMessage, limit: number, clock: Clock) {
    this.#request = request
    this.#limit = limit
    this.#clock = clock
    this.#until = clock.monotonic() + TOTAL_MS
    // Whoever waits for a chunk asks for the error; nobody else must be brought down by it.
    request.on('error', () => {})
  }

  /** Nothing more will be read. */
  end(): void {
    if (this.#ended || this.#request.readableEnded) return
    this.#ended = true
    discard(this.#request, this.#clock)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BodyLine> {
    const splitter = new LineSplitter()
    for (;;) {
      const chunk = await this.#chunk()
      if (chunk === undefined) break
      yield* splitter.take(chunk)
    }
    yield* splitter.rest()
  }

  async #chunk(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk: unknown = this.#ended ? null : this.#request.read()
      if (Buffer.isBuffer(chunk)) {
        this.#size += chunk.length
        if (this.#size > this.#limit) throw tooLarge(this.#limit)
        return chunk
      }
      if (this.#ended || this.#request.readableEnded) return undefined
      if (this.#request.destroyed) throw problem('invalid-request', 'the request ended before its body was complete')
      await this.#news()
    }
  }

  /** Waits until there is something to read, or nothing more will come. */
  #news(): Promise<void> {
    const request = this.#request
    const left = this.#until - this.#clock.monotonic()
    return new Promise((resolve, reject) => {
      const late = () => {
        stop()
        const why =
          left < IDLE_MS ? `the body took longer than ${TOTAL_MS / 60_000} min` : `no byte came for ${IDLE_MS / 1000} s`
        reject(problem('request-timeout', why))
      }
      // What has come while this process was busy is read first, and counts.
      const ms = Math.min(IDLE_MS, Math.max(left, 0))
      const cancel = this.#clock.after(ms, () => void nextTurn().then(late))
      function stop() {
        cancel()
        for (const event of NEWS) request.removeListener(event, go)
      }
      function go() {
        stop()
        resolve()
      }
      for (const event of NEWS) request.on(event, go)
    })
  }
}

const NEWS = ['readable', 'end', 'error', 'close'] as const

/** Bytes into lines; a line may come in any number of pieces. */
class LineSplitter {
  readonly #parts: Buffer[] = []
  #length = 0
  #tooLong = false
  #line = 0;

  *take(chunk: Buffer): Generator<BodyLine> {
    let from = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end))
      from = end + 1
      const line = this.#finish()
      if (line !== undefined) yield line
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
  }

  /** What stands after the last line feed. */
  *rest(): Generator<BodyLine> {
    if (this.#length === 0 && !this.#tooLong) return
    const line = this.#finish()
    if (line !== undefined) yield line
  }

  #keep(part: Buffer): void {
    this.#length += part.length
    // One more for a carriage return, which is not part of the line.
    if (this.#length > MAX_LINE_BYTES + 1) {
      this.#tooLong = true
      this.#parts.length = 0
    } else if (part.length > 0) {
      this.#parts.push(part)
    }
  }

  /** The line that is complete now; undefined where it is blank. */
  #finish(): BodyLine | undefined {
    const [first] = this.#parts
    const whole = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts)
    const bytes = whole.at(-1) === CARRIAGE_RETURN ? whole.subarray(0, -1) : whole
    const tooLong = this.#tooLong || bytes.length > MAX_LINE_BYTES
    this.#parts.length = 0
    this.#length = 0
    this.#tooLong = false
    this.#line++
    const line = this.#line
    if (tooLong) return { line, fault: `the line is longer than ${MAX_LINE_BYTES} bytes` }
    if (!isUtf8(bytes)) return { line, fault: 'the line is not UTF-8' }
    const text = bytes.toString('utf8')
    const bare = line === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
    return BLANK.test(bare) ? undefined : { line, text: bare }
  }
}
