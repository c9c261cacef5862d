/** Edges and comments with all that lines say of them, for many beads at once. */
import type { Row, Tx } from '../../../kernel/database.ts'
import type { LineComment, LineEdge } from './line.ts'

type Reader = Pick<Tx, 'all'>

const AMONG = 'IN (SELECT value FROM json_each(?))'

/** By the bead that has them. */
export function readEdges(reader: Reader, ids: readonly string[]): ReadonlyMap<string, readonly LineEdge[]> {
  if (ids.length === 0) return new Map()
  const rows = reader.all(`SELECT * FROM bead_deps WHERE issue_id ${AMONG}`, JSON.stringify(ids))
  return grouped(rows, 'issue_id', (row) => ({
    depends_on_id: String(row.depends_on_id),
    type: String(row.type),
    created_at: Number(row.created_at),
    created_by: textOf(row.created_by),
    metadata: textOf(row.metadata),
    interchange: textOf(row.interchange),
  }))
}

/** By the bead that they are about. */
export function readComments(reader: Reader, ids: readonly string[]): ReadonlyMap<string, readonly LineComment[]> {
  if (ids.length === 0) return new Map()
  const rows = reader.all(`SELECT * FROM bead_comments WHERE bead ${AMONG}`, JSON.stringify(ids))
  return grouped(rows, 'bead', (row) => ({
    id: String(row.id),
    author: textOf(row.author),
    text: String(row.text),
    created_at: Number(row.created_at),
    interchange: textOf(row.interchange),
  }))
}

function grouped<T>(rows: readonly Row[], column: string, parse: (row: Row) => T): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const key = String(row[column])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [parse(row)])
    else group.push(parse(row))
  }
  return groups
}

const textOf = (value: unknown): string | null => (value == null ? null : String(value))
