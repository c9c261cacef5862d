/** Handlers of the event bus: lists, streams and emit at both scopes (sheet 02 §§3.4, 4, 5). */

import { DEFAULT_LIMIT, MAX_EXACT_TOTAL } from '../../contract/base/paging.ts'
import { isReservedType } from '../../contract/event-types.ts'
import type {
  EventEnvelope,
  emitEvent,
  listCityEvents,
  listEvents,
  streamCityEvents,
  streamEvents,
  TaggedEventEnvelope,
} from '../../contract/events.ts'
import { type Handler, ok, type StreamHandler } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { formatPageToken, invalidCursor, parsePageToken, parseSeq } from '../../kernel/cursor.ts'
import { type EventFilter, eventMatches, type Range, type StoredEvent } from '../../kernel/event-log.ts'
import { durationMs, invalidField } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { type LogStream, refuseExpired } from '../../kernel/streams/log-stream.ts'
import type { MergedKey, MergedLog } from '../../kernel/streams/merged-log.ts'
import { waitForChange } from '../../kernel/waiting.ts'

export interface EventHandlersDeps {
  readonly merged: MergedLog
  readonly clock: Clock
  /** A running city's store and stream, or the spec's 404. */
  readonly city: (name: string) => { readonly store: Store; readonly stream: LogStream }
}

interface FilterQuery {
  readonly type?: readonly string[]
  readonly actor?: string
  readonly subject?: string
  readonly city?: string
}

export function createEventHandlers({ merged, clock, city }: EventHandlersDeps) {
  const timesOf = ({ since, until }: { readonly since?: string; readonly until?: string }) => ({
    fromMs: since === undefined ? undefined : clock.now() - durationMs('query.since', since),
    toMs: until === undefined ? undefined : clock.now() - durationMs('query.until', until),
  })

  const listAll: Handler<typeof listEvents> = ({ query }) => {
    // Before the read: a stream from here may repeat what is listed, and loses nothing.
    const cursor = merged.head()
    const limit = query.limit || DEFAULT_LIMIT
    const page = merged.page({
      filter: filterOf(query),
      ...timesOf(query),
      afterCursor: query.after_cursor,
      beyond: query.cursor === undefined ? undefined : mergedKey(query.cursor),
      order: query.order ?? 'desc',
      limit,
    })
    return ok({
      items: page.events.map(
        ({ event, city: tag }) => ({ ...toEnvelope(event.envelope), city: tag }) satisfies TaggedEventEnvelope,
      ),
      total: page.total,
      ...(page.capped ? { total_capped: true } : {}),
      event_cursor: cursor,
      ...(page.next === undefined
        ? {}
        : { next_cursor: formatPageToken('merged', [page.next.at, page.next.source, page.next.seq]) }),
      ...(page.failures.length === 0 ? {} : { partial: true, partial_errors: [...page.failures] }),
    })
  }

  const streamAll: StreamHandler<typeof streamEvents> = ({ query, header }) =>
    merged.follow(filterOf(query), header('last-event-id') ?? query.after_cursor)

  const listOne: Handler<typeof listCityEvents> = async ({ params, query, signal }) => {
    const filter = filterOf(query)
    await waitForChange(
      city(params.cityName).store.log,
      query,
      clock,
      signal,
      (event) => endsCity(event) || eventMatches(filter, event),
    )
    const { log } = city(params.cityName).store
    const head = log.head
    const { fromMs, toMs } = timesOf(query)
    const after = query.after_seq === undefined ? 0 : parseSeq(query.after_seq)
    refuseExpired(after, log)
    const time = log.rangeOfTime(fromMs, toMs)
    const whole = { after: Math.max(time.after, after), upTo: Math.min(time.upTo, head) }
    const order = query.order ?? 'desc'
    const limit = query.limit || DEFAULT_LIMIT
    const scan = log.scan(
      filter,
      query.cursor === undefined ? whole : beyond(query.cursor, whole, order),
      order,
      limit + 1,
    )
    const items = scan.events.slice(0, limit)
    const reached = scan.events.length > limit ? items.at(-1)?.seq : scan.reached
    const more = scan.events.length > limit || !scan.complete
    const { total, capped } = log.count(filter, whole, MAX_EXACT_TOTAL)
    return ok(
      {
        items: items.map(({ envelope }) => toEnvelope(envelope)),
        total,
        ...(capped ? { total_capped: true } : {}),
        ...(more && reached !== undefined ? { next_cursor: formatPageToken('seq', [reached]) } : {}),
      },
      { 'X-SVC-Index': String(head) },
    )
  }

  const streamOne: StreamHandler<typeof streamCityEvents> = ({ params, query, header }) => {
    const { stream } = city(params.cityName)
    const cursor = header('last-event-id') ?? query.after_seq
    return stream.follow(filterOf(query), cursor === undefined ? undefined : parseSeq(cursor))
  }

  const emit: Handler<typeof emitEvent> = ({ params, body, claim }) => {
    const { store } = city(params.cityName)
    if (isReservedType(body.type)) throw invalidField('body.type', 'event type is reserved', body.type)
    const { type, actor, subject, message, payload = {} } = body
    const draft = {
      type,
      actor,
      payload,
      ...(subject === undefined ? {} : { subject }),
      ...(message === undefined ? {} : { message }),
    }
    return store.keys.once(claim, () =>
      store.db.write((tx) => {
        const seq = store.log.appendCustom(tx, draft)
        return store.keys.remember(tx, claim, { status: 201, body: { status: 'recorded' as const, seq } })
      }),
    )
  }

  return {
    'list-events': listAll,
    'stream-events': streamAll,
    'list-city-events': listOne,
    'stream-city-events': streamOne,
    'emit-event': emit,
  }
}

/** Whoever waits for something in a city hears that there is nothing to wait for any more. */
const endsCity = ({ type }: StoredEvent): boolean => type === 'city.stopped'

function filterOf({ type, actor, subject, city }: FilterQuery): EventFilter {
  return {
    ...(type === undefined ? {} : { types: type }),
    ...(actor === undefined ? {} : { actor }),
    ...(subject === undefined ? {} : { subject }),
    ...(city === undefined ? {} : { city }),
  }
}

/** The stored bytes are the wire form; they were checked when they were written. */
function toEnvelope(envelope: string): EventEnvelope {
  return JSON.parse(envelope)
}

function beyond(token: string, range: Range, order: 'asc' | 'desc'): Range {
  const [seq] = parsePageToken('seq', token)
  if (typeof seq !== 'number' || seq < 1) throw invalidCursor('does not name an event')
  return order === 'desc'
    ? { ...range, upTo: Math.min(range.upTo, seq - 1) }
    : { ...range, after: Math.max(range.after, seq) }
}

function mergedKey(token: string): MergedKey {
  const [at, source, seq] = parsePageToken('merged', token)
  if (typeof at !== 'number' || typeof source !== 'string' || typeof seq !== 'number')
    throw invalidCursor('does not name an event')
  return { at, source, seq }
}
