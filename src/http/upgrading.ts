/**
 * A request that asks for another protocol. Node gives up its connection before anybody has looked at it: until the service
 * agrees it is answered like any other, and is the last one of that connection.
 */
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../kernel/clock.ts'
import { Answer } from './answer.ts'
import type { Upgrade } from './proxy/forwarding.ts'

/** What a client says of the other protocol before anybody has agreed to it. */
const MAX_EARLY_BYTES = 64 * 1024
/** How long a connection that was answered and closed waits for the other end. */
const LINGER_MS = 2_000

export class Upgrading implements Upgrade {
  readonly socket: Socket
  readonly answer: Answer
  readonly #early: Buffer[]
  #earlyBytes: number

  constructor(request: IncomingMessage, socket: Duplex, head: Buffer, clock: Clock) {
    if (!(socket instanceof Socket)) throw new Error('a connection of another server')
    this.socket = socket
    this.#early = head.length === 0 ? [] : [head]
    this.#earlyBytes = head.length
    socket.setTimeout(0)
    socket.on('error', () => {})
    socket.on('data', this.#keep)
    this.answer = new Answer(request)
    this.answer.shouldKeepAlive = false
    this.answer.once('finish', () => {
      this.#free()
      socket.removeListener('data', this.#keep)
      socket.resume()
      socket.end()
      clock.after(LINGER_MS, () => socket.destroy())
    })
  }

  /** Now it is its turn to answer. */
  begin(): void {
    this.answer.assignSocket(this.socket)
    this.socket.on('drain', this.#drained)
  }

  take(): Buffer {
    this.socket.removeListener('data', this.#keep)
    this.answer.statusCode = 101
    this.#free()
    return Buffer.concat(this.#early)
  }

  #free(): void {
    this.socket.removeListener('drain', this.#drained)
    this.answer.detachSocket(this.socket)
    // As Node says it of an answer that has left.
    this.answer.emit('close')
  }

  readonly #drained = (): void => {
    this.answer.emit('drain')
  }

  readonly #keep = (chunk: Buffer): void => {
    this.#early.push(chunk)
    this.#earlyBytes += chunk.length
    if (this.#earlyBytes > MAX_EARLY_BYTES) this.socket.pause()
  }
}
