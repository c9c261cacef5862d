/**
 * The event catalogue: every type that exists, its payload, who emits it (sheet 02 §2, decisions 12–14). A family adds
 * its own types here; everything else is a custom type, which clients may emit unless its prefix is reserved.
 */
import Type, { type Static, type TSchema } from 'typebox'
import { RequestId, Timestamp } from './names.ts'
import { RequestOperation } from './requests.ts'

/** Prefixes that only the service may emit, also for families still to come (decision 14). */
export const RESERVED_PREFIXES = [
  'request.',
  'city.',
  'supervisor.',
  'config.',
  'pack.',
  'rig.',
  'provider.',
  'agent.',
  'session.',
  'worker.',
  'bead.',
  'convoy.',
  'mail.',
  'molecule.',
  'formula.',
  'order.',
  'participant.',
  'transcript.',
  'adapter.',
  'extmsg.',
  'service.',
  'execution.',
  'nudge.',
  'wait.',
  'gate.',
  'work.',
  'need.',
  'usage.',
  'budget.',
] as const

export const EVENT_TYPE_PATTERN = '^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$'

export const NoPayload = Type.Object({}, { $id: 'NoPayload', additionalProperties: false })

export const CityLifecyclePayload = Type.Object(
  { name: Type.String(), path: Type.String() },
  { $id: 'CityLifecyclePayload', additionalProperties: false },
)

const cityResult = (id: string) =>
  Type.Object(
    { request_id: RequestId, name: Type.String(), path: Type.String() },
    { $id: id, additionalProperties: false },
  )
export const CityCreateSucceededPayload = cityResult('CityCreateSucceededPayload')
export const CityUnregisterSucceededPayload = cityResult('CityUnregisterSucceededPayload')
export const CityStartSucceededPayload = cityResult('CityStartSucceededPayload')
export const CityRestartSucceededPayload = cityResult('CityRestartSucceededPayload')

export const RequestFailedPayload = Type.Object(
  {
    request_id: RequestId,
    operation: RequestOperation,
    error_code: Type.String({ description: 'snake_case; `interrupted` where a crash made it impossible to go on.' }),
    error_message: Type.String(),
    retrying: Type.Optional(Type.Boolean({ description: 'True: the city stays registered and is tried again.' })),
    retry_at: Type.Optional(Timestamp),
  },
  { $id: 'RequestFailedPayload', additionalProperties: false },
)
export type RequestFailedPayload = Static<typeof RequestFailedPayload>

export const CityStartFailedPayload = Type.Object(
  {
    name: Type.String(),
    error_code: Type.String(),
    error_message: Type.String(),
    attempt: Type.Integer({ minimum: 1 }),
    retry_at: Type.Optional(Timestamp),
  },
  { $id: 'CityStartFailedPayload', additionalProperties: false },
)

export const CityStoppedPayload = Type.Object(
  {
    name: Type.String(),
    path: Type.String(),
    reason: Type.Enum(['stop', 'restart', 'unregister', 'directory_missing']),
  },
  { $id: 'CityStoppedPayload', additionalProperties: false },
)

export const SupervisorStartedPayload = Type.Object(
  { previous_exit: Type.Enum(['clean', 'crash', 'unknown']), version: Type.String(), pid: Type.Integer() },
  { $id: 'SupervisorStartedPayload', additionalProperties: false },
)

export const SupervisorShutdownPayload = Type.Object(
  { source: Type.Enum(['signal']), signal: Type.String(), mode: Type.Enum(['preserve_sessions']) },
  { $id: 'SupervisorShutdownPayload', additionalProperties: false },
)

interface EventTypeEntry {
  readonly payload: TSchema
  /** Whose log it is in (decision 12). */
  readonly log: 'supervisor' | 'city'
  readonly emittedBy: string
  readonly when: string
}

export const EVENT_TYPES = {
  'supervisor.started': {
    payload: SupervisorStartedPayload,
    log: 'supervisor',
    emittedBy: 'supervisor',
    when: 'once per start, before anything else',
  },
  'supervisor.shutdown_requested': {
    payload: SupervisorShutdownPayload,
    log: 'supervisor',
    emittedBy: 'supervisor',
    when: 'on SIGINT, SIGTERM or SIGHUP, before cities end',
  },
  'city.created': {
    payload: CityLifecyclePayload,
    log: 'supervisor',
    emittedBy: 'create and adopt',
    when: 'with the registry row, before the 202',
  },
  'city.unregister_requested': {
    payload: CityLifecyclePayload,
    log: 'supervisor',
    emittedBy: 'unregister',
    when: 'before the registry row goes, before the 202',
  },
  'request.result.city.create': {
    payload: CityCreateSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running',
  },
  'request.result.city.unregister': {
    payload: CityUnregisterSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: "the city's controller has stopped",
  },
  'request.result.city.start': {
    payload: CityStartSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running',
  },
  'request.result.city.restart': {
    payload: CityRestartSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running again',
  },
  'request.failed': {
    payload: RequestFailedPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'an accepted request failed; match payload.request_id',
  },
  'city.started': {
    payload: CityLifecyclePayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'the city became running',
  },
  'city.start_failed': {
    payload: CityStartFailedPayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'an attempt to start the city failed',
  },
  'city.stopped': {
    payload: CityStoppedPayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'the city stopped running',
  },
  'city.suspended': {
    payload: NoPayload,
    log: 'city',
    emittedBy: 'PATCH /v0/city/{cityName}',
    when: 'the city became suspended',
  },
  'city.resumed': {
    payload: NoPayload,
    log: 'city',
    emittedBy: 'PATCH /v0/city/{cityName}',
    when: 'the city is no longer suspended',
  },
} as const satisfies Record<string, EventTypeEntry>

export type EventType = keyof typeof EVENT_TYPES
export type PayloadOf<T extends EventType> = Static<(typeof EVENT_TYPES)[T]['payload']>
export const EVENT_TYPE_NAMES = Object.keys(EVENT_TYPES).filter((name): name is EventType => name in EVENT_TYPES)

/** True for a type that only the service may emit. */
export function isReservedType(type: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => type.startsWith(prefix) || type === prefix.slice(0, -1))
}
