/**
 * Changing what a city imports: adding, removing, installing, upgrading.
 *
 * P1  Network work is a job; the city's files change in one edit at its end, or not at all.
 * P2  Files that changed while a job was on the network are read again; what it fetched stays in the cache.
 * P3  A job can run again from its start: an import that is there already as asked for counts as added.
 * P4  Nothing here repeats a source that may hold a password.
 */
import type { Pack, PackCheckResult, PackStatus } from '../../contract/packs.ts'
import type { TextFiles } from '../../files/configuration.ts'
import { type PackSource, parseSource, tryParse } from '../../files/pack-source.ts'
import type { EventDraft } from '../../kernel/event-log.ts'
import { JobFailure } from '../../kernel/jobs.ts'
import type { Logger } from '../../kernel/log.ts'
import { Problem, problem } from '../../kernel/problem.ts'
import type { AddInput } from './admission.ts'
import type { PackCity, TomlEditor } from './city.ts'
import { fileFor, lockTextFor, pathOf, readLock, readRoot, tablePath, tryLock, writeLock } from './city-files.ts'
import type { Consent } from './consent.ts'
import { Stale, toFailure } from './failures.ts'
import { type Declared, type RootImports, rootImports, type Scope, scopeOf } from './imports.ts'
import { checkoutDir, closureIn, Installation, type InstallerDeps, neededPins } from './installer.ts'
import type { PackInventory } from './inventory.ts'
import { LOCK_FILE, type Pin, parseLock, samePin } from './lock.ts'
import { pinFor } from './resolver.ts'

export interface PacksDeps extends InstallerDeps {
  readonly consent: Consent
  readonly toml: TomlEditor
  readonly inventory: PackInventory
  readonly log: Logger
}

export interface Added extends AddInput {
  readonly commit: string | undefined
  readonly pinned: string | undefined
  readonly revision: string
}

const MAX_ATTEMPTS = 5
/** Repositories that are asked for their releases at the same time. */
const ASKED_AT_ONCE = 4

export class Packs {
  readonly #deps: PacksDeps

  constructor(deps: PacksDeps) {
    this.#deps = deps
  }

  async add(city: PackCity, input: AddInput, signal: AbortSignal): Promise<Added> {
    return this.#explained(signal, async () => {
      const installation = new Installation(this.#deps, city.dir, signal)
      const source = parseSource(input.source)
      const version =
        source.kind === 'git' && input.version === '' ? await installation.defaultVersion(source) : input.version
      const entry = { ...input, version }
      const { pins, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => (isThere(declared, entry) ? declared : [...declared, { ...entry, file: '', line: 0 }]),
        write: (files, declared) => {
          if (!isThere(declared, entry)) this.#declare(files, entry)
        },
        trusts: input.trust ? [{ ...entry, file: '', line: 0 }] : [],
        events: (before, after) => {
          const pin = pinOf(source, version, after)
          if (isThere(before, entry)) return []
          const trusted = input.trust && pin !== undefined ? [trustedEvent(entry, pin)] : []
          return [packEvent('pack.added', entry, pin), ...trusted]
        },
      })
      const pin = pinOf(source, version, pins)
      return { ...entry, commit: pin?.commit, pinned: pin?.version, revision }
    })
  }

  async install(
    city: PackCity,
    signal: AbortSignal,
  ): Promise<{ installed: readonly Pin[]; removed: readonly string[]; total: number; revision: string }> {
    return this.#explained(signal, async () => {
      await this.verify(city.dir)
      const present = (pin: Pin, source: PackSource | undefined) =>
        source?.kind === 'git' && this.#deps.cache.find(source.repository, pin.commit)?.sound === true
      const there = new Set(
        tryLock(readLock(city.dir))
          .pins.filter((pin) => present(pin, tryParse(pin.source)))
          .map(idOf),
      )
      const installation = new Installation(this.#deps, city.dir, signal)
      const { pins, before, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => declared,
        write: () => {},
        events: () => [],
        mends: true,
      })
      const installed = pins.filter((pin) => !before.some((old) => samePin(old, pin)) || !there.has(idOf(pin)))
      const removed = [
        ...new Set(before.filter((old) => !pins.some((pin) => pin.source === old.source)).map(({ source }) => source)),
      ]
      return { installed, removed, total: pins.length, revision }
    })
  }

  async upgrade(
    city: PackCity,
    names: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<{ upgraded: readonly Upgraded[]; revision: string }> {
    return this.#explained(signal, async () => {
      const chosen = names === undefined ? undefined : sourcesOf(readRoot(city.dir).entries, names)
      const installation = new Installation(
        this.#deps,
        city.dir,
        signal,
        (source) => chosen !== undefined && !chosen.has(source),
      )
      const named = new Map<string, { name: string; scope: Scope }>()
      const { pins, before, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => declared,
        write: () => {},
        mends: true,
        events: (declared, after, old) => {
          for (const { remote, binding, scope } of installation.closure(declared, after).demands) {
            if (!named.has(remote.source)) named.set(remote.source, { name: binding, scope })
          }
          return upgradedPins(old, after).map((change) => upgradeEvent(change, named.get(change.pin.source)))
        },
      })
      return { upgraded: upgradedPins(before, pins), revision }
    })
  }

  async remove(
    city: PackCity,
    name: string,
    scopeAsked: string | undefined,
    ifMatch: string | undefined,
  ): Promise<{ item: Pack; revision: string }> {
    const item = this.#deps.inventory.find(city, name, scopeAsked)
    const scope = scopeOf(item.scope)
    const rig = scope.startsWith('rig:') ? scope.slice('rig:'.length) : ''
    const root = readRoot(city.dir)
    const shadowed = root.entries.filter((entry) => entry.name === name && entry.scope === scope).length > 1
    const named = shadowed || scope === 'default-rig' ? [] : city.referrers(name, rig)
    if (named.length > 0)
      throw problem(
        'still-referenced',
        `${name} is still in use: ${named
          .map(({ message }) => message)
          .slice(0, 5)
          .join('; ')}`,
        { errors: [...named] },
      )
    const { revision } = await city.edit({
      actor: 'api',
      ifMatch,
      // A pack that is not there makes the files invalid: taking its import out mends them.
      mends: item.state !== 'installed',
      etag: () => this.#deps.inventory.find(city, name, scope).revision,
      change: (files) => {
        const text = files.get(item.file)
        const path = text === undefined ? undefined : pathOf(item.file, text, scope, name)
        if (text === undefined || path === undefined) throw problem('pack-not-found', `there is no import ${name}`)
        files.set(item.file, this.#deps.toml.removeTable(text, path))
        this.#dropUnneeded(city, files)
      },
      events: () => [packEvent('pack.removed', { name, scope, source: item.source }, undefined)],
    })
    return { item, revision }
  }

  /** Lets an import start what it brings, at the commit that somebody has looked at. */
  async trust(city: PackCity, name: string, scope: string | undefined, commit: string): Promise<void> {
    const { inventory, consent } = this.#deps
    const item = inventory.find(city, name, scope)
    const entry = inventory.declared(city, item)
    if (item.kind !== 'git' || entry === undefined) return
    if (item.pin?.commit !== commit || item.state !== 'installed')
      throw problem(
        'pack-changed',
        `${name} is ${item.pin === undefined ? 'not installed' : `at ${item.pin.commit} and ${item.state}`}: look again`,
      )
    if (item.trusted) return
    await consent.give(city.dir, [entry], tryLock(readLock(city.dir)).pins)
    const { version } = item.pin
    await city.append(trustedEvent({ name, scope: entry.scope, source: item.source }, { version, commit }))
    await city.reload()
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

  async #settle(
    city: PackCity,
    installation: Installation,
    signal: AbortSignal,
    plan: Plan,
  ): Promise<{ pins: readonly Pin[]; before: readonly Pin[]; revision: string }> {
    for (let attempt = 1; ; attempt++) {
      const root = readRoot(city.dir)
      const lockText = readLock(city.dir)
      const before = lockText === undefined ? [] : parseLock(lockText)
      if (root.complaints[0] !== undefined) throw new JobFailure('invalid_config', root.complaints[0].message)
      const entries = plan.entries(root.entries)
      const pins = await installation.pins(entries, before)
      // Before the files change: whoever loads them asks what may be started.
      await this.#deps.consent.give(city.dir, plan.trusts ?? [], pins)
      await this.#deps.consent.carryOver(city.dir, entries, pins)
      signal.throwIfAborted()
      try {
        return { pins, before, revision: await this.#write(city, { root, lockText, before, pins }, plan) }
      } catch (error) {
        const moved =
          error instanceof Stale ||
          (error instanceof Problem && error.code === 'conflict-config' && error.options.retryAfterSec !== undefined)
        if (!moved || attempt >= MAX_ATTEMPTS) throw error
      }
    }
  }

  async #write(city: PackCity, seen: Seen, plan: Plan): Promise<string> {
    const { root, lockText, before, pins } = seen
    let touched = false
    const { revision } = await city.edit({
      actor: 'api',
      ...(plan.mends === undefined ? {} : { mends: plan.mends }),
      change: (files) => {
        for (const [path, text] of root.texts) if (files.get(path) !== text) throw new Stale()
        if (files.get(LOCK_FILE) !== lockText) throw new Stale()
        plan.write(files, root.entries)
        const next = lockTextFor(pins, before, lockText)
        if (next === undefined) files.delete(LOCK_FILE)
        else files.set(LOCK_FILE, next)
        touched = next !== lockText || [...root.texts].some(([path, text]) => files.get(path) !== text)
      },
      events: () => plan.events(root.entries, pins, before),
    })
    if (touched) return revision
    // The files say the same, but the cache may now have what they ask for.
    const reloaded = await city.reload()
    if (reloaded.refused !== undefined) throw new JobFailure('invalid_config', reloaded.refused)
    return reloaded.revision
  }

  #declare(files: TextFiles, { name, scope, source, version }: AddInput): void {
    const file = fileFor(files, scope)
    const text = files.get(file)
    const path = text === undefined ? undefined : tablePath(text, scope, name)
    if (text === undefined || path === undefined) throw new JobFailure('invalid_config', `${scope} is no longer there`)
    files.set(file, this.#deps.toml.addTable(text, path, { source, ...(version === '' ? {} : { version }) }))
  }

  /** Takes pins out of the lock that nobody asks for any more; as long as something is missing nobody can tell. */
  #dropUnneeded(city: PackCity, files: TextFiles): void {
    const lockText = files.get(LOCK_FILE)
    const { pins, error } = tryLock(lockText)
    const { entries } = rootImports((path) => files.get(path))
    if (lockText === undefined || error !== undefined) return
    const { cache } = this.#deps
    const { demands, complaints } = closureIn(cache, city.dir, entries, pins)
    if (complaints.length > 0 || demands.some((demand) => checkoutDir(cache, pins, demand) === undefined)) return
    const next = lockTextFor(neededPins(demands, pins), pins, lockText)
    if (next === undefined) files.delete(LOCK_FILE)
    else files.set(LOCK_FILE, next)
  }

  async #explained<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    using _ = this.#deps.cache.hold()
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      throw toFailure(error)
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

interface Plan {
  /** What is trusted with it. */
  readonly trusts?: readonly Declared[]
  readonly entries: (declared: readonly Declared[]) => readonly Declared[]
  readonly write: (files: TextFiles, declared: readonly Declared[]) => void
  readonly events: (
    declared: readonly Declared[],
    pins: readonly Pin[],
    before: readonly Pin[],
  ) => readonly EventDraft[]
  readonly mends?: boolean
}

interface Seen {
  readonly root: RootImports
  readonly lockText: string | undefined
  readonly before: readonly Pin[]
  readonly pins: readonly Pin[]
}

export interface Upgraded {
  readonly pin: Pin
  readonly previous: Pin
}

const isThere = (declared: readonly Declared[], entry: AddInput): boolean => {
  const found = declared.find(({ name, scope }) => name === entry.name && scope === entry.scope)
  if (found === undefined) return false
  if (found.source !== entry.source || found.version !== entry.version)
    throw new JobFailure('already_exists', `${entry.scope} imports something else as ${entry.name} meanwhile`)
  return true
}

/** Repository and commit of every pin of the city; none where the lock cannot be read. */
function gitPins(dir: string): { readonly repository: string; readonly commit: string }[] {
  return tryLock(readLock(dir)).pins.flatMap(({ source, commit }) => {
    const remote = tryParse(source)
    return remote?.kind === 'git' ? [{ repository: remote.repository, commit }] : []
  })
}

const idOf = ({ source, commit }: Pin): string => `${source} ${commit}`

function pinOf(source: PackSource, version: string, pins: readonly Pin[]): Pin | undefined {
  return source.kind === 'git' ? pinFor(pins, source.source, version) : undefined
}

function sourcesOf(entries: readonly Declared[], names: readonly string[]): ReadonlySet<string> {
  const sources = entries.filter(({ name }) => names.includes(name)).map(({ source }) => tryParse(source))
  return new Set(sources.flatMap((source) => (source?.kind === 'git' ? [source.source] : [])))
}

function upgradedPins(before: readonly Pin[], after: readonly Pin[]): Upgraded[] {
  return after.flatMap((pin) => {
    if (before.some((old) => samePin(old, pin))) return []
    const previous = before.find((old) => old.source === pin.source)
    return previous === undefined ? [] : [{ pin, previous }]
  })
}

function packEvent(
  type: 'pack.added' | 'pack.removed',
  { name, scope, source }: Named,
  pin: Pinned | undefined,
): EventDraft {
  const pinned = pin === undefined ? {} : { version: pin.version, commit: pin.commit }
  return { type, actor: 'api', subject: name, payload: { name, scope, source, ...pinned } }
}

const trustedEvent = ({ name, scope, source }: Named, { version, commit }: Pinned): EventDraft => ({
  type: 'pack.trusted',
  actor: 'api',
  subject: name,
  payload: { name, scope, source, version, commit },
})

type Named = { readonly name: string; readonly scope: Scope; readonly source: string }
type Pinned = Pick<Pin, 'version' | 'commit'>

function upgradeEvent({ pin, previous }: Upgraded, named: { name: string; scope: Scope } | undefined): EventDraft {
  const { name, scope } = named ?? { name: pin.source, scope: 'city' }
  return {
    type: 'pack.upgraded',
    actor: 'api',
    subject: name,
    payload: {
      name,
      scope,
      source: pin.source,
      version: pin.version,
      commit: pin.commit,
      previous_version: previous.version,
      previous_commit: previous.commit,
    },
  }
}
