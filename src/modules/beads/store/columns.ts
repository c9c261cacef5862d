/**
 * The columns of a bead, each said once: what its value is, how it is stored and read, what a bead has of which nothing
 * is said, how it looks on the wire, and by which names queries ask for it. The rest is derived from this record.
 */
import { BEAD_STATUSES, type Bead, type BeadStatus } from '../../../contract/beads.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row, SqlValue } from '../../../kernel/database.ts'

interface Column<T, Kind extends string> {
  readonly kind: Kind
  /** As `CREATE TABLE` has it. */
  readonly sql: string
  /** What a bead has of which nothing is said; undefined where it must be said. */
  readonly empty: T | undefined
  readonly parse: (value: unknown) => T
  /** As its field on the wire, where it is not empty; absent where it has no such field, or one that is always there. */
  readonly wire?: (value: T & {}) => unknown
  /** It shows as metadata `svc.<column>` too (sheet 03 §14 no. 9). */
  readonly mirrored?: true
  /** Names under which the query language knows it. */
  readonly asked?: readonly string[]
}
type Values = {
  text: string
  number: number
  time: number
  flag: boolean
  texts: readonly string[]
  status: BeadStatus
}

const required = <Kind extends keyof Values>(kind: Kind, sql: string, parse: (value: unknown) => Values[Kind]) =>
  ({ kind, sql: `${sql} NOT NULL`, empty: undefined, parse }) satisfies Column<Values[Kind], Kind>
const nullable = <Kind extends keyof Values>(kind: Kind, sql: string, parse: (value: unknown) => Values[Kind]) =>
  ({ kind, sql, empty: null, parse: (value: unknown) => (value == null ? null : parse(value)) }) satisfies Column<
    Values[Kind] | null,
    Kind
  >

const TEXT = nullable('text', 'TEXT', String)
const NUMBER = nullable('number', 'INTEGER', Number)
const TIME = nullable('time', 'INTEGER', Number)
const FLAG = {
  ...required('flag', 'INTEGER', (value) => value === 1),
  sql: 'INTEGER NOT NULL DEFAULT 0',
  empty: false,
} as const satisfies Column<boolean, 'flag'>

/** As the field of its name on the wire. */
const shown = <Name extends keyof Bead, T>(_name: Name, wire: (value: T & {}) => Bead[Name]) => ({ wire })
const itself = <T>(value: T): T => value
const MIRRORED = { ...TEXT, mirrored: true } as const

/** In the order of the wire. */
export const COLUMNS = {
  title: { ...required('text', 'TEXT', String), asked: ['title'] },
  status: {
    ...required('status', 'TEXT', parseStatus),
    empty: 'open',
    asked: ['status'],
  },
  issue_type: {
    ...required('text', 'TEXT', String),
    empty: 'task',
    asked: ['type', 'issue_type'],
  },
  created_at: {
    ...required('time', 'INTEGER', Number),
    asked: ['created', 'created_at'],
  },
  updated_at: {
    ...required('time', 'INTEGER', Number),
    asked: ['updated', 'updated_at'],
  },
  priority: { ...NUMBER, ...shown('priority', itself<number>), asked: ['priority'] },
  closed_at: { ...TIME, ...shown('closed_at', isoTime), asked: ['closed', 'closed_at'] },
  close_reason: { ...TEXT, ...shown('close_reason', itself<string>), asked: ['reason', 'close_reason'] },
  assignee: { ...TEXT, ...shown('assignee', itself<string>), asked: ['assignee'] },
  from: { ...TEXT, ...shown('from', itself<string>), asked: ['from'] },
  parent: { ...TEXT, ...shown('parent', itself<string>), asked: ['parent'] },
  ref: { ...TEXT, ...shown('ref', itself<string>), asked: ['ref'] },
  /** Empty: of the city itself. */
  rig: {
    ...required('text', 'TEXT', String),
    sql: "TEXT NOT NULL DEFAULT ''",
    empty: '',
    ...shown('rig', itself<string>),
    asked: ['rig'],
  },
  /** As it was created with. */
  needs: {
    ...nullable('texts', 'TEXT', (value): readonly string[] => JSON.parse(String(value))),
    ...shown('needs', (needs: readonly string[]) => [...needs]),
  },
  description: { ...TEXT, ...shown('description', itself<string>), asked: ['description'] },
  ephemeral: { ...FLAG, ...shown('ephemeral', itself<boolean>) },
  no_history: { ...FLAG, ...shown('no_history', itself<boolean>) },
  defer_until: { ...TIME, ...shown('defer_until', isoTime), asked: ['defer_until'] },
  routed_to: { ...MIRRORED, ...shown('routed_to', itself<string>), asked: ['routed_to'] },
  root_bead_id: { ...MIRRORED, ...shown('root_bead_id', itself<string>), asked: ['root', 'root_bead_id'] },
  outcome: { ...MIRRORED, ...shown('outcome', itself<string>), asked: ['outcome'] },
  output_json: MIRRORED,
  failure_class: MIRRORED,
  failure_reason: MIRRORED,
  attempt: { ...NUMBER, mirrored: true, ...shown('attempt', itself<number>), asked: ['attempt'] },
  session_id: { ...MIRRORED, ...shown('session_id', itself<string>), asked: ['session', 'session_id'] },
  session_name: MIRRORED,
  work_branch: MIRRORED,
  work_commit: MIRRORED,
  lease_ms: NUMBER,
  lease_expires_at: { ...TIME, ...shown('lease_expires_at', isoTime) },
  /** JSON of what only the interchange knows. */
  interchange: TEXT,
} as const

type Columns = typeof COLUMNS
export type ColumnName = keyof Columns

/** What can be set on a bead; names are those of the columns. Times are milliseconds. */
export type BeadColumns = { readonly [Name in ColumnName]: ReturnType<Columns[Name]['parse']> }

/** Names of the columns of some kind that queries ask for. */
export type AskedColumn<Kind extends keyof Values> = {
  [Name in ColumnName]: Columns[Name] extends { readonly kind: Kind; readonly asked: readonly string[] } ? Name : never
}[ColumnName]

type Mirrored = {
  [Name in ColumnName]: Columns[Name] extends { readonly mirrored: true } ? Name : never
}[ColumnName]

const isColumn = (name: string): name is ColumnName => Object.hasOwn(COLUMNS, name)
export const COLUMN_NAMES: readonly ColumnName[] = Object.keys(COLUMNS).filter(isColumn)

const isMirrored = (name: ColumnName): name is Mirrored => 'mirrored' in COLUMNS[name]
export const MIRRORED_COLUMNS: readonly Mirrored[] = COLUMN_NAMES.filter(isMirrored)

/** Each with the type of its own value, for whoever goes through them. */
const BY_NAME: { readonly [Name in ColumnName]: Column<BeadColumns[Name], string> } = COLUMNS

/** Names under which queries ask for a column. */
export const namesAsked = (name: ColumnName): readonly string[] => BY_NAME[name].asked ?? []

type MustBeSaid = {
  [Name in ColumnName]: Columns[Name]['empty'] extends undefined ? Name : never
}[ColumnName]
/**
 * A function of some text and of what the text names. Whatever goes through all columns of very many beads is written out
 * so, once, column by column: a loop over their names costs ten times as much.
 */
const writtenOut = (names: Readonly<Record<string, unknown>>, parameters: string, body: string) =>
  new Function(...Object.keys(names), `return (${parameters}) => { ${body} }`)(...Object.values(names))

const valuesNamed = (prefix: string, value: (name: ColumnName) => unknown) =>
  Object.fromEntries(COLUMN_NAMES.map((name) => [`${prefix}_${name}`, value(name)]))

/** All columns of a bead of which some are said; in the shape that those of rows have. */
export const completed: (said: Partial<BeadColumns> & Pick<BeadColumns, MustBeSaid>) => BeadColumns = writtenOut(
  valuesNamed('empty', (name) => BY_NAME[name].empty),
  'said',
  `return { ${COLUMN_NAMES.map((name) => `${name}: said.${name} === undefined ? empty_${name} : said.${name}`).join(', ')} }`,
)

/** The columns of a row; those of all rows have one shape. */
export const parseColumns: (row: Row) => BeadColumns = writtenOut(
  valuesNamed('parse', (name) => COLUMNS[name].parse),
  'row',
  `return { ${COLUMN_NAMES.map(parsingOf).join(', ')} }`,
)

function parsingOf(name: ColumnName): string {
  const parsed = `parse_${name}(row.${name})`
  return `${name}: ${BY_NAME[name].empty === null ? `row.${name} === null ? null : ${parsed}` : parsed}`
}

type MirroredColumns = Pick<BeadColumns, Mirrored>
const isMirroredColumns = (columns: object): columns is MirroredColumns =>
  MIRRORED_COLUMNS.every((name) => name in columns)

/** The mirrored columns, from the texts that say some of them. */
export function parseMirrored(texts: ReadonlyMap<string, string>): MirroredColumns {
  const columns = Object.fromEntries(MIRRORED_COLUMNS.map((name) => [name, COLUMNS[name].parse(texts.get(name))]))
  if (!isMirroredColumns(columns)) throw new Error('a mirrored column has no value')
  return columns
}

/** Those with a field of their own on the wire that is not always there. */
export const SHOWN_COLUMNS = COLUMN_NAMES.filter((name) => BY_NAME[name].wire !== undefined)

/** Puts the columns on the wire that have a field there, and are not empty. */
export const showColumns: (bead: Bead, columns: BeadColumns) => void = writtenOut(
  { ...valuesNamed('wire', (name) => BY_NAME[name].wire), ...valuesNamed('empty', (name) => BY_NAME[name].empty) },
  'bead, columns',
  SHOWN_COLUMNS.map(
    (name) => `if (columns.${name} !== empty_${name}) bead.${name} = wire_${name}(columns.${name})`,
  ).join('\n'),
)

/** The mirrored columns that are not empty, as metadata; undefined where there are none. */
export const mirroredOf: (columns: BeadColumns) => Record<string, string> | undefined = writtenOut(
  {},
  'columns',
  `let metadata
  ${MIRRORED_COLUMNS.map((name) => `if (columns.${name} !== null) (metadata ??= {})['svc.${name}'] = String(columns.${name})`).join('\n')}
  return metadata`,
)

/** The value of a column as the database takes it. */
export function sqlValue(value: BeadColumns[ColumnName]): SqlValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  return typeof value === 'boolean' ? Number(value) : JSON.stringify(value)
}

export function parseStatus(value: unknown): BeadStatus {
  const status = BEAD_STATUSES.find((known) => known === value)
  if (status === undefined) throw new Error(`no status of a bead: ${String(value)}`)
  return status
}
