/** What a city imports: the entries of its own files, and everything that their packs import in turn. */
import { join } from 'node:path'
import { diskFiles, readable } from '../../files/files.ts'
import { IssueList } from '../../files/issues.ts'
import {
  localPlace,
  type PackPlace,
  type PackSource,
  type RemoteSource,
  SourceError,
  sourceOrError,
} from '../../files/pack-source.ts'
import {
  elementsOf,
  emptyTable,
  listOf,
  readToml,
  type TableNode,
  tableOf,
  tablesOf,
  textOf,
} from '../../files/toml.ts'

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

function importsOf(table: TableNode, scope: Scope): Declared[] {
  return tablesOf(table, 'imports').flatMap(([name, entry]) => {
    const source = textOf(entry, 'source')
    const { file, line } = entry.keyAt ?? entry.at
    return source === undefined ? [] : [{ name, scope, source, version: textOf(entry, 'version') ?? '', file, line }]
  })
}

/** The loader says where a file is wrong; here it matters only that it says nothing. */
function parsed(text: string, file: string, complaints: Complaint[]): TableNode {
  const table = readToml(text, file, 'city', new IssueList())
  if (table === undefined) complaints.push({ code: 'invalid-file', message: `${file} is not valid TOML` })
  return table ?? emptyTable()
}

/** The checkout that a demand has at the moment; undefined while it has none. */
export type CheckoutOf = (demand: Demand) => string | undefined

/** One import, of the city or of a pack. */
export interface Link {
  /** Bindings from the outermost inwards, joined by dots; of several ways to the importing pack the first. */
  readonly binding: string
  readonly entry: Declared
  /** Undefined where it cannot be read. */
  readonly source: PackSource | undefined
  /** The pack that imports; undefined for the city. */
  readonly from: Home | undefined
  /** Undefined while the pack is not there, and of a built-in one. */
  readonly to: Home | undefined
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
export interface Home extends PackPlace {
  /** Of `[pack]`: what it calls itself, and which svcctl it needs. */
  readonly name: string | undefined
  readonly requiresSvc: string | undefined
}

const MAX_DEPTH = 40
/** A set of packs with more imports, or more to read of them, is a mistake, and everybody waits while it is looked at. */
const MAX_LINKS = 2_000
const MAX_TEXT = 1024 * 1024

/** Follows every import as far as checkouts are there. Reads local packs from disk, through links only inside the city. */
export function closureOf(city: string, entries: readonly Declared[], checkoutOf: CheckoutOf): Closure {
  const home: PackPlace = { dir: city, root: city, label: '' }
  const demands: Demand[] = []
  const complaints: Complaint[] = []
  const links: Link[] = []
  const homes = new Map<string, Home>()
  let room = MAX_TEXT
  const follow = (from: Home | undefined, entry: Declared, binding: string, depth: number): void => {
    if (links.length > MAX_LINKS || room < 0) return
    const at = { binding, scope: entry.scope }
    const source = sourceOrError(entry.source)
    if (source instanceof SourceError) {
      complaints.push({ code: 'invalid-source', message: `${binding}: ${source.message}`, ...at })
      links.push({ binding, entry, source: undefined, from, to: undefined })
      return
    }
    const place = depth > MAX_DEPTH ? undefined : placeOf(source, from, binding, entry)
    const known = place === undefined ? undefined : homes.get(`${entry.scope} ${place.dir}`)
    const text = place === undefined || known !== undefined ? undefined : textAt(place)
    if (place === undefined || known !== undefined || text === undefined) {
      links.push({ binding, entry, source, from, to: known })
      if (place === undefined || known !== undefined) return
      const code = source.kind === 'local' ? 'missing-local-pack' : 'missing-cached-pack'
      complaints.push({ code, message: `${binding}: there is no \`pack.toml\` at its source`, ...at })
      return
    }
    room -= text.length
    const manifest = parsed(text, `${place.label}/pack.toml`, complaints)
    const header = tableOf(manifest, 'pack') ?? emptyTable()
    const to = { ...place, name: textOf(header, 'name'), requiresSvc: textOf(header, 'requires_svc') }
    homes.set(`${entry.scope} ${to.dir}`, to)
    links.push({ binding, entry, source, from, to })
    for (const inner of importsOf(manifest, entry.scope).sort((a, b) => (a.name < b.name ? -1 : 1)))
      follow(to, inner, `${binding}.${inner.name}`, depth + 1)
  }
  const placeOf = (
    source: PackSource,
    from: Home | undefined,
    binding: string,
    entry: Declared,
  ): PackPlace | undefined => {
    if (source.kind === 'builtin') return undefined
    if (source.kind === 'local') return localPlace(home, from ?? home, source)
    const demand = { remote: source, constraint: entry.version, scope: entry.scope, binding }
    demands.push(demand)
    const root = checkoutOf(demand)
    return root === undefined ? undefined : { dir: join(root, source.subpath), root, label: source.source }
  }
  for (const entry of effectiveImports(entries)) follow(undefined, entry, entry.name, 0)
  if (links.length > MAX_LINKS || room < 0)
    complaints.push({
      code: 'invalid-source',
      message: `the imports lead to more than ${MAX_LINKS} others, or ${MAX_TEXT / 1024} KiB of \`pack.toml\``,
    })
  const imports = Map.groupBy(links, ({ from }) => from)
  return { demands, links, imports, homes: [...homes.values()], complaints }
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

function textAt({ dir, root }: PackPlace): string | undefined {
  return readable(diskFiles(), join(dir, 'pack.toml'), root)?.toString('utf8')
}
