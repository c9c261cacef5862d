/** What an import leads to in git, whether that may be started, and what it would run. */

import type { PackRun } from '../../../contract/packs.ts'
import { type Clock, delay } from '../../../kernel/clock.ts'
import { readLock, tryLock } from '../city/city-files.ts'
import { closureIn, fittingPin } from '../city/closure.ts'
import type { Declared } from '../city/imports.ts'
import { runsHash, runsOf } from '../contents/runs.ts'
import type { PackCache } from '../store/cache.ts'
import type { Pin } from '../store/lock.ts'
import type { PackTrust } from '../store/trust.ts'

export interface ConsentDeps {
  readonly cache: PackCache
  readonly trust: PackTrust
  readonly clock: Clock
}

interface Thing {
  readonly repository: string
  readonly commit: string
  /** Its checkout. */
  readonly dir: string
}

const MAX_RUNS = 500

export class Consent {
  readonly #deps: ConsentDeps

  constructor(deps: ConsentDeps) {
    this.#deps = deps
  }

  /** Trusts what the entries lead to now. */
  async give(city: string, entries: readonly Declared[], pins: readonly Pin[]): Promise<void> {
    await this.#add(city, this.#things(city, entries, pins), () => true)
  }

  /** Trusts other commits of what is trusted where they run the same. */
  async carryOver(city: string, entries: readonly Declared[], pins: readonly Pin[]): Promise<void> {
    const { trust } = this.#deps
    await this.#add(city, this.#things(city, entries, pins), ({ repository, runs }) =>
      trust.knows(city, repository, runs),
    )
  }

  /** What the import would run, with the packs that it imports. */
  async runs(city: string, entry: Declared): Promise<PackRun[]> {
    const { cache } = this.#deps
    const { pins } = tryLock(readLock(city))
    const { homes } = closureIn(cache, city, [entry], pins)
    const runs: PackRun[] = []
    for (const { dir, root } of homes) runs.push(...(await runsOf(dir, root, this.#pause)))
    return runs.slice(0, MAX_RUNS)
  }

  async #add(
    city: string,
    things: readonly Thing[],
    accepts: (thing: Thing & { readonly runs: string }) => boolean,
  ): Promise<void> {
    const { trust, clock } = this.#deps
    for (const thing of things) {
      if (trust.has(city, thing)) continue
      const known = { ...thing, runs: await runsHash(thing.dir, this.#pause) }
      if (accepts(known)) await trust.add(city, known, clock.now())
    }
  }

  #things(city: string, entries: readonly Declared[], pins: readonly Pin[]): readonly Thing[] {
    const { cache } = this.#deps
    const { demands } = closureIn(cache, city, entries, pins)
    const found = new Map<string, Thing>()
    for (const { remote, constraint } of demands) {
      const commit = fittingPin(pins, remote.source, constraint)?.commit
      const dir = commit === undefined ? undefined : cache.find(remote.repository, commit)?.dir
      if (commit !== undefined && dir !== undefined) found.set(dir, { repository: remote.repository, commit, dir })
    }
    return [...found.values()]
  }

  readonly #pause = (): Promise<void> => delay(this.#deps.clock, 0)
}
