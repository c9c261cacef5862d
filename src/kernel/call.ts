/** What a handler gets and gives, whatever carries it. The HTTP layer builds calls; modules answer them. */
import type { Answered, BodyOf, Operation, ParamsOf, QueryOf, ReplyOf } from '../contract/base/operation.ts'
import type { Caller } from './caller.ts'
import type { Feed } from './feed.ts'
import type { IdempotencyClaim } from './idempotency.ts'

/** One line of a streamed body, counted from 1; one that cannot be text says why. Blank lines are left out. */
export type BodyLine =
  | { readonly line: number; readonly text: string; readonly fault?: undefined }
  | { readonly line: number; readonly fault: string }

/** A streamed body: lines as they come in, pulled by the handler at its own pace. It can be walked once. */
export type BodyLines = AsyncIterable<BodyLine>

/** A streamed body of bytes; as with lines, its client is not read any faster than the handler pulls. */
export type BodyBytes = AsyncIterable<Buffer>

type InputOf<O extends Operation> = O extends { readonly bodyStream: 'ndjson' }
  ? BodyLines
  : O extends { readonly bodyStream: 'bytes' }
    ? BodyBytes
    : BodyOf<O>

export interface Call<O extends Operation = Operation, City = unknown> {
  readonly operation: O
  /**
   * The running city of the path, as the family of the operation sees it. Each look finds it anew: who has waited gets the
   * city as it is now, or its 404.
   */
  readonly city: City
  readonly params: ParamsOf<O>
  readonly query: QueryOf<O>
  readonly body: InputOf<O>
  /** The body as it came, where the operation keeps it (`keepsBytes`): what signatures are of. */
  readonly bytes?: Buffer | undefined
  /** Value of a request header that the operation declares. */
  readonly header: (name: string) => string | undefined
  /** Present where the caller sent an Idempotency-Key: store the answer with it, in the same write. */
  readonly claim: IdempotencyClaim | undefined
  readonly caller: Caller
  /** Under which name the caller acts: `api`, or that of an agent. */
  readonly actor: string
  readonly requestId: string
  /** Aborted when the client is gone or the server stops. */
  readonly signal: AbortSignal
}

export interface Reply<B = unknown> {
  readonly status: number
  readonly body: B
  readonly headers?: Readonly<Record<string, string>>
}

/** A body that is ready as bytes: documents, metrics, pages. */
export class RawBody {
  readonly bytes: string | Buffer
  readonly type: string

  constructor(bytes: string | Buffer, type: string) {
    this.bytes = bytes
    this.type = type
  }
}

/**
 * A body that is made while it is sent, in pieces of text. The next piece is asked for when the client has taken the
 * ones before; what the first one throws is still a Problem, later it can only cut the connection.
 */
export class StreamBody {
  readonly pieces: AsyncIterable<string>
  readonly type: string

  constructor(pieces: AsyncIterable<string>, type: string) {
    this.pieces = pieces
    this.type = type
  }
}

type Answer<O extends Operation> = Reply<ReplyOf<O> | RawBody | StreamBody>

/** Answers an operation; refuses by throwing a Problem. */
export type Handler<O extends Operation = Operation, City = unknown> = (
  call: Call<O, City>,
) => Answer<O> | Promise<Answer<O>>

/** Opens a stream: everything that can fail has failed before the feed is returned (style R6). */
export type StreamHandler<O extends Operation = Operation, City = unknown> = (
  call: Call<O, City>,
) => Feed | Promise<Feed>

type HasCity = { readonly params: { readonly properties: { readonly cityName: unknown } } }
/** Operations on a city that may be stopped have no running one to see. */
type CityIn<O extends Operation, City> = O extends { readonly city: 'registered' }
  ? undefined
  : O extends HasCity
    ? City
    : undefined

type HandlerOf<O extends Operation, City> = O extends { readonly frames: readonly object[] }
  ? StreamHandler<O, City>
  : Handler<O, City>

/** A handler for each of the operations, by its id; `City` is how the family sees a running city. */
export type Handlers<Operations extends readonly Operation[], City = undefined> = {
  readonly [O in Answered<Operations[number]> as O['id']]: HandlerOf<O, CityIn<O, City>>
}

/** How an operation is served, where that is no promise to clients. */
export interface Traits {
  /** A success has a record of its own that says as much as a line of the access log would; logged at debug only. */
  readonly quiet?: true
  /** The body is kept as JSON, not as text in columns: halves of surrogate pairs come back as they were sent. */
  readonly keepsJson?: true
  /** It only waits for somebody else, and is for nobody once its client has closed the connection. */
  readonly waits?: true
  /** Handlers see the bytes of the body too. */
  readonly keepsBytes?: true
}

/** The handlers of a family: `defineHandlers<typeof beadOperations, WorkCity>({ 'list-beads': ({ query, city }) => … })`. */
export const defineHandlers = <Operations extends readonly Operation[], City = undefined>(
  handlers: Handlers<Operations, City>,
): Handlers<Operations, City> => handlers

export const ok = <B>(body: B, headers?: Record<string, string>): Reply<B> =>
  headers === undefined ? { status: 200, body } : { status: 200, body, headers }
export const accepted = <B>(body: B): Reply<B> => ({ status: 202, body })
