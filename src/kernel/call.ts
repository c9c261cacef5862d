/** What a handler gets and gives, whatever carries it. The HTTP layer builds calls; modules answer them. */
import type { BodyOf, Operation, ParamsOf, QueryOf, ReplyOf } from '../contract/operation.ts'
import type { Feed } from './feed.ts'
import type { IdempotencyClaim } from './idempotency.ts'

export interface Call<O extends Operation = Operation> {
  readonly operation: O
  readonly params: ParamsOf<O>
  readonly query: QueryOf<O>
  readonly body: BodyOf<O>
  /** Value of a request header that the operation declares. */
  readonly header: (name: string) => string | undefined
  /** Present where the caller sent an Idempotency-Key: store the answer with it, in the same write. */
  readonly claim: IdempotencyClaim | undefined
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

type Answer<O extends Operation> = Reply<ReplyOf<O> | RawBody>

/** Answers an operation; refuses by throwing a Problem. */
export type Handler<O extends Operation = Operation> = (call: Call<O>) => Answer<O> | Promise<Answer<O>>

/** Opens a stream: everything that can fail has failed before the feed is returned (style R6). */
export type StreamHandler<O extends Operation = Operation> = (call: Call<O>) => Feed | Promise<Feed>

export const ok = <B>(body: B, headers?: Record<string, string>): Reply<B> =>
  headers === undefined ? { status: 200, body } : { status: 200, body, headers }
export const accepted = <B>(body: B): Reply<B> => ({ status: 202, body })
