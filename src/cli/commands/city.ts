/** `svcctl city …`. */

import { resolve } from 'node:path'
import { ApiProblem } from '../../client/problems.ts'
import type { CityGetResponse, CityInfo } from '../../contract/cities.ts'
import { listedCity } from '../base/city-problem.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import { type Context, REQUEST_TIMEOUT_MS } from '../base/context.ts'
import { usageError } from '../base/failure.ts'
import { parseTimeout } from '../framework/accepted.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { CITIES as TABLE } from '../tables/cities.ts'
import { CITY_STATUS, rejectedText } from '../views/city-status.ts'

const CITIES = view<CityInfo>()('name status running path ERROR', {
  wide: 'attempts retry_at uid host observed_at',
  as: { ERROR: (city) => city.error ?? rejectedText(city.config_rejected) },
})

const CITY = view<CityGetResponse>()(
  'name status running suspended path provider uptime_sec AGENTS RIGS version ERROR',
  {
    wide: 'uid revision',
    as: { AGENTS: 'agent_count', RIGS: 'rig_count', ERROR: (city) => city.error ?? rejectedText(city.config_rejected) },
  },
)

const HEALTH = view<AnswerOf<'get-city-health'>>()('city status uptime_sec version ERROR', {
  as: { ERROR: (city) => rejectedText(city.config_rejected) },
})
const STOPPED = view<AnswerOf<'stop-city'>>()('city status already_stopped sessions_stopped forced')

/** Of one that does not run what the list of cities says. */
async function showCity({ context, client, cityName, options, send }: Call<'get-city'>): Promise<number> {
  try {
    return await printItem(context, CITY, await send())
  } catch (error) {
    const city = await listedCity(error, client, cityName, options.signal)
    return printItem(context, CITIES, { body: city, text: JSON.stringify(city) })
  }
}

// A relative directory is meant from here, not from the home of the supervisor's user.
const directory = ({ io }: Context, text: string): string => resolve(io.cwd, text.replace(/^~(?=\/|$)/, io.home))

/** A city that nobody named is the one that one happens to stand in: its agents are not ended unasked. */
async function asksToStop(names: string, _: Input, context: Context): Promise<string | undefined> {
  if (names !== '' || context.options.city !== undefined || context.io.env['SVC_CITY']) return undefined
  using limit = context.within()
  const { signal } = limit
  const cityName = await context.needCity(undefined, signal)
  const client = await context.client()
  try {
    const { body } = await client.call('get-city-status', { params: { cityName }, signal })
    if (body.running === 0) return undefined
    return `Stop city ${cityName} and its ${body.running === 1 ? 'session' : `${body.running} sessions`}?`
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'city-not-found') return undefined
    throw error
  }
}

/** Never the city one happens to stand in: this is not undone by a second command. */
function asksToUnregister(names: string, _: Input, { options }: Context): string {
  const named = names || options.city
  if (named === undefined) throw usageError('which city? name it: svcctl city unregister NAME')
  return `Unregister city ${named}? It stops; its directory stays as it is.`
}

const command = commandsOf(TABLE)

const setSuspended = (verb: 'suspend' | 'resume', summary: string, does: string): CommandSpec =>
  command(`city ${verb}`, 'patch-city', {
    summary,
    arguments: ['[cityName...]'],
    leaves: { suspended: 'it is the name of the command' },
    fill: () => ({ suspended: verb === 'suspend' }),
    view: CITY,
    examples: { [`svcctl city ${verb} alpha`]: does },
  })

export const commands: readonly CommandSpec[] = [
  command('city list', 'list-cities', {
    whole: true,
    view: CITIES,
    examples: {
      'svcctl city list': 'all cities and their states',
      'svcctl city list -o name': 'their names, for scripts',
    },
  }),
  command('city get', 'get-city', {
    arguments: ['[cityName...]'],
    run: showCity,
    examples: { 'svcctl city get alpha': 'one city; of one that does not run, what is known of it' },
  }),
  command('city create', 'create-city', {
    arguments: ['<dir>'],
    says: {
      dir: 'Directory to make it in, relative to here.',
      name: 'Name of the city (default: that of the directory).',
      bootstrap_profile: 'Kept for the host that runs it.',
    },
    completes: { dir: 'file' },
    change: ({ dir = '' }, context) => ({ dir: directory(context, dir) }),
    examples: {
      'svcctl city create ./demo': 'create a city and, in a terminal, wait until it runs',
      'svcctl city create /srv/alpha --provider claude --no-wait -o json': 'in a script',
    },
  }),
  command('city adopt', 'adopt-city', {
    arguments: ['<path>'],
    says: { path: 'Directory of an existing city, relative to here.', name: 'Name to register it under.' },
    completes: { path: 'file' },
    change: ({ path = '' }, context) => ({ path: directory(context, path) }),
    view: CITIES,
    examples: { 'svcctl city adopt ~/cities/alpha': 'register a city that is on disk already' },
  }),
  command('city start', 'start-city', {
    arguments: ['[cityName...]'],
    examples: { 'svcctl city start alpha --wait': 'start it, end when it runs' },
  }),
  command('city stop', 'stop-city', {
    arguments: ['[cityName...]'],
    asks: asksToStop,
    // The server waits for the city that long; its answer needs a moment more.
    timeoutMs: async (input) => (await parseTimeout(input, REQUEST_TIMEOUT_MS)) + 10_000,
    view: STOPPED,
    examples: {
      'svcctl city stop alpha': 'stop it cleanly',
      'svcctl city stop alpha --force': 'kill what runs in it',
    },
  }),
  command('city restart', 'restart-city', {
    arguments: ['[cityName...]'],
    examples: { 'svcctl city restart alpha': 'stop and start it' },
  }),
  command('city unregister', 'unregister-city', {
    arguments: ['[cityName...]'],
    says: { cityName: 'Name or path.' },
    asks: asksToUnregister,
    examples: { 'svcctl city unregister alpha --yes': 'the supervisor forgets it; its files stay' },
  }),
  setSuspended('suspend', 'Suspend a city: none of its agents is started', 'keep it, but let nothing run'),
  setSuspended('resume', 'Resume a suspended city', 'let its agents run again'),
  command('city status', 'get-city-status', {
    arguments: ['[cityName...]'],
    view: CITY_STATUS,
    examples: { 'svcctl city status alpha': 'agents, work, mail and events in numbers' },
  }),
  command('city health', 'get-city-health', {
    arguments: ['[cityName...]'],
    view: HEALTH,
    examples: { 'svcctl city health alpha': 'is it alive' },
  }),
]
