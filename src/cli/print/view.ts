/** Views: what is shown of things of a kind, as the names of their fields. */
import { type Cell, type Column, cellOf } from './columns.ts'
import { TIME_FIELDS } from './time-fields.ts'

/** How things of a kind are shown. */
export interface View<T> {
  readonly columns: readonly Column<T>[]
  readonly name: (item: T) => string
}

type Names<T> = keyof { [K in keyof T as string extends K ? never : K]: 0 } & string
type Below<T> = T extends readonly unknown[] ? never : T extends object ? Names<T> : never
/** Fields of a thing, and those one level down: `id`, `git.branch`. */
export type Path<T> = T extends unknown
  ? { [K in Names<T>]: K | `${K}.${Below<NonNullable<T[K & keyof T]>>}` }[Names<T>]
  : never

type Words<S> = S extends `${infer Word} ${infer Rest}` ? Word | Words<Rest> : S extends '' ? never : S
/** Names in capitals are columns that `as` explains. */
type Unknown<S, T> = Exclude<Words<S>, Path<T> | Uppercase<Words<S> & string>> & string
type Known<S, T> = [Unknown<S, T>] extends [never] ? S : `there is no field ${Unknown<S, T>}`
type Shown<T> = Path<T> | ((item: T) => Cell)

interface More<T, W> {
  /** Only with `-o wide`, or where one thing is shown. */
  readonly wide?: W & Known<W, T>
  /** A field under another name, or what is made of several. */
  readonly as?: Readonly<Record<string, Shown<T>>>
  /** What `-o name` prints, where it is not the first column. */
  readonly name?: Shown<T>
}

/**
 * A column for each word: a field of the thing by its path, under the last word of the path; or a name in capitals that
 * `as` explains. The compiler holds the paths to the type.
 */
export const view =
  <T>() =>
  <const S extends string, const W extends string = ''>(shows: S & Known<S, T>, more: More<T, W> = {}): View<T> => {
    const { wide = '', as = {}, name } = more
    const columns = wordsOf(shows).map((word) => columnOf(word, as[word]))
    const others = wordsOf(wide).map((word): Column<T> => ({ ...columnOf(word, as[word]), wide: true }))
    const value = name === undefined ? columns[0]?.value : readerOf(name)
    return { columns: [...columns, ...others], name: (item) => String(value?.(item) ?? '') }
  }

const wordsOf = (text: string): readonly string[] => text.split(' ').filter(Boolean)

/** What is wrong, where, and what was meant: half of it is no help. */
const PROSE: readonly string[] = ['place', 'message', 'hint']
const STATES: readonly string[] = ['state', 'status', 'severity', 'running']

function columnOf<T>(word: string, shown: Shown<T> | undefined): Column<T> {
  const isField = word !== word.toUpperCase()
  if (!isField && shown === undefined) throw new TypeError(`nothing says what ${word} shows`)
  const path = typeof shown === 'string' ? shown : word.toLowerCase()
  const field = path.slice(path.lastIndexOf('.') + 1)
  const column = { header: isField ? field.toUpperCase() : word, value: readerOf<T>(shown ?? word) }
  if (TIME_FIELDS.includes(field)) return { ...column, kind: 'time' }
  if (PROSE.includes(field)) return { ...column, kind: 'prose' }
  return STATES.includes(field) ? { ...column, kind: 'state' } : column
}

function readerOf<T>(shown: ((item: T) => Cell) | string): (item: T) => Cell {
  if (typeof shown !== 'string') return shown
  const names = shown.split('.')
  return (item) => cellOf(names.reduce<unknown>(fieldOf, item))
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined

/** Every column, also those that a list shows only with `-o wide`. */
export const allColumns = <T>(shown: View<T>): View<T> => ({
  ...shown,
  columns: shown.columns.map((column) => ({ ...column, wide: false })),
})

/** Columns before and behind those of a view. */
export const around = <T>(
  before: readonly Column<T>[],
  shown: View<T>,
  behind: readonly Column<T>[] = [],
): View<T> => ({
  ...shown,
  columns: [...before, ...shown.columns, ...behind],
})

/** The view of what an answer holds one level down. */
export const viewInside = <T, U>({ columns, name }: View<T>, pick: (whole: U) => T): View<U> => ({
  columns: columns.map((column) => ({ ...column, value: (whole: U) => column.value(pick(whole)) })),
  name: (whole) => name(pick(whole)),
})
