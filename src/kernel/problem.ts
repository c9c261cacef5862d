/** How domain code refuses: a code of the contract's registry and one sentence (style R4). */

import { parseDurationMs } from '../contract/base/durations.ts'
import { type ErrorDetail, type ErrorModel, PROBLEMS, type ProblemCode, problemUrn } from '../contract/base/problems.ts'
import { isBlank } from '../contract/base/text.ts'
import { parseTime } from './clock.ts'

type Extensions = Pick<ErrorModel, 'errors' | 'issues' | 'oldest_seq' | 'head_seq' | 'request_id' | 'event_cursor'>
export interface ProblemOptions extends Partial<Extensions> {
  /** Logged, never sent. */
  readonly cause?: unknown
  readonly retryAfterSec?: number
  /** Methods that the path does take, with `method-not-allowed`. */
  readonly allow?: string
}

export class Problem extends Error {
  readonly code: ProblemCode
  readonly options: ProblemOptions

  constructor(code: ProblemCode, sentence: string, options: ProblemOptions) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Problem'
    this.code = code
    this.options = options
  }

  get status(): number {
    return PROBLEMS[this.code].status
  }

  /** `<prefix>: <sentence>`, the `detail` that clients see. */
  get detail(): string {
    return `${PROBLEMS[this.code].prefix}: ${this.message}`
  }
}

/** `throw problem('city-not-found', 'city not found or not running: alpha')` */
export function problem(code: ProblemCode, sentence: string, options: ProblemOptions = {}): Problem {
  return new Problem(code, sentence, options)
}

/** What everything below a city answers that does not run. */
export const cityNotRunning = (name: string): Problem =>
  problem('city-not-found', `city not found or not running: ${name}`)

/** A 422 about one field. */
export function invalidField(location: string, message: string, value?: unknown): Problem {
  const detail: ErrorDetail = value === undefined ? { location, message } : { location, message, value }
  return problem('validation-failed', `${location}: ${message}`, { errors: [detail] })
}

/** A title or text that shows nothing (blank, or zero-width characters only) is refused: nobody could see what it is about. */
export function needVisible(location: string, text: string | undefined | null): void {
  if (typeof text === 'string' && isBlank(text)) throw invalidField(location, 'has nothing that one can see', text)
}

/** Milliseconds of a duration that fits its schema, or a 422 about the field: a schema cannot say how long is too long. */
export function durationMs(location: string, text: string): number {
  try {
    return parseDurationMs(text)
  } catch (error) {
    throw invalidField(location, error instanceof Error ? error.message : 'not a duration', text)
  }
}

/** Milliseconds of a time that fits its schema, or a 422 about the field: the schema takes leap seconds too. */
export function timeMs(location: string, text: string): number {
  const ms = parseTime(text)
  if (ms === undefined) throw invalidField(location, 'is not a time of the years 0000 to 9999, UTC', text)
  return ms
}

/** Whatever was thrown, as a Problem; what is not one of ours is `internal`, with its cause kept for the log. */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown
  return problem('internal', 'unexpected failure; the server log has it under this request id', { cause: thrown })
}

/** The RFC 9457 body. */
export function problemBody(refused: Problem, requestId: string): ErrorModel {
  const { errors, issues, oldest_seq, head_seq, request_id, event_cursor } = refused.options
  return {
    type: problemUrn(refused.code),
    title: PROBLEMS[refused.code].title,
    status: refused.status,
    detail: refused.detail,
    code: refused.code,
    instance: `urn:svc:request:${requestId}`,
    ...(errors === undefined ? {} : { errors }),
    ...(issues === undefined ? {} : { issues }),
    ...(oldest_seq === undefined ? {} : { oldest_seq }),
    ...(head_seq === undefined ? {} : { head_seq }),
    ...(request_id === undefined ? {} : { request_id }),
    ...(event_cursor === undefined ? {} : { event_cursor }),
  }
}
