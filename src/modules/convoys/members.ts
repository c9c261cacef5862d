/** Who is in a convoy, a page at a time, and whose work in convoys nobody has. */

import type { ListOrder } from '../../contract/base/paging.ts'
import type { Bead, BeadStatus } from '../../contract/beads.ts'
import { MAX_NAMED_MEMBERS, type StrandedBead, type UnknownMember } from '../../contract/convoys.ts'
import type { ConvoyBeads, Reader } from './convoys.ts'

/** Where a page begins: after the item of this time and id. */
export interface ListKey {
  readonly createdAt: number
  readonly id: string
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly next: ListKey | undefined
}

/** Sorts what is not there after everything that is. */
const NEVER = Number.MAX_SAFE_INTEGER
const FIRST: ListKey = { createdAt: -1, id: '' }

/** What a convoy tracks, and what it contains (old data has its members so); parameters: the convoy, twice. */
const MEMBERS = `SELECT m.id AS id, coalesce(b.created_at, ${NEVER}) AS created_at, b.status AS status FROM (
    SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND type = 'tracks'
    UNION SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = 'parent-child') AS m
  LEFT JOIN beads AS b ON b.id = m.id`

/** Members in the order of (created_at, id); placeholders for those that are not there come last. */
export function membersPage(
  reader: Reader,
  beads: ConvoyBeads,
  convoy: string,
  after: ListKey = FIRST,
  limit: number,
): Page<Bead | UnknownMember> {
  const { items: ids, next } = pageOf(
    reader.all(
      `SELECT id, created_at FROM (${MEMBERS}) WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`,
      convoy,
      convoy,
      after.createdAt,
      after.id,
      limit + 1,
    ),
    limit,
  )
  const known = new Map(beads.wire(ids).map((bead) => [bead.id, bead]))
  return { items: ids.map((id) => known.get(id) ?? unknown(id)), next }
}

/** Ids of members that are not closed, oldest first; the first few of them. */
export function openMembers(reader: Reader, convoy: string): readonly string[] {
  return reader
    .all(
      `SELECT id FROM (${MEMBERS}) WHERE status IS NOT 'closed' ORDER BY created_at, id LIMIT ?`,
      convoy,
      convoy,
      MAX_NAMED_MEMBERS,
    )
    .map(({ id }) => String(id))
}

/** Which of these are members. */
export function membersAmong(reader: Reader, convoy: string, ids: readonly string[]): ReadonlySet<string> {
  const rows = reader.all(
    `SELECT m.value AS id FROM json_each(?) AS m
     WHERE EXISTS (SELECT 1 FROM bead_deps WHERE issue_id = ? AND depends_on_id = m.value AND type = 'tracks')
       OR EXISTS (SELECT 1 FROM bead_deps WHERE issue_id = m.value AND depends_on_id = ? AND type = 'parent-child')`,
    JSON.stringify(ids),
    convoy,
    convoy,
  )
  return new Set(rows.map(({ id }) => String(id)))
}

/** Which of these are beads. */
export function beadsAmong(reader: Reader, ids: readonly string[]): ReadonlySet<string> {
  const rows = reader.all('SELECT id FROM beads WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids))
  return new Set(rows.map(({ id }) => String(id)))
}

/** From the beads that are open, which are few, and not from the members of convoys, which may be closed long ago. */
const STRANDED = `FROM beads AS b WHERE b.status <> 'closed' AND b.status = 'open' AND b.assignee IS NULL AND b.workable = 1
  AND (EXISTS (SELECT 1 FROM bead_deps AS d CROSS JOIN beads AS c ON c.id = d.issue_id
      WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND c.issue_type = 'convoy' AND c.status <> 'closed')
    OR EXISTS (SELECT 1 FROM beads AS c WHERE c.id = b.parent AND c.issue_type = 'convoy' AND c.status <> 'closed'))`

export function strandedPage(
  reader: Reader,
  beads: ConvoyBeads,
  after: ListKey = FIRST,
  limit: number,
): Page<StrandedBead> {
  const { items: ids, next } = pageOf(
    reader.all(
      `SELECT b.id, b.created_at ${STRANDED} AND (b.created_at, b.id) > (?, ?) ORDER BY b.created_at, b.id LIMIT ?`,
      after.createdAt,
      after.id,
      limit + 1,
    ),
    limit,
  )
  const convoys = openConvoysOf(reader, ids)
  return { items: beads.wire(ids).map((bead) => ({ ...bead, convoys: convoys.get(bead.id) ?? [] })), next }
}

export const countStranded = (reader: Reader): number => Number(reader.get(`SELECT count(*) AS n ${STRANDED}`)?.n ?? 0)

function openConvoysOf(reader: Reader, ids: readonly string[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>()
  const rows = reader.all(
    `SELECT m.member, c.id AS convoy FROM (
       SELECT depends_on_id AS member, issue_id AS convoy FROM bead_deps
         WHERE depends_on_id IN (SELECT value FROM json_each(?)) AND type = 'tracks'
       UNION SELECT issue_id, depends_on_id FROM bead_deps
         WHERE issue_id IN (SELECT value FROM json_each(?)) AND type = 'parent-child') AS m
     CROSS JOIN beads AS c ON c.id = m.convoy
     WHERE c.issue_type = 'convoy' AND c.status <> 'closed' ORDER BY c.created_at, c.id`,
    JSON.stringify(ids),
    JSON.stringify(ids),
  )
  for (const { member, convoy } of rows) {
    const convoys = found.get(String(member)) ?? []
    if (convoys.length < MAX_NAMED_MEMBERS) convoys.push(String(convoy))
    found.set(String(member), convoys)
  }
  return found
}

export interface ConvoyFilter {
  /** Undefined: all that are not closed. */
  readonly statuses: readonly BeadStatus[] | undefined
}

const inFilter = ({ statuses }: ConvoyFilter) =>
  statuses === undefined
    ? { from: "beads INDEXED BY beads_convoys WHERE issue_type = 'convoy' AND status <> 'closed'", values: [] }
    : {
        from: "beads WHERE issue_type = 'convoy' AND status IN (SELECT value FROM json_each(?))",
        values: [JSON.stringify(statuses)],
      }

const PAGE_ORDERS = {
  desc: { after: '(created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC', start: { createdAt: NEVER, id: '' } },
  asc: { after: '(created_at, id) > (?, ?) ORDER BY created_at, id', start: FIRST },
} as const satisfies Record<ListOrder, object>

/** Ids of convoys, in this order. */
export function convoysPage(
  reader: Reader,
  filter: ConvoyFilter,
  order: ListOrder,
  key: ListKey | undefined,
  limit: number,
): Page<string> {
  const { from, values } = inFilter(filter)
  const { after, start } = PAGE_ORDERS[order]
  const { createdAt, id } = key ?? start
  const rows = reader.all(
    `SELECT id, created_at FROM ${from} AND ${after} LIMIT ?`,
    ...values,
    createdAt,
    id,
    limit + 1,
  )
  return pageOf(rows, limit)
}

export function countConvoys(reader: Reader, filter: ConvoyFilter): number {
  const { from, values } = inFilter(filter)
  return Number(reader.get(`SELECT count(*) AS n FROM ${from}`, ...values)?.n ?? 0)
}

function pageOf(rows: ReturnType<Reader['all']>, limit: number): Page<string> {
  const keys = rows.slice(0, limit).map((row) => ({ createdAt: Number(row.created_at), id: String(row.id) }))
  return { items: keys.map(({ id }) => id), next: rows.length > limit ? keys.at(-1) : undefined }
}

const unknown = (id: string): UnknownMember => ({ id, title: id, status: 'unknown', issue_type: 'task' })
