/** The configuration of a city: what it needs, and what the control plane shows of it. */
import { parseDurationMs } from '../../contract/base/durations.ts'
import { type ConfigFiles, diskFiles } from '../../files/files.ts'
import { PRESETS } from '../../harnesses/all.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { Database } from '../../kernel/database.ts'
import type { Retention } from '../../kernel/event-log.ts'
import { beadsOfRig } from '../../modules/beads/store/counts.ts'
import type { CitySettings } from '../../modules/cities/city.ts'
import type { LoadOptions } from '../../modules/config/compose/context.ts'
import { untrustedPacks } from '../../modules/config/compose/effective.ts'
import { type ConfigChange, errorView } from '../../modules/config/edit/city-config.ts'
import type { ConfigService, RigWork } from '../../modules/config/edit/service.ts'
import type { ConfigContext } from '../../modules/config/family.ts'
import type { ConfigHandlersDeps } from '../../modules/config/handlers.ts'
import { loadCity } from '../../modules/config/load/load.ts'
import { liveMoleculesOfRig } from '../../modules/molecules/engine/base/rows.ts'
import { ordersOfRig } from '../../modules/orders/runs/states.ts'
import { sessions } from '../../modules/sessions/family.ts'
import { sessionsOfRig } from '../../modules/sessions/record/store.ts'
import { documentIssues } from './formulas.ts'
import { BUILTIN_PACKS, type PackHost } from './packs.ts'
import type { Running, Service } from './running.ts'

/** `off`, and 0 bytes: no limit. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

export const configHost = ({ clock, packs, url }: Service): ConfigHandlersDeps => ({
  clock,
  apiUrl: url,
  loadOptions: (dir) => loadOptions(packs)(diskFiles(), dir),
})

export async function configContext(city: Running): Promise<ConfigContext> {
  const { host, name, path, record, launch } = city
  const { clock, log, packs, settings } = host
  // What was changed in the cache is not loaded.
  await packs.upkeep.verifyOnce(path)
  return {
    name,
    dir: path,
    store: city.store,
    clock,
    log,
    launch,
    loadOptions: loadOptions(packs),
    restarts: (drift) => restarted(city, drift),
    documentIssues,
    mends: city.isMended === true,
    beadsOfRig: (rig) => beadsOfRig(city.store.db, rig),
    workOfRig: (rig) => workOfRig(city.store.db, rig),
    suspended: () => record.suspended,
    prepare: (signal) => packs.prepareStart(path, signal),
    onStatus: (service) => city.observe(settingsOf(service, settings.retention)),
  }
}

/** What else is of a rig, and would be of nobody without it. */
const workOfRig = (reader: Pick<Database, 'get'>, rig: string): readonly RigWork[] => [
  { count: liveMoleculesOfRig(reader, rig), one: 'live molecule', many: 'live molecules' },
  { count: ordersOfRig(reader, rig), one: 'order', many: 'orders' },
  { count: sessionsOfRig(reader, rig), one: 'session', many: 'sessions' },
]

/** How a city is loaded: with the packs of this host, as the lock among `files` says. */
const loadOptions =
  (packs: PackHost) =>
  (files: ConfigFiles, dir: string): LoadOptions => ({
    version: packs.version,
    builtinPacks: BUILTIN_PACKS,
    presets: Object.fromEntries(PRESETS),
    resolvePack: packs.resolver(files, dir),
  })

/** The name that the files of a directory give the city; undefined where they cannot be read. */
export function nameFromFiles(packs: PackHost, directory: string): string | undefined {
  const files = diskFiles()
  const loaded = loadCity(directory, loadOptions(packs)(files, directory), files)
  return loaded.ok ? loaded.config.name : undefined
}

/** Ids of the sessions that a change of configuration restarts. */
function restarted(city: Running, drift: ConfigChange['drift']): readonly string[] {
  const launched = [...drift].filter(([, { drift: kind }]) => kind === 'launch' || kind === 'provision')
  return sessions.find(city)?.sessions.restartable(new Set(launched.map(([identity]) => identity))) ?? []
}

function settingsOf(service: ConfigService, retention: Retention): CitySettings {
  const config = service.current()
  const { lastError } = service
  return {
    provider: config.workspace.provider,
    sessionTemplate: config.workspace.session_template,
    suspendedOnStart: config.workspace.suspended_on_start ?? false,
    agentCount: config.agents.length,
    rigCount: config.rigs.length,
    retention: retentionOf(config.events.retention, retention),
    config: {
      revision: config.revision,
      loaded_at: isoTime(service.loadedAt),
      ...untrustedPacks(config),
      ...(lastError === undefined ? {} : { last_error: errorView(lastError) }),
    },
  }
}

interface DeclaredRetention {
  readonly max_age?: string
  readonly max_bytes?: number
}

function retentionOf(declared: DeclaredRetention | undefined, otherwise: Retention): Retention {
  const { max_age: age, max_bytes: bytes } = declared ?? {}
  return {
    maxAgeMs: age === undefined ? otherwise.maxAgeMs : age === 'off' ? NO_LIMIT : parseDurationMs(age),
    maxBytes: bytes === undefined ? otherwise.maxBytes : bytes === 0 ? NO_LIMIT : bytes,
  }
}
