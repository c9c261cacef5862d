/**
 * A model of edits: random documents with comments wherever TOML has room for one, random edits of them. After each the
 * text says what was asked for and nothing else, what was not edited stands there byte for byte, and every comment is
 * there but those that belong to what went.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { AST } from 'toml-eslint-parser'
import { fc, type Random, seededRandom } from '../../test/support/random.ts'
import { isPlainTable, keyName, type PlainTable, type PlainValue, parseSyntax, readPlainToml } from './toml.ts'
import { EditError, type EditPath, setValue, unsetValue } from './toml-edit.ts'
import { formatValue } from './toml-format.ts'

type Set = (text: string, path: EditPath, value: PlainValue) => string

// ---- documents ------------------------------------------------------------------------------------------------------

/** Writes values and tables with a comment, each with a number of its own, wherever one may stand. */
class Writer {
  readonly #random: Random
  #count = 0

  constructor(random: Random) {
    this.#random = random
  }

  document(): string {
    const root = this.pairs(['a', 'b', 'c'])
    const tables = ['t', 'u', 'v'].flatMap((name) => (this.#random.chance(0.7) ? [this.table(name)] : []))
    const lists = ['l', 'm'].flatMap((name) => (this.#random.chance(0.7) ? [this.tables(name)] : []))
    const text = this.above() + root + [...tables, ...lists].join('') + this.above()
    const ended = this.#random.chance(0.2) ? text.replace(/\n$/, '') : text
    return this.#random.chance(0.2) ? ended.replaceAll('\n', '\r\n') : ended
  }

  table(name: string): string {
    const sub = this.#random.chance(0.4)
      ? `${this.above()}[${name}.sub]${this.behind()}\n${this.pairs(['x', 'y'])}`
      : ''
    return `${this.above()}[${name}]${this.behind()}\n${this.above()}${this.pairs(['a', 'b', 'c', 'd'])}${sub}`
  }

  tables(name: string): string {
    return Array.from({ length: this.#random.between(1, 4) }, () => {
      const sub = this.#random.chance(0.3) ? `[${name}.sub]${this.behind()}\n${this.pairs(['x', 'y'])}` : ''
      const inner = this.#random.chance(0.3) ? `[[${name}.inner]]${this.behind()}\n${this.pairs(['x'])}` : ''
      return `${this.above()}[[${name}]]${this.behind()}\n${this.above()}${this.pairs(['name', 'b', 'c'])}${sub}${inner}`
    }).join('')
  }

  pairs(keys: readonly string[]): string {
    const dotted = this.#random.chance(0.2) ? [`d.one = ${this.value(1)}`, `d.two = ${this.value(1)}`] : []
    const own = keys.flatMap((key) => (this.#random.chance(0.7) && key !== 'd' ? [`${key} = ${this.value(3)}`] : []))
    return [...own, ...dotted].map((pair) => `${this.above()}${pair}${this.behind()}\n`).join('')
  }

  value(depth: number): string {
    const kind = this.#random.next()
    if (depth === 0 || kind < 0.35) return this.scalar()
    if (kind < 0.75) return this.#random.chance(0.7) ? this.longList(depth) : this.list(depth)
    const members = ['k', 'n', '"o p"'].filter(() => this.#random.chance(0.6))
    const dotted = this.#random.chance(0.3) ? [`q.r = ${this.value(0)}`, `q.s = ${this.value(0)}`] : []
    const pairs = [...members.map((key) => `${key} = ${this.value(depth - 1)}`), ...dotted]
    return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
  }

  list(depth: number): string {
    return `[${Array.from({ length: this.#random.between(0, 4) }, () => this.value(depth - 1)).join(', ')}]`
  }

  longList(depth: number): string {
    const count = this.#random.between(0, 5)
    const parts = Array.from({ length: count }, (_, index) => {
      const last = index === count - 1
      const comma = last && this.#random.chance(0.5) ? '' : ','
      const odd = comma === ',' && this.#random.chance(0.1)
      const body = `  ${this.value(depth - 1)}`
      return this.above('  ') + (odd ? `${body}${this.behind()}\n  ,\n` : `${body}${comma}${this.behind()}\n`)
    })
    return `[${this.behind()}\n${parts.join('')}${this.above('  ')}]`
  }

  scalar(): string {
    return (
      this.#random.pick([
        '1',
        '22',
        'true',
        '"text"',
        "'lit # eral'",
        '"with \\" # no comment"',
        '3.5',
        '"""\nlines\n# none\n"""',
      ]) ?? ''
    )
  }

  above(indent = ''): string {
    const lines = this.#random.chance(0.3) ? [`${indent}# c${this.#count++} above\n`] : []
    return [...(this.#random.chance(0.2) ? ['\n'] : []), ...lines, ...(this.#random.chance(0.1) ? ['\n'] : [])].join('')
  }

  behind(): string {
    return this.#random.chance(0.4) ? `  # c${this.#count++} behind` : ''
  }
}

// ---- edits ----------------------------------------------------------------------------------------------------------

const SCALARS: readonly PlainValue[] = [1, 7, true, 'text', 'new', "it's", 2.5]

function fresh(random: Random, depth = 2): PlainValue {
  const kind = random.next()
  if (depth === 0 || kind < 0.5) return random.pick(SCALARS) ?? 1
  if (kind < 0.8) return Array.from({ length: random.between(0, 3) }, () => fresh(random, depth - 1))
  return Object.fromEntries(
    ['k', 'z', 'o p'].filter(() => random.chance(0.5)).map((key) => [key, fresh(random, depth - 1)]),
  )
}

/** A value near the old one: something in it comes, goes, changes or moves. */
function changed(random: Random, value: PlainValue): PlainValue {
  if (random.chance(0.1)) return fresh(random)
  if (Array.isArray(value)) return changedList(random, [...value])
  if (!isPlainTable(value)) return fresh(random, 0)
  const entries = new Map(Object.entries(value))
  const key = random.pick([...entries.keys(), 'z'])
  const old = entries.get(key ?? '')
  if (key === undefined) return value
  if (old !== undefined && random.chance(0.3)) entries.delete(key)
  else entries.set(key, old === undefined ? fresh(random, 1) : changed(random, old))
  return Object.fromEntries(entries)
}

function changedList(random: Random, list: PlainValue[]): PlainValue {
  const tables = list.length > 0 && list.every(isPlainTable)
  for (let left = random.between(1, 3); left > 0; left--) {
    const at = random.between(0, Math.max(0, list.length - 1))
    const old = list[at]
    const kind = random.next()
    if (old === undefined || kind < 0.35) list.splice(at, 0, tables ? { name: 'new' } : fresh(random, 1))
    else if (kind < 0.6) list.splice(at, 1)
    else if (kind < 0.85) list[at] = changed(random, old)
    else list.splice(random.between(0, list.length - 1), 0, ...list.splice(at, 1))
  }
  return list
}

/** Every path at which the document says something. */
function pathsOf(value: PlainValue, at: EditPath = []): EditPath[] {
  const own = at.length === 0 ? [] : [at]
  if (typeof value !== 'object') return own
  const children = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [
    ...own,
    ...children.flatMap(([key, child]: readonly [string | number, PlainValue]) => pathsOf(child, [...at, key])),
  ]
}

function valueAt(value: PlainValue, path: EditPath): PlainValue | undefined {
  let found: PlainValue | undefined = value
  for (const key of path) {
    if (typeof found !== 'object') return undefined
    found = Array.isArray(found)
      ? found[Number(key)]
      : isPlainTable(found) && Object.hasOwn(found, key)
        ? found[key]
        : undefined
  }
  return found
}

function withValue(value: PlainValue, path: EditPath, leaf: PlainValue | undefined): PlainValue {
  const [key, ...rest] = path
  if (key === undefined) return leaf ?? ''
  if (Array.isArray(value)) {
    const list = [...value]
    const old = list[Number(key)] ?? ''
    list.splice(Number(key), 1, ...(rest.length === 0 && leaf === undefined ? [] : [withValue(old, rest, leaf)]))
    return list
  }
  const table: PlainTable = isPlainTable(value) ? value : {}
  const { [String(key)]: old, ...others } = table
  if (rest.length === 0 && leaf === undefined) return others
  return { ...table, [String(key)]: withValue(old ?? {}, rest, leaf) }
}

/** Files do not tell a table that is empty from none. */
function meaning(value: PlainValue): PlainValue | undefined {
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item: PlainValue) => meaning(item) ?? {})
  const entries = Object.entries(value).flatMap(([key, child]) => {
    const kept = meaning(child)
    return kept === undefined ? [] : [[key, kept] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

// ---- what must be there still ---------------------------------------------------------------------------------------

interface Parsed {
  readonly text: string
  readonly program: AST.TOMLProgram
  readonly plain: PlainTable
}
const parse = (text: string): Parsed => ({ text, program: parseSyntax(text), plain: readPlainToml(text) })
const namesOf = (key: AST.TOMLKey): string[] => key.keys.map(keyName)
const lineEnd = (text: string, from: number): number =>
  text.indexOf('\n', from) < 0 ? text.length : text.indexOf('\n', from)

/** Places of the comments that may go where the value at `path` becomes `after` (undefined: goes). */
class Leaving {
  readonly #doc: Parsed
  readonly #ranges: (readonly [number, number])[] = []

  constructor(doc: Parsed, path: EditPath, after: PlainValue | undefined) {
    this.#doc = doc
    const whole = withValue(doc.plain, path, after)
    for (const part of doc.program.body[0].body) {
      if (part.type === 'TOMLKeyValue') this.#pair(part, [], whole)
      else this.#table(part, path, whole)
    }
  }

  mayGo(at: number): boolean {
    return this.#ranges.some(([from, to]) => at >= from && at < to)
  }

  #table(table: AST.TOMLTable, path: EditPath, whole: PlainValue): void {
    const end = lineEnd(this.#doc.text, Math.max(table.range[1], table.key.range[1]))
    const touched = path.every(
      (key, index) => table.resolvedKey[index] === undefined || table.resolvedKey[index] === key,
    )
    const inList = listOn(this.#doc.plain, table.resolvedKey)
    if (
      table.resolvedKey.some(
        (key, at) => typeof key === 'number' && !isTables(valueAt(whole, table.resolvedKey.slice(0, at))),
      )
    )
      this.#ranges.push([table.range[0], end])
    else if (inList !== undefined && touched && !this.#sameElement(inList, whole))
      this.#ranges.push([table.range[0], end])
    else if (valueAt(whole, table.resolvedKey) === undefined || !isPlainTable(valueAt(whole, table.resolvedKey) ?? ''))
      this.#ranges.push([table.range[0], end])
    else for (const pair of table.body) this.#pair(pair, table.resolvedKey, whole)
  }

  /** The elements of the list are where they were, or this one is there as it was, as often as it was. */
  #sameElement(element: EditPath, whole: PlainValue): boolean {
    const list = element.slice(0, -1)
    const [before, after] = [valueAt(this.#doc.plain, list), valueAt(whole, list)]
    if (!Array.isArray(before) || !Array.isArray(after)) return false
    return (
      before.length === after.length &&
      before.every((one, at) => at === element.at(-1) || isDeepStrictEqual(one, after[at]))
    )
  }

  #pair(pair: AST.TOMLKeyValue, at: EditPath, whole: PlainValue): void {
    const path = [...at, ...namesOf(pair.key)]
    const after = valueAt(whole, path)
    const before = valueAt(this.#doc.plain, path)
    if (after === undefined) this.#ranges.push([pair.range[0], lineEnd(this.#doc.text, pair.range[1])])
    else if (before !== undefined) this.#value(pair.value, before, after)
  }

  #value(node: AST.TOMLContentNode, before: PlainValue, after: PlainValue): void {
    if (isDeepStrictEqual(before, after)) return
    if (node.type === 'TOMLArray' && Array.isArray(before) && Array.isArray(after)) {
      this.#list(node, before, after)
      return
    }
    if (node.type === 'TOMLInlineTable' && isPlainTable(before) && isPlainTable(after)) {
      for (const pair of node.body) {
        const path = namesOf(pair.key)
        const [old, now] = [valueAt(before, path), valueAt(after, path)]
        if (old === undefined || now === undefined) this.#ranges.push(pair.range)
        else this.#value(pair.value, old, now)
      }
      return
    }
    this.#ranges.push(node.range)
  }

  #list(node: AST.TOMLArray, before: readonly PlainValue[], after: readonly PlainValue[]): void {
    const often = (list: readonly PlainValue[], value: PlainValue) =>
      list.filter((one) => isDeepStrictEqual(one, value)).length
    for (const [index, element] of node.elements.entries()) {
      const value = before[index] ?? ''
      if (often(after, value) >= often(before, value)) continue
      const alone =
        before.length === after.length && before.every((one, at) => at === index || isDeepStrictEqual(one, after[at]))
      const now = after[index]
      if (alone && now !== undefined) {
        this.#value(element, value, now)
        if (kindOf(value) === kindOf(now)) continue
      }
      const next = node.elements[index + 1]?.range[0] ?? node.range[1]
      const comma = this.#doc.text.slice(element.range[1], next).search(/^[^#]*(?:#[^\n]*\n[^#]*?)*?,/)
      const behind =
        comma < 0 ? element.range[1] : element.range[1] + this.#doc.text.slice(element.range[1], next).indexOf(',')
      this.#ranges.push([element.range[0], lineEnd(this.#doc.text, Math.max(behind, element.range[1]))])
    }
  }
}

/** Only such a list can have a header for each of its elements. */
const isTables = (value: PlainValue | undefined): boolean => Array.isArray(value) && value.every(isPlainTable)

const kindOf = (value: PlainValue): string => (Array.isArray(value) ? 'list' : typeof value)

/** The path of the outermost element of a list of tables on the way. */
function listOn(plain: PlainValue, path: EditPath): EditPath | undefined {
  const at = path.findIndex((key) => typeof key === 'number')
  return at < 0 || !Array.isArray(valueAt(plain, path.slice(0, at))) ? undefined : path.slice(0, at + 1)
}

/** The lines of the document that have nothing to do with `path`. */
function otherLines({ text, program }: Parsed, path: EditPath): readonly string[] {
  const apart = (at: EditPath): boolean => at.some((key, index) => index < path.length && key !== path[index])
  const lines = (node: AST.TOMLKeyValue): string => text.slice(node.range[0], lineEnd(text, node.range[1])).trimEnd()
  return program.body[0].body.flatMap((part) => {
    if (part.type === 'TOMLKeyValue') return apart(namesOf(part.key)) ? [lines(part)] : []
    const own = part.body.filter((pair) => apart([...part.resolvedKey, ...namesOf(pair.key)])).map(lines)
    return apart(part.resolvedKey)
      ? [text.slice(part.range[0], lineEnd(text, part.key.range[1])).trimEnd(), ...own]
      : own
  })
}

function check(before: Parsed, path: EditPath, value: PlainValue | undefined, text: string): void {
  const after = parse(text)
  assert.deepEqual(meaning(after.plain), meaning(withValue(before.plain, path, value)), 'it says what was asked for')
  const leaving = new Leaving(before, path, value)
  const there = new Map(after.program.comments.map((comment) => [comment.value, true]))
  for (const comment of before.program.comments)
    assert.ok(there.has(comment.value) || leaving.mayGo(comment.range[0]), `lost: #${comment.value}`)
  assert.ok(after.program.comments.length <= before.program.comments.length, 'no comment is there twice')
  let from = 0
  for (const line of otherLines(before, path)) {
    const found = text.indexOf(line, from)
    assert.ok(found >= 0, `not byte for byte: ${line}`)
    from = found + line.length
  }
}

function edit(set: Set, seed: number): 'edited' | 'refused' {
  const random = seededRandom(seed)
  let text = new Writer(random).document()
  for (let step = 0; step < 3; step++) {
    const before = parse(text)
    const path = random.pick([...pathsOf(before.plain), ['a'], ['t', 'new'], ['w', 'x', 'y']]) ?? ['a']
    const old = valueAt(before.plain, path)
    const removes = old !== undefined && random.chance(0.2)
    const value = removes ? undefined : old === undefined ? fresh(random) : changed(random, old)
    // One of the tables of a list stays a table: TOML has no other way to write it there.
    if (isPlainTable(old ?? '') && typeof path.at(-1) === 'number' && value !== undefined && !isPlainTable(value))
      continue
    const shown = `${path.join('.')} = ${value === undefined ? 'nothing' : formatValue(value)} in\n${text}`
    try {
      const next = value === undefined ? unsetValue(text, path) : set(text, path, value)
      // A table with headers of its own is removed as a table, which is another edit.
      if (value === undefined && next === text) continue
      check(before, path, value, next)
      text = next
    } catch (error) {
      // What cannot be done without a loss is refused, which is seldom.
      if (error instanceof EditError) return 'refused'
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${shown}`, { cause: error })
    }
  }
  return 'edited'
}

function runs(set: Set, numRuns: number): void {
  let refused = 0
  const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 })
  fc.assert(
    fc.property(seeds, (seed) => {
      if (edit(set, seed) === 'refused') refused++
    }),
    { numRuns },
  )
  assert.ok(refused <= numRuns / 100, `${refused} of ${numRuns} were refused`)
}

test('model: after any edit the text says what was asked for, and every comment outside of it is there', () => {
  runs(setValue, 1500)
})

test('model: an edit that writes the new value in place of the old one is found to lose comments', () => {
  const naive: Set = (text, path, value) => {
    const [part] = parseSyntax(text).body[0].body
    const whole = path.length === 1 && part?.type === 'TOMLKeyValue' && part.key.keys.map(keyName).join() === path[0]
    const range = whole ? part.value.range : undefined
    return range === undefined
      ? setValue(text, path, value)
      : text.slice(0, range[0]) + formatValue(value) + text.slice(range[1])
  }
  assert.throws(
    () => runs(naive, 1500),
    (error) => error instanceof Error && /lost: # c\d+ (?:above|behind)/.test(String(error.cause)),
  )
})
