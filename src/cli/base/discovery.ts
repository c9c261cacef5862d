/** Which server, with which token, about which city (architecture §5, decision 27). */
import { realpathSync } from 'node:fs'
import { resolve, sep } from 'node:path'
import type { Client, Place } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { CityInfo } from '../../contract/cities.ts'
import { type EndpointFile, homeOf, readEndpointFile } from './endpoint-file.ts'
import { EXIT, Failure, usageError } from './failure.ts'
import type { Io } from './io.ts'

/** Where a supervisor listens that is not told otherwise: shown to people, never connected to by guess. */
export const USUAL_URL = 'http://127.0.0.1:8372'

export interface Endpoint {
  readonly url: string
  readonly token: string | undefined
  /** Where it comes from, for people. */
  readonly source: string
}

type World = Pick<Io, 'env' | 'cwd' | 'home'>

/**
 * `--api` › SVC_API › endpoint.json of the home. There is no further default: what listens on the usual port may be the server
 * of another home, and its cities would look like ours. The file's token goes to no other server than the file's.
 */
export function discoverEndpoint(
  world: World,
  { api, token: said }: { readonly api: string | undefined; readonly token: string | undefined },
): Endpoint {
  const { env } = world
  const token = said ?? (env['SVC_TOKEN'] || undefined)
  const given = api ?? (env['SVC_API'] || undefined)
  if (given === undefined) {
    const file = readEndpointFile(world)
    if (file !== undefined) return { url: file.url, token: token ?? file.token, source: file.path }
    throw new Failure(EXIT.unavailable, `no supervisor runs with the home ${homeOf(world)}`, {
      hint: 'start it with: svcctl serve; name another home with SVC_HOME, or a server with --api URL',
    })
  }
  const url = parseApiUrl(given, api === undefined ? 'SVC_API' : '--api')
  const file = token === undefined ? trustedFile(world) : undefined
  const ours = file !== undefined && isSameServer(file.url, url)
  return { url, token: token ?? (ours ? file.token : undefined), source: api === undefined ? 'SVC_API' : '--api' }
}

/**
 * Where the server is that was at `before`, after a connection to it was lost. Undefined: it is between two lives. What
 * listens on a port that it has left may be anybody's. Without `before` it was not found so far.
 */
export function discoverAgain(
  world: World,
  given: { readonly api: string | undefined; readonly token: string | undefined },
  before: Endpoint | undefined,
): Place | undefined {
  try {
    const { url, token, source } = discoverEndpoint(world, given)
    const isSame = before === undefined || source === before.source
    return isSame ? { baseUrl: url, token } : undefined
  } catch {
    return undefined
  }
}

/** A server that is named needs no file: one that cannot be believed has no token for it. */
function trustedFile(world: World): EndpointFile | undefined {
  try {
    return readEndpointFile(world)
  } catch {
    return undefined
  }
}

function parseApiUrl(text: string, source: string): string {
  const url = URL.parse(text)
  const plain =
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === ''
  if (!plain || url.search !== '' || url.hash !== '')
    throw usageError(`invalid ${source} "${text}": expected a URL like ${USUAL_URL}`)
  return url.href.replace(/\/+$/, '')
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]'])

function isSameServer(a: string, b: string): boolean {
  const [left, right] = [URL.parse(a), URL.parse(b)]
  if (left === null || right === null) return false
  const sameHost = left.hostname === right.hostname || (LOOPBACK.has(left.hostname) && LOOPBACK.has(right.hostname))
  return sameHost && left.protocol === right.protocol && left.port === right.port
}

/** A city is named, unless it looks like a path: `.`, `./x`, `/x`, `~/x`. */
const isPath = (city: string): boolean =>
  city === '.' || city === '..' || city === '~' || city.includes('/') || city.includes(sep)

/** The name of a city given by name or path. */
export async function resolveCity(client: Client, world: World, city: string, signal: AbortSignal): Promise<string> {
  if (!isPath(city)) return city
  const path = resolve(world.cwd, city.replace(/^~(?=\/|$)/, world.home))
  const found = cityContaining(await listCities(client, signal), spellings(path))
  if (found !== undefined) return found.name
  throw new Failure(EXIT.notFound, `no city is registered at ${path}`, {
    hint: 'see the cities and their paths with: svcctl city list',
  })
}

/** The name of the city that the working directory is in. */
export async function cityOfDirectory(client: Client, world: World, signal: AbortSignal): Promise<string | undefined> {
  return cityContaining(await listCities(client, signal), spellings(world.cwd))?.name
}

/** A path as given and with its links followed; the server knows cities by one of the two. */
function spellings(path: string): readonly string[] {
  try {
    return [path, realpathSync(path)]
  } catch {
    return [path]
  }
}

/** The innermost city whose directory is, or is above, one of the paths. */
export function cityContaining(cities: readonly Pick<CityInfo, 'name' | 'path'>[], paths: readonly string[]) {
  const contains = (root: string, path: string) =>
    path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)
  return cities
    .filter((city) => city.path !== '' && paths.some((path) => contains(city.path, path)))
    .reduce<Pick<CityInfo, 'name' | 'path'> | undefined>(
      (best, city) => (city.path.length > (best?.path.length ?? -1) ? city : best),
      undefined,
    )
}

/** Every registered city. */
export async function listCities(client: Client, signal: AbortSignal): Promise<readonly CityInfo[]> {
  const cities: CityInfo[] = []
  let cursor: string | undefined
  do {
    const { body } = await client.call('list-cities', { query: { limit: 1000, cursor }, signal })
    cities.push(...body.items)
    cursor = body.next_cursor
  } while (cursor !== undefined)
  return cities
}

/** A city that stops may start again; one that was unregistered will not. */
export async function isRegistered(client: Client, city: string | undefined, signal: AbortSignal): Promise<boolean> {
  try {
    return (await listCities(client, signal)).some(({ name }) => name === city)
  } catch {
    return true
  }
}

/** The city does not run, or there is none of that name. */
export const isCityGone = (error: unknown): error is ApiProblem =>
  error instanceof ApiProblem && error.code === 'city-not-found'
