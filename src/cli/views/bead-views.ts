/** Beads for people: rows of a table, fields of an item, a page with what hangs together. */
import type { Bead, BeadComment, BeadDepsResponse, BeadDepView } from '../../contract/beads.ts'
import type { Context } from '../base/context.ts'
import { allColumns, around, view } from '../print/view.ts'
import { printableLines } from './turn-text.ts'

/** What can be told of every bead, also of one that is only known by its edges. */
interface Stated {
  readonly status: string
  readonly is_blocked?: boolean
}

const stateOf = ({ status, is_blocked: blocked }: Stated): string =>
  status !== 'closed' && blocked === true ? `${status}, blocked` : status

/** A row each. */
export const BEADS = view<Bead>()('id P STATUS TYPE assignee title AGE', {
  wide: 'rig parent labels routed_to updated_at closed_at defer_until lease_expires_at revision',
  as: { P: 'priority', STATUS: stateOf, TYPE: 'issue_type', AGE: 'created_at' },
})

/** What it depends on now; the field `needs` is what it was created with. */
function needsOf({ dependencies = [] }: Bead): string | undefined {
  const others = dependencies.filter(({ type }) => type !== 'parent-child')
  return others.map(({ type, depends_on_id: id }) => (type === 'blocks' ? id : `${type}:${id}`)).join(', ') || undefined
}

/** A line per field, under the names that they have on the wire. */
export const BEAD = view<Bead>()(
  'id title status is_blocked issue_type priority assignee rig parent labels routed_to root_bead_id ref from NEEDS outcome attempt close_reason',
  {
    wide: 'session_id lease_expires_at defer_until created_at updated_at closed_at ephemeral no_history metadata description revision',
    as: { NEEDS: needsOf },
  },
)

export const COMMENT = around(
  view<BeadComment>()('', { wide: 'id' }).columns,
  view<BeadComment>()('created_at author text', { name: 'id' }),
)

/** One edge, seen from the bead whose edges are listed. */
export interface DepRow {
  readonly relation: 'depends on' | 'needed by' | 'child'
  readonly type: string
  readonly id: string
  readonly status: string
  readonly title?: string
}

export const DEPS = view<DepRow>()('relation type id status title', { name: 'id' })

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
  const columns = allColumns(BEAD).columns.filter(({ header }) => header !== 'DESCRIPTION' && header !== 'METADATA')
  await print.item({ item: bead, columns, name: BEAD.name, json })
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
