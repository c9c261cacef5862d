/** A bead as it is stored, and how it looks on the wire (sheet 03 §1). Times are milliseconds until they leave. */
import {
  BEAD_STATUSES,
  type Bead,
  type BeadDep,
  type BeadStatus,
  MAX_SHOWN_DEPENDENCIES,
  RESERVED_METADATA_PREFIXES,
} from '../../../contract/beads.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row, SqlValue } from '../../../kernel/database.ts'

/** What can be set on a bead; names are those of the columns. */
export interface BeadColumns {
  readonly title: string
  readonly status: BeadStatus
  readonly issue_type: string
  readonly priority: number | null
  readonly created_at: number
  readonly updated_at: number
  readonly closed_at: number | null
  readonly close_reason: string | null
  readonly assignee: string | null
  readonly from: string | null
  readonly parent: string | null
  readonly ref: string | null
  /** Empty: of the city itself. */
  readonly rig: string
  readonly description: string | null
  readonly ephemeral: boolean
  readonly no_history: boolean
  readonly defer_until: number | null
  readonly routed_to: string | null
  readonly root_bead_id: string | null
  readonly outcome: string | null
  readonly output_json: string | null
  readonly failure_class: string | null
  readonly failure_reason: string | null
  readonly attempt: number | null
  readonly session_id: string | null
  readonly session_name: string | null
  readonly work_branch: string | null
  readonly work_commit: string | null
  readonly lease_ms: number | null
  readonly lease_expires_at: number | null
  readonly needs: readonly string[] | null
  /** JSON of what only the interchange knows. */
  readonly interchange: string | null
}

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

/** Columns that show as metadata `svc.<column>` too (sheet 03 §14 no. 9). */
export const MIRRORED_COLUMNS = [
  'routed_to',
  'root_bead_id',
  'outcome',
  'output_json',
  'failure_class',
  'failure_reason',
  'attempt',
  'session_id',
  'session_name',
  'work_branch',
  'work_commit',
] as const satisfies readonly (keyof BeadColumns)[]

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
    n: Number(row.n),
    id,
    title: String(row.title),
    status: parseStatus(row.status),
    issue_type: String(row.issue_type),
    priority: numberOf(row.priority),
    created_at: Number(row.created_at),
    updated_at: Number(row.updated_at),
    closed_at: numberOf(row.closed_at),
    close_reason: textOf(row.close_reason),
    assignee: textOf(row.assignee),
    from: textOf(row.from),
    parent: textOf(row.parent),
    ref: textOf(row.ref),
    rig: String(row.rig),
    description: textOf(row.description),
    ephemeral: row.ephemeral === 1,
    no_history: row.no_history === 1,
    defer_until: numberOf(row.defer_until),
    routed_to: textOf(row.routed_to),
    root_bead_id: textOf(row.root_bead_id),
    outcome: textOf(row.outcome),
    output_json: textOf(row.output_json),
    failure_class: textOf(row.failure_class),
    failure_reason: textOf(row.failure_reason),
    attempt: numberOf(row.attempt),
    session_id: textOf(row.session_id),
    session_name: textOf(row.session_name),
    work_branch: textOf(row.work_branch),
    work_commit: textOf(row.work_commit),
    lease_ms: numberOf(row.lease_ms),
    lease_expires_at: numberOf(row.lease_expires_at),
    needs: row.needs === null ? null : JSON.parse(String(row.needs)),
    interchange: textOf(row.interchange),
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
const numberOf = (value: unknown): number | null => (value == null ? null : Number(value))
const textOf = (value: unknown): string | null => (value == null ? null : String(value))

export function parseStatus(value: unknown): BeadStatus {
  const status = BEAD_STATUSES.find((known) => known === value)
  if (status === undefined) throw new Error(`no status of a bead: ${String(value)}`)
  return status
}

function parseDeps(issue_id: string, json: string): readonly BeadDep[] {
  const pairs: readonly (readonly [string, string])[] = JSON.parse(json)
  return pairs.map(([depends_on_id, type]) => ({ issue_id, depends_on_id, type }))
}

/** The value of a column as the database takes it. */
export function sqlValue(value: BeadColumns[keyof BeadColumns]): SqlValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  return typeof value === 'boolean' ? Number(value) : JSON.stringify(value)
}

/** The bead as clients see it; what is empty is left out. Assigned field by field: lists make a thousand of them. */
export function wireBead(record: BeadRecord): Bead {
  const bead: Bead = {
    id: record.id,
    title: record.title,
    status: record.status,
    issue_type: record.issue_type,
    created_at: isoTime(record.created_at),
    updated_at: isoTime(record.updated_at),
    is_blocked: record.blockers > 0,
    revision: record.revision,
  }
  if (record.priority !== null) bead.priority = record.priority
  if (record.closed_at !== null) bead.closed_at = isoTime(record.closed_at)
  if (record.close_reason !== null) bead.close_reason = record.close_reason
  if (record.assignee !== null) bead.assignee = record.assignee
  if (record.from !== null) bead.from = record.from
  if (record.parent !== null) bead.parent = record.parent
  if (record.ref !== null) bead.ref = record.ref
  if (record.rig !== '') bead.rig = record.rig
  if (record.needs !== null) bead.needs = [...record.needs]
  if (record.dependencies.length > 0) bead.dependencies = [...record.dependencies]
  if (record.description !== null) bead.description = record.description
  if (record.labels.length > 0) bead.labels = [...record.labels]
  const metadata = wireMetadata(record)
  if (metadata !== undefined) bead.metadata = metadata
  if (record.ephemeral) bead.ephemeral = true
  if (record.no_history) bead.no_history = true
  if (record.defer_until !== null) bead.defer_until = isoTime(record.defer_until)
  if (record.routed_to !== null) bead.routed_to = record.routed_to
  if (record.root_bead_id !== null) bead.root_bead_id = record.root_bead_id
  if (record.outcome !== null) bead.outcome = record.outcome
  if (record.attempt !== null) bead.attempt = record.attempt
  if (record.session_id !== null) bead.session_id = record.session_id
  if (record.lease_expires_at !== null) bead.lease_expires_at = isoTime(record.lease_expires_at)
  return bead
}

/** Its metadata with the mirrored columns; undefined where there is none. */
function wireMetadata(record: BeadRecord): Record<string, string> | undefined {
  let metadata: Record<string, string> | undefined =
    Object.keys(record.metadata).length === 0 ? undefined : { ...record.metadata }
  for (const column of MIRRORED_COLUMNS) {
    if (record[column] === null) continue
    metadata ??= {}
    metadata[`svc.${column}`] = String(record[column])
  }
  return metadata
}
