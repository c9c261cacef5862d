/** Handlers of workspace services. */
import { MAX_WAIT_MS } from '../../contract/base/paging.ts'
import {
  DEFAULT_LOG_BYTES,
  type ServiceLog,
  type ServiceStatus,
  type serviceOperations,
} from '../../contract/services.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { deadline } from '../../kernel/deadline.ts'
import { durationMs, invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import { mountPath } from './launch.ts'
import { Log, type Part } from './log.ts'
import type { ServicesDeps } from './ports.ts'
import * as secrets from './secrets.ts'
import type { Service } from './service.ts'
import type { Services } from './services.ts'
import * as rows from './store.ts'

export interface ServiceCity {
  readonly name: string
  readonly path: string
  readonly store: Pick<Store, 'db' | 'log'>
  readonly services: Services
  readonly deps: ServicesDeps
}

/** To finish what runs, to end, and to be ready again. */
const SETTLED_MS = 60_000

export function createServiceHandlers({ clock, url }: { readonly clock: Clock; readonly url: () => string }) {
  const indexOf = ({ store }: ServiceCity) => ({ 'X-SVC-Index': String(store.log.head) })
  const wait = ({ store }: ServiceCity, query: { index?: number; wait?: string }, signal: AbortSignal) =>
    waitForChange(
      store.log,
      query,
      clock,
      signal,
      ({ type }) => type === 'service.state_changed' || type === 'config.reloaded',
    )
  const show = ({ name }: ServiceCity, service: Service) => statusOf(service, mountPath(name, service.name), url())

  /** As it is once it stays so. */
  const settled = async (city: ServiceCity, service: Service, signal: AbortSignal): Promise<Reply<ServiceStatus>> => {
    using limit = deadline(clock, SETTLED_MS, 'late', signal)
    try {
      await service.settled(limit.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!limit.signal.aborted) throw error
      throw problem('gateway-timeout', `service ${service.name} is still ${service.state}; it goes on`)
    }
    return ok(show(city, service))
  }

  return defineHandlers<typeof serviceOperations, ServiceCity>({
    'list-services': async (call) => {
      await wait(call.city, call.query, call.signal)
      const { city } = call
      const headers = indexOf(city)
      const items = city.services.all.map((service) => show(city, service))
      return ok({ items, total: items.length }, headers)
    },

    'get-service': async (call) => {
      call.city.services.need(call.params.name)
      await wait(call.city, call.query, call.signal)
      const { city } = call
      const headers = indexOf(city)
      return ok(show(city, city.services.need(call.params.name)), headers)
    },

    'restart-service': async ({ city, params, signal }) => {
      const service = city.services.need(params.name)
      requireTrusted(service)
      if (service.row.suspended)
        throw problem('conflict-wrong-state', `service ${service.name} is suspended: resume it`)
      service.restart()
      return settled(city, service, signal)
    },

    'suspend-service': async ({ city, params, signal }) => {
      const service = city.services.need(params.name)
      await service.suspend(true)
      return settled(city, service, signal)
    },

    'resume-service': async ({ city, params, signal }) => {
      const service = city.services.need(params.name)
      requireTrusted(service)
      await service.suspend(false)
      return settled(city, service, signal)
    },

    'get-service-log': async (call) => {
      const { params, query, signal, city } = call
      const { limit = DEFAULT_LOG_BYTES, offset } = query
      const waitMs = query.wait === undefined ? 0 : durationMs('query.wait', query.wait)
      if (waitMs > MAX_WAIT_MS) throw invalidField('query.wait', 'must be at most 2m', query.wait)
      const awaitsMore = waitMs > 0
      const read = () => readLog(call.city, params.name, { offset, limit, awaitsMore })
      const there = await read()
      if (!awaitsMore || there.text !== '') return ok(there)
      await moreThan(city.services.need(params.name), there.end_offset, waitMs, clock, signal)
      return ok(await read())
    },

    'list-service-secrets': ({ city, params }) => {
      const items = secrets
        .list(placeOf(city, params.name))
        .map(({ key, updatedAt }) => ({ key, updated_at: isoTime(updatedAt) }))
      return ok({ items, total: items.length })
    },

    'put-service-secret': ({ city, params, body }) => {
      const { key, updatedAt } = secrets.put(placeOf(city, params.name), params.key, body.value, city.deps.random)
      return ok({ key, updated_at: isoTime(updatedAt) })
    },

    'delete-service-secret': ({ city, params }) => {
      secrets.remove(placeOf(city, params.name), params.key)
      return ok({ status: 'deleted' as const, key: params.key })
    },
  })
}

async function readLog({ deps, path, store, services }: ServiceCity, name: string, part: Part): Promise<ServiceLog> {
  const { settings } = services.need(name)
  const hidden = secrets.valuesOf({ city: path, stateRoot: settings.stateRoot })
  return { service_name: name, ...(await new Log(deps, name).read(rows.runsOf(store.db, name), part, hidden)) }
}

const placeOf = ({ path, services }: ServiceCity, name: string) => ({
  city: path,
  stateRoot: services.need(name).settings.stateRoot,
})

function requireTrusted({ settings: { untrustedPack: pack } }: Service): void {
  if (pack !== undefined) throw problem('untrusted-pack', `the pack ${pack} is not trusted: svcctl pack trust ${pack}`)
}

/** Resolves when it has written more, or will not any more, or after the time. */
function moreThan(service: Service, offset: number, ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel()
      off()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const look = () => {
      if (service.logSize > offset || service.state === 'stopped') done()
    }
    const cancel = clock.after(ms, done)
    const off = service.watch(look)
    signal.addEventListener('abort', done, { once: true })
    look()
  })
}

function statusOf(service: Service, mount: string, url: string): ServiceStatus {
  const { settings, row, state, reason, message, pid, observedAt, nextStartAt } = service
  return {
    service_name: service.name,
    kind: 'proxy_process',
    mount_path: `/svc/${service.name}`,
    url: `${url}${mount}`,
    publish_mode: settings.direct ? 'direct' : 'private',
    state,
    reason,
    ...(message === undefined ? {} : { message }),
    ...(pid === undefined ? {} : { pid }),
    listen: settings.listen,
    allow_websockets: settings.websockets,
    sandbox: settings.sandbox,
    ...(settings.healthPath === undefined ? {} : { health_path: settings.healthPath }),
    state_root: settings.stateRoot,
    ...(settings.pack === undefined ? {} : { pack: settings.pack }),
    restarts: Math.max(row.generation - 1, 0),
    ...(row.started_at === undefined ? {} : { started_at: isoTime(row.started_at) }),
    ...(nextStartAt === undefined ? {} : { next_start_at: isoTime(nextStartAt) }),
    log_size: service.logSize,
    updated_at: isoTime(row.changed_at),
    ...(observedAt === undefined ? {} : { observed_at: isoTime(observedAt) }),
  }
}
