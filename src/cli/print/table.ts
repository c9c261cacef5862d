/** Rows of text under headers, in the width that there is. Pure. */
import type { Column } from './columns.ts'
import { cutTo, padTo, widthOf, wrapWords } from './text-width.ts'

/** Between two columns. */
const GAP = 2
const NARROWEST = 8
/** So much of a row has to be seen. */
const FEWEST_COLUMNS = 2

export interface TableText {
  readonly columns: readonly Pick<Column<never>, 'header' | 'kind'>[]
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
 * first: it is the name by which people go on. Where that is not enough, some are left out (`dispensable`). Those that
 * were asked for all stay.
 */
export function layOut({ columns, rows, available, asked }: TableText): TableLayout {
  const all = columns.map(({ header, kind }, at) => {
    const fullest = Math.max(0, ...rows.map((row) => widthOf(row[at] ?? '')))
    return { at, kind, fullest, width: Math.max(widthOf(header), fullest) }
  })
  let kept = all.filter(({ at, fullest }) => asked || at === 0 || fullest > 0)
  const filled = kept.length
  while (!asked && kept.length > FEWEST_COLUMNS && narrowest(kept.map(({ width }) => width)) > available) {
    const least = dispensable(kept)
    kept = kept.filter((column) => column !== least)
  }
  return {
    shown: kept.map(({ at }) => at),
    widths: fit(
      kept.map(({ width }) => width),
      available,
    ),
    left: filled - kept.length,
  }
}

interface Measured {
  readonly at: number
  readonly kind?: Column<never>['kind']
  readonly fullest: number
  readonly width: number
}

/** Times go first, then what stands last; the fullest, which is what a row says, goes late, states go last. */
function dispensable([, ...rest]: readonly Measured[]): Measured | undefined {
  const said = rest.reduce<Measured | undefined>(
    (a, b) => (a !== undefined && a.fullest >= b.fullest ? a : b),
    undefined,
  )
  return (
    rest.findLast(({ kind }) => kind === 'time') ??
    rest.findLast((column) => column.kind !== 'state' && column !== said) ??
    rest.findLast(({ kind }) => kind !== 'state') ??
    rest.at(-1)
  )
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

/** A row as the rows that it takes: of prose what fits into the width, and the rest below it. */
export function unfolded(
  row: readonly string[],
  columns: TableText['columns'],
  { shown, widths }: TableLayout,
): readonly (readonly string[])[] {
  const parts = row.map((cell, at) => {
    const index = shown.indexOf(at)
    return index >= 0 && columns[at]?.kind === 'prose' ? wrapWords(cell, widths[index] ?? 0) : [cell]
  })
  const height = Math.max(1, ...parts.map(({ length }) => length))
  return Array.from({ length: height }, (_, line) => parts.map((part) => part[line] ?? ''))
}
