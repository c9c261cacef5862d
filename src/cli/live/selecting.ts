/** One row of a list is selected, whatever comes and goes (pure). */

/** Key of the row, and its place: where a row is gone, the one in its place is selected. */
export interface Selected {
  readonly key: string
  readonly at: number
}

interface Keyed {
  readonly key: string
}

const PAGE = 10
/** How far keys go. */
export const MOVES: Readonly<Record<string, number>> = {
  up: -1,
  k: -1,
  down: 1,
  j: 1,
  'page-up': -PAGE,
  'page-down': PAGE,
  home: Number.NEGATIVE_INFINITY,
  g: Number.NEGATIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
  G: Number.POSITIVE_INFINITY,
}

export function placeOf(rows: readonly Keyed[], wanted: number): Selected {
  const at = Math.max(0, Math.min(wanted, rows.length - 1))
  return { key: rows[at]?.key ?? '', at }
}

/** Where the selection is; -1 where there are no rows. */
export function selectedAt(rows: readonly Keyed[], { key, at }: Selected): number {
  const found = rows.findIndex((row) => row.key === key)
  return found >= 0 ? found : Math.min(Math.max(at, 0), rows.length - 1)
}

/** The first of the rows that are shown where there is room for `space`: the selected one stands in the middle. */
export const firstShown = (rows: readonly Keyed[], at: number, space: number): number =>
  Math.max(0, Math.min(at - Math.floor(space / 2), rows.length - space))
