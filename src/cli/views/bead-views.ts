/** Beads for people: rows of a table, fields of an item, a page with what hangs together. */
import type { Bead, BeadComment, BeadDepsResponse, BeadDepView } from '../../contract/beads.ts'
import type { Context } from '../base/context.ts'
import type { Cell, Column } from '../base/output.ts'
import type { View } from '../framework/declaration.ts'
import { printableLines } from './turn-text.ts'

/** What can be told of every bead, also of one that is only known by its edges. */
interface Stated {
  readonly status: string
  readonly is_blocked?: boolean
}

const stateOf = ({ status, is_blocked: blocked }: Stated): string =>
  status !== 'closed' && blocked === true ? `${status}, blocked` : status

const id = (item: { readonly id: string }): string => item.id

/** A row each. */
export const BEADS: View<Bead> = {
  columns: [
    { header: 'ID', value: id },
    { header: 'P', value: (bead) => bead.priority },
    { header: 'STATUS', value: stateOf, kind: 'state' },
    { header: 'TYPE', value: (bead) => bead.issue_type },
    { header: 'ASSIGNEE', value: (bead) => bead.assignee },
    { header: 'TITLE', value: (bead) => bead.title },
    { header: 'AGE', value: (bead) => bead.created_at, kind: 'time' },
    { header: 'RIG', value: (bead) => bead.rig, wide: true },
    { header: 'PARENT', value: (bead) => bead.parent, wide: true },
    { header: 'LABELS', value: ({ labels }) => labels?.join(', '), wide: true },
    { header: 'ROUTED_TO', value: (bead) => bead.routed_to, wide: true },
    { header: 'UPDATED_AT', value: (bead) => bead.updated_at, kind: 'time', wide: true },
    { header: 'CLOSED_AT', value: (bead) => bead.closed_at, kind: 'time', wide: true },
    { header: 'DEFER_UNTIL', value: (bead) => bead.defer_until, kind: 'time', wide: true },
    { header: 'LEASE_EXPIRES_AT', value: (bead) => bead.lease_expires_at, kind: 'time', wide: true },
    { header: 'REVISION', value: (bead) => bead.revision, wide: true },
  ],
  name: id,
}

const FIELDS = [
  'id',
  'title',
  'status',
  'is_blocked',
  'issue_type',
  'priority',
  'assignee',
  'rig',
  'parent',
  'labels',
  'routed_to',
  'root_bead_id',
  'ref',
  'from',
  'needs',
  'outcome',
  'attempt',
  'close_reason',
  'session_id',
  'lease_expires_at',
  'defer_until',
  'created_at',
  'updated_at',
  'closed_at',
  'ephemeral',
  'no_history',
  'metadata',
  'description',
  'revision',
] as const satisfies readonly (keyof Bead)[]
const TIMES: readonly string[] = ['lease_expires_at', 'defer_until', 'created_at', 'updated_at', 'closed_at']

/** A line per field, under the names that they have on the wire. */
export const BEAD: View<Bead> = { columns: FIELDS.map(fieldColumn), name: id }

function fieldColumn(field: (typeof FIELDS)[number]): Column<Bead> {
  if (field === 'needs') return { header: 'NEEDS', value: needsOf }
  const column = { header: field.toUpperCase(), value: (bead: Bead) => cellOf(bead[field]) }
  if (TIMES.includes(field)) return { ...column, kind: 'time' }
  return field === 'status' ? { ...column, kind: 'state' } : column
}

/** What it depends on now; the field `needs` is what it was created with. */
function needsOf({ dependencies = [] }: Bead): string | undefined {
  const others = dependencies.filter(({ type }) => type !== 'parent-child')
  return others.map(({ type, depends_on_id: id }) => (type === 'blocks' ? id : `${type}:${id}`)).join(', ') || undefined
}

function cellOf(value: Bead[keyof Bead]): Cell {
  if (Array.isArray(value)) return value.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : value
}

export const COMMENT: View<BeadComment> = {
  columns: [
    { header: 'ID', value: id, wide: true },
    { header: 'CREATED_AT', value: (comment) => comment.created_at, kind: 'time' },
    { header: 'AUTHOR', value: (comment) => comment.author },
    { header: 'TEXT', value: (comment) => comment.text },
  ],
  name: id,
}

/** One edge, seen from the bead whose edges are listed. */
export interface DepRow {
  readonly relation: 'depends on' | 'needed by' | 'child'
  readonly type: string
  readonly id: string
  readonly status: string
  readonly title?: string
}

export const DEPS: View<DepRow> = {
  columns: [
    { header: 'RELATION', value: (row) => row.relation },
    { header: 'TYPE', value: (row) => row.type },
    { header: 'ID', value: id },
    { header: 'STATUS', value: (row) => row.status, kind: 'state' },
    { header: 'TITLE', value: (row) => row.title },
  ],
  name: id,
}

export function depRows({ dependencies, dependents, children }: BeadDepsResponse): readonly DepRow[] {
  const row = (relation: DepRow['relation'], other: string, { type, status, title }: BeadDepView): DepRow => ({
    relation,
    type,
    id: other,
    status,
    ...(title === undefined ? {} : { title }),
  })
  return [
    ...dependencies.map((edge) => row('depends on', edge.depends_on_id, edge)),
    // Children are listed as what they are.
    ...dependents.filter(({ type }) => type !== 'parent-child').map((edge) => row('needed by', edge.issue_id, edge)),
    ...children.map(
      (child): DepRow => ({
        relation: 'child',
        type: 'parent-child',
        id: child.id,
        status: stateOf(child),
        title: child.title,
      }),
    ),
  ]
}

/** A page for a terminal: fields, then the text, then what it hangs together with. */
export async function printPage(
  context: Context,
  {
    bead,
    json,
    deps,
    comments,
  }: {
    readonly bead: Bead
    readonly json: string
    readonly deps: BeadDepsResponse
    readonly comments: number
  },
): Promise<void> {
  const { print } = context
  const columns = BEAD.columns.filter(({ header }) => header !== 'DESCRIPTION' && header !== 'METADATA')
  await print.item({ item: bead, columns, name: id, json })
  if (bead.description !== undefined) await print.lines(['', printableLines(bead.description)])
  const metadata = Object.entries(bead.metadata ?? {})
  if (metadata.length > 0)
    await print.lines(['', ...metadata.map(([key, value]) => printableLines(`${key}=${value.replaceAll('\n', ' ')}`))])
  const rows = depRows(deps)
  if (rows.length > 0) {
    await print.lines([''])
    await print.list({ items: rows, ...DEPS, json })
  }
  if (deps.truncated === true) await context.note('there are more: only the first are shown')
  if (comments > 0)
    await print.lines(['', `${comments} comment${comments === 1 ? '' : 's'}: svcctl bead comment list ${bead.id}`])
}
