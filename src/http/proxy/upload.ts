/** The body of a request on its way to a service: as fast as that takes it, in the framing in which it came. */
import type { IncomingMessage } from 'node:http'
import { type Framing, passingTrailers } from './headers.ts'
import type { Upstream } from './upstream.ts'

export class Upload {
  readonly #request: IncomingMessage
  readonly #upstream: Upstream
  readonly #isChunked: boolean
  readonly #moved: () => void
  #isWhole = false
  #isStopped = false

  /** `moved` is told of each piece. */
  constructor(request: IncomingMessage, framing: Framing, upstream: Upstream, moved: () => void) {
    this.#request = request
    this.#upstream = upstream
    this.#isChunked = framing.kind === 'chunked'
    this.#moved = moved
    request.on('data', this.#send)
    request.once('end', this.#end)
  }

  /** All of it has been written. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** The service takes more. */
  resume(): void {
    if (!this.#isStopped) this.#request.resume()
  }

  /** The service takes nothing any more. */
  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#request.removeListener('data', this.#send)
    this.#request.removeListener('end', this.#end)
    this.#request.pause()
  }

  readonly #send = (chunk: Buffer): void => {
    this.#moved()
    const { socket } = this.#upstream
    if (!this.#isChunked) {
      if (!socket.write(chunk)) this.#request.pause()
      return
    }
    socket.cork()
    socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    socket.write(chunk)
    const isTaken = socket.write('\r\n', 'latin1')
    socket.uncork()
    if (!isTaken) this.#request.pause()
  }

  readonly #end = (): void => {
    this.#isWhole = true
    this.#moved()
    if (!this.#isChunked) return
    const trailers = passingTrailers(this.#request.rawTrailers)
    let text = '0\r\n'
    for (let i = 0; i < trailers.length; i += 2) text += `${trailers[i]}: ${trailers[i + 1]}\r\n`
    this.#upstream.socket.write(`${text}\r\n`, 'latin1')
  }
}
