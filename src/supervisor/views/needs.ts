/** Where needs meet the families that have them, and the cities that cannot start. */
import type { City } from '../../modules/cities/city.ts'
import type { CityNeeds, NeedHost } from '../../modules/needs/handlers.ts'
import type { ProjectionDeps } from '../../modules/needs/projection.ts'
import type { NeedRow } from '../../modules/needs/rows.ts'
import type { Running, Service } from './running.ts'

export const needHost = ({ clock, cities }: Service): NeedHost => ({
  clock,
  needs: {
    cities: () =>
      cities.all().map((city): CityNeeds => {
        const db = city.state === 'running' ? city.store?.db : undefined
        return { name: city.name, db, own: [...failedToStart(city), ...refusesWrites(city)] }
      }),
  },
})

export const needContext = (city: Running): ProjectionDeps => ({
  city: city.name,
  store: city.store,
  clock: city.host.clock,
  sources: () => city.needs(),
})

function failedToStart({ name, state, error, since, path }: City): readonly NeedRow[] {
  if (state !== 'init_failed') return []
  return [
    {
      id: `nd-city-${name}`,
      key: 'init_failed',
      kind: 'city_failed',
      severity: 'act',
      holdsUp: 0,
      since,
      snoozedUntil: undefined,
      body: {
        subject: { kind: 'city', id: name, name },
        title: `The city ${name} could not start`,
        detail: error ?? path,
        operations: [
          { operation: 'start-city', params: { cityName: name }, label: 'Start', command: `svcctl city start ${name}` },
        ],
      },
    },
  ]
}

function refusesWrites({ name, store, since }: City): readonly NeedRow[] {
  const failure = store?.db.failure
  if (failure === undefined) return []
  return [
    {
      id: `nd-disk-${name}`,
      key: 'disk',
      kind: 'disk',
      severity: 'act',
      holdsUp: 0,
      since,
      snoozedUntil: undefined,
      body: {
        subject: { kind: 'store', id: name, name },
        title: `The store of the city ${name} refuses writes`,
        detail: failure,
        operations: [],
      },
    },
  ]
}
