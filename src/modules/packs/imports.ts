/** What a city imports: the entries of its own files, and everything that their packs import in turn. */
import { join } from 'node:path'
import { diskFiles, readable } from '../../files/files.ts'
import { type RemoteSource, SourceError, sourceOrError } from '../../files/pack-source.ts'
import { isPlainList, isPlainTable, type PlainTable, type PlainValue, readPlainToml } from '../../files/toml.ts'

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
  /** Relative to the city. */
  readonly file: string
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
  const table = (path: string): PlainTable => {
    const text = read(path)
    texts.set(path, text)
    return text === undefined ? {} : tableOf(text, path, complaints)
  }
  const pack = table('pack.toml')
  const city = table('city.toml')
  const included = listOf(city['include']).filter((path) => typeof path === 'string')
  const files = [
    ['pack.toml', pack],
    ['city.toml', city],
    ...included.map((path) => [path, table(path)] as const),
  ] as const
  const rigs = [...new Set(files.flatMap(([, top]) => rigsOf(top).map(({ name }) => name)))]
  return { entries: files.flatMap(([file, top]) => entriesOf(file, top)), rigs, complaints, texts }
}

/** The entries that count: of two with one name in one scope the stronger file's. */
export function effectiveImports(entries: readonly Declared[]): Declared[] {
  const byName = new Map(entries.map((entry) => [`${entry.scope} ${entry.name}`, entry]))
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.scope < b.scope ? -1 : 1))
}

function entriesOf(file: string, top: PlainTable): Declared[] {
  const defaults = recordOf(recordOf(recordOf(top['defaults'])['rig'])['imports'])
  return [
    ...importsOf(recordOf(top['imports']), 'city', file),
    ...importsOf(defaults, 'default-rig', file),
    ...rigsOf(top).flatMap(({ name, fields }) => importsOf(recordOf(fields['imports']), `rig:${name}`, file)),
  ]
}

function rigsOf(top: PlainTable): { name: string; fields: PlainTable }[] {
  return listOf(top['rigs'])
    .map(recordOf)
    .flatMap((fields) => {
      const name = fields['name']
      return typeof name === 'string' ? [{ name, fields }] : []
    })
}

function importsOf(table: PlainTable, scope: Scope, file: string): Declared[] {
  return Object.entries(table).flatMap(([name, value]) => {
    const { source, version } = recordOf(value)
    return typeof source === 'string'
      ? [{ name, scope, source, version: typeof version === 'string' ? version : '', file }]
      : []
  })
}

function tableOf(text: string, path: string, complaints: Complaint[]): PlainTable {
  try {
    return readPlainToml(text)
  } catch {
    // The loader says where; here it matters only that the file says nothing.
    complaints.push({ code: 'invalid-file', message: `${path} is not valid TOML` })
    return {}
  }
}

const listOf = (value: PlainValue | undefined): readonly PlainValue[] =>
  value !== undefined && isPlainList(value) ? value : []
const recordOf = (value: PlainValue | undefined): PlainTable => (isPlainTable(value) ? value : {})

/** The checkout that a demand has at the moment; undefined while it has none. */
export type CheckoutOf = (demand: Demand) => string | undefined

export interface Closure {
  readonly demands: readonly Demand[]
  /** Directories of the packs that were found, each with what it must not reach out of. */
  readonly homes: readonly Home[]
  readonly complaints: readonly Complaint[]
}

const MAX_DEPTH = 40

/** Follows every import as far as checkouts are there. Reads local packs from disk, through links only inside the city. */
export function closureOf(city: string, entries: readonly Declared[], checkoutOf: CheckoutOf): Closure {
  const demands: Demand[] = []
  const complaints: Complaint[] = []
  const homes: Home[] = []
  const seen = new Set<string>()
  const follow = (home: Home, entry: Declared, binding: string, depth: number): void => {
    const at = { binding, scope: entry.scope }
    const source = sourceOrError(entry.source)
    if (source instanceof SourceError) {
      complaints.push({ code: 'invalid-source', message: `${binding}: ${source.message}`, ...at })
      return
    }
    if (source.kind === 'builtin') return
    const next =
      source.kind === 'local'
        ? localHome(city, home, source)
        : gitHome({ remote: source, constraint: entry.version, scope: entry.scope, binding })
    if (next === undefined || depth > MAX_DEPTH) return
    const key = `${entry.scope} ${next.dir}`
    const missing = source.kind === 'local' ? 'missing-local-pack' : 'missing-cached-pack'
    const text = textAt(next)
    if (text === undefined) {
      complaints.push({ code: missing, message: `${binding}: there is no \`pack.toml\` at its source`, ...at })
      return
    }
    if (seen.has(key)) return
    seen.add(key)
    homes.push(next)
    const imports = importsOf(
      recordOf(tableOf(text, `${binding}: pack.toml`, complaints)['imports']),
      entry.scope,
      'pack.toml',
    )
    for (const inner of imports.sort((a, b) => (a.name < b.name ? -1 : 1)))
      follow(next, inner, `${binding}.${inner.name}`, depth + 1)
  }
  const gitHome = (demand: Demand): Home | undefined => {
    demands.push(demand)
    const root = checkoutOf(demand)
    return root === undefined ? undefined : { dir: join(root, demand.remote.subpath), root }
  }
  for (const entry of effectiveImports(entries)) follow({ dir: city, root: city }, entry, entry.name, 0)
  return { demands, homes, complaints }
}

/** A directory of files, and what they must not reach out of. */
export interface Home {
  readonly dir: string
  readonly root: string
}

function localHome(city: string, home: Home, source: { readonly base: 'pack' | 'city'; readonly path: string }): Home {
  return source.base === 'city'
    ? { dir: join(city, source.path), root: city }
    : { dir: join(home.dir, source.path), root: home.root }
}

function textAt({ dir, root }: Home): string | undefined {
  return readable(diskFiles(), join(dir, 'pack.toml'), root)?.toString('utf8')
}
