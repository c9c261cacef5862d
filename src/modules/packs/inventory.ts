/** What a city imports and what has become of it: lists and checks. Reads files, lock and cache; no network, no writing. */
import { join } from 'node:path'
import type { Pack, PackCheckResult, PackIssue } from '../../contract/packs.ts'
import { type PackSource, tryParse } from '../../files/pack-source.ts'
import { definitionHash } from '../../kernel/etag.ts'
import { problem } from '../../kernel/problem.ts'
import type { PackCity } from './city.ts'
import { hasConstraint, isPack, readLock, readRoot, tryLock } from './city-files.ts'
import type { Consent } from './consent.ts'
import { type Declared, type Demand, effectiveImports } from './imports.ts'
import { closureIn, type InstallerDeps, neededPins, unfitHomes } from './installer.ts'
import type { Pin } from './lock.ts'
import { providesOf } from './provides.ts'
import { stateOf } from './resolver.ts'

export interface InventoryDeps extends Pick<InstallerDeps, 'cache' | 'fence' | 'version'> {
  readonly consent: Consent
  readonly builtins: ReadonlyMap<string, string>
}

export class PackInventory {
  readonly #deps: InventoryDeps

  constructor(deps: InventoryDeps) {
    this.#deps = deps
  }

  list(city: PackCity): { readonly items: readonly Pack[]; readonly errors: readonly string[] } {
    const root = readRoot(city.dir)
    const { pins, error } = tryLock(readLock(city.dir))
    const errors = [...root.complaints.map(({ message }) => message), ...(error === undefined ? [] : [error])]
    return { items: effectiveImports(root.entries).map((entry) => this.#item(city.dir, entry, pins)), errors }
  }

  find(city: PackCity, name: string, scope: string | undefined): Pack {
    const named = this.list(city).items.filter(
      (item) => item.name === name && (scope === undefined || item.scope === scope),
    )
    const found = named.find((item) => item.scope === 'city') ?? named[0]
    if (found === undefined)
      throw problem('pack-not-found', `there is no import ${name}${scope === undefined ? '' : ` in ${scope}`}`)
    if (found.scope === 'city' || named.length === 1) return found
    throw problem(
      'ambiguous-pack',
      `${name} is imported by ${named.map((item) => item.scope).join(', ')}: say which with \`scope\``,
    )
  }

  /** The entry of the files behind an item. */
  declared(city: PackCity, { name, scope }: Pack): Declared | undefined {
    return effectiveImports(readRoot(city.dir).entries).find((entry) => entry.name === name && entry.scope === scope)
  }

  #item(dir: string, entry: Declared, pins: readonly Pin[]): Pack {
    const { name, scope, version, file } = entry
    const source = tryParse(entry.source)
    const facts =
      source === undefined
        ? { kind: 'git' as const, state: 'missing' as const }
        : this.#facts(dir, source, version, pins)
    const { pin, at, ...rest } = { pin: undefined, at: undefined, ...facts }
    const shown = source?.kind === 'git' ? source.source : redacted(entry.source)
    const definition = { name, scope, source: shown, ...(version === '' ? {} : { version }), file }
    return {
      ...definition,
      ...rest,
      ...(pin === undefined
        ? {}
        : {
            pin: {
              version: pin.version,
              commit: pin.commit,
              content_hash: pin.contentHash,
              subpath: pin.subpath,
              fetched: pin.fetched,
            },
          }),
      provides: { ...providesOf(at) },
      trusted: this.#isTrusted(dir, entry, rest, pins),
      revision: definitionHash(definition),
    }
  }

  /** A pack from git that is not there has nothing that could be trusted. */
  #isTrusted(
    dir: string,
    entry: Declared,
    { kind, state }: Pick<Pack, 'kind' | 'state'>,
    pins: readonly Pin[],
  ): boolean {
    return (kind !== 'git' || state === 'installed') && this.#deps.consent.isTrusted(dir, entry, pins)
  }

  #facts(
    dir: string,
    source: PackSource,
    version: string,
    pins: readonly Pin[],
  ): { kind: Pack['kind']; state: Pack['state']; pin?: Pin; at?: string } {
    if (source.kind === 'git') {
      const { state, pin } = stateOf(this.#deps.cache, pins, source, version)
      const found =
        state === 'installed' && pin !== undefined
          ? this.#deps.cache.find(source.repository, pin.commit)?.dir
          : undefined
      return {
        kind: 'git',
        state,
        ...(pin === undefined ? {} : { pin }),
        ...(found === undefined ? {} : { at: join(found, source.subpath) }),
      }
    }
    const at = source.kind === 'builtin' ? this.#deps.builtins.get(source.name) : join(dir, source.path)
    return at !== undefined && isPack(at)
      ? { kind: source.kind, state: 'installed', at }
      : { kind: source.kind, state: 'missing' }
  }

  /** Compares imports, lock and cache; no network, no writing. */
  check(city: PackCity): PackCheckResult {
    const root = readRoot(city.dir)
    const lockText = readLock(city.dir)
    const { pins, error } = tryLock(lockText)
    const issues: PackIssue[] = []
    if (error !== undefined)
      issues.push({
        code: 'invalid-lockfile',
        severity: 'error',
        message: error,
        hint: 'restore it from version control, or remove it and install',
      })
    const closure = closureIn(this.#deps.cache, city.dir, root.entries, pins)
    for (const { code, message, binding, scope } of [...root.complaints, ...closure.complaints]) {
      issues.push({
        code,
        severity: 'error',
        message,
        ...(binding === undefined ? {} : { name: binding }),
        ...(scope === undefined ? {} : { scope }),
      })
    }
    for (const message of unfitHomes(closure, this.#deps.version))
      issues.push({
        code: 'needs-newer',
        severity: 'error',
        message,
        hint: 'upgrade svcctl, or import an older version',
      })
    for (const demand of closure.demands)
      issues.push(...this.#demandIssues(demand, pins, lockText !== undefined, error !== undefined))
    if (error === undefined) issues.push(...staleEntries(pins, neededPins(closure.demands, pins)))
    for (const path of city.foreignFiles())
      issues.push({ code: 'foreign-file', severity: 'warning', message: `${path} is somebody else's: left as it is` })
    return { ok: issues.every(({ severity }) => severity !== 'error'), issues }
  }

  #demandIssues(
    { remote, constraint, binding, scope }: Demand,
    pins: readonly Pin[],
    hasLock: boolean,
    broken: boolean,
  ): PackIssue[] {
    const at = { severity: 'error', name: binding, scope } as const
    const refused = this.#deps.fence.refusal(remote)
    if (refused !== undefined) return [{ code: 'blocked-host', ...at, message: `${binding}: ${refused}` }]
    if (!hasConstraint({ constraint }))
      return [{ code: 'invalid-source', ...at, message: `${binding}: its version is not valid` }]
    if (broken) return []
    const { state, pin } = stateOf(this.#deps.cache, pins, remote, constraint)
    const hint = 'run `svcctl pack install`'
    if (state === 'stale')
      return [
        {
          code: 'lock-constraint-mismatch',
          ...at,
          message: `${binding}: the lock does not fit \`${constraint}\``,
          hint: 'run `svcctl pack install`',
        },
      ]
    if (state === 'drifted')
      return [
        { code: 'cache-drifted', ...at, message: `${binding}: the cached content is not what the lock pins`, hint },
      ]
    if (state === 'installed') return []
    if (pin !== undefined)
      return [{ code: 'missing-cache', ...at, message: `${binding}: not in the cache of this machine`, hint }]
    return [
      { code: hasLock ? 'missing-lock-entry' : 'missing-lockfile', ...at, message: `${binding}: not pinned`, hint },
    ]
  }
}

/** A source as written, without anything that could be a password. */
function redacted(source: string): string {
  return source
    .replace(/^([a-z+.-]+:\/\/)[^/@]*@/i, '$1***@')
    .replace(/^[^/@:]+:[^/@]*@/, '***@')
    .replace(/[?#].*$/s, '')
}

function staleEntries(pins: readonly Pin[], needed: readonly Pin[]): PackIssue[] {
  return pins
    .filter((pin) => !needed.includes(pin))
    .map(({ source, version }) => ({
      code: 'stale-lock-entry',
      severity: 'warning',
      message: `the lock pins ${source} ${version}, which nothing asks for`,
      hint: 'run `svcctl pack install`',
    }))
}
