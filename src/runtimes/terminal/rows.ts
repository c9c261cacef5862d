/** The rows of a terminal with what of their look says something: a cursor may be shown by colours alone. */
import type xterm from '@xterm/headless'

/** Cells beside each other that look the same and are not plain. */
export interface Run {
  readonly from: number
  readonly to: number
  readonly inverse: boolean
  /** 0: the terminal's own. */
  readonly background: number
  /** Drawn faint or grey: a hint, not something that was typed. */
  readonly faint: boolean
}

export interface Row {
  /** Without blanks at its end. */
  readonly text: string
  /** In order; what is in none of them is plain. */
  readonly runs: readonly Run[]
  /** Where the cursor of the terminal stands, in its row. */
  readonly cursor?: number
  /** The program shows it there; a program that hides it may leave it anywhere. */
  readonly cursorShown?: true
}

export const plainRow = (text: string): Row => ({ text: text.trimEnd(), runs: [] })

/** What is on the screen now, without what has scrolled away and without empty rows at the end. */
export function rowsOf(buffer: xterm.IBuffer, count: number, cursorVisible = false): Row[] {
  const rows: Row[] = []
  const cell = buffer.getNullCell()
  const cursorY = buffer.baseY + buffer.cursorY
  const cursor = { cursor: buffer.cursorX, ...(cursorVisible && ({ cursorShown: true } as const)) }
  for (let y = buffer.baseY + count - 1; y >= buffer.baseY; y--) {
    const line = buffer.getLine(y)
    const row = line === undefined ? plainRow('') : readRow(line, cell)
    if (rows.length > 0 || row.text !== '') rows.push(y === cursorY ? { ...row, ...cursor } : row)
  }
  return rows.reverse()
}

function readRow(line: xterm.IBufferLine, cell: xterm.IBufferCell): Row {
  const runs: Run[] = []
  let text = ''
  for (let x = 0; x < line.length; x++) {
    line.getCell(x, cell)
    if (cell.getWidth() === 0) continue
    const from = text.length
    text += cell.getChars() || ' '
    if (cell.isAttributeDefault()) continue
    const run = {
      from,
      to: text.length,
      inverse: cell.isInverse() !== 0,
      background: backgroundOf(cell),
      faint: isFaint(cell),
    }
    const last = runs.at(-1)
    if (last?.to === from && looksLike(last, run)) runs[runs.length - 1] = { ...last, to: run.to }
    else if (run.inverse || run.background !== 0 || run.faint) runs.push(run)
  }
  return { text: text.trimEnd(), runs }
}

const looksLike = (one: Run, other: Run): boolean =>
  one.inverse === other.inverse && one.background === other.background && one.faint === other.faint

const RGB = 1 << 24
const backgroundOf = (cell: xterm.IBufferCell): number =>
  cell.isBgDefault() ? 0 : 1 + cell.getBgColor() + (cell.isBgRGB() ? RGB : 0)

const BRIGHT_BLACK = 8
const GREYS = { from: 232, to: 250 }

function isFaint(cell: xterm.IBufferCell): boolean {
  if (cell.isDim() !== 0) return true
  const color = cell.getFgColor()
  if (cell.isFgPalette()) return color === BRIGHT_BLACK || (color >= GREYS.from && color <= GREYS.to)
  return cell.isFgRGB() && isGrey(color >> 16, (color >> 8) & 0xff, color & 0xff)
}

const isGrey = (red: number, green: number, blue: number): boolean =>
  Math.max(red, green, blue) - Math.min(red, green, blue) <= 32 && Math.max(red, green, blue) <= 176

/** The text with blanks for what is faint. */
export function brightText({ text, runs }: Row): string {
  let bright = text
  for (const { from, to, faint } of runs)
    if (faint)
      bright = bright.slice(0, from) + ' '.repeat(Math.max(0, Math.min(to, text.length) - from)) + bright.slice(to)
  return bright
}

/** What the cells from `from` to `to` look like, as one word, whatever their letters do; `''` where they are plain or differ. */
export function paintOf({ runs }: Row, from: number, to: number): string {
  let at = from
  let paint: string | undefined
  for (const run of runs) {
    if (run.to <= at || run.from >= to) continue
    if (run.from > at || (paint !== undefined && paint !== paintOfRun(run))) return ''
    paint = paintOfRun(run)
    at = run.to
  }
  return at >= to ? (paint ?? '') : ''
}

/** What most of a row looks like that is painted from side to side; `''`: it is not. */
export function groundOf({ text, runs }: Row): string {
  const widths = new Map<string, number>()
  for (const run of runs) widths.set(paintOfRun(run), (widths.get(paintOfRun(run)) ?? 0) + run.to - run.from)
  const painted = runs.reduce((sum, { from, to }) => sum + to - from, 0)
  if (painted < text.length + MARGIN) return ''
  return [...widths].reduce((widest, one) => (one[1] > widest[1] ? one : widest), ['', 0] as const)[0]
}

const MARGIN = 2

const paintOfRun = ({ inverse, background }: Run): string =>
  inverse || background !== 0 ? `${inverse ? 'inverse' : ''} ${background}` : ''
