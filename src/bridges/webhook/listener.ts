/**
 * Takes webhooks in: bytes first, then their signature, and only then what they say. What is answered with 202 is on disk.
 *
 * W1  Nothing of a request is used before its signature was found right, over the bytes as they came.
 * W2  The same delivery again changes nothing: 200. The same signed body under another name is a replay: 409.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Taken } from '../library/journal.ts'
import { closed, listenAt, type Place } from '../library/listening.ts'
import type { Posting } from '../library/posting.ts'
import type { World } from '../library/world.ts'
import { digestOf, readWebhook } from './messages.ts'
import type { Style, Verifier } from './signatures.ts'

const { createServer } = process.getBuiltinModule('node:http')

/** GitHub sends up to 25 MiB. */
const MOST_BODY: Readonly<Record<Style, number>> = {
  github: 25 * 1024 * 1024,
  slack: 1024 * 1024,
  standard: 1024 * 1024,
}
const MOST_AT_ONCE = 16
const REQUEST_MS = 30_000

export interface ListenerOptions {
  readonly style: Style
  readonly account: string
  readonly verify: Verifier
}

interface Answer {
  readonly status: number
  readonly body: object
}

export class Listener {
  readonly #options: ListenerOptions
  readonly #posting: Pick<Posting, 'take'>
  readonly #world: World
  readonly #server: Server
  #open = 0
  #taken = 0
  #refused = 0

  constructor(options: ListenerOptions, posting: Pick<Posting, 'take'>, world: World) {
    this.#options = options
    this.#posting = posting
    this.#world = world
    this.#server = createServer(
      { requestTimeout: REQUEST_MS, headersTimeout: 10_000, maxHeaderSize: 16_384 },
      (request, response) => {
        void this.#serve(request, response)
      },
    )
    this.#server.maxConnections = 256
  }

  get counts(): { readonly taken: number; readonly refused: number } {
    return { taken: this.#taken, refused: this.#refused }
  }

  /** Resolves with what the place is called. */
  listen(place: Place): Promise<string> {
    return listenAt(this.#server, place)
  }

  close(): Promise<void> {
    return closed(this.#server)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#open += 1
    try {
      const { status, body } = await this.#answer(request)
      if (status >= 400) this.#refused += 1
      const text = JSON.stringify(body)
      response.writeHead(status, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        'x-content-type-options': 'nosniff',
        ...(request.complete ? {} : { connection: 'close' }),
      })
      response.end(text)
    } catch {
      // Cut off in the middle: nobody is there to be answered.
      response.destroy()
    } finally {
      this.#open -= 1
    }
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    if (request.method === 'GET' && request.url === '/health') return { status: 200, body: { status: 'ok' } }
    if (request.method !== 'POST') return refusal(405, 'only POST')
    if (this.#open > MOST_AT_ONCE) return refusal(503, 'too many at once')
    const body = await bodyOf(request, MOST_BODY[this.#options.style])
    if (body === undefined) return refusal(413, 'the body is too large')
    const verdict = this.#options.verify(request.headers, body, this.#world.clock.now())
    if (!verdict.valid) {
      this.#world.log.warn('refused', { why: verdict.why, from: request.socket.remoteAddress })
      return refusal(401, verdict.why)
    }
    return this.#take(request, body, verdict.id)
  }

  #take(request: IncomingMessage, body: Buffer, id: string | undefined): Answer {
    const { style, account } = this.#options
    const read = readWebhook({ style, account, headers: request.headers, body, id, now: this.#world.clock.now() })
    if (read.kind === 'unreadable') return refusal(400, read.why)
    if (read.kind === 'challenge') return { status: 200, body: { challenge: read.challenge } }
    if (read.kind === 'nothing') {
      this.#world.log.info('ignored: the event has no words for an agent', { event: read.event })
      return { status: 200, body: { status: 'ignored' } }
    }
    // GitHub's signature does not cover the name of the delivery: what was recorded must not come back under another.
    const taken = this.#posting.take(read.message, style === 'github' ? { proof: `body ${digestOf(body)}` } : {})
    if (taken === 'taken') this.#taken += 1
    return ANSWERS[taken]
  }
}

const refusal = (status: number, error: string): Answer => ({ status, body: { error } })

const ANSWERS: Readonly<Record<Taken, Answer>> = {
  taken: { status: 202, body: { status: 'accepted' } },
  known: { status: 200, body: { status: 'duplicate' } },
  replayed: refusal(409, 'a replay: this body was delivered under another id'),
  full: refusal(503, 'too much waits for the supervisor'),
}

/** Undefined: it is longer. */
async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > most) return undefined
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk)
    length += bytes.length
    if (length > most) return undefined
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}
