/** Health, readiness and the machine-readable documents (sheet 01 §6; decisions 22, 23). */
import Type, { type Static } from 'typebox'
import { CityNameParam, Timestamp } from './base/names.ts'
import { operation } from './base/operation.ts'

export const HealthCheck = Type.Object(
  {
    name: Type.String({ description: 'For example `event_loop`, `reconciler`, `log_lag`, `storage`.' }),
    status: Type.Enum(['ok', 'degraded']),
    value: Type.Optional(Type.Number({ description: 'In the unit of the name, for example milliseconds.' })),
    unit: Type.Optional(Type.String()),
    detail: Type.Optional(Type.String()),
  },
  { $id: 'HealthCheck', additionalProperties: false },
)
export type HealthCheck = Static<typeof HealthCheck>

export const HealthBody = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded']),
    version: Type.String(),
    uptime_sec: Type.Integer({ minimum: 0 }),
    cities_total: Type.Integer({ minimum: 0 }),
    cities_running: Type.Integer({ minimum: 0 }),
    cities_failed: Type.Integer({ minimum: 0 }),
    checks: Type.Array(HealthCheck),
  },
  { $id: 'HealthBody', additionalProperties: false },
)
export type HealthBody = Static<typeof HealthBody>

export const PROBE_STATES = [
  'configured',
  'needs_auth',
  'not_installed',
  'invalid_configuration',
  'probe_error',
  'unknown',
] as const
export const ProbeState = Type.Enum(PROBE_STATES, {
  $id: 'ProbeState',
  description: '`unknown`: not probed yet; everything else is what the probe saw at `observed_at`.',
})
export type ProbeState = Static<typeof ProbeState>

export const ReadinessItem = Type.Object(
  {
    name: Type.String(),
    kind: Type.Enum(['provider', 'tool']),
    display_name: Type.String(),
    status: ProbeState,
    detail: Type.Optional(Type.String()),
    observed_at: Type.Optional(Timestamp),
  },
  { $id: 'ReadinessItem', additionalProperties: false },
)
export type ReadinessItem = Static<typeof ReadinessItem>
export const ReadinessResponse = Type.Object(
  { items: Type.Unsafe<{ [name: string]: ReadinessItem }>({ type: 'object', additionalProperties: ReadinessItem }) },
  { $id: 'ReadinessResponse', additionalProperties: false },
)

export const ProviderReadiness = Type.Object(
  {
    display_name: Type.String(),
    status: ProbeState,
    detail: Type.Optional(Type.String()),
    observed_at: Type.Optional(Timestamp),
  },
  { $id: 'ProviderReadiness', additionalProperties: false },
)
export const ProviderReadinessResponse = Type.Object(
  {
    providers: Type.Unsafe<{ [name: string]: Static<typeof ProviderReadiness> }>({
      type: 'object',
      additionalProperties: ProviderReadiness,
    }),
  },
  { $id: 'ProviderReadinessResponse', additionalProperties: false },
)

const fresh = Type.Optional(
  Type.Boolean({ description: 'Wait for a new probe instead of the last one (at most 5 s).' }),
)
const readinessQuery = Type.Object(
  {
    items: Type.Optional(
      Type.String({ minLength: 1, description: 'Comma-separated providers and tools.', examples: ['claude,git'] }),
    ),
    fresh,
  },
  { additionalProperties: false },
)
const providerQuery = Type.Object(
  {
    providers: Type.Optional(
      Type.String({ minLength: 1, description: 'Comma-separated providers.', examples: ['claude,shell'] }),
    ),
    fresh,
  },
  { additionalProperties: false },
)
const params = Type.Object({ cityName: CityNameParam })
const family = 'Health and readiness'

export const getHealth = operation({
  id: 'get-health',
  method: 'GET',
  path: '/health',
  family,
  summary: 'Is the supervisor well',
  description: '200 with `ok` or `degraded`; 503 only while it is shutting down.',
  open: true,
  replies: { 200: HealthBody },
  problems: ['unavailable'],
})

export const getReadiness = operation({
  id: 'get-readiness',
  method: 'GET',
  path: '/v0/readiness',
  family,
  summary: 'Can providers and tools of this host be used',
  description: 'Answers 200 whatever the probes say.',
  query: readinessQuery,
  replies: { 200: ReadinessResponse },
  problems: ['invalid-request'],
})

export const getProviderReadiness = operation({
  id: 'get-provider-readiness',
  method: 'GET',
  path: '/v0/provider-readiness',
  family,
  summary: 'Can providers of this host be used',
  description: 'From the last probes of the host, with `observed_at`; `fresh=true` waits for new ones.',
  query: providerQuery,
  replies: { 200: ProviderReadinessResponse },
  problems: ['invalid-request'],
})

export const getCityReadiness = operation({
  id: 'get-city-readiness',
  method: 'GET',
  path: '/v0/city/{cityName}/readiness',
  family,
  summary: 'As /v0/readiness, for a running city',
  description: 'The same items and parameters; 404 while the city does not run.',
  params,
  query: readinessQuery,
  replies: { 200: ReadinessResponse },
  problems: ['invalid-request'],
})

export const getCityProviderReadiness = operation({
  id: 'get-city-provider-readiness',
  method: 'GET',
  path: '/v0/city/{cityName}/provider-readiness',
  family,
  summary: 'As /v0/provider-readiness, for a running city',
  description: 'The same items and parameters; 404 while the city does not run.',
  params,
  query: providerQuery,
  replies: { 200: ProviderReadinessResponse },
  problems: ['invalid-request'],
})

export const getMetrics = operation({
  id: 'get-metrics',
  method: 'GET',
  path: '/metrics',
  family,
  summary: 'Metrics in Prometheus text format',
  description:
    'Counters and histograms of the supervisor, for scraping; their names start with `svc_`, those of the process with `process_` and `nodejs_`.',
  replies: { 200: Type.String() },
  mediaType: 'text/plain',
  problems: [],
})

export const healthOperations = [
  getHealth,
  getReadiness,
  getProviderReadiness,
  getCityReadiness,
  getCityProviderReadiness,
  getMetrics,
] as const
