/** Reading request bodies: bounded in bytes and in how slowly they come. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type Clock, nextTurn } from '../../kernel/clock.ts'
import { isTooDeep, TOO_DEEP } from '../../kernel/json.ts'
import { problem } from '../../kernel/problem.ts'
import { refuseHalfPairs } from './well-formed.ts'

/** How slowly a body may come. */
interface Pace {
  /** Without a byte, while somebody wants one. */
  readonly idleMs: number
  /** On top of what the least rate gives: a time for the whole would refuse large bodies on slow lines. */
  readonly graceMs: number
}

const WHOLE: Pace = { idleMs: 5_000, graceMs: 5_000 }
/** What is read while it comes may be made while it is sent, a line now and then. */
const STREAMED: Pace = { idleMs: 15_000, graceMs: 3_600_000 }
/** On the average; a drip would else be kept alive for ever. */
const LEAST_BYTES_PER_MS = 4
/** How often somebody looks for bodies that are late. */
const SWEEP_MS = 500
/** How long the rest of a refused body is thrown away, so that the client sees the answer and not a reset. */
const DISCARD_MS = 2_000

export interface BodyReader {
  /** The whole body; undefined where there is none. */
  take(body: Buffer | undefined): void
  /** `payload-too-large` or `request-timeout`. */
  refuse(reason: Error): void
}

/** What becomes of a body as it comes; after `end` or `refuse` nothing more does. */
interface Taker {
  piece(chunk: Buffer): void
  end(): void
  refuse(reason: Error): void
}

/** Bodies that are coming in, with one look now and then for those that are late: a timer for each would cost more than all else. */
export class Bodies {
  readonly #clock: Clock
  readonly #arriving = new Set<ArrivingBody>()
  #sweeping = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Tells the reader once; not at all where the client goes before its body is whole. */
  read(request: IncomingMessage, limit: number, reader: BodyReader): ArrivingBody {
    const chunks: Buffer[] = []
    return this.#add(
      new ArrivingBody(
        request,
        { limit, pace: WHOLE, clock: this.#clock },
        {
          piece: (chunk) => void chunks.push(chunk),
          // Nearly every body comes in one piece.
          end: () => reader.take(chunks.length > 1 ? Buffer.concat(chunks) : chunks[0]),
          refuse: (reason) => {
            chunks.length = 0
            discard(request, this.#clock)
            reader.refuse(reason)
          },
        },
      ),
    )
  }

  /** Hands on one piece after the other: each waits until it is asked for (`hold`, `goOn`). */
  stream(request: IncomingMessage, limit: number, taker: Taker): ArrivingBody {
    return this.#add(new ArrivingBody(request, { limit, pace: STREAMED, clock: this.#clock }, taker))
  }

  /** The client is gone, or nothing more of it is wanted. */
  forget(body: ArrivingBody): void {
    this.#arriving.delete(body)
  }

  #add(body: ArrivingBody): ArrivingBody {
    this.#arriving.add(body)
    this.#sweepLater()
    return body
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    // What has come while this process was busy is read first.
    this.#clock.after(SWEEP_MS, () => void nextTurn().then(() => this.#sweep()))
  }

  #sweep(): void {
    this.#sweeping = false
    const now = this.#clock.monotonic()
    for (const body of [...this.#arriving]) {
      body.check(now)
      if (body.isOver) this.#arriving.delete(body)
    }
    if (this.#arriving.size > 0) this.#sweepLater()
  }
}

interface Bounds {
  readonly limit: number
  readonly pace: Pace
  readonly clock: Clock
}

/** The one reader of bodies: what is too large or comes too slowly is refused. */
export class ArrivingBody {
  readonly #request: IncomingMessage
  readonly #bounds: Bounds
  readonly #taker: Taker
  /** Times during which nobody wanted a byte are left out of both. */
  #began: number
  #movedAt: number
  #heldAt: number | undefined
  #size = 0
  #over = false

  constructor(request: IncomingMessage, bounds: Bounds, taker: Taker) {
    this.#request = request
    this.#bounds = bounds
    this.#taker = taker
    this.#began = bounds.clock.monotonic()
    this.#movedAt = this.#began
    request.on('data', (chunk: Buffer) => this.#add(chunk))
    request.on('end', () => this.#end())
  }

  /** It has come, or was refused. */
  get isOver(): boolean {
    return this.#over
  }

  /** Lets the client wait. */
  hold(): void {
    this.#heldAt ??= this.#bounds.clock.monotonic()
    this.#request.pause()
  }

  /** Takes what comes again. */
  goOn(): void {
    if (this.#heldAt === undefined) return
    const now = this.#bounds.clock.monotonic()
    this.#began += now - this.#heldAt
    this.#movedAt = now
    this.#heldAt = undefined
    this.#request.resume()
  }

  /** Refuses it where it comes too slowly. */
  check(now: number): void {
    if (this.#heldAt !== undefined) return
    const { idleMs, graceMs } = this.#bounds.pace
    if (now - this.#movedAt >= idleMs)
      this.#refuse(problem('request-timeout', `no byte of the body came for ${idleMs / 1000} s`))
    else if (now - this.#began >= graceMs + this.#size / LEAST_BYTES_PER_MS)
      this.#refuse(
        problem('request-timeout', `the body comes more slowly than ${LEAST_BYTES_PER_MS * 1_000} bytes a second`),
      )
  }

  #refuse(reason: Error): void {
    if (this.#over) return
    this.#over = true
    this.#taker.refuse(reason)
  }

  #add(chunk: Buffer): void {
    if (this.#over) return
    this.#size += chunk.length
    this.#movedAt = this.#bounds.clock.monotonic()
    if (this.#size > this.#bounds.limit) this.#refuse(tooLarge(this.#bounds.limit))
    else this.#taker.piece(chunk)
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#taker.end()
  }
}

/** Refuses a body that says itself that it is too large. */
export function refuseDeclared(request: IncomingMessage, limit: number, clock: Clock): void {
  if (Number(request.headers['content-length'] ?? 0) <= limit) return
  discard(request, clock)
  throw tooLarge(limit)
}

const tooLarge = (limit: number) => problem('payload-too-large', `the body is larger than ${limit} bytes`)

/** Throws away what still comes of a body, for a bounded time. */
export function discard(request: IncomingMessage, clock: Clock): void {
  request.on('error', () => {})
  request.resume()
  clock.after(DISCARD_MS, () => {
    if (!request.complete) request.socket.destroy()
  })
}

const BYTE_ORDER_MARK = '\ufeff'

/** Text as it was sent, or 400 `invalid:`. */
export function parseText(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw problem('invalid-request', 'the body is not UTF-8 text', {
    errors: [{ location: 'body', message: 'is not UTF-8 text' }],
  })
}

/**
 * A JSON value, or 400 `invalid:`; of text that UTF-8 cannot hold only where `keepsJson`. What is wrong with one that `hides`
 * something is not quoted.
 */
export function parseJson(bytes: Buffer, { keepsJson = false, hides = false } = {}): unknown {
  try {
    if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8')
    const text = bytes.toString('utf8')
    const value: unknown = JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    if (isTooDeep(value)) throw new SyntaxError(TOO_DEEP)
    if (!keepsJson) refuseHalfPairs(text, value)
    return value
  } catch (error) {
    const said = error instanceof SyntaxError ? error.message : String(error)
    const why = hides && said !== TOO_DEEP ? 'it cannot be read, and has secrets' : said
    const sentence = why === TOO_DEEP ? `the body is ${why}` : `the body is not JSON: ${why}`
    throw problem('invalid-request', sentence, { errors: [{ location: 'body', message: why }] })
  }
}
