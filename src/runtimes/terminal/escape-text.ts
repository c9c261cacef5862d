/**
 * A screen as escape text: written to a terminal of the same size it shows what the screen shows, with the modes that
 * matter to who sits there. For the terminals of people, and for rows with their colours.
 *
 * Not `@xterm/addon-serialize`: it does not know whether the cursor is visible, with which colours the program goes on
 * writing, nor which rows it scrolls.
 */
import type { IBuffer, IBufferCell, IBufferLine, IModes } from '@xterm/headless'

const ESC = '\u001b'
const CSI = `${ESC}[`

/** All of a screen that a terminal can be told. */
export interface Picture {
  readonly columns: number
  readonly rows: number
  readonly normal: IBuffer
  /** What is shown: `normal`, or the screen that a program has of its own. */
  readonly active: IBuffer
  readonly modes: IModes
  readonly cursorVisible: boolean
  readonly title: string
  /** Escape text for what no buffer tells: which rows scroll, and with which colours the program goes on. */
  readonly region: string
  readonly pen: string
  /** The same of the screen that a program has left for one of its own: it goes on with them when it comes back. */
  readonly left: { readonly region: string; readonly pen: string }
}

/** Ends whatever sequence was cut, and brings a terminal to a state that is known: no modes, no colours, nothing shown. */
const CLEAN = `\u0018${ESC}\\${CSI}?1049l${CSI}!p${CSI}?7h${CSI}?25h${CSI}?2004l${CSI}?1l${CSI}?6l${CSI}4l${ESC}>${CSI}r${CSI}m${CSI}H${CSI}2J`

/** The rows that are shown. */
export const plainRows = ({ active, rows }: Picture): readonly string[] =>
  withoutEmptyEnd(
    Array.from({ length: rows }, (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? ''),
  )

/** The same, with their colours. */
export const colouredRows = ({ active, rows, columns }: Picture): readonly string[] =>
  withoutEmptyEnd(Array.from({ length: rows }, (_, row) => rowText(active.getLine(active.baseY + row), columns)))

export function escapeText(picture: Picture): string {
  const { columns, normal, active, modes, cursorVisible, title, region, pen, left } = picture
  const own = active !== normal
  return [
    CLEAN,
    title === '' ? '' : `${ESC}]2;${title.replaceAll(/\p{Cc}/gu, '')}\u0007`,
    painted(normal, picture),
    // The program comes back to this place, and with these colours, when it leaves its own screen.
    own ? `${left.region}${placed(normal, columns)}${left.pen}${CSI}?1049h${CSI}m${CSI}H${CSI}2J` : '',
    own ? painted(active, picture) : '',
    region,
    placed(active, columns),
    modesText(modes),
    pen,
    cursorVisible ? '' : `${CSI}?25l`,
  ].join('')
}

/** Every row where it belongs, whatever the terminal takes its letters for: what does not fit goes to no other row. */
function painted(buffer: IBuffer, { rows, columns }: Picture): string {
  const written: string[] = []
  for (let row = 0; row < rows; row++) {
    const text = rowText(buffer.getLine(buffer.baseY + row), columns)
    if (text !== '') written.push(`${CSI}${row + 1};1H${text}`)
  }
  return unwrapped(written.join(''))
}

/** Behind the last column the cursor stands on it until the next letter: it is there only once that column is written. */
function placed(buffer: IBuffer, columns: number): string {
  const { cursorX, cursorY, baseY } = buffer
  if (cursorX < columns) return `${CSI}${cursorY + 1};${cursorX + 1}H`
  const line = buffer.getLine(baseY + cursorY)
  const last = columns - 1
  const from = line?.getCell(last - 1)?.getWidth() === 2 ? last - 1 : last
  const to = `${CSI}${cursorY + 1};${from + 1}H`
  if (!isHalved(line, last)) return `${to}${letterText(line?.getCell(from))}`
  return `${to}${unwrapped(`${letterText(line?.getCell(from))}${letterText(line?.getCell(last))}`)}`
}

const unwrapped = (text: string): string => (text === '' ? '' : `${CSI}?7l${text}${CSI}?7h`)

/**
 * True where a letter stands on the second half of a wide one. A program that writes on at the edge without wrapping leaves
 * that, and it comes again only by the same: a letter that is put there takes the other half away.
 */
const isHalved = (line: IBufferLine | undefined, column: number): boolean =>
  column > 0 && line?.getCell(column - 1)?.getWidth() === 2 && line.getCell(column)?.getWidth() !== 0

function letterText(cell: IBufferCell | undefined): string {
  const style = cell === undefined ? '' : penOf(cell)
  return `${CSI}0;${style}m${cell?.getChars() || ' '}${CSI}m`
}

/** Mouse and focus stay off: what they report would be typed by nobody. */
function modesText(modes: IModes): string {
  const on = [
    modes.applicationCursorKeysMode ? `${CSI}?1h` : '',
    modes.applicationKeypadMode ? `${ESC}=` : '',
    modes.bracketedPasteMode ? `${CSI}?2004h` : '',
    modes.insertMode ? `${CSI}4h` : '',
    modes.wraparoundMode ? '' : `${CSI}?7l`,
  ]
  return on.join('')
}

/** One row, from its first column; it ends without colours. */
function rowText(line: IBufferLine | undefined, columns: number): string {
  if (line === undefined) return ''
  let text = ''
  let pen = ''
  let blank = ''
  for (let column = 0; column < Math.min(columns, line.length); column++) {
    const cell = line.getCell(column)
    if (cell === undefined || cell.getWidth() === 0) continue
    const style = penOf(cell)
    const letters = cell.getChars()
    if (style === '' && (letters === '' || letters === ' ') && !isHalved(line, column)) {
      blank += ' '
      continue
    }
    if (blank !== '') {
      text += pen === '' ? blank : `${CSI}m${blank}`
      if (pen !== '') pen = ''
      blank = ''
    }
    if (style !== pen) text += `${CSI}${style === '' ? '' : `0;${style}`}m`
    pen = style
    text += letters === '' ? ' ' : letters
  }
  return pen === '' ? text : `${text}${CSI}m`
}

const FLAGS = [
  ['isBold', '1'],
  ['isDim', '2'],
  ['isItalic', '3'],
  ['isUnderline', '4'],
  ['isBlink', '5'],
  ['isInverse', '7'],
  ['isInvisible', '8'],
  ['isStrikethrough', '9'],
  ['isOverline', '53'],
] as const

/** Parameters of SGR; empty: as a terminal writes by itself. */
function penOf(cell: IBufferCell): string {
  if (cell.isAttributeDefault()) return ''
  const parts: string[] = FLAGS.flatMap(([is, parameter]) => (cell[is]() === 0 ? [] : [parameter]))
  const front = colour(cell.getFgColor(), cell.isFgRGB(), cell.isFgPalette(), 30)
  const back = colour(cell.getBgColor(), cell.isBgRGB(), cell.isBgPalette(), 40)
  return [...parts, ...front, ...back].join(';')
}

function colour(value: number, isRgb: boolean, isPalette: boolean, base: 30 | 40): readonly string[] {
  if (isRgb) return [`${base + 8};2;${(value >> 16) & 255};${(value >> 8) & 255};${value & 255}`]
  if (!isPalette) return []
  if (value < 8) return [String(base + value)]
  return value < 16 ? [String(base + 60 + value - 8)] : [`${base + 8};5;${value}`]
}

function withoutEmptyEnd(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1)
}
