/** What `svcctl events` does in each mode. Every mode prints matching events only, oldest first. */

import type { Client } from '../../client/client.ts'
import { type Deadline, TimedOut } from '../../client/clock.ts'
import {
  type AnyEvent,
  type EventPage,
  type EventScope,
  eventHead,
  listEventPage,
  type PageRequest,
  parseEvent,
  streamOf,
} from '../../client/events.ts'
import { type Frame, follow } from '../../client/follow.ts'
import { matchesPayload, type PayloadMatch } from '../../contract/base/payload-match.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { eventLine } from './event-line.ts'

export interface EventQuestion {
  readonly mode: 'list' | 'watch' | 'follow' | 'seq'
  readonly types: readonly string[]
  readonly matches: readonly PayloadMatch[]
  readonly since: string | undefined
  readonly sinceMs: number | undefined
  readonly after: string | undefined
  readonly afterCursor: string | undefined
  readonly timeoutMs: number
  readonly pretty: boolean
}

/** Items of a list that is bounded neither by time nor by a cursor. */
const NEWEST = 500
const PAGE = 1000
/** Listed events remembered, so that a stream that overlaps the list does not print them again. */
const REMEMBERED = 10_000

interface Run {
  readonly context: Context
  readonly client: Client
  readonly scope: EventScope
  readonly question: EventQuestion
  readonly signal: AbortSignal
  /** The resume point asked for. */
  readonly after: string | undefined
  /** Events before it do not count, in milliseconds since the epoch. */
  readonly notBefore: number
}

/** Returns the exit code. */
export async function runEvents(context: Context, question: EventQuestion): Promise<number> {
  using limit: Deadline | undefined = question.mode === 'watch' ? context.within(question.timeoutMs) : undefined
  try {
    return await MODES[question.mode](await prepare(context, question, wholeSignal(context, question.mode, limit)))
  } catch (error) {
    // No match in time is an answer, whatever was going on at that moment (spec §6).
    if (error instanceof TimedOut && limit?.signal.reason === error) return EXIT.ok
    throw error
  }
}

/** Those that go on also end with their reader. */
function wholeSignal({ io }: Context, mode: EventQuestion['mode'], limit: Deadline | undefined): AbortSignal {
  if (mode === 'list' || mode === 'seq') return io.signal
  return limit === undefined ? io.reading() : AbortSignal.any([limit.signal, io.reading()])
}

const MODES: Readonly<Record<EventQuestion['mode'], (run: Run) => Promise<number>>> = {
  list: listEvents,
  watch: watchEvents,
  follow: followEvents,
  seq: printHead,
}

async function prepare(context: Context, question: EventQuestion, signal: AbortSignal): Promise<Run> {
  const client = await context.client()
  using limit = context.within()
  const city = await context.city(AbortSignal.any([signal, limit.signal]))
  if (city === undefined && question.after !== undefined) {
    throw usageError('--after is only valid when a city is in scope; use --after-cursor for supervisor events')
  }
  if (city !== undefined && question.afterCursor !== undefined) {
    throw usageError(
      '--after-cursor is only valid in supervisor scope',
      `city ${city} is in scope: use --after, or -A for all cities`,
    )
  }
  const after = question.after ?? question.afterCursor
  const notBefore =
    question.sinceMs === undefined ? Number.NEGATIVE_INFINITY : context.io.clock.now() - question.sinceMs
  return { context, client, scope: { city }, question, signal, after, notBefore }
}

async function printHead(run: Run): Promise<number> {
  const { context, client, scope } = run
  using limit = context.within()
  await context.print.lines([await eventHead(client, scope, limit.signal)])
  return EXIT.ok
}

async function listEvents(run: Run): Promise<number> {
  if (run.question.since === undefined && run.after === undefined) return listNewest(run)
  for await (const page of pages(run))
    await print(
      run,
      page.items.filter((event) => matches(run, event)),
    )
  return EXIT.ok
}

async function listNewest(run: Run): Promise<number> {
  const { context } = run
  const newest: AnyEvent[] = []
  let cursor: string | undefined
  let last: EventPage
  do {
    last = await readPage(run, { limit: NEWEST - newest.length, order: 'desc', cursor })
    if (cursor === undefined) await notePartial(run, last)
    newest.push(...last.items.filter((event) => matches(run, event)))
    cursor = last.nextCursor
    // Where payloads are looked for, a page may hold fewer than there are, or none.
  } while (cursor !== undefined && newest.length < NEWEST && run.question.matches.length > 0)
  await print(run, newest.toReversed())
  if (cursor !== undefined) {
    const total = `${last.total}${last.totalCapped ? '+' : ''}`
    await context.note(
      `svcctl events: showing the newest ${newest.length} of ${total}; --since DURATION or a cursor gets more`,
    )
  }
  return EXIT.ok
}

type PagePlace = Pick<PageRequest, 'limit' | 'order' | 'cursor' | 'after' | 'since'>

/** One page of what the flags ask for. */
async function readPage({ context, client, scope, question, signal }: Run, place: PagePlace): Promise<EventPage> {
  using limit = context.within()
  return await listEventPage(client, scope, {
    ...place,
    type: question.types,
    payloadMatch: question.matches.map(({ key, value }) => `${key}=${value}`),
    signal: AbortSignal.any([signal, limit.signal]),
  })
}

/** Every page after the cursor and within the time asked for, up to the head that the first page was read at. */
async function* pages(run: Run): AsyncGenerator<EventPage> {
  const { scope, question, after } = run
  const head = { city: Number.POSITIVE_INFINITY }
  let cursor: string | undefined
  do {
    const page = await readPage(run, { limit: PAGE, order: 'asc', cursor, after, since: question.since })
    if (cursor === undefined) {
      await notePartial(run, page)
      if (scope.city !== undefined) head.city = Number(page.head)
    }
    const items = page.items.filter((event) => event.seq <= head.city || scope.city === undefined)
    yield { ...page, items }
    // A city's log that grows while it is read would never end.
    cursor = items.length < page.items.length ? undefined : page.nextCursor
  } while (cursor !== undefined)
}

async function notePartial({ context }: Run, page: EventPage): Promise<void> {
  for (const error of page.partialErrors) await context.note(`svcctl events: could not be read: ${error}`)
}

/** What happened already, where the question reaches back; else only where now is. */
interface Backlog {
  readonly matching: readonly AnyEvent[]
  /** Where the stream goes on. */
  readonly after: string
  readonly seen: ReadonlySet<string>
}

async function readBacklog(
  run: Run,
  onPage: (matching: readonly AnyEvent[]) => Promise<void>,
): Promise<Omit<Backlog, 'matching'>> {
  const seen = new Set<string>()
  let after: string | undefined
  for await (const page of pages(run)) {
    after ??= page.head
    for (const event of page.items) remember(seen, keyOf(event))
    await onPage(page.items.filter((event) => matches(run, event)))
  }
  return { after: after ?? '0', seen }
}

function remember(seen: Set<string>, key: string): void {
  seen.add(key)
  if (seen.size <= REMEMBERED) return
  for (const oldest of seen) {
    seen.delete(oldest)
    return
  }
}

const keyOf = (event: AnyEvent): string => `${event.log ?? ''} ${event.seq} ${event.type} ${event.ts}`

async function followEvents(run: Run): Promise<number> {
  let start = run.after
  let seen: ReadonlySet<string> = new Set()
  if (start === undefined && run.question.since !== undefined) {
    const backlog = await readBacklog(run, (events) => print(run, events))
    start = backlog.after
    seen = backlog.seen
  }
  // An explicit start, so that a connection lost before its first frame loses nothing.
  start ??= await head(run)
  for await (const frame of framesFrom(run, start)) {
    const event = parseEvent(frame.data)
    if (matches(run, event) && !seen.has(keyOf(event))) await printFrame(run, event, frame.data)
  }
  return EXIT.ok
}

/** Over as many connections as it takes; that of a server that starts again is another one. */
function framesFrom(run: Run, start: string): AsyncGenerator<Frame> {
  const { context, client, scope, question, signal } = run
  const stream = streamOf(scope, { type: question.types, after: start })
  return follow(client, stream.operation, {
    ...stream,
    signal,
    onRetry: ({ reason, delayMs }) =>
      void context
        .note(`svcctl events: ${reason}; retrying in ${(delayMs / 1000).toFixed(1)} s`)
        .catch(() => undefined),
    mayReturn: () => cityRemains(run),
  })
}

async function head({ context, client, scope, signal }: Run): Promise<string> {
  using limit = context.within()
  return eventHead(client, scope, AbortSignal.any([signal, limit.signal]))
}

async function cityRemains({ context, client, scope }: Run): Promise<boolean> {
  using limit = context.within()
  return await isRegistered(client, scope.city, limit.signal)
}

async function watchEvents(run: Run): Promise<number> {
  let start = run.after
  if (run.after !== undefined || run.question.since !== undefined) {
    const matching: AnyEvent[] = []
    const backlog = await readBacklog(run, async (events) => void matching.push(...events))
    await print(run, matching)
    if (matching.length > 0) return EXIT.ok
    start = backlog.after
  }
  start ??= await head(run)
  for await (const frame of framesFrom(run, start)) {
    const event = parseEvent(frame.data)
    if (!matches(run, event)) continue
    await printFrame(run, event, frame.data)
    return EXIT.ok
  }
  return EXIT.ok
}

function matches({ question, notBefore }: Run, event: AnyEvent): boolean {
  if (!matchesType(event.type, question.types)) return false
  // Unparsable times are not this filter's business.
  if (Date.parse(event.ts) < notBefore) return false
  return matchesPayload(event.payload, question.matches)
}

const matchesType = (type: string, wanted: readonly string[]): boolean =>
  wanted.length === 0 || wanted.some((one) => (one.endsWith('.*') ? type.startsWith(one.slice(0, -1)) : type === one))

async function print({ context, question }: Run, events: readonly AnyEvent[]): Promise<void> {
  if (question.pretty) await context.print.lines(events.map(eventLine))
  else await context.print.records(events.map((event) => JSON.stringify(event)))
}

/** The frame's own text, so that nothing that the server sent is lost in a round trip. */
async function printFrame({ context, question }: Run, event: AnyEvent, data: string): Promise<void> {
  if (question.pretty) await context.print.lines([eventLine(event)])
  else await context.print.records([data])
}
