/**
 * Changing what a city imports: adding, removing, installing, upgrading.
 *
 * P1  Network work is a job; the city's files change in one edit at its end, or not at all.
 * P2  Files that changed while a job was on the network are read again; what it fetched stays in the cache.
 * P3  A job can run again from its start: an import that is there already as asked for counts as added.
 * P4  Nothing here repeats a source that may hold a password.
 */
import type { Pack } from '../../contract/packs.ts'
import type { TextFiles } from '../../files/configuration.ts'
import { type PackSource, parseSource, tryParse } from '../../files/pack-source.ts'
import { JobFailure } from '../../kernel/jobs.ts'
import { problem } from '../../kernel/problem.ts'
import type { AddInput } from './admission.ts'
import type { PackCity, TomlEditor } from './city/city.ts'
import { fileFor, lockTextFor, pathOf, readLock, readRoot, tablePath, tryLock } from './city/city-files.ts'
import { checkoutDir, closureIn, neededPins } from './city/closure.ts'
import { type Declared, rootImports, type Scope, scopeOf } from './city/imports.ts'
import type { Consent } from './install/consent.ts'
import { packEvent, trustedEvent, type Upgraded, upgradedPins, upgradeEvent } from './install/events.ts'
import { toFailure } from './install/failures.ts'
import { Installation, type InstallerDeps } from './install/installer.ts'
import { settle } from './install/settle.ts'
import type { PackUpkeep } from './install/upkeep.ts'
import type { PackInventory } from './show/inventory.ts'
import { LOCK_FILE, type Pin, samePin } from './store/lock.ts'
import { pinFor } from './store/resolver.ts'

export interface PacksDeps extends InstallerDeps {
  readonly consent: Consent
  readonly upkeep: PackUpkeep
  readonly toml: TomlEditor
  readonly inventory: PackInventory
}

export interface Added extends AddInput {
  readonly commit: string | undefined
  readonly pinned: string | undefined
  readonly revision: string
}

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
      const { pins, revision } = await settle(this.#deps.consent, city, installation, signal, {
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
      await this.#deps.upkeep.verify(city.dir)
      const present = (pin: Pin, source: PackSource | undefined) =>
        source?.kind === 'git' && this.#deps.cache.find(source.repository, pin.commit)?.sound === true
      const there = new Set(
        tryLock(readLock(city.dir))
          .pins.filter((pin) => present(pin, tryParse(pin.source)))
          .map(idOf),
      )
      const installation = new Installation(this.#deps, city.dir, signal)
      const { pins, before, revision } = await settle(this.#deps.consent, city, installation, signal, {
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
      const { pins, before, revision } = await settle(this.#deps.consent, city, installation, signal, {
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

const isThere = (declared: readonly Declared[], entry: AddInput): boolean => {
  const found = declared.find(({ name, scope }) => name === entry.name && scope === entry.scope)
  if (found === undefined) return false
  if (found.source !== entry.source || found.version !== entry.version)
    throw new JobFailure('already_exists', `${entry.scope} imports something else as ${entry.name} meanwhile`)
  return true
}

const idOf = ({ source, commit }: Pin): string => `${source} ${commit}`

function pinOf(source: PackSource, version: string, pins: readonly Pin[]): Pin | undefined {
  return source.kind === 'git' ? pinFor(pins, source.source, version) : undefined
}

function sourcesOf(entries: readonly Declared[], names: readonly string[]): ReadonlySet<string> {
  const sources = entries.filter(({ name }) => names.includes(name)).map(({ source }) => tryParse(source))
  return new Set(sources.flatMap((source) => (source?.kind === 'git' ? [source.source] : [])))
}
