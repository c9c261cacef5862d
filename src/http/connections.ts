/**
 * What comes over a connection and is no request: bytes that the parser gave up on, heads that do not end, CONNECT.
 *
 * N1  Its answer leaves after those to the requests before it; after it the connection is closed.
 * N2  What is the rest of a request is no second one: that request has one answer.
 * N3  A connection that never asked gets none: who opened it in advance would take it for that to his first request.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../kernel/clock.ts'
import { httpRequestId } from '../kernel/ids.ts'
import { type Problem, problem } from '../kernel/problem.ts'
import type { Answer } from './answer.ts'
import { sendProblemOnSocket } from './replies.ts'
import type { Subject } from './request-log.ts'

const net = process.getBuiltinModule('node:net')

export const MAX_HEADER_BYTES = 64 * 1024
export const HEADERS_TIMEOUT_MS = 10_000
/** How long a connection that was answered and closed waits for the other end. */
const LINGER_MS = 2_000

const PARSER_PROBLEMS: ReadonlyMap<string, Problem> = new Map([
  [
    'HPE_HEADER_OVERFLOW',
    problem('headers-too-large', `the request line and headers are larger than ${MAX_HEADER_BYTES} bytes`),
  ],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', problem('payload-too-large', 'the chunk extensions are too large')],
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    problem('request-timeout', `the headers did not arrive within ${HEADERS_TIMEOUT_MS / 1000} s`),
  ],
])

export class Connections {
  readonly #clock: Clock
  readonly #note: (subject: Subject, refused: Problem) => void
  /** The answer to the newest request of each connection. */
  readonly #newest = new WeakMap<Duplex, Answer>()
  /** Answers of each connection that had not left when the newest request came; found so without a listener for each. */
  readonly #open = new WeakMap<Duplex, readonly Answer[]>()
  readonly #givenUp = new WeakSet<Duplex>()

  /** `note` is told of each refusal. */
  constructor(clock: Clock, note: (subject: Subject, refused: Problem) => void) {
    this.#clock = clock
    this.#note = note
  }

  /** A request was read. */
  asked(socket: Duplex, answer: Answer): void {
    this.#newest.set(socket, answer)
    const open = this.#open.get(socket)?.filter((one) => !one.writableFinished) ?? []
    this.#open.set(socket, [...open, answer])
  }

  /**
   * The client has closed its side. That is no end of what it asked for: it still reads the answer. What has no end of its own, and
   * what only waits, is for nobody if the client is gone altogether, and until something is written that cannot be told.
   */
  halfClosed(socket: Duplex): void {
    for (const answer of this.#open.get(socket) ?? [])
      if (answer.endsWithClient && !answer.writableFinished) {
        socket.destroy()
        return
      }
  }

  /** Calls `work` once the answers to all requests of the connection have left; not at all where it is gone before. */
  whenFree(socket: Duplex, work: () => void): void {
    const newest = this.#newest.get(socket)
    if (newest === undefined) work()
    else whenClosed(newest, () => socket.destroyed || work())
  }

  refuseUnparsed(error: Error & { code?: string }, socket: Duplex): void {
    const silent = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket instanceof net.Socket && socket.bytesRead === 0
    if (silent || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const refused =
      PARSER_PROBLEMS.get(error.code ?? '') ?? problem('invalid-request', 'the request is not well-formed HTTP')
    this.refuse(socket, refused)
  }

  refuse(socket: Duplex, refused: Problem): void {
    if (this.#givenUp.has(socket)) return
    this.#givenUp.add(socket)
    const end = () => this.#clock.after(LINGER_MS, () => socket.destroy())
    const answer = () => {
      const requestId = httpRequestId()
      this.#note({ requestId }, refused)
      sendProblemOnSocket(socket, refused, requestId)
      end()
    }
    const newest = this.#newest.get(socket)
    if (newest === undefined) answer()
    // The bytes stand behind a whole request.
    else if (newest.req.complete) whenClosed(newest, answer)
    // The bytes are the rest of a request that has its answer.
    else if (newest.headersSent) whenClosed(newest, end)
    // The bytes are the rest of a request that has none: this is its answer, when it is its turn.
    else if (newest.socket === null) newest.once('socket', answer)
    else answer()
  }
}

function whenClosed(answer: Answer, then: () => void): void {
  if (answer.writableFinished) then()
  else answer.once('close', then)
}
