/** Cities: registry and lifecycle (spec §3, §4; sheet 01 §§2–5; decisions 12, 17–21). */

import { AsyncAcceptedResponse } from './base/accepted.ts'
import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { ConfigIssue } from './base/issue.ts'
import { CityName, CityNameParam, durationSchema, RequestId, Revision, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody, PageQuery } from './base/paging.ts'
import { ErrorDetail } from './base/problems.ts'
import {
  array,
  boolean,
  choice,
  component,
  described,
  integer,
  literal,
  object,
  optional,
  type Static,
  string,
} from './base/schema.ts'
import { BudgetStatus } from './sessions/usage.ts'

/** The five start-up phases, in order. */
export const CITY_PHASES = [
  'loading_config',
  'starting_bead_store',
  'resolving_formulas',
  'adopting_sessions',
  'starting_agents',
] as const
export type CityPhase = (typeof CITY_PHASES)[number]
export const CITY_STATES = [
  'queued',
  ...CITY_PHASES,
  'running',
  'stopping',
  'stopped',
  'init_failed',
  // Only where several hosts share a directory of cities (sheet 10).
  'unreachable',
  'fenced',
  'moving',
] as const
export const CityState = choice(CITY_STATES, { $id: 'CityState' })
export type CityState = Static<typeof CityState>

export const ConfigRejection = component(
  'ConfigRejection',
  {
    since: Timestamp,
    error: string({ description: 'The first error: file, line, column, and what is wrong there.' }),
    count: integer({ minimum: 1, description: 'Of all errors.' }),
  },
  { description: 'The files on disk are not valid: the configuration before them stays in force.' },
)
export type ConfigRejection = Static<typeof ConfigRejection>

export const CityInfo = component('CityInfo', {
  name: string(),
  uid: string({
    description: 'Stays with the directory, also over renames and hosts; empty until first known.',
  }),
  path: string({ description: 'Absolute path of the city directory.' }),
  running: boolean({ description: 'True: every route of the city is available.' }),
  status: CityState,
  error: optional(
    string({ description: 'Text of the last failed start, or that its directory is gone while it runs.' }),
  ),
  issues: optional(array(ErrorDetail, { description: 'What is wrong in the files of a city that cannot start.' })),
  config_rejected: optional(ConfigRejection),
  phases_completed: optional(array(choice(CITY_PHASES), { description: 'While starting.' })),
  attempts: optional(integer({ minimum: 0, description: 'Consecutive failed starts.' })),
  retry_at: optional(Timestamp),
  host: string({ description: 'Id of the host that has it.' }),
  observed_at: Timestamp,
})
export type CityInfo = Static<typeof CityInfo>

export const CityGetResponse = component('CityGetResponse', {
  name: string(),
  uid: string(),
  path: string(),
  running: boolean(),
  status: CityState,
  suspended: boolean({ description: 'Effective: the override, else `[workspace] suspended_on_start`.' }),
  uptime_sec: integer({ minimum: 0, description: 'Since the city became running.' }),
  version: string({ description: 'Version of the server.' }),
  provider: optional(string({ description: 'Default provider.' })),
  session_template: optional(string()),
  agent_count: integer({ minimum: 0 }),
  rig_count: integer({ minimum: 0 }),
  error: optional(string({ description: 'Its directory is gone.' })),
  config_rejected: optional(ConfigRejection),
  revision: Revision,
})
export type CityGetResponse = Static<typeof CityGetResponse>

const count = (description?: string) => integer({ minimum: 0, ...(description === undefined ? {} : { description }) })
export const CityConfigStatus = component('CityConfigStatus', {
  revision: string({ description: 'Of the configuration in force.' }),
  loaded_at: Timestamp,
  untrusted_packs: optional(
    array(string(), { description: 'Imports of which nothing is started until they are trusted.' }),
  ),
  last_error: optional(
    component(
      'ConfigLastError',
      {
        revision: string({ description: 'Hash of the files that were refused.' }),
        at: Timestamp,
        since: described(
          Timestamp,
          'When the files ceased to be in force; earlier than `at` where they were refused again.',
        ),
        issues: array(ConfigIssue),
      },
      {
        description: 'The files on disk are not valid, and not in force.',
      },
    ),
  ),
})
export type CityConfigStatus = Static<typeof CityConfigStatus>

export const StatusBody = component('StatusBody', {
  name: string(),
  path: string(),
  version: string(),
  uptime_sec: count(),
  suspended: boolean(),
  running: count('Live agent processes.'),
  agents: object({ total: count(), running: count(), suspended: count(), quarantined: count() }),
  rigs: object({ total: count(), suspended: count() }),
  work: object({ open: count(), in_progress: count(), ready: count() }),
  mail: object({ total: count(), unread: count() }),
  services: optional(
    object(
      { total: count(), ready: count(), degraded: count('They do not work, and are tried again.') },
      { description: 'Programs of the city that serve HTTP; absent: it has none.' },
    ),
  ),
  events: object({
    head_seq: count('Newest event.'),
    oldest_seq: count('Oldest retained event; 0 while the log is empty.'),
    bytes: count('Retained.'),
  }),
  runs: optional(
    object(
      { total: count(), bytes: count('On the disk.'), observed_at: Timestamp },
      { description: 'Output of processes of sessions, as `[retention]` saw it last; absent: it has not looked yet.' },
    ),
  ),
  budget: optional(described(BudgetStatus, 'What today cost, and what it may cost.')),
  config: CityConfigStatus,
  config_rejected: optional(ConfigRejection),
  observed_at: Timestamp,
})
export type StatusBody = Static<typeof StatusBody>

export const CityHealth = component('CityHealth', {
  status: choice(['ok', 'degraded'], { description: '`degraded` while its store takes no writes.' }),
  detail: optional(string({ description: 'Why it is degraded.' })),
  version: string(),
  city: string(),
  uptime_sec: count(),
  config_rejected: optional(ConfigRejection),
})

export const BOOTSTRAP_PROFILES = ['k8s-cell', 'kubernetes', 'kubernetes-cell', 'single-host-compat'] as const
export const CityCreateRequest = component('CityCreateRequest', {
  dir: string({
    minLength: 1,
    maxLength: 4096,
    examples: ['/tmp/svc-example/alpha'],
    description: "Absolute, or relative to the home of the supervisor's user; without `..`.",
  }),
  name: optional(CityName),
  provider: optional(
    string({
      minLength: 1,
      maxLength: 64,
      description: 'A built-in provider; `shell` where absent.',
      examples: ['shell'],
    }),
  ),
  start_command: optional(
    string({ minLength: 1, maxLength: 4096, description: 'A command of your own instead of a provider.' }),
  ),
  bootstrap_profile: optional(choice(BOOTSTRAP_PROFILES)),
})
export type CityCreateRequest = Static<typeof CityCreateRequest>

export const CityAdoptRequest = component('CityAdoptRequest', {
  path: string({
    minLength: 1,
    maxLength: 4096,
    description: 'Directory of an existing city; absolute, or relative to the home of the user.',
  }),
  name: optional(CityName),
})

export const CityPatchRequest = component('CityPatchRequest', {
  suspended: optional(boolean({ description: 'True: no agent of the city is started.' })),
})

export const CityStopRequest = component('CityStopRequest', {
  timeout: optional(durationSchema('How long to wait for a clean stop: at most 2m, 30s where absent.')),
  force: optional(boolean({ description: 'Kill at once.' })),
})
export const CityStopResult = component('CityStopResult', {
  status: literal('stopped'),
  city: string(),
  already_stopped: boolean(),
  sessions_stopped: count(),
  forced: boolean(),
})
export type CityStopResult = Static<typeof CityStopResult>

const cities = family(
  { name: 'Cities', about: 'The registry of cities and their lifecycle: create, adopt, start, stop, unregister.' },
  '/v0',
  { cityName: CityNameParam },
  {},
)
const city = cities.at('/city/{cityName}', {})
/** What works on a city that does not run. */
const registered = city.with({ city: 'registered', problems: ['city-not-found'] })
const request = registered.with({ headers: ['Idempotency-Key'], replies: { 202: AsyncAcceptedResponse } })

export const listCities = cities.get('list-cities', '/cities', {
  summary: 'List cities',
  description: 'Every registered city, by name, whatever its state.',
  query: object(PageQuery),
  replies: { 200: listBody('ListBodyCityInfo', CityInfo) },
  problems: ['invalid-cursor'],
})

export const adoptCity = cities.post('adopt-city', '/cities', {
  summary: 'Register an existing city directory',
  description: 'Ends as `city.create` does. Answers 200 with the city where it is registered already under that name.',
  body: CityAdoptRequest,
  headers: ['Idempotency-Key'],
  replies: { 200: CityInfo, 202: AsyncAcceptedResponse },
  problems: ['directory-not-found', 'city-name-taken', 'operation-in-progress', 'unsupported'],
  accepts: 'city.create',
  emits: ['city.created'],
})

export const createCity = cities.post('create-city', '/city', {
  summary: 'Create a city',
  description:
    'Scaffolds the directory and registers the city before the 202; the rest is the reconciler’s work. Exactly one terminal event follows: `request.result.city.create` or `request.failed`.',
  body: CityCreateRequest,
  headers: ['Idempotency-Key'],
  replies: { 202: AsyncAcceptedResponse },
  problems: [
    'city-already-initialized',
    'city-name-taken',
    'operation-in-progress',
    'missing-dependency',
    'provider-not-ready',
    'unsupported',
  ],
  accepts: 'city.create',
  emits: ['city.created'],
})

export const getCity = city.get('get-city', '', {
  summary: 'Get a city',
  description:
    'Its registry entry, lifecycle state and last error, while it runs; `GET /v0/cities` lists those that do not, too.',
  replies: { 200: CityGetResponse },
  replyHeaders: ['X-SVC-Index', 'ETag'],
})

export const patchCity = city.patch('patch-city', '', {
  summary: 'Suspend or resume a city',
  description: 'JSON Merge Patch; an empty object changes nothing.',
  body: CityPatchRequest,
  headers: ['If-Match'],
  replies: { 200: CityGetResponse },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  emits: ['city.suspended', 'city.resumed'],
})

export const getCityStatus = city.get('get-city-status', '/status', {
  summary: 'Counts of a city at one glance',
  description:
    'Numbers of agents, sessions, rigs, work and events; `index` and `wait` block until something has changed.',
  query: object(BlockingQuery),
  replies: { 200: StatusBody },
  replyHeaders: ['X-SVC-Index'],
})

export const startCity = request.post('start-city', '/start', {
  summary: 'Start a city',
  description: 'Ends in `request.result.city.start` or `request.failed`; at once where it is running already.',
  problems: ['operation-in-progress'],
  accepts: 'city.start',
  emits: ['city.started', 'city.start_failed'],
})

export const stopCity = registered.post('stop-city', '/stop', {
  summary: 'Stop a city',
  description: 'Waits until it is stopped. It stays registered, and stopped, also over restarts of the supervisor.',
  body: CityStopRequest,
  bodyOptional: true,
  replies: { 200: CityStopResult },
  problems: ['gateway-timeout', 'conflict-wrong-state'],
  emits: ['city.stopped'],
})

export const restartCity = request.post('restart-city', '/restart', {
  summary: 'Stop and start a city',
  description: 'Ends in `request.result.city.restart` or `request.failed`.',
  problems: ['operation-in-progress'],
  accepts: 'city.restart',
  emits: ['city.stopped', 'city.started', 'city.start_failed'],
})

export const unregisterCity = request.post('unregister-city', '/unregister', {
  summary: 'Unregister a city',
  description:
    'The registry entry is gone before the 202; the directory stays as it is. Exactly one terminal event follows: `request.result.city.unregister` or `request.failed`.',
  problems: ['unsupported'],
  accepts: 'city.unregister',
  emits: ['city.unregister_requested', 'city.stopped'],
})

// ---- events ---------------------------------------------------------------------------------------------------------

export const NoPayload = component('NoPayload', {})

export const CityLifecyclePayload = component('CityLifecyclePayload', { name: string(), path: string() })

const result = { request_id: RequestId, name: string(), path: string() }
const started = (id: string) => component(id, { ...result, config_rejected: optional(ConfigRejection) })

export const CityCreateSucceededPayload = component('CityCreateSucceededPayload', {
  ...result,
  config_rejected: optional(ConfigRejection),
  inside: optional(
    string({ description: 'Another city that it lies in: both watch and edit its files. Better moved.' }),
  ),
})
export const CityUnregisterSucceededPayload = component('CityUnregisterSucceededPayload', result)
export const CityStartSucceededPayload = started('CityStartSucceededPayload')
export const CityRestartSucceededPayload = started('CityRestartSucceededPayload')

export const CityStartFailedPayload = component('CityStartFailedPayload', {
  name: string(),
  error_code: string(),
  error_message: string(),
  attempt: integer({ minimum: 1 }),
  retry_at: optional(Timestamp),
})

export const CityStoppedPayload = component('CityStoppedPayload', {
  name: string(),
  path: string(),
  reason: choice(['stop', 'restart', 'unregister', 'directory_missing']),
})

export const SupervisorStartedPayload = component('SupervisorStartedPayload', {
  previous_exit: choice(['clean', 'crash', 'unknown']),
  version: string(),
  pid: integer(),
})

export const SupervisorShutdownPayload = component('SupervisorShutdownPayload', {
  source: choice(['signal']),
  signal: string(),
  mode: choice(['preserve_sessions']),
})

const reconcilerOf = { log: 'supervisor', emittedBy: 'reconciler' } as const
const reconciler = { log: 'city', emittedBy: 'reconciler' } as const

export const CITY_EVENT_TYPES = {
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
  'request.result.city.create': { payload: CityCreateSucceededPayload, ...reconcilerOf, when: 'the city is running' },
  'request.result.city.unregister': {
    payload: CityUnregisterSucceededPayload,
    ...reconcilerOf,
    when: "the city's controller has stopped",
  },
  'request.result.city.start': { payload: CityStartSucceededPayload, ...reconcilerOf, when: 'the city is running' },
  'request.result.city.restart': {
    payload: CityRestartSucceededPayload,
    ...reconcilerOf,
    when: 'the city is running again',
  },
  'city.started': { payload: CityLifecyclePayload, ...reconciler, when: 'the city became running' },
  'city.start_failed': { payload: CityStartFailedPayload, ...reconciler, when: 'an attempt to start the city failed' },
  'city.stopped': { payload: CityStoppedPayload, ...reconciler, when: 'the city stopped running' },
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
} as const satisfies EventTypes

export const cityOperations = [
  listCities,
  adoptCity,
  createCity,
  getCity,
  patchCity,
  getCityStatus,
  city.get('get-city-health', '/health', {
    summary: 'Is the city alive',
    description: 'How long it has run and whether its store takes writes; needs no provider.',
    replies: { 200: CityHealth },
  }),
  startCity,
  stopCity,
  restartCity,
  unregisterCity,
] as const
