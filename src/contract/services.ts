/** Workspace services: programs of a city that serve HTTP, and are reached through it (decisions 163 to 168, 178). */

import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityNameParam, durationSchema, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody } from './base/paging.ts'
import { boolean, choice, component, integer, literal, object, optional, type Static, string } from './base/schema.ts'

export const SERVICE_STATES = ['starting', 'ready', 'degraded', 'suspended', 'stopping', 'stopped'] as const
export type ServiceState = (typeof SERVICE_STATES)[number]
export const PUBLISH_MODES = ['private', 'direct'] as const
export const SERVICE_LISTENS = ['socket', 'port'] as const

/** Why a service is in the state that it is in. */
export const SERVICE_REASONS = [
  'first_start',
  'city_started',
  'restart',
  'reconfigured',
  'resumed',
  'healthy',
  'process_exited',
  'unhealthy',
  'not_ready',
  'start_failed',
  'untrusted_pack',
  'suspended',
  'city_stopped',
  'removed',
] as const
export type ServiceReason = (typeof SERVICE_REASONS)[number]

const reason = choice(SERVICE_REASONS, {
  description:
    '`process_exited`: it ended by itself. `unhealthy`: three looks in a row failed. `not_ready`: it did not listen, or was not well, in time. `start_failed`: it could not be started. `untrusted_pack`: it is of a pack that nobody has trusted.',
})
const count = (description: string) => integer({ minimum: 0, description })
const state = choice(SERVICE_STATES, {
  description:
    '`starting`: requests wait until it is ready. `degraded`: it does not work, and is tried again; requests get 503. `suspended`: by a person. `stopping`: it is being ended. `stopped`: with its city, or because it is declared no more.',
})

export const ServiceStatus = component('ServiceStatus', {
  service_name: string({ description: 'Unique in the city.' }),
  kind: literal('proxy_process'),
  mount_path: string({ description: 'Path below which it is reached, in its city.', examples: ['/svc/page'] }),
  url: string({ description: 'Where this server serves it.' }),
  publish_mode: choice(PUBLISH_MODES, {
    description: '`private`: for whoever may use this API. `direct`: for everybody who reaches the port.',
  }),
  state,
  reason: optional(reason),
  message: optional(string({ description: 'More about it, for people.' })),
  pid: optional(integer({ minimum: 1, description: 'Of its process, while it runs.' })),
  listen: choice(SERVICE_LISTENS, { description: 'Whether it listens on a socket or on a port.' }),
  allow_websockets: boolean(),
  sandbox: boolean({ description: 'Its pages run in a sandbox of the browser.' }),
  health_path: optional(
    string({ description: 'Path of its own that is looked at; absent: that it takes connections.' }),
  ),
  state_root: string({ description: 'Directory of what it keeps: `data`, `run`, `logs` and `secrets` in it.' }),
  pack: optional(string({ description: 'Import that brings it; absent: the files of the city.' })),
  restarts: count('How often it was started again, since the city has it.'),
  started_at: optional({ ...Timestamp, description: 'When its process was started.' }),
  next_start_at: optional({ ...Timestamp, description: 'When it is tried again.' }),
  log_size: count('Bytes that it has written; `offset` of what comes next in its log.'),
  updated_at: { ...Timestamp, description: 'When its state changed last.' },
  observed_at: optional({ ...Timestamp, description: 'When it was looked at last.' }),
})
export type ServiceStatus = Static<typeof ServiceStatus>

export const MAX_LOG_BYTES = 1024 * 1024
export const DEFAULT_LOG_BYTES = 64 * 1024
export const ServiceLog = component('ServiceLog', {
  service_name: string(),
  start_offset: count('Oldest byte that is kept.'),
  offset: count('Of the first byte of `text`.'),
  next_offset: count('Where to read on.'),
  end_offset: count('Where the next byte comes that it writes.'),
  text: string({
    description:
      'What it wrote, to both its outputs. What is no UTF-8 is replaced, and so is each byte of a secret that it has, from four bytes on.',
  }),
})
export type ServiceLog = Static<typeof ServiceLog>

export const SECRET_KEY = '^[A-Za-z0-9_][A-Za-z0-9_.-]*$'
export const MAX_SECRET_KEY = 128
/** Of one secret, in characters. */
export const MAX_SECRET = 65_536

export const ServiceSecret = component('ServiceSecret', {
  key: string({ description: 'Name of its file in the directory of secrets.' }),
  updated_at: Timestamp,
})
export type ServiceSecret = Static<typeof ServiceSecret>

export const ServiceSecretRequest = component('ServiceSecretRequest', {
  value: string({
    minLength: 1,
    maxLength: MAX_SECRET,
    writeOnly: true,
    description: 'Never shown again.',
    examples: ['s3cret'],
  }),
})
export const DeletedServiceSecret = component('DeletedServiceSecret', { status: literal('deleted'), key: string() })

const services = family(
  { name: 'Services', about: 'Programs of a city that serve HTTP, and are reached through it.' },
  '/v0/city/{cityName}/services',
  {
    cityName: CityNameParam,
    name: string({ minLength: 1, maxLength: 256, description: 'Name of the service.', examples: ['page'] }),
    key: string({
      pattern: SECRET_KEY,
      maxLength: MAX_SECRET_KEY,
      description: 'Name of the secret: letters, digits, `_`, `.` and `-`, not starting with a dot.',
      examples: ['password'],
    }),
  },
  {},
)
const one = services.at('/{name}', { problems: ['service-not-found'] })
const acting = one.with({ replies: { 200: ServiceStatus }, emits: ['service.state_changed'] })

export const listServices = services.get('list-services', '', {
  summary: 'List services',
  description: 'By name. With `index` it waits until one of them changes.',
  query: object(BlockingQuery),
  replies: { 200: listBody('ListBodyServiceStatus', ServiceStatus) },
  replyHeaders: ['X-SVC-Index'],
})

export const getService = one.get('get-service', '', {
  summary: 'Get a service',
  description: 'Its process, and how it is. With `index` it waits until that changes.',
  query: object(BlockingQuery),
  replies: { 200: ServiceStatus },
  replyHeaders: ['X-SVC-Index'],
})

export const serviceOperations = [
  listServices,
  getService,
  acting.post('restart-service', '/restart', {
    summary: 'Restart a service',
    description:
      'New requests wait, running ones have 10 s to finish, then the process is ended and started again. Answered when it is `ready`, or `degraded`; with 504 where that takes longer than a minute, and it goes on.',
    problems: ['conflict-wrong-state', 'untrusted-pack', 'gateway-timeout'],
  }),
  acting.post('suspend-service', '/suspend', {
    summary: 'Suspend a service',
    description:
      'Running requests have 2 s to finish, then its process is ended; it stays so, also when the city starts anew, until it is resumed. Answered when it is `suspended`.',
    problems: ['gateway-timeout'],
  }),
  acting.post('resume-service', '/resume', {
    summary: 'Resume a service',
    description: 'Starts it again, where it is suspended. Answered when it is `ready`, or `degraded`.',
    problems: ['untrusted-pack', 'gateway-timeout'],
  }),
  one.get('get-service-log', '/log', {
    summary: 'Read what a service wrote',
    description:
      'By offset, which goes on over its restarts. The last of it is kept. With `wait` it waits for more where there is nothing behind `offset` yet; a character whose end is still to come is left for the next read.',
    query: object({
      offset: optional(
        integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'First byte; absent: `limit` bytes before the end.',
        }),
      ),
      limit: optional(
        integer({
          minimum: 1,
          maximum: MAX_LOG_BYTES,
          default: DEFAULT_LOG_BYTES,
          description: 'Bytes at most.',
        }),
      ),
      wait: optional(durationSchema('How long to wait for more: at most 2m.')),
    }),
    replies: { 200: ServiceLog },
  }),
  one.get('list-service-secrets', '/secrets', {
    summary: 'List the secrets of a service',
    description: 'Their names, never what they are.',
    replies: { 200: listBody('ListBodyServiceSecret', ServiceSecret) },
    problems: ['conflict-wrong-state'],
  }),
  one.put('put-service-secret', '/secrets/{key}', {
    summary: 'Set a secret of a service',
    description:
      'Written as a file of that name, readable for its owner alone, into the directory that `SVC_SERVICE_SECRETS_DIR` of its process names. The process is not restarted: it reads the file when it likes; `restart` makes it begin anew.',
    body: ServiceSecretRequest,
    replies: { 200: ServiceSecret },
    problems: ['conflict-wrong-state'],
  }),
  one.delete('delete-service-secret', '/secrets/{key}', {
    summary: 'Delete a secret of a service',
    description: 'Its file goes. The process may still know it: `restart` makes it begin anew.',
    replies: { 200: DeletedServiceSecret },
    problems: ['secret-not-found', 'conflict-wrong-state'],
  }),
] as const

export const ServiceStatePayload = component('ServiceStatePayload', {
  service: string(),
  from: state,
  to: state,
  reason,
  message: optional(string()),
})

export const SERVICE_EVENT_TYPES = {
  'service.state_changed': {
    payload: ServiceStatePayload,
    log: 'city',
    emittedBy: 'services',
    subject: 'its name',
    when: 'a service is in another state; not at each look, and not at each try',
  },
} as const satisfies EventTypes
