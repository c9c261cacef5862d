/**
 * What an operation promises. One value per operation is the only declaration: routes, validation, `openapi.json`, the
 * client and the command line's help derive from it (style R1).
 */

import type { Family } from './family.ts'
import type { RequestHeader, ResponseHeader } from './headers.ts'
import type { ProblemCode } from './problems.ts'
import type { ObjectSchema, Schema, Static } from './schema.ts'

/** Lines of JSON, as bodies and as answers. */
export const LINES_TYPE = 'application/x-ndjson'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One kind of frame of a server-sent event stream. */
export interface Frame {
  readonly event: string
  readonly data: Schema
  /** What the `id:` line carries; absent where the frame has none. */
  readonly id?: string
  readonly description: string
}

export interface Operation {
  /** kebab-case verb-noun. */
  readonly id: string
  readonly method: Method
  readonly path: string
  readonly family: Family
  readonly summary: string
  readonly description?: string
  readonly params?: ObjectSchema
  readonly query?: ObjectSchema
  readonly body?: Schema
  /** A body may be left out altogether. */
  readonly bodyOptional?: boolean
  /**
   * The body is read while it comes in: lines of JSON (`application/x-ndjson`; `body` is the schema of one), or bytes of
   * whatever type, `bodyType` where nobody says which.
   */
  readonly bodyStream?: 'ndjson' | 'bytes'
  /** The body is text of this media type, as it is, instead of JSON; `body` is the schema of a text. */
  readonly bodyType?: string
  /** Bytes; 1 MiB where absent. */
  readonly bodyLimit?: number
  /** Request headers beyond X-SVC-Request, which every mutation has. */
  readonly headers?: readonly RequestHeader[]
  /** Success answers by status; every body has this schema and media type. */
  readonly replies: Readonly<Record<number, Schema>>
  /** Media type of the success answers; `application/json` where absent. */
  readonly mediaType?: string
  /** Response headers beyond X-SVC-Request-Id, which every response has. */
  readonly replyHeaders?: readonly ResponseHeader[]
  /** Present on streams: the success answer is `text/event-stream` with these frames. */
  readonly frames?: readonly Frame[]
  /** The same as another operation, whose path has one parameter for the `{dir}` and `{base}` of this one. */
  readonly twin?: { readonly of: string; readonly name: string }
  /** What it can refuse, beyond `commonProblems`. */
  readonly problems: readonly ProblemCode[]
  /** Event types that a success leads to, without the ends of what it accepts. */
  readonly emits?: readonly string[]
  /** What its 202 accepts: ends in `request.result.<this>` or `request.failed`. */
  readonly accepts?: string
  /**
   * How a `{cityName}` in the path is resolved before anything else is looked at: `running` (spec §3 rule 1, the
   * default), `mendable` (one that runs, or that is stopped or could not start: the operation can mend its files), or
   * `registered` (by the handler itself: unregister, start, stop, restart).
   */
  readonly city?: 'running' | 'mendable' | 'registered'
  /** Answers without a token even where one is needed. */
  readonly open?: boolean
}

/** Operations that have handlers: a twin is answered by the one that it is a twin of. */
export type Answered<O extends Operation> = O extends { readonly twin: object } ? never : O

type StaticOr<S, Otherwise> = S extends Schema ? Static<S> : Otherwise
export type ParamsOf<O extends Operation> = StaticOr<O['params'], Record<never, never>>
export type QueryOf<O extends Operation> = StaticOr<O['query'], Record<never, never>>
export type BodyOf<O extends Operation> = O extends { readonly bodyOptional: true }
  ? StaticOr<O['body'], undefined> | undefined
  : StaticOr<O['body'], undefined>
/** Union of the success bodies. */
export type ReplyOf<O extends Operation> = {
  [S in keyof O['replies']]: StaticOr<O['replies'][S], never>
}[keyof O['replies']]

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
export const isMutation = (method: string): boolean => !SAFE_METHODS.has(method)

/** True where a city in the path must be running before the request is looked at any further. */
export function needsRunningCity(operation: Operation): boolean {
  return operation.path.startsWith('/v0/city/{cityName}') && operation.city !== 'registered'
}

/** The problems that follow from an operation's shape, so that nobody lists them by hand. */
export function commonProblems(operation: Operation): readonly ProblemCode[] {
  // An unknown query parameter is a validation failure on every operation (decision 2).
  const codes: ProblemCode[] = [
    'host-not-allowed',
    // A user of the machine who is not let in, a page of another origin, a token that may not.
    'forbidden',
    'headers-too-large',
    'request-timeout',
    'invalid-request',
    'validation-failed',
    'internal',
    // While the supervisor shuts down, and where a store takes no writes.
    'unavailable',
  ]
  if (operation.open !== true) codes.push('unauthorized')
  if (isMutation(operation.method))
    codes.push('csrf-required', 'read-only', 'payload-too-large', 'unsupported-media-type')
  if (operation.headers?.includes('Idempotency-Key')) {
    codes.push('idempotency-in-flight')
    // Without a body there is nothing that could differ.
    if (operation.body !== undefined || operation.query !== undefined) codes.push('idempotency-mismatch')
  }
  if (operation.headers?.includes('If-Match')) codes.push('precondition-failed')
  if (needsRunningCity(operation)) codes.push('city-not-found')
  if (operation.frames !== undefined) codes.push('too-many-streams')
  return [...new Set(codes)]
}

/** Every event type that a success leads to. */
export function emitsOf({ emits = [], accepts }: Operation): readonly string[] {
  return accepts === undefined ? emits : [...emits, `request.result.${accepts}`, 'request.failed']
}

/** Every problem that an operation can answer, sorted. */
export function problemsOf(operation: Operation): readonly ProblemCode[] {
  return [...new Set([...commonProblems(operation), ...operation.problems])].sort()
}
