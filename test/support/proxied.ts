/** The raw proxy in this process, before a real server on a real socket; what runs services is played by a plain object. */
import { createHash } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import type { Server as HttpServerOfNode, IncomingMessage, RequestListener } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProxiedService, Visit } from '../../src/http/proxy/services.ts'
import { type HttpDeps, HttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { eventually } from './eventually.ts'
import { RawConnection } from './http.ts'
import { QUIET_METRICS } from './http-server.ts'
import { removeTree } from './temporary.ts'

const http = process.getBuiltinModule('node:http')

export const OPEN: HttpDeps['security'] = {
  allowedHosts: [],
  allowedOrigins: [],
  token: undefined,
  readOnly: false,
}

export interface Setting
  extends Partial<Pick<HttpDeps, 'clock' | 'security' | 'metrics' | 'maxProxied' | 'log' | 'listeners'>> {
  /** Of the service that is called `web`. */
  readonly service?: Partial<ProxiedService>
}

/** A proxy before one service of the city `alpha`, which is at `upstream`. */
export class ProxiedWorld implements AsyncDisposable {
  readonly url: string
  /** Visits that have not been left. */
  readonly visits: Set<Visit>
  readonly end: AbortController
  readonly http: HttpServer
  readonly #close: () => Promise<void>

  constructor(url: string, visits: Set<Visit>, end: AbortController, server: HttpServer, close: () => Promise<void>) {
    this.url = url
    this.visits = visits
    this.end = end
    this.http = server
    this.#close = close
  }

  connect = (): RawConnection => new RawConnection(this.url)

  /** Sends a request on a connection of its own and waits for one whole answer, or for its end. */
  async ask(text: string | Buffer): Promise<string> {
    using connection = await this.connect().send(text)
    await connection.closed
    return connection.bytes.toString('latin1')
  }

  /** Nothing is at the service any more. */
  quiet = (): Promise<unknown> => eventually('every visit is left', () => (this.visits.size === 0 ? true : undefined))

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }
}

const silent = () => {}
const QUIET_LOG: HttpDeps['log'] = {
  info: silent,
  warn: silent,
  error: silent,
  debug: silent,
  isLevelEnabled: () => false,
}

export async function proxied(upstream: Server | HttpServerOfNode, setting: Setting = {}): Promise<ProxiedWorld> {
  const dir = mkdtempSync(join(tmpdir(), 'svc-proxy-'))
  const socketPath = join(dir, 'web.sock')
  await new Promise<void>((resolve) => upstream.listen(socketPath, resolve))
  const sockets = new Set<Socket>()
  upstream.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  const world = await before({ socketPath }, setting)
  return new ProxiedWorld(world.url, world.visits, world.end, world.http, async () => {
    await world[Symbol.asyncDispose]()
    upstream.close()
    for (const socket of sockets) socket.destroy()
    removeTree(dir)
  })
}

/** What a server answers to a client that wants a WebSocket (RFC 6455 §4.2.2). */
export function agreeToWebSocket({ headers }: IncomingMessage, socket: Pick<Socket, 'write'>): void {
  const accept = createHash('sha1')
    .update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
}

/** A proxy before what is at an address already. */
export async function before(upstream: Visit['upstream'], setting: Setting = {}): Promise<ProxiedWorld> {
  const visits = new Set<Visit>()
  const end = new AbortController()
  const life = {}
  const service: ProxiedService = Object.defineProperties<ProxiedService>(
    {
      name: 'web',
      direct: false,
      websockets: true,
      sandbox: setting.service?.direct !== true,
      firstByteMs: 60_000,
      idleMs: 600_000,
      enter: () => {
        const visit: Visit = { upstream, life, cut: end.signal, leave: () => visits.delete(visit) }
        visits.add(visit)
        return visit
      },
    },
    // One that changes is asked each time.
    Object.getOwnPropertyDescriptors(setting.service ?? {}),
  )
  const server = new HttpServer({
    operations: [],
    handlers: {},
    security: setting.security ?? OPEN,
    cities: { resolve: () => undefined },
    services: {
      inCity: (city) => (city === 'alpha' ? { find: (name) => (name === 'web' ? service : undefined) } : undefined),
    },
    clock: setting.clock ?? systemClock,
    log: setting.log ?? QUIET_LOG,
    metrics: setting.metrics ?? QUIET_METRICS,
    ...(setting.listeners === undefined ? {} : { listeners: setting.listeners }),
    ...(setting.maxProxied === undefined ? {} : { maxProxied: setting.maxProxied }),
  })
  const url = await server.listen('127.0.0.1', 0)
  return new ProxiedWorld(url, visits, end, server, () => server.close())
}

export const httpUpstream = (listener: RequestListener): HttpServerOfNode => http.createServer(listener)

/** An upstream that is handed each connection. */
export const rawUpstream = (take: (socket: Socket) => void): Server => createServer({ allowHalfOpen: true }, take)

/** What has come over a socket until it satisfies `enough`. */
export function heard(socket: Socket, enough: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const look = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!enough(text)) return
      socket.off('data', look).off('close', fail)
      resolve(text)
    }
    const fail = () => reject(new Error(`closed after: ${text}`))
    socket.on('data', look).once('close', fail)
  })
}
