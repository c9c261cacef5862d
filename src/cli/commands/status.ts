/** `svcctl status`: how everything is, at a glance. Answers from what the server has at hand. */

import type { Client } from '../../client/client.ts'
import type { CityInfo, StatusBody } from '../../contract/cities.ts'
import type { Need } from '../../contract/needs.ts'
import { type CommandSpec, type Input, watchFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { EXIT } from '../base/failure.ts'
import { askEach } from '../framework/each-city.ts'
import { around, view } from '../print/view.ts'
import { CITY_STATUS, rejectedText } from '../views/city-status.ts'
import { NEED, needsOf } from '../views/needs.ts'

/** A city in a line; what only a city that runs can tell is absent of the others. */
interface Row
  extends Pick<CityInfo, 'name' | 'path' | 'status' | 'error' | 'config_rejected'>,
    Partial<Pick<StatusBody, 'running' | 'work' | 'mail'>> {
  readonly needs?: number
}

const ROW = view<Row>()('name status SESSIONS work.open work.in_progress work.ready MAIL needs ERROR', {
  wide: 'path',
  as: { SESSIONS: 'running', MAIL: 'mail.unread', ERROR: (row) => row.error ?? rejectedText(row.config_rejected) },
})

/** The status of a city, with what waits there. */
type Summary = StatusBody & { readonly needs: readonly Need[] }

const NEEDS = view<Summary>()('NEEDS', { as: { NEEDS: ({ needs }) => needs.length } })
const SUMMARY = around([], CITY_STATUS, NEEDS.columns)

async function status(context: Context, _input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.city(limit.signal)
  const client = await context.client()
  return cityName === undefined
    ? await allCities(context, client, limit.signal)
    : await oneCity(context, client, cityName, limit.signal)
}

async function allCities(context: Context, client: Client, signal: AbortSignal): Promise<number> {
  const cities = await listCities(client, signal)
  const { answers: facts, exitCode } = await askEach(
    context,
    cities.filter(({ running }) => running),
    ({ name }) => factsOf(client, name, signal),
  )
  const known = new Map(facts.map((one) => [one.name, one]))
  const items = cities.map(({ name, path, status, error, config_rejected }): Row => {
    const found = known.get(name)
    return {
      name,
      path,
      status,
      ...(error === undefined ? {} : { error }),
      ...(config_rejected === undefined ? {} : { config_rejected }),
      ...(found === undefined
        ? {}
        : { running: found.running, work: found.work, mail: found.mail, needs: found.needs.length }),
    }
  })
  await context.print.list({ items, ...ROW, json: JSON.stringify({ items, total: items.length }) })
  if (items.length === 0) await context.note('no city is registered; create one with: svcctl city create DIR')
  return exitCode
}

async function oneCity(context: Context, client: Client, cityName: string, signal: AbortSignal): Promise<number> {
  const item = await factsOf(client, cityName, signal)
  await context.print.item({ item, ...SUMMARY, json: JSON.stringify(item) })
  if (item.needs.length > 0 && context.print.isForPeople) {
    await context.print.lines([''])
    await context.print.list({ items: item.needs, ...NEED, json: '' })
  }
  return EXIT.ok
}

async function factsOf(client: Client, cityName: string, signal: AbortSignal): Promise<Summary> {
  const [{ body }, needs] = await Promise.all([
    client.call('get-city-status', { params: { cityName }, signal }),
    needsOf(client, cityName, { severity: 'act', signal }),
  ])
  return { ...body, needs }
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['status'],
    operations: ['get-city-status', 'list-cities', 'list-city-needs'],
    summary: 'How everything is, at a glance',
    description: 'A line per city; in a city (working directory, --city, SVC_CITY) its summary, and what waits there.',
    examples: [
      { line: 'svcctl status', does: 'the city in scope, else all' },
      { line: 'svcctl status --all-cities', does: 'all cities' },
    ],
    isFleet: true,
    flags: [watchFlag],
    isWatched: true,
    run: status,
  },
]
