/** GET /health, readiness at both scopes, GET /metrics. */
import type { CALLERS, healthOperations, ReadinessItem } from '../../contract/health.ts'
import { defineHandlers, ok, RawBody } from '../../kernel/call.ts'
import { type Caller, cityOf } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { problem } from '../../kernel/problem.ts'
import type { Metrics } from './metrics.ts'
import { DEFAULT_ITEMS, DEFAULT_PROVIDERS, parseNames, type Readiness } from './readiness.ts'
import { overallStatus, type VitalReadings, vitalChecks } from './vitals.ts'

export interface HealthDeps {
  readonly clock: Clock
  readonly version: string
  /** From the start of the process. */
  readonly startedAtMonotonic: number
  readonly readiness: Pick<Readiness, 'items' | 'providers' | 'read' | 'refresh'>
  readonly metrics: Pick<Metrics, 'scrape' | 'contentType'>
  readonly vitals: VitalReadings
  readonly cities: { counts(): CityCounts }
  readonly draining: () => boolean
  readonly callers: (typeof CALLERS)[number]
}

interface CityCounts {
  readonly total: number
  readonly running: number
  readonly failed: number
  readonly rejected: number
}

interface Asked<Q> {
  readonly query: Q
  readonly signal: AbortSignal
}

export function createHealthHandlers(deps: HealthDeps) {
  const { readiness, metrics } = deps
  const look = (names: readonly string[], fresh: boolean | undefined, signal: AbortSignal) =>
    fresh === true ? readiness.refresh(names, signal) : readiness.read(names)

  // A city's answer is the host's: nothing of a probe belongs to a city.
  const items = async ({ query, signal }: Asked<{ readonly items?: string; readonly fresh?: boolean }>) => {
    const names =
      query.items === undefined
        ? known(DEFAULT_ITEMS, readiness.items)
        : parseNames('items', query.items, readiness.items)
    const found = await look(names, query.fresh, signal)
    return ok({ callers: deps.callers, items: Object.fromEntries(found.map((item) => [item.name, item])) })
  }
  const providers = async ({ query, signal }: Asked<{ readonly providers?: string; readonly fresh?: boolean }>) => {
    const { providers: text } = query
    const names =
      text === undefined
        ? known(DEFAULT_PROVIDERS, readiness.providers)
        : parseNames('providers', text, readiness.providers)
    const found = await look(names, query.fresh, signal)
    return ok({ providers: Object.fromEntries(found.map((item) => [item.name, providerOf(item)])) })
  }
  return defineHandlers<typeof healthOperations>({
    'get-health': ({ caller }) => health(deps, knowsAll(caller)),
    'get-readiness': items,
    'get-provider-readiness': providers,
    'get-city-readiness': items,
    'get-city-provider-readiness': providers,
    'get-metrics': () => ok(new RawBody(metrics.scrape(), metrics.contentType)),
  })
}

/** What is wrong says names and paths of cities. */
const knowsAll = (caller: Caller): boolean => caller.kind !== 'stranger' && cityOf(caller) === undefined

function health({ clock, version, startedAtMonotonic, vitals, cities, draining }: HealthDeps, all: boolean) {
  if (draining()) throw problem('unavailable', 'the supervisor is shutting down')
  const checks = vitalChecks(vitals)
  const { total, running, failed, rejected } = cities.counts()
  const uptimeMs = clock.monotonic() - startedAtMonotonic
  return ok({
    status: overallStatus(checks),
    version,
    uptime_sec: Math.max(0, Math.floor(uptimeMs / 1000)),
    cities_total: total,
    cities_running: running,
    cities_failed: failed,
    cities_rejected: rejected,
    checks: all ? checks : checks.map(({ name, status }) => ({ name, status })),
  })
}

/** Defaults that this host has no probe for are left out. */
const known = (names: readonly string[], all: ReadonlySet<string>) => names.filter((name) => all.has(name))

function providerOf({ name: _, kind: __, ...rest }: ReadinessItem): Omit<ReadinessItem, 'name' | 'kind'> {
  return rest
}
