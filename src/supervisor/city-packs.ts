/** Where the packs family meets cities and their configuration: one cache and one fence, all cities. */

import { join } from 'node:path'
import { type ConfigFiles, readable } from '../files/files.ts'
import { addTable, removeTable } from '../files/toml-edit.ts'
import { type Clock, delay } from '../kernel/clock.ts'
import type { Job } from '../kernel/jobs.ts'
import type { Logger } from '../kernel/log.ts'
import type { Environment } from '../kernel/processes.ts'
import type { City } from '../modules/cities/city.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'
import type { LoadOptions } from '../modules/config/compose/context.ts'
import type { EffectiveConfig } from '../modules/config/compose/effective.ts'
import { referrersOfImport } from '../modules/config/compose/references.ts'
import { referrerDetail, summarize } from '../modules/config/edit/answers.ts'
import type { ConfigService } from '../modules/config/edit/service.ts'
import type { AdmissionDeps } from '../modules/packs/admission.ts'
import { PackCache } from '../modules/packs/cache.ts'
import type { PackCity } from '../modules/packs/city.ts'
import { createLogins } from '../modules/packs/credentials.ts'
import { createFence, type Lookup } from '../modules/packs/fence.ts'
import { Git } from '../modules/packs/git.ts'
import { createPackHandlers, type PackHandlersDeps } from '../modules/packs/handlers.ts'
import { PackInventory } from '../modules/packs/inventory.ts'
import { packJobs } from '../modules/packs/jobs.ts'
import { LOCK_FILE } from '../modules/packs/lock.ts'
import { materialise } from '../modules/packs/materialise.ts'
import { createResolver } from '../modules/packs/resolver.ts'
import { Packs } from '../modules/packs/service.ts'

export interface CityPacksDeps {
  readonly home: string
  readonly allowedHosts: readonly string[]
  readonly builtins: ReadonlyMap<string, string>
  readonly env: Environment
  readonly clock: Clock
  readonly log: Logger
  /** For tests: how names are resolved. */
  readonly lookup?: Lookup | undefined
}

/** What of a running city is needed; the spec's 404 for any other. */
export interface CityPacksAccess {
  readonly config: (city: string) => ConfigService
  readonly head: (city: string) => number
}

const START_MS = 60_000

export class CityPacks {
  readonly #deps: CityPacksDeps
  readonly #packs: Packs
  readonly #inventory: PackInventory
  readonly #admission: AdmissionDeps
  readonly #resolve: ReturnType<typeof createResolver>
  readonly #foreign = new Map<string, readonly string[]>()
  readonly #closing = new AbortController()
  readonly #staging = new Map<string, Promise<void>>()
  #access: CityPacksAccess | undefined

  constructor(deps: CityPacksDeps) {
    this.#deps = deps
    const cache = new PackCache(deps.home, () => delay(deps.clock, 0))
    cache.sweep()
    this.#resolve = createResolver(cache)
    const { builtins, clock, log } = deps
    const fence = createFence(deps.allowedHosts, deps.lookup)
    this.#admission = { fence, builtins }
    this.#inventory = new PackInventory({ cache, fence, builtins })
    this.#packs = new Packs({
      cache,
      fence,
      clock,
      log,
      git: new Git({ env: deps.env, clock }),
      logins: createLogins({ home: deps.home, env: deps.env }),
      inventory: this.#inventory,
      toml: { addTable, removeTable },
    })
  }

  /** Answers the loader from the lock among `files` and the cache; no network. */
  resolver(files: ConfigFiles, dir: string): NonNullable<LoadOptions['resolvePack']> {
    const lock = readable(files, join(dir, LOCK_FILE), dir)?.toString('utf8')
    return ({ source, version }) => this.#resolve({ source, version, lock })
  }

  /** Before a start: what was changed in the cache is not loaded. */
  verify = (city: City): Promise<void> => this.#packs.verifyOnce(city.path)

  /**
   * For a city whose files cannot be loaded: fetches what they import and this machine does not have. True: everything is
   * there now, so that another look may find more.
   */
  async prepareStart(city: City): Promise<boolean> {
    const aborter = new AbortController()
    const cancel = this.#deps.clock.after(START_MS, () => aborter.abort(new Error('fetching packs took too long')))
    try {
      return await this.#packs.prepareStart(city.path, AbortSignal.any([aborter.signal, this.#closing.signal]))
    } finally {
      cancel()
    }
  }

  /** Stages what packs bring, as part of the start. */
  get hook(): PhaseHook {
    return {
      phase: 'resolving_formulas',
      run: (city) => this.#staged(city.name, () => this.#stage(city.name, this.#reach().config(city.name).current())),
    }
  }

  /** A change of a running city: one that cannot be staged goes on with what was staged before. */
  follow(city: City, config: EffectiveConfig): void {
    this.#staged(city.name, () => this.#stage(city.name, config)).catch((error: unknown) =>
      this.#deps.log.error({ city: city.name, err: error }, 'packs not staged'),
    )
  }

  async #stage(city: string, config: EffectiveConfig): Promise<void> {
    const { clock, log } = this.#deps
    const { written, removed, foreign } = await materialise(config, () => delay(clock, 0, this.#closing.signal))
    this.#foreign.set(city, foreign)
    if (written + removed + foreign.length > 0) log.info({ city, written, removed, foreign }, 'packs staged')
  }

  /** One run at a time for a city, in the order of the changes. */
  #staged(city: string, work: () => Promise<void>): Promise<void> {
    const turn = (this.#staging.get(city) ?? Promise.resolve()).then(work, work)
    this.#staging.set(city, turn)
    return turn
  }

  jobs(city: City): readonly Job[] {
    return packJobs(this.#packs, () => this.#city(city.name))
  }

  handlers(access: CityPacksAccess, launch: PackHandlersDeps['launch']) {
    this.#access = access
    return createPackHandlers({
      packs: this.#packs,
      inventory: this.#inventory,
      admission: this.#admission,
      city: (name) => this.#city(name),
      launch,
    })
  }

  /** The supervisor ends: downloads of starting cities are cut. */
  close(): void {
    this.#closing.abort(new Error('the supervisor is shutting down'))
  }

  #reach(): CityPacksAccess {
    if (this.#access === undefined) throw new Error('packs are used before they are wired')
    return this.#access
  }

  #city(name: string): PackCity {
    const access = this.#reach()
    const config = access.config(name)
    return {
      name,
      dir: config.current().dir,
      revision: config.revision,
      // Asked for by requests only: a job that is resumed at the start comes before the city is running.
      head: () => access.head(name),
      edit: async ({ actor, ifMatch, etag, change, events, mends }) => {
        const { result, config: now } = await config.edit({
          actor,
          ifMatch,
          change,
          events: (outcome) => events(outcome.result),
          ...(etag === undefined ? {} : { etag }),
          ...(mends === undefined ? {} : { mends }),
        })
        // Who hears of the end finds what the pack brings.
        await this.#staging.get(name)?.catch(() => {})
        return { result, revision: now.revision }
      },
      async reload() {
        const { outcome, revision, issues } = await config.reload('reload')
        return { revision, refused: outcome === 'rejected' ? summarize(issues) : undefined }
      },
      referrers: (binding, rig) => referrersOfImport(config.current(), binding, rig).map(referrerDetail),
      foreignFiles: () => this.#foreign.get(name) ?? [],
    }
  }
}
