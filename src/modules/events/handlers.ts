/** Handlers of the event bus: lists, streams and emit at both scopes (sheet 02 §§3.4, 4, 5). */

import { parsePayloadMatch } from '../../contract/base/payload-match.ts'
import { isReservedType } from '../../contract/event-types.ts'
import type { eventOperations } from '../../contract/events.ts'
import { defineHandlers, ok, RawBody, type Reply } from '../../kernel/call.ts'
import { type Clock, inTurns } from '../../kernel/clock.ts'
import { parseSeq } from '../../kernel/cursor.ts'
import {
  type EventFilter,
  encodeEvent,
  eventMatches,
  type StoredEvent,
  taggedEnvelope,
} from '../../kernel/event-log.ts'
import { Page } from '../../kernel/page.ts'
import { durationMs, invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { EventPages, type ListedLog, type PageKey, type PageQuery } from '../../kernel/streams/event-pages.ts'
import { type LogStream, refuseExpired } from '../../kernel/streams/log-stream.ts'
import type { MergedLog } from '../../kernel/streams/merged-log.ts'
import { isBlocking, waitForChange } from '../../kernel/waiting.ts'

/** A running city's store and the feeds from it. */
export interface EventCity {
  readonly name: string
  readonly store: Store
  readonly stream: LogStream
}

interface ListCall {
  readonly query: ListQuery & FilterQuery & { readonly after_seq?: string; readonly cursor?: string }
  readonly signal: AbortSignal
  readonly city: EventCity
}

/** How many, behind where. */
type Place = Pick<PageQuery, 'limit' | 'beyond'>

export interface EventHandlersDeps {
  readonly merged: MergedLog
  readonly clock: Clock
}

interface FilterQuery {
  readonly type?: readonly string[]
  readonly actor?: string
  readonly subject?: string
  readonly city?: string
  readonly payload_match?: readonly string[]
}

interface ListQuery {
  readonly since?: string
  readonly until?: string
  readonly order?: 'asc' | 'desc'
  readonly limit?: number
}

export function createEventHandlers({ merged, clock }: EventHandlersDeps) {
  const timesOf = ({ since, until }: { readonly since?: string; readonly until?: string }) => ({
    fromMs: since === undefined ? undefined : clock.now() - durationMs('query.since', since),
    toMs: until === undefined ? undefined : clock.now() - durationMs('query.until', until),
  })

  const read = (logs: readonly ListedLog[], query: ListQuery, { limit, beyond }: Place) =>
    new EventPages(logs, { ...timesOf(query), order: query.order ?? 'desc', limit, beyond }, clock.monotonic)

  const listNow = ({ query, signal, city: { name, store } }: ListCall) => {
    const { log } = store
    const { head } = log
    const after = query.after_seq === undefined ? 0 : parseSeq(query.after_seq)
    refuseExpired(after, log)
    const listed = { name, log, filter: filterOf(query), after, upTo: head }
    const place = new Page('seq', ['number'], query)
    const page = read([listed], query, { limit: place.limit, beyond: cityKey(place.after, name, query) })
    const answer = () => {
      const [failure] = page.failures
      if (failure !== undefined) throw problem('unavailable', failure, { retryAfterSec: 1 })
      return listReply(
        page.events.map(({ event }) => event.envelope),
        {
          ...totalOf(page),
          ...place.behind(page.next && [page.next.seq]),
        },
        { 'X-SVC-Index': String(head) },
      )
    }
    const reading = inTurns(() => page.step(), signal)
    return reading === undefined ? answer() : reading.then(answer)
  }

  return defineHandlers<typeof eventOperations, EventCity>({
    'list-events': ({ query, signal }) => {
      // Before the read: a stream from here may repeat what is listed, and loses nothing.
      const cursor = merged.head()
      const { logs, failures } = merged.listed(filterOf(query), query.after_cursor)
      const place = new Page('merged', ['number', 'string', 'number'], query)
      const page = read(logs, query, { limit: place.limit, beyond: mergedKey(place.after) })
      const answer = () => {
        const errors = [...failures, ...page.failures]
        if (logs.length > 0 && page.failures.length === logs.length)
          throw problem('unavailable', 'no event log can be read', { retryAfterSec: 1 })
        return listReply(
          page.events.map(({ event, source }) =>
            taggedEnvelope(event.envelope, { city: event.city ?? source, log: source }),
          ),
          {
            ...totalOf(page),
            event_cursor: cursor,
            ...place.behind(page.next && [page.next.at, page.next.source, page.next.seq]),
            ...(errors.length === 0 ? {} : { partial: true, partial_errors: errors }),
          },
        )
      }
      const reading = inTurns(() => page.step(), signal)
      return reading === undefined ? answer() : reading.then(answer)
    },

    'stream-events': ({ query, header }) =>
      merged.follow(filterOf(query), header('last-event-id') || query.after_cursor),

    'list-city-events': (call) => {
      const { query, signal } = call
      if (!isBlocking(query)) return listNow(call)
      const filter = filterOf(query)
      const matters = (event: StoredEvent) => endsCity(event) || eventMatches(filter, event)
      const { log } = call.city.store
      return waitForChange(log, query, clock, signal, matters).then(() => listNow(call))
    },

    'stream-city-events': ({ query, header, city }) => {
      const { stream } = city
      const cursor = header('last-event-id') || query.after_seq
      return stream.follow(filterOf(query), cursor === undefined ? undefined : parseSeq(cursor))
    },

    'emit-event': ({ body, claim, city }) => {
      const { store } = city
      if (isReservedType(body.type)) throw invalidField('body.type', 'event type is reserved', body.type)
      const { type, actor, subject, message, payload = {} } = body
      const event = encodeEvent({
        type,
        actor,
        payload,
        ...(subject === undefined ? {} : { subject }),
        ...(message === undefined ? {} : { message }),
      })
      return store.keys.once(claim, () =>
        store.db.write((tx) => {
          const seq = store.log.appendEncoded(tx, event)
          return store.keys.remember(tx, claim, { status: 201, body: { status: 'recorded' as const, seq } })
        }, event.bytes),
      )
    },
  })
}

/** Whoever waits for something in a city hears that there is nothing to wait for any more. */
const endsCity = ({ type }: StoredEvent): boolean => type === 'city.stopped'

function filterOf({ type, actor, subject, city, payload_match }: FilterQuery): EventFilter {
  const payload = payload_match?.map(parsePayloadMatch).filter((match) => match !== undefined)
  return {
    ...(payload === undefined ? {} : { payload }),
    ...(type === undefined ? {} : { types: type }),
    ...(actor === undefined ? {} : { actor }),
    ...(subject === undefined ? {} : { subject }),
    ...(city === undefined ? {} : { city }),
  }
}

/** A list whose items are JSON already: the stored bytes are the wire form, checked when they were written. */
function listReply(items: readonly string[], rest: object, headers?: Record<string, string>): Reply<RawBody> {
  const text = `{"items":[${items.join(',')}],${JSON.stringify(rest).slice(1)}`
  // As bytes: for a text of this length the socket would take three times the room first.
  return ok(new RawBody(Buffer.from(text), 'application/json'), headers)
}

const totalOf = ({ total, capped }: EventPages) => ({ total, ...(capped ? { total_capped: true } : {}) })

/** Among the events of one log the number says it all. */
function cityKey(after: readonly [seq: number] | undefined, source: string, { order }: ListQuery): PageKey | undefined {
  if (after === undefined) return undefined
  return { at: order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER, source, seq: after[0] }
}

function mergedKey(after: readonly [at: number, source: string, seq: number] | undefined): PageKey | undefined {
  if (after === undefined) return undefined
  const [at, source, seq] = after
  return { at, source, seq }
}
