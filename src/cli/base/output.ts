/**
 * stdout: data and nothing else (sheet 08 §4.4). A table for a terminal, the same columns separated by tabs for a pipe,
 * the API's own JSON, one object a line, or bare names.
 */
import { chosenColumns, type KnownFields, sortItems } from '../print/arrange.ts'
import { type Cell, type Column, columnName } from '../print/columns.ts'
import { jsonPathRender, type Render, templateRender, yamlRender } from '../print/expressions.ts'
import type { Format, OutputFormat } from '../print/format.ts'
import { layOut, rowCells, unfolded } from '../print/table.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { widthOf } from '../print/text-width.ts'
import type { View } from '../print/view.ts'
import { printable } from './failure.ts'
import type { Sink } from './io.ts'

export type { Cell, Column } from '../print/columns.ts'

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

/** Text that is read as it is, such as a prompt or a file; programs get it as JSON. */
export interface TextOutput {
  readonly text: string | Uint8Array
  readonly json: string
}

export interface Style {
  readonly format: Format
  /** As `--sort` and `--columns` say it. */
  readonly sort?: string | undefined
  readonly columns?: string | undefined
  readonly color: boolean
  readonly now: () => number
  /** Fields that the things of this command can have. */
  readonly fields: () => Promise<KnownFields>
}

export class Printer {
  readonly #sink: Sink
  readonly #style: Style
  #render: Render | undefined

  constructor(sink: Sink, style: Style) {
    this.#sink = sink
    this.#style = style
  }

  get format(): OutputFormat {
    return this.#style.format.kind
  }

  /** A person reads it, and not a program. */
  get isForPeople(): boolean {
    return this.format === 'table' || this.format === 'wide'
  }

  /** Before a command does anything: an expression that is wrong must not be found out afterwards. */
  async prepare(): Promise<void> {
    const { kind, expression } = this.#style.format
    if (kind === 'yaml') this.#render = await yamlRender()
    if (kind === 'jsonpath') this.#render = await jsonPathRender(expression)
    if (kind === 'template') this.#render = await templateRender(expression)
  }

  get color(): boolean {
    return this.#style.color
  }

  /** The same way to print, to somewhere else. */
  to(sink: Sink): Printer {
    return new Printer(sink, this.#style)
  }

  /** Data as it is. */
  async raw(text: string | Uint8Array): Promise<void> {
    if (text.length > 0) await this.#sink.write(text)
  }

  /** Lines with colours that others chose. */
  async painted(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.#sink.write(`${lines.join('\n')}\n`, 'painted')
  }

  async lines(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.#sink.write(`${lines.join('\n')}\n`)
  }

  async text({ text, json }: TextOutput): Promise<void> {
    if (this.isForPeople || this.format === 'name') return this.raw(text)
    if (this.#render !== undefined) return this.#rendered([JSON.parse(json)])
    await this.lines([this.format === 'json' ? json.trimEnd() : oneLine(json.trimEnd())])
  }

  /** Of a stream: a JSON object a line, whichever way JSON was asked for, or what the format makes of each. */
  async records(objects: readonly string[]): Promise<void> {
    if (this.#render === undefined) return this.lines(objects.map(oneLine))
    for (const json of objects) {
      const start = this.format === 'yaml' ? '---\n' : ''
      await this.#write(`${start}${this.#render(JSON.parse(json))}`)
    }
  }

  async list<T>(list: ListOutput<T>): Promise<void> {
    const { columns, name } = list
    const items = await this.#sorted(list)
    const json = () => (items === list.items ? list.json : withItems(list.json, items))
    if (this.format === 'json') return this.lines([json().trimEnd()])
    if (this.format === 'jsonl') return this.lines(items.map((item) => jsonLine(item)))
    if (this.format === 'name') return this.lines(items.map((item) => printable(name(item))))
    if (this.#render !== undefined) return this.#rendered(this.format === 'template' ? items : [JSON.parse(json())])
    const shown = await this.#shown(items, columns)
    if (!this.#sink.isTerminal)
      return this.lines(items.map((item) => shown.map((column) => tabCell(column.value(item))).join('\t')))
    if (items.length > 0) await this.lines(this.#table(items, shown))
  }

  /** One object: a line per field. */
  async item<T>({ item, columns, name, json }: ItemOutput<T>): Promise<void> {
    if (this.format === 'json') return this.lines([json.trimEnd()])
    if (this.format === 'jsonl') return this.lines([jsonLine(item)])
    if (this.format === 'name') return this.lines([printable(name(item))])
    if (this.#render !== undefined) return this.#rendered([JSON.parse(json)])
    const shown = (await this.#shown([item], columns)).filter((column) => column.value(item) !== undefined)
    if (!this.#sink.isTerminal)
      return this.lines(shown.map((column) => `${columnName(column)}\t${tabCell(column.value(item))}`))
    const width = Math.max(0, ...shown.map((column) => column.header.length))
    await this.lines(
      shown.map((column) => `${this.#dim(`${columnName(column)}:`.padEnd(width + 2))}${this.#cell(column, item)}`),
    )
  }

  /** Before something is changed: what cannot be shown must not be found out afterwards. */
  async require<T>({ columns }: View<T>): Promise<void> {
    const { columns: chosen, sort, fields } = this.#style
    if (chosen === undefined && sort === undefined) return
    const nothing = { items: [], columns, known: await fields() }
    if (chosen !== undefined) chosenColumns(chosen, nothing)
    if (sort !== undefined) sortItems(sort, nothing)
  }

  async #rendered(all: readonly unknown[]): Promise<void> {
    for (const one of all) await this.#write(this.#render?.(one) ?? '')
  }

  /** With its end of line, which templates and paths seldom have. */
  async #write(text: string): Promise<void> {
    await this.raw(text === '' || text.endsWith('\n') ? text : `${text}\n`)
  }

  async #sorted<T>({ items, columns }: ListOutput<T>): Promise<readonly T[]> {
    const { sort, fields } = this.#style
    return sort === undefined ? items : sortItems(sort, { items, columns, known: await fields() })
  }

  async #shown<T>(items: readonly T[], columns: readonly Column<T>[]): Promise<readonly Column<T>[]> {
    const { columns: chosen, fields } = this.#style
    if (chosen !== undefined) return chosenColumns(chosen, { items, columns, known: await fields() })
    return columns.filter((column) => this.format === 'wide' || column.wide !== true)
  }

  #table<T>(items: readonly T[], columns: readonly Column<T>[]): string[] {
    const headers = columns.map(({ header }) => header)
    const rows = items.map((item) => columns.map((column) => this.#plainCell(column, item)))
    const asked = this.#style.columns !== undefined
    const layout = layOut({ columns, rows, available: this.#sink.columns, asked })
    const names = rowCells(headers, layout).join('  ').trimEnd()
    const isMore = layout.left > 0 && widthOf(names) + 2 <= this.#sink.columns
    const header = isMore ? `${names} …` : names
    const lines = rows.flatMap((row) => unfolded(row, columns, layout))
    const body = lines.map((row) =>
      rowCells(row, layout)
        .map((cell, index) => {
          const at = layout.shown[index] ?? 0
          return columns[at]?.kind === 'state' ? this.paint(row[at] ?? '', cell) : cell
        })
        .join('  ')
        .trimEnd(),
    )
    return [this.#dim(header), ...body]
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

/** The same body with its items in another order. */
function withItems(json: string, items: readonly unknown[]): string {
  const body: unknown = JSON.parse(json)
  return JSON.stringify(Array.isArray(body) ? items : { ...Object(body), items })
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

/** Code of the colour of a state. */
export const stateColor = (state: string): number | undefined => STATE_COLORS[state]

const yesNo = (value: Exclude<Cell, undefined>): string =>
  typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)

/** A value between two tabs: nothing in it can be taken for a separator, or for a command to a terminal. */
function tabCell(value: Cell): string {
  if (value === undefined) return ''
  return printable(String(value).replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n'))
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
