/** Handlers of the cities family: one small function per operation. */

import { DEFAULT_LIMIT, MAX_WAIT_MS } from '../../contract/base/paging.ts'
import type {
  adoptCity,
  createCity,
  getCity,
  getCityHealth,
  getCityStatus,
  listCities,
  patchCity,
  restartCity,
  StatusBody,
  startCity,
  stopCity,
  unregisterCity,
} from '../../contract/cities.ts'
import { type Handler, ok } from '../../kernel/call.ts'
import { cityOf } from '../../kernel/caller.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { formatPageToken, parsePageToken } from '../../kernel/cursor.ts'
import { checkPrecondition, definitionHash } from '../../kernel/etag.ts'
import { durationMs, invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { isBlocking, waitForChange } from '../../kernel/waiting.ts'
import { type City, cityDetail, uptimeSeconds } from './city.ts'
import { readSuspension, writeSuspension } from './city-store.ts'
import type { Cities } from './service.ts'

export interface CityHandlersDeps {
  readonly cities: Cities
  readonly supervisor: Store
  readonly clock: Clock
  readonly version: string
  /** How much work a running city has. */
  readonly work: (name: string) => StatusBody['work']
  /** What its agents do; how many there are is known from its configuration. */
  readonly activity: (name: string) => CityActivity
  /** What registers and unregisters; undefined in test configurations only (spec §4: 501). */
  readonly initializer: Pick<Cities, 'create' | 'adopt' | 'unregister'> | undefined
}

export interface CityActivity {
  /** Sessions whose process runs. */
  readonly running: number
  readonly agents: Omit<StatusBody['agents'], 'total'>
  readonly rigs: Omit<StatusBody['rigs'], 'total'>
}

const DEFAULT_STOP_MS = 30_000

export function createCityHandlers({
  cities,
  supervisor,
  clock,
  version,
  work,
  activity,
  initializer,
}: CityHandlersDeps) {
  const wired = () => {
    if (initializer === undefined) throw problem('unsupported', 'this supervisor has no initializer wired')
    return initializer
  }
  const revisionOf = ({ uid, name, path, suspended, settings }: City): string =>
    definitionHash({ uid, name, path, suspended, provider: settings?.provider })
  const detail = (city: City & { readonly store: Store }) => {
    const revision = revisionOf(city)
    return ok(cityDetail(city, version, revision, clock.now()), {
      ETag: `"${revision}"`,
      'X-SVC-Index': String(city.store.log.head),
    })
  }

  const list: Handler<typeof listCities> = ({ query, caller }) => {
    const own = cityOf(caller)
    const items = cities.list().filter(({ name }) => own === undefined || name === own)
    const from = query.cursor === undefined ? '' : String(parsePageToken('city', query.cursor)[0] ?? '')
    const limit = query.limit || DEFAULT_LIMIT
    const rest = items.filter(({ name }) => name > from)
    const page = rest.slice(0, limit)
    const last = page.at(-1)
    const next = rest.length > limit && last !== undefined ? { next_cursor: formatPageToken('city', [last.name]) } : {}
    return ok({ items: page, total: items.length, ...next })
  }

  const create: Handler<typeof createCity> = ({ body, claim, signal }) =>
    supervisor.keys.once(claim, () => wired().create(body, claim, signal))

  const adopt: Handler<typeof adoptCity> = ({ body, claim }) =>
    supervisor.keys.once(claim, () => wired().adopt(body, claim))

  const get: Handler<typeof getCity> = ({ params }) => detail(cities.running(params.cityName))

  const patch: Handler<typeof patchCity> = async ({ params, body, header }) => {
    const city = cities.running(params.cityName)
    const { store } = city
    await store.db.write((tx) => {
      // What is stored, not what is remembered: an edit of the same group commit may have come before.
      const before = readSuspension(tx) ?? city.suspended
      checkPrecondition(header('if-match'), revisionOf({ ...city, suspended: before }))
      const { suspended } = body
      if (suspended === undefined) return
      writeSuspension(tx, suspended, clock.now())
      // An event only where something changed; the override is kept either way.
      if (suspended === before) return
      store.log.append(tx, {
        type: suspended ? 'city.suspended' : 'city.resumed',
        actor: 'api',
        subject: city.name,
        payload: {},
      })
      tx.afterCommit(() => cities.setSuspended(city, suspended))
    })
    return detail(city)
  }

  const statusNow = (name: string) => {
    const city = cities.running(name)
    const { log } = city.store
    const now = clock.now()
    const { running, agents, rigs } = activity(city.name)
    return ok(
      {
        name: city.name,
        path: city.path,
        version,
        uptime_sec: uptimeSeconds(city, now),
        suspended: city.suspended,
        running,
        agents: { total: city.settings?.agentCount ?? 0, ...agents },
        rigs: { total: city.settings?.rigCount ?? 0, ...rigs },
        work: work(city.name),
        mail: { total: 0, unread: 0 },
        events: { head_seq: log.head, oldest_seq: log.oldest, bytes: log.bytes },
        config: city.settings?.config ?? { revision: '', loaded_at: isoTime(now) },
        observed_at: isoTime(now),
      },
      { 'X-SVC-Index': String(log.head) },
    )
  }

  const status: Handler<typeof getCityStatus> = (call) => {
    const { params, query } = call
    const { store } = cities.running(params.cityName)
    if (!isBlocking(query)) return statusNow(params.cityName)
    return waitForChange(store.log, query, clock, call.signal, () => true).then(() => statusNow(params.cityName))
  }

  const health: Handler<typeof getCityHealth> = ({ params }) => {
    const city = cities.running(params.cityName)
    return ok({ status: 'ok', version, city: city.name, uptime_sec: uptimeSeconds(city, clock.now()) })
  }

  const start: Handler<typeof startCity> = ({ params, claim }) =>
    supervisor.keys.once(claim, () => cities.startCity(params.cityName, claim))

  const restart: Handler<typeof restartCity> = ({ params, claim }) =>
    supervisor.keys.once(claim, () => cities.restartCity(params.cityName, claim))

  const unregister: Handler<typeof unregisterCity> = ({ params, claim }) =>
    supervisor.keys.once(claim, () => wired().unregister(params.cityName, claim))

  const stop: Handler<typeof stopCity> = async ({ params, body, signal }) => {
    const timeoutMs = body?.timeout === undefined ? DEFAULT_STOP_MS : durationMs('body.timeout', body.timeout)
    if (timeoutMs > MAX_WAIT_MS) throw invalidField('body.timeout', 'must be at most 2m', body?.timeout)
    const deadline = new AbortController()
    const late = problem('gateway-timeout', `${params.cityName} is not stopped yet; the stop goes on`)
    const cancel = clock.after(timeoutMs, () => deadline.abort(late))
    try {
      return ok(
        await cities.stopCity(
          params.cityName,
          { force: body?.force ?? false },
          AbortSignal.any([signal, deadline.signal]),
        ),
      )
    } finally {
      cancel()
    }
  }

  return {
    'list-cities': list,
    'create-city': create,
    'adopt-city': adopt,
    'get-city': get,
    'patch-city': patch,
    'get-city-status': status,
    'get-city-health': health,
    'start-city': start,
    'restart-city': restart,
    'unregister-city': unregister,
    'stop-city': stop,
  }
}
