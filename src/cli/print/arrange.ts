/** `--sort` and `--columns`: any field by its dotted path, or a column by its name. Pure. */
import { type Cell, type Column, cellOf, columnName } from './columns.ts'
import { LayoutError } from './format.ts'
import { TIME_FIELDS } from './time-fields.ts'

/** Fields that things of a kind can have; `metadata.*` is anything below. */
export type KnownFields = readonly string[]

/** The value at a dotted path; names with dots in them are found too. */
export function valueAt(item: unknown, path: string): unknown {
  if (typeof item !== 'object' || item === null) return undefined
  const fields = new Map<string, unknown>(Object.entries(item))
  if (fields.has(path)) return fields.get(path)
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    const found = valueAt(fields.get(path.slice(0, dot)), path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

interface Shown<T> {
  readonly items: readonly T[]
  readonly columns: readonly Column<T>[]
  readonly known: KnownFields
}

/** The columns that `--columns` names, in its order; `+a,b` is those that are shown anyway, and these. */
export function chosenColumns<T>(chosen: string, { items, columns, known }: Shown<T>): readonly Column<T>[] {
  const adds = chosen.startsWith('+')
  const named = namesOf(adds ? chosen.slice(1) : chosen, '--columns').map((name) => {
    requireField(name, { items, columns, known })
    return columns.find((column) => columnName(column) === name) ?? fieldColumn<T>(name)
  })
  return adds ? [...columns.filter((column) => column.wide !== true && !named.includes(column)), ...named] : named
}

const fieldColumn = <T>(name: string): Column<T> => ({
  header: name.toUpperCase(),
  value: (item) => cellOf(valueAt(item, name)),
  ...(TIME_FIELDS.includes(name.slice(name.lastIndexOf('.') + 1)) ? { kind: 'time' } : {}),
})

/** Items in the order of `--sort a,-b`; what has no such value comes last either way. */
export function sortItems<T>(sort: string, shown: Shown<T>): readonly T[] {
  const keys = namesOf(sort, '--sort').map((word) => {
    const name = word.replace(/^-/, '')
    requireField(name, shown)
    return { value: sortValue(name, shown.columns), sign: word.startsWith('-') ? -1 : 1 }
  })
  return shown.items.toSorted((a, b) => {
    for (const { value, sign } of keys) {
      const [left, right] = [value(a), value(b)]
      const order = left === undefined || right === undefined ? missingLast(left, right) : sign * compare(left, right)
      if (order !== 0) return order
    }
    return 0
  })
}

/** Of a field what it is; of a column that is no field what it shows. */
function sortValue<T>(name: string, columns: readonly Column<T>[]): (item: T) => Cell {
  const column = columns.find((one) => columnName(one) === name)
  return (item) => cellOf(valueAt(item, name)) ?? column?.value(item)
}

const missingLast = (left: Cell, right: Cell): number => Number(left === undefined) - Number(right === undefined)

/** `al-2` before `al-10`, as people count. */
const words = new Intl.Collator('en', { numeric: true })

const compare = (left: Exclude<Cell, undefined>, right: Exclude<Cell, undefined>): number =>
  typeof left === 'string' || typeof right === 'string'
    ? words.compare(String(left), String(right))
    : Number(left) - Number(right)

function namesOf(text: string, flag: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.some((name) => name === '' || name === '-'))
    throw new LayoutError(`invalid ${flag} "${text}": a name is empty`)
  return names
}

function requireField<T>(name: string, { items, columns, known }: Shown<T>): void {
  const names = new Set([...columns.map(columnName), ...known, ...items.flatMap(fieldsIn)])
  if (names.has(name) || items.some((item) => valueAt(item, name) !== undefined)) return
  const open = [...names].some((one) => one.endsWith('.*') && name.startsWith(one.slice(0, -1)))
  // Of things that nobody has described, and of which there is none, everything may be a field.
  if (open || (items.length === 0 && known.length === 0)) return
  throw new LayoutError(`there is no field "${name}" here`, `fields: ${[...names].sort().join(', ')}`)
}

const fieldsIn = (item: unknown): readonly string[] =>
  typeof item === 'object' && item !== null && !Array.isArray(item) ? Object.keys(item) : []
