/** `svcctl events`: the event APIs as JSON Lines (spec §6, sheet 02 §6). The modes themselves are in `../event-modes.ts`. */

import { ApiProblem, Unreachable } from '../../client/problems.ts'
import { type PayloadMatch, parsePayloadMatch } from '../../contract/base/payload-match.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { Failure, toFailure, usageError } from '../base/failure.ts'
import { BrokenPipe, Interrupted } from '../base/io.ts'
import { type EventQuestion, runEvents } from '../views/event-modes.ts'

const WATCH_TIMEOUT = '30s'

/** Flags → a checked question; the order of the checks is part of the contract (sheet 02 §6.2). */
async function readQuestion(input: Input, isTerminal: boolean): Promise<EventQuestion> {
  refuseLayout(input)
  // A person reads lines; what is piped, and what -o asks for, is the contract: JSON Lines.
  const pretty = input.on('pretty') || (isTerminal && !input.has('output'))
  const [after, afterCursor] = [input.text('after'), input.text('afterCursor')]
  if (after !== undefined && afterCursor !== undefined)
    throw usageError('--after and --after-cursor are mutually exclusive')
  const modes = (['watch', 'follow', 'seq'] as const).filter((mode) => input.on(mode))
  const [first, second] = modes
  if (second !== undefined) throw usageError(`--${first} and --${second} are mutually exclusive`)
  if (first !== 'watch' && input.text('timeout') !== undefined) throw usageError('--timeout is only valid with --watch')
  if (first === 'seq') refuseFilters(input)
  const timeoutMs = await parseDuration('--timeout', input.text('timeout') ?? WATCH_TIMEOUT)
  const matches = input.texts('payloadMatch').map(readMatch)
  const since = input.text('since')
  const sinceMs = since === undefined ? undefined : await parseDuration('--since', since)
  if (after !== undefined && !/^\d{1,20}$/.test(after))
    throw usageError(`invalid --after "${after}": expected the sequence number of an event`)
  return {
    mode: first ?? 'list',
    types: input.texts('type'),
    matches,
    since,
    sinceMs,
    after,
    afterCursor,
    timeoutMs,
    pretty,
  }
}

const NO_FORMAT_OF_EVENTS = ['table', 'wide', 'name']

/** A flag that changes nothing would be believed. */
function refuseLayout(input: Input): void {
  const output = input.text('output') ?? ''
  if (NO_FORMAT_OF_EVENTS.includes(output))
    throw usageError(`-o ${output} is not valid with events, which are lines of JSON`, 'for people there is --pretty')
  for (const flag of ['sort', 'columns'])
    if (input.has(flag)) throw usageError(`--${flag} is not valid with events, which are lines of JSON`)
}

/** The cursor of now is that of everything: a filter would be ignored. */
function refuseFilters(input: Input): void {
  const filters = { type: '--type', payloadMatch: '--payload-match', since: '--since' }
  const cursors = { after: '--after', afterCursor: '--after-cursor' }
  for (const [name, flag] of Object.entries({ ...filters, ...cursors })) {
    const given =
      name === 'type' || name === 'payloadMatch' ? input.texts(name).length > 0 : input.text(name) !== undefined
    if (given) throw usageError(`${flag} is not valid with --seq`)
  }
}

function readMatch(text: string): PayloadMatch {
  const match = parsePayloadMatch(text)
  if (match === undefined) throw usageError(`invalid --payload-match "${text}": expected key=value`)
  return match
}

async function parseDuration(flag: string, text: string): Promise<number> {
  if (text === WATCH_TIMEOUT) return 30_000
  // The parser lives beside its schema; without a duration to parse, a command need not wait for the schema library.
  const { parseDurationMs } = await import('../../contract/base/durations.ts')
  try {
    return parseDurationMs(text)
  } catch (error) {
    throw usageError(`invalid ${flag} "${text}": ${error instanceof Error ? error.message : 'not a duration'}`)
  }
}

async function run(context: Context, input: Input): Promise<number> {
  try {
    return await runEvents(context, await readQuestion(input, context.io.stdout.isTerminal))
  } catch (error) {
    throw explain(error)
  }
}

/** The texts of sheet 02 §6.2. */
function explain(error: unknown): unknown {
  if (error instanceof BrokenPipe || error instanceof Interrupted) return error
  const failure = toFailure(error)
  const { exitCode, hint, requestId, body } = failure
  const options = { hint, requestId, cause: error, ...(body === undefined ? {} : { body }) }
  if (error instanceof Unreachable) return new Failure(exitCode, `request failed: ${failure.message}`, options)
  if (error instanceof ApiProblem && error.status === 401) {
    return new Failure(exitCode, `unauthorized (401); the presented credential was rejected: ${error.detail}`, options)
  }
  return failure
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['events'],
    operations: ['list-events', 'list-city-events', 'stream-events', 'stream-city-events'],
    summary: 'List, watch and follow events',
    description:
      'Prints one JSON object a line: the API’s own, oldest first. In a city (working directory, --city, SVC_CITY) its events; elsewhere, or with -A, those of all cities. Without --since or a cursor, a list holds the newest 500 that match.',
    flags: [
      {
        flags: '--watch',
        description: 'Wait for a match, print it and end; silent, with exit code 0, when none came in time.',
      },
      { flags: '-f, --follow', description: 'Go on until stopped; survives restarts of the server and of the city.' },
      { flags: '--seq', description: 'Print the cursor of now, for --after (in a city) or --after-cursor, and end.' },
      {
        flags: '--type <type>',
        description: 'Only this type, or `bead.*`; repeatable.',
        repeatable: true,
        complete: 'event-type',
      },
      {
        flags: '--payload-match <key=value>',
        description:
          'Only where the payload has it; dotted paths go into nested objects. Repeatable: same key or, different keys and.',
        repeatable: true,
      },
      { flags: '--since <duration>', description: 'Only events at most this old: 90s, 15m, 1h30m, 7d.' },
      { flags: '--after <seq>', description: 'Only events after this one, in a city.' },
      { flags: '--after-cursor <cursor>', description: 'Only events after this cursor, over all cities.' },
      { flags: '--timeout <duration>', description: 'How long --watch waits (default: 30s).' },
      { flags: '--pretty', description: 'Lines for people; the default in a terminal, where -o jsonl gives JSON.' },
    ],
    examples: [
      { line: 'svcctl events --since 1h', does: 'what happened in the last hour' },
      { line: 'svcctl events --follow --type "city.*" --pretty', does: 'cities coming and going' },
      {
        line: 'svcctl events --watch --type deploy.done --payload-match env=prod --timeout 10m',
        does: 'wait for a deployment',
      },
      {
        line: 'CURSOR=$(svcctl events -A --seq); svcctl events -A --follow --after-cursor "$CURSOR"',
        does: 'miss nothing',
      },
    ],
    leaves: new Map([
      ...['actor', 'subject', 'until'].map(
        (field) => [field, 'for `svcctl api`: filters of people are types and payloads'] as const,
      ),
      ...['limit', 'order'].map((field) => [field, 'a list is bounded by --since or a cursor, oldest first'] as const),
      ['city', '--city says it'],
      ['after_seq', '--after says it'],
    ]),
    isFleet: true,
    errorPrefix: 'svcctl events: ',
    run,
  },
]
