/** The event bus: envelopes, lists, streams, emit (spec §4, §6; sheet 02; decisions 5, 6, 12–17). */

import { family } from './base/family.ts'
import { CityNameParam, durationSchema, JsonObject, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody, listFields, OrderQuery, PageQuery } from './base/paging.ts'
import {
  array,
  component,
  type Fields,
  integer,
  literal,
  object,
  optional,
  raw,
  type Schema,
  type Static,
  string,
  union,
} from './base/schema.ts'
import { HEARTBEAT } from './base/streams.ts'
import { EVENT_TYPE_NAMES, EVENT_TYPE_PATTERN, EVENT_TYPES } from './event-types.ts'

/** Encoded envelope of one event, in bytes. */
export const MAX_EVENT_BYTES = 256 * 1024

/** One event as every client sees it; `city` and `log` at supervisor scope only. Closed, and the same in lists and streams. */
export interface EventEnvelope {
  readonly seq: number
  readonly type: string
  readonly ts: string
  readonly actor: string
  readonly subject?: string
  readonly message?: string
  readonly payload: { readonly [key: string]: unknown }
}
export interface TaggedEventEnvelope extends EventEnvelope {
  readonly city: string
  readonly log: string
}

const camel = (type: string): string =>
  type
    .split(/[._-]/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('')

const Seq = integer({
  $id: 'EventSeq',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Position of the event in its log; gap-free.',
})
const Actor = string({
  $id: 'EventActor',
  minLength: 1,
  description: 'Name of the caller that caused the event; `supervisor` for the service itself.',
})
const Subject = string({ $id: 'EventSubject', description: 'Id of the thing that the event is about.' })
const Message = string({ $id: 'EventMessage', description: 'A sentence for people.' })

/** Event of one type: a closed object that repeats all common fields, because generators cannot merge parts of objects. */
const kind = (name: string, { type, payload, own }: { type: Schema; payload: Schema; own: Fields }) =>
  component(name, {
    seq: Seq,
    type,
    ts: Timestamp,
    actor: Actor,
    subject: optional(Subject),
    message: optional(Message),
    payload,
    ...own,
  })

/**
 * Envelope as a union of one object per known type and one for all custom types. The known types are a union of their
 * own, because OpenAPI calls every value wrong that a discriminator does not list.
 */
const envelope = <T>(name: string, prefix: string, own: Fields) => {
  const known = EVENT_TYPE_NAMES.map((type) =>
    kind(`${prefix}${camel(type)}Event`, { type: literal(type), payload: EVENT_TYPES[type].payload, own }),
  )
  const type = string({ pattern: EVENT_TYPE_PATTERN, not: { enum: EVENT_TYPE_NAMES } })
  const custom = kind(`${prefix}CustomEvent`, { type, payload: JsonObject, own })
  return raw<T>({ $id: name, anyOf: [union(known, { $id: `${prefix}KnownEvent` }), custom] })
}

const alias = <T>(name: string, of: Schema, description: string) => raw<T>({ $id: name, anyOf: [of], description })

/** The command line's list lines. */
export const TypedEventStreamEnvelope = envelope<EventEnvelope>('TypedEventStreamEnvelope', '', {})
export const TypedTaggedEventStreamEnvelope = envelope<TaggedEventEnvelope>(
  'TypedTaggedEventStreamEnvelope',
  'Tagged',
  {
    city: string({ description: 'Name of the city that it is about; `__supervisor__` for the supervisor itself.' }),
    log: string({
      description:
        'Name of the log that it stands in, a city or `__supervisor__`: `log` and `seq` together name the event. The log of the supervisor also has events about cities.',
    }),
  },
)
/** Data of the streams. */
export const EventStreamEnvelope = alias<EventEnvelope>(
  'EventStreamEnvelope',
  TypedEventStreamEnvelope,
  'Data of a frame of a city’s stream.',
)
export const TaggedEventStreamEnvelope = alias<TaggedEventEnvelope>(
  'TaggedEventStreamEnvelope',
  TypedTaggedEventStreamEnvelope,
  'Data of a frame of the stream of all cities.',
)
/** Items of the lists. */
export const WireEvent = alias<EventEnvelope>('WireEvent', TypedEventStreamEnvelope, 'Item of a city’s event list.')
export const WireTaggedEvent = alias<TaggedEventEnvelope>(
  'WireTaggedEvent',
  TypedTaggedEventStreamEnvelope,
  'Item of the event list of all cities.',
)

export const ListBodyWireEvent = listBody('ListBodyWireEvent', WireEvent)
export const SupervisorEventListOutputBody = component('SupervisorEventListOutputBody', {
  ...listFields(WireTaggedEvent),
  event_cursor: string({
    description: 'Composite cursor taken before the read: a stream after it loses nothing.',
  }),
})

export const EventEmitRequest = component('EventEmitRequest', {
  type: string({
    minLength: 1,
    maxLength: 128,
    pattern: EVENT_TYPE_PATTERN,
    examples: ['deploy.done'],
    description: 'Dotted lower case. Types under a prefix of the service are refused with 422.',
  }),
  actor: string({ minLength: 1, maxLength: 256, examples: ['ci'] }),
  subject: optional(string({ minLength: 1, maxLength: 256 })),
  message: optional(string({ maxLength: 16_384 })),
  payload: optional(JsonObject),
})
export type EventEmitRequest = Static<typeof EventEmitRequest>

export const EventEmitOutputBody = component('EventEmitOutputBody', {
  status: literal('recorded'),
  seq: integer({ minimum: 1 }),
})

/** An exact type, or a prefix: `bead.*`. */
const TypeFilter = string({ minLength: 1, maxLength: 128, pattern: '^[a-z0-9_-]+(\\.[a-z0-9_-]+)*(\\.\\*)?$' })
const FilterQuery = {
  type: optional(
    array(TypeFilter, {
      minItems: 1,
      maxItems: 50,
      description: 'Event type, repeatable; `bead.*` for all below a prefix.',
    }),
  ),
  actor: optional(string({ minLength: 1, maxLength: 256, description: 'Exact actor.' })),
  subject: optional(string({ minLength: 1, maxLength: 256, description: 'Exact subject.' })),
}
const ListQuery = {
  ...FilterQuery,
  payload_match: optional(
    array(string({ minLength: 2, maxLength: 1024, pattern: '^[^=]+=' }), {
      minItems: 1,
      maxItems: 20,
      description:
        '`key=value`, repeatable: only events whose payload has this value there; `bead.issue_type=bug` looks into nested objects. Several values of one key: any of them; several keys: all of them. A page may then hold few items or none and still have a `next_cursor`: each looks at a bounded part of the log.',
    }),
  ),
  since: optional(durationSchema('Only events at most this old.')),
  until: optional(durationSchema('Only events at least this old.')),
  ...PageQuery,
  ...OrderQuery,
}
const events = family(
  {
    name: 'Event bus',
    about: 'Everything that happens, per city and for all cities, as lists and as server-sent events.',
  },
  '/v0',
  { cityName: CityNameParam },
  {},
)
const cityEvents = events.at('/city/{cityName}/events', {})
export const listEvents = events.get('list-events', '/events', {
  summary: 'List events of all cities',
  description:
    'Every registered city, stopped ones too, and the supervisor itself; newest first, by time and then city.',
  query: object({
    ...ListQuery,
    city: optional(string({ minLength: 1, description: 'Only this city (events tagged with it).' })),
    after_cursor: optional(string({ description: 'Only events after this composite cursor.' })),
  }),
  replies: { 200: SupervisorEventListOutputBody },
  problems: ['invalid-cursor', 'cursor-expired', 'unavailable'],
})

export const listCityEvents = cityEvents.get('list-city-events', '', {
  summary: "List a city's events",
  description: 'Newest first.',
  query: object({
    ...ListQuery,
    after_seq: optional(string({ description: 'Only events after this sequence number.' })),
    ...BlockingQuery,
  }),
  replies: { 200: ListBodyWireEvent },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor', 'cursor-expired'],
})

export const emitEvent = cityEvents.post('emit-event', '', {
  summary: "Append an event to a city's log",
  description: 'The 201 means that it is durable. Types under a prefix of the service are refused.',
  body: EventEmitRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: EventEmitOutputBody },
})

export const eventOperations = [
  listEvents,
  events.get('stream-events', '/events/stream', {
    summary: 'Stream events of all cities',
    description:
      'Server-sent events. Without a cursor the stream starts at the head; `0` replays everything retained. Cities that come later are included.',
    query: object({
      ...FilterQuery,
      after_cursor: optional(string({ description: 'Composite cursor: `event_cursor` or a frame’s `id:`.' })),
    }),
    headers: ['Last-Event-ID'],
    replies: {},
    frames: [
      {
        event: 'tagged_event',
        data: TaggedEventStreamEnvelope,
        id: 'composite cursor after this event',
        description: 'One event.',
      },
      HEARTBEAT,
    ],
    problems: ['invalid-cursor', 'cursor-expired', 'no-event-providers', 'unavailable'],
  }),
  listCityEvents,
  emitEvent,
  cityEvents.get('stream-city-events', '/stream', {
    summary: "Stream a city's events",
    description: 'Server-sent events. Ends when the city stops running, after everything in its log was sent.',
    query: object({
      ...FilterQuery,
      after_seq: optional(string({ description: 'Sequence number; `0` replays everything retained.' })),
    }),
    headers: ['Last-Event-ID'],
    replies: {},
    frames: [
      { event: 'event', data: EventStreamEnvelope, id: 'sequence number', description: 'One event.' },
      HEARTBEAT,
    ],
    problems: ['invalid-cursor', 'cursor-expired'],
  }),
] as const
