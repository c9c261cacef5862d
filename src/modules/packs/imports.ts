/** What a city imports: the entries of its own files, and everything that their packs import in turn. */
import { join } from 'node:path'
import { diskFiles, readable } from '../../files/files.ts'
import {
  type FoundPack,
  ImportBounds,
  type ImportLink,
  type ImportReader,
  ImportWalk,
  importEntries,
  type Obstacle,
} from '../../files/imports.ts'
import { IssueList } from '../../files/issues.ts'
import type { PackPlace, PackSource, RemoteSource } from '../../files/pack-source.ts'
import { elementsOf, emptyTable, listOf, readToml, type TableNode, tableOf, textOf } from '../../files/toml.ts'

/** Who imports: the city, one rig, or every rig of the future. */
export type Scope = 'city' | 'default-rig' | `rig:${string}`

/** Reads a scope that is known to be one. */
export const scopeOf = (text: string): Scope =>
  text === 'default-rig' ? text : text.startsWith('rig:') ? `rig:${text.slice('rig:'.length)}` : 'city'

/** One `[imports.<name>]` of the city's own files. */
export interface Declared {
  readonly name: string
  readonly scope: Scope
  readonly source: string
  readonly version: string
  /** Relative to the city; of a pack from git its source in front. */
  readonly file: string
  readonly line: number
}

/** A pack in git that somebody needs. */
export interface Demand {
  readonly remote: RemoteSource
  readonly constraint: string
  readonly scope: Scope
  /** Bindings from the outermost inwards, joined by dots. */
  readonly binding: string
}

export interface Complaint {
  readonly code: 'invalid-file' | 'invalid-source' | 'missing-local-pack' | 'missing-cached-pack'
  readonly message: string
  readonly binding?: string
  readonly scope?: Scope
}

/** Text of a file of the city by its relative path; undefined where it is missing. */
export type ReadCityFile = (path: string) => string | undefined

export interface RootImports {
  /** Every entry as written, weakest file first. */
  readonly entries: readonly Declared[]
  readonly rigs: readonly string[]
  readonly complaints: readonly Complaint[]
  /** Texts of the files that were looked at. */
  readonly texts: ReadonlyMap<string, string | undefined>
}

/** The imports that the city's own files declare. */
export function rootImports(read: ReadCityFile): RootImports {
  const texts = new Map<string, string | undefined>()
  const complaints: Complaint[] = []
  const table = (path: string): TableNode => {
    const text = read(path)
    texts.set(path, text)
    return text === undefined ? emptyTable() : parsed(text, path, complaints)
  }
  const pack = table('pack.toml')
  const city = table('city.toml')
  const included = listOf(city, 'include').flatMap(({ value }) => (typeof value === 'string' ? [table(value)] : []))
  const tables = [pack, city, ...included]
  const rigs = [...new Set(tables.flatMap((top) => rigsOf(top).map(({ name }) => name)))]
  return { entries: tables.flatMap(entriesOf), rigs, complaints, texts }
}

/** The entries that count: of two with one name in one scope the stronger file's. */
export function effectiveImports(entries: readonly Declared[]): Declared[] {
  const byName = new Map(entries.map((entry) => [`${entry.scope} ${entry.name}`, entry]))
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.scope < b.scope ? -1 : 1))
}

function entriesOf(top: TableNode): Declared[] {
  const defaults = tableOf(tableOf(top, 'defaults') ?? emptyTable(), 'rig') ?? emptyTable()
  return [
    ...importsOf(top, 'city'),
    ...importsOf(defaults, 'default-rig'),
    ...rigsOf(top).flatMap(({ name, fields }) => importsOf(fields, `rig:${name}`)),
  ]
}

function rigsOf(top: TableNode): { name: string; fields: TableNode }[] {
  return elementsOf(top, 'rigs').flatMap((fields) => {
    const name = textOf(fields, 'name')
    return name === undefined ? [] : [{ name, fields }]
  })
}

function importsOf(top: TableNode, scope: Scope): Declared[] {
  return importEntries(top).map(({ name, source, version, table }) => {
    const { file, line } = table.keyAt ?? table.at
    return { name, scope, source, version, file, line }
  })
}

/** The loader says where a file is wrong; here it matters only that it says nothing. */
function parsed(text: string, file: string, complaints: Complaint[]): TableNode {
  const table = readToml(text, file, 'city', new IssueList())
  if (table === undefined) complaints.push({ code: 'invalid-file', message: `${file} is not valid TOML` })
  return table ?? emptyTable()
}

/** The checkout that a source has at the moment; undefined while it has none. */
export type CheckoutOf = (remote: RemoteSource, constraint: string) => string | undefined

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
export function closureOf(dir: string, entries: readonly Declared[], checkoutOf: CheckoutOf): Closure {
  const city: PackPlace = { dir, root: dir, label: '' }
  const homes: Home[] = []
  const links: Link[] = []
  const complaints: Complaint[] = []
  const reader: ImportReader<Declared, Home> = {
    locate(source, version) {
      // The loader tells which of them there are.
      const root = source.kind === 'git' ? checkoutOf(source, version) : undefined
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
