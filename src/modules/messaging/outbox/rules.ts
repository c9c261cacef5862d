/** What becomes of a delivery after an attempt (decision 144): decided here, without a store or a clock. */
import type { FailureKind, PublishReceipt } from '../../../contract/messaging/deliveries.ts'

const FIRST_RETRIES_MS = [1_000, 5_000, 30_000, 120_000]
const LATER_RETRIES_MS = 600_000
/** A fifth more or less, so that those that failed together are not tried together. */
const JITTER = 0.2
const MAX_ANSWERED = 10
export const GIVEN_UP_AFTER_MS = 24 * 3_600_000

export type Outcome =
  | { readonly delivered: true; readonly receipt: PublishReceipt }
  | ({ readonly delivered: false } & Failure)

export interface Failure {
  readonly kind: FailureKind
  readonly error: string
  /** No further attempt. */
  readonly final: boolean
  /** Somebody has refused it; silence is no answer. */
  readonly answered: boolean
  /** Nothing for this adapter before that. */
  readonly pauseMs: number
}

/** Where a delivery was when its attempt failed. */
export interface Tried {
  /** Attempts that failed before, since it was published or retried. */
  readonly tries: number
  readonly answered: number
  /** When it was published, or retried. */
  readonly since: number
}

export type Next =
  | { readonly state: 'dead'; readonly answered: number }
  | { readonly state: 'ready'; readonly at: number; readonly tries: number; readonly answered: number }

/** `random`: from 0 to 1. */
export function afterFailure(tried: Tried, failure: Failure, now: number, random: number): Next {
  const answered = tried.answered + (failure.answered ? 1 : 0)
  if (failure.final || answered >= MAX_ANSWERED || now >= tried.since + GIVEN_UP_AFTER_MS)
    return { state: 'dead', answered }
  const wait = Math.max(retryMs(tried.tries, random), failure.pauseMs)
  return { state: 'ready', at: now + wait, tries: tried.tries + 1, answered }
}

function retryMs(tries: number, random: number): number {
  const ms = FIRST_RETRIES_MS[tries] ?? LATER_RETRIES_MS
  return Math.round(ms * (1 - JITTER + 2 * JITTER * random))
}

const FINAL_KINDS: ReadonlySet<FailureKind> = new Set(['permanent', 'not_found', 'unsupported'])
/** Whether an adapter that names this means that no attempt can succeed. */
export const isFinal = (kind: FailureKind): boolean => FINAL_KINDS.has(kind)
/** Whether it is a fault of the adapter: who asks for a pause, or refuses a message for good, works. */
export const isFault = ({ kind, final }: Failure): boolean => !final && kind !== 'rate_limited'

/** There is nothing left to say. */
export const ENTRY_GONE: Failure = {
  kind: 'permanent',
  error: 'its entry is not in the transcript any more',
  final: true,
  answered: false,
  pauseMs: 0,
}
