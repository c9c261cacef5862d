/**
 * Edits of TOML text that leave every other byte alone: comments, order, blank lines, quoting.
 *
 * E1  An edit changes exactly one value, table or element; the result is parsed again and compared.
 * E2  Byte for byte: add then remove, and set of a new key then unset, give the text back. So does set to another value
 *     and back, as far as the value's old spelling follows from its new one (quotes and layout do, `1_000` does not).
 *
 * E2 needs marks in the text that tell what was there before: a table that `setValue` made has its key right below the
 * header, a key set in a table that was empty already has a blank line between; an element added to an empty list has a
 * comma behind it.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AST } from 'toml-eslint-parser'
import { IssueList } from './issues.ts'
import { keyName, type PlainTable, type PlainValue, parseSyntax, plainOf, readToml, syntaxError } from './toml.ts'

/** Keys and list positions from the top of the file. */
export type EditPath = readonly (string | number)[]

/** Thrown when the text is laid out in a way that this edit cannot follow. Nothing has been changed then. */
export class EditError extends Error {}

/** `text` with `path` set to `value`; tables on the way are made when missing. */
export function setValue(text: string, path: EditPath, value: PlainValue): string {
  const doc = openDocument(text)
  const found = locate(doc, path)
  const before = readPlain(text)
  if (found !== undefined) {
    const old = found.kind === 'pair' ? found.pair.value : found.element
    if (isDeepStrictEqual(valueAt(before, path), value)) return text
    return verified(text, path, value, splice(text, old.range[0], old.range[1], formatLike(text, old, value)))
  }
  if (valueAt(before, path) !== undefined) throw new EditError(`${pathText(path)} is a table: set its keys one by one`)
  return verified(text, path, value, insertPair(doc, path, value))
}

/** `text` without the key or list element at `path`; unchanged when it is not there. */
export function unsetValue(text: string, path: EditPath): string {
  const doc = openDocument(text)
  const found = locate(doc, path)
  if (found === undefined) return text
  if (found.kind === 'element') return verified(text, path, undefined, removeListElement(doc, found, path))
  if (found.inline !== undefined)
    return verified(
      text,
      path,
      undefined,
      removeSeparated(text, found.inline.body, found.inline.body.indexOf(found.pair), found.inline.range, false),
    )
  return verified(text, path, undefined, removePair(doc, found))
}

/** `text` with a new `[path]` table at its end. */
export function addTable(text: string, path: EditPath, values: PlainTable): string {
  if (valueAt(readPlain(text), path) !== undefined) throw new EditError(`${pathText(path)} exists already`)
  return verified(text, path, values, appendBlock(text, text.length, blockText(text, `[${headerText(path)}]`, values)))
}

/** `text` without the table at `path` and everything below it, however it is written. */
export function removeTable(text: string, path: EditPath): string {
  const doc = openDocument(text)
  const found = locate(doc, path)
  if (found !== undefined) return unsetValue(text, path)
  let result = text
  // From the end, so that the ranges of what is still to be removed stay right.
  for (const block of [...doc.blocks].reverse()) {
    if (block.node === undefined) continue
    if (startsWith(block.path, path)) result = removeBlock(result, block.node)
    else
      for (const pair of [...block.pairs].reverse())
        if (startsWith(pair.path, path)) result = removeLines(result, pair.node.range)
  }
  for (const pair of [...(doc.blocks[0]?.pairs ?? [])].reverse())
    if (startsWith(pair.path, path)) result = removeLines(result, pair.node.range)
  return verified(text, path, undefined, result)
}

/** `text` with one more element in the list at `path`: as the list is written, else as `[[path]]` at the end. */
export function addElement(text: string, path: EditPath, values: PlainTable): string {
  const doc = openDocument(text)
  const before = valueAt(readPlain(text), path)
  const list = Array.isArray(before) ? before : []
  const found = locate(doc, path)
  if (found?.kind === 'pair' && found.pair.value.type === 'TOMLArray') {
    return verified(text, path, [...list, values], insertListElement(text, found.pair.value, formatValue(values)))
  }
  if (before !== undefined && list.length === 0) throw new EditError(`${pathText(path)} is no list`)
  const inside = path.some((part) => typeof part === 'number')
  if (inside && list.length === 0) return verified(text, path, [values], insertPair(doc, path, [values]))
  const last = doc.blocks.filter((block) => startsWith(block.path, path)).at(-1)
  const at = inside && last?.node !== undefined ? lineEnd(text, last.node.range[1]) : text.length
  return verified(
    text,
    path,
    [...list, values],
    appendBlock(text, at, blockText(text, `[[${headerText(path)}]]`, values)),
  )
}

/** `text` without element `index` of the list at `path`. */
export function removeElement(text: string, path: EditPath, index: number): string {
  return removeTable(text, [...path, index])
}

// ---- the document ---------------------------------------------------------------------------------------------------

type Pair = { path: EditPath; node: AST.TOMLKeyValue }
type Block = { path: EditPath; node: AST.TOMLTable | undefined; pairs: Pair[] }
type Document = { text: string; blocks: Block[] }
type Found =
  | { kind: 'pair'; pair: AST.TOMLKeyValue; block: Block; inline: AST.TOMLInlineTable | undefined }
  | { kind: 'element'; element: AST.TOMLContentNode; list: AST.TOMLArray; index: number }

function openDocument(text: string): Document {
  const top = parseForEdit(text)
  const root: Block = { path: [], node: undefined, pairs: [] }
  const blocks = [root]
  for (const part of top.body) {
    if (part.type === 'TOMLKeyValue') root.pairs.push({ path: names(part.key), node: part })
    else {
      const pairs = part.body.map((node) => ({ path: [...part.resolvedKey, ...names(node.key)], node }))
      blocks.push({ path: part.resolvedKey, node: part, pairs })
    }
  }
  return { text, blocks }
}

function parseForEdit(text: string): AST.TOMLTopLevelTable {
  try {
    return parseSyntax(text).body[0]
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

function removePair(doc: Document, { pair, block }: Extract<Found, { kind: 'pair' }>): string {
  const { text } = doc
  const sole = block.node !== undefined && block.pairs.length === 1
  if (!sole || block.node === undefined) return removeLines(text, pair.range)
  const between = text.slice(lineEnd(text, headerEnd(block.node)), lineStart(text, pair.range[0]))
  if (between === '' && isRemovable(doc, block) && !hasComment(text, pair.range[1]))
    return removeBlock(text, block.node)
  const blank = between === newline(text) ? between.length : 0
  return removeLines(text, [lineStart(text, pair.range[0]) - blank, pair.range[1]])
}

// Such a header may be one that `setValue` made: nothing but its keys would miss it.
function isRemovable(doc: Document, block: Block): boolean {
  if (block.node === undefined || block.node.kind === 'array' || hasComment(doc.text, headerEnd(block.node)))
    return false
  if (doc.blocks.some((other) => other !== block && startsWith(other.path, block.path))) return false
  const start = lineStart(doc.text, block.node.range[0])
  return start === 0 || isBlankLineBefore(doc.text, start)
}

function removeListElement(doc: Document, found: Extract<Found, { kind: 'element' }>, path: EditPath): string {
  const { list, index } = found
  const trailing = commaAfter(doc.text, found.element.range[1]) !== undefined
  const whole = locate(doc, path.slice(0, -1))
  if (list.elements.length === 1 && !trailing && whole?.kind === 'pair' && whole.inline === undefined)
    return removePair(doc, whole)
  if (list.elements.length === 1 && !trailing && whole?.kind === 'pair' && whole.inline !== undefined) {
    return removeSeparated(
      doc.text,
      whole.inline.body,
      whole.inline.body.indexOf(whole.pair),
      whole.inline.range,
      false,
    )
  }
  return removeSeparated(doc.text, list.elements, index, list.range, true)
}

/** Removes one of several comma-separated parts with the comma that belongs to it. */
function removeSeparated(
  text: string,
  parts: readonly AST.TOMLNode[],
  index: number,
  outer: readonly [number, number],
  list: boolean,
): string {
  const part = parts[index]
  if (part === undefined) return text
  const previous = parts[index - 1]
  const comma = commaAfter(text, part.range[1])
  if (previous !== undefined) {
    const previousComma = commaAfter(text, previous.range[1]) ?? previous.range[1]
    const isLast = index === parts.length - 1
    // Behind the last part: from its predecessor's end when it has no comma, else from its predecessor's comma.
    if (isLast && comma !== undefined) return splice(text, afterComment(text, previousComma + 1), comma + 1, '')
    if (isLast) return splice(text, previous.range[1], part.range[1], '')
    return splice(text, previousComma + 1, (comma ?? part.range[1] - 1) + 1, '')
  }
  const next = parts[index + 1]
  if (next !== undefined) return splice(text, part.range[0], next.range[0], '')
  if (list) return splice(text, part.range[0], (comma ?? part.range[1] - 1) + 1, '')
  const before = text.slice(outer[0] + 1, part.range[0])
  return splice(text, outer[0] + 1, outer[1] - 1, before)
}

/** Removes a table's lines, and the blank line in front of it. */
function removeBlock(text: string, node: AST.TOMLTable): string {
  const start = lineStart(text, node.range[0])
  const from = isBlankLineBefore(text, start) ? start - newline(text).length : start
  return removeLines(text, [from, Math.max(node.range[1], headerEnd(node))])
}

/** Removes whole lines. The last line of a file without a final newline goes with the newline in front of it. */
function removeLines(text: string, range: readonly [number, number]): string {
  const from = lineStart(text, range[0])
  const end = lineEnd(text, range[1])
  if (end === text.length && !text.endsWith('\n') && from > 0) return text.slice(0, from - newline(text).length)
  return splice(text, from, end, '')
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

/** The comma that follows `offset` behind nothing but blanks and comments. */
function commaAfter(text: string, offset: number): number | undefined {
  const skipped = /^(?:[ \t\r\n]|#[^\n]*\n)*/.exec(text.slice(offset))?.[0].length ?? 0
  return text[offset + skipped] === ',' ? offset + skipped : undefined
}

/** `offset`, or the end of a comment that stands behind it on its line. */
function afterComment(text: string, offset: number): number {
  return offset + (/^[ \t]*#[^\r\n]*/.exec(text.slice(offset))?.[0].length ?? 0)
}

function dotted(path: EditPath): string {
  return path.map((part) => formatKey(String(part))).join('.')
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

/** A key as TOML: bare where that is possible. */
function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quote(key)
}

/** A value as TOML, on one line. */
function formatValue(value: PlainValue): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `[${value.map((item: PlainValue) => formatValue(item)).join(', ')}]`
  const pairs = Object.entries(value).map(([key, child]) => `${formatKey(key)} = ${formatValue(child)}`)
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
}

function quote(text: string): string {
  // JSON's escapes are TOML's, except for DEL, which TOML wants escaped.
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f')
}

/** The new value in the spelling of the old: its quotes, its point, its lines. */
function formatLike(text: string, old: AST.TOMLContentNode, value: PlainValue): string {
  const written = text.slice(old.range[0], old.range[1])
  const literal = written.startsWith("'") && !written.startsWith("'''")
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a literal string cannot hold control characters
  if (literal && typeof value === 'string' && !/['\u0000-\u001f\u007f]/.test(value)) return `'${value}'`
  if (old.type === 'TOMLValue' && old.kind === 'float' && Number.isInteger(value)) return `${String(value)}.0`
  if (
    old.type === 'TOMLArray' &&
    Array.isArray(value) &&
    value.length > 0 &&
    old.elements.length > 0 &&
    written.includes('\n')
  ) {
    return formatLines(text, old, value)
  }
  return formatValue(value)
}

function formatLines(text: string, old: AST.TOMLArray, value: readonly PlainValue[]): string {
  const lead = leadOf(text, old)
  const last = old.elements.at(-1)
  const comma = last !== undefined && commaAfter(text, last.range[1]) !== undefined
  const tail = /\s*$/.exec(text.slice(old.range[0], old.range[1] - 1))?.[0] ?? ''
  return `[${value.map((item) => lead + formatValue(item)).join(',')}${comma ? ',' : ''}${tail}]`
}

// ---- E1 -------------------------------------------------------------------------------------------------------------

function verified(before: string, path: EditPath, value: PlainValue | undefined, after: string): string {
  const wanted = changed(readPlain(before), path, value)
  let got: PlainValue
  try {
    got = readPlain(after)
  } catch (error) {
    throw new EditError(`${pathText(path)} cannot be edited in this file as it is written`, { cause: error })
  }
  if (!isDeepStrictEqual(withoutEmpty(got), withoutEmpty(wanted))) {
    throw new EditError(`${pathText(path)} cannot be edited in this file as it is written`)
  }
  return after
}

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
