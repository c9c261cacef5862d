/**
 * A value of a TOML text with another value in its place, part by part: what stays keeps its spelling, its place and the
 * comments around it.
 *
 * W1  A comment behind a part, on its line, belongs to that part and goes with it. Every other comment stays, also the one
 *     above a part that goes.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AST } from 'toml-eslint-parser'
import { align } from './align.ts'
import { isPlainTable, keyName, type PlainTable, type PlainValue } from './toml.ts'
import { dotted, formatValue } from './toml-format.ts'

/** From an offset of the text to another one. */
export type Range = readonly [number, number]

export interface Rewritten {
  readonly text: string
  /** What is not there any more of the old text, comments included. */
  readonly gone: readonly Range[]
}

/** The text of `node`, which says `before`, such that it says `after`. */
export function rewriteValue(
  text: string,
  node: AST.TOMLContentNode,
  before: PlainValue,
  after: PlainValue,
): Rewritten {
  if (isDeepStrictEqual(before, after)) return { text: text.slice(...node.range), gone: [] }
  if (node.type === 'TOMLArray' && Array.isArray(before) && Array.isArray(after))
    return rewriteList(text, node, before, after)
  if (node.type === 'TOMLInlineTable' && isPlainTable(before) && isPlainTable(after))
    return rewriteInline(text, node, before, after)
  return { text: formatLike(text, node, after), gone: [node.range] }
}

/** The list or inline table without the part at `index`. */
export function withoutPart(text: string, outer: AST.TOMLArray | AST.TOMLInlineTable, index: number): Rewritten {
  return assemble(
    text,
    outer,
    partsOf(outer).map((node, at) => (at === index ? { node } : { node, text: text.slice(...node.range) })),
  )
}

function rewriteList(
  text: string,
  list: AST.TOMLArray,
  before: readonly PlainValue[],
  after: readonly PlainValue[],
): Rewritten {
  const gone: Range[] = []
  const parts = align(before, after).map((step): Part => {
    const [node, old] = [list.elements[step.before ?? -1], before[step.before ?? -1]]
    const fresh = after[step.after ?? -1]
    if (node === undefined || old === undefined) return { text: formatValue(fresh ?? '') }
    if (fresh === undefined) return { node }
    const rewritten = rewriteValue(text, node, old, fresh)
    gone.push(...rewritten.gone)
    return { node, text: rewritten.text }
  })
  const whole = assemble(text, list, parts)
  return { text: whole.text, gone: [...gone, ...whole.gone] }
}

function rewriteInline(text: string, table: AST.TOMLInlineTable, before: PlainTable, after: PlainTable): Rewritten {
  const gone: Range[] = []
  const paths = table.body.map((pair) => pair.key.keys.map(keyName))
  const parts = table.body.map((pair, index): Part => {
    const path = paths[index] ?? []
    const [old, fresh] = [memberAt(before, path), memberAt(after, path)]
    if (old === undefined || fresh === undefined) return { node: pair }
    const value = rewriteValue(text, pair.value, old, fresh)
    gone.push(...value.gone)
    return { node: pair, text: text.slice(pair.range[0], pair.value.range[0]) + value.text }
  })
  const added = newMembers(
    after,
    [],
    paths.filter((path) => memberAt(after, path) !== undefined),
  )
  const whole = assemble(text, table, [...parts, ...added.map((part): Part => ({ text: part }))])
  return { text: whole.text, gone: [...gone, ...whole.gone] }
}

/** What of `table` no pair says: a member is written below its own key where others of its table are written so. */
function newMembers(table: PlainTable, at: readonly string[], said: readonly (readonly string[])[]): readonly string[] {
  return Object.entries(table).flatMap(([key, value]) => {
    const path = [...at, key]
    const below = said.filter((other) => path.every((part, index) => part === other[index]))
    if (below.some((other) => other.length === path.length)) return []
    if (below.length > 0 && isPlainTable(value)) return newMembers(value, path, said)
    return [`${dotted(path)} = ${formatValue(value)}`]
  })
}

function memberAt(table: PlainTable, path: readonly string[]): PlainValue | undefined {
  let found: PlainValue | undefined = table
  for (const key of path) found = isPlainTable(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return found
}

const partsOf = (outer: AST.TOMLArray | AST.TOMLInlineTable): readonly AST.TOMLNode[] =>
  outer.type === 'TOMLArray' ? outer.elements : outer.body

// ---- parts between commas -------------------------------------------------------------------------------------------

/** One of the old parts, one of the new, or both: without a text it goes, without a node it comes. */
type Part =
  | { readonly node: AST.TOMLNode; readonly text?: string }
  | { readonly node?: undefined; readonly text: string }

/** A part as it stands: what is in front of it, and what is behind it up to the end of its line. */
interface Seat {
  readonly lead: string
  readonly tail: string
  readonly end: number
  /** Where in the tail its comma is. */
  readonly comma: number | undefined
}

function assemble(text: string, outer: AST.TOMLArray | AST.TOMLInlineTable, parts: readonly Part[]): Rewritten {
  const old = partsOf(outer)
  const seats = seatsOf(text, outer, old)
  const first = seats.get(old[0])
  const last = seats.get(old.at(-1))
  const open = afterComment(text, outer.range[0] + 1)
  const final = text.slice(last?.end ?? open, outer.range[1] - 1)
  const spacing = { first: first?.lead ?? '', next: leadOfNew([...seats.values()]) }
  const trailing = last?.comma !== undefined
  const count = parts.filter((part) => part.text !== undefined).length
  const gone: Range[] = []
  const out = new Pieces(text)
  out.add(text.slice(outer.range[0], open))
  let placed = 0
  for (const { node, text: body } of parts) {
    const seat = seats.get(node)
    if (body === undefined) {
      if (seat === undefined || node === undefined) continue
      out.addComments(seat.lead)
      gone.push([node.range[0], seat.end])
      continue
    }
    out.add(leadOf(seat?.lead, placed++ === 0, spacing))
    out.addCode(body)
    out.add(withComma(seat, placed < count || trailing))
  }
  out.add(final)
  out.add(text.slice(outer.range[1] - 1, outer.range[1]))
  return { text: out.text, gone }
}

function seatsOf(
  text: string,
  outer: AST.TOMLArray | AST.TOMLInlineTable,
  nodes: readonly AST.TOMLNode[],
): Map<AST.TOMLNode | undefined, Seat> {
  const seats = new Map<AST.TOMLNode | undefined, Seat>()
  let from = afterComment(text, outer.range[0] + 1)
  for (const node of nodes) {
    const comma = commaAfter(text, node.range[1])
    const end = afterComment(text, comma === undefined ? node.range[1] : comma + 1)
    const tail = text.slice(node.range[1], end)
    seats.set(node, {
      lead: text.slice(from, node.range[0]),
      tail,
      end,
      comma: comma === undefined ? undefined : comma - node.range[1],
    })
    from = end
  }
  return seats
}

interface Spacing {
  readonly first: string
  readonly next: string
}

/** Parts of one line are spaced by where they stand now, others by where they stood. */
function leadOf(own: string | undefined, isFirst: boolean, { first, next }: Spacing): string {
  if (own?.includes('\n') === true) return own
  if (next.includes('\n') && own === undefined) return next
  return isFirst ? (first.includes('\n') ? next : first) : own === undefined || own === first ? next : own
}

/** What stands in front of the last part: a space, or a new line with its indentation. */
function leadOfNew(seats: readonly Seat[]): string {
  const lines = /\r?\n[ \t]*$/.exec(seats.at(-1)?.lead ?? '')
  return lines?.[0] ?? ' '
}

function withComma(seat: Seat | undefined, wanted: boolean): string {
  if (seat === undefined) return wanted ? ',' : ''
  const { tail, comma } = seat
  if (comma === undefined) return wanted ? `,${tail}` : tail
  return wanted ? tail : tail.slice(0, comma) + tail.slice(comma + 1)
}

/** Text put together so that nothing ends up in a comment. */
class Pieces {
  text = ''
  readonly #newline: string
  #inComment = false

  constructor(whole: string) {
    this.#newline = /\r?\n/.exec(whole)?.[0] ?? '\n'
  }

  add(piece: string): void {
    if (piece === '') return
    if (this.#inComment && !/^[ \t]*\r?\n/.test(piece)) this.text += this.#newline
    this.text += piece
    this.#inComment = /#[^\n]*$/.test(piece)
  }

  /** What may have a `#` in it that begins no comment. */
  addCode(code: string): void {
    this.add(code)
    this.#inComment = false
  }

  /** The comments of what stood in front of a part that goes. */
  addComments(lead: string): void {
    const kept = /^[\s\S]*#[^\r\n]*/.exec(lead)?.[0]
    if (kept !== undefined) this.add(kept)
  }
}

/** The comma that follows `offset` behind nothing but blanks and comments. */
export function commaAfter(text: string, offset: number): number | undefined {
  const skipped = /^(?:[ \t\r\n]|#[^\n]*\n)*/.exec(text.slice(offset))?.[0].length ?? 0
  return text[offset + skipped] === ',' ? offset + skipped : undefined
}

/** `offset`, or the end of a comment that stands behind it on its line. */
export function afterComment(text: string, offset: number): number {
  return offset + (/^[ \t]*#[^\r\n]*/.exec(text.slice(offset))?.[0].length ?? 0)
}

/** The new value in the spelling of the old: its quotes, its point. */
function formatLike(text: string, old: AST.TOMLContentNode, value: PlainValue): string {
  const written = text.slice(...old.range)
  const literal = written.startsWith("'") && !written.startsWith("'''")
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a literal string cannot hold control characters
  if (literal && typeof value === 'string' && !/['\u0000-\u001f\u007f]/.test(value)) return `'${value}'`
  if (old.type === 'TOMLValue' && old.kind === 'float' && Number.isInteger(value)) return `${String(value)}.0`
  return formatValue(value)
}
