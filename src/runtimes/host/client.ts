/**
 * The supervisor's side of a host's socket: one connection. Reconnecting and what it means is `hosted-process.ts`.
 *
 * L1  Every request settles: by its reply, its signal, or the end of the connection (`ConnectionLost`).
 * L2  Events are told in the order of the host, after the status that `hello` answered.
 */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../kernel/clock.ts'
import type { Identity } from '../process/runtime.ts'
import {
  encodeRequest,
  type HostEvent,
  type HostStatus,
  lineReader,
  type Operation,
  type Operations,
  PROTOCOL,
  parseMessage,
  parseResult,
  type Reply,
} from './protocol.ts'

const HELLO_MS = 2_000

/** Nothing is known of what was asked: it may have been done. */
export class ConnectionLost extends Error {
  constructor(message = 'the connection to the host is lost') {
    super(message)
    this.name = 'ConnectionLost'
  }
}

/** The host has another identity, or does not know the request. */
export class HostRefused extends Error {
  readonly code: 'refused' | 'unsupported' | 'failed'

  constructor(code: HostRefused['code'], message: string) {
    super(message)
    this.name = 'HostRefused'
    this.code = code
  }
}

export interface HostConnection {
  request<Op extends Operation>(
    op: Op,
    input: Operations[Op]['in'],
    signal?: AbortSignal,
  ): Promise<Operations[Op]['out']>
  close(): void
}

export interface ConnectOptions {
  readonly socket: string
  readonly identity: Identity
  readonly clock: Clock
  /** What `hello` answered; before it returns no event is told. */
  readonly onStatus: (status: HostStatus) => void
  readonly onEvent: (event: HostEvent) => void
  /** Once, when it ends by other means than `close`. */
  readonly onLost: () => void
  readonly signal?: AbortSignal
}

/** Connects and proves who we are; bounded by 2 s and the signal. Status and events may come before it resolves. */
export async function connectHost(options: ConnectOptions): Promise<HostConnection> {
  const { identity, clock, signal } = options
  signal?.throwIfAborted()
  const wire = openWire(options)
  const cancel = clock.after(HELLO_MS, () => wire.close(new ConnectionLost('the host does not answer')))
  try {
    const { sessionId: session_id, generation, token } = identity
    await wire.request('hello', { protocol: PROTOCOL, session_id, generation, token }, signal)
    return { request: wire.request, close: () => wire.close() }
  } catch (error) {
    wire.close()
    throw error
  } finally {
    cancel()
  }
}

function openWire({ socket: path, onStatus, onEvent, onLost }: ConnectOptions) {
  const waiting = new Map<number, (reply: Reply | Error) => void>()
  const socket: Socket = connect(path)
  let lastId = 0
  let greeted = false
  let closed: Error | undefined

  function close(error: Error = new ConnectionLost('we have closed it')) {
    if (closed !== undefined) return
    closed = error
    socket.destroy()
    for (const settle of waiting.values()) settle(error)
    waiting.clear()
  }
  function lost(error?: Error) {
    if (closed !== undefined) return
    close(error === undefined ? new ConnectionLost() : new ConnectionLost(error.message))
    if (greeted) onLost()
  }
  function onLine(line: string) {
    const message = parseMessage(line)
    if (message === undefined) return lost(new Error('the host does not speak our protocol'))
    if (closed !== undefined) return
    if ('event' in message) return onEvent(message)
    waiting.get(message.reply)?.(message)
    waiting.delete(message.reply)
  }
  socket.on(
    'data',
    lineReader(onLine, () => lost(new Error('the host sent a line beyond the bound'))),
  )
  socket.on('error', lost)
  socket.on('close', () => lost())

  return {
    close,
    async request<Op extends Operation>(op: Op, input: Operations[Op]['in'], signal?: AbortSignal) {
      signal?.throwIfAborted()
      if (closed !== undefined) throw closed
      const id = ++lastId
      const { promise, resolve, reject } = Promise.withResolvers<Operations[Op]['out']>()
      const onAbort = () => {
        waiting.delete(id)
        reject(signal?.reason)
      }
      waiting.set(id, (reply) => {
        signal?.removeEventListener('abort', onAbort)
        if (reply instanceof Error) return reject(reply)
        if ('error' in reply) return reject(new HostRefused(reply.error.code, reply.error.message))
        if (op === 'hello') {
          greeted = true
          onStatus(parseResult('hello', reply.result))
        }
        resolve(parseResult(op, reply.result))
      })
      signal?.addEventListener('abort', onAbort, { once: true })
      socket.write(encodeRequest(id, op, input))
      return promise
    },
  }
}
