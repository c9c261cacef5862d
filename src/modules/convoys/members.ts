/** Who is in a convoy, a page at a time, and whose work in convoys nobody has. */

import type { ListOrder } from '../../contract/base/paging.ts'
import type { Bead, BeadStatus } from '../../contract/beads.ts'
import { MAX_NAMED_MEMBERS, type StrandedBead, type UnknownMember } from '../../contract/convoys.ts'
import type { Row } from '../../kernel/database.ts'
import type { Page, Paged } from '../../kernel/page.ts'
import type { ConvoyBeads, Reader } from './convoys.ts'

/** Pages of the items of a time and an id. */
type KeyedPage = Page<readonly ['number', 'string']>
type Key = readonly [createdAt: number, id: string]

/** Sorts what is not there after everything that is. */
const NEVER = Number.MAX_SAFE_INTEGER
const FIRST: Key = [-1, '']

/** What a convoy tracks, and what it contains (old data has its members so); parameters: the convoy, twice. */
const MEMBERS = `SELECT m.id AS id, coalesce(b.created_at, ${NEVER}) AS created_at, b.status AS status, b.title AS title FROM (
    SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND type = 'tracks'
    UNION SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = 'parent-child') AS m
  LEFT JOIN beads AS b ON b.id = m.id`

/** Members in the order of (created_at, id); placeholders for those that are not there come last. */
export function membersPage(
  reader: Reader,
  beads: ConvoyBeads,
  convoy: string,
  page: KeyedPage,
): Paged<Bead | UnknownMember> {
  const rows = reader.all(
    `SELECT id, created_at FROM (${MEMBERS}) WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`,
    convoy,
    convoy,
    ...(page.after ?? FIRST),
    page.ask,
  )
  const found = loaded(beads, rows, (id) => [unknown(id)])
  return page.of(found, keyOf, ({ bead }) => bead)
}

/** The first members of a convoy, in short. */
export const briefMembers = (reader: Reader, convoy: string, limit: number) =>
  reader
    .all(`SELECT id, title, status FROM (${MEMBERS}) ORDER BY created_at, id LIMIT ?`, convoy, convoy, limit)
    .map(({ id, title, status }) => ({
      id: String(id),
      title: String(title ?? id),
      status: String(status ?? 'unknown'),
    }))

/** Beads may be large: a few at a time, until the page is full. */
function* loaded<Other>(beads: ConvoyBeads, rows: readonly Row[], missing: (id: string) => readonly Other[]) {
  for (let from = 0; from < rows.length; from += LOADED_AT_ONCE) {
    const some = rows
      .slice(from, from + LOADED_AT_ONCE)
      .map((row) => ({ id: String(row.id), at: Number(row.created_at) }))
    const known = new Map(beads.wire(some.map(({ id }) => id)).map((bead) => [bead.id, bead]))
    for (const { id, at } of some) {
      const bead = known.get(id)
      for (const one of bead === undefined ? missing(id) : [bead]) yield { id, at, bead: one }
    }
  }
}

const LOADED_AT_ONCE = 100
const keyOf = ({ at, id }: { readonly at: number; readonly id: string }): Key => [at, id]

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

export function strandedPage(reader: Reader, beads: ConvoyBeads, page: KeyedPage): Paged<StrandedBead> {
  const rows = reader.all(
    `SELECT b.id, b.created_at ${STRANDED} AND (b.created_at, b.id) > (?, ?) ORDER BY b.created_at, b.id LIMIT ?`,
    ...(page.after ?? FIRST),
    page.ask,
  )
  const convoys = openConvoysOf(
    reader,
    rows.map(({ id }) => String(id)),
  )
  const found = loaded(beads, rows, () => [])
  return page.of(found, keyOf, ({ id, bead }) => ({ ...bead, convoys: convoys.get(id) ?? [] }))
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
  desc: { after: '(created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC', start: [NEVER, ''] },
  asc: { after: '(created_at, id) > (?, ?) ORDER BY created_at, id', start: FIRST },
} as const satisfies Record<ListOrder, object>

/** Ids of convoys, in this order; one more than the page takes. */
export function convoysPage(
  reader: Reader,
  filter: ConvoyFilter,
  order: ListOrder,
  page: KeyedPage,
): readonly string[] {
  const { from, values } = inFilter(filter)
  const { after, start } = PAGE_ORDERS[order]
  return reader
    .all(`SELECT id FROM ${from} AND ${after} LIMIT ?`, ...values, ...(page.after ?? start), page.ask)
    .map(({ id }) => String(id))
}

export function countConvoys(reader: Reader, filter: ConvoyFilter): number {
  const { from, values } = inFilter(filter)
  return Number(reader.get(`SELECT count(*) AS n FROM ${from}`, ...values)?.n ?? 0)
}

const unknown = (id: string): UnknownMember => ({ id, title: id, status: 'unknown', issue_type: 'task' })
