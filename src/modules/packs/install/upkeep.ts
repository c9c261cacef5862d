/** What the cache has for a city: looked at again, fetched before a start, and compared with the repositories. */
import type { PackCheckResult, PackStatus } from '../../../contract/packs.ts'
import { tryParse } from '../../../files/pack-source.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { PackCity } from '../city/city.ts'
import { lockTextFor, readLock, readRoot, tryLock, writeLock } from '../city/city-files.ts'
import { checkoutDir } from '../city/closure.ts'
import type { Consent } from './consent.ts'
import { toFailure } from './failures.ts'
import { Installation, type InstallerDeps } from './installer.ts'

export interface UpkeepDeps extends InstallerDeps {
  readonly consent: Consent
  readonly log: Logger
}

/** Repositories that are asked for their releases at the same time. */
const ASKED_AT_ONCE = 4

export class PackUpkeep {
  readonly #deps: UpkeepDeps

  constructor(deps: UpkeepDeps) {
    this.#deps = deps
  }

  /** Before a city is loaded for its start: what somebody has changed in the cache since is not used. */
  async verifyOnce(dir: string): Promise<void> {
    for (const { repository, commit } of gitPins(dir)) await this.#deps.cache.verifyOnce(repository, commit)
  }

  /** Reads what the cache has for the city again. */
  async verify(dir: string): Promise<void> {
    for (const { repository, commit } of gitPins(dir)) await this.#deps.cache.verify(repository, commit)
  }

  /** As a check found it, with the releases that the repositories have now; one that cannot be asked says why. */
  async withReleases(city: PackCity, found: PackCheckResult, signal: AbortSignal): Promise<PackCheckResult> {
    const installation = new Installation(this.#deps, city.dir, signal)
    const packs: PackStatus[] = []
    const queue = found.packs.entries()
    const ask = async (): Promise<void> => {
      for (const [index, item] of queue) packs[index] = { ...item, ...(await newer(installation, item)) }
    }
    await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask))
    return { ...found, packs }
  }

  /** A city that cannot start: fetches what is missing. Failing is no matter here: the load says what is missing. */
  async prepareStart(dir: string, signal: AbortSignal): Promise<boolean> {
    const root = readRoot(dir)
    const lockText = readLock(dir)
    const { pins, error } = tryLock(lockText)
    if (error !== undefined || root.complaints.length > 0) return false
    const installation = new Installation(this.#deps, dir, signal)
    using _ = this.#deps.cache.hold()
    try {
      const { demands } = installation.closure(root.entries, pins)
      if (demands.every((demand) => checkoutDir(this.#deps.cache, pins, demand) !== undefined)) return false
      const settled = await installation.pins(root.entries, pins)
      await this.#deps.consent.carryOver(dir, root.entries, settled)
      const text = lockTextFor(settled, pins, lockText)
      signal.throwIfAborted()
      if (readLock(dir) !== lockText) return false
      if (text !== undefined && text !== lockText) writeLock(dir, text)
      return true
    } catch (failure) {
      this.#deps.log.warn({ city: dir, error: toFailure(failure).message }, 'packs not fetched at start')
      return false
    }
  }
}

/** Releases of the repository of an import that are newer than what is pinned. */
async function newer(
  installation: Installation,
  { source, version, pin }: PackStatus,
): Promise<Pick<PackStatus, 'upgrade' | 'newest' | 'remote_error'>> {
  const remote = tryParse(source)
  if (remote?.kind !== 'git') return {}
  try {
    const { fitting, newest } = await installation.releases(remote, version ?? '')
    const upgrade = fitting !== undefined && fitting.commit !== pin?.commit ? { upgrade: fitting } : {}
    const beyond = newest !== undefined && ![pin?.commit, fitting?.commit].includes(newest.commit) ? { newest } : {}
    return { ...upgrade, ...beyond }
  } catch (error) {
    return { remote_error: toFailure(error).message }
  }
}

/** Repository and commit of every pin of the city; none where the lock cannot be read. */
function gitPins(dir: string): { readonly repository: string; readonly commit: string }[] {
  return tryLock(readLock(dir)).pins.flatMap(({ source, commit }) => {
    const remote = tryParse(source)
    return remote?.kind === 'git' ? [{ repository: remote.repository, commit }] : []
  })
}
