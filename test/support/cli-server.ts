/** A server of a few lines, for what a real supervisor does only by accident: resets, half frames, odd answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../src/client/clock.ts'

const { createServer } = process.getBuiltinModule('node:http')

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface ScriptedServer extends AsyncDisposable {
  readonly url: string
  readonly requests: SeenRequest[]
  /** Requests whose connection the client has closed. */
  readonly closed: string[]
}

export type Script = (
  request: SeenRequest,
  response: ServerResponse,
  /** 0 for the first request. */
  count: number,
) => void | Promise<void>

/** Answers every request by `script`, on a free port of the loopback. */
export async function scriptedServer(script: Script): Promise<ScriptedServer> {
  const requests: SeenRequest[] = []
  const closed: string[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = '', url = '', headers } = incoming
    const request = { method, url, headers, body: Buffer.concat(chunks).toString() }
    requests.push(request)
    response.on('close', () => closed.push(url))
    await script(request, response, requests.length - 1)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    closed,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function answerJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'content-type': type, 'x-svc-request-id': `rid-${status}`, ...headers })
  response.end(JSON.stringify(body))
}

export function answerProblem(
  response: ServerResponse,
  status: number,
  code: string,
  detail: string,
  headers: Record<string, string> = {},
): void {
  answerJson(response, status, { type: `urn:svc:error:${code}`, title: code, status, detail, code }, headers)
}

/** Opens a stream; write frames to the response from there on. */
export function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-svc-request-id': 'rid-stream' })
  response.flushHeaders()
}

export const frame = (id: string, data: unknown, event = 'event'): string =>
  `id: ${id}\nevent: ${event}\ndata: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

export const HEARTBEAT = 'event: heartbeat\ndata: {"timestamp":"2026-05-01T10:00:15Z"}\n\n'

/** Sends the bytes one by one, each in a packet of its own as far as the kernel allows. */
export async function trickle(response: ServerResponse, text: string): Promise<void> {
  for (const byte of Buffer.from(text)) {
    response.write(Uint8Array.of(byte))
    await sleep(0)
  }
}

export interface FastClock extends Clock {
  /** Every delay that was asked for, in milliseconds. */
  readonly delays: number[]
}

/** How long followers bear silence. */
const SILENCE_MS = 45_000

/** A clock a hundred times faster than the wall's; silence takes longer, for a busy machine is silent by itself. */
export function fastClock(): FastClock {
  const delays: number[] = []
  const origin = Date.now()
  return {
    delays,
    now: () => origin + (Date.now() - origin) * 100,
    after(ms, work) {
      delays.push(ms)
      const timer = setTimeout(work, ms / (ms === SILENCE_MS ? 20 : 100))
      return () => clearTimeout(timer)
    },
  }
}
