/** Where services meet their city: what is declared, what starts processes, and who comes with the token of one. */
import { createServer } from 'node:net'
import { parseDurationMs } from '../../contract/base/durations.ts'
import type { ServiceState } from '../../contract/services.ts'
import type { ServiceCaller } from '../../kernel/caller.ts'
import { randomHex } from '../../kernel/ids.ts'
import type { EffectiveService } from '../../modules/config/compose/effective.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { type ServiceContext, services } from '../../modules/services/family.ts'
import { accessHash } from '../../modules/services/launch.ts'
import type { ServiceSettings } from '../../modules/services/ports.ts'
import { openOutputReader } from '../../runtimes/process/output-log.ts'
import { runIdOf } from '../../runtimes/process/process-mark.ts'
import { serviceRuns } from '../../runtimes/process/process-tree.ts'
import { openSocketDirectory } from '../../runtimes/socket-directory.ts'
import { createSubprocessRuntime, endRun } from '../../runtimes/subprocess.ts'
import type { Running } from './running.ts'
import { BIN } from './sessions.ts'

export function serviceContext(city: Running): ServiceContext {
  const { name, path, store, host } = city
  const { clock, log, env, settings, random, listeners } = host
  const { home, auth } = settings
  const { config } = configuration.of(city)
  return {
    city: { name, path },
    store,
    clock,
    log,
    env,
    home,
    bin: BIN,
    auth,
    random: randomHex,
    chance: random,
    settings: () => config.current().services.map(settingsOf),
    runtime: createSubprocessRuntime({ clock, env, home }),
    socketDirectory: () => openSocketDirectory(path, { env, home }).path,
    freePort,
    listeners,
    output: openOutputReader,
    endAll: async (directory, token) => {
      const left = await endRun(directory, token, clock)
      if (left.length > 0) throw new Error(`processes ${left.join(', ')} could not be ended`)
    },
    strays: (tokens) => {
      const known = new Set(tokens.map(runIdOf))
      return [...serviceRuns(path)].filter((run) => !known.has(run))
    },
    accessEnded: (service) =>
      host.revoked((one) => one.kind === 'service' && one.city === name && one.name === `service:${service}`),
    onReconfigured: (listener) => config.onChange(listener),
  }
}

function settingsOf(service: EffectiveService): ServiceSettings {
  const { name, process: program, publication, publish_mode: mode, binding } = service
  return {
    name,
    command: program.command,
    healthPath: program.health_path,
    listen: program.listen ?? 'socket',
    env: program.env ?? {},
    direct: mode === 'direct',
    websockets: publication?.allow_websockets !== false,
    sandbox: mode !== 'direct' && publication?.sandbox !== false,
    firstByteMs: parseDurationMs(service.first_byte_timeout ?? ''),
    idleMs: parseDurationMs(service.idle_timeout ?? ''),
    directory: service.config_dir,
    stateRoot: service.state_dir,
    pack: binding === '' ? undefined : binding,
    untrustedPack: service.untrusted_pack,
  }
}

/** One that nobody listens on at the moment. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

/** Undefined where there are none. */
export function serviceCounts(city: Running) {
  const all = services.find(city)?.services.all ?? []
  if (all.length === 0) return undefined
  const of = (state: ServiceState) => all.filter((service) => service.state === state).length
  return { total: all.length, ready: of('ready'), degraded: of('degraded') }
}

/** Whose token it is, of the services that may run in these cities. */
export function serviceWith(cities: readonly Running[], token: string): ServiceCaller | undefined {
  const hash = accessHash(token)
  for (const city of cities) {
    const name = services.find(city)?.services.withAccess(hash)
    if (name !== undefined) return { kind: 'service', city: city.name, name: `service:${name}` }
  }
  return undefined
}
