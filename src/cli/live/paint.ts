/** What screens are made of: pieces of text with a look, cut to the terminal (pure). */
import { printable } from '../base/failure.ts'
import { relativeTime } from '../base/output.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo, widthOf } from '../print/text-width.ts'
import type { Line } from './keys.ts'
import type { Chosen } from './pressing.ts'
import { windowOf } from './prompt.ts'

/** As many lines as the terminal has rows; the last one is for the keys. */
export function filled(lines: readonly string[], foot: string, height: number): readonly string[] {
  const above = lines.slice(0, Math.max(0, height - 1))
  const gap = Array.from({ length: Math.max(0, height - 1 - above.length) }, () => '')
  return [...above, ...gap, foot].slice(-height)
}

export const [GREEN, YELLOW, RED] = [32, 33, 31]
/** By name, or a colour by its code. */
export type Style = keyof typeof CODES | number
export type Paint = (text: string, style: Style | undefined) => string
const CODES = { bold: [1, 22], dim: [2, 22], reverse: [7, 27] } as const

export const painter =
  (color: boolean): Paint =>
  (text, style) => {
    if (style === undefined || text === '' || (typeof style === 'number' && !color)) return text
    const [on, off] = typeof style === 'number' ? [style, 39] : CODES[style]
    return `\u001b[${on}m${text}\u001b[${off}m`
  }

/** Text of others on one line. */
export const safe = (text: string): string => forTerminal(printable(text)).replaceAll(/[\t\n\r]+/g, ' ')

export interface Piece {
  readonly text: string
  readonly style?: Style | undefined
}

const GAP = '   '

/** Pieces one behind the other, in as many lines as it takes; one that is too wide is cut. */
export function flow(pieces: readonly Piece[], columns: number, paint: Paint): readonly string[] {
  const lines: string[] = []
  let [line, used] = ['', 0]
  for (const { text, style } of pieces) {
    const cut = cutTo(text, columns)
    const width = widthOf(cut)
    if (used > 0 && used + GAP.length + width > columns) {
      lines.push(line)
      line = ''
      used = 0
    }
    line += `${used === 0 ? '' : GAP}${paint(cut, style)}`
    used += width + (used === 0 ? 0 : GAP.length)
  }
  return [...lines, line]
}

export interface LineStyle {
  readonly columns: number
  readonly paint: Paint
  readonly isSelected: boolean
}

/** A row of a list: one that is selected is reversed to the end of the line. */
export function rowLine(pieces: readonly Piece[], { columns, paint, isSelected }: LineStyle): string {
  const mark = isSelected ? '> ' : '  '
  let [line, used] = [mark, mark.length]
  for (const { text, style: look } of pieces) {
    const cut = cutTo(text, columns - used)
    if (used >= columns) break
    used += widthOf(cut)
    line += isSelected ? cut : paint(cut, look)
  }
  return isSelected ? paint(`${line}${' '.repeat(Math.max(0, columns - used))}`, 'reverse') : line.trimEnd()
}

/** The last line: what is being typed, what became of something, or the keys. */
export function footLine(
  { entry, note }: Pick<Chosen<unknown>, 'entry' | 'note'>,
  keys: string,
  columns: number,
  paint: Paint,
): string {
  if (entry !== undefined) return entryLine(entry.label, entry.line, columns, paint)
  return note === undefined ? paint(cutTo(keys, columns), 'dim') : cutTo(safe(note), columns)
}

/** The cursor of the terminal is hidden: the letter under ours is reversed. */
function entryLine(label: string, line: Line, columns: number, paint: Paint): string {
  const shown = cutTo(safe(label), Math.floor(columns / 2))
  const { text, cursor } = windowOf(line, columns - widthOf(shown) - 1)
  let [before, width] = ['', 0]
  for (const letter of text) {
    if (width >= cursor) break
    before += letter
    width += widthOf(letter)
  }
  const [under = ' ', ...after] = [...text.slice(before.length)]
  return `${shown}${before}${paint(under, 'reverse')}${after.join('')}`
}

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

export const age = (since: string, now: number): string => relativeTime(since, now).replace(' ago', '')
