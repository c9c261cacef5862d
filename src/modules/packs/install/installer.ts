/**
 * From what a city imports to pins and checkouts: the part that uses the network.
 *
 * N1  Every source, direct or brought in by a pack, passes the fence before anything is sent to its host.
 * N2  A pin that still fits is kept; an upgrade chooses anew. A checkout that is missing or changed is fetched again at
 *     the same commit.
 * N3  Nothing of the city is written here.
 */

import type { RemoteSource } from '../../../files/pack-source.ts'
import {
  type Constraint,
  caretOf,
  highest,
  parseConstraint,
  satisfies,
  type Tagged,
} from '../../../files/pack-version.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import { type Closure, closureIn, type Demand, unfitHomes } from '../city/closure.ts'
import type { Declared } from '../city/imports.ts'
import type { Logins } from '../remote/credentials.ts'
import type { Fence } from '../remote/fence.ts'
import { type Git, type GitAccess, GitError, type RemoteRefs } from '../remote/git.ts'
import type { Checkout, PackCache } from '../store/cache.ts'
import { type Pin, samePin, sortPins } from '../store/lock.ts'
import { pinFor } from '../store/resolver.ts'

export interface InstallerDeps {
  readonly cache: PackCache
  readonly fence: Fence
  readonly git: Git
  readonly logins: Logins
  readonly clock: Clock
  /** Of this svcctl. */
  readonly version: string
}

export class ConstraintConflict extends Error {}
/** Something in what is imported that no network can repair. */
export class UnusableImport extends Error {}

/** Each round finds at most what the packs of the round before import. */
const MAX_ROUNDS = 40

/** One run: remembers what it has asked, so that a host is asked once. */
export class Installation {
  readonly #deps: InstallerDeps
  readonly #city: string
  readonly #signal: AbortSignal
  readonly #access = new Map<string, Promise<GitAccess>>()
  readonly #refs = new Map<string, Promise<RemoteRefs>>()
  readonly #looks = new Map<string, Promise<unknown>>()
  readonly #keep: (source: string) => boolean

  /** `keep`: whether a pin of this source may stay where it fits. */
  constructor(deps: InstallerDeps, city: string, signal: AbortSignal, keep: (source: string) => boolean = () => true) {
    this.#deps = deps
    this.#city = city
    this.#signal = signal
    this.#keep = keep
  }

  /** The pins of everything that `entries` lead to, each with its checkout in the cache. */
  async pins(entries: readonly Declared[], locked: readonly Pin[]): Promise<readonly Pin[]> {
    let pins: readonly Pin[] = locked.filter(({ source }) => this.#keep(source))
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const closure = this.closure(entries, pins)
      refuseUnusable(closure, this.#deps.version)
      const next: Pin[] = []
      for (const demands of bySource(closure.demands)) next.push(...(await this.#choose(demands, pins)))
      const settled = next.length === pins.length && next.every((pin) => pins.some((other) => samePin(pin, other)))
      pins = sortPins(next)
      // Once more after the last change: the new checkouts may import something.
      if (settled && round > 0) return pins
    }
    throw new ConstraintConflict('the imports of the packs do not settle')
  }

  closure(entries: readonly Declared[], pins: readonly Pin[]): Closure {
    return closureIn(this.#deps.cache, this.#city, entries, pins)
  }

  /** What `add` writes where nobody said a version: the highest release's series, or the commit of the default branch. */
  async defaultVersion(remote: RemoteSource): Promise<string> {
    const { head, tags } = await this.#refsOf(remote)
    const best = highest(tags, [])
    if (best !== undefined) return caretOf(best)
    if (head === undefined) throw new GitError('not_found', 'the repository is empty')
    return `sha:${head}`
  }

  /** What an upgrade would pin, and the highest release of all; of a repository without releases its newest commit. */
  async releases(remote: RemoteSource, constraint: string): Promise<{ fitting?: Release; newest?: Release }> {
    const wanted = parseConstraint(constraint)
    const { head, tags } = await this.#refsOf(remote)
    const commit = head === undefined || tags.length > 0 ? undefined : { version: `sha:${head}`, commit: head }
    const fitting = wanted.kind === 'commit' ? undefined : (releaseOf(highest(tags, [wanted])) ?? commit)
    const newest = releaseOf(highest(tags, [])) ?? commit
    return { ...(fitting === undefined ? {} : { fitting }), ...(newest === undefined ? {} : { newest }) }
  }

  /** One pin for all who ask; where their constraints exclude each other, one for each scope. */
  async #choose(demands: readonly Demand[], pins: readonly Pin[]): Promise<readonly Pin[]> {
    const together = await this.#pinOf(demands, pins)
    if (together !== undefined) return [together]
    const chosen: Pin[] = []
    for (const scope of new Set(demands.map((demand) => demand.scope))) {
      const own = demands.filter((demand) => demand.scope === scope)
      const pin = await this.#pinOf(own, pins)
      if (pin === undefined) throw noVersion(own)
      if (!chosen.some((other) => samePin(other, pin))) chosen.push(pin)
    }
    return chosen
  }

  async #pinOf(demands: readonly Demand[], pins: readonly Pin[]): Promise<Pin | undefined> {
    const remote = demands[0]?.remote
    if (remote === undefined) return undefined
    const constraints = [...new Set(demands.map(({ constraint }) => constraint))].map(parseConstraint)
    const fitting = pins.filter(
      (pin) => pin.source === remote.source && constraints.every((one) => satisfies(pin, one)),
    )
    const kept = pinFor(fitting, remote.source, '')
    if (kept !== undefined) return this.#ensure(remote, kept)
    const found = await this.#lookUp(remote, constraints)
    if (found === undefined) return undefined
    return this.#ensure(remote, {
      source: remote.source,
      ...found,
      contentHash: '',
      subpath: remote.subpath,
      fetched: '',
    })
  }

  async #lookUp(
    remote: RemoteSource,
    constraints: readonly Constraint[],
  ): Promise<{ version: string; commit: string } | undefined> {
    const commits = new Set(constraints.flatMap((one) => (one.kind === 'commit' ? [one.commit] : [])))
    if (commits.size > 1) return undefined
    const [commit] = commits
    if (commit !== undefined && constraints.every(({ kind }) => kind !== 'range'))
      return { version: `sha:${commit}`, commit }
    const { head, tags } = await this.#refsOf(remote)
    const best = highest(tags, constraints)
    if (best !== undefined) return { version: best.tag, commit: best.commit }
    const anything = constraints.every(({ kind }) => kind === 'any')
    return anything && tags.length === 0 && head !== undefined ? { version: `sha:${head}`, commit: head } : undefined
  }

  /** The pin with its checkout in place; fetched where the cache has none, or not what the pin says. */
  async #ensure(remote: RemoteSource, pin: Pin): Promise<Pin> {
    const { cache, fence, git, clock } = this.#deps
    const refused = fence.refusal(remote)
    if (refused !== undefined) await fence.vet(remote, this.#signal)
    const found = await this.#verified(remote.repository, pin.commit)
    if (found?.sound === true && (pin.contentHash === '' || pin.contentHash === found.contentHash)) {
      return pin.contentHash === '' ? { ...pin, contentHash: found.contentHash, fetched: isoTime(clock.now()) } : pin
    }
    const access = await this.#accessTo(remote)
    const tag = pin.version.startsWith('sha:') ? undefined : pin.version
    const { contentHash } = await cache.put(remote.repository, pin.commit, (dir) =>
      git.checkout(remote, pin.commit, tag, dir, access),
    )
    if (pin.contentHash !== '' && pin.contentHash !== contentHash) {
      throw new UnusableImport(
        'packs.lock pins another content than the commit has: restore it from version control, or remove the entry',
      )
    }
    return { ...pin, contentHash, fetched: isoTime(clock.now()) }
  }

  /** The checkout, read again once in this run. */
  async #verified(repository: string, commit: string): Promise<Checkout | undefined> {
    const { cache } = this.#deps
    await once(this.#looks, cache.pathOf(repository, commit), () => cache.verify(repository, commit))
    return cache.find(repository, commit)
  }

  #refsOf(remote: RemoteSource): Promise<RemoteRefs> {
    return once(this.#refs, remote.repository, async () => this.#deps.git.refs(remote, await this.#accessTo(remote)))
  }

  #accessTo(remote: RemoteSource): Promise<GitAccess> {
    return once(this.#access, remote.repository, async () => {
      const addresses = await this.#deps.fence.vet(remote, this.#signal)
      return { ...(await this.#deps.logins(remote, this.#signal)), addresses, signal: this.#signal }
    })
  }
}

type Release = Pick<Pin, 'version' | 'commit'>

const releaseOf = (tagged: Tagged | undefined): Release | undefined =>
  tagged === undefined ? undefined : { version: tagged.tag, commit: tagged.commit }

function refuseUnusable(closure: Closure, version: string): void {
  const [first] = [...closure.complaints.map(({ message }) => message), ...unfitHomes(closure, version)]
  if (first !== undefined) throw new UnusableImport(first)
}

function noVersion(demands: readonly Demand[]): Error {
  const asked = demands
    .map(({ binding, constraint }) => `${binding} ${constraint === '' ? '(any)' : constraint}`)
    .join(', ')
  return new ConstraintConflict(demands.length === 1 ? `no version fits: ${asked}` : `no version fits all: ${asked}`)
}

function bySource(demands: readonly Demand[]): readonly (readonly Demand[])[] {
  const groups = new Map<string, Demand[]>()
  for (const demand of demands) groups.set(demand.remote.source, [...(groups.get(demand.remote.source) ?? []), demand])
  return [...groups.values()]
}

function once<T>(known: Map<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  const found = known.get(key)
  if (found !== undefined) return found
  const asked = ask()
  known.set(key, asked)
  return asked
}
