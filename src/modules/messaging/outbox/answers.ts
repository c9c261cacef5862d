/** What the answer of a callback means for a delivery (decision 144, sheet 06 §2.2). */
import { cut } from '../../../contract/base/text.ts'
import {
  FAILURE_KINDS,
  type FailRequest,
  type FailureKind,
  MAX_RETRY_AFTER_MS,
  type PublishReceipt,
} from '../../../contract/messaging/deliveries.ts'
import type { Posted } from './post.ts'
import { type Failure, isFinal, type Outcome } from './rules.ts'

const FINAL_STATUSES = new Set([400, 413, 422])
const MAX_ERROR = 2_000
const MAX_MESSAGE_ID = 512

/** `now`: milliseconds. */
export function outcomeOf({ status, retryAfter, body }: Posted, now: number): Outcome {
  const pauseMs = pauseOf(retryAfter, now)
  if (status < 200 || status > 299) return refusedBy(status, body, pauseMs)
  if (body === undefined) return failure('transient', `HTTP ${status} with a reply of more than 1 MiB`)
  const receipt = receiptOf(body)
  if (receipt === undefined)
    return failure('transient', `HTTP ${status}, and the reply is no receipt: ${excerpt(body)}`)
  if (receipt.delivered !== false) return { delivered: true, receipt }
  const kind = receipt.failure_kind ?? 'transient'
  return {
    delivered: false,
    kind,
    error: receipt.error ?? `the adapter did not deliver it: ${kind}`,
    final: isFinal(kind),
    answered: true,
    pauseMs: Math.max(pauseMs, receipt.retry_after_ms ?? 0),
  }
}

/** What an adapter says of an attempt that it had claimed. */
export const reported = ({ failure_kind: kind, retry_after_ms = 0, error }: FailRequest): Failure => ({
  kind,
  error: error ?? `the adapter did not deliver it: ${kind}`,
  final: isFinal(kind),
  answered: true,
  pauseMs: retry_after_ms,
})

/** Nobody answered. */
export const silence = (error: unknown): Failure => ({
  kind: 'transient',
  error: cut(error instanceof Error ? error.message : String(error), MAX_ERROR),
  final: false,
  answered: false,
  pauseMs: 0,
})

function refusedBy(status: number, body: Buffer | undefined, pauseMs: number): Outcome {
  const said = body === undefined || body.length === 0 ? '' : `: ${excerpt(body)}`
  const redirected = status >= 300 && status < 400 ? ' (redirects are not followed)' : ''
  return {
    delivered: false,
    kind: kindOf(status),
    error: `HTTP ${status}${redirected}${said}`,
    final: FINAL_STATUSES.has(status),
    answered: true,
    pauseMs,
  }
}

function kindOf(status: number): FailureKind {
  if (status === 401 || status === 403) return 'auth'
  if (status === 404) return 'not_found'
  if (status === 429) return 'rate_limited'
  return FINAL_STATUSES.has(status) ? 'permanent' : 'transient'
}

const failure = (kind: FailureKind, error: string): Outcome => ({
  delivered: false,
  kind,
  error,
  final: false,
  answered: true,
  pauseMs: 0,
})

/** A receipt; of fields that are not as they should be nothing is kept. Undefined: it is none. */
function receiptOf(body: Buffer): PublishReceipt | undefined {
  const value = parsed(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const said: { readonly [field: string]: unknown } = { ...value }
  const { delivered, message_id, failure_kind, retry_after_ms, error } = said
  // Something else may answer at that address with JSON of its own.
  if (typeof delivered !== 'boolean' && typeof message_id !== 'string') return undefined
  const kind = FAILURE_KINDS.find((one) => one === failure_kind)
  return {
    delivered: delivered !== false,
    ...(typeof message_id === 'string' && message_id !== '' ? { message_id: cut(message_id, MAX_MESSAGE_ID) } : {}),
    ...(kind === undefined ? {} : { failure_kind: kind }),
    ...(typeof retry_after_ms === 'number' && retry_after_ms > 0 ? { retry_after_ms: bounded(retry_after_ms) } : {}),
    ...(typeof error === 'string' ? { error: cut(error, MAX_ERROR) } : {}),
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

/** Seconds, or a date. */
function pauseOf(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return 0
  if (/^\d{1,9}$/.test(retryAfter.trim())) return bounded(Number(retryAfter) * 1000)
  const date = Date.parse(retryAfter)
  return Number.isNaN(date) ? 0 : bounded(date - now)
}

const bounded = (ms: number): number => Math.round(Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS))

const excerpt = (body: Buffer): string => JSON.stringify(body.subarray(0, 200).toString('utf8'))
