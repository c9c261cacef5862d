/**
 * TOML text to a tree in which every value knows its file, line, column and layer.
 *
 * `toml-eslint-parser` is the only parser here: it is as fast as a parser without positions and its syntax tree also
 * carries the ranges that `edit.ts` needs.
 */
import { type AST, parseTOML } from 'toml-eslint-parser'
import { fileStart, IssueList, type Layer, NOWHERE, type Place } from './issues.ts'

export type Scalar = string | number | boolean

/** One value of a file. `keyAt` is the place of its key, for values that have one. */
export type ConfigNode = ScalarNode | ListNode | TableNode
export type ScalarNode = {
  readonly kind: 'scalar'
  readonly value: Scalar
  /** Set when the file has a bare date or time, which no field of ours takes. */
  readonly dated?: true
  readonly at: Place
  readonly keyAt?: Place
}
export type ListNode = {
  readonly kind: 'list'
  readonly items: readonly ConfigNode[]
  readonly at: Place
  readonly keyAt?: Place
}
export type TableNode = {
  readonly kind: 'table'
  readonly entries: ReadonlyMap<string, ConfigNode>
  readonly at: Place
  readonly keyAt?: Place
}

/** A table while a file is being read into it. */
type OpenTable = { kind: 'table'; entries: Map<string, ConfigNode>; at: Place; keyAt: Place }
type OpenList = { kind: 'list'; items: ConfigNode[]; at: Place; keyAt: Place }

/** A plain value, as callers of edits and defaults write it. */
export type PlainValue = Scalar | readonly PlainValue[] | PlainTable
export type PlainTable = { readonly [key: string]: PlainValue }

/** The parser needs up to four seconds for 1 MiB, and everybody waits for it. */
export const MAX_TOML = 256 * 1024

/** What reads a tree goes down it by calls, and the stack has an end. */
const MAX_DEPTH = 64

/** Reads `text`; a syntax error becomes an issue, and the answer is then undefined. */
export function readToml(text: string, file: string, layer: Layer, issues: IssueList): TableNode | undefined {
  if (text.length > MAX_TOML) {
    const size = `${Math.ceil(text.length / 1024)} KiB`
    issues.error(fileStart(file, layer), '', `is too large: it has ${size}, and ${MAX_TOML / 1024} KiB are the limit`)
    return undefined
  }
  try {
    const tree = buildTree(parseSyntax(text), file, layer)
    const deep = deepest(tree)
    if (deep === undefined) return tree
    issues.error(deep.at, '', `nested too deeply: ${MAX_DEPTH} levels are the limit`)
    return undefined
  } catch (error) {
    const { line, column, message } = syntaxError(error, text)
    issues.error({ file, line, column, layer }, '', message)
    return undefined
  }
}

/** A value below the limit; keys with dots lead as deep as lists and tables do. */
function deepest(tree: TableNode): ConfigNode | undefined {
  const open: { node: ConfigNode; depth: number }[] = [{ node: tree, depth: 0 }]
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const { node, depth } = top
    if (depth > MAX_DEPTH) return node
    if (node.kind === 'scalar') continue
    const inner = node.kind === 'list' ? node.items : [...node.entries.values()]
    for (const child of inner) open.push({ node: child, depth: depth + 1 })
  }
  return undefined
}

/** Text that is no TOML. The message repeats nothing of it: it may hold a secret. */
export class TomlError extends Error {
  constructor(line: number) {
    super(`not valid TOML (line ${line})`)
  }
}

/** The plain values of a text of which places do not matter; throws `TomlError`. */
export function readPlainToml(text: string): PlainTable {
  const issues = new IssueList()
  const tree = readToml(text, '', 'city', issues)
  if (tree === undefined) throw new TomlError(issues.errors[0]?.line ?? 1)
  const plain = plainOf(tree)
  return isPlainTable(plain) ? plain : {}
}

export const isPlainTable = (value: PlainValue | undefined): value is PlainTable =>
  typeof value === 'object' && !Array.isArray(value)

/** The syntax tree of TOML 1.0 text; throws the parser's error. */
export function parseSyntax(text: string): AST.TOMLProgram {
  // A mark of Windows editors becomes a space, so that places stay.
  return parseTOML(text.replace(/^\uFEFF/, ' '), { tomlVersion: '1.0' })
}

/** Line, column (from 1) and sentence of an error of `parseSyntax(text)`; anything else is thrown on. */
export function syntaxError(error: unknown, text: string): { line: number; column: number; message: string } {
  // The parser and the walk over its tree recurse: a text of nothing but brackets ends the stack, not the process.
  if (error instanceof RangeError) return { line: 1, column: 1, message: 'not valid TOML: nested too deeply' }
  if (!(error instanceof Error) || !('lineNumber' in error) || !('column' in error)) throw error
  const line = Number(error.lineNumber)
  const column = Number(error.column) + 1
  // What a line lacks is noticed on the next one: point at the end of the line that lacks it.
  const unfinished = (text.split('\n')[line - 2] ?? '').trimEnd()
  const lacksValue = unfinished.endsWith('=')
  if (column > 1 || line === 1 || !(lacksValue || AT_LINE_END.test(error.message))) {
    return { line, column, message: `not valid TOML: ${error.message}` }
  }
  const message = lacksValue ? 'a value is missing' : error.message
  return { line: line - 1, column: unfinished.length + 1, message: `not valid TOML: ${message}` }
}

const AT_LINE_END = /same line|No newlines|^Unspecified|^Unterminated/

/** A table without a file of its own, for tables that no file has. */
export function emptyTable(at: Place = NOWHERE): TableNode {
  return { kind: 'table', entries: new Map(), at }
}

/** A node for a value that stands at `at`, for example a default. */
export function nodeOf(value: PlainValue, at: Place): ConfigNode {
  if (typeof value !== 'object') return { kind: 'scalar', value, at }
  if (isPlainList(value)) return { kind: 'list', items: value.map((item) => nodeOf(item, at)), at }
  const entries = new Map(Object.entries(value).map(([key, child]) => [key, nodeOf(child, at)]))
  return { kind: 'table', entries, at }
}

/** The plain value of a node, deeply frozen. */
export function plainOf(node: ConfigNode): PlainValue {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return Object.freeze(node.items.map(plainOf))
  return Object.freeze(Object.fromEntries([...node.entries].map(([key, child]) => [key, plainOf(child)])))
}

/** The text of a scalar entry, or undefined. */
export function textOf(node: TableNode, key: string): string | undefined {
  const child = node.entries.get(key)
  return child?.kind === 'scalar' && typeof child.value === 'string' ? child.value : undefined
}

/** The number of a scalar entry, or undefined. */
export function numberOf(node: TableNode, key: string): number | undefined {
  const child = node.entries.get(key)
  return child?.kind === 'scalar' && typeof child.value === 'number' ? child.value : undefined
}

/** The table under `key`, or undefined. */
export function tableOf(node: TableNode, key: string): TableNode | undefined {
  const child = node.entries.get(key)
  return child?.kind === 'table' ? child : undefined
}

/** The entries of the table under `key` that are tables themselves. */
export function tablesOf(node: TableNode, key: string): [string, TableNode][] {
  const entries = tableOf(node, key)?.entries ?? new Map<string, ConfigNode>()
  return [...entries].flatMap(([name, child]) =>
    child.kind === 'table' ? [[name, child] satisfies [string, TableNode]] : [],
  )
}

/** The tables in the list under `key`. */
export function elementsOf(node: TableNode, key: string): TableNode[] {
  const child = node.entries.get(key)
  return child?.kind === 'list' ? child.items.filter((item) => item.kind === 'table') : []
}

/** The text values in the list under `key`. */
export function listOf(node: TableNode, key: string): ScalarNode[] {
  const child = node.entries.get(key)
  return child?.kind === 'list' ? child.items.filter((item) => item.kind === 'scalar') : []
}

/** The node with `key` set, or removed when `value` is undefined. */
export function withEntry(node: TableNode, key: string, value: ConfigNode | undefined): TableNode {
  const entries = new Map(node.entries)
  if (value === undefined) entries.delete(key)
  else entries.set(key, value)
  return { ...node, entries }
}

/** Where to point for `key` of `node`: its value, else the table. */
export function placeOf(node: TableNode, key: string): Place {
  return node.entries.get(key)?.at ?? node.at
}

export function isPlainList(value: PlainValue): value is readonly PlainValue[] {
  return Array.isArray(value)
}

/** The tree of text that has been parsed already. */
export function buildTree(program: AST.TOMLProgram, file: string, layer: Layer): TableNode {
  const place = (node: AST.TOMLNode): Place => ({
    file,
    line: node.loc.start.line,
    column: node.loc.start.column + 1,
    layer,
  })
  const root: OpenTable = {
    kind: 'table',
    entries: new Map(),
    at: fileStart(file, layer),
    keyAt: fileStart(file, layer),
  }
  for (const part of program.body[0].body) {
    if (part.type === 'TOMLKeyValue') {
      setEntry(root, part, place)
      continue
    }
    const target = openTable(root, part, place)
    for (const entry of part.body) setEntry(target, entry, place)
  }
  return root
}

type PlaceOf = (node: AST.TOMLNode) => Place

// The parser has refused every redefinition, so walking can create what is missing without asking.
function openTable(root: OpenTable, header: AST.TOMLTable, place: PlaceOf): OpenTable {
  let table = root
  const keys = header.key.keys
  for (const [index, key] of keys.entries()) {
    const last = index === keys.length - 1
    table = last && header.kind === 'array' ? appendElement(table, key, place) : childTable(table, key, place)
  }
  return table
}

function appendElement(table: OpenTable, key: AST.TOMLBare | AST.TOMLQuoted, place: PlaceOf): OpenTable {
  const name = keyName(key)
  const at = place(key)
  const list = (table.entries.get(name) ?? { kind: 'list', items: [], at, keyAt: at }) as OpenList
  const element: OpenTable = { kind: 'table', entries: new Map(), at, keyAt: at }
  list.items.push(element)
  table.entries.set(name, list)
  return element
}

function childTable(table: OpenTable, key: AST.TOMLBare | AST.TOMLQuoted, place: PlaceOf): OpenTable {
  const name = keyName(key)
  const found = table.entries.get(name)
  if (found?.kind === 'table') return found as OpenTable
  if (found?.kind === 'list') return found.items.at(-1) as OpenTable
  const at = place(key)
  const child: OpenTable = { kind: 'table', entries: new Map(), at, keyAt: at }
  table.entries.set(name, child)
  return child
}

function setEntry(target: OpenTable, entry: AST.TOMLKeyValue, place: PlaceOf): void {
  const keys = entry.key.keys
  let table = target
  for (const key of keys.slice(0, -1)) table = childTable(table, key, place)
  const key = keys.at(-1)
  if (key === undefined) return
  table.entries.set(keyName(key), contentNode(entry.value, place, place(key)))
}

function contentNode(content: AST.TOMLContentNode, place: PlaceOf, keyAt: Place | undefined): ConfigNode {
  const at = place(content)
  const keyed = keyAt === undefined ? {} : { keyAt }
  if (content.type === 'TOMLArray') {
    return { kind: 'list', items: content.elements.map((item) => contentNode(item, place, undefined)), at, ...keyed }
  }
  if (content.type === 'TOMLInlineTable') {
    const table: OpenTable = { kind: 'table', entries: new Map(), at, keyAt: keyAt ?? at }
    for (const entry of content.body) setEntry(table, entry, place)
    return table
  }
  if (content.value instanceof Date) {
    const value = 'datetime' in content ? String(content.datetime) : content.value.toISOString()
    return { kind: 'scalar', value, dated: true, at, ...keyed }
  }
  return { kind: 'scalar', value: content.value, at, ...keyed }
}

/** The name that a key part stands for. */
export function keyName(key: AST.TOMLBare | AST.TOMLQuoted): string {
  return key.type === 'TOMLBare' ? key.name : key.value
}
