/** Answers on the wire: JSON text and Problem Details, for the framework's replies and for bare sockets. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Problem } from '../kernel/problem.ts'
import { problemBody } from '../kernel/problem.ts'

export const JSON_TYPE = 'application/json'
const PROBLEM_TYPE = 'application/problem+json'

type Headers = Readonly<Record<string, string>>

/** Writes a whole answer; headers that the gates set on the response stay. */
export function sendText(
  response: ServerResponse,
  status: number,
  type: string,
  text: string | Buffer,
  headers: Headers = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...headers, 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

export function sendJson(response: ServerResponse, status: number, body: unknown, headers?: Headers): void {
  sendText(response, status, JSON_TYPE, JSON.stringify(body), headers)
}

/** Writes the Problem Details of a refusal (RFC 9457, spec §7). */
export function sendProblem(response: ServerResponse, refused: Problem, requestId: string): void {
  sendText(
    response,
    refused.status,
    PROBLEM_TYPE,
    JSON.stringify(problemBody(refused, requestId)),
    problemHeaders(refused),
  )
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
  const body = JSON.stringify(problemBody(refused, requestId))
  const headers = {
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': String(Buffer.byteLength(body)),
    'X-SVC-Request-Id': requestId,
    Vary: 'Origin',
    Connection: 'close',
    ...problemHeaders(refused),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refused.status} ${refused.code}\r\n${lines.join('')}\r\n${body}`)
}
