/** Which server, with which token, about which city (architecture §5, decision 27). Reads `endpoint.json` and nothing else. */
import { realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import type { Client } from '../../client/client.ts'
import { isRecord } from '../../client/problems.ts'
import type { CityInfo } from '../../contract/cities.ts'
import { EXIT, Failure, usageError } from './failure.ts'
import type { Io } from './io.ts'

const DEFAULT_URL = 'http://127.0.0.1:8372'

export interface Endpoint {
  readonly url: string
  readonly token: string | undefined
  /** Where it comes from, for people. */
  readonly source: string
}

type World = Pick<Io, 'env' | 'cwd' | 'home'>

/** `--api` › SVC_API › endpoint.json › the default port. The file's token goes to no other server than the file's. */
export async function discoverEndpoint(world: World, api: string | undefined): Promise<Endpoint> {
  const { env } = world
  const token = env['SVC_TOKEN'] || undefined
  const given = api ?? (env['SVC_API'] || undefined)
  if (given === undefined) {
    const file = await readEndpointFile(world)
    if (file !== undefined) return { url: file.url, token: token ?? file.token, source: file.path }
    return { url: DEFAULT_URL, token, source: 'default' }
  }
  const url = parseApiUrl(given, api === undefined ? 'SVC_API' : '--api')
  const file = token === undefined ? await readEndpointFile(world).catch(() => undefined) : undefined
  const ours = file !== undefined && isSameServer(file.url, url)
  return { url, token: token ?? (ours ? file.token : undefined), source: api === undefined ? 'SVC_API' : '--api' }
}

function parseApiUrl(text: string, source: string): string {
  const url = URL.parse(text)
  const plain =
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === ''
  if (!plain || url.search !== '' || url.hash !== '')
    throw usageError(`invalid ${source} "${text}": expected a URL like ${DEFAULT_URL}`)
  return url.href.replace(/\/+$/, '')
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]'])

function isSameServer(a: string, b: string): boolean {
  const [left, right] = [URL.parse(a), URL.parse(b)]
  if (left === null || right === null) return false
  const sameHost = left.hostname === right.hostname || (LOOPBACK.has(left.hostname) && LOOPBACK.has(right.hostname))
  return sameHost && left.protocol === right.protocol && left.port === right.port
}

interface EndpointFile {
  readonly path: string
  readonly url: string
  readonly token: string | undefined
}

async function readEndpointFile({ env, home, cwd }: World): Promise<EndpointFile | undefined> {
  const path = join(resolve(cwd, env['SVC_HOME'] || join(home, '.svc')), 'endpoint.json')
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined
    throw discoveryFailure(path, error instanceof Error ? error.message : 'unreadable')
  }
  const file = parseEndpoint(text)
  if (file === undefined) throw discoveryFailure(path, 'not {"url", …}')
  return { path, ...file }
}

function parseEndpoint(text: string): Omit<EndpointFile, 'path'> | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value) || typeof value['url'] !== 'string' || URL.parse(value['url']) === null) return undefined
  return {
    url: value['url'].replace(/\/+$/, ''),
    token: typeof value['token'] === 'string' ? value['token'] : undefined,
  }
}

const discoveryFailure = (path: string, why: string): Failure =>
  new Failure(EXIT.unavailable, `could not discover the supervisor: ${path}: ${why}`, {
    hint: 'restart it with: svcctl serve, or name it with --api URL',
  })

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
