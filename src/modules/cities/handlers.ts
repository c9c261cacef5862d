/** Handlers of the cities family: one small function per operation. */

import { MAX_WAIT_MS } from '../../contract/base/paging.ts'
import type { cityOperations, StatusBody } from '../../contract/cities.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { cityOf } from '../../kernel/caller.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { checkPrecondition, definitionHash } from '../../kernel/etag.ts'
import { Page } from '../../kernel/page.ts'
import { durationMs, invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { isBlocking, waitForChange } from '../../kernel/waiting.ts'
import { type City, cityDetail, configRejection, uptimeSeconds } from './city.ts'
import { readSuspension, writeSuspension } from './city-store.ts'
import type { Cities } from './service.ts'

export interface CityHandlersDeps {
  readonly cities: Pick<Cities, 'list' | 'startCity' | 'restartCity' | 'stopCity' | 'setSuspended'>
  readonly supervisor: Store
  readonly clock: Clock
  readonly version: string
  /** What registers and unregisters; undefined in test configurations only (spec §4: 501). */
  readonly initializer: Pick<Cities, 'create' | 'adopt' | 'unregister'> | undefined
}

/** A running city. */
export interface CityRoom {
  /** What is known of it, as it is at the moment. */
  readonly record: City
  readonly store: Store
  /** How much work it has. */
  work(): StatusBody['work']
  /** How much mail is in its mailboxes. */
  mail(): StatusBody['mail']
  /** How its services are; undefined: it has none. */
  services(): StatusBody['services'] | undefined
  /** What its agents do; how many there are is known from its configuration. */
  activity(): CityActivity
}

export interface CityActivity {
  /** Sessions whose process runs. */
  readonly running: number
  readonly agents: Omit<StatusBody['agents'], 'total'>
  readonly rigs: Omit<StatusBody['rigs'], 'total'>
  /** What their processes have left on the disk; undefined: nobody has looked yet. */
  readonly runs: StatusBody['runs'] | undefined
  readonly budget: StatusBody['budget'] | undefined
}

const DEFAULT_STOP_MS = 30_000

export function createCityHandlers({ cities, supervisor, clock, version, initializer }: CityHandlersDeps) {
  const wired = () => {
    if (initializer === undefined) throw problem('unsupported', 'this supervisor has no initializer wired')
    return initializer
  }
  const revisionOf = ({ uid, name, path, suspended, settings }: City): string =>
    definitionHash({ uid, name, path, suspended, provider: settings?.provider })
  const detail = ({ record, store }: CityRoom) => {
    const revision = revisionOf(record)
    return ok(cityDetail(record, version, revision, clock.now()), {
      ETag: `"${revision}"`,
      'X-SVC-Index': String(store.log.head),
    })
  }

  const statusOf = ({ record: city, store: { log }, work, mail, services: servicesOf, activity }: CityRoom) => {
    const now = clock.now()
    const services = servicesOf()
    const { running, agents, rigs, runs, budget } = activity()
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
        work: work(),
        mail: mail(),
        ...(services === undefined ? {} : { services }),
        events: { head_seq: log.head, oldest_seq: log.oldest, bytes: log.bytes },
        ...(runs === undefined ? {} : { runs }),
        ...(budget === undefined ? {} : { budget }),
        config: city.settings?.config ?? { revision: '', loaded_at: isoTime(now) },
        ...configRejection(city),
        observed_at: isoTime(now),
      },
      { 'X-SVC-Index': String(log.head) },
    )
  }

  return defineHandlers<typeof cityOperations, CityRoom>({
    'list-cities': ({ query, caller }) => {
      const own = cityOf(caller)
      const items = cities.list().filter(({ name }) => own === undefined || name === own)
      const page = new Page('city', ['string'], query)
      const [from = ''] = page.after ?? []
      const rest = items.filter(({ name }) => name > from)
      return ok({ ...page.of(rest, ({ name }) => [name]), total: items.length })
    },

    'create-city': ({ body, claim, signal }) => supervisor.keys.once(claim, () => wired().create(body, claim, signal)),

    'adopt-city': ({ body, claim }) => supervisor.keys.once(claim, () => wired().adopt(body, claim)),

    'get-city': ({ city }) => detail(city),

    'patch-city': async ({ body, header, city, actor }) => {
      const { store, record } = city
      await store.db.write((tx) => {
        // What is stored, not what is remembered: an edit of the same group commit may have come before.
        const before = readSuspension(tx) ?? record.suspended
        checkPrecondition(header('if-match'), revisionOf({ ...record, suspended: before }))
        const { suspended } = body
        if (suspended === undefined) return
        writeSuspension(tx, suspended, clock.now())
        // An event only where something changed; the override is kept either way.
        if (suspended === before) return
        store.log.append(tx, {
          type: suspended ? 'city.suspended' : 'city.resumed',
          actor,
          subject: record.name,
          payload: {},
        })
        tx.afterCommit(() => cities.setSuspended(record, suspended))
      })
      return detail(city)
    },

    'get-city-status': (call) => {
      const { query, city } = call
      if (!isBlocking(query)) return statusOf(city)
      // Only who waits asks for the signal: making one costs as much as the answer.
      return waitForChange(city.store.log, query, clock, call.signal, () => true).then(() => statusOf(call.city))
    },

    'get-city-health': ({ city: { record, store } }) => {
      const { failure } = store.db
      return ok({
        status: failure === undefined ? 'ok' : 'degraded',
        ...(failure === undefined ? {} : { detail: failure }),
        version,
        city: record.name,
        uptime_sec: uptimeSeconds(record, clock.now()),
        ...configRejection(record),
      })
    },

    'start-city': ({ params, claim }) => supervisor.keys.once(claim, () => cities.startCity(params.cityName, claim)),

    'restart-city': ({ params, claim }) =>
      supervisor.keys.once(claim, () => cities.restartCity(params.cityName, claim)),

    'unregister-city': ({ params, claim }) =>
      supervisor.keys.once(claim, () => wired().unregister(params.cityName, claim)),

    'stop-city': async ({ params, body, signal }) => {
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
    },
  })
}
