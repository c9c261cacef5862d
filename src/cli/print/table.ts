/** Rows of text under headers, in the width that there is. Pure. */
import { cutTo, padTo, widthOf } from './text-width.ts'

/** Between two columns. */
const GAP = 2
const NARROWEST = 8
/** So much of a row has to be seen, or the last columns are left out. */
const FEWEST_COLUMNS = 2

export interface TableText {
  readonly headers: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** In columns of the terminal. */
  readonly available: number
  /** Somebody named these very columns. */
  readonly asked: boolean
}

interface TableLayout {
  /** Of the columns that are shown, by their place. */
  readonly shown: readonly number[]
  /** Of each that is shown. */
  readonly widths: readonly number[]
  /** Columns that did not fit. */
  readonly left: number
}

/**
 * Columns that hold nothing are not there. The widest are cut, all to the same width, until a row fits, but never the
 * first: it is the name by which people go on. Where that is not enough, the last ones are left out, but never the widest,
 * which is what a row says. Those that were asked for all stay.
 */
export function layOut({ headers, rows, available, asked }: TableText): TableLayout {
  const all = headers.map((header, at) => {
    const fullest = Math.max(0, ...rows.map((row) => widthOf(row[at] ?? '')))
    return { at, fullest, width: Math.max(widthOf(header), fullest) }
  })
  let kept = all.filter(({ at, fullest }) => asked || at === 0 || fullest > 0)
  const filled = kept.length
  const [first] = kept
  const said = kept.slice(1).reduce((a, b) => (b.width > a.width ? b : a), { at: -1, fullest: 0, width: 0 })
  while (!asked && kept.length > FEWEST_COLUMNS && narrowest(kept.map(({ width }) => width)) > available)
    kept = kept.toSpliced(
      kept.findLastIndex((column) => column !== first && column !== said),
      1,
    )
  return {
    shown: kept.map(({ at }) => at),
    widths: fit(
      kept.map(({ width }) => width),
      available,
    ),
    left: filled - kept.length,
  }
}

const narrowest = ([first = 0, ...widths]: readonly number[]): number =>
  first + widths.reduce((sum, width) => sum + GAP + Math.min(width, NARROWEST), 0)

/** What does not divide is for the columns that were the widest. */
function fit([first = 0, ...widths]: readonly number[], available: number): readonly number[] {
  const room = available - first - GAP * widths.length
  const total = (widest: number) => widths.reduce((sum, width) => sum + Math.min(width, widest), 0)
  let widest = Math.max(NARROWEST, ...widths)
  while (widest > NARROWEST && total(widest) > room) widest -= 1
  const rest = Math.max(0, room - total(widest))
  const fullest = Math.max(...widths)
  return [first, ...widths.map((width) => Math.min(width, widest + (width === fullest ? rest : 0)))]
}

/** A row's cells, each as wide as its column. */
export const rowCells = (row: readonly string[], { shown, widths }: TableLayout): readonly string[] =>
  shown.map((at, index) => {
    const cut = cutTo(row[at] ?? '', widths[index] ?? 0)
    return index === shown.length - 1 ? cut : padTo(cut, widths[index] ?? 0)
  })
