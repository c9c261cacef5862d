/**
 * Streamed bodies: read while they come in.
 *
 * B1  At most one chunk is in memory: the handler pulls, and the client waits meanwhile.
 * B2  A client that sends nothing for 15 s while it is waited for is refused; after an hour also one that drips.
 * B3  Whatever is left when the answer is given is thrown away for a bounded time, then the connection is cut.
 */
import type { IncomingMessage } from 'node:http'
import type { BodyBytes } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { problem } from '../../kernel/problem.ts'
import { type ArrivingBody, type Bodies, discard } from './body.ts'

/** The body of a request without one. */
export async function* nothingSent(): AsyncGenerator<never> {}

/** A body as it comes. */
export class RequestBytes implements BodyBytes {
  readonly #request: IncomingMessage
  readonly #bodies: Bodies
  readonly #clock: Clock
  readonly #body: ArrivingBody
  readonly #chunks: Buffer[] = []
  #failure: Error | undefined
  #ended = false
  #wake: (() => void) | undefined

  constructor(request: IncomingMessage, limit: number, reading: { readonly bodies: Bodies; readonly clock: Clock }) {
    this.#request = request
    this.#bodies = reading.bodies
    this.#clock = reading.clock
    this.#body = reading.bodies.stream(request, limit, {
      piece: (chunk) => {
        this.#body.hold()
        this.#chunks.push(chunk)
        this.#wake?.()
      },
      end: () => this.#stop(undefined),
      refuse: (reason) => this.#stop(reason),
    })
    const cut = () => this.#stop(problem('invalid-request', 'the request ended before its body was complete'))
    request.on('error', cut)
    request.on('close', cut)
    // Nothing is taken before somebody wants it.
    this.#body.hold()
  }

  /** Nothing more will be read. */
  end(): void {
    const isWhole = this.#request.readableEnded
    this.#chunks.length = 0
    this.#stop(undefined)
    if (!isWhole) discard(this.#request, this.#clock)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let chunk = await this.#chunk(); chunk !== undefined; chunk = await this.#chunk()) yield chunk
  }

  async #chunk(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) return chunk
      if (this.#failure !== undefined) throw this.#failure
      if (this.#ended) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      this.#body.goOn()
      await promise
    }
  }

  /** Its end, in good or with a failure; the first one counts. */
  #stop(failure: Error | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#failure = failure
    this.#bodies.forget(this.#body)
    this.#wake?.()
  }
}
