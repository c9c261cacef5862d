/**
 * The HTTP surface: a Fastify application made from the contract, its limits, and its graceful end.
 *
 * S1  Every response carries X-SVC-Request-Id, also those that no handler ever saw.
 * S2  Every refusal is Problem Details, also those of the parser and the router.
 * S3  Nothing of a stream is sent before everything that can fail has succeeded.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isMutation, LINES_TYPE, type Operation } from '../contract/base/operation.ts'
import { type Call, RawBody, type Reply, StreamBody } from '../kernel/call.ts'
import type { Clock } from '../kernel/clock.ts'
import { httpRequestId } from '../kernel/ids.ts'
import type { Logger } from '../kernel/log.ts'
import { Problem, problem, toProblem } from '../kernel/problem.ts'
import { Answer, asAnswer } from './answer.ts'
import { readBody } from './body.ts'
import { type CityGate, GATES, type GateDeps, type Security } from './gates.ts'
import { RequestLines } from './lines.ts'
import { type Bound, bindHandlers, CallSignals, headerOf, readInput } from './operations.ts'
import { Outbox } from './outbox.ts'
import { sendJson, sendPieces, sendProblem, sendProblemOnSocket, sendText } from './replies.ts'
import { createRoutes } from './routes.ts'
import { type OpenStream, serveStream } from './sse.ts'

// Not by `import`: that reads every export of the module, and one of them (WebSocket) loads all of undici.
const http = process.getBuiltinModule('node:http')

const DEFAULT_BODY_LIMIT = 1024 * 1024
const MAX_STREAMS = 10_000
const MAX_HEADER_BYTES = 64 * 1024
const HEADERS_TIMEOUT_MS = 10_000
const IDLE_TIMEOUT_MS = 75_000
const DRAIN_MS = 3_000
const METHODS = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT']
const FASTIFY_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

/** What the surface tells about itself; a meter is made once per operation, so that counting costs nothing. */
export interface HttpMetrics {
  requestMeter(method: string, operation: string): (status: number, seconds: number) => void
  streamOpened(): void
  streamClosed(): void
}

export interface HttpDeps {
  readonly operations: readonly Operation[]
  readonly handlers: Readonly<Record<string, unknown>>
  readonly security: Security
  readonly cities: CityGate
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: HttpMetrics
  /** Open streams in total; 10,000 where absent. */
  readonly maxStreams?: number
}

declare module 'fastify' {
  interface FastifyContextConfig {
    served?: Served
  }
}

/** What a route leads to. */
interface Served {
  readonly operation: Operation
  readonly bound: Bound
  readonly meter: (status: number, seconds: number) => void
}

export class HttpServer {
  readonly #deps: HttpDeps
  readonly #app: FastifyInstance
  readonly #server: Server
  readonly #gateDeps: GateDeps
  readonly #bound: ReadonlyMap<string, Bound>
  readonly #streams = new Set<OpenStream>()
  readonly #idle: (() => void)[] = []
  #inFlight = 0
  #opening = 0
  readonly #signals = new CallSignals()
  readonly #outbox: Outbox
  #stopping = false

  constructor(deps: HttpDeps) {
    this.#deps = deps
    this.#outbox = new Outbox(deps.clock)
    this.#bound = bindHandlers(deps.operations, deps.handlers)
    this.#gateDeps = {
      security: deps.security,
      cities: deps.cities,
      routes: createRoutes(deps.operations),
      isShuttingDown: () => this.#stopping,
    }
    const server = makeServer()
    this.#server = server
    this.#app = Fastify({
      logger: false,
      exposeHeadRoutes: false,
      genReqId: () => httpRequestId(),
      requestIdHeader: false,
      // As long as a request line can be: a long name is not found by its operation, not by the router.
      routerOptions: { maxParamLength: MAX_HEADER_BYTES },
      forceCloseConnections: true,
      // The framework would answer in words of its own, before any listener of ours.
      clientErrorHandler: (error, socket) => this.#refuseUnparsed(error, socket),
      frameworkErrors: (error, request, reply) => this.#refuseUnrouted(error, request, reply),
      serverFactory: (handler) => {
        server.on('request', (request: IncomingMessage, response: ServerResponse) =>
          this.#accept(request, asAnswer(response), handler),
        )
        return server
      },
    })
    this.#register()
  }

  get streams(): number {
    return this.#streams.size + this.#opening
  }

  /** Binds the port; resolves with the base address. */
  async listen(host: string, port: number): Promise<string> {
    await this.#app.listen({ host, port })
    const address = this.#server.address()
    return baseUrl(isAddressInfo(address) ? address : { address: host, port, family: 'IPv4' })
  }

  /** Ends streams, lets requests finish for a bounded time, closes everything. */
  async close(): Promise<void> {
    this.#stopping = true
    // Blocking reads answer now instead of being cut.
    this.#signals.end()
    this.#server.close()
    this.#server.closeIdleConnections()
    for (const stream of [...this.#streams]) stream.end()
    await this.#drained()
    this.#server.closeAllConnections()
    await this.#app.close()
  }

  #drained(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#deps.clock.after(DRAIN_MS, resolve)
    })
  }

  /** Methods that the framework does not know are answered here; everything else goes through it. */
  #accept(
    request: IncomingMessage,
    response: Answer,
    handler: (request: IncomingMessage, response: ServerResponse) => void,
  ): void {
    this.#inFlight++
    this.#outbox.expect()
    response.outbox = this.#outbox
    const started = this.#deps.clock.monotonic()
    response.on('close', () => {
      this.#inFlight--
      if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve()
      this.#logAccess(request, response, this.#deps.clock.monotonic() - started)
    })
    if (FASTIFY_METHODS.has(request.method ?? '')) {
      handler(request, response)
      return
    }
    const id = httpRequestId()
    response.identify(id)
    const taken = this.#gateDeps.routes.methodsOf(pathOf(request.url ?? ''))
    const allow = (taken.length === 0 ? METHODS : taken).join(', ')
    sendProblem(response, problem('method-not-allowed', `${request.method} is not a method of this API`, { allow }), id)
  }

  #register(): void {
    const app = this.#app
    // Its `done` is never called: the framework finds the operation, the rest is ours.
    app.addHook('onRequest', (request, reply, _done) => this.#enter(request, reply))
    app.setErrorHandler((error, request, reply) => this.#refuse(error, request, reply))
    app.setNotFoundHandler((request, reply) =>
      this.#refuse(problem('route-not-found', `no such path: ${request.url}`), request, reply),
    )
    for (const operation of this.#deps.operations) this.#route(operation)
    this.#server.on('connect', (_request, socket: Duplex) => {
      sendProblemOnSocket(socket, problem('method-not-allowed', 'CONNECT is not a method of this API'), httpRequestId())
    })
  }

  #enter(request: FastifyRequest, reply: FastifyReply): void {
    const answer = asAnswer(reply.raw)
    answer.identify(request.id)
    const path = pathOf(request.url)
    // The router takes an empty segment for a parameter; no path of ours has one.
    const served = path.includes('//') || path.endsWith('/') ? undefined : request.routeOptions.config.served
    const operation = served?.operation
    const input = {
      method: request.method,
      path,
      operation,
      header: (name: string) => headerOf(request, name),
      setHeader: (name: string, value: string) => answer.collect(name, value),
    }
    try {
      if (request.method === 'OPTIONS') {
        this.#answerOptions(input, reply)
        return
      }
      for (const gate of GATES) gate(input, this.#gateDeps)
      checkMediaType(request, operation)
      if (served !== undefined) void this.#serve(served, request, reply)
    } catch (error) {
      this.#refuse(error, request, reply)
    }
  }

  /** Every OPTIONS is a preflight: 204, after the host check, with CORS headers for allowed origins. */
  #answerOptions(input: Parameters<(typeof GATES)[number]>[0], reply: FastifyReply): void {
    for (const gate of GATES.slice(0, 2)) gate(input, this.#gateDeps)
    reply.hijack()
    asAnswer(reply.raw).begin(204).end()
  }

  #route(operation: Operation): void {
    const bound = this.#bound.get(operation.id)
    if (bound === undefined) throw new Error(`operation ${operation.id} is not bound`)
    const meter = this.#deps.metrics.requestMeter(operation.method, operation.id)
    this.#app.route({
      method: operation.method,
      url: operation.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { served: { operation, bound, meter } },
      handler: () => {
        throw new Error('the hook answers')
      },
    })
  }

  async #serve({ operation, bound, meter }: Served, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.hijack()
    const { clock } = this.#deps
    const started = clock.monotonic()
    let body: Buffer | RequestLines | undefined
    try {
      if (hasBody(request.raw)) {
        const limit = operation.bodyLimit ?? DEFAULT_BODY_LIMIT
        letBodyCome(request.raw, asAnswer(reply.raw), limit)
        // Lines are read by the handler, at its own pace.
        if (operation.bodyStream === undefined) body = await readBody(request.raw, limit, clock)
        else body = openLines(request.raw, limit, clock)
      }
      // Most reads answer at once: they wait for no promise.
      const running = this.#run(operation, bound, request, reply, body)
      if (running !== undefined) await running
    } catch (error) {
      this.#refuse(error, request, reply)
    }
    // What a handler left unread of its lines must not stand in the way of the next request.
    if (body instanceof RequestLines) body.end()
    meter(reply.raw.statusCode, (clock.monotonic() - started) / 1000)
  }

  #run(
    operation: Operation,
    bound: Bound,
    request: FastifyRequest,
    reply: FastifyReply,
    body: Buffer | RequestLines | undefined,
  ): Promise<void> | undefined {
    const call = readInput(operation, request, reply, body, this.#signals)
    if (bound.kind === 'stream') return this.#open(bound, call, request, reply)
    const response = asAnswer(reply.raw)
    const { clock } = this.#deps
    const answer = bound.run(call)
    const sent = (made: Reply) => {
      response.quiet = operation.quiet === true
      return send(response, made, clock)
    }
    return answer instanceof Promise ? answer.then(sent) : sent(answer)
  }

  async #open(
    bound: Extract<Bound, { kind: 'stream' }>,
    call: Call,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const { maxStreams = MAX_STREAMS } = this.#deps
    if (this.streams >= maxStreams)
      throw problem('too-many-streams', `${maxStreams} streams are open`, { retryAfterSec: 5 })
    this.#opening++
    try {
      const feed = await bound.run(call)
      if (reply.raw.destroyed) {
        // Gone before the first byte: the subscription must not outlive its client.
        feed.attach({ write: () => true, end: () => {} }).detach()
        return
      }
      this.#deps.metrics.streamOpened()
      const stream = serveStream(request.raw, asAnswer(reply.raw), feed, this.#deps.clock, () => {
        this.#deps.metrics.streamClosed()
        this.#streams.delete(stream)
      })
      this.#streams.add(stream)
    } finally {
      this.#opening--
    }
  }

  #refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    // Nobody is there any more to be told.
    if (reply.raw.destroyed) return
    const refused = fromFramework(error) ?? toProblem(error)
    if (refused.status >= 500) {
      const level = refused.code === 'internal' ? 'error' : 'warn'
      this.#deps.log[level](
        { request_id: request.id, code: refused.code, detail: refused.detail, err: refused.cause },
        'request failed',
      )
    }
    if (!reply.sent) reply.hijack()
    if (reply.raw.headersSent) {
      // A stream that broke after its 200: cutting it is the only honest answer left.
      reply.raw.destroy()
      return
    }
    const answer = asAnswer(reply.raw)
    if (refused.code === 'request-timeout') answer.collect('Connection', 'close')
    sendProblem(answer, refused, request.id)
  }

  #refuseUnrouted(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    asAnswer(reply.raw).identify(request.id)
    this.#refuse(error, request, reply)
  }

  #refuseUnparsed(error: Error & { code?: string }, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const refused =
      PARSER_PROBLEMS.get(error.code ?? '') ?? problem('invalid-request', 'the request is not well-formed HTTP')
    sendProblemOnSocket(socket, refused, httpRequestId())
  }

  #logAccess(request: IncomingMessage, response: Answer, ms: number): void {
    const worthALine = isMutation(request.method ?? '') && !response.quiet
    const level = worthALine || response.statusCode >= 500 ? 'info' : 'debug'
    if (!this.#deps.log.isLevelEnabled(level)) return
    this.#deps.log[level](
      {
        request_id: response.requestId,
        method: request.method,
        path: (request.url ?? '').split('?')[0]?.slice(0, 256),
        status: response.statusCode,
        ms: Math.round(ms * 10) / 10,
      },
      'http request',
    )
  }
}

const PARSER_PROBLEMS: ReadonlyMap<string, Problem> = new Map([
  [
    'HPE_HEADER_OVERFLOW',
    problem('headers-too-large', `the request line and headers are larger than ${MAX_HEADER_BYTES} bytes`),
  ],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', problem('payload-too-large', 'the chunk extensions are too large')],
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    problem('request-timeout', `the headers did not arrive within ${HEADERS_TIMEOUT_MS / 1000} s`),
  ],
])

function pathOf(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function makeServer(): Server {
  const server = http.createServer({
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
  })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('checkContinue', (request, response) => {
    asAnswer(response).holdsBodyBack = true
    server.emit('request', request, response)
  })
  return server
}

/** A client that asks before it sends its body is told to once all has been checked that can be without it. */
function letBodyCome({ headers }: IncomingMessage, answer: Answer, limit: number): void {
  if (!answer.holdsBodyBack || Number(headers['content-length'] ?? 0) > limit) return
  answer.holdsBodyBack = false
  answer.writeContinue()
}

/** A promise only where the body is made while it is sent. */
function send(response: Answer, { status, body, headers }: Reply, clock: Clock): Promise<void> | undefined {
  if (body instanceof StreamBody) return sendPieces(response, status, body.type, body.pieces, headers, clock)
  if (body instanceof RawBody) sendText(response, status, body.type, body.bytes, headers)
  else sendJson(response, status, body, headers)
  return undefined
}

/** A body is read where there may be one; that of a GET means nothing. */
function hasBody({ method = '', headers }: IncomingMessage): boolean {
  if (!isMutation(method)) return false
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function openLines(request: IncomingMessage, limit: number, clock: Clock): RequestLines {
  const lines = new RequestLines(request, limit, clock)
  const refused = lines.refusal
  if (refused === undefined) return lines
  lines.end()
  throw refused
}

const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+[ \t]*(?:;|$)/

function checkMediaType(request: FastifyRequest, operation: Operation | undefined): void {
  const given = headerOf(request, 'content-type')
  if (given === undefined || !isMutation(request.method)) return
  if (operation?.body === undefined) {
    // Where no body is taken, only what is no type at all is refused.
    if (MEDIA_TYPE.test(given)) return
    throw problem('unsupported-media-type', 'the Content-Type header is not a media type')
  }
  const [type = '', ...parameters] = given
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const wanted = operation.bodyStream === undefined ? 'application/json' : LINES_TYPE
  const patch = operation.method === 'PATCH' && type === 'application/merge-patch+json'
  const charset =
    parameters
      .find((part) => part.startsWith('charset='))
      ?.slice(8)
      .replaceAll('"', '') ?? 'utf-8'
  const encoding = headerOf(request, 'content-encoding') ?? 'identity'
  if ((type === wanted || patch) && charset === 'utf-8' && encoding === 'identity') return
  throw problem('unsupported-media-type', `send ${wanted} in UTF-8, not ${given.slice(0, 80)}`, {
    errors: [{ location: 'header.Content-Type', message: `must be ${wanted}`, value: given.slice(0, 200) }],
  })
}

/** What the framework refuses by itself, in our words; undefined for everything else. */
function fromFramework(error: unknown): Problem | undefined {
  if (error instanceof Problem || !isFastifyError(error)) return undefined
  if (error.code === 'FST_ERR_BAD_URL')
    return problem('invalid-request', 'the path cannot be decoded', {
      errors: [{ location: 'path', message: 'cannot be decoded' }],
    })
  if (error.code === 'FST_ERR_MAX_PARAM_LENGTH' || error.code === 'FST_ERR_ROUTE_MAX_PARAM_LENGTH')
    return problem('route-not-found', 'no such path')
  return error.statusCode === 400 ? problem('invalid-request', error.message) : undefined
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('FST_')
}

const isAddressInfo = (address: string | AddressInfo | null): address is AddressInfo =>
  typeof address === 'object' && address !== null

function baseUrl({ address, port }: AddressInfo): string {
  if (address === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (address === '::') return `http://[::1]:${port}`
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
