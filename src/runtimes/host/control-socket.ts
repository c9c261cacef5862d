/**
 * The host's side of the socket: who has proved the token is answered and told (decision 54).
 *
 * K1  Before `hello` with the right session, generation and token nothing is done and nothing told.
 * K2  Nothing here waits for a peer: one that does not read loses `output` events, then its connection.
 * K3  Output events: at most one per 10 ms, with the newest offset.
 */
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Clock } from '../../kernel/clock.ts'
import type { Identity } from '../process/runtime.ts'
import {
  encode,
  type HostEvent,
  type HostStatus,
  lineReader,
  type Operation,
  type Operations,
  parseRequest,
  type Reply,
  type Request,
} from './protocol.ts'

const MAX_PEERS = 16
const MOST_TRIES = 500
const HELLO_MS = 5_000
const OUTPUT_MS = 10
/** Of events that a peer has not taken yet. */
const MAX_BEHIND_BYTES = 1024 * 1024

export type Handlers = {
  [Op in Exclude<Operation, 'hello'>]: (
    input: Operations[Op]['in'],
  ) => Operations[Op]['out'] | Promise<Operations[Op]['out']>
}

export interface ControlDeps {
  readonly identity: Identity
  readonly clock: Clock
  readonly status: () => HostStatus
  readonly handlers: Handlers
}

export interface ControlSocket {
  tell(event: HostEvent): void
  outputGrew(endOffset: () => number): void
  close(): void
}

/** Resolves when the socket is bound, in the place of one that was left there. */
export async function openControlSocket(path: string, deps: ControlDeps): Promise<ControlSocket> {
  const known = new Set<Socket>()
  const server = createServer((socket) => serve(socket, deps, known))
  server.maxConnections = MAX_PEERS
  await bind(server, path)
  server.on('error', () => {})
  let outputDue = false
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    tell(event) {
      for (const socket of known) send(socket, event)
    },
    outputGrew(endOffset) {
      if (outputDue || known.size === 0) return
      outputDue = true
      // After a pause at once: a person sees the echo of a key.
      deps.clock.after(Math.max(0, toldAt + OUTPUT_MS - deps.clock.monotonic()), () => {
        outputDue = false
        toldAt = deps.clock.monotonic()
        const event = { event: 'output', end_offset: endOffset() } as const
        for (const socket of known) if (socket.writableLength === 0) send(socket, event)
      })
    },
    close() {
      server.close()
      for (const socket of known) socket.destroySoon()
    },
  }
}

/**
 * The last host there takes the directory along as it leaves: between our making it and our listening in it, and between
 * being told that it is there and looking at it, which `mkdirSync` does.
 */
async function bind(server: Server, path: string): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      rmSync(path, { force: true })
      return await listen(server, path)
    } catch (error) {
      if (tries === MOST_TRIES) throw error
    }
}

async function listen(server: Server, path: string): Promise<void> {
  const listening = once(server, 'listening')
  server.listen(path)
  await listening
}

function send(socket: Socket, message: HostEvent | Reply): void {
  if (socket.writableLength > MAX_BEHIND_BYTES) socket.destroy()
  else if (socket.writable) socket.write(encode(message))
}

function serve(socket: Socket, deps: ControlDeps, known: Set<Socket>): void {
  const cancel = deps.clock.after(HELLO_MS, () => known.has(socket) || socket.destroy())
  socket.on('error', () => {})
  socket.once('close', () => {
    cancel()
    known.delete(socket)
  })
  const refuse = (id: number, message: string) => {
    send(socket, { reply: id, error: { code: 'refused', message } })
    socket.destroySoon()
  }
  const onLine = (line: string) => {
    const request = parseRequest(line)
    if (request === undefined) return socket.destroy()
    if (typeof request === 'number') {
      if (!known.has(socket)) return refuse(request, 'hello comes first')
      return send(socket, { reply: request, error: { code: 'unsupported', message: 'this host does not know it' } })
    }
    if (request.op === 'hello') {
      if (!proves(request, deps.identity)) return refuse(request.id, 'another session, generation or token')
      send(socket, { reply: request.id, result: deps.status() })
      known.add(socket)
      return
    }
    if (!known.has(socket)) return refuse(request.id, 'hello comes first')
    void answer(socket, request, deps.handlers)
  }
  socket.on(
    'data',
    lineReader(onLine, () => socket.destroy()),
  )
}

const proves = (claim: Operations['hello']['in'], { sessionId, generation, token }: Identity) =>
  claim.session_id === sessionId && claim.generation === generation && claim.token === token

async function answer(socket: Socket, request: Exclude<Request, { op: 'hello' }>, handlers: Handlers): Promise<void> {
  try {
    send(socket, { reply: request.id, result: await handle(request, handlers) })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    send(socket, { reply: request.id, error: { code: 'failed', message } })
  }
}

function handle(request: Exclude<Request, { op: 'hello' }>, handlers: Handlers): object | Promise<object> {
  switch (request.op) {
    case 'status':
      return handlers.status(request)
    case 'deliver':
      return handlers.deliver(request)
    case 'enter':
      return handlers.enter(request)
    case 'delivered':
      return handlers.delivered(request)
    case 'interrupt':
      return handlers.interrupt(request)
    case 'answer':
      return handlers.answer(request)
    case 'input':
      return handlers.input(request)
    case 'set':
      return handlers.set(request)
    case 'type_keys':
      return handlers.type_keys(request)
    case 'type_line':
      return handlers.type_line(request)
    case 'resize':
      return handlers.resize(request)
    case 'stop':
      return handlers.stop(request)
    case 'bye':
      return handlers.bye(request)
  }
}
