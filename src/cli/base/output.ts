/**
 * stdout: data and nothing else (sheet 08 §4.4). A table for a terminal, the same columns separated by tabs for a pipe,
 * the API's own JSON, one object a line, or bare names.
 */
import type { OutputFormat } from './command.ts'
import { printable } from './failure.ts'
import type { Sink } from './io.ts'
import { forTerminal } from './terminal-text.ts'
import { cutTo, padTo, widthOf } from './text-width.ts'

export type Cell = string | number | boolean | undefined

export interface Column<T> {
  readonly header: string
  readonly value: (item: T) => Cell
  /** `time`: relative in a terminal, absolute elsewhere. `state`: coloured. */
  readonly kind?: 'time' | 'state'
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

export interface ListOutput<T> {
  readonly items: readonly T[]
  readonly columns: readonly Column<T>[]
  readonly name: (item: T) => string
  /** What `-o json` prints. */
  readonly json: string
}

export interface ItemOutput<T> {
  readonly item: T
  readonly columns: readonly Column<T>[]
  readonly name: (item: T) => string
  readonly json: string
}

interface Style {
  readonly format: OutputFormat
  readonly color: boolean
  readonly now: () => number
}

export class Printer {
  readonly #sink: Sink
  readonly #style: Style

  constructor(sink: Sink, style: Style) {
    this.#sink = sink
    this.#style = style
  }

  get format(): OutputFormat {
    return this.#style.format
  }

  /** The same way to print, to somewhere else. */
  to(sink: Sink): Printer {
    return new Printer(sink, this.#style)
  }

  /** Data as it is. */
  async raw(text: string | Uint8Array): Promise<void> {
    if (text.length > 0) await this.#sink.write(text)
  }

  async lines(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.#sink.write(`${lines.join('\n')}\n`)
  }

  async list<T>({ items, columns, name, json }: ListOutput<T>): Promise<void> {
    const { format } = this.#style
    if (format === 'json') return this.lines([json.trimEnd()])
    if (format === 'jsonl') return this.lines(items.map((item) => jsonLine(item)))
    if (format === 'name') return this.lines(items.map((item) => printable(name(item))))
    const shown = columns.filter((column) => format === 'wide' || column.wide !== true)
    if (!this.#sink.isTerminal)
      return this.lines(items.map((item) => shown.map((column) => tabCell(column.value(item))).join('\t')))
    if (items.length > 0) await this.lines(this.#table(items, shown))
  }

  /** One object: a line per field. */
  async item<T>({ item, columns, name, json }: ItemOutput<T>): Promise<void> {
    const { format } = this.#style
    if (format === 'json') return this.lines([json.trimEnd()])
    if (format === 'jsonl') return this.lines([jsonLine(item)])
    if (format === 'name') return this.lines([printable(name(item))])
    const shown = columns.filter(
      (column) => (format === 'wide' || column.wide !== true) && column.value(item) !== undefined,
    )
    if (!this.#sink.isTerminal)
      return this.lines(shown.map((column) => `${fieldName(column)}\t${tabCell(column.value(item))}`))
    const width = Math.max(0, ...shown.map((column) => column.header.length))
    await this.lines(
      shown.map((column) => `${this.#dim(`${fieldName(column)}:`.padEnd(width + 2))}${this.#cell(column, item)}`),
    )
  }

  #table<T>(items: readonly T[], columns: readonly Column<T>[]): string[] {
    const rows = items.map((item) => columns.map((column) => this.#plainCell(column, item)))
    const widths = fit(
      columns.map((column, index) => Math.max(column.header.length, ...rows.map((row) => widthOf(row[index] ?? '')))),
      this.#sink.columns,
    )
    const header = columns
      .map((column, index) => pad(column.header, widths[index], index === columns.length - 1))
      .join('  ')
    const body = rows.map((row) =>
      row
        .map((text, index) => {
          const padded = pad(text, widths[index], index === row.length - 1)
          return columns[index]?.kind === 'state' ? this.paint(text, padded) : padded
        })
        .join('  ')
        .trimEnd(),
    )
    return [this.#dim(header.trimEnd()), ...body]
  }

  #plainCell<T>(column: Column<T>, item: T): string {
    const value = column.value(item)
    if (value === undefined) return ''
    const text = column.kind === 'time' ? relativeTime(String(value), this.#style.now()) : yesNo(value)
    return forTerminal(printable(text)).replaceAll(/[\t\n]+/g, ' ')
  }

  #cell<T>(column: Column<T>, item: T): string {
    const text = this.#plainCell(column, item)
    if (column.kind === 'time') return `${printable(String(column.value(item)))} (${text})`
    return column.kind === 'state' ? this.paint(text, text) : text
  }

  #dim(text: string): string {
    return this.#style.color ? `\u001b[2m${text}\u001b[22m` : text
  }

  /** Text in the colour of a state. */
  paint(state: string, text: string): string {
    const code = STATE_COLORS[state]
    return this.#style.color && code !== undefined ? `\u001b[${code}m${text}\u001b[39m` : text
  }
}

const [GREEN, YELLOW, RED] = [32, 33, 31]
const STATE_COLORS: Readonly<Record<string, number>> = {
  running: GREEN,
  active: GREEN,
  ok: GREEN,
  succeeded: GREEN,
  configured: GREEN,
  yes: GREEN,
  init_failed: RED,
  failed: RED,
  'failed-create': RED,
  quarantined: RED,
  degraded: RED,
  unreachable: RED,
  fenced: RED,
  invalid_configuration: RED,
  probe_error: RED,
  needs_auth: YELLOW,
  not_installed: YELLOW,
  stopping: YELLOW,
  queued: YELLOW,
  'start-pending': YELLOW,
  creating: YELLOW,
  draining: YELLOW,
  starting_agents: YELLOW,
  accepted: YELLOW,
  in_progress: YELLOW,
  'open, blocked': RED,
  blocked: RED,
  closed: GREEN,
}

const fieldName = (column: { readonly header: string }): string => column.header.toLowerCase()
const yesNo = (value: Exclude<Cell, undefined>): string =>
  typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)

/** A value between two tabs: nothing in it can be taken for a separator, or for a command to a terminal. */
function tabCell(value: Cell): string {
  if (value === undefined) return ''
  return printable(String(value).replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n'))
}

const NARROWEST = 8

/**
 * Cuts the widest columns, all to the same width, until the row fits; never the first: it is the name by which people go
 * on. What does not divide is for the columns that were the widest.
 */
function fit([first = 0, ...widths]: readonly number[], available: number): readonly number[] {
  const room = available - first - 2 * widths.length
  const total = (widest: number) => widths.reduce((sum, width) => sum + Math.min(width, widest), 0)
  let widest = Math.max(NARROWEST, ...widths)
  while (widest > NARROWEST && total(widest) > room) widest -= 1
  const left = Math.max(0, room - total(widest))
  const fullest = Math.max(...widths)
  return [first, ...widths.map((width) => Math.min(width, widest + (width === fullest ? left : 0)))]
}

function pad(text: string, width = 0, isLast = false): string {
  const cut = cutTo(text, width)
  return isLast ? cut : padTo(cut, width)
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const

/** `3m ago`, `in 5s`, `now`; text that is no time stays. */
export function relativeTime(text: string, now: number): string {
  const at = Date.parse(text)
  if (Number.isNaN(at)) return text
  const distance = Math.abs(now - at)
  const unit = UNITS.find(([ms]) => distance >= ms)
  if (unit === undefined) return 'now'
  const amount = `${Math.floor(distance / unit[0])}${unit[1]}`
  return at <= now ? `${amount} ago` : `in ${amount}`
}

/** One JSON object on one line, also for readers that split at U+2028 and its kin. */
export const jsonLine = (value: unknown): string => oneLine(JSON.stringify(value))

/** JSON text with every line separator escaped; two spellings of the same object. */
export function oneLine(json: string): string {
  if (json.includes('\n') || json.includes('\r')) return oneLine(JSON.stringify(JSON.parse(json)))
  return json.replaceAll(
    /[\u0085\u2028\u2029]/g,
    (separator) => `\\u${separator.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
