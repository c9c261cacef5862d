/** What the supervisor shows of itself and of all its cities. */
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { City } from '../../modules/cities/city.ts'
import type { HealthDeps } from '../../modules/health/handlers.ts'
import type { Ledger } from '../../modules/requests/handlers.ts'
import type { Service } from './running.ts'
import { slowestPatrolMs } from './sessions.ts'

export const ledgersOf = ({ store, cities }: Service): { readonly ledgers: () => readonly Ledger[] } => ({
  ledgers: () => [
    { name: SUPERVISOR_SOURCE, requests: store.requests },
    ...cities.all().map((city) => ({ name: city.name, requests: city.store?.requests })),
  ],
})

export function healthHost(service: Service): HealthDeps {
  const { clock, version, startedAt, readiness, metrics, draining, eventLoopMs, store, cities, callers } = service
  return {
    clock,
    version,
    startedAtMonotonic: startedAt,
    readiness,
    metrics,
    draining,
    callers,
    vitals: {
      eventLoopMs,
      reconcilerAgeMs: () => Math.max(cities.patrolAgeMs, slowestPatrolMs(cities.runs())),
      logLagMs: () => Math.max(store.db.waitingMs, ...cities.all().map((city) => city.store?.db.waitingMs ?? 0)),
      storageFault: () => storageFault(service),
    },
    cities: { counts: () => countCities(service) },
  }
}

function storageFault({ store, cities }: Service): string | undefined {
  const own = store.db.failure === undefined ? [] : [`supervisor: ${store.db.failure}`]
  const faults = [...own, ...cities.storageFailures()]
  return faults.length === 0 ? undefined : faults.join('; ')
}

function countCities({ cities }: Service) {
  const all = cities.all()
  const count = (of: (city: City) => boolean): number => all.filter(of).length
  return {
    total: all.length,
    running: count(({ state }) => state === 'running'),
    failed: count(({ state }) => state === 'init_failed'),
    rejected: count((city) => city.state === 'running' && city.settings?.config.last_error !== undefined),
  }
}
