/** Where packs meet cities and their configuration: one cache and one fence, all cities. */

import { join } from 'node:path'
import { type ConfigFiles, readable } from '../../files/files.ts'
import { addTable, removeTable } from '../../files/toml-edit.ts'
import { delay } from '../../kernel/clock.ts'
import { JobFailure } from '../../kernel/jobs.ts'
import type { Store } from '../../kernel/store.ts'
import type { LoadOptions } from '../../modules/config/compose/context.ts'
import type { EffectiveConfig } from '../../modules/config/compose/effective.ts'
import { referrersOfImport } from '../../modules/config/compose/references.ts'
import { referrerDetail, summarize } from '../../modules/config/edit/answers.ts'
import { config as configuration } from '../../modules/config/family.ts'
import type { AdmissionDeps } from '../../modules/packs/admission.ts'
import { Staging } from '../../modules/packs/contents/staging.ts'
import type { PackRoom } from '../../modules/packs/family.ts'
import type { PackHandlersDeps } from '../../modules/packs/handlers.ts'
import { Consent } from '../../modules/packs/install/consent.ts'
import { PackUpkeep } from '../../modules/packs/install/upkeep.ts'
import { createLogins } from '../../modules/packs/remote/credentials.ts'
import { createFence, type Lookup } from '../../modules/packs/remote/fence.ts'
import { Git } from '../../modules/packs/remote/git.ts'
import { Packs } from '../../modules/packs/service.ts'
import { PackInventory } from '../../modules/packs/show/inventory.ts'
import { PackCache } from '../../modules/packs/store/cache.ts'
import { LOCK_FILE } from '../../modules/packs/store/lock.ts'
import { type NeedyCity, Pruning } from '../../modules/packs/store/pruning.ts'
import { createResolver } from '../../modules/packs/store/resolver.ts'
import { PackTrust } from '../../modules/packs/store/trust.ts'
import type { Host, Running, Service } from './running.ts'

export const BUILTIN_PACKS = new Map([['core', join(import.meta.dirname, '..', '..', 'modules', 'packs', 'core')]])
const START_MS = 60_000
/** How long a request may ask repositories. */
const REMOTE_MS = 20_000

export interface PackHost {
  readonly version: string
  readonly packs: Packs
  readonly upkeep: PackUpkeep
  readonly inventory: PackInventory
  readonly consent: Consent
  readonly admission: AdmissionDeps
  readonly cache: PackCache
  /** Answers the loader from the lock among `files` and the cache; no network. */
  resolver(files: ConfigFiles, dir: string): NonNullable<LoadOptions['resolvePack']>
  /** Fetches what the files of a city import and this machine lacks. True: another look may find more. */
  prepareStart(dir: string, signal: AbortSignal): Promise<boolean>
  /** Does some work for as long as a request may take. */
  within<T>(signal: AbortSignal, work: (limit: AbortSignal) => Promise<T>): Promise<T>
  /** Gives way to others for a moment; rejects where the supervisor ends. */
  pause(): Promise<void>
  /** The supervisor ends: downloads of starting cities are cut. */
  close(): void
}

export function openPackHost(
  { settings, env, clock, log, version }: Pick<Host, 'settings' | 'env' | 'clock' | 'log' | 'version'>,
  store: Store,
  lookup: Lookup | undefined,
): PackHost {
  const { home, allowedPackHosts } = settings
  const cache = new PackCache(home, clock, () => delay(clock, 0))
  cache.sweep()
  const trust = new PackTrust(store)
  const consent = new Consent({ cache, trust, clock })
  const resolve = createResolver(cache, trust)
  const fence = createFence(allowedPackHosts, lookup)
  const inventory = new PackInventory({ cache, fence, version, builtins: BUILTIN_PACKS, trust })
  const installer = {
    cache,
    fence,
    clock,
    version,
    git: new Git({ env, clock }),
    logins: createLogins({ home, env, clock }),
    consent,
  }
  const upkeep = new PackUpkeep({ ...installer, log })
  const packs = new Packs({ ...installer, upkeep, inventory, toml: { addTable, removeTable } })
  const closing = new AbortController()
  const limited = async <T>(signal: AbortSignal, limitMs: number, work: (limit: AbortSignal) => Promise<T>) => {
    const late = new AbortController()
    const cancel = clock.after(limitMs, () => late.abort(new Error('it took too long')))
    try {
      return await work(AbortSignal.any([late.signal, closing.signal, signal]))
    } finally {
      cancel()
    }
  }
  return {
    version,
    packs,
    upkeep,
    inventory,
    consent,
    admission: { fence, builtins: BUILTIN_PACKS },
    resolver: (files, dir) => {
      const lock = readable(files, join(dir, LOCK_FILE), dir)?.toString('utf8')
      return ({ remote, version }) => resolve({ remote, version, lock, city: dir })
    },
    cache,
    prepareStart: (dir, signal) => limited(signal, START_MS, (limit) => upkeep.prepareStart(dir, limit)),
    within: (signal, work) => limited(signal, REMOTE_MS, work),
    pause: () => delay(clock, 0, closing.signal),
    close: () => closing.abort(new Error('the supervisor is shutting down')),
  }
}

/** The packs family of the supervisor, which knows all cities. */
export const packService = ({ packs, cities, clock }: Service): PackHandlersDeps => ({
  ...packs,
  pruning: new Pruning({ cache: packs.cache, clock, cities: () => needyCities(cities) }),
})

function needyCities(cities: Service['cities']): readonly NeedyCity[] {
  const loaded = new Map(cities.runs().map((run) => [run.name, configuration.find(run)?.config.current().packs ?? []]))
  return cities
    .all()
    .map(({ name, path }) => ({ name, dir: path, loaded: (loaded.get(name) ?? []).map(({ dir }) => dir) }))
}

/** Settings, skills and servers of a pack reach every agent of the city: those of one that is not trusted reach none. */
const withoutUntrusted = (config: EffectiveConfig): EffectiveConfig => ({
  ...config,
  packs: config.packs.filter(({ trusted }) => trusted),
})

export function packRoom(city: Running): PackRoom {
  const { name, launch, host } = city
  const { packs, pause } = host.packs
  const { config } = configuration.of(city)
  const staging = new Staging({ city: name, log: host.log, pause })
  config.onChange((change) => staging.follow(withoutUntrusted(change.config)))
  return {
    packs,
    name,
    launch,
    dir: city.path,
    get revision() {
      return config.revision
    },
    head: () => city.store.log.head,
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
      await staging.settled()
      return { result, revision: now.revision }
    },
    append: (event) => city.store.db.write((tx) => void city.store.log.append(tx, event)),
    async reload() {
      const { outcome, revision, issues } = await config.reload('reload')
      return {
        revision,
        refused: outcome === 'rejected' ? new JobFailure('invalid_config', summarize(issues), issues) : undefined,
      }
    },
    referrers: (binding, rig) => referrersOfImport(config.current(), binding, rig).map(referrerDetail),
    foreignFiles: () => staging.foreign,
    stage: () => staging.run(withoutUntrusted(config.current())),
  }
}
