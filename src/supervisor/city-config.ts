/** Where the configuration family meets the cities family: one configuration service per started city. */
import { join } from 'node:path'
import { parseDurationMs } from '../contract/base/durations.ts'
import { type ConfigFiles, diskFiles } from '../files/files.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import type { Retention } from '../kernel/event-log.ts'
import type { Logger } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import type { City, CitySettings } from '../modules/cities/city.ts'
import { type CityStore, readSuspension } from '../modules/cities/city-store.ts'
import { StartFailure } from '../modules/cities/worker.ts'
import type { LoadOptions } from '../modules/config/compose/context.ts'
import { toDetail } from '../modules/config/edit/answers.ts'
import { type ConfigChange, errorView } from '../modules/config/edit/city-config.ts'
import { ConfigService, InvalidConfig } from '../modules/config/edit/service.ts'
import { loadCity } from '../modules/config/load/load.ts'
import { PRESETS } from '../modules/providers/presets.ts'

export const BUILTIN_PACKS = new Map([['core', join(import.meta.dirname, '..', 'modules', 'packs', 'core')]])
/** `off`, and 0 bytes: no limit. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

export interface CityConfigsDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly retention: Retention
  /** Packs in git, with the lock of these files; without it every such import is an error. */
  readonly resolvePack?: (files: ConfigFiles, dir: string) => LoadOptions['resolvePack']
  /** Ids of a city's sessions that are restarted because of this. */
  readonly restarts: (cityName: string, drift: ConfigChange['drift']) => readonly string[]
}

type Listener = (city: City, change: ConfigChange) => void

export class CityConfigs {
  readonly #deps: CityConfigsDeps
  readonly #services = new Map<string, ConfigService>()
  readonly #listeners: Listener[] = []
  #closed = false

  constructor(deps: CityConfigsDeps) {
    this.#deps = deps
  }

  /** The service of a running city; the spec's 404 for any other. */
  of(cityName: string): ConfigService {
    const service = this.#services.get(cityName)
    if (service === undefined) throw problem('city-not-found', `city not found or not running: ${cityName}`)
    return service
  }

  /** Called for every change of every city, over restarts of the city too. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener)
  }

  async open(city: City, store: CityStore): Promise<CitySettings> {
    if (this.#closed) throw new StartFailure('preempted', 'the supervisor is shutting down')
    await this.close(city)
    const service = new ConfigService({
      name: city.name,
      dir: city.path,
      store,
      clock: this.#deps.clock,
      log: this.#deps.log,
      loadOptions: (files, dir) => this.loadOptions(files, dir),
      restarts: (drift) => this.#deps.restarts(city.name, drift),
      onStatus: () => this.#follow(city, store, service),
    })
    service.onChange((change) => {
      for (const listener of this.#listeners) listener(city, change)
    })
    // Known from here on, so that a stop that comes in between ends it too.
    this.#services.set(city.name, service)
    try {
      await service.open()
    } catch (error) {
      if (this.#services.get(city.name) === service) this.#services.delete(city.name)
      await service.close()
      if (error instanceof InvalidConfig)
        throw new StartFailure('city_config_failed', error.message, error.issues.map(toDetail))
      throw error
    }
    return this.#settingsOf(service)
  }

  async close(city: City): Promise<void> {
    const service = this.#services.get(city.name)
    this.#services.delete(city.name)
    await service?.close()
  }

  async closeAll(): Promise<void> {
    this.#closed = true
    const services = [...this.#services.values()]
    this.#services.clear()
    await Promise.all(services.map((service) => service.close()))
  }

  inspect(city: City): void {
    void this.#services.get(city.name)?.lookAgain()
  }

  /** The name that the files of a directory give the city; undefined where they cannot be read. */
  name(directory: string): string | undefined {
    const files = diskFiles()
    const loaded = loadCity(directory, this.loadOptions(files, directory), files)
    return loaded.ok ? loaded.config.name : undefined
  }

  loadOptions(files: ConfigFiles, dir: string): LoadOptions {
    const resolvePack = this.#deps.resolvePack?.(files, dir)
    return { builtinPacks: BUILTIN_PACKS, presets: PRESETS, ...(resolvePack === undefined ? {} : { resolvePack }) }
  }

  /** What the control plane shows of the city follows its configuration. */
  #follow(city: City, store: CityStore, service: ConfigService): void {
    if (this.#services.get(city.name) !== service) return
    city.settings = this.#settingsOf(service)
    if (store.db.inPlace) city.suspended = readSuspension(store.db) ?? city.settings.suspendedOnStart
  }

  #settingsOf(service: ConfigService): CitySettings {
    const config = service.current()
    const { lastError } = service
    return {
      provider: config.workspace.provider,
      sessionTemplate: config.workspace.session_template,
      suspendedOnStart: config.workspace.suspended_on_start ?? false,
      agentCount: config.agents.length,
      rigCount: config.rigs.length,
      retention: retentionOf(config.events.retention, this.#deps.retention),
      config: {
        revision: config.revision,
        loaded_at: isoTime(service.loadedAt),
        ...(lastError === undefined ? {} : { last_error: errorView(lastError) }),
      },
    }
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
