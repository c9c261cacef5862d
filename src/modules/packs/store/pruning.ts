/**
 * The cache of this machine: who needs what of it, and taking away what nobody does.
 *
 * R1  What the lock of a registered city names stays, running or not, and what the configuration in force of one has.
 * R2  A lock that cannot be read could name anything: nothing is removed then.
 * R3  Who needs what is looked at in the tick in which the directories go; a crash after that leaves only what the next
 *     start sweeps up.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseDurationMs } from '../../../contract/base/durations.ts'
import type { CachedPack, PackPruneRequest } from '../../../contract/packs.ts'
import { tryParse } from '../../../files/pack-source.ts'
import { readInside } from '../../../files/read.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import { problem } from '../../../kernel/problem.ts'
import type { CacheEntry, PackCache } from './cache.ts'
import { LOCK_FILE, parseLock } from './lock.ts'

/** A registered city. */
export interface NeedyCity {
  readonly name: string
  readonly dir: string
  /** Directories of the packs that its configuration in force has; none while it does not run. */
  readonly loaded: readonly string[]
}

export interface PruningDeps {
  readonly cache: PackCache
  readonly clock: Clock
  readonly cities: () => readonly NeedyCity[]
}

interface Needs {
  /** Names of cities by directory of the cache. */
  readonly by: ReadonlyMap<string, readonly string[]>
  /** Why it is not known what some cities need. */
  readonly unknown: readonly string[]
}

const MAX_AGE = '7d'

export class Pruning {
  readonly #deps: PruningDeps

  constructor(deps: PruningDeps) {
    this.#deps = deps
  }

  async list(): Promise<{ readonly items: readonly CachedPack[]; readonly errors: readonly string[] }> {
    const entries = await this.#deps.cache.entries()
    const { by, unknown } = this.#needs()
    const items = [...entries].sort((a, b) => b.bytes - a.bytes).map((entry) => shown(entry, by))
    return { items, errors: unknown }
  }

  async prune(request: PackPruneRequest) {
    const { cache } = this.#deps
    const entries = await cache.entries()
    const { by } = this.#known()
    const chosen = this.#choose(entries, by, request)
    const removed = request.dry_run === true ? chosen : await cache.remove(chosen, () => this.#unneeded())
    const gone = new Set(removed.map(({ path }) => path))
    const kept = entries.filter(({ path }) => !gone.has(path))
    return {
      dry_run: request.dry_run === true,
      removed: removed.map((entry) => shown(entry, by)),
      removed_bytes: bytesOf(removed),
      kept: kept.length,
      kept_bytes: bytesOf(kept),
    }
  }

  /** What nobody needs and is old, and of the younger ones as many as it takes. */
  #choose(entries: readonly CacheEntry[], by: Needs['by'], request: PackPruneRequest): readonly CacheEntry[] {
    const oldest = this.#deps.clock.now() - parseDurationMs(request.max_age ?? MAX_AGE)
    const free = entries.filter(({ path }) => !by.has(path)).sort((a, b) => a.lastUsed - b.lastUsed)
    let left = bytesOf(entries)
    return free.filter(({ lastUsed, bytes }) => {
      const goes = lastUsed <= oldest || (request.max_bytes !== undefined && left > request.max_bytes)
      if (goes) left -= bytes
      return goes
    })
  }

  #unneeded(): (path: string) => boolean {
    const { by } = this.#known()
    return (path) => !by.has(path)
  }

  #known(): Needs {
    const needs = this.#needs()
    if (needs.unknown.length === 0) return needs
    throw problem('unreadable-lock', `nothing is removed: ${needs.unknown.join('; ')}: mend it, or unregister the city`)
  }

  #needs(): Needs {
    const { cache, cities } = this.#deps
    const by = new Map<string, string[]>()
    const unknown: string[] = []
    for (const { name, dir, loaded } of cities()) {
      const pinned = pinnedBy(cache, dir)
      if (typeof pinned === 'string') unknown.push(`${name}: ${pinned}`)
      const paths = [
        ...(typeof pinned === 'string' ? [] : pinned),
        ...loaded.flatMap((one) => cache.entryOf(one) ?? []),
      ]
      for (const path of new Set(paths)) by.set(path, [...(by.get(path) ?? []), name])
    }
    return { by, unknown }
  }
}

/** Directories of the cache that the lock of a city names, or why nobody can tell. */
function pinnedBy(cache: PackCache, dir: string): readonly string[] | string {
  if (!existsSync(dir)) return 'its directory is not there'
  try {
    const text = readInside(join(dir, LOCK_FILE), dir)?.toString('utf8')
    return (text === undefined ? [] : parseLock(text)).flatMap(({ source, commit }) => {
      const remote = tryParse(source)
      return remote?.kind === 'git' ? [cache.pathOf(remote.repository, commit)] : []
    })
  } catch (error) {
    return `packs.lock cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

const bytesOf = (entries: readonly CacheEntry[]): number => entries.reduce((sum, { bytes }) => sum + bytes, 0)

const shown = ({ path, id, repository, commit, bytes, lastUsed }: CacheEntry, by: Needs['by']): CachedPack => ({
  id,
  ...(repository === undefined ? {} : { repository }),
  ...(commit === undefined ? {} : { commit }),
  bytes,
  last_used_at: isoTime(lastUsed),
  cities: [...(by.get(path) ?? [])],
})
