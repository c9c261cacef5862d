/** Requests exactly as written: no client library that would tidy them up first. */
import type { Agent } from 'node:http'
import { connect } from 'node:net'
import type { Answer } from './contract-document.ts'

// As in http.ts.
const http = process.getBuiltinModule('node:http')

const ANSWER_DEADLINE_MS = 10_000
/** How long a stream is listened to when it has nothing to say. */
const LISTEN_MS = 30

export interface WireRequest {
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: Buffer | undefined
}

export const keptAlive = () => new http.Agent({ keepAlive: true, maxSockets: 16 })

/** Sends and waits for the whole answer, or of a stream for its headers and first bytes. */
export function exchange(base: string, { method, target, headers, body }: WireRequest, agent: Agent): Promise<Answer> {
  const { hostname, port, host } = new URL(base)
  // As a list, so that the client adds nothing of its own.
  const length = body === undefined ? [] : ['Content-Length', String(body.length)]
  return new Promise((done, fail) => {
    const sent = http.request({
      hostname,
      port,
      method,
      path: target,
      headers: ['Host', host, ...headers.flat(), ...length],
      agent,
    })
    const timer = setTimeout(
      () => sent.destroy(new Error(`${method} ${target}: no answer within ${ANSWER_DEADLINE_MS} ms`)),
      ANSWER_DEADLINE_MS,
    )
    sent.on('error', (error) => {
      clearTimeout(timer)
      fail(error)
    })
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      const finish = () => {
        clearTimeout(timer)
        done({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) })
      }
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      if (response.headers['content-type'] !== 'text/event-stream') return void response.on('end', finish)
      const stop = () => {
        finish()
        sent.destroy()
      }
      response.once('data', stop)
      setTimeout(stop, LISTEN_MS)
    })
    sent.end(body)
  })
}

/** Writes bytes on a socket of their own, says that nothing follows, and returns all that came back. */
export function exchangeBytes(base: string, bytes: Buffer): Promise<Buffer> {
  const { hostname, port } = new URL(base)
  return new Promise((done, fail) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const timer = setTimeout(() => {
      socket.destroy()
      fail(new Error(`the connection was still open after ${ANSWER_DEADLINE_MS} ms`))
    }, ANSWER_DEADLINE_MS)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // A reset is a way of closing; what was sent before it is lost to us.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      done(Buffer.concat(chunks))
    })
    socket.on('end', () => socket.end())
    socket.end(bytes)
  })
}
