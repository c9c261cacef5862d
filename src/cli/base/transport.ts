/**
 * The client's requests by `node:http`. `fetch` would do as well, but its first use costs a command 30 to 40 ms, a
 * quarter of what `svcctl events --seq` may take (architecture §9).
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { Readable } from 'node:stream'
import { type Answer, type BodyPieces, isPieces, type Transport } from '../../client/client.ts'

// Not by `import`: that reads every export of the module, and one of them (WebSocket) loads all of undici, which takes
// longer than everything else a command does.
const http = process.getBuiltinModule('node:http')

export const nodeTransport: Transport = async (url, { method, headers, body, signal }) => {
  const options: RequestOptions = { method, headers: { ...headers } }
  if (body !== undefined && !isPieces(body)) options.headers = { ...headers, 'content-length': Buffer.byteLength(body) }
  const send = url.startsWith('https:') ? (await import('node:https')).request : http.request
  signal?.throwIfAborted()
  const request = send(url, signal === undefined ? options : { ...options, signal })
  if (!isPieces(body)) {
    request.end(body)
    return answerOf(await responseTo(request), url, signal)
  }
  let answered = false
  const response = responseTo(request).then((message) => {
    answered = true
    // The server may have enough before everything was sent: what is left need not go out any more.
    message.once('end', () => {
      if (!request.writableEnded) request.destroy()
    })
    return message
  })
  sendPieces(request, body, () => answered).catch((error: unknown) =>
    request.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  return answerOf(await response, url, signal)
}

/** No faster than the server takes them, and not beyond its answer. */
async function sendPieces(request: ClientRequest, pieces: BodyPieces, answered: () => boolean): Promise<void> {
  for await (const piece of pieces) {
    if (answered() || request.destroyed) return
    if (!request.write(piece)) await roomAgain(request)
  }
  if (!answered()) request.end()
}

function roomAgain(request: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const events = ['drain', 'response', 'close'] as const
    const go = () => {
      for (const event of events) request.removeListener(event, go)
      resolve()
    }
    for (const event of events) request.on(event, go)
  })
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve)
    // Stays on: a connection that breaks later reports here too, and to whoever reads the body.
    request.on('error', reject)
  })
}

function answerOf(message: IncomingMessage, url: string, signal: AbortSignal | undefined): Answer {
  const status = message.statusCode ?? 0
  // Whoever reads the body sees the error; where nobody does, it must not end the process.
  message.on('error', () => undefined)
  const headers = new Map(
    Object.entries(message.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
  return {
    ok: status >= 200 && status < 300,
    status,
    url,
    headers: { get: (name) => headers.get(name) ?? null, [Symbol.iterator]: () => headers.entries() },
    get body() {
      return Readable.toWeb(message)
    },
    text: () => readAll(message, signal),
  }
}

/** As `Response.text`: broken off is a `TypeError`, aborted is the signal's reason. */
async function readAll(message: IncomingMessage, signal: AbortSignal | undefined): Promise<string> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of message) chunks.push(chunk)
  } catch (error) {
    signal?.throwIfAborted()
    throw new TypeError('terminated', { cause: error })
  }
  return Buffer.concat(chunks).toString('utf8')
}
