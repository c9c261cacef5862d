/** How a filter is answered from the tables of a log: which index leads, and what is looked at row by row. */
import type { SqlValue } from './database.ts'
import type { EventFilter, Range } from './event-log.ts'

/** Types that an index is asked for one by one; the engine takes 500 parts in a union. */
const MAX_TYPE_PARTS = 50

/** What a plan has to know of the log that it is for. */
export interface TypeTable {
  countOf(type: string): number
  /** The number that stands in the rows; -1 for a type that no row has. */
  idOf(type: string): number
}

interface Rest {
  readonly types?: readonly string[]
  readonly subject?: string
  readonly actor?: string
  readonly city?: string
}

/** Which index leads, and what is left to check row by row. */
export interface Plan {
  readonly lead:
    | { readonly column: 'subject' | 'actor' | 'city'; readonly value: string }
    | { readonly types: readonly string[] }
    | undefined
  readonly rest: Rest
  /** True where rows are looked at that the index cannot rule out. */
  readonly checksRows: boolean
}

/** `rare` is how many rows of a type are so few that its index is better than any other. */
export function planScan(
  { actor, subject, city }: EventFilter,
  types: readonly string[] | undefined,
  table: TypeTable,
  rare: number,
): Plan {
  const byType = types === undefined ? {} : { types }
  const rest = {
    ...(actor === undefined ? {} : { actor }),
    ...(subject === undefined ? {} : { subject }),
    ...(city === undefined ? {} : { city }),
  }
  const lead = leadOf(rest)
  const isRare = types !== undefined && types.reduce((sum, name) => sum + table.countOf(name), 0) <= rare
  if (types !== undefined && types.length <= MAX_TYPE_PARTS && (isRare || lead === undefined)) {
    return { lead: { types }, rest, checksRows: Object.keys(rest).length > 0 }
  }
  if (lead === undefined) return { lead: undefined, rest: byType, checksRows: types !== undefined }
  const { [lead.column]: _, ...others } = rest
  const left = { ...others, ...byType }
  return { lead, rest: left, checksRows: Object.keys(left).length > 0 }
}

function leadOf(rest: Rest) {
  if (rest.subject !== undefined) return { column: 'subject', value: rest.subject } as const
  if (rest.city !== undefined) return { column: 'city', value: rest.city } as const
  if (rest.actor !== undefined) return { column: 'actor', value: rest.actor } as const
  return undefined
}

export interface Statement {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/**
 * The rows that the leading index gives, in order, at most `limit`; the envelope is null where the rest of the filter does
 * not hold, so that a row that is only passed by costs little. The engine merges the indexes of several types as it goes.
 * Behind `seq` and the envelope come `columns`.
 */
export function selectRows(
  plan: Plan,
  table: TypeTable,
  columns: string,
  range: Range,
  order: 'asc' | 'desc',
  limit: number,
): Statement {
  const check = condition(plan.rest, table)
  const envelope = check.sql === '' ? 'envelope' : `CASE WHEN ${check.sql} THEN envelope END`
  const { sql, values } = parts(plan, table, range, `seq, ${envelope}, ${columns}`, check.values)
  return { sql: `${sql} ORDER BY 1 ${order} LIMIT ?`, values: [...values, limit] }
}

/** How many of at most `limit` rows of the leading index there are, and for how many of those the rest holds. */
export function countRows(plan: Plan, table: TypeTable, range: Range, limit: number): Statement {
  const check = condition(plan.rest, table)
  const { sql, values } = parts(plan, table, range, `${check.sql === '' ? '1' : check.sql} AS holds`, check.values)
  return { sql: `SELECT count(*), total(holds) FROM (${sql} LIMIT ?)`, values: [...values, limit] }
}

function parts(plan: Plan, table: TypeTable, range: Range, columns: string, checked: readonly SqlValue[]): Statement {
  const select = (where: string) => `SELECT ${columns} FROM events WHERE ${where} seq > ? AND seq <= ?`
  const bounds = [range.after, range.upTo]
  if (plan.lead === undefined) return { sql: select(''), values: [...checked, ...bounds] }
  if ('column' in plan.lead)
    return { sql: select(`${plan.lead.column} = ? AND`), values: [...checked, plan.lead.value, ...bounds] }
  const { types } = plan.lead
  return {
    sql: types.map(() => select('type = ? AND')).join(' UNION ALL '),
    values: types.flatMap((name) => [...checked, table.idOf(name), ...bounds]),
  }
}

function condition(rest: Rest, table: TypeTable): Statement {
  const conditions: string[] = []
  const values: SqlValue[] = []
  for (const column of ['subject', 'actor', 'city'] as const) {
    const value = rest[column]
    if (value === undefined) continue

    conditions.push(`${column} IS ?`)
    values.push(value)
  }
  if (rest.types !== undefined) {
    // One text for every set of types: statements are kept by their text.
    conditions.push('type IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(rest.types.map((name) => table.idOf(name))))
  }
  return { sql: conditions.join(' AND '), values }
}
