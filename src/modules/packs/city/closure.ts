/** Everything that a city imports, as far as its lock and the cache of this machine have it. */
import { join } from 'node:path'
import { diskFiles, readable } from '../../../files/files.ts'
import {
  type FoundPack,
  ImportBounds,
  type ImportLink,
  type ImportReader,
  ImportWalk,
  type Obstacle,
} from '../../../files/imports.ts'
import type { PackPlace, PackSource, RemoteSource } from '../../../files/pack-source.ts'
import { unfitSvc, VersionError } from '../../../files/pack-version.ts'
import { emptyTable, type TableNode, tableOf, textOf } from '../../../files/toml.ts'
import type { PackCache } from '../store/cache.ts'
import type { Pin } from '../store/lock.ts'
import { pinFor } from '../store/resolver.ts'
import { type Complaint, type Declared, effectiveImports, importsOf, parsed, type Scope } from './imports.ts'

/** A pack in git that somebody needs. */
export interface Demand {
  readonly remote: RemoteSource
  readonly constraint: string
  readonly scope: Scope
  /** Bindings from the outermost inwards, joined by dots. */
  readonly binding: string
}

/** One import, of the city or of a pack. */
export interface Link extends ImportLink<Declared, Home> {
  /** Its way, joined by dots. */
  readonly binding: string
}

export interface Closure {
  readonly demands: readonly Demand[]
  /** Every import that was found, outer ones before what they lead to. */
  readonly links: readonly Link[]
  /** The same by the pack that imports. */
  readonly imports: ReadonlyMap<Home | undefined, readonly Link[]>
  /** The packs that were found. */
  readonly homes: readonly Home[]
  readonly complaints: readonly Complaint[]
}

/** A pack that was found. */
export interface Home extends FoundPack {
  /** Of `[pack]`: what it calls itself, and which svcctl it needs. */
  readonly name: string | undefined
  readonly requiresSvc: string | undefined
  readonly manifest: TableNode
}

/** Follows every import as far as checkouts are there, in each scope by itself: each may pin another version. */
export function closureIn(cache: PackCache, dir: string, entries: readonly Declared[], pins: readonly Pin[]): Closure {
  const city: PackPlace = { dir, root: dir, label: '' }
  const homes: Home[] = []
  const links: Link[] = []
  const complaints: Complaint[] = []
  const reader: ImportReader<Declared, Home> = {
    locate(source, version) {
      // The loader tells which of them there are.
      const root = source.kind === 'git' ? checkoutDir(cache, pins, { remote: source, constraint: version }) : undefined
      if (source.kind === 'builtin' || root === undefined) return { kind: 'absent', message: 'it is not here' }
      return { dir: join(root, source.subpath), root, label: source.source }
    },
    read(place) {
      const home = homeAt(place, complaints)
      if (home !== 'missing') homes.push(home)
      return home
    },
    importsOf: ({ manifest }, { scope }) => importsOf(manifest, scope),
    linked(link) {
      const binding = link.way.join('.')
      links.push({ ...link, binding })
      const code = link.obstacle === undefined ? undefined : codeOf(link.obstacle, link.source)
      if (code === undefined) return
      // Where a walk ends that is too long is no matter of that import.
      const name = link.obstacle?.kind === 'bounds' ? link.way[0] : binding
      const message = `${name}: ${link.obstacle?.message}`
      complaints.push({ code, message, binding, scope: link.entry.scope })
    },
  }
  const bounds = new ImportBounds()
  const walks = new Map<Scope, ImportWalk<Declared, Home>>()
  for (const entry of effectiveImports(entries)) {
    const walk = walks.get(entry.scope) ?? new ImportWalk(city, diskFiles(), reader, bounds)
    walks.set(entry.scope, walk)
    walk.follow([entry])
  }
  const imports = Map.groupBy(links, ({ from }) => from)
  return { demands: links.flatMap(demandOf), links, imports, homes, complaints }
}

function homeAt(place: PackPlace, complaints: Complaint[]): Home | 'missing' {
  const text = readable(diskFiles(), join(place.dir, 'pack.toml'), place.root)
  if (text === undefined) return 'missing'
  const manifest = parsed(text.toString('utf8'), `${place.label}/pack.toml`, complaints)
  const header = tableOf(manifest, 'pack') ?? emptyTable()
  const requiresSvc = textOf(header, 'requires_svc')
  return { ...place, bytes: text.length, name: textOf(header, 'name'), requiresSvc, manifest }
}

/** What is wrong with an import itself; what is not there yet, and circles, are told elsewhere. */
function codeOf({ kind }: Obstacle, source: PackSource | undefined): Complaint['code'] | undefined {
  if (kind === 'source' || kind === 'bounds') return 'invalid-source'
  if (kind === 'outside') return 'missing-local-pack'
  if (kind === 'missing') return source?.kind === 'local' ? 'missing-local-pack' : 'missing-cached-pack'
  return undefined
}

function demandOf({ entry, source, binding, obstacle }: Link): Demand[] {
  // What lies beyond the bounds is not fetched either.
  if (source?.kind !== 'git' || obstacle?.kind === 'bounds') return []
  return [{ remote: source, constraint: entry.version, scope: entry.scope, binding }]
}

/** Everything that an import leads to. */
export function linksBelow({ imports }: Closure, link: Link): readonly Link[] {
  const seen = new Set<Home>()
  const found: Link[] = []
  const open = [link.to]
  while (open.length > 0) {
    const home = open.pop()
    if (home === undefined || seen.has(home)) continue
    seen.add(home)
    const below = imports.get(home) ?? []
    found.push(...below)
    open.push(...below.map(({ to }) => to))
  }
  return found
}

/** Directory of the checkout that a demand means, if it is there and unchanged. */
export function checkoutDir(
  cache: PackCache,
  pins: readonly Pin[],
  { remote, constraint }: Pick<Demand, 'remote' | 'constraint'>,
): string | undefined {
  const pin = fittingPin(pins, remote.source, constraint)
  const found = pin === undefined ? undefined : cache.find(remote.repository, pin.commit)
  return found !== undefined && found.contentHash === pin?.contentHash ? found.dir : undefined
}

/** As `pinFor`; nothing fits a version that cannot be read. */
export function fittingPin(pins: readonly Pin[], source: string, constraint: string): Pin | undefined {
  try {
    return pinFor(pins, source, constraint)
  } catch (error) {
    if (error instanceof VersionError) return undefined
    throw error
  }
}

/** The pins that something still asks for. */
export function neededPins(demands: readonly Demand[], pins: readonly Pin[]): readonly Pin[] {
  const needed = new Set(demands.map(({ remote, constraint }) => fittingPin(pins, remote.source, constraint)))
  return pins.filter((pin) => needed.has(pin))
}

/** What is said of packs that need another svcctl. */
export const unfitHomes = ({ homes }: Closure, version: string): readonly string[] =>
  homes.flatMap(({ label, requiresSvc }) => {
    const unfit = requiresSvc === undefined ? undefined : unfitSvc(requiresSvc, version)
    return unfit === undefined ? [] : [`${label}: ${unfit}`]
  })
