/** Binds every operation of the contract to its handler; the server does not start where the two disagree. */
import { REQUEST_HEADERS, type RequestHeader } from '../contract/base/headers.ts'
import { isMutation, type Operation } from '../contract/base/operation.ts'
import type { Call, Reply, Traits } from '../kernel/call.ts'
import { actorOf, claimantOf, spokenBy } from '../kernel/caller.ts'
import type { Feed } from '../kernel/feed.ts'
import { fingerprintOf, type IdempotencyClaim } from '../kernel/idempotency.ts'
import { problem } from '../kernel/problem.ts'
import type { Exchange } from './exchange.ts'
import { parseJson, parseText } from './input/body.ts'
import { nothingSent, RequestBytes } from './input/bytes.ts'
import { RequestLines } from './input/lines.ts'
import { hasSecret, parseQuery, validate } from './input/validation.ts'

type RunReply = (call: Call) => Reply | Promise<Reply>
type RunStream = (call: Call) => Feed | Promise<Feed>

/** A bound operation; input has been read and checked before it is called. */
export type Bound =
  | { readonly kind: 'reply'; readonly run: RunReply }
  | { readonly kind: 'stream'; readonly run: RunStream }

/**
 * Pairs operations with handlers; throws where one of either has no partner. Here the literal types end: `Handlers`
 * has checked each pair at compile time, and `readInput` makes each call fit its operation.
 */
export function bindHandlers(
  operations: readonly Operation[],
  handlers: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, Bound> {
  const bound = new Map<string, Bound>()
  for (const operation of operations) {
    const handler = handlers[operation.twin?.of ?? operation.id]
    if (operation.frames === undefined && isReplyHandler(handler))
      bound.set(operation.id, { kind: 'reply', run: handler })
    else if (operation.frames !== undefined && isStreamHandler(handler))
      bound.set(operation.id, { kind: 'stream', run: handler })
    else throw new Error(`operation ${operation.id} has no handler`)
  }
  const surplus = Object.keys(handlers).filter((id) => !bound.has(id))
  if (surplus.length > 0) throw new Error(`handlers without an operation: ${surplus.join(', ')}`)
  return bound
}

const isReplyHandler = (value: unknown): value is RunReply => typeof value === 'function'
const isStreamHandler = (value: unknown): value is RunStream => typeof value === 'function'

/** Reads and checks everything that the operation declares; the body arrives as bytes, or as lines to be read. */
export function readInput(
  operation: Operation,
  exchange: Exchange,
  params: object,
  sent: Buffer | RequestBytes | undefined,
  signals: CallSignals,
  traits: Traits,
): Call {
  if (operation.params !== undefined) validate(operation.params, params, 'path')
  const { search } = exchange.target
  const query = search === '' ? {} : parseQuery(search, operation.query)
  // Without a query there is nothing to check where none is required: most schemas of queries are never compiled.
  if (operation.query !== undefined && (search !== '' || operation.query.required !== undefined))
    validate(operation.query, query, 'query')
  checkHeaders(operation, exchange)
  const body =
    sent instanceof RequestBytes
      ? streamed(operation, sent)
      : spokenBy(exchange.caller, operation, readBody(operation, sent, traits))
  if (traits.waits === true) exchange.answer.endsWithClient = true
  const bytes = traits.keepsBytes === true && Buffer.isBuffer(sent) ? sent : undefined
  return new HttpCall(operation, exchange, { params: withOneName(operation, params), query, body, bytes }, signals)
}

const streamed = ({ bodyStream }: Operation, bytes: RequestBytes): RequestBytes | RequestLines =>
  bodyStream === 'ndjson' ? new RequestLines(bytes) : bytes

/** Of a twin: its two names as the one that its handler knows. */
function withOneName({ twin }: Operation, params: object): object {
  if (twin === undefined) return params
  const { dir, base, ...others }: Record<string, string> = Object(params)
  return { ...others, [twin.name]: `${dir}/${base}` }
}

/** The signals of calls: each is aborted when its client goes before the answer, and all of them when the server ends. */
export class CallSignals {
  readonly #open = new Set<AbortController>()
  #ended = false

  of(exchange: Exchange): AbortSignal {
    const controller = new AbortController()
    if (this.#ended || exchange.answer.destroyed) {
      controller.abort()
      return controller.signal
    }
    this.#open.add(controller)
    exchange.controller = controller
    // What changes something goes on without its client; a read that waits does not.
    if (!isMutation(exchange.method)) exchange.answer.endsWithClient = true
    return controller.signal
  }

  /** The answer has left, or there is nobody to take it. */
  closed({ controller, answer }: Exchange): void {
    if (controller === undefined) return
    this.#open.delete(controller)
    // After an answer nobody looks any more, and an abort is dear.
    if (!answer.writableFinished) controller.abort()
  }

  end(): void {
    this.#ended = true
    for (const controller of this.#open) controller.abort()
  }
}

class HttpCall implements Call {
  readonly operation: Operation
  readonly params: Call['params']
  readonly query: Call['query']
  readonly body: Call['body']
  readonly bytes: Buffer | undefined
  readonly claim: IdempotencyClaim | undefined
  readonly #exchange: Exchange
  readonly #signals: CallSignals
  #signal: AbortSignal | undefined

  constructor(
    operation: Operation,
    exchange: Exchange,
    input: {
      readonly params: object
      readonly query: object
      readonly body: unknown
      readonly bytes: Buffer | undefined
    },
    signals: CallSignals,
  ) {
    this.operation = operation
    this.params = Object(input.params)
    this.query = Object(input.query)
    this.body = asBody(input.body)
    this.bytes = input.bytes
    this.claim = claimOf(operation, exchange, input.body ?? asked(input.query))
    this.#signals = signals
    this.#exchange = exchange
  }

  get city(): unknown {
    return this.#exchange.city?.(this.operation)
  }

  get caller(): Call['caller'] {
    return this.#exchange.caller
  }

  get actor(): string {
    return actorOf(this.#exchange.caller)
  }

  get requestId(): string {
    return this.#exchange.answer.requestId
  }

  // Handlers may take it apart from the call.
  get header(): Call['header'] {
    return this.#exchange.header
  }

  // Made when first asked for: most calls answer at once and never look at it.
  get signal(): AbortSignal {
    this.#signal ??= this.#signals.of(this.#exchange)
    return this.#signal
  }
}

const asBody = (body: unknown): object | string | undefined =>
  typeof body === 'string' || (typeof body === 'object' && body !== null) ? body : undefined

function checkHeaders(operation: Operation, { header }: Exchange): void {
  for (const name of operation.headers ?? []) {
    const value = header(name)
    if (value !== undefined) validate(headerSchema(name), value, `header.${name}`)
  }
}

const headerSchema = (name: RequestHeader) => REQUEST_HEADERS[name].schema

function readBody(operation: Operation, sent: Buffer | undefined, { keepsJson }: Traits): unknown {
  // Without a body there are no lines and no bytes.
  if (operation.bodyStream !== undefined) return nothingSent()
  if (operation.body === undefined) {
    if (sent !== undefined && isMutation(operation.method)) validateEmpty(sent)
    return undefined
  }
  if (sent === undefined) {
    if (operation.bodyOptional === true) return undefined
    throw problem('invalid-request', `a body of ${operation.bodyType ?? 'JSON'} is required`, {
      errors: [{ location: 'body', message: 'is required' }],
    })
  }
  const body =
    operation.bodyType === undefined
      ? parseJson(sent, { keepsJson, hides: hasSecret(operation.body) })
      : parseText(sent)
  validate(operation.body, body, 'body')
  return body
}

/** Clients that always send something send `{}`. */
function validateEmpty(sent: Buffer): void {
  const text = sent.toString('latin1').trim()
  if (text === '' || text === '{}' || text === 'null') return
  throw problem('validation-failed', 'body: this operation takes no body', {
    errors: [{ location: 'body', message: 'this operation takes no body' }],
  })
}

/** What a request without a body asks for. */
const asked = (query: object): object | undefined => (Object.keys(query).length === 0 ? undefined : query)

function claimOf(operation: Operation, exchange: Exchange, body: unknown): IdempotencyClaim | undefined {
  const { header, path, caller } = exchange
  const key = operation.headers?.includes('Idempotency-Key') ? header('idempotency-key') : undefined
  if (key === undefined) return undefined
  const scope = [`${operation.method} ${path}`, ...claimantOf(caller)].join(' ')
  return { scope, key, fingerprint: fingerprintOf(body ?? null) }
}
