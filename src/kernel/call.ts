/** What a handler gets and gives, whatever carries it. The HTTP layer builds calls; modules answer them. */
import type { BodyOf, Operation, ParamsOf, QueryOf, ReplyOf } from '../contract/base/operation.ts'
import type { Caller } from './caller.ts'
import type { Feed } from './feed.ts'
import type { IdempotencyClaim } from './idempotency.ts'

/** One line of a streamed body, counted from 1; one that cannot be text says why. Blank lines are left out. */
export type BodyLine =
  | { readonly line: number; readonly text: string; readonly fault?: undefined }
  | { readonly line: number; readonly fault: string }

/** A streamed body: lines as they come in, pulled by the handler at its own pace. It can be walked once. */
export type BodyLines = AsyncIterable<BodyLine>

type InputOf<O extends Operation> = O extends { readonly bodyStream: 'ndjson' } ? BodyLines : BodyOf<O>

export interface Call<O extends Operation = Operation, C = unknown> {
  readonly operation: O
  /** What the city in the path was resolved to; undefined where the operation needs no running city. */
  readonly city: C
  readonly params: ParamsOf<O>
  readonly query: QueryOf<O>
  readonly body: InputOf<O>
  /** Value of a request header that the operation declares. */
  readonly header: (name: string) => string | undefined
  /** Present where the caller sent an Idempotency-Key: store the answer with it, in the same write. */
  readonly claim: IdempotencyClaim | undefined
  readonly caller: Caller
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
export type Handler<O extends Operation = Operation, C = unknown> = (call: Call<O, C>) => Answer<O> | Promise<Answer<O>>

/** Opens a stream: everything that can fail has failed before the feed is returned (style R6). */
export type StreamHandler<O extends Operation = Operation, C = unknown> = (call: Call<O, C>) => Feed | Promise<Feed>

export const ok = <B>(body: B, headers?: Record<string, string>): Reply<B> =>
  headers === undefined ? { status: 200, body } : { status: 200, body, headers }
export const accepted = <B>(body: B): Reply<B> => ({ status: 202, body })
