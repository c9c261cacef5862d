/**
 * The response of this server: the headers that every answer has are collected, and all of them are written at once.
 * Node's `setHeader` costs five times as much, and makes `writeHead` dear.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Outbox } from './outbox.ts'

// Not by `import`: that reads every export of the module, and one of them (WebSocket) loads all of undici.
const http = process.getBuiltinModule('node:http')

export type Headers = Readonly<Record<string, string>>

/** So many of what is collected are of every answer. */
const COMMON = 6
const MAX_JOINED_BYTES = 16 * 1024
const LAST_ANSWER = ['Connection', 'close'] as const

export class Answer extends http.ServerResponse<IncomingMessage> {
  /** Of the request; empty until it has one. */
  requestId = ''
  /** Its success is no line of the access log. */
  quiet = false
  /** The client asked before it sends its body. Answered without it, nobody can tell whether it still comes: the last answer. */
  holdsBodyBack = false
  /** The rest of its request is thrown away. Where the connection ends with it, it ends behind that: a reset would take the answer along. */
  outlastsBody = false
  /** It ends as soon as the client closes its side: a stream, a proxied request, a read that waits. */
  endsWithClient = false
  /** Where it leaves from once it is complete. */
  outbox: Outbox | undefined
  /** Names and values in turn. */
  #collected: string[] = []

  /** Begins anew with what every answer has. */
  identify(requestId: string): void {
    this.requestId = requestId
    this.#collected = ['X-SVC-Request-Id', requestId, 'Vary', 'Origin', 'X-Content-Type-Options', 'nosniff']
  }

  /** For one that is not there yet. */
  collect(name: string, value: string): void {
    this.#collected.push(name, value)
  }

  /** Writes the head: what was collected, and these; `more` are names and values in turn. */
  begin(status: number, headers: Headers = {}, more: readonly string[] = []): this {
    // A copy: a head that cannot be written is followed by that of the refusal.
    const all = [...this.#collected, ...(this.holdsBodyBack ? LAST_ANSWER : []), ...more]
    for (const name in headers) all.push(name, headers[name] ?? '')
    // Node keeps the phrase of a head that it refused to write, and would refuse this one for it too.
    this.statusMessage = ''
    return this.writeHead(status, all)
  }

  /** A client that asks before it sends its body is told to, once all has been checked that can be without it. */
  letBodyCome(): void {
    if (!this.holdsBodyBack) return
    this.holdsBodyBack = false
    this.writeContinue()
  }

  /** Adds the headers that are ours on what a service replied: of a private one, also who may read it. */
  ownTo(headers: string[], isPrivate: boolean): string[] {
    headers.push('X-SVC-Request-Id', this.requestId)
    if (isPrivate) headers.push('Vary', 'Origin')
    if (isPrivate && this.#collected.length > COMMON) headers.push(...this.#collected.slice(COMMON))
    return headers
  }

  /** Writes the head of what a service replied. */
  relay(status: number, message: string, headers: string[], isPrivate: boolean): this {
    this.ownTo(headers, isPrivate)
    if (this.holdsBodyBack) headers.push(...LAST_ANSWER)
    this.sendDate = false
    return this.writeHead(status, message, headers)
  }

  /** The end of what a service replied. A short one is put together with its head: one write is half the work of two. */
  finish(body: Buffer): void {
    if (body.length > MAX_JOINED_BYTES) this.end(body)
    else if (this.outbox === undefined) this.end(body.toString('latin1'), 'latin1')
    else
      this.outbox.put(
        { end: (text) => this.end(text, 'latin1'), destroy: () => this.destroy() },
        body.toString('latin1'),
      )
  }

  /** The whole body, after `begin`. */
  complete(body: string | Buffer): void {
    if (this.outlastsBody && !this.shouldKeepAlive && !this.req.complete) this.#endBehindRequest(body)
    else if (this.outbox === undefined) this.end(body)
    else this.outbox.put(this, body)
  }

  /** Whoever throws the rest away ends the connection where that takes too long. */
  #endBehindRequest(body: string | Buffer): void {
    this.write(body)
    const end = () => {
      this.req.off('end', end).off('close', end)
      this.end()
    }
    this.req.on('end', end).on('close', end)
  }
}

/** Every response of our server is one of ours. */
export function asAnswer(response: ServerResponse): Answer {
  if (response instanceof Answer) return response
  throw new Error('a response of another server')
}
