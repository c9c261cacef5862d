/** What a table shows of a thing. */

export type Cell = string | number | boolean | undefined

export interface Column<T> {
  readonly header: string
  readonly value: (item: T) => Cell
  /** `time`: relative in a terminal, absolute elsewhere. `state`: coloured. `prose`: goes on below itself, and is not cut. */
  readonly kind?: 'time' | 'state' | 'prose'
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

/** As `--columns` and `--sort` name it. */
export const columnName = ({ header }: Pick<Column<never>, 'header'>): string =>
  header.toLowerCase().replaceAll(' ', '_')

/** Any value of JSON in a cell: a list of words as such, what is deeper as JSON. */
export function cellOf(value: unknown): Cell {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  const words = Array.isArray(value) && value.every((one) => typeof one !== 'object')
  return words ? value.join(', ') : JSON.stringify(value)
}

/** `city.toml:12`; nothing where no file says it. */
export const placeOf = ({ file, line = 1 }: { readonly file?: string; readonly line?: number }): Cell =>
  file === undefined ? undefined : `${file}:${line}`

/** Nothing where there is none. */
export const anyOf = (names: readonly string[]): Cell => (names.length === 0 ? undefined : names.join(', '))
