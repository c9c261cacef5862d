/** What a city imports: the entries of its own files. */
import { importEntries } from '../../../files/imports.ts'
import { IssueList } from '../../../files/issues.ts'
import { elementsOf, emptyTable, listOf, readToml, type TableNode, tableOf, textOf } from '../../../files/toml.ts'

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

export function importsOf(top: TableNode, scope: Scope): Declared[] {
  return importEntries(top).map(({ name, source, version, table }) => {
    const { file, line } = table.keyAt ?? table.at
    return { name, scope, source, version, file, line }
  })
}

/** The table of a file. The loader says where one is wrong; here it matters only that it says nothing. */
export function parsed(text: string, file: string, complaints: Complaint[]): TableNode {
  const table = readToml(text, file, 'city', new IssueList())
  if (table === undefined) complaints.push({ code: 'invalid-file', message: `${file} is not valid TOML` })
  return table ?? emptyTable()
}
