/** Waiting for the outcome of a 202: its terminal event, or the request itself where the stream cannot be resumed. */
import type { RequestInfo } from '../contract/requests.ts'
import { backoffMs } from './backoff.ts'
import type { Client } from './client.ts'
import { delay } from './clock.ts'
import { type AnyEvent, parseEvent, streamOf } from './events.ts'
import { follow } from './follow.ts'
import { ApiProblem, DecodeError, Unreachable } from './problems.ts'

export interface RequestOutcome {
  readonly requestId: string
  readonly succeeded: boolean
  /** Payload of the terminal event. */
  readonly payload: Readonly<Record<string, unknown>>
}

export interface WaitOptions {
  readonly requestId: string
  /** `event_cursor` of the 202. */
  readonly eventCursor: string
  /** Where its terminal event appears; all cities where absent. */
  readonly city?: string | undefined
  readonly signal: AbortSignal
  /** Sees events about cities and requests on the way. */
  readonly onEvent?: (event: AnyEvent) => void
}

/** A local supervisor comes back within seconds, and asking it is cheap. */
const LONGEST_POLL_MS = 2_000

/** Resolves with the one terminal event of an accepted request; rejects with the signal's reason, or when it is unknown. */
export async function waitForRequest(client: Client, options: WaitOptions): Promise<RequestOutcome> {
  let cursor: string | undefined
  let streamable = true
  for (let attempt = 0; ; attempt += 1) {
    if (streamable) {
      try {
        for await (const frame of openStream(client, options, cursor)) {
          const outcome = readTerminal(frame.event, options)
          if (outcome !== undefined) return outcome
          cursor = frame.id ?? cursor
          attempt = 0
        }
      } catch (error) {
        streamable = canTryAgain(error)
      }
    }
    const outcome = await askForOutcome(client, options)
    if (outcome !== undefined) return outcome
    await delay(client.clock, Math.min(LONGEST_POLL_MS, backoffMs(attempt, client.random()) / 2), options.signal)
  }
}

async function* openStream(client: Client, options: WaitOptions, lastEventId: string | undefined) {
  const stream = streamOf({ city: options.city }, { type: ['request.*', 'city.*'], after: options.eventCursor })
  const frames = follow(client, stream.operation, { ...stream, lastEventId, signal: options.signal, reconnect: false })
  for await (const frame of frames) yield { id: frame.id, event: parseEvent(frame.data) }
}

function readTerminal(event: AnyEvent, options: WaitOptions): RequestOutcome | undefined {
  options.onEvent?.(event)
  const { requestId } = options
  if (event.payload?.['request_id'] !== requestId) return undefined
  if (event.type === 'request.failed') return { requestId, succeeded: false, payload: event.payload }
  return event.type.startsWith('request.result.') ? { requestId, succeeded: true, payload: event.payload } : undefined
}

/** False: this stream will not come back (its cursor expired, its city is gone), ask for the request instead. */
function canTryAgain(error: unknown): boolean {
  if (error instanceof Unreachable) return true
  if (error instanceof DecodeError) return false
  if (error instanceof ApiProblem) return error.status === 429 || error.status >= 500
  throw error
}

async function askForOutcome(client: Client, { requestId, signal }: WaitOptions): Promise<RequestOutcome | undefined> {
  try {
    const { body } = await client.call('get-request', { params: { request_id: requestId }, signal, retries: 0 })
    return outcomeOf(body)
  } catch (error) {
    // A supervisor that is being restarted is the case that this waits out.
    if (error instanceof Unreachable) return undefined
    if (error instanceof ApiProblem && error.status >= 500) return undefined
    throw error
  }
}

/** The outcome that a finished request tells; undefined while it is under way. */
export function outcomeOf(info: RequestInfo): RequestOutcome | undefined {
  const { request_id: requestId, operation } = info
  if (info.status === 'succeeded')
    return { requestId, succeeded: true, payload: info.result ?? { request_id: requestId } }
  if (info.status !== 'failed') return undefined
  const { error_code = 'unknown', error_message = 'no message', issues } = info
  return {
    requestId,
    succeeded: false,
    payload: {
      request_id: requestId,
      operation,
      error_code,
      error_message,
      ...(issues === undefined ? {} : { issues }),
    },
  }
}
