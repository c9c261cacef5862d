/**
 * The typed HTTP client: paths, methods, headers and types come from the contract's operations. Browser-safe: `fetch`
 * and web streams only. It knows the contract and nothing of the server.
 */

import type { BodyOf, Method, Operation, ParamsOf, QueryOf, ReplyOf } from '../contract/base/operation.ts'
import { LINES_TYPE } from '../contract/base/operation.ts'
import { cut } from '../contract/base/text.ts'
import type { OperationById, OperationId } from '../contract/index.ts'
import { backoffMs } from './backoff.ts'
import { type Clock, delay, TimedOut } from './clock.ts'
import { readLines } from './lines.ts'
import {
  ApiProblem,
  BadParameter,
  DecodeError,
  LostReply,
  type SentRequest,
  serverGone,
  Unreachable,
} from './problems.ts'
import { ROUTES } from './routes.ts'

/** What a call needs to know of an operation at run time; every operation of the contract is one. */
export interface Route<Id extends OperationId = OperationId> {
  readonly id: Id
  readonly method: Method
  readonly path: string
  readonly headers?: readonly string[]
  /** Of a body that is text as it is; JSON where absent. */
  readonly bodyType?: string
  /** Of the success answers; `application/json` where absent. */
  readonly mediaType?: string
}

/** An operation by its id, or the operation itself. */
export type OperationRef<Id extends OperationId> = Id | Route<Id>

type Loose<T> = { readonly [K in keyof T]: T[K] | undefined }
/** A part of the input, optional where all its members are; `undefined` members are left out of the request. */
type Part<Name extends string, T> = [keyof T] extends [never]
  ? { readonly [K in Name]?: undefined }
  : Partial<T> extends T
    ? { readonly [K in Name]?: Loose<T> }
    : { readonly [K in Name]: Loose<T> }
/** Text or bytes in pieces, sent as they come: a file, or lines with their line feeds. */
export type BodyPieces = AsyncIterable<string | Uint8Array<ArrayBuffer>>
type BodyPart<O extends Operation> = 'bodyStream' extends keyof O
  ? { readonly body: BodyPieces }
  : 'body' extends keyof O
    ? 'bodyOptional' extends keyof O
      ? { readonly body?: BodyOf<O> }
      : { readonly body: BodyOf<O> }
    : { readonly body?: undefined }

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Sent where the operation takes one; made up where absent, and the same over all tries. */
  readonly idempotencyKey?: string | undefined
  /** Further tries after a lost connection, 502, or 503 with Retry-After; 2 where absent. */
  readonly retries?: number
}
export type CallInput<Id extends OperationId> = Part<'params', ParamsOf<OperationById<Id>>> &
  Part<'query', QueryOf<OperationById<Id>>> &
  BodyPart<OperationById<Id>> &
  CallOptions
type CallArguments<Id extends OperationId> =
  Record<never, never> extends CallInput<Id> ? [input?: CallInput<Id>] : [input: CallInput<Id>]

export interface Reply<T> {
  readonly status: number
  readonly body: T
  /** The body as sent. */
  readonly text: string
  readonly headers: AnswerHeaders
  readonly requestId: string | undefined
}

/** An answer of lines, still coming. */
export interface LinesReply {
  readonly headers: AnswerHeaders
  readonly requestId: string | undefined
  /** Throws `Unreachable` where the connection breaks before the end. */
  readonly lines: AsyncIterable<string>
}

export interface AnyInput extends CallOptions {
  readonly params?: object | undefined
  readonly query?: object | undefined
  readonly body?: unknown
}

export interface RawRequest {
  readonly method: string
  /** Path with its query, beginning with a slash. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer> | BodyPieces | undefined
  readonly signal?: AbortSignal | undefined
}

/** What the client needs of a `Response`; a transport other than `fetch` has to give no more. */
export interface Answer {
  readonly ok: boolean
  readonly status: number
  readonly url: string
  readonly headers: AnswerHeaders
  readonly body: ReadableStream<Uint8Array> | null
  text(): Promise<string>
}
/** Names are asked for in lower case. */
export interface AnswerHeaders extends Iterable<[string, string]> {
  get(name: string): string | null
}

export interface TransportRequest {
  readonly method: string
  readonly headers: Record<string, string>
  /** Pieces go out one after the other, no faster than they are taken. */
  readonly body?: string | Uint8Array<ArrayBuffer> | BodyPieces
  readonly signal?: AbortSignal
}
/** Resolves with the headers; rejects where none came. Redirects are answers. */
export type Transport = (url: string, request: TransportRequest) => Promise<Answer>

export interface CallReport {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly ms: number
  readonly requestId: string | undefined
}

/** Where a server is, and what it lets us in for. */
export interface Place {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly token?: string | undefined
}

export interface ClientOptions extends Place {
  /** Asked after a connection was lost: a server that starts again may be elsewhere. Undefined where it is nowhere. */
  readonly locate?: () => Place | undefined
  /**
   * So long a call waits, in ms, for a server that is between two lives, where it may be sent again. Absent: not at all, a
   * person is told at once.
   */
  readonly outlastMs?: number
  readonly clock: Clock
  readonly random: () => number
  /** A new unguessable key, for Idempotency-Key. */
  readonly newKey: () => string
  /** `fetch` where absent. */
  readonly transport?: Transport
  /** Sees every answer; for debug output. */
  readonly onAnswer?: ((report: CallReport) => void) | undefined
}

const DEFAULT_RETRIES = 2
const NEVER = new AbortController().signal
/** A plain call waits no longer than this for a server that asks to come again. */
const LONGEST_PATIENCE_SEC = 5
/** Between two looks for a server that is waited for. */
const LONGEST_LOOK_APART_MS = 1_000

export class Client {
  readonly clock: Clock
  readonly random: () => number
  readonly #options: ClientOptions
  #place: Place
  #isLost = false

  constructor(options: ClientOptions) {
    this.#options = options
    this.#place = options
    this.clock = options.clock
    this.random = options.random
  }

  get baseUrl(): string {
    return this.#place.baseUrl
  }

  /** The connection is gone: before the next request the server is looked for again. */
  lost(): void {
    this.#isLost = true
  }

  #find(): Place {
    const { locate } = this.#options
    if (!this.#isLost || locate === undefined) return this.#place
    const found = locate()
    if (found === undefined) throw serverGone(this.baseUrl)
    this.#isLost = false
    this.#place = found
    return found
  }

  /** Calls an operation; throws `ApiProblem`, `Unreachable`, `LostReply` or `DecodeError`. */
  call<Id extends OperationId>(
    operation: OperationRef<Id>,
    ...input: CallArguments<NoInfer<Id>>
  ): Promise<Reply<ReplyOf<OperationById<Id>>>>
  async call(operation: OperationRef<OperationId>, input: AnyInput = {}): Promise<Reply<unknown>> {
    const route = routeOf(operation)
    if (route.mediaType === undefined) return this.request(route, input)
    const { response, text } = await this.#textOf(route, input)
    return replyOf(response, text, text)
  }

  /** As `call`, with what was put together at run time: the server checks it, and who asks knows what is answered. */
  async request<T>(operation: OperationRef<OperationId>, input: AnyInput): Promise<Reply<T>> {
    const { response, text } = await this.#textOf(routeOf(operation), input)
    return replyOf(response, text, parseReply<T>(response, text))
  }

  async #textOf(route: Route, input: AnyInput): Promise<{ readonly response: Answer; readonly text: string }> {
    const request = this.#prepare(route, input)
    const response = await this.#sendWithRetries(request, input, isRepeatable(route))
    const text = await this.#readText(response).catch((error: unknown) => {
      throw isChange(request) && !(error instanceof DecodeError) ? new LostReply(sentAs(request), error) : error
    })
    return { response, text }
  }

  /** Calls an operation that answers with lines; they are read as they come. Throws as `call`. */
  openLines<Id extends OperationId>(
    operation: OperationRef<Id>,
    ...input: CallArguments<NoInfer<Id>>
  ): Promise<LinesReply>
  async openLines(operation: OperationRef<OperationId>, input: AnyInput = {}): Promise<LinesReply> {
    const route = routeOf(operation)
    const response = await this.#sendWithRetries(this.#prepare(route, input), input, isRepeatable(route))
    const type = response.headers.get('content-type') ?? 'no media type'
    if (!type.startsWith(LINES_TYPE) || response.body === null) throw new DecodeError(`expected lines, got ${type}`)
    return {
      headers: response.headers,
      requestId: response.headers.get('x-svc-request-id') ?? undefined,
      lines: readLines(response.body, this.baseUrl, input.signal),
    }
  }

  /**
   * One request with credentials and X-SVC-Request, whatever it answers; throws only `Unreachable`, `LostReply` or the
   * signal's reason.
   */
  async send(request: RawRequest): Promise<Answer> {
    try {
      return await this.#sendOnce(request)
    } catch (error) {
      const inDoubt = isChange(request) && error instanceof Unreachable && !error.unsent
      throw inDoubt ? new LostReply(sentAs(request), error) : error
    }
  }

  async #sendOnce(request: RawRequest): Promise<Answer> {
    const place = this.#find()
    const response = await this.#exchange(request, place)
    if (response.status !== 401 || isPieces(request.body)) return response
    // A server that has started again since has a token of its own.
    const now = this.#options.locate?.()
    if (now === undefined || now.token === place.token) return response
    await response.text()
    this.#place = now
    return this.#exchange(request, now)
  }

  async #exchange(request: RawRequest, { baseUrl, token }: Place): Promise<Answer> {
    const { signal } = request
    const started = this.clock.now()
    const send = this.#options.transport ?? fetchTransport
    try {
      const response = await send(`${baseUrl}${request.path}`, {
        method: request.method,
        headers: headersOf(request, token),
        ...(request.body === undefined ? {} : { body: request.body }),
        ...(signal === undefined ? {} : { signal }),
      })
      this.#options.onAnswer?.({
        method: request.method,
        path: request.path,
        status: response.status,
        ms: this.clock.now() - started,
        requestId: response.headers.get('x-svc-request-id') ?? undefined,
      })
      return response
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      this.lost()
      throw new Unreachable(baseUrl, error)
    }
  }

  #prepare(route: Route, input: AnyInput): RawRequest {
    const { body, signal } = input
    const keyed = route.headers?.includes('Idempotency-Key') === true
    const key = keyed ? (input.idempotencyKey ?? this.#options.newKey()) : input.idempotencyKey
    return {
      method: route.method,
      path: pathOf(route.path, input.params ?? {}, input.query ?? {}),
      headers: {
        ...(body === undefined ? {} : { 'content-type': typeOf(route, body) }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...input.headers,
      },
      ...(body === undefined ? {} : { body: isPieces(body) ? body : textOf(route, body) }),
      ...(signal === undefined ? {} : { signal }),
    }
  }

  async #sendWithRetries(request: RawRequest, input: CallOptions, repeatable: boolean): Promise<Answer> {
    const retries = repeatable ? (input.retries ?? DEFAULT_RETRIES) : 0
    const patience = this.#patience(repeatable)
    let isInDoubt = false
    try {
      for (let attempt = 0; ; attempt += 1) {
        const outcome = await this.#attempt(request)
        if (!(outcome instanceof Error)) return outcome
        isInDoubt ||= outcome instanceof Unreachable && !outcome.unsent
        const outlasts = patience.waitsFor(outcome)
        if (!outlasts && (attempt >= retries || !isPassing(outcome))) throw outcome
        // A person is waiting: a quarter of the patience of a stream, but never less than the server asked for.
        const asked = outcome instanceof ApiProblem ? (outcome.retryAfterSec ?? 0) * 1000 : 0
        const own = backoffMs(attempt, this.random()) / 4
        const pause = Math.max(asked, outlasts ? Math.min(own, LONGEST_LOOK_APART_MS) : own)
        await delay(this.clock, pause, request.signal ?? NEVER)
      }
    } catch (error) {
      // What was sent without an answer is known only when the server says what became of it.
      const silent = error instanceof TimedOut || (isInDoubt && !tellsOutcome(error))
      throw silent && isChange(request) ? new LostReply(sentAs(request), error) : error
    }
  }

  /** Whether a call that may be sent again waits until its server is back, and has its city again. */
  #patience(repeatable: boolean): { waitsFor(failure: ApiProblem | Unreachable): boolean } {
    const { clock } = this
    const until = repeatable ? clock.now() + (this.#options.outlastMs ?? 0) : 0
    let wasGone = false
    return {
      waitsFor: (failure) => {
        wasGone ||= failure instanceof Unreachable
        return wasGone && clock.now() < until && !tellsOutcome(failure)
      },
    }
  }

  async #attempt(request: RawRequest): Promise<Answer | ApiProblem | Unreachable> {
    try {
      const response = await this.#sendOnce(request)
      if (response.ok) return response
      return new ApiProblem(response.status, response.headers, await this.#readText(response))
    } catch (error) {
      if (error instanceof Unreachable) return error
      throw error
    }
  }

  async #readText(response: Answer): Promise<string> {
    try {
      return await response.text()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      this.lost()
      throw new Unreachable(this.baseUrl, error)
    }
  }
}

function headersOf(request: RawRequest, token: string | undefined): Record<string, string> {
  return {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(isChange(request) ? { 'x-svc-request': '1' } : {}),
    ...request.headers,
  }
}

const isChange = ({ method }: RawRequest): boolean => method !== 'GET' && method !== 'HEAD'

const sentAs = ({ method, path, headers }: RawRequest): SentRequest => ({
  method,
  path,
  key: headers?.['idempotency-key'],
})

/** A server that starts again may not have the city yet, or no time; any other answer is about the request. */
const tellsOutcome = (error: unknown): boolean =>
  error instanceof ApiProblem && error.status < 500 && error.status !== 429 && error.code !== 'city-not-found'

export const routeOf = (operation: OperationRef<OperationId>): Route =>
  typeof operation === 'string' ? ROUTES[operation] : operation

const fetchTransport: Transport = (url, { body, ...request }) => {
  const options = { ...request, redirect: 'manual' } as const
  if (!isPieces(body)) return fetch(url, body === undefined ? options : { ...options, body })
  const encoder = new TextEncoder()
  const bytes = async function* () {
    for await (const piece of body) yield typeof piece === 'string' ? encoder.encode(piece) : piece
  }
  // A body that is still being made can only be sent in one direction at a time.
  const streamed: RequestInit & { readonly duplex: 'half' } = {
    ...options,
    body: ReadableStream.from(bytes()),
    duplex: 'half',
  }
  return fetch(url, streamed)
}

const typeOf = ({ bodyType }: Route, body: unknown): string =>
  bodyType ?? (isPieces(body) ? LINES_TYPE : 'application/json')
const textOf = ({ bodyType }: Route, body: unknown): string =>
  bodyType === undefined ? JSON.stringify(body) : String(body)

/** True for a body in pieces. */
export const isPieces = (body: unknown): body is BodyPieces =>
  typeof body === 'object' && body !== null && Symbol.asyncIterator in body

const isRepeatable = (route: Route): boolean =>
  route.method === 'GET' || (route.method === 'POST' && route.headers?.includes('Idempotency-Key') === true)

// Nobody listening will not change in a second; a connection that broke, or a server that asks to come again, may.
function isPassing(failure: ApiProblem | Unreachable): boolean {
  if (failure instanceof Unreachable) return !failure.refused
  if (failure.status === 502) return true
  return failure.status === 503 && failure.retryAfterSec !== undefined && failure.retryAfterSec <= LONGEST_PATIENCE_SEC
}

/** A path with its parameters filled in and its query; arrays repeat, `undefined` is left out. */
export function pathOf(template: string, params: object, query: object): string {
  const values = new Map<string, unknown>(Object.entries(params))
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values.get(name)
    if (value === undefined || value === '') throw new BadParameter(name, 'must not be empty')
    if (value === '.' || value === '..') throw new BadParameter(name, `cannot be "${value}": URLs drop such segments`)
    return encodeURIComponent(String(value))
  })
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) search.append(name, String(one))
  }
  return search.size === 0 ? path : `${path}?${search}`
}

const replyOf = <T>({ status, headers }: Answer, text: string, body: T): Reply<T> => ({
  status,
  body,
  text,
  headers,
  requestId: headers.get('x-svc-request-id') ?? undefined,
})

/** The one place where text becomes a typed body: the server's tests hold it to the contract's schemas. */
function parseReply<T>(response: Answer, text: string): T {
  if (!isJson(response.headers)) {
    throw new DecodeError(
      `expected JSON, got ${response.headers.get('content-type') ?? 'no media type'}: is ${response.url} a svcctl server?`,
    )
  }
  // Every answer of ours has its id.
  if (response.headers.get('x-svc-request-id') === null)
    throw new DecodeError(`got the JSON of another program: is ${response.url} a svcctl server?`)
  try {
    return JSON.parse(text)
  } catch {
    throw new DecodeError(`the server's answer is not JSON: ${cut(text, 80)}`)
  }
}

export const isJson = (headers: AnswerHeaders): boolean =>
  /^application\/([\w.+-]+\+)?json\b/.test(headers.get('content-type') ?? '')
