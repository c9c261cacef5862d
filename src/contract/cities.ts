/** Cities: registry and lifecycle (spec §3, §4; sheet 01 §§2–5; decisions 12, 17–21). */
import Type, { type Static } from 'typebox'
import { CityName, CityNameParam, durationSchema, Revision, Timestamp } from './base/names.ts'
import { operation } from './base/operation.ts'
import { BlockingQuery, listBody, PageQuery } from './base/paging.ts'
import { ErrorDetail } from './base/problems.ts'
import { ConfigIssue } from './event-types.ts'
import { AsyncAcceptedResponse } from './requests.ts'

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
export const CityState = Type.Enum(CITY_STATES, { $id: 'CityState' })
export type CityState = Static<typeof CityState>

export const CityInfo = Type.Object(
  {
    name: Type.String(),
    uid: Type.String({
      description: 'Stays with the directory, also over renames and hosts; empty until first known.',
    }),
    path: Type.String({ description: 'Absolute path of the city directory.' }),
    running: Type.Boolean({ description: 'True: every route of the city is available.' }),
    status: CityState,
    error: Type.Optional(Type.String({ description: 'Text of the last failed start.' })),
    issues: Type.Optional(
      Type.Array(ErrorDetail, { description: 'What is wrong in the files of a city that cannot start.' }),
    ),
    phases_completed: Type.Optional(Type.Array(Type.Enum(CITY_PHASES), { description: 'While starting.' })),
    attempts: Type.Optional(Type.Integer({ minimum: 0, description: 'Consecutive failed starts.' })),
    retry_at: Type.Optional(Timestamp),
    host: Type.String({ description: 'Id of the host that has it.' }),
    observed_at: Timestamp,
  },
  { $id: 'CityInfo', additionalProperties: false },
)
export type CityInfo = Static<typeof CityInfo>

export const CityGetResponse = Type.Object(
  {
    name: Type.String(),
    uid: Type.String(),
    path: Type.String(),
    running: Type.Boolean(),
    status: CityState,
    suspended: Type.Boolean({ description: 'Effective: the override, else `[workspace] suspended_on_start`.' }),
    uptime_sec: Type.Integer({ minimum: 0, description: 'Since the city became running.' }),
    version: Type.String({ description: 'Version of the server.' }),
    provider: Type.Optional(Type.String({ description: 'Default provider.' })),
    session_template: Type.Optional(Type.String()),
    agent_count: Type.Integer({ minimum: 0 }),
    rig_count: Type.Integer({ minimum: 0 }),
    revision: Revision,
  },
  { $id: 'CityGetResponse', additionalProperties: false },
)
export type CityGetResponse = Static<typeof CityGetResponse>

const count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) })
export const CityConfigStatus = Type.Object(
  {
    revision: Type.String({ description: 'Of the configuration in force.' }),
    loaded_at: Timestamp,
    last_error: Type.Optional(
      Type.Object(
        {
          revision: Type.String({ description: 'Hash of the files that were refused.' }),
          at: Timestamp,
          issues: Type.Array(ConfigIssue),
        },
        {
          $id: 'ConfigLastError',
          additionalProperties: false,
          description: 'The files on disk are not valid, and not in force.',
        },
      ),
    ),
  },
  { $id: 'CityConfigStatus', additionalProperties: false },
)
export type CityConfigStatus = Static<typeof CityConfigStatus>

export const StatusBody = Type.Object(
  {
    name: Type.String(),
    path: Type.String(),
    version: Type.String(),
    uptime_sec: count(),
    suspended: Type.Boolean(),
    running: count('Live agent processes.'),
    agents: Type.Object(
      { total: count(), running: count(), suspended: count(), quarantined: count() },
      { additionalProperties: false },
    ),
    rigs: Type.Object({ total: count(), suspended: count() }, { additionalProperties: false }),
    work: Type.Object({ open: count(), in_progress: count(), ready: count() }, { additionalProperties: false }),
    mail: Type.Object({ total: count(), unread: count() }, { additionalProperties: false }),
    events: Type.Object(
      {
        head_seq: count('Newest event.'),
        oldest_seq: count('Oldest retained event; 0 while the log is empty.'),
        bytes: count('Retained.'),
      },
      { additionalProperties: false },
    ),
    config: CityConfigStatus,
    observed_at: Timestamp,
  },
  { $id: 'StatusBody', additionalProperties: false },
)
export type StatusBody = Static<typeof StatusBody>

export const CityHealth = Type.Object(
  { status: Type.Literal('ok'), version: Type.String(), city: Type.String(), uptime_sec: count() },
  { $id: 'CityHealth', additionalProperties: false },
)

export const BOOTSTRAP_PROFILES = ['k8s-cell', 'kubernetes', 'kubernetes-cell', 'single-host-compat'] as const
export const CityCreateRequest = Type.Object(
  {
    dir: Type.String({
      minLength: 1,
      maxLength: 4096,
      examples: ['/tmp/svc-example/alpha'],
      description: "Absolute, or relative to the home of the supervisor's user; without `..`.",
    }),
    name: Type.Optional(CityName),
    provider: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'A built-in provider; `shell` where absent.',
        examples: ['shell'],
      }),
    ),
    start_command: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4096, description: 'A command of your own instead of a provider.' }),
    ),
    bootstrap_profile: Type.Optional(Type.Enum(BOOTSTRAP_PROFILES)),
  },
  { $id: 'CityCreateRequest', additionalProperties: false },
)
export type CityCreateRequest = Static<typeof CityCreateRequest>

export const CityAdoptRequest = Type.Object(
  {
    path: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: 'Directory of an existing city; absolute, or relative to the home of the user.',
    }),
    name: Type.Optional(CityName),
  },
  { $id: 'CityAdoptRequest', additionalProperties: false },
)

export const CityPatchRequest = Type.Object(
  { suspended: Type.Optional(Type.Boolean({ description: 'True: no agent of the city is started.' })) },
  { $id: 'CityPatchRequest', additionalProperties: false },
)

export const CityStopRequest = Type.Object(
  {
    timeout: Type.Optional(durationSchema('How long to wait for a clean stop: at most 2m, 30s where absent.')),
    force: Type.Optional(Type.Boolean({ description: 'Kill at once.' })),
  },
  { $id: 'CityStopRequest', additionalProperties: false },
)
export const CityStopResult = Type.Object(
  {
    status: Type.Literal('stopped'),
    city: Type.String(),
    already_stopped: Type.Boolean(),
    sessions_stopped: count(),
    forced: Type.Boolean(),
  },
  { $id: 'CityStopResult', additionalProperties: false },
)
export type CityStopResult = Static<typeof CityStopResult>

const params = Type.Object({ cityName: CityNameParam })

export const listCities = operation({
  id: 'list-cities',
  method: 'GET',
  path: '/v0/cities',
  family: 'Cities',
  summary: 'List cities',
  description: 'Every registered city, by name, whatever its state.',
  query: Type.Object(PageQuery, { additionalProperties: false }),
  replies: { 200: listBody('ListBodyCityInfo', CityInfo) },
  problems: ['invalid-cursor'],
})

export const adoptCity = operation({
  id: 'adopt-city',
  method: 'POST',
  path: '/v0/cities',
  family: 'Cities',
  summary: 'Register an existing city directory',
  description: 'Ends as `city.create` does. Answers 200 with the city where it is registered already under that name.',
  body: CityAdoptRequest,
  headers: ['Idempotency-Key'],
  replies: { 200: CityInfo, 202: AsyncAcceptedResponse },
  problems: ['directory-not-found', 'city-name-taken', 'operation-in-progress', 'unsupported'],
  emits: ['city.created', 'request.result.city.create', 'request.failed'],
})

export const createCity = operation({
  id: 'create-city',
  method: 'POST',
  path: '/v0/city',
  family: 'Cities',
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
  emits: ['city.created', 'request.result.city.create', 'request.failed'],
})

export const getCity = operation({
  id: 'get-city',
  method: 'GET',
  path: '/v0/city/{cityName}',
  family: 'Cities',
  summary: 'Get a city',
  description:
    'Its registry entry, lifecycle state and last error, while it runs; `GET /v0/cities` lists those that do not, too.',
  params,
  replies: { 200: CityGetResponse },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
})

export const patchCity = operation({
  id: 'patch-city',
  method: 'PATCH',
  path: '/v0/city/{cityName}',
  family: 'Cities',
  summary: 'Suspend or resume a city',
  description: 'JSON Merge Patch; an empty object changes nothing.',
  params,
  body: CityPatchRequest,
  headers: ['If-Match'],
  replies: { 200: CityGetResponse },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
  emits: ['city.suspended', 'city.resumed'],
})

export const getCityStatus = operation({
  id: 'get-city-status',
  method: 'GET',
  path: '/v0/city/{cityName}/status',
  family: 'Cities',
  summary: 'Counts of a city at one glance',
  description:
    'Numbers of agents, sessions, rigs, work and events; `index` and `wait` block until something has changed.',
  params,
  query: Type.Object(BlockingQuery, { additionalProperties: false }),
  replies: { 200: StatusBody },
  replyHeaders: ['X-SVC-Index'],
  problems: [],
})

export const getCityHealth = operation({
  id: 'get-city-health',
  method: 'GET',
  path: '/v0/city/{cityName}/health',
  family: 'Cities',
  summary: 'Is the city alive',
  description: 'How long it has run and whether its store takes writes; needs no provider.',
  params,
  replies: { 200: CityHealth },
  problems: [],
})

export const startCity = operation({
  id: 'start-city',
  method: 'POST',
  path: '/v0/city/{cityName}/start',
  family: 'Cities',
  summary: 'Start a city',
  description: 'Ends in `request.result.city.start` or `request.failed`; at once where it is running already.',
  city: 'registered',
  params,
  headers: ['Idempotency-Key'],
  replies: { 202: AsyncAcceptedResponse },
  problems: ['city-not-found', 'operation-in-progress'],
  emits: ['city.started', 'city.start_failed', 'request.result.city.start', 'request.failed'],
})

export const stopCity = operation({
  id: 'stop-city',
  method: 'POST',
  path: '/v0/city/{cityName}/stop',
  family: 'Cities',
  summary: 'Stop a city',
  description: 'Waits until it is stopped. It stays registered, and stopped, also over restarts of the supervisor.',
  city: 'registered',
  params,
  body: CityStopRequest,
  bodyOptional: true,
  replies: { 200: CityStopResult },
  problems: ['city-not-found', 'gateway-timeout'],
  emits: ['city.stopped'],
})

export const restartCity = operation({
  id: 'restart-city',
  method: 'POST',
  path: '/v0/city/{cityName}/restart',
  family: 'Cities',
  summary: 'Stop and start a city',
  description: 'Ends in `request.result.city.restart` or `request.failed`.',
  city: 'registered',
  params,
  headers: ['Idempotency-Key'],
  replies: { 202: AsyncAcceptedResponse },
  problems: ['city-not-found', 'operation-in-progress'],
  emits: ['city.stopped', 'city.started', 'city.start_failed', 'request.result.city.restart', 'request.failed'],
})

export const unregisterCity = operation({
  id: 'unregister-city',
  method: 'POST',
  path: '/v0/city/{cityName}/unregister',
  family: 'Cities',
  summary: 'Unregister a city',
  description:
    'The registry entry is gone before the 202; the directory stays as it is. Exactly one terminal event follows: `request.result.city.unregister` or `request.failed`.',
  city: 'registered',
  params,
  headers: ['Idempotency-Key'],
  replies: { 202: AsyncAcceptedResponse },
  problems: ['city-not-found', 'unsupported'],
  emits: ['city.unregister_requested', 'city.stopped', 'request.result.city.unregister', 'request.failed'],
})

export const cityOperations = [
  listCities,
  adoptCity,
  createCity,
  getCity,
  patchCity,
  getCityStatus,
  getCityHealth,
  startCity,
  stopCity,
  restartCity,
  unregisterCity,
] as const
