/**
 * The agent's stdin and stdout as a stream of JSON-RPC messages for the SDK.
 *
 * AW1  Every line of the agent is in the output before anything is done about it, exactly as it came; only a line that
 *      would look like one of the host's gets a space in front, and what stands around a message is a line of its own.
 * AW2  No agent can fill the host: a line is bounded, and so are the requests that wait for an answer of ours, by number
 *      and by bytes. Whoever goes over is broken, which ends the session and not the host.
 * AW3  What is not of the protocol reaches nobody: no answer is given to a line that is no message.
 * AW4  `session/update` stops here: it is in the output, and nobody in the host needs it typed.
 */

import type { Readable, Writable } from 'node:stream'
import type { AnyMessage, AnyRequest, JsonRpcId, Stream } from '@agentclientprotocol/sdk'
import { LineTooLong, lineSplitter } from '../process/lines.ts'
import { framed, parseJson } from './framing.ts'
import { SVC_PREFIX } from './transcript.ts'

const MAX_LINE_BYTES = 16 * 1024 * 1024
const MAX_UNREAD_BYTES = 2048
const MAX_OPEN_REQUESTS = 256
const MAX_OPEN_BYTES = 64 * 1024 * 1024

export interface WireEvents {
  /** A line with its newline, for the output. */
  line(bytes: Buffer): void
  /** Something that had to be ignored; for people. */
  note(text: string): void
  /** The `update` of a `session/update`. */
  update(update: Readonly<Record<string, unknown>>): void
  /** The agent broke the protocol beyond what can be ignored, or closed its output. Once; nothing follows. */
  broken(message: string): void
  /** Its output has ended. */
  ended(): void
}

export interface Wire {
  readonly stream: Stream
  /** Resolves when the next request of this method is with the operating system, rejects when it cannot be written. */
  nextWritten(method: string): Promise<void>
  /** The first line that is no message, or what stands there without an end of line; empty where there is none. */
  unread(): Buffer
}

export function openWire(stdin: Writable, stdout: Readable, events: WireEvents): Wire {
  return new AgentWire(stdin, stdout, events)
}

class AgentWire implements Wire {
  readonly stream: Stream
  readonly #stdin: Writable
  readonly #events: WireEvents
  readonly #splitter = lineSplitter(MAX_LINE_BYTES)
  /** Requests of ours that the agent has not answered. */
  readonly #ours = new Set<JsonRpcId>()
  /** Requests of the agent that we have not answered, with their size. */
  readonly #theirs = new Map<JsonRpcId, number>()
  #theirBytes = 0
  /** Absent once the SDK listens no more; lines go on into the output. */
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined
  #ended = false
  #unread: Buffer | undefined
  #awaited: { readonly method: string; readonly written: PromiseWithResolvers<void> } | undefined

  constructor(stdin: Writable, stdout: Readable, events: WireEvents) {
    this.#stdin = stdin
    this.#events = events
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#controller = undefined
        },
      }),
      writable: new WritableStream<AnyMessage>({ write: (message) => this.#write(message) }),
    }
    // Both also fail where something is waiting for it; without a listener the host would die of it.
    stdin.on('error', () => {})
    stdout.on('error', () => {})
    stdout.on('data', (chunk: Buffer) => this.#receive(chunk))
    stdout.once('close', () => this.#end())
  }

  nextWritten(method: string): Promise<void> {
    const written = Promise.withResolvers<void>()
    this.#awaited = { method, written }
    return written.promise
  }

  unread(): Buffer {
    return (this.#unread ?? this.#splitter.begun()).subarray(0, MAX_UNREAD_BYTES)
  }

  async #write(message: AnyMessage): Promise<void> {
    if ('method' in message && 'id' in message) this.#ours.add(message.id)
    const awaited = 'method' in message && message.method === this.#awaited?.method ? this.#awaited : undefined
    if (awaited !== undefined) this.#awaited = undefined
    try {
      await this.#writeLine(`${JSON.stringify(message)}\n`)
      awaited?.written.resolve()
    } catch (error) {
      awaited?.written.reject(error)
      throw error
    } finally {
      if (!('method' in message)) this.#close(message.id)
    }
  }

  #writeLine(line: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stdin.write(line, (error) => (error ? reject(error) : resolve()))
    })
  }

  #receive(chunk: Buffer): void {
    if (this.#ended) return
    try {
      for (const line of this.#splitter.push(chunk)) this.#take(line)
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      this.#break(error.message)
    }
  }

  #take(bytes: Buffer): void {
    const line = bytes.toString('utf8')
    const value = parseJson(line)
    const parts = value === undefined ? framed(bytes) : undefined
    if (parts !== undefined) {
      for (const part of parts) this.#take(part)
      return
    }
    this.#events.line(line.startsWith(SVC_PREFIX) ? Buffer.concat([Buffer.from(' '), bytes]) : bytes)
    if (value !== undefined) this.#dispatch(asMessage(value), bytes.length)
    else if (line.trim() !== '') this.#unread ??= Buffer.from(bytes.subarray(0, MAX_UNREAD_BYTES))
  }

  #dispatch(message: Incoming | undefined, bytes: number): void {
    if (message === undefined) this.#events.note('ignored a line that is JSON but no JSON-RPC message')
    else if (!('method' in message)) this.#response(message)
    else if ('id' in message) this.#request(message, bytes)
    else if (message.method === '$/cancel_request') this.#controller?.enqueue(message)
    else if (message.method === 'session/update') this.#update(message.params)
  }

  #response(message: ResponseShape): void {
    // Whoever asked must hear of it, also where the answer is neither a result nor an error.
    if (this.#ours.delete(message.id)) this.#controller?.enqueue(wellFormed(message))
    else this.#events.note('ignored an answer to nothing that was asked')
  }

  #request(message: AnyRequest, bytes: number): void {
    this.#close(message.id)
    this.#theirs.set(message.id, bytes)
    this.#theirBytes += bytes
    if (this.#theirs.size > MAX_OPEN_REQUESTS) this.#break(`more than ${MAX_OPEN_REQUESTS} requests at once`)
    else if (this.#theirBytes > MAX_OPEN_BYTES) this.#break(`requests of more than ${MAX_OPEN_BYTES} bytes at once`)
    else this.#controller?.enqueue(message)
  }

  #close(id: JsonRpcId): void {
    this.#theirBytes -= this.#theirs.get(id) ?? 0
    this.#theirs.delete(id)
  }

  #update(params: unknown): void {
    if (isObject(params) && isObject(params['update'])) this.#events.update(params['update'])
    else this.#events.note('ignored a session/update without an update')
  }

  #break(message: string): void {
    if (this.#ended) return
    this.#shut()
    this.#events.broken(message)
  }

  #end(): void {
    if (this.#ended) return
    const rest = this.#splitter.rest()
    if (rest.length > 0) this.#take(Buffer.concat([rest, Buffer.from('\n')]))
    this.#shut()
    this.#events.ended()
  }

  /** Ends the SDK's connection: what was asked of the agent is then rejected. */
  #shut(): void {
    this.#ended = true
    const controller = this.#controller
    this.#controller = undefined
    controller?.close()
  }
}

/** Has an id and no method; whether it is a good answer is another question. */
interface ResponseShape {
  readonly id: JsonRpcId
  readonly result?: unknown
  readonly error?: unknown
}

type Incoming = AnyRequest | Notification | ResponseShape

type Notification = { readonly jsonrpc: '2.0'; readonly method: string; readonly params?: unknown }

function asMessage(value: unknown): Incoming | undefined {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') return undefined
  const { id, method, params } = value
  if (method === undefined) {
    return isId(id) ? { id, ...('result' in value && { result: value['result'] }), error: value['error'] } : undefined
  }
  if (typeof method !== 'string') return undefined
  if (!('id' in value)) return { jsonrpc: '2.0', method, params }
  return isId(id) ? { jsonrpc: '2.0', id, method, params } : undefined
}

function wellFormed({ id, error, ...rest }: ResponseShape): AnyMessage {
  if (isObject(error)) {
    const code = typeof error['code'] === 'number' && Number.isInteger(error['code']) ? error['code'] : -32603
    const message = typeof error['message'] === 'string' ? error['message'] : 'an error without a message'
    return { jsonrpc: '2.0', id, error: { code, message, data: error['data'] } }
  }
  if ('result' in rest) return { jsonrpc: '2.0', id, result: rest.result }
  return { jsonrpc: '2.0', id, error: { code: -32603, message: 'the answer has neither a result nor an error' } }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isId = (value: unknown): value is JsonRpcId =>
  value === null || typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))
