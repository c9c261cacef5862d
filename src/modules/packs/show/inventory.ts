/** What a city imports and what has become of it: lists and checks. Reads files, lock and cache; no network, no writing. */
import type { Pack, PackCheckResult, PackIssue, PackStatus } from '../../../contract/packs.ts'
import { definitionHash } from '../../../kernel/etag.ts'
import { problem } from '../../../kernel/problem.ts'
import type { PackCity } from '../city/city.ts'
import { hasConstraint, isPack, readLock, readRoot, tryLock } from '../city/city-files.ts'
import {
  type Closure,
  closureIn,
  type Demand,
  type Home,
  type Link,
  linksBelow,
  neededPins,
  unfitHomes,
} from '../city/closure.ts'
import { type Declared, effectiveImports, type RootImports } from '../city/imports.ts'
import { providesOf } from '../contents/provides.ts'
import type { InstallerDeps } from '../install/installer.ts'
import type { Pin } from '../store/lock.ts'
import { stateOf } from '../store/resolver.ts'
import type { PackTrust } from '../store/trust.ts'

export interface InventoryDeps extends Pick<InstallerDeps, 'cache' | 'fence' | 'version'> {
  readonly trust: PackTrust
  readonly builtins: ReadonlyMap<string, string>
}

/** What the files, the lock and the cache say of a city at one moment. */
export interface Look {
  readonly dir: string
  readonly root: RootImports
  readonly lockText: string | undefined
  readonly lockError: string | undefined
  readonly pins: readonly Pin[]
  readonly closure: Closure
}

/** What has become of an import. */
export interface Facts {
  readonly kind: Pack['kind']
  readonly state: Pack['state']
  readonly pin: Pin | undefined
  /** Where it is; undefined while it is not there. */
  readonly home: Pick<Home, 'dir' | 'root'> | undefined
}

export class PackInventory {
  readonly #deps: InventoryDeps

  constructor(deps: InventoryDeps) {
    this.#deps = deps
  }

  look(dir: string): Look {
    const root = readRoot(dir)
    const lockText = readLock(dir)
    const { pins, error } = tryLock(lockText)
    const closure = closureIn(this.#deps.cache, dir, root.entries, pins)
    return { dir, root, lockText, lockError: error, pins, closure }
  }

  list(city: PackCity): { readonly items: readonly Pack[]; readonly errors: readonly string[] } {
    const look = this.look(city.dir)
    const { root, lockError, closure } = look
    const errors = [...root.complaints.map(({ message }) => message), ...(lockError === undefined ? [] : [lockError])]
    const own = closure.links.filter(({ from }) => from === undefined)
    return { items: own.map((link) => this.#item(look, link)), errors }
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

  #item(look: Look, link: Link): Pack {
    const { name, scope, version, file } = link.entry
    const facts = this.factsOf(look, link)
    const definition = { name, scope, source: shownSource(link), ...(version === '' ? {} : { version }), file }
    return {
      ...definition,
      kind: facts.kind,
      state: facts.state,
      ...pinOf(facts),
      provides: { ...providesOf(facts.home) },
      trusted: this.isTrusted(look, link, facts),
      revision: definitionHash(definition),
    }
  }

  /** Nothing that it leads to waits to be trusted. A pack from git that is not there has nothing that could be. */
  isTrusted({ dir, closure, pins }: Look, link: Link, { kind, state }: Facts): boolean {
    if (kind === 'git' && state !== 'installed') return false
    return [link, ...linksBelow(closure, link)].every(({ source, entry, to }) => {
      if (source?.kind !== 'git' || to === undefined) return true
      const commit = stateOf(this.#deps.cache, pins, source, entry.version).pin?.commit
      return commit === undefined || this.#deps.trust.has(dir, { repository: source.repository, commit })
    })
  }

  factsOf({ pins }: Look, { source, entry, to }: Link): Facts {
    if (source === undefined) return { kind: 'git', state: 'missing', pin: undefined, home: undefined }
    if (source.kind === 'git') {
      const { state, pin } = stateOf(this.#deps.cache, pins, source, entry.version)
      return { kind: 'git', state, pin, home: state === 'installed' ? to : undefined }
    }
    const builtin = source.kind === 'builtin' ? this.#deps.builtins.get(source.name) : undefined
    const home = builtin !== undefined && isPack(builtin) ? { dir: builtin, root: builtin } : to
    return { kind: source.kind, state: home === undefined ? 'missing' : 'installed', pin: undefined, home }
  }

  #status(look: Look, link: Link): PackStatus {
    const { scope, version, file, line } = link.entry
    const facts = this.factsOf(look, link)
    const { source } = link
    const bytes =
      source?.kind === 'git' && facts.pin !== undefined
        ? this.#deps.cache.bytesOf(source.repository, facts.pin.commit)
        : undefined
    return {
      name: link.binding,
      scope,
      kind: facts.kind,
      source: shownSource(link),
      ...(version === '' ? {} : { version }),
      file,
      line,
      ...pinOf(facts),
      state: facts.state,
      trusted: this.isTrusted(look, link, facts),
      ...(bytes === undefined ? {} : { bytes }),
    }
  }

  /** Compares imports, lock and cache; no network, no writing. */
  check(city: PackCity): PackCheckResult {
    const look = this.look(city.dir)
    const { root, lockText, lockError, pins, closure } = look
    const issues: PackIssue[] = []
    if (lockError !== undefined)
      issues.push({
        code: 'invalid-lockfile',
        severity: 'error',
        message: lockError,
        hint: 'restore it from version control, or remove it and install',
      })
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
      issues.push(...this.#demandIssues(demand, pins, lockText !== undefined, lockError !== undefined))
    if (lockError === undefined) issues.push(...staleEntries(pins, neededPins(closure.demands, pins)))
    for (const path of city.foreignFiles())
      issues.push({ code: 'foreign-file', severity: 'warning', message: `${path} is somebody else's: left as it is` })
    const packs = closure.links.map((link) => this.#status(look, link))
    return { ok: issues.every(({ severity }) => severity !== 'error'), issues, packs }
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

/** As pins are shown. */
export const pinOf = ({ pin }: Pick<Facts, 'pin'>): Pick<Pack, 'pin'> =>
  pin === undefined
    ? {}
    : {
        pin: {
          version: pin.version,
          commit: pin.commit,
          content_hash: pin.contentHash,
          subpath: pin.subpath,
          fetched: pin.fetched,
        },
      }

/** In its normal form, where it has one. */
export const shownSource = ({ source, entry }: Link): string =>
  source?.kind === 'git' ? source.source : redacted(entry.source)

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
