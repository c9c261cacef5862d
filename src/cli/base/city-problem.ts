/** A city that does not answer: the server says the same of one that has stopped and of one that is not. Which is it? */

import type { Client } from '../../client/client.ts'
import type { CityInfo } from '../../contract/cities.ts'
import type { Context } from './context.ts'
import { isCityGone, listCities } from './discovery.ts'
import { exitCodeOf, Failure } from './failure.ts'

const LOOK_MS = 5_000
/** More are not named in an error. */
const MOST_NAMED = 10

/** The error, or what it means where it is about a city. */
export async function explainCity(error: unknown, context: Context | undefined): Promise<unknown> {
  if (context === undefined || !isCityGone(error)) return error
  const name = /not running: (\S+)$/.exec(error.detail)?.[1]
  if (name === undefined) return error
  try {
    using limit = context.within(LOOK_MS)
    const cities = await listCities(await context.client(), limit.signal)
    const { message, hint } = meaning(name, cities)
    const { requestId, body } = error
    return new Failure(exitCodeOf(error.status), message, { hint, requestId, body, cause: error })
  } catch {
    return error
  }
}

function meaning(name: string, cities: readonly CityInfo[]): { readonly message: string; readonly hint: string } {
  const city = cities.find((one) => one.name === name)
  if (city === undefined) return { message: `there is no city ${name}`, hint: others(cities) }
  const why = city.error === undefined ? '' : `: ${city.error}`
  const start = `svcctl city start ${name}`
  switch (city.status) {
    case 'stopped':
      return { message: `city ${name} is stopped`, hint: `start it with: ${start}` }
    case 'init_failed':
      return {
        message: `city ${name} could not start${why}`,
        hint: `mend that (svcctl config and svcctl pack work meanwhile), then: ${start}`,
      }
    case 'stopping':
      return { message: `city ${name} is stopping`, hint: `once it has stopped, start it with: ${start}` }
    case 'running':
      return { message: `city ${name} has just started`, hint: 'try it again' }
    default:
      return {
        message: `city ${name} does not run yet: ${city.status}${why}`,
        hint: 'see when it does with: svcctl city list --watch',
      }
  }
}

function others(cities: readonly CityInfo[]): string {
  if (cities.length === 0) return 'none is registered; create one with: svcctl city create DIR'
  const names = cities.slice(0, MOST_NAMED).map(({ name }) => name)
  const more = cities.length > MOST_NAMED ? ', … (svcctl city list)' : ''
  return `the cities are: ${names.join(', ')}${more}`
}

/** What is known of a city that does not run; throws the error where it is another one, or the city is not known. */
export async function listedCity(error: unknown, client: Client, name: string, signal: AbortSignal): Promise<CityInfo> {
  const cities = isCityGone(error) ? await listCities(client, signal) : []
  const found = cities.find((city) => city.name === name)
  if (found === undefined) throw error
  return found
}
