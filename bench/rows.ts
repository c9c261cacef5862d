/** The table: what was measured, its floor of the same run, and whether the budget holds. */

export interface Row {
  readonly name: string
  readonly unit: string
  readonly ours: number
  readonly p99?: number
  /** What the floor is. */
  readonly floor?: string
  readonly floorValue?: number
  /** Ours against the floor, paired round by round; for times the floor's share is below 1 too. */
  readonly ratio?: number
  readonly budget: string
  /** Undefined: reported, without a budget. */
  readonly pass?: boolean
  readonly note?: string
}

/** A short form measures something smaller, so its verdicts on size-bound budgets mean less. */
export interface Report {
  readonly machine: Machine
  readonly quick: boolean
  readonly seconds: number
  readonly rows: readonly Row[]
}

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  readonly node: string
  readonly date: string
  readonly loadAverage: number
}

const HEAD = ['Measure', 'Ours', 'p99', 'Floor', 'Floor is', 'Ratio', 'Budget', '']

export function toText(rows: readonly Row[]): string {
  const table = [HEAD, ...rows.map(cellsOf)]
  const widths = HEAD.map((_, column) => Math.max(...table.map((cells) => cells[column]?.length ?? 0)))
  return table
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function toMarkdown(rows: readonly Row[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(HEAD), line(HEAD.map(() => '---')), ...rows.map((row) => line(cellsOf(row)))].join('\n')
}

export const notesOf = (rows: readonly Row[]): string =>
  rows.flatMap(({ name, note }) => (note === undefined ? [] : [`- ${name}: ${note}`])).join('\n')

function cellsOf({ name, unit, ours, p99, floor, floorValue, ratio, budget, pass }: Row): string[] {
  return [
    name,
    `${format(ours)} ${unit}`,
    p99 === undefined ? '' : `${format(p99)} ms`,
    floorValue === undefined ? '' : `${format(floorValue)} ${unit}`,
    floor ?? '',
    ratio === undefined ? '' : ratio.toFixed(2),
    budget,
    pass === undefined ? '' : pass ? 'pass' : 'FAIL',
  ]
}

function format(value: number): string {
  if (!Number.isFinite(value)) return '?'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)
}
