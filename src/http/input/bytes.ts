/**
 * Streamed bodies: read while they come in (decision 8).
 *
 * B1  At most one chunk is in memory: the handler pulls, and the client waits meanwhile.
 * B2  A client that sends nothing for 15 s while it is waited for is refused, and so is one that needs an hour.
 * B3  Whatever is left when the answer is given is thrown away for a bounded time, then the connection is cut.
 */
import type { IncomingMessage } from 'node:http'
import type { BodyBytes } from '../../kernel/call.ts'
import { type Clock, nextTurn } from '../../kernel/clock.ts'
import { problem } from '../../kernel/problem.ts'
import { discard, tooLarge } from './body.ts'

const IDLE_MS = 15_000
const TOTAL_MS = 3_600_000

/** The body of a request without one. */
export async function* nothingSent(): AsyncGenerator<never> {}

/** A body as it comes. */
export class RequestBytes implements BodyBytes {
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

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let chunk = await this.#chunk(); chunk !== undefined; chunk = await this.#chunk()) yield chunk
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
