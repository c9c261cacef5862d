/** Health, readiness and the machine-readable documents (sheet 01 §6; decisions 22, 23). */

import { CityNameParam, Timestamp } from './base/names.ts'
import { operation } from './base/operation.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  number,
  object,
  optional,
  raw,
  type Static,
  string,
} from './base/schema.ts'

export const HealthCheck = component('HealthCheck', {
  name: string({ description: 'For example `event_loop`, `reconciler`, `log_lag`, `storage`.' }),
  status: choice(['ok', 'degraded']),
  value: optional(number({ description: 'In the unit of the name, for example milliseconds.' })),
  unit: optional(string()),
  detail: optional(string()),
})
export type HealthCheck = Static<typeof HealthCheck>

export const HealthBody = component('HealthBody', {
  status: choice(['ok', 'degraded']),
  version: string(),
  uptime_sec: integer({ minimum: 0 }),
  cities_total: integer({ minimum: 0 }),
  cities_running: integer({ minimum: 0 }),
  cities_failed: integer({ minimum: 0 }),
  checks: array(HealthCheck),
})
export type HealthBody = Static<typeof HealthBody>

export const PROBE_STATES = [
  'configured',
  'needs_auth',
  'not_installed',
  'invalid_configuration',
  'probe_error',
  'unknown',
] as const
export const ProbeState = choice(PROBE_STATES, {
  $id: 'ProbeState',
  description: '`unknown`: not probed yet; everything else is what the probe saw at `observed_at`.',
})
export type ProbeState = Static<typeof ProbeState>

export const ReadinessItem = component('ReadinessItem', {
  name: string(),
  kind: choice(['provider', 'tool']),
  display_name: string(),
  status: ProbeState,
  detail: optional(string()),
  observed_at: optional(Timestamp),
})
export type ReadinessItem = Static<typeof ReadinessItem>
export const ReadinessResponse = component('ReadinessResponse', {
  items: raw<{ [name: string]: ReadinessItem }>({ type: 'object', additionalProperties: ReadinessItem }),
})

export const ProviderReadiness = component('ProviderReadiness', {
  display_name: string(),
  status: ProbeState,
  detail: optional(string()),
  observed_at: optional(Timestamp),
})
export const ProviderReadinessResponse = component('ProviderReadinessResponse', {
  providers: raw<{ [name: string]: Static<typeof ProviderReadiness> }>({
    type: 'object',
    additionalProperties: ProviderReadiness,
  }),
})

const fresh = optional(boolean({ description: 'Wait for a new probe instead of the last one (at most 5 s).' }))
const readinessQuery = object({
  items: optional(
    string({ minLength: 1, description: 'Comma-separated providers and tools.', examples: ['claude,git'] }),
  ),
  fresh,
})
const providerQuery = object({
  providers: optional(string({ minLength: 1, description: 'Comma-separated providers.', examples: ['claude,shell'] })),
  fresh,
})
const params = object({ cityName: CityNameParam })
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
  replies: { 200: string() },
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
