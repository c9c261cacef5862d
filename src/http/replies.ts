/** Answers on the wire: JSON text and Problem Details, for responses and for bare sockets. */

import type { Duplex } from 'node:stream'
import type { Clock } from '../kernel/clock.ts'
import { jsonText } from '../kernel/json.ts'
import type { Problem } from '../kernel/problem.ts'
import { problemBody } from '../kernel/problem.ts'
import type { Answer, Headers } from './answer.ts'
import { waitForClient } from './patience.ts'

export const JSON_TYPE = 'application/json'
const PROBLEM_TYPE = 'application/problem+json'

/** A client that takes nothing of an answer for this long is cut off. */
const DRAIN_MS = 30_000
/** Pieces are put together up to here before they are written. */
const MAX_UNSENT_CHARACTERS = 64 * 1024

/** Writes a whole answer. */
export function sendText(
  response: Answer,
  status: number,
  type: string,
  text: string | Buffer,
  headers: Headers = {},
): void {
  if (response.headersSent || response.destroyed) return
  const content = ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(text))]
  response.begin(status, headers, content).complete(text)
}

export function sendJson(response: Answer, status: number, body: unknown, headers?: Headers): void {
  sendText(response, status, JSON_TYPE, jsonText(body), headers)
}

/**
 * Writes an answer that is made while it is sent, no faster than the client takes it; ends early where the client is
 * gone. The head goes out with the first piece, so that what that one throws can still be refused.
 */
export async function sendPieces(
  response: Answer,
  status: number,
  type: string,
  pieces: AsyncIterable<string>,
  headers: Headers | undefined,
  clock: Clock,
): Promise<void> {
  let unsent = ''
  for await (const piece of pieces) {
    if (response.destroyed) return
    if (!response.headersSent) response.begin(status, { ...headers, 'Content-Type': type })
    unsent += piece
    if (unsent.length < MAX_UNSENT_CHARACTERS) continue
    const taken = response.write(unsent)
    unsent = ''
    if (!taken) await drained(response, clock)
  }
  if (response.destroyed) return
  if (!response.headersSent) response.begin(status, { ...headers, 'Content-Type': type })
  response.end(unsent)
}

/** Resolves when there is room again, or nobody to write to. */
function drained(response: Answer, clock: Clock): Promise<void> {
  if (response.destroyed || !response.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const { socket } = response
    const givenUp = () => void response.destroy()
    const cancel = socket === null ? clock.after(DRAIN_MS, givenUp) : waitForClient(socket, clock, { givenUp })
    const go = () => {
      cancel()
      response.removeListener('drain', go)
      response.removeListener('close', go)
      resolve()
    }
    response.on('drain', go)
    response.on('close', go)
  })
}

/** Not a lasting one: browsers would keep it for whatever listens on this port tomorrow. */
export function sendRedirect(response: Answer, path: string): void {
  response.begin(302, { Location: path, 'Content-Length': '0' }).complete('')
}

/** Writes the Problem Details of a refusal (RFC 9457, spec §7). */
export function sendProblem(response: Answer, refused: Problem, requestId: string): void {
  response.outlastsBody ||= refused.code === 'payload-too-large'
  sendText(response, refused.status, PROBLEM_TYPE, jsonText(problemBody(refused, requestId)), problemHeaders(refused))
}

function problemHeaders({ code, options }: Problem): Headers {
  return {
    ...(options.retryAfterSec === undefined ? {} : { 'Retry-After': String(options.retryAfterSec) }),
    ...(options.allow === undefined ? {} : { Allow: options.allow }),
    // RFC 9110 §15.5.2: a 401 says how to authenticate.
    ...(code === 'unauthorized' ? { 'WWW-Authenticate': 'Bearer' } : {}),
  }
}

/** Answers where there is no response object: the parser gave up, or the method is CONNECT. */
export function sendProblemOnSocket(socket: Duplex, refused: Problem, requestId: string): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = jsonText(problemBody(refused, requestId))
  const headers = {
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': String(Buffer.byteLength(body)),
    'X-SVC-Request-Id': requestId,
    Vary: 'Origin',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
    ...problemHeaders(refused),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refused.status} ${refused.code}\r\n${lines.join('')}\r\n${body}`)
}
