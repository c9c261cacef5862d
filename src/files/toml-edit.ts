/**
 * Edits of TOML text that leave every other byte alone: comments, order, blank lines, quoting.
 *
 * E1  An edit changes exactly one value, table or element; the result is parsed again and compared, and every comment
 *     outside what went is still there (W1 in `toml-rewrite.ts`). An edit that cannot do so is refused.
 * E2  Byte for byte: add then remove, and set of a new key then unset, give the text back. So does set to another value
 *     and back, as far as the value's old spelling follows from its new one (quotes and layout do, `1_000` does not).
 *
 * E2 needs marks in the text that tell what was there before: a table that `setValue` made has its key right below the
 * header, a key set in a table that was empty already has a blank line between; an element added to an empty list has a
 * comma behind it.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AST } from 'toml-eslint-parser'
import { align, byPosition, isInOrder } from './align.ts'
import { IssueList } from './issues.ts'
import {
  buildTree,
  isPlainTable,
  keyName,
  MAX_TOML,
  type PlainTable,
  type PlainValue,
  parseSyntax,
  plainOf,
  readToml,
  syntaxError,
} from './toml.ts'
import { dotted, formatKey, formatValue } from './toml-format.ts'
import { afterComment, commaAfter, type Range, rewriteValue, withoutPart } from './toml-rewrite.ts'

/** Keys and list positions from the top of the file. */
export type EditPath = readonly (string | number)[]

/** Thrown when the text is laid out in a way that this edit cannot follow. Nothing has been changed then. */
export class EditError extends Error {}

/** `text` with `path` set to `value`; tables on the way are made when missing. What stays of a list or table is not touched. */
export function setValue(text: string, path: EditPath, value: PlainValue): string {
  const doc = openDocument(text)
  const old = valueAt(doc.plain, path)
  if (old !== undefined && isDeepStrictEqual(old, value)) return text
  const found = locate(doc, path)
  if (found !== undefined && old !== undefined) {
    const node = found.kind === 'pair' ? found.pair.value : found.element
    const { text: written, gone } = rewriteValue(text, node, old, value)
    return verified(doc, path, value, splice(text, node.range[0], node.range[1], written), gone)
  }
  if (old === undefined) return verified(doc, path, value, insertPair(doc, path, value), [])
  const around = valueAround(doc, path)
  if (around !== undefined) return setValue(text, around, valueAt(changed(doc.plain, path, value), around) ?? {})
  return setTables(text, path, old, value)
}

/** The innermost value that has what stands at `path` in it, where that has no value of its own: `{ a.b = 1 }` has no `a`. */
function valueAround(doc: Document, path: EditPath): EditPath | undefined {
  const prefixes = path.map((_, index) => path.slice(0, index)).reverse()
  return prefixes.find((prefix) => prefix.length > 0 && locate(doc, prefix) !== undefined)
}

/** A table, or a list of tables, with headers or dotted keys of its own: member by member. */
function setTables(text: string, path: EditPath, old: PlainValue, value: PlainValue): string {
  if (isPlainTable(old) && isPlainTable(value)) return setMembers(text, path, old, value)
  if (!Array.isArray(old) || !Array.isArray(value) || !value.every(isPlainTable))
    return setValue(removeTable(text, path), path, value)
  let result = text
  // From the end, so that the positions of what is still to be changed stay right.
  let next = old.length
  const steps = align(old, value)
  for (const { before, after } of [...(isInOrder(steps) ? steps : byPosition(old, value))].reverse()) {
    const fresh = value[after ?? -1]
    next = before ?? next
    if (before === undefined && isPlainTable(fresh)) result = insertBlock(result, path, next, fresh)
    else if (before !== undefined && fresh === undefined) result = removeTable(result, [...path, before])
    else if (before !== undefined && isPlainTable(fresh)) result = setValue(result, [...path, before], fresh)
  }
  return result
}

function setMembers(text: string, path: EditPath, old: PlainTable, value: PlainTable): string {
  let result = text
  for (const [key, member] of Object.entries(value)) result = setValue(result, [...path, key], member)
  for (const key of Object.keys(old)) if (!Object.hasOwn(value, key)) result = removeTable(result, [...path, key])
  return result
}

/** `text` without the key or list element at `path`; unchanged when it is not there. */
export function unsetValue(text: string, path: EditPath): string {
  const doc = openDocument(text)
  const found = locate(doc, path)
  if (found === undefined) return text
  const { text: after, gone } =
    found.kind === 'element' ? removeListElement(doc, found, path) : removeAnyPair(doc, found)
  return verified(doc, path, undefined, after, gone)
}

/** `text` with a new `[path]` table at its end. */
export function addTable(text: string, path: EditPath, values: PlainTable): string {
  const doc = openDocument(text)
  if (valueAt(doc.plain, path) !== undefined) throw new EditError(`${pathText(path)} exists already`)
  const after = appendBlock(text, text.length, blockText(text, `[${headerText(path)}]`, values))
  return verified(doc, path, values, after, [])
}

/** `text` without the table at `path` and everything below it, however it is written. */
export function removeTable(text: string, path: EditPath): string {
  const doc = openDocument(text)
  const found = locate(doc, path)
  if (found !== undefined) return unsetValue(text, path)
  const around = valueAround(doc, path)
  if (around !== undefined) return setValue(text, around, valueAt(changed(doc.plain, path, undefined), around) ?? {})
  const ranges = doc.blocks.flatMap(({ path: at, node, pairs }): Range[] => {
    if (node !== undefined && startsWith(at, path)) return [blockLines(text, node)]
    return pairs.filter((pair) => startsWith(pair.path, path)).map((pair) => wholeLines(text, pair.node.range))
  })
  return verified(doc, path, undefined, without(text, ranges), ranges)
}

/** `text` with one more element in the list at `path`: as the list is written, else as `[[path]]` at the end. */
export function addElement(text: string, path: EditPath, values: PlainTable): string {
  const doc = openDocument(text)
  const before = valueAt(doc.plain, path)
  const list = Array.isArray(before) ? before : []
  const found = locate(doc, path)
  if (found?.kind === 'pair' && found.pair.value.type === 'TOMLArray') {
    return verified(doc, path, [...list, values], insertListElement(text, found.pair.value, formatValue(values)), [])
  }
  if (before !== undefined && list.length === 0) throw new EditError(`${pathText(path)} is no list`)
  const inside = path.some((part) => typeof part === 'number')
  if (inside && list.length === 0) return verified(doc, path, [values], insertPair(doc, path, [values]), [])
  const last = doc.blocks.filter((block) => startsWith(block.path, path)).at(-1)
  const at = inside && last?.node !== undefined ? lineEnd(text, last.node.range[1]) : text.length
  const after = appendBlock(text, at, blockText(text, `[[${headerText(path)}]]`, values))
  return verified(doc, path, [...list, values], after, [])
}

/** `text` with one more `[[path]]`, as element `index` of those that are there. */
function insertBlock(text: string, path: EditPath, index: number, values: PlainTable): string {
  const doc = openDocument(text)
  const before = valueAt(doc.plain, path)
  const list = Array.isArray(before) ? before : []
  const previous = doc.blocks.filter(({ path: at }) => startsWith(at, [...path, index - 1])).at(-1)
  const next = doc.blocks.find(({ path: at }) => startsWith(at, [...path, index]))
  const block = blockText(text, `[[${headerText(path)}]]`, values)
  const nl = newline(text)
  const at = previous?.node === undefined ? lineStart(text, next?.node?.range[0] ?? 0) : blockEnd(text, previous.node)
  const after = previous === undefined ? splice(text, at, at, block + nl + nl) : appendBlock(text, at, block)
  return verified(doc, path, list.toSpliced(index, 0, values), after, [])
}

/** `text` without element `index` of the list at `path`. */
export function removeElement(text: string, path: EditPath, index: number): string {
  return removeTable(text, [...path, index])
}

// ---- the document ---------------------------------------------------------------------------------------------------

type Pair = { path: EditPath; node: AST.TOMLKeyValue }
type Block = { path: EditPath; node: AST.TOMLTable | undefined; pairs: Pair[] }
type Document = { text: string; plain: PlainValue; blocks: Block[]; comments: readonly AST.Comment[] }
type Found =
  | { kind: 'pair'; pair: AST.TOMLKeyValue; block: Block; inline: AST.TOMLInlineTable | undefined }
  | { kind: 'element'; element: AST.TOMLContentNode; list: AST.TOMLArray; index: number }

function openDocument(text: string): Document {
  const program = parseForEdit(text)
  const { body, comments } = program
  const [top] = body
  const root: Block = { path: [], node: undefined, pairs: [] }
  const blocks = [root]
  for (const part of top.body) {
    if (part.type === 'TOMLKeyValue') root.pairs.push({ path: names(part.key), node: part })
    else {
      const pairs = part.body.map((node) => ({ path: [...part.resolvedKey, ...names(node.key)], node }))
      blocks.push({ path: part.resolvedKey, node: part, pairs })
    }
  }
  return { text, plain: plainOf(buildTree(program, '', 'city')), blocks, comments }
}

function parseForEdit(text: string): AST.TOMLProgram {
  if (text.length > MAX_TOML) throw new EditError('it is too large')
  try {
    return parseSyntax(text)
  } catch (error) {
    const { line, message } = syntaxError(error, text)
    throw new EditError(`line ${line}: ${message}`, { cause: error })
  }
}

function names(key: AST.TOMLKey): string[] {
  return key.keys.map(keyName)
}

function locate(doc: Document, path: EditPath): Found | undefined {
  for (const block of doc.blocks) {
    for (const { path: at, node } of block.pairs) {
      if (!startsWith(path, at)) continue
      const found = descend(node, path.slice(at.length), block, undefined)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function descend(
  pair: AST.TOMLKeyValue,
  rest: EditPath,
  block: Block,
  inline: AST.TOMLInlineTable | undefined,
): Found | undefined {
  if (rest.length === 0) return { kind: 'pair', pair, block, inline }
  return descendContent(pair.value, rest, block)
}

function descendContent(content: AST.TOMLContentNode, rest: EditPath, block: Block): Found | undefined {
  if (content.type === 'TOMLArray') {
    const [index, ...deeper] = rest
    const element = typeof index === 'number' ? content.elements[index] : undefined
    if (element === undefined || typeof index !== 'number') return undefined
    return deeper.length === 0
      ? { kind: 'element', element, list: content, index }
      : descendContent(element, deeper, block)
  }
  if (content.type !== 'TOMLInlineTable') return undefined
  for (const pair of content.body) {
    const at = names(pair.key)
    const found = startsWith(rest, at) ? descend(pair, rest.slice(at.length), block, content) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function startsWith(path: EditPath, prefix: EditPath): boolean {
  return prefix.length <= path.length && prefix.every((part, index) => part === path[index])
}

// ---- inserting ------------------------------------------------------------------------------------------------------

function insertPair(doc: Document, path: EditPath, value: PlainValue): string {
  for (let length = path.length - 1; length >= 0; length--) {
    const prefix = path.slice(0, length)
    const rest = path.slice(length)
    const inline = inlineTableAt(doc, prefix)
    if (inline !== undefined) return insertInline(doc.text, inline, `${dotted(rest)} = ${formatValue(value)}`)
    const block =
      length === 0
        ? rest.length === 1
          ? doc.blocks[0]
          : undefined
        : doc.blocks.find((each) => samePath(each.path, prefix))
    if (block !== undefined) return insertInBlock(doc, block, `${dotted(rest)} = ${formatValue(value)}`)
    const beside = doc.blocks
      .flatMap((each) =>
        each.pairs.filter((pair) => startsWith(pair.path, prefix)).map((pair) => ({ block: each, pair })),
      )
      .at(-1)
    if (length > 0 && beside !== undefined) {
      const key = dotted(path.slice(beside.block.path.length))
      return insertLineAfter(
        doc.text,
        beside.pair.node.range[1],
        `${indentOf(doc.text, beside.pair.node)}${key} = ${formatValue(value)}`,
      )
    }
  }
  const table = path.slice(0, -1)
  return appendBlock(
    doc.text,
    doc.text.length,
    blockText(doc.text, `[${headerText(table)}]`, { [String(path.at(-1))]: value }),
  )
}

function inlineTableAt(doc: Document, path: EditPath): AST.TOMLInlineTable | undefined {
  const found = locate(doc, path)
  const content = found?.kind === 'pair' ? found.pair.value : found?.element
  return content?.type === 'TOMLInlineTable' ? content : undefined
}

function insertInBlock(doc: Document, block: Block, line: string): string {
  const { text } = doc
  const last = block.pairs.at(-1)
  if (last !== undefined) return insertLineAfter(text, last.node.range[1], indentOf(text, last.node) + line)
  if (block.node !== undefined) {
    // The header of a table that was here before: the blank line says that it stays when the key goes.
    return insertLineAfter(text, headerEnd(block.node), isRemovable(doc, block) ? newline(text) + line : line)
  }
  if (doc.blocks.length === 1) return insertLineAfter(text, text.length, line)
  const start = /^(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n/.exec(text)?.[0].length ?? 0
  return splice(text, start, start, line + newline(text))
}

function insertLineAfter(text: string, offset: number, line: string): string {
  if (text === '') return line + newline(text)
  const end = lineEnd(text, offset)
  if (end === text.length && !text.endsWith('\n')) return text + newline(text) + line
  return splice(text, end, end, line + newline(text))
}

function insertInline(text: string, table: AST.TOMLInlineTable, pair: string): string {
  const last = table.body.at(-1)
  if (last !== undefined) return splice(text, last.range[1], last.range[1], `, ${pair}`)
  const inner = text.slice(table.range[0] + 1, table.range[1] - 1)
  return splice(text, table.range[0] + 1, table.range[1] - 1, inner + pair + inner)
}

function insertListElement(text: string, list: AST.TOMLArray, element: string): string {
  const last = list.elements.at(-1)
  // The comma says that the empty list was here before.
  if (last === undefined) return splice(text, list.range[0] + 1, list.range[0] + 1, `${element},`)
  const lead = leadOf(text, list)
  const comma = commaAfter(text, last.range[1])
  if (comma === undefined) return splice(text, last.range[1], last.range[1], `,${lead}${element}`)
  const at = afterComment(text, comma + 1)
  return splice(text, at, at, `${lead}${element},`)
}

// What stands in front of the last element: a space, or a new line with its indentation.
function leadOf(text: string, list: AST.TOMLArray): string {
  const last = list.elements.at(-1)
  if (last === undefined) return ''
  const before = text.slice(list.range[0], last.range[0])
  const lines = /\r?\n[ \t]*$/.exec(before)
  return lines?.[0] ?? ' '
}

function appendBlock(text: string, at: number, block: string): string {
  const nl = newline(text)
  if (text === '') return block + nl
  if (at < text.length) return splice(text, at, at, nl + block + nl)
  return text.endsWith('\n') ? text + nl + block + nl : text + nl + nl + block
}

function blockText(text: string, header: string, values: PlainTable): string {
  const lines = Object.entries(values).map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}`)
  return [header, ...lines].join(newline(text))
}

// ---- removing -------------------------------------------------------------------------------------------------------

interface Removal {
  readonly text: string
  readonly gone: readonly Range[]
}

const removal = (text: string, range: Range): Removal => ({ text: without(text, [range]), gone: [range] })

function removeAnyPair(doc: Document, found: Extract<Found, { kind: 'pair' }>): Removal {
  const { pair, inline } = found
  return inline === undefined ? removePair(doc, found) : removePart(doc.text, inline, inline.body.indexOf(pair))
}

function removePart(text: string, outer: AST.TOMLArray | AST.TOMLInlineTable, index: number): Removal {
  const { text: written, gone } = withoutPart(text, outer, index)
  return { text: splice(text, outer.range[0], outer.range[1], written), gone }
}

function removePair(doc: Document, { pair, block }: Extract<Found, { kind: 'pair' }>): Removal {
  const { text } = doc
  const sole = block.node !== undefined && block.pairs.length === 1
  if (!sole || block.node === undefined) return removal(text, wholeLines(text, pair.range))
  const between = text.slice(lineEnd(text, headerEnd(block.node)), lineStart(text, pair.range[0]))
  if (between === '' && isRemovable(doc, block) && !hasComment(text, pair.range[1]))
    return removal(text, blockLines(text, block.node))
  const blank = between === newline(text) ? between.length : 0
  return removal(text, wholeLines(text, [lineStart(text, pair.range[0]) - blank, pair.range[1]]))
}

// Such a header may be one that `setValue` made: nothing but its keys would miss it.
function isRemovable(doc: Document, block: Block): boolean {
  if (block.node === undefined || block.node.kind === 'array' || hasComment(doc.text, headerEnd(block.node)))
    return false
  if (doc.blocks.some((other) => other !== block && startsWith(other.path, block.path))) return false
  const start = lineStart(doc.text, block.node.range[0])
  return start === 0 || isBlankLineBefore(doc.text, start)
}

function removeListElement(doc: Document, found: Extract<Found, { kind: 'element' }>, path: EditPath): Removal {
  const { list, index } = found
  const trailing = commaAfter(doc.text, found.element.range[1]) !== undefined
  const whole = locate(doc, path.slice(0, -1))
  const lines: Range = [list.range[0], lineEnd(doc.text, list.range[1])]
  const only = list.elements.length === 1 && !trailing && !doc.comments.some(({ range }) => isWithin(range, lines))
  return only && whole?.kind === 'pair' ? removeAnyPair(doc, whole) : removePart(doc.text, list, index)
}

/** A table's lines, and the blank line in front of it. */
function blockLines(text: string, node: AST.TOMLTable): Range {
  const start = lineStart(text, node.range[0])
  const from = isBlankLineBefore(text, start) ? start - newline(text).length : start
  return wholeLines(text, [from, Math.max(node.range[1], headerEnd(node))])
}

const blockEnd = (text: string, node: AST.TOMLTable): number => lineEnd(text, Math.max(node.range[1], headerEnd(node)))

const wholeLines = (text: string, range: Range): Range => [lineStart(text, range[0]), lineEnd(text, range[1])]

/** The last line of a file without a final newline goes with the newline in front of it. */
function without(text: string, lines: readonly Range[]): string {
  let result = text
  for (const [from, end] of [...lines].sort((a, b) => b[0] - a[0])) {
    const open = end === result.length && !result.endsWith('\n') && from > 0
    result = open ? result.slice(0, from - newline(result).length) : splice(result, from, end, '')
  }
  return result
}

// ---- text -----------------------------------------------------------------------------------------------------------

function splice(text: string, from: number, to: number, part: string): string {
  return text.slice(0, from) + part + text.slice(to)
}

function newline(text: string): string {
  const first = text.indexOf('\n')
  return first > 0 && text[first - 1] === '\r' ? '\r\n' : '\n'
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1
}

/** Behind the newline that ends the line of `offset`. */
function lineEnd(text: string, offset: number): number {
  if (offset > 0 && offset === text.length) return offset
  const end = text.indexOf('\n', offset)
  return end < 0 ? text.length : end + 1
}

function headerEnd(node: AST.TOMLTable): number {
  return node.key.range[1]
}

function isBlankLineBefore(text: string, start: number): boolean {
  const nl = newline(text)
  return text.slice(0, start).endsWith(nl) && (start === nl.length || text.slice(0, start - nl.length).endsWith('\n'))
}

function hasComment(text: string, offset: number): boolean {
  return text.slice(offset, lineEnd(text, offset)).includes('#')
}

function indentOf(text: string, node: AST.TOMLKeyValue): string {
  return text.slice(lineStart(text, node.range[0]), node.range[0])
}

// A header names the last element of every list on its way by itself.
function headerText(path: EditPath): string {
  return dotted(path.filter((part) => typeof part === 'string'))
}

function pathText(path: EditPath): string {
  return dotted(path)
}

function samePath(a: EditPath, b: EditPath): boolean {
  return a.length === b.length && startsWith(a, b)
}

// ---- E1 -------------------------------------------------------------------------------------------------------------

function verified(
  doc: Document,
  path: EditPath,
  value: PlainValue | undefined,
  after: string,
  gone: readonly Range[],
): string {
  const refused = (cause?: unknown) =>
    new EditError(`${pathText(path)} cannot be edited in this file as it is written`, { cause })
  let got: Document
  try {
    got = openDocument(after)
  } catch (error) {
    throw refused(error)
  }
  if (!isDeepStrictEqual(withoutEmpty(got.plain), withoutEmpty(changed(doc.plain, path, value)))) throw refused()
  if (!keepsComments(doc, gone, got)) throw refused()
  return after
}

/** Whether every comment outside of what is gone is there still; one moves with what it belongs to. */
function keepsComments(before: Document, gone: readonly Range[], after: Document): boolean {
  const there = new Map<string, number>()
  for (const { value } of after.comments) there.set(value, (there.get(value) ?? 0) + 1)
  return before.comments.every(({ value, range }) => {
    if (gone.some((lost) => isWithin(range, lost))) return true
    const left = there.get(value) ?? 0
    there.set(value, left - 1)
    return left > 0
  })
}

const isWithin = (range: Range, outer: Range): boolean => range[0] >= outer[0] && range[1] <= outer[1]

/** The plain value of TOML text; throws `EditError` for what is no TOML. */
export function readPlain(text: string): PlainValue {
  const issues = new IssueList()
  const tree = readToml(text, '', 'city', issues)
  if (tree === undefined) throw new EditError(issues.errors[0]?.message ?? 'not valid TOML')
  return plainOf(tree)
}

function valueAt(value: PlainValue, path: EditPath): PlainValue | undefined {
  let current: PlainValue | undefined = value
  for (const part of path) {
    if (typeof current !== 'object') return undefined
    current = Object.hasOwn(current, part) ? (current as Record<string | number, PlainValue>)[part] : undefined
  }
  return current
}

function changed(value: PlainValue | undefined, path: EditPath, leaf: PlainValue | undefined): PlainValue {
  const [part, ...rest] = path
  if (part === undefined) return leaf ?? {}
  if (typeof part === 'number') {
    const items: PlainValue[] = Array.isArray(value) ? [...value] : []
    if (rest.length > 0 || leaf !== undefined) items[part] = changed(items[part], rest, leaf)
    else items.splice(part, 1)
    return items
  }
  const entries = new Map(Object.entries(typeof value === 'object' && !Array.isArray(value) ? value : {}))
  if (rest.length > 0 || leaf !== undefined) entries.set(part, changed(entries.get(part), rest, leaf))
  else entries.delete(part)
  return Object.fromEntries(entries)
}

// Removing the last key of a table may or may not leave the empty table: both mean the same.
function withoutEmpty(value: PlainValue): PlainValue | undefined {
  if (typeof value !== 'object') return value
  if (Array.isArray(value))
    return value.length === 0 ? undefined : value.map((item: PlainValue) => withoutEmpty(item) ?? {})
  const entries = Object.entries(value).flatMap(([key, child]) => {
    const kept = withoutEmpty(child)
    return kept === undefined ? [] : [[key, kept] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
