/** Health, readiness and the machine-readable documents (sheet 01 §6; decisions 22, 23). */

import { family } from './base/family.ts'
import { CityNameParam, Timestamp } from './base/names.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  number,
  object,
  optional,
  record,
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
  cities_rejected: integer({
    minimum: 0,
    description: 'Running on another configuration than their files have now, which is not valid.',
  }),
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
export const CALLERS = ['owner', 'token', 'machine'] as const
export const ReadinessResponse = component('ReadinessResponse', {
  callers: choice(CALLERS, {
    description:
      'Who may use this API. `owner`: the user who runs it, root, and `allowed_uids`; `token`: whoever has a token; `machine`: every user of this machine, because its system does not tell them apart: start it with `--auth`.',
  }),
  items: record(ReadinessItem),
})

export const ProviderReadiness = component('ProviderReadiness', {
  display_name: string(),
  status: ProbeState,
  detail: optional(string()),
  observed_at: optional(Timestamp),
})
export const ProviderReadinessResponse = component('ProviderReadinessResponse', {
  providers: record(ProviderReadiness),
})

const fresh = optional(boolean({ description: 'Wait for a new probe instead of the last one (at most 5 s).' }))
const health = family(
  {
    name: 'Health and readiness',
    about: 'Whether the supervisor is well, and whether the providers and tools of the host can be used.',
  },
  '',
  { cityName: CityNameParam },
  {},
)
const readiness = health.with({
  query: object({
    items: optional(
      string({ minLength: 1, description: 'Comma-separated providers and tools.', examples: ['claude,git'] }),
    ),
    fresh,
  }),
  replies: { 200: ReadinessResponse },
  problems: ['invalid-request'],
})
const providerReadiness = health.with({
  query: object({
    providers: optional(
      string({ minLength: 1, description: 'Comma-separated providers.', examples: ['claude,shell'] }),
    ),
    fresh,
  }),
  replies: { 200: ProviderReadinessResponse },
  problems: ['invalid-request'],
})

export const getHealth = health.get('get-health', '/health', {
  summary: 'Is the supervisor well',
  description:
    '200 with `ok` or `degraded`; 503 only while it is shutting down. Where a token is needed, who has none, or one for a single city, learns of each check its name and status alone.',
  open: true,
  replies: { 200: HealthBody },
  problems: ['unavailable'],
})

export const getReadiness = readiness.get('get-readiness', '/v0/readiness', {
  summary: 'Can providers and tools of this host be used',
  description: 'Answers 200 whatever the probes say.',
})

export const getProviderReadiness = providerReadiness.get('get-provider-readiness', '/v0/provider-readiness', {
  summary: 'Can providers of this host be used',
  description: 'From the last probes of the host, with `observed_at`; `fresh=true` waits for new ones.',
})

export const getCityReadiness = readiness.get('get-city-readiness', '/v0/city/{cityName}/readiness', {
  summary: 'As /v0/readiness, for a running city',
  description: 'The same items and parameters; 404 while the city does not run.',
})

export const getMetrics = health.get('get-metrics', '/metrics', {
  summary: 'Metrics in Prometheus text format',
  description:
    'Counters and histograms of the supervisor, for scraping; their names start with `svc_`, those of the process with `process_` and `nodejs_`.',
  replies: { 200: string() },
  mediaType: 'text/plain',
})

export const healthOperations = [
  getHealth,
  getReadiness,
  getProviderReadiness,
  getCityReadiness,
  providerReadiness.get('get-city-provider-readiness', '/v0/city/{cityName}/provider-readiness', {
    summary: 'As /v0/provider-readiness, for a running city',
    description: 'The same items and parameters; 404 while the city does not run.',
  }),
  getMetrics,
] as const
