/** A bead as it is stored, and how it looks on the wire (sheet 03 §1). Times are milliseconds until they leave. */
import { type Bead, type BeadDep, MAX_SHOWN_DEPENDENCIES, RESERVED_METADATA_PREFIXES } from '../../../contract/beads.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row } from '../../../kernel/database.ts'
import { type BeadColumns, mirroredOf, parseColumns, showColumns } from './columns.ts'

export interface BeadRecord extends BeadColumns {
  /** Row of the table of words. */
  readonly n: number
  readonly id: string
  readonly revision: number
  /** Scheduling edges whose target is not closed, or not there. */
  readonly blockers: number
  /** Sorted. */
  readonly labels: readonly string[]
  /** Without what has columns of its own. */
  readonly metadata: Readonly<Record<string, string>>
  /** At most MAX_SHOWN_DEPENDENCIES. */
  readonly dependencies: readonly BeadDep[]
}

/** Types that are never work by themselves, and labels that say so (sheet 03 §§1.3, 3). */
const UNWORKABLE_TYPES: ReadonlySet<string> = new Set([
  'merge-request',
  'gate',
  'molecule',
  'step',
  'convoy',
  'message',
  'session',
  'agent',
  'role',
  'rig',
])
const UNWORKABLE_LABELS: ReadonlySet<string> = new Set(['svc:session', 'svc:order-tracking', 'order-tracking'])

export const isWorkable = (issueType: string, labels: readonly string[]): boolean =>
  !UNWORKABLE_TYPES.has(issueType) && !labels.some((label) => UNWORKABLE_LABELS.has(label))

/** True for metadata that only the service and an import may write (decision 43). */
export const isReservedKey = (key: string): boolean =>
  RESERVED_METADATA_PREFIXES.some((prefix) => key.startsWith(prefix))

/** Every record with its first edges; the rest of the statement (`WHERE …`) says which. */
export const RECORD_SQL = `SELECT b.*, (SELECT json_group_array(json_array(depends_on_id, type)) FROM (SELECT depends_on_id, type FROM bead_deps
    WHERE issue_id = b.id ORDER BY depends_on_id, type LIMIT ${MAX_SHOWN_DEPENDENCIES})) AS dependencies
  FROM beads b`
/** As `RECORD_SQL`, without edges: for convoys, which have very many. */
export const BARE_RECORD_SQL = `SELECT b.*, '[]' AS dependencies FROM beads b`

/** The one parser of rows of `RECORD_SQL`. */
export function parseRecord(row: Row): BeadRecord {
  const id = String(row.id)
  return {
    ...parseColumns(row),
    n: Number(row.n),
    id,
    revision: Number(row.revision),
    blockers: Number(row.blockers),
    labels: row.labels === '[]' ? NO_TEXTS : JSON.parse(String(row.labels)),
    metadata: row.metadata === '{}' ? NO_METADATA : JSON.parse(String(row.metadata)),
    dependencies: row.dependencies === '[]' ? NO_DEPS : parseDeps(id, String(row.dependencies)),
  }
}

const NO_TEXTS: readonly string[] = []
const NO_DEPS: readonly BeadDep[] = []
const NO_METADATA: Readonly<Record<string, string>> = {}

function parseDeps(issue_id: string, json: string): readonly BeadDep[] {
  const pairs: readonly (readonly [string, string])[] = JSON.parse(json)
  return pairs.map(([depends_on_id, type]) => ({ issue_id, depends_on_id, type }))
}

/** The bead as clients see it; what is empty is left out. */
export function wireBead(record: BeadRecord): Bead {
  const { id, title, status, issue_type, created_at, updated_at, revision } = record
  const bead: Bead = {
    id,
    title,
    status,
    issue_type,
    created_at: isoTime(created_at),
    updated_at: isoTime(updated_at),
    is_blocked: record.blockers > 0,
    revision,
  }
  showColumns(bead, record)
  if (record.dependencies.length > 0) bead.dependencies = [...record.dependencies]
  if (record.labels.length > 0) bead.labels = [...record.labels]
  const metadata = wireMetadata(record)
  if (metadata !== undefined) bead.metadata = metadata
  return bead
}

/** Its metadata with the mirrored columns; undefined where there is none. */
function wireMetadata(record: BeadRecord): Record<string, string> | undefined {
  const mirrored = mirroredOf(record)
  return record.metadata === NO_METADATA || Object.keys(record.metadata).length === 0
    ? mirrored
    : { ...record.metadata, ...mirrored }
}
