/** Reading request bodies: bounded in bytes and in time (sheet 01 §1.4). */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../kernel/clock.ts'
import { isTooDeep, TOO_DEEP } from '../kernel/json.ts'
import { problem } from '../kernel/problem.ts'
import { refuseHalfPairs } from './well-formed.ts'

const BODY_READ_MS = 5_000
/** How long the rest of a refused body is thrown away, so that the client sees the answer and not a reset. */
const DISCARD_MS = 2_000

/** The whole body; refuses with `payload-too-large` or `request-timeout`. Undefined where there is none. */
export function readBody(request: IncomingMessage, limit: number, clock: Clock): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const cancel = clock.after(BODY_READ_MS, () =>
      refuse(problem('request-timeout', `the body did not arrive within ${BODY_READ_MS / 1000} s`)),
    )
    function stop() {
      cancel()
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      request.removeListener('error', onBroken)
      request.removeListener('close', onBroken)
    }
    function refuse(reason: Error) {
      stop()
      discard(request, clock)
      reject(reason)
    }
    function onData(chunk: Buffer) {
      size += chunk.length
      if (size > limit) return refuse(problem('payload-too-large', `the body is larger than ${limit} bytes`))
      chunks.push(chunk)
    }
    function onEnd() {
      stop()
      resolve(size === 0 ? undefined : Buffer.concat(chunks, size))
    }
    function onBroken() {
      stop()
      reject(problem('invalid-request', 'the request ended before its body was complete'))
    }
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('error', onBroken)
    request.on('close', onBroken)
    const declared = Number(request.headers['content-length'] ?? 0)
    if (declared > limit) refuse(problem('payload-too-large', `the body is larger than ${limit} bytes`))
  })
}

/** Throws away what still comes of a body, for a bounded time. */
export function discard(request: IncomingMessage, clock: Clock): void {
  request.on('error', () => {})
  request.resume()
  clock.after(DISCARD_MS, () => {
    if (!request.complete) request.socket.destroy()
  })
}

const BYTE_ORDER_MARK = '\ufeff'

/** A JSON value, or 400 `invalid:`; of text that UTF-8 cannot hold only where `keepsJson`. */
export function parseJson(bytes: Buffer, keepsJson = false): unknown {
  try {
    if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8')
    const text = bytes.toString('utf8')
    const value: unknown = JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    if (isTooDeep(value)) throw new SyntaxError(TOO_DEEP)
    if (!keepsJson) refuseHalfPairs(text, value)
    return value
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : String(error)
    const sentence = why === TOO_DEEP ? `the body is ${why}` : `the body is not JSON: ${why}`
    throw problem('invalid-request', sentence, { errors: [{ location: 'body', message: why }] })
  }
}
