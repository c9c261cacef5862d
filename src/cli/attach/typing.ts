/**
 * What is typed on its way to the server: in order, one request at a time, what comes meanwhile goes with the next. What
 * got no answer is sent again under its number, which types nothing twice.
 */
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { ApiProblem, LostReply, Unreachable } from '../../client/problems.ts'

const MOST_BYTES = 48 * 1024
/** A paste that the program does not take: what is more than this is not kept. */
const MOST_WAITING_BYTES = 16 * 1024 * 1024
const AGAIN_MS = 200

export interface Seat {
  readonly cityName: string
  readonly id: string
}

interface TypingDeps {
  readonly client: Client
  readonly seat: Seat
  readonly viewer: string
  /** The server refused it: it was not typed. */
  readonly refused: (problem: ApiProblem) => void
  readonly failed: (error: unknown) => void
}

export class Typing {
  readonly #deps: TypingDeps
  #waiting: Uint8Array[] = []
  #size = 0
  #typed = 0
  /** What is on its way, and may have been typed. */
  #sent: Buffer | undefined
  #sending: Promise<void> | undefined
  #connection: AbortSignal | undefined

  constructor(deps: TypingDeps) {
    this.#deps = deps
  }

  /** Somebody is there to type to, until the signal is aborted. */
  connected(connection: AbortSignal): void {
    this.#connection = connection
    this.#start()
  }

  /** False: there is nobody to type to, or no room for it. */
  add(bytes: Uint8Array): boolean {
    if (this.#connection?.aborted !== false || this.#size + bytes.length > MOST_WAITING_BYTES) return false
    this.#waiting.push(bytes)
    this.#size += bytes.length
    this.#start()
    return true
  }

  #start(): void {
    this.#sending ??= this.#send()
      .catch(this.#deps.failed)
      .finally(() => {
        this.#sending = undefined
      })
  }

  /** Resolves when nothing is on its way. */
  async settled(): Promise<void> {
    await this.#sending
  }

  async #send(): Promise<void> {
    for (;;) {
      const connection = this.#connection
      if (connection?.aborted !== false) return
      this.#sent ??= this.#size > 0 ? this.#next() : undefined
      if (this.#sent === undefined) return
      if (!(await this.#post(this.#sent, connection))) await pause(this.#deps.client, connection)
    }
  }

  /** False: whether it was typed is not known. */
  async #post(bytes: Buffer, signal: AbortSignal): Promise<boolean> {
    const { client, seat, viewer, refused } = this.#deps
    const body = { viewer, seq: this.#typed + 1, data: bytes.toString('base64') }
    try {
      await client.call('type-into-session', { params: seat, body, signal })
      this.#typed += 1
    } catch (error) {
      if (signal.aborted || error instanceof Unreachable || error instanceof LostReply) return false
      if (!(error instanceof ApiProblem)) throw error
      if (error.status >= 500 || error.code === 'city-not-found') return false
      refused(error)
    }
    this.#sent = undefined
    return true
  }

  #next(): Buffer {
    const all = Buffer.concat(this.#waiting)
    const rest = all.subarray(MOST_BYTES)
    this.#waiting = rest.length === 0 ? [] : [rest]
    this.#size = rest.length
    return all.subarray(0, MOST_BYTES)
  }
}

const pause = ({ clock }: Client, signal: AbortSignal): Promise<void> =>
  delay(clock, AGAIN_MS, signal).catch(() => undefined)
