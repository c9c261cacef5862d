/** Events in both scopes under one roof: which operation, which cursor parameter, how a line becomes an event. */
import { cut } from '../contract/base/text.ts'
import type { EventEnvelope, TaggedEventEnvelope } from '../contract/events.ts'
import type { Client } from './client.ts'
import { DecodeError, isRecord } from './problems.ts'

/** A city's log, or all of them (`city` undefined). */
export interface EventScope {
  readonly city: string | undefined
}

export type AnyEvent = EventEnvelope & { readonly city?: string; readonly log?: string }

export interface EventFilters {
  readonly type?: readonly string[] | undefined
  readonly since?: string | undefined
  /** `key=value`, of lists: the server looks for it in the whole log. */
  readonly payloadMatch?: readonly string[] | undefined
  /** Resume point: a sequence number in a city, a composite cursor over all. */
  readonly after?: string | undefined
}

export interface EventPage {
  readonly items: readonly AnyEvent[]
  readonly total: number
  readonly totalCapped: boolean
  readonly nextCursor: string | undefined
  /** Where a stream goes on without loss. */
  readonly head: string
  readonly partialErrors: readonly string[]
}

export interface PageRequest extends EventFilters {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly cursor?: string | undefined
  readonly signal: AbortSignal
}

/** One page of events, and the head they were read at. */
export async function listEventPage(client: Client, scope: EventScope, request: PageRequest): Promise<EventPage> {
  const { limit, order, cursor, since, after, signal } = request
  const query = {
    limit,
    order,
    cursor,
    since,
    type: unlessEmpty(request.type),
    payload_match: unlessEmpty(request.payloadMatch),
  }
  if (scope.city === undefined) {
    const { body } = await client.call('list-events', { query: { ...query, after_cursor: after }, signal })
    return { ...pageOf(body), head: body.event_cursor }
  }
  const params = { cityName: scope.city }
  const { body, headers } = await client.call('list-city-events', {
    params,
    query: { ...query, after_seq: after },
    signal,
  })
  const head = headers.get('x-svc-index')
  if (head === null) throw new DecodeError('missing X-SVC-Index header')
  return { ...pageOf(body), head }
}

const unlessEmpty = (values: readonly string[] | undefined) =>
  values === undefined || values.length === 0 ? undefined : [...values]

interface ListBody {
  readonly items: readonly AnyEvent[]
  readonly total: number
  readonly total_capped?: boolean
  readonly next_cursor?: string
  readonly partial_errors?: readonly string[]
}

function pageOf(body: ListBody): Omit<EventPage, 'head'> {
  if (!isRecord(body) || !Array.isArray(body.items)) throw new DecodeError('the list has no items')
  return {
    items: body.items,
    total: body.total,
    totalCapped: body.total_capped === true,
    nextCursor: body.next_cursor,
    partialErrors: body.partial_errors ?? [],
  }
}

/** The resume point of now: everything after it is still to come. */
export async function eventHead(client: Client, scope: EventScope, signal: AbortSignal): Promise<string> {
  const page = await listEventPage(client, scope, { limit: 1, order: 'desc', signal })
  return page.head
}

/** What `follow` needs to stream a scope from a resume point. */
export function streamOf(scope: EventScope, filters: Omit<EventFilters, 'since' | 'payloadMatch'>) {
  const type = filters.type
  if (scope.city === undefined) {
    return { operation: 'stream-events', params: {}, query: { type, after_cursor: filters.after } } as const
  }
  return {
    operation: 'stream-city-events',
    params: { cityName: scope.city },
    query: { type, after_seq: filters.after },
  } as const
}

/** The event in a frame's data; throws `DecodeError` for anything that is not one. */
export function parseEvent(text: string): AnyEvent {
  const value = parseJson(text)
  if (!isEvent(value)) throw new DecodeError(`not an event envelope: ${cut(text, 80)}`)
  return value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new DecodeError(error instanceof Error ? error.message : 'not JSON')
  }
}

function isEvent(value: unknown): value is EventEnvelope | TaggedEventEnvelope {
  return (
    isRecord(value) &&
    typeof value['seq'] === 'number' &&
    typeof value['type'] === 'string' &&
    typeof value['ts'] === 'string'
  )
}
