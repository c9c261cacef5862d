/**
 * The HTTP surface: Node's server and the contract's operations, its limits, and its graceful end.
 *
 * S1  Every response carries X-SVC-Request-Id, also those that no handler ever saw.
 * S2  Every refusal is Problem Details, also those of the parser and the router.
 * S3  Nothing of a stream is sent before everything that can fail has succeeded.
 * S4  No exception of one exchange leaves the handlers of its events: it ends that exchange, and the log says why.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { isMutation, type Operation } from '../contract/base/operation.ts'
import type { ProblemCode } from '../contract/base/problems.ts'
import { type Call, RawBody, type Reply, StreamBody, type Traits } from '../kernel/call.ts'
import { type Caller, STRANGER, shareOf } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { contained } from '../kernel/contained.ts'
import type { Feed } from '../kernel/feed.ts'
import { httpRequestId } from '../kernel/ids.ts'
import type { Logger } from '../kernel/log.ts'
import type { Listeners } from '../kernel/peers/listeners.ts'
import type { PeerUsers } from '../kernel/peers/peer-users.ts'
import { type Problem, problem, toProblem } from '../kernel/problem.ts'
import { noteConnection } from '../kernel/streams/replays.ts'
import { Answer, asAnswer } from './answer.ts'
import type { Conformance } from './conformance.ts'
import { Connections, HEADERS_TIMEOUT_MS, MAX_HEADER_BYTES } from './connections.ts'
import { Exchange } from './exchange.ts'
import {
  type CityGate,
  GATES,
  type GateDeps,
  type LendCity,
  PREFLIGHT_GATES,
  RIGHTS_GATES,
  type Security,
} from './gates.ts'
import { Bodies, discard as discardBody, refuseDeclared } from './input/body.ts'
import { RequestBytes } from './input/bytes.ts'
import { checkMediaType } from './input/media-type.ts'
import { type Listening, listenOn } from './listen.ts'
import { isUnchanged, mayPack, packed, takesGzip } from './negotiated.ts'
import { type Bound, bindHandlers, CallSignals, readInput } from './operations.ts'
import { Outbox } from './outbox.ts'
import { asksForUpgrade, Proxied, type ProxyMeter } from './proxied.ts'
import type { ServiceGate } from './proxy/services.ts'
import { readProxiedTarget } from './proxy/target.ts'
import { sendJson, sendPieces, sendProblem, sendRedirect, sendText } from './replies.ts'
import { RequestLog, type Subject } from './request-log.ts'
import { type Found, Router, refuseUndecodable } from './router.ts'
import { type OpenStream, STREAM_HEADERS, serveStream } from './sse.ts'
import { StreamSlots } from './stream-slots.ts'
import { Unproven } from './unproven.ts'
import { Upgrading } from './upgrading.ts'

// Not by `import`: that reads every export of the module, and one of them (WebSocket) loads all of undici.
const http = process.getBuiltinModule('node:http')

const DEFAULT_BODY_LIMIT = 1024 * 1024
const IDLE_TIMEOUT_MS = 75_000
const DRAIN_MS = 3_000
/** Methods that may be asked of any path; others are refused before anything else is looked at. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
const ALLOWED_METHODS = 'DELETE, GET, HEAD, PATCH, POST, PUT'

/** What the surface tells about itself; a meter is made once per operation, so that counting costs nothing. */
export interface HttpMetrics extends ProxyMeter {
  requestMeter(method: string, operation: string): (status: number, seconds: number) => void
  /** Every refusal, also of what no operation was found for. */
  refused(code: ProblemCode): void
  streamOpened(): void
  streamClosed(): void
}

export interface HttpDeps {
  readonly operations: readonly Operation[]
  readonly handlers: Readonly<Record<string, unknown>>
  readonly traits?: Readonly<Record<string, Traits | undefined>>
  readonly security: Security & {
    readonly users?: (Pick<PeerUsers, 'admit' | 'refusal'> & Partial<Pick<PeerUsers, 'onRefused'>>) | undefined
  }
  readonly cities: CityGate
  readonly services: ServiceGate
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: HttpMetrics
  /** Checks what is sent against the contract. For tests. */
  readonly conformance?: Conformance | undefined
  /** Open streams in total; 10,000 where absent. */
  readonly maxStreams?: number
  /** Who is behind ports of services; everybody passes where absent. */
  readonly listeners?: Listeners
  /** Requests to services at once; 10,000 where absent. */
  readonly maxProxied?: number
}

/** Refusals of those who have shown no right. */
const ENDING: ReadonlySet<ProblemCode> = new Set(['unauthorized', 'forbidden', 'host-not-allowed'])

/** The work goes on when the body has come. */
const LATER = Symbol('later')

/** What a route leads to. */
interface Served {
  readonly operation: Operation
  readonly bound: Bound
  readonly traits: Traits
  readonly meter: (status: number, seconds: number) => void
}

export class HttpServer {
  readonly #deps: HttpDeps
  readonly #server: Server
  readonly #router: Router<Served>
  readonly #gateDeps: GateDeps
  readonly #streams = new Map<OpenStream, Caller>()
  readonly #idle: (() => void)[] = []
  readonly #signals = new CallSignals()
  readonly #log: RequestLog
  readonly #outbox: Outbox
  readonly #slots: StreamSlots
  readonly #bodies: Bodies
  readonly #connections: Connections
  readonly #proxied: Proxied
  readonly #unproven: Unproven
  #listening: Listening | undefined
  #inFlight = 0
  #stopping = false

  constructor(deps: HttpDeps) {
    this.#deps = deps
    this.#log = new RequestLog(deps.log, deps.clock)
    this.#outbox = new Outbox(deps.clock)
    this.#slots = new StreamSlots(deps.maxStreams)
    this.#bodies = new Bodies(deps.clock)
    this.#unproven = new Unproven(deps.clock)
    this.#connections = new Connections(deps.clock, (subject, refused) => this.#note(subject, refused))
    this.#router = new Router(servedBy(deps), MAX_HEADER_BYTES)
    this.#gateDeps = {
      security: deps.security,
      cities: deps.cities,
      routes: this.#router,
      isShuttingDown: () => this.#stopping,
    }
    this.#proxied = new Proxied({
      services: deps.services,
      gates: this.#gateDeps,
      clock: deps.clock,
      refuse: (reason, exchange) => this.#refuse(reason, exchange),
      broke: (error, { answer }) => this.#broke(error, answer),
      meter: deps.metrics,
      listeners: deps.listeners,
      max: deps.maxProxied,
    })
    this.#server = this.#makeServer()
  }

  get streams(): number {
    return this.#slots.taken
  }

  /** Binds the port; resolves with the base address. */
  async listen(host: string, port: number): Promise<string> {
    this.#listening = await listenOn(this.#server, host, port)
    return baseUrl(this.#listening.address)
  }

  /** Ends what is followed with rights that somebody has no more. */
  endStreamsOf(isMeant: (caller: Caller) => boolean): void {
    for (const [stream, who] of [...this.#streams]) if (isMeant(who)) stream.end()
    this.#proxied.endOf(isMeant)
  }

  /** Ends streams, lets requests finish for a bounded time, closes everything. */
  async close(): Promise<void> {
    this.#stopping = true
    // Blocking reads answer now instead of being cut.
    this.#signals.end()
    const closed = this.#listening?.close()
    this.#server.closeIdleConnections()
    for (const stream of [...this.#streams.keys()]) stream.end()
    this.#proxied.stop()
    await this.#drained()
    this.#proxied.close()
    this.#server.closeAllConnections()
    await closed
    this.#log.close()
  }

  #drained(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#deps.clock.after(DRAIN_MS, resolve)
    })
  }

  #makeServer(): Server {
    const server = http.createServer({ ...SERVER_OPTIONS, shouldUpgradeCallback: asksForUpgrade })
    const { users } = this.#deps.security
    // Node's own switch, which its types do not know: who has closed its side still gets its answer.
    Object.assign(server, { httpAllowHalfOpen: true })
    if (users !== undefined) users.onRefused = (socket) => this.#unproven.judged(socket)
    // S4: whatever one event throws ends its connection.
    const within = (socket: Duplex, work: () => void) => contained(work, (error) => this.#broke(error, socket))
    server.on('connection', (socket) =>
      within(socket, () => {
        noteConnection()
        this.#unproven.add(socket)
        socket.on('close', () => this.#unproven.forget(socket))
        socket.on('end', () => this.#connections.halfClosed(socket))
        users?.admit(socket)
      }),
    )
    server.on('request', (request, response) => within(request.socket, () => this.#accept(request, asAnswer(response))))
    server.on('upgrade', (request, socket, head) =>
      within(socket, () => {
        const upgrade = new Upgrading(request, socket, head, this.#deps.clock)
        this.#connections.whenFree(socket, () =>
          within(socket, () => {
            upgrade.begin()
            this.#accept(request, upgrade.answer, upgrade)
          }),
        )
      }),
    )
    server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    server.on('checkContinue', (request, response) => {
      asAnswer(response).holdsBodyBack = true
      server.emit('request', request, response)
    })
    server.on('clientError', (error, socket) => within(socket, () => this.#connections.refuseUnparsed(error, socket)))
    server.on('connect', (_request, socket) =>
      within(socket, () =>
        this.#connections.refuse(socket, problem('method-not-allowed', 'CONNECT is not a method of this API')),
      ),
    )
    return server
  }

  /** Something of ours threw where nobody can be answered any more: what it was about is cut, and the log says why. */
  #broke(error: unknown, what: { destroy(): unknown }): void {
    this.#deps.log.error({ err: error }, 'an exchange was cut: its work threw')
    what.destroy()
  }

  #accept(request: IncomingMessage, answer: Answer, upgrade?: Upgrading): void {
    this.#inFlight++
    this.#outbox.expect()
    this.#connections.asked(request.socket, answer)
    answer.outbox = this.#outbox
    answer.identify(httpRequestId())
    const exchange = new Exchange(request, answer, this.#deps.clock.monotonic())
    answer.on('close', () =>
      contained(
        () => this.#closed(exchange),
        (error) => this.#broke(error, answer),
      ),
    )
    try {
      this.#enter(exchange, upgrade)
    } catch (error) {
      this.#refuse(error, exchange)
    }
  }

  /** The answer has left, or there is nobody to take it. */
  #closed(exchange: Exchange): void {
    this.#inFlight--
    if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve()
    if (exchange.arriving !== undefined) this.#bodies.forget(exchange.arriving)
    this.#signals.closed(exchange)
    exchange.passing?.abandon()
    if (exchange.caller === STRANGER) this.#unproven.add(exchange.socket)
    const { proxied, service } = exchange
    if (service !== undefined) this.#deps.metrics.proxied(proxied?.city ?? '', service, exchange.answer.statusCode)
    if (exchange.refused !== undefined) return
    const { method, answer, since } = exchange
    const worthALine = isMutation(method) && !answer.quiet && service === undefined
    this.#log.answered(exchange, answer.statusCode, since, worthALine)
  }

  #enter(exchange: Exchange, upgrade: Upgrading | undefined): void {
    const proxied = readProxiedTarget(exchange.target)
    exchange.proxied = proxied
    if (proxied === undefined) this.#route(exchange)
    else {
      this.#proxied.serve(exchange, proxied, upgrade)
      // Also of one that anybody may ask: it is served, and bounded as such.
      this.#unproven.forget(exchange.socket)
      exchange.answer.endsWithClient = upgrade === undefined
    }
  }

  #route(exchange: Exchange): void {
    const { method, path } = exchange
    if (!METHODS.has(method)) throw this.#unknownMethod(method, path)
    refuseUndecodable(path)
    if (method === 'OPTIONS') {
      // Every one is a preflight: 204, with CORS headers for allowed origins.
      for (const gate of PREFLIGHT_GATES) gate(exchange, this.#gateDeps)
      exchange.answer.begin(204).end()
      return
    }
    // HEAD is whatever GET is, without the body: Node leaves that out.
    const asked = method === 'HEAD' ? 'GET' : method
    const found = this.#router.find(asked, path)
    exchange.operation = found?.route.operation
    exchange.redirect = this.#router.redirect(asked, path)
    for (const gate of GATES) gate(exchange, this.#gateDeps)
    if (exchange.caller !== STRANGER) this.#unproven.forget(exchange.socket)
    if (exchange.redirect !== undefined) sendRedirect(exchange.answer, exchange.redirect)
    else if (found !== undefined) this.#serve(found, exchange)
  }

  #unknownMethod(method: string, path: string): Problem {
    const allow = this.#router.methodsOf(path).join(', ') || ALLOWED_METHODS
    return problem('method-not-allowed', `${method} is not a method of this API`, { allow })
  }

  #serve(found: Found<Served>, exchange: Exchange): void {
    const { route } = found
    const { operation } = route
    const { request, answer, header } = exchange
    this.#attempt(route, exchange, () => {
      // A body without bytes is none, whatever type it is said to have: many clients always send one.
      if (!hasBody(request)) return this.#call(found, exchange, undefined)
      // Only its end says whether one in chunks has any.
      const isInChunks = request.headers['transfer-encoding'] !== undefined && operation.bodyStream === undefined
      if (!isInChunks) checkMediaType(operation, header)
      const limit = operation.bodyLimit ?? DEFAULT_BODY_LIMIT
      refuseDeclared(request, limit, this.#deps.clock)
      answer.letBodyCome()
      if (operation.bodyStream !== undefined) return this.#callWithStream(found, exchange, limit)
      exchange.arriving = this.#bodies.read(request, limit, {
        take: (body) =>
          this.#attempt(route, exchange, () => {
            if (body !== undefined) checkMediaType(operation, header)
            return this.#call(found, exchange, body)
          }),
        refuse: (reason) =>
          this.#attempt(route, exchange, () => {
            throw reason
          }),
      })
      return LATER
    })
  }

  /** Whatever `work` throws, at once or later, is refused. Most reads answer at once and wait for no promise. */
  #attempt({ meter }: Served, exchange: Exchange, work: () => Promise<void> | undefined | typeof LATER): void {
    const done = () => meter(exchange.answer.statusCode, (this.#deps.clock.monotonic() - exchange.since) / 1000)
    const fail = (error: unknown) => {
      this.#refuse(error, exchange)
      done()
    }
    try {
      const running = work()
      if (running === undefined) done()
      else if (running !== LATER) running.then(done, fail)
    } catch (error) {
      fail(error)
    }
  }

  /** It is read by the handler, at its own pace. What that leaves must not stand in the way of the next request. */
  async #callWithStream(found: Found<Served>, exchange: Exchange, limit: number): Promise<void> {
    const bytes = new RequestBytes(exchange.request, limit, { bodies: this.#bodies, clock: this.#deps.clock })
    try {
      await this.#call(found, exchange, bytes)
    } finally {
      bytes.end()
    }
  }

  #call(
    { route: { operation, bound, traits }, params }: Found<Served>,
    exchange: Exchange,
    body: Buffer | RequestBytes | undefined,
  ): Promise<void> | undefined {
    // Before anything is said about the body: who has signed another one does not learn what is wrong with it.
    if (exchange.caller.kind === 'adapter') exchange.caller.prove?.(Buffer.isBuffer(body) ? body : undefined)
    const call = readInput(operation, exchange, params, body, this.#signals, traits)
    if (bound.kind === 'stream') return this.#open(bound, call, exchange)
    const { clock, conformance } = this.#deps
    const sent = (made: Reply) => {
      exchange.answer.quiet = traits.quiet === true
      return send(exchange, conformance?.reply(exchange, made) ?? made, clock)
    }
    if (exchange.mend !== undefined) return lending(exchange, exchange.mend, async () => sent(await bound.run(call)))
    const reply = bound.run(call)
    return reply instanceof Promise ? reply.then(sent) : sent(reply)
  }

  async #open(bound: Extract<Bound, { kind: 'stream' }>, call: Call, exchange: Exchange): Promise<void> {
    const { request, answer } = exchange
    const leave = this.#slots.take(request.socket.remoteAddress ?? '', shareOf(exchange.caller))
    answer.endsWithClient = true
    // Its client may have closed its side before it was known that this is a stream.
    if (answer.req.socket.readableEnded) answer.req.socket.destroy()
    let feed: Feed | undefined
    try {
      feed = await bound.run(call)
      for (const gate of RIGHTS_GATES) gate(exchange, this.#gateDeps)
    } catch (error) {
      leave()
      if (feed !== undefined) discard(feed)
      throw error
    }
    if (answer.destroyed) {
      leave()
      discard(feed)
      return
    }
    if (request.method === 'HEAD') {
      leave()
      discard(feed)
      answer.begin(200, { ...STREAM_HEADERS, ...feed.headers }).end()
      return
    }
    this.#deps.metrics.streamOpened()
    const { clock, conformance } = this.#deps
    const checked = conformance === undefined ? feed : watched(feed, (batch) => conformance.frames(exchange, batch))
    const stream = serveStream(request, answer, checked, clock, () => {
      leave()
      this.#deps.metrics.streamClosed()
      this.#streams.delete(stream)
    })
    this.#streams.set(stream, call.caller)
  }

  /** Never throws: it is what follows an exception. */
  #refuse(error: unknown, exchange: Exchange): void {
    contained(
      () => this.#answerRefusal(error, exchange),
      (failure) => this.#broke(failure, exchange.answer),
    )
  }

  #answerRefusal(error: unknown, exchange: Exchange): void {
    const { answer } = exchange
    // Nobody is there any more to be told.
    if (answer.destroyed) return
    const refused = toProblem(error)
    exchange.refused = refused
    this.#deps.conformance?.problem(exchange, refused)
    this.#note(exchange, refused)
    if (answer.headersSent) {
      // A stream that broke after its 200: cutting it is the only honest answer left.
      answer.destroy()
      return
    }
    if (refused.code === 'request-timeout') answer.collect('Connection', 'close')
    else if (exchange.caller === STRANGER && ENDING.has(refused.code)) this.#endWithAnswer(exchange)
    sendProblem(answer, refused, answer.requestId)
  }

  /** Who may not come in is told so and goes: the connection is for somebody else, and the rest of a body for nobody. */
  #endWithAnswer({ request, answer }: Exchange): void {
    answer.collect('Connection', 'close')
    if (request.complete || answer.outlastsBody || !hasBody(request)) return
    answer.outlastsBody = true
    discardBody(request, this.#deps.clock)
  }

  #note(subject: Subject, refused: Problem): void {
    this.#deps.metrics.refused(refused.code)
    this.#log.refused(subject, refused)
  }
}

const SERVER_OPTIONS = {
  ServerResponse: Answer,
  maxHeaderSize: MAX_HEADER_BYTES,
  headersTimeout: HEADERS_TIMEOUT_MS,
  // Bodies have a deadline of their own, which knows that a stream of imports may take longer.
  requestTimeout: 0,
  keepAliveTimeout: IDLE_TIMEOUT_MS,
  connectionsCheckingInterval: 1_000,
  // A missing Host is our own 421, with an id and Problem Details.
  requireHostHeader: false,
  noDelay: true,
  // What has no body has nothing to read either.
  optimizeEmptyRequests: true,
}

/** Every operation with what answers and what counts it. */
function servedBy({ operations, handlers, traits, metrics }: HttpDeps): readonly Served[] {
  const all = bindHandlers(operations, handlers)
  return operations.flatMap((operation) => {
    const bound = all.get(operation.id)
    return bound === undefined
      ? []
      : [
          {
            operation,
            bound,
            traits: traits?.[operation.id] ?? {},
            meter: metrics.requestMeter(operation.method, operation.id),
          },
        ]
  })
}

/** `feed`, each batch of which is shown to `see`. */
function watched(feed: Feed, see: (batch: Buffer) => void): Feed {
  return {
    ...feed,
    attach(sink) {
      const write = (batch: Buffer) => {
        see(batch)
        return sink.write(batch)
      }
      return feed.attach({ write, end: () => sink.end() })
    },
  }
}

/** Its subscription must not outlive a client that is gone, or is refused, before the first byte. */
function discard(feed: Feed): void {
  feed.attach({ write: () => true, end: () => {} }).detach()
}

/** A promise only where the body is made while it is sent, or is packed. */
function send(exchange: Exchange, { status, body, headers }: Reply, clock: Clock): Promise<void> | undefined {
  const { answer, header } = exchange
  const etag = headers?.ETag
  if (
    status === 200 &&
    etag !== undefined &&
    !isMutation(exchange.method) &&
    isUnchanged(etag, header('if-none-match'))
  )
    answer.begin(304, headers).end()
  else if (body instanceof StreamBody) return sendPieces(answer, status, body.type, body.pieces, headers, clock)
  else if (body instanceof RawBody) return sendRaw(exchange, status, body, headers)
  else sendJson(answer, status, body, headers)
  return undefined
}

function sendRaw({ answer, header }: Exchange, status: number, body: RawBody, headers?: Reply['headers']) {
  if (!mayPack(body)) return void sendText(answer, status, body.type, body.bytes, headers)
  answer.collect('Vary', 'Accept-Encoding')
  if (!takesGzip(header('accept-encoding'))) return void sendText(answer, status, body.type, body.bytes, headers)
  return packed(body).then((bytes) =>
    sendText(answer, status, body.type, bytes, { ...headers, 'Content-Encoding': 'gzip' }),
  )
}

/** A body is read where there may be one; that of a GET means nothing. */
function hasBody({ method = '', headers }: IncomingMessage): boolean {
  if (!isMutation(method)) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

function baseUrl({ address, port }: AddressInfo): string {
  if (address === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (address === '::') return `http://[::1]:${port}`
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Does some work with a city that does not run, which is there as long as that takes. */
async function lending(exchange: Exchange, lend: LendCity, work: () => Promise<void>): Promise<void> {
  const { city, giveBack } = await lend()
  exchange.city = city
  try {
    await work()
  } finally {
    giveBack()
  }
}
