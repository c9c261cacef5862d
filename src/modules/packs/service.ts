/**
 * Packs of cities: what is imported, pinned and there; adding, removing, installing, upgrading, checking.
 *
 * P1  Network work is a job; the city's files change in one edit at its end, or not at all.
 * P2  Files that changed while a job was on the network are read again; what it fetched stays in the cache.
 * P3  A job can run again from its start: an import that is there already as asked for counts as added.
 * P4  Nothing here repeats a source that may hold a password.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { EventDraft } from '../../kernel/event-log.ts'
import { definitionHash } from '../../kernel/etag.ts'
import { JobFailure } from '../../kernel/jobs.ts'
import type { Logger } from '../../kernel/log.ts'
import { invalidField, Problem, problem } from '../../kernel/problem.ts'
import { PACK_NAME_PATTERN, RESERVED_PACK_NAMES, type Pack, type PackAddRequest, type PackCheckResult, type PackIssue } from '../../contract/packs.ts'
import type { ErrorDetail } from '../../contract/problems.ts'
import { CredentialError } from './credentials.ts'
import { BlockedHost, UnknownHost } from './fence.ts'
import { GitError } from './git.ts'
import { type Declared, type Demand, effectiveImports, type RootImports, rootImports, type Scope } from './imports.ts'
import { checkoutDir, ConstraintConflict, Installation, type InstallerDeps, neededPins, UnusableImport } from './installer.ts'
import { formatLock, LOCK_FILE, LockError, parseLock, type Pin, samePin, sortPins } from './lock.ts'
import { providesOf } from './provides.ts'
import { pinFor, stateOf } from './resolver.ts'
import { nameOf, type PackSource, parseSource, SourceError } from './source.ts'
import { parseConstraint, VersionError } from './version.ts'

/** The files of a city inside an edit. */
export interface EditedFiles {
  get(path: string): string | undefined
  set(path: string, text: string): void
  delete(path: string): void
}

export interface PackEdit<T> {
  readonly actor: string
  readonly ifMatch?: string | undefined
  readonly etag?: () => string
  readonly change: (files: EditedFiles) => T
  readonly events: (result: T) => readonly EventDraft[]
  /** Also where the files on disk are refused as they are: for edits that mend them. */
  readonly mends?: boolean
}

/** A running city, as far as packs are concerned. */
export interface PackCity {
  readonly name: string
  readonly dir: string
  /** Of the configuration in force. */
  readonly revision: string
  /** Newest event of its log. */
  readonly head: () => number
  edit<T>(edit: PackEdit<T>): Promise<{ readonly result: T; readonly revision: string }>
  /** Loads what is on disk; the sentence says why it is refused. */
  reload(): Promise<{ readonly revision: string; readonly refused: string | undefined }>
  /** What in files names something that the import brings. */
  referrers(name: string, rig: string): readonly ErrorDetail[]
  /** Paths that materialisation found taken by somebody else. */
  foreignFiles(): readonly string[]
}

/** Comment-preserving edits of TOML text. */
export interface TomlEditor {
  addTable(text: string, path: readonly (string | number)[], values: Readonly<Record<string, string>>): string
  removeTable(text: string, path: readonly (string | number)[]): string
}

export interface PacksDeps extends InstallerDeps {
  readonly toml: TomlEditor
  readonly builtins: ReadonlyMap<string, string>
  readonly log: Logger
}

export interface AddInput {
  readonly name: string
  readonly scope: Scope
  readonly source: string
  readonly version: string
}

export interface Added extends AddInput {
  readonly commit: string | undefined
  readonly pinned: string | undefined
  readonly revision: string
}

const MAX_ATTEMPTS = 5
/** The files are not what this run looked at. */
class Stale extends Error {}

export class Packs {
  readonly #deps: PacksDeps

  constructor(deps: PacksDeps) {
    this.#deps = deps
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  list(city: PackCity): { readonly items: readonly Pack[]; readonly errors: readonly string[] } {
    const root = readRoot(city.dir)
    const { pins, error } = tryLock(readLock(city.dir))
    const errors = [...root.complaints.map(({ message }) => message), ...(error === undefined ? [] : [error])]
    return { items: effectiveImports(root.entries).map((entry) => this.#item(city.dir, entry, pins)), errors }
  }

  find(city: PackCity, name: string, scope: string | undefined): Pack {
    const named = this.list(city).items.filter((item) => item.name === name && (scope === undefined || item.scope === scope))
    const found = named.find((item) => item.scope === 'city') ?? named[0]
    if (found === undefined) throw problem('pack-not-found', `there is no import ${name}${scope === undefined ? '' : ` in ${scope}`}`)
    if (found.scope === 'city' || named.length === 1) return found
    throw problem('ambiguous-pack', `${name} is imported by ${named.map((item) => item.scope).join(', ')}: say which with \`scope\``)
  }

  #item(dir: string, entry: Declared, pins: readonly Pin[]): Pack {
    const { name, scope, version, file } = entry
    const source = tryParse(entry.source)
    const facts = source === undefined ? { kind: 'git' as const, state: 'missing' as const } : this.#facts(dir, source, version, pins)
    const { pin, at, ...rest } = { pin: undefined, at: undefined, ...facts }
    const shown = source?.kind === 'git' ? source.source : redacted(entry.source)
    const definition = { name, scope, source: shown, ...(version === '' ? {} : { version }), file }
    return {
      ...definition,
      ...rest,
      ...(pin === undefined ? {} : { pin: { version: pin.version, commit: pin.commit, content_hash: pin.contentHash, subpath: pin.subpath, fetched: pin.fetched } }),
      provides: { ...providesOf(at) },
      revision: definitionHash(definition),
    }
  }

  #facts(dir: string, source: PackSource, version: string, pins: readonly Pin[]): { kind: Pack['kind']; state: Pack['state']; pin?: Pin; at?: string } {
    if (source.kind === 'git') {
      const { state, pin } = stateOf(this.#deps.cache, pins, source, version)
      const found = state === 'installed' && pin !== undefined ? this.#deps.cache.find(source.repository, pin.commit)?.dir : undefined
      return { kind: 'git', state, ...(pin === undefined ? {} : { pin }), ...(found === undefined ? {} : { at: join(found, source.subpath) }) }
    }
    const at = source.kind === 'builtin' ? this.#deps.builtins.get(source.name) : join(dir, source.path)
    return at !== undefined && isPack(at) ? { kind: source.kind, state: 'installed', at } : { kind: source.kind, state: 'missing' }
  }

  /** Compares imports, lock and cache; no network, no writing. */
  check(city: PackCity): PackCheckResult {
    const root = readRoot(city.dir)
    const lockText = readLock(city.dir)
    const { pins, error } = tryLock(lockText)
    const issues: PackIssue[] = []
    if (error !== undefined) issues.push({ code: 'invalid-lockfile', severity: 'error', message: error, hint: 'restore it from version control, or remove it and install' })
    const closure = new Installation(this.#deps, city.dir, AbortSignal.any([])).closure(root.entries, usable(pins, root.entries))
    for (const { code, message, binding, scope } of [...root.complaints, ...closure.complaints]) {
      issues.push({ code, severity: 'error', message, ...(binding === undefined ? {} : { name: binding }), ...(scope === undefined ? {} : { scope }) })
    }
    for (const demand of closure.demands) issues.push(...this.#demandIssues(demand, pins, lockText !== undefined, error !== undefined))
    if (error === undefined) issues.push(...staleEntries(pins, neededPins(closure.demands.filter(hasConstraint), pins)))
    for (const path of city.foreignFiles()) issues.push({ code: 'foreign-file', severity: 'warning', message: `${path} is somebody else's: left as it is` })
    return { ok: issues.every(({ severity }) => severity !== 'error'), issues }
  }

  #demandIssues({ remote, constraint, binding, scope }: Demand, pins: readonly Pin[], hasLock: boolean, broken: boolean): PackIssue[] {
    const at = { severity: 'error', name: binding, scope } as const
    const refused = this.#deps.fence.refusal(remote)
    if (refused !== undefined) return [{ code: 'blocked-host', ...at, message: `${binding}: ${refused}` }]
    if (!hasConstraint({ constraint })) return [{ code: 'invalid-source', ...at, message: `${binding}: its version is not valid` }]
    if (broken) return []
    const { state, pin } = stateOf(this.#deps.cache, pins, remote, constraint)
    const hint = 'run `svcctl pack install`'
    if (state === 'stale') return [{ code: 'lock-constraint-mismatch', ...at, message: `${binding}: the lock does not fit \`${constraint}\``, hint: 'run `svcctl pack install`' }]
    if (state === 'drifted') return [{ code: 'cache-drifted', ...at, message: `${binding}: the cached content is not what the lock pins`, hint }]
    if (state === 'installed') return []
    if (pin !== undefined) return [{ code: 'missing-cache', ...at, message: `${binding}: not in the cache of this machine`, hint }]
    return [{ code: hasLock ? 'missing-lock-entry' : 'missing-lockfile', ...at, message: `${binding}: not pinned`, hint }]
  }

  // --- Before the 202 ----------------------------------------------------------------------------------------------

  /** What the job of an add gets; refuses what can be told to be wrong without the network. */
  prepareAdd(city: PackCity, body: PackAddRequest): AddInput {
    const source = readSource(body.source)
    const version = body.version ?? ''
    if (source.kind === 'git') {
      const refused = this.#deps.fence.refusal(source)
      if (refused !== undefined) throw invalidField('body.source', refused)
    } else if (version !== '') throw invalidField('body.version', `a ${source.kind === 'local' ? 'local' : 'built-in'} pack has no version`)
    readVersion(version)
    const name = body.name ?? nameOf(source)
    if (name === undefined || !new RegExp(PACK_NAME_PATTERN).test(name)) throw invalidField('body.name', 'cannot be told from the source: give one')
    if (RESERVED_PACK_NAMES.some((reserved) => reserved === name)) throw invalidField('body.name', `\`${name}\` is reserved`, name)
    if (source.kind === 'builtin' && !this.#deps.builtins.has(source.name)) throw invalidField('body.source', `there is no built-in pack \`${source.name.slice(0, 64)}\``)
    if (source.kind === 'local') refuseMissing(city.dir, source.path)
    return { name, scope: toScope(body.scope, readRoot(city.dir)), source: source.source, version }
  }

  /** Refuses a name that something is imported under. */
  refuseTaken(city: PackCity, { name, scope }: AddInput): void {
    if (!readRoot(city.dir).entries.some((entry) => entry.name === name && entry.scope === scope)) return
    throw problem('pack-exists', `${scope === 'city' ? 'the city' : scope} imports something as ${name} already`)
  }

  /** Refuses names that nothing is imported under. */
  refuseUnknown(city: PackCity, names: readonly string[] | undefined): void {
    if (names === undefined) return
    const known = new Set(readRoot(city.dir).entries.map(({ name }) => name))
    const unknown = names.filter((name) => !known.has(name))
    if (unknown.length === 0) return
    throw problem('pack-not-found', `there is no import ${unknown.join(', ')}`, { errors: unknown.map((name) => ({ location: 'body.names', message: 'is not imported', value: name })) })
  }

  // --- Jobs --------------------------------------------------------------------------------------------------------

  async add(city: PackCity, input: AddInput, signal: AbortSignal): Promise<Added> {
    return this.#explained(signal, async () => {
      const installation = new Installation(this.#deps, city.dir, signal)
      const source = parseSource(input.source)
      const version = source.kind === 'git' && input.version === '' ? await installation.defaultVersion(source) : input.version
      const entry = { ...input, version }
      const { pins, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => (isThere(declared, entry) ? declared : [...declared, { ...entry, file: '' }]),
        write: (files, declared) => {
          if (!isThere(declared, entry)) this.#declare(files, entry)
        },
        events: (before, after) => (isThere(before, entry) ? [] : [packEvent('pack.added', entry, pinOf(source, version, after))]),
      })
      const pin = pinOf(source, version, pins)
      return { ...entry, commit: pin?.commit, pinned: pin?.version, revision }
    })
  }

  async install(city: PackCity, signal: AbortSignal): Promise<{ installed: readonly Pin[]; removed: readonly string[]; total: number; revision: string }> {
    return this.#explained(signal, async () => {
      const present = (pin: Pin, source: PackSource | undefined) => source?.kind === 'git' && this.#deps.cache.find(source.repository, pin.commit)?.sound === true
      const there = new Set(tryLock(readLock(city.dir)).pins.filter((pin) => present(pin, tryParse(pin.source))).map(idOf))
      const installation = new Installation(this.#deps, city.dir, signal)
      const { pins, before, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => declared, write: () => {}, events: () => [], mends: true,
      })
      const installed = pins.filter((pin) => !before.some((old) => samePin(old, pin)) || !there.has(idOf(pin)))
      const removed = [...new Set(before.filter((old) => !pins.some((pin) => pin.source === old.source)).map(({ source }) => source))]
      return { installed, removed, total: pins.length, revision }
    })
  }

  async upgrade(city: PackCity, names: readonly string[] | undefined, signal: AbortSignal): Promise<{ upgraded: readonly Upgraded[]; revision: string }> {
    return this.#explained(signal, async () => {
      const chosen = names === undefined ? undefined : sourcesOf(readRoot(city.dir).entries, names)
      const installation = new Installation(this.#deps, city.dir, signal, (source) => chosen !== undefined && !chosen.has(source))
      const named = new Map<string, { name: string; scope: Scope }>()
      const { pins, before, revision } = await this.#settle(city, installation, signal, {
        entries: (declared) => declared, write: () => {}, mends: true,
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

  async remove(city: PackCity, name: string, scopeAsked: string | undefined, ifMatch: string | undefined): Promise<{ item: Pack; revision: string }> {
    const item = this.find(city, name, scopeAsked)
    const scope = scopeOf(item.scope)
    const rig = scope.startsWith('rig:') ? scope.slice('rig:'.length) : ''
    const root = readRoot(city.dir)
    const shadowed = root.entries.filter((entry) => entry.name === name && entry.scope === scope).length > 1
    const named = shadowed || scope === 'default-rig' ? [] : city.referrers(name, rig)
    if (named.length > 0) throw problem('still-referenced', `${name} is still in use: ${named.map(({ message }) => message).slice(0, 5).join('; ')}`, { errors: [...named] })
    const { revision } = await city.edit({
      actor: 'api',
      ifMatch,
      etag: () => this.find(city, name, scope).revision,
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

  /** A start: what is missing is fetched before the files are looked at. Failing is no matter here: the load says what is missing. */
  async prepareStart(dir: string, signal: AbortSignal): Promise<void> {
    const root = readRoot(dir)
    const lockText = readLock(dir)
    const { pins, error } = tryLock(lockText)
    if (error !== undefined || root.complaints.length > 0) return
    const installation = new Installation(this.#deps, dir, signal)
    try {
      const { demands } = installation.closure(root.entries, usable(pins, root.entries))
      if (demands.every((demand) => checkoutDir(this.#deps.cache, pins, demand) !== undefined)) return
      const settled = await installation.pins(root.entries, pins)
      const text = lockTextFor(settled, pins, lockText)
      signal.throwIfAborted()
      if (text !== undefined && text !== lockText && readLock(dir) === lockText) writeLock(dir, text)
    } catch (failure) {
      this.#deps.log.warn({ city: dir, error: toFailure(failure).message }, 'packs not fetched at start')
    }
  }

  async #settle(city: PackCity, installation: Installation, signal: AbortSignal, plan: Plan): Promise<{ pins: readonly Pin[]; before: readonly Pin[]; revision: string }> {
    for (let attempt = 1; ; attempt++) {
      const root = readRoot(city.dir)
      const lockText = readLock(city.dir)
      const before = lockText === undefined ? [] : parseLock(lockText)
      if (root.complaints[0] !== undefined) throw new JobFailure('invalid_config', root.complaints[0].message)
      const pins = await installation.pins(plan.entries(root.entries), before)
      signal.throwIfAborted()
      try {
        return { pins, before, revision: await this.#write(city, { root, lockText, before, pins }, plan) }
      } catch (error) {
        const moved = error instanceof Stale || (error instanceof Problem && error.code === 'conflict-config' && error.options.retryAfterSec !== undefined)
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

  #declare(files: EditedFiles, { name, scope, source, version }: AddInput): void {
    const file = scope === 'city' && files.get('pack.toml') !== undefined ? 'pack.toml' : scope.startsWith('rig:') ? rigFile(files, scope) : 'city.toml'
    const text = files.get(file)
    const path = text === undefined ? undefined : tablePath(text, scope, name)
    if (text === undefined || path === undefined) throw new JobFailure('invalid_config', `${scope} is no longer there`)
    files.set(file, this.#deps.toml.addTable(text, path, { source, ...(version === '' ? {} : { version }) }))
  }

  #dropUnneeded(city: PackCity, files: EditedFiles): void {
    const lockText = files.get(LOCK_FILE)
    if (lockText === undefined) return
    const pins = parseLock(lockText)
    const root = rootImports((path) => files.get(path))
    const { demands } = new Installation(this.#deps, city.dir, AbortSignal.any([])).closure(root.entries, pins)
    const next = lockTextFor(neededPins(demands, pins), pins, lockText)
    if (next === undefined) files.delete(LOCK_FILE)
    else files.set(LOCK_FILE, next)
  }

  async #explained<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      throw toFailure(error)
    }
  }
}

interface Plan {
  readonly entries: (declared: readonly Declared[]) => readonly Declared[]
  readonly write: (files: EditedFiles, declared: readonly Declared[]) => void
  readonly events: (declared: readonly Declared[], pins: readonly Pin[], before: readonly Pin[]) => readonly EventDraft[]
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

// --- Files -----------------------------------------------------------------------------------------------------------

const readRoot = (dir: string): RootImports => rootImports((path) => readText(join(dir, path)))
const readLock = (dir: string): string | undefined => readText(join(dir, LOCK_FILE))

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Whole or not at all; only before the city's configuration is open, which writes everything else. */
function writeLock(dir: string, text: string): void {
  const next = join(dir, '.svc', 'packs.lock.next')
  mkdirSync(dirname(next), { recursive: true })
  writeFileSync(next, text, { flush: true })
  renameSync(next, join(dir, LOCK_FILE))
}

function tryLock(text: string | undefined): { readonly pins: readonly Pin[]; readonly error?: string } {
  try {
    return { pins: text === undefined ? [] : parseLock(text) }
  } catch (error) {
    if (error instanceof LockError) return { pins: [], error: error.message }
    throw error
  }
}

/** The text stays as it is where it says the same. */
function lockTextFor(pins: readonly Pin[], before: readonly Pin[], text: string | undefined): string | undefined {
  const kept = sortPins(pins).map((pin) => before.find((old) => samePin(old, pin)) ?? pin)
  const same = text !== undefined && kept.length === before.length && kept.every((pin) => before.includes(pin))
  return same && kept.length > 0 ? text : formatLock(kept)
}

const isPack = (dir: string): boolean => readText(join(dir, 'pack.toml')) !== undefined

function refuseMissing(city: string, path: string): void {
  const inside = !relative(city, join(city, path)).startsWith('..')
  if (!inside) throw invalidField('body.source', 'a local pack must be inside the city')
  if (!isPack(join(city, path))) throw invalidField('body.source', 'there is no `pack.toml` at that path of the city')
}

// --- Names and places ------------------------------------------------------------------------------------------------

function readSource(text: string): PackSource {
  try {
    return parseSource(text)
  } catch (error) {
    // Without the value: it may hold a password.
    if (error instanceof SourceError) throw invalidField('body.source', error.message)
    throw error
  }
}

function readVersion(text: string): void {
  try {
    parseConstraint(text)
  } catch (error) {
    if (error instanceof VersionError) throw invalidField('body.version', error.message)
    throw error
  }
}

function tryParse(text: string): PackSource | undefined {
  try {
    return parseSource(text)
  } catch {
    return undefined
  }
}

/** A source as written, without anything that could be a password. */
function redacted(source: string): string {
  return source.replace(/^([a-z+.-]+:\/\/)[^/@]*@/i, '$1***@').replace(/^[^/@:]+:[^/@]*@/, '***@').replace(/[?#].*$/s, '')
}

function toScope(text: string | undefined, root: RootImports): Scope {
  const scope = scopeOf(text ?? 'city')
  if (scope.startsWith('rig:') && !root.rigs.includes(scope.slice('rig:'.length))) throw invalidField('body.scope', 'there is no such rig', scope)
  return scope
}

const scopeOf = (text: string): Scope => (text === 'default-rig' ? text : text.startsWith('rig:') ? `rig:${text.slice('rig:'.length)}` : 'city')

/** Path of the table in a file; undefined where the file has no such rig. */
function tablePath(text: string, scope: Scope, name: string): readonly (string | number)[] | undefined {
  if (scope === 'city') return ['imports', name]
  if (scope === 'default-rig') return ['defaults', 'rig', 'imports', name]
  const index = rigNames(text).indexOf(scope.slice('rig:'.length))
  return index < 0 ? undefined : ['rigs', index, 'imports', name]
}

/** As `tablePath`, where the file has the import. */
function pathOf(file: string, text: string, scope: Scope, name: string): readonly (string | number)[] | undefined {
  const own = rootImports((path) => (path === (file === 'pack.toml' ? 'pack.toml' : 'city.toml') ? text : undefined))
  return own.entries.some((entry) => entry.name === name && entry.scope === scope) ? tablePath(text, scope, name) : undefined
}

/** Names of the rigs that one file declares, in its order. */
const rigNames = (text: string): readonly string[] => rootImports((path) => (path === 'city.toml' ? text : undefined)).rigs

/** The file that declares the rig: `city.toml`, else the fragment that does. */
function rigFile(files: EditedFiles, scope: Scope): string {
  const { texts } = rootImports((path) => files.get(path))
  const rig = scope.slice('rig:'.length)
  return [...texts].find(([path, text]) => path !== 'pack.toml' && text !== undefined && rigNames(text).includes(rig))?.[0] ?? 'city.toml'
}

const isThere = (declared: readonly Declared[], entry: AddInput): boolean => {
  const found = declared.find(({ name, scope }) => name === entry.name && scope === entry.scope)
  if (found === undefined) return false
  if (found.source !== entry.source || found.version !== entry.version) throw new JobFailure('already_exists', `${entry.scope} imports something else as ${entry.name} meanwhile`)
  return true
}

// --- Pins ------------------------------------------------------------------------------------------------------------

const idOf = ({ source, commit }: Pin): string => `${source} ${commit}`

function pinOf(source: PackSource, version: string, pins: readonly Pin[]): Pin | undefined {
  return source.kind === 'git' ? pinFor(pins, source.source, version) : undefined
}

function hasConstraint({ constraint }: { readonly constraint: string }): boolean {
  try {
    parseConstraint(constraint)
    return true
  } catch {
    return false
  }
}

/** No pins where a version cannot be read: the walk would stumble over it. */
const usable = (pins: readonly Pin[], entries: readonly Declared[]): readonly Pin[] =>
  entries.every(({ version }) => hasConstraint({ constraint: version })) ? pins : []

function staleEntries(pins: readonly Pin[], needed: readonly Pin[]): PackIssue[] {
  return pins
    .filter((pin) => !needed.includes(pin))
    .map(({ source, version }) => ({ code: 'stale-lock-entry', severity: 'warning', message: `the lock pins ${source} ${version}, which nothing asks for`, hint: 'run `svcctl pack install`' }))
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

// --- Events and failures ---------------------------------------------------------------------------------------------

function packEvent(type: 'pack.added' | 'pack.removed', { name, scope, source }: { name: string; scope: Scope; source: string }, pin: Pin | undefined): EventDraft {
  const pinned = pin === undefined ? {} : { version: pin.version, commit: pin.commit }
  return { type, actor: 'api', subject: name, payload: { name, scope, source, ...pinned } }
}

function upgradeEvent({ pin, previous }: Upgraded, named: { name: string; scope: Scope } | undefined): EventDraft {
  const { name, scope } = named ?? { name: pin.source, scope: 'city' }
  return {
    type: 'pack.upgraded', actor: 'api', subject: name,
    payload: { name, scope, source: pin.source, version: pin.version, commit: pin.commit, previous_version: previous.version, previous_commit: previous.commit },
  }
}

const GIT_CODES: Readonly<Record<GitError['reason'], string>> = {
  missing: 'missing_dependency', credentials: 'pack_credential_required', not_found: 'clone_failed', timeout: 'timeout',
  too_large: 'clone_failed', failed: 'clone_failed',
}

/** In the words of `request.failed`; what is not known here stays as it is. */
export function toFailure(error: unknown): Error {
  if (error instanceof BlockedHost) return new JobFailure('blocked_host', error.message)
  if (error instanceof UnknownHost) return new JobFailure('clone_failed', error.message)
  if (error instanceof GitError) return new JobFailure(GIT_CODES[error.reason], error.message)
  if (error instanceof CredentialError) return new JobFailure('pack_credential_required', error.message)
  if (error instanceof ConstraintConflict) return new JobFailure('version_conflict', error.message)
  if (error instanceof VersionError || error instanceof SourceError || error instanceof UnusableImport || error instanceof LockError) {
    return new JobFailure('invalid_config', error.message)
  }
  if (error instanceof Stale) return new JobFailure('conflict_config', 'the files of the city keep changing')
  return error instanceof Error ? error : new Error(String(error))
}
