/** One POST to the callback of an adapter: bounded in time and size, to no address that is refused, along no redirect. */
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../../kernel/clock.ts'
import { refusalOfHost } from '../adapters/addresses.ts'
import { guardedLookup } from './connect.ts'

const http = process.getBuiltinModule('node:http')

const ANSWERED_WITHIN_MS = 30_000
const MAX_REPLY_BYTES = 1024 * 1024

export interface Posted {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The reply; undefined where it is longer than 1 MiB. */
  readonly body: Buffer | undefined
}

export interface Post {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const lookup = guardedLookup()

/** Rejects where no whole answer came; the message says why. */
export function post({ url, headers, body }: Post, clock: Clock, signal: AbortSignal): Promise<Posted> {
  const refused = refusalOfHost(url)
  if (refused !== undefined) return Promise.reject(new Error(refused))
  return new Promise((resolve, reject) => {
    const { request: begin } = url.protocol === 'https:' ? process.getBuiltinModule('node:https') : http
    const request = begin(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': String(body.length) },
      // A connection that was kept may be closed by the other side at the very moment it is used.
      agent: false,
      lookup,
      signal,
    })
    const cancel = clock.after(ANSWERED_WITHIN_MS, () =>
      request.destroy(new Error(`no answer within ${ANSWERED_WITHIN_MS / 1000} s`)),
    )
    const end = (error: Error | undefined, posted?: Posted) => {
      cancel()
      if (posted === undefined) reject(error ?? new Error('the connection was closed before the answer was whole'))
      else resolve(posted)
    }
    request.on('error', end)
    request.on('response', (response) => collect(response, end))
    request.end(body)
  })
}

function collect(response: IncomingMessage, end: (error: Error | undefined, posted?: Posted) => void): void {
  const chunks: Buffer[] = []
  let size = 0
  const posted = (body: Buffer | undefined): Posted => ({
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'],
    body,
  })
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= MAX_REPLY_BYTES) chunks.push(chunk)
    else {
      end(undefined, posted(undefined))
      response.destroy()
    }
  })
  response.on('error', (error) => end(error))
  response.on('end', () => end(undefined, posted(Buffer.concat(chunks))))
  response.on('close', () => end(undefined))
}
