/** From its declaration to what is started: its environment (decision 167), and what a change of it is. Pure. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { expanded, isPlain } from '../../kernel/processes.ts'
import type { Identity, LaunchSpec } from '../../runtimes/process/runtime.ts'
import { runDirectory } from './places.ts'
import type { ServiceSettings, ServicesDeps, Upstream } from './ports.ts'

export interface Start {
  readonly identity: Identity
  readonly upstream: Upstream
  readonly secrets: string
  /** What it speaks to the API with, where that asks for a token. */
  readonly access: string | undefined
}

type Surroundings = Pick<ServicesDeps, 'city' | 'env' | 'home' | 'bin'>

const PATH = '/usr/local/bin:/usr/bin:/bin'
const HOST = '127.0.0.1'

/** Where everybody of a machine reaches it, and nobody else. */
export const onPort = (port: number): Upstream => ({ host: HOST, port })

/** A start of it is another one than a start with another fingerprint: what it is told anew at each start is not in it. */
export function fingerprintOf({ command, env, listen, directory, stateRoot }: ServiceSettings): string {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))
  const told = JSON.stringify([command, variables, listen, directory, stateRoot])
  return createHash('sha256').update(told).digest('hex')
}

export const accessHash = (token: string): string => createHash('sha256').update(token).digest('hex')

/** Where it is reached, below the address of this server. */
export const mountPath = (city: string, service: string): string =>
  `/v0/city/${encodeURIComponent(city)}/svc/${encodeURIComponent(service)}`

/** What is known of a start, also after a restart of ours. */
export const adoptSpecOf = (city: string, name: string, identity: Identity) =>
  ({
    identity,
    name,
    directory: runDirectory(city, name, identity.generation),
    io: 'pipes',
    delivery: 'line',
    debounceMs: 0,
    interruptKey: 'ctrl-c',
  }) as const

export function launchOf(settings: ServiceSettings, start: Start, around: Surroundings): LaunchSpec {
  const [command = '', ...args] = settings.command
  return {
    ...adoptSpecOf(around.city.path, settings.name, start.identity),
    workDir: settings.directory,
    command,
    args,
    env: environmentOf(settings, start, around),
    hidesToken: true,
    columns: 80,
    rows: 24,
  }
}

function environmentOf(
  { name, env: declared, stateRoot }: ServiceSettings,
  { upstream, secrets, access }: Start,
  { city, env, home, bin }: Surroundings,
): Readonly<Record<string, string>> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isPlain(entry[0]),
  )
  const own = Object.fromEntries(Object.entries(declared).map(([key, value]) => [key, expanded(value, env)]))
  return {
    ...Object.fromEntries(passed),
    ...own,
    PATH: `${bin}:${own['PATH'] ?? env['PATH'] ?? PATH}`,
    SVC_HOME: home,
    SVC_CITY: city.name,
    SVC_CITY_PATH: city.path,
    SVC_BIN: join(bin, 'svcctl'),
    SVC_SERVICE_NAME: name,
    SVC_SERVICE_STATE_ROOT: stateRoot,
    SVC_SERVICE_SECRETS_DIR: secrets,
    SVC_SERVICE_URL_PREFIX: mountPath(city.name, name),
    ...('socketPath' in upstream
      ? { SVC_SERVICE_SOCKET: upstream.socketPath }
      : { HOST: upstream.host, PORT: String(upstream.port) }),
    ...(access === undefined ? {} : { SVC_TOKEN: access }),
  }
}
