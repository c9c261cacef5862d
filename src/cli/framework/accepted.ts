/**
 * Commands that start something long: they wait for its end, or print where to wait for it. Whether they do is the same in a
 * terminal and in a pipe: what was tried by hand must not mean something else in a script.
 */

import { TimedOut } from '../../client/clock.ts'
import { type RequestOutcome, waitForRequest } from '../../client/requests.ts'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { RequestOperation } from '../../contract/event-types.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, Failure, issueSentences, usageError } from '../base/failure.ts'
import { Interrupted } from '../base/io.ts'
import { type Cell, type Column, cellOf } from '../print/columns.ts'
import { view } from '../print/view.ts'

/** How long a wait lasts where nothing was asked for. */
const WAIT_TIMEOUT_MS = 5 * 60_000

export const waitFlags: readonly FlagSpec[] = [
  { flags: '--wait', description: 'Wait for the end; the default, but for messages.' },
  { flags: '--no-wait', description: 'Print request_id and event_cursor, and end; the default for messages.' },
  {
    flags: '--timeout <duration>',
    description: 'How long to wait (default: 5m); exit code 8 when it was not enough.',
  },
]

/** Milliseconds that a flag asks for. */
export async function parseTimeout(
  input: Input,
  otherwiseMs: number = WAIT_TIMEOUT_MS,
  flag: 'timeout' | 'wait' = 'timeout',
): Promise<number> {
  const text = input.text(flag)
  if (text === undefined) return otherwiseMs
  const { parseDurationMs } = await import('../../contract/base/durations.ts')
  try {
    return parseDurationMs(text)
  } catch (error) {
    throw usageError(`invalid --${flag} "${text}": ${error instanceof Error ? error.message : 'not a duration'}`)
  }
}

/** A 202, with the city whose log has its end; that of the supervisor where absent. */
export interface AcceptedIn extends AsyncAcceptedResponse {
  readonly city?: string | undefined
}

/** A message waits for its agent, for hours where that is at work: nobody waits for it who does not say so. */
const IS_LEFT_ALONE: ReadonlySet<string> = new Set<RequestOperation>(['session.message', 'session.submit'])

const ACCEPTED = view<AcceptedIn>()('request_id event_cursor')

/** Prints the 202, or waits and prints the outcome; returns the exit code. */
export async function settle(
  context: Context,
  input: Input,
  what: string,
  accepted: AcceptedIn,
  json: string,
): Promise<number> {
  const wait = input.choice('wait') ?? !IS_LEFT_ALONE.has(what)
  if (!wait) {
    await context.print.item({
      item: accepted,
      ...ACCEPTED,
      json,
    })
    return EXIT.ok
  }
  const outcome = await waitFor(context, what, accepted, await parseTimeout(input))
  return printOutcome(context, what, outcome)
}

/** Waits with progress on stderr. */
export async function waitFor(
  context: Context,
  what: string,
  accepted: AcceptedIn,
  timeoutMs: number,
): Promise<RequestOutcome> {
  const { request_id: requestId, event_cursor: eventCursor, city } = accepted
  const client = await context.client()
  await context.note(`waiting for ${what} (${requestId})`)
  using limit = context.within(timeoutMs)
  const hint = `svcctl request wait ${requestId}`
  try {
    return await waitForRequest(client, { requestId, eventCursor, city, signal: limit.signal })
  } catch (error) {
    if (error instanceof TimedOut && limit.signal.reason === error) {
      throw new Failure(EXIT.timedOut, `${what} took longer than ${timeoutMs / 1000} s; it may still finish`, { hint })
    }
    if (error instanceof Interrupted) await context.note(`it goes on; wait for it again with: ${hint}`)
    throw error
  }
}

/** Everything that is wrong, where the message has only the first of it. */
function issueLines(issues: unknown): string {
  return Array.isArray(issues) && issues.length > 1 ? issueSentences(issues) : ''
}

/** The terminal event's payload on stdout, or exit code 9. */
export async function printOutcome(context: Context, what: string, outcome: RequestOutcome): Promise<number> {
  const { payload, succeeded } = outcome
  if (!succeeded) {
    const [code, message] = [payload['error_code'], payload['error_message']].map((text) => String(text ?? 'unknown'))
    throw new Failure(EXIT.operationFailed, `${what} failed: ${code}: ${message}${issueLines(payload['issues'])}`, {
      body: payload,
    })
  }
  const columns: Column<typeof payload>[] = Object.keys(payload).map((key) => ({
    header: key.toUpperCase(),
    value: (item) => shortCell(item[key]),
  }))
  const name = () => nameOf(payload) ?? outcome.requestId
  await context.print.item({ item: payload, columns, name, json: JSON.stringify(payload) })
  return EXIT.ok
}

/** What was made, as other commands take it: its own name, else that of the one thing that the outcome describes. */
function nameOf(payload: RequestOutcome['payload']): string | undefined {
  const { name } = payload
  if (typeof name === 'string') return name
  const [made] = Object.values(payload).filter((value) => typeof value === 'object' && value !== null && 'id' in value)
  if (typeof made !== 'object' || made === null) return undefined
  const known = 'alias' in made && made.alias !== undefined ? made.alias : 'name' in made ? made.name : undefined
  if (typeof known === 'string') return known
  return 'id' in made ? String(made.id) : undefined
}

/** Of an object its id, or what is wrong: all of it is one command, or `-o json`, away. */
function shortCell(value: unknown): Cell {
  if (typeof value !== 'object' || value === null) return cellOf(value)
  if ('id' in value && typeof value.id === 'string') return value.id
  return 'error' in value && typeof value.error === 'string' ? value.error : cellOf(value)
}
