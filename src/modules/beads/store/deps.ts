/** What a bead depends on, what depends on it, and what it contains. */

import type { QueryOf } from '../../../contract/base/operation.ts'
import { type BeadDepsResponse, type BeadDepView, type listBeadDeps, MAX_LISTED_DEPS } from '../../../contract/beads.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row } from '../../../kernel/database.ts'
import { fill } from '../../../kernel/page.ts'
import { parseStatus } from './columns.ts'
import type { Reader } from './edges.ts'
import { type BeadRecord, wireBead } from './record.ts'
import { BLOCKING_SQL } from './shifts.ts'
import type { BeadStore } from './store.ts'

/** Edges from one end, with the title and status of the other. */
const edgesSql = (own: string, other: string): string =>
  `SELECT d.issue_id, d.depends_on_id, d.type, b.status, b.title FROM bead_deps d LEFT JOIN beads b ON b.id = d.${other}
    WHERE d.${own} = ? AND (? IS NULL OR d.type = ?) ORDER BY d.${other}, d.type LIMIT ${MAX_LISTED_DEPS + 1}`
const DOWN = edgesSql('issue_id', 'depends_on_id')
const UP = edgesSql('depends_on_id', 'issue_id')
const CHILDREN = `SELECT id FROM beads WHERE parent = ? ORDER BY created_at, id LIMIT ${MAX_LISTED_DEPS + 1}`

export function listDeps(
  beads: BeadStore,
  reader: Reader,
  beadId: string,
  { direction = 'both', type = null }: Omit<QueryOf<typeof listBeadDeps>, 'type'> & { readonly type?: string | null },
): BeadDepsResponse {
  const { id } = beads.need(beadId)
  const down = direction === 'up' ? [] : reader.all(DOWN, id, type, type)
  const up = direction === 'down' ? [] : reader.all(UP, id, type, type)
  const children = reader.all(CHILDREN, id).map((row) => String(row.id))
  const { items: below } = fill(beads.each(children.slice(0, MAX_LISTED_DEPS)), wireBead)
  const truncated = [down, up].some((list) => list.length > MAX_LISTED_DEPS) || children.length > below.length
  return {
    children: below,
    dependencies: down.slice(0, MAX_LISTED_DEPS).map(toView),
    dependents: up.slice(0, MAX_LISTED_DEPS).map(toView),
    ...(truncated ? { truncated } : {}),
  }
}

const MAX_NAMED = 5
const BLOCKERS = `SELECT d.depends_on_id AS id, coalesce(b.status, 'unknown') AS status FROM bead_deps AS d
  LEFT JOIN beads AS b ON b.id = d.depends_on_id
  WHERE d.issue_id = ? AND d.${BLOCKING_SQL} AND b.status IS NOT 'closed' ORDER BY d.depends_on_id LIMIT ${MAX_NAMED + 1}`

/** What a bead that somebody has waits for nevertheless, as sentences. */
export const waitsFor = (reader: Reader, bead: BeadRecord, now: number): string[] =>
  held(reader, bead, now).map((why) => `it ${why}`)

function held(reader: Reader, { id, defer_until: until }: BeadRecord, now: number): readonly string[] {
  const blockers = reader.all(BLOCKERS, id).map((row) => `${String(row.id)} (${String(row.status)})`)
  const named = blockers.length > MAX_NAMED ? [...blockers.slice(0, MAX_NAMED), 'others'] : blockers
  return [
    ...(named.length === 0 ? [] : [`is blocked: it waits for ${named.join(', ')}`]),
    ...(until === null || until <= now ? [] : [`is deferred until ${isoTime(until)}`]),
  ]
}

const MAX_ANCESTORS = 20

/**
 * Ancestors of an open bead that are deferred, blocked or closed, as sentences. The bead itself is ready all the same: only
 * its own edges and date count.
 */
export function heldAbove(beads: BeadStore, reader: Reader, bead: BeadRecord, now: number): string[] {
  if (bead.status === 'closed') return []
  const found: string[] = []
  const seen = new Set([bead.id])
  for (let { parent } = bead; parent !== null && !seen.has(parent) && seen.size <= MAX_ANCESTORS; ) {
    seen.add(parent)
    const above = beads.find(parent)
    if (above === undefined) break
    const name = above.id === bead.parent ? `its parent ${above.id}` : `${above.id}, above its parent,`
    const states = above.status === 'closed' ? ['is closed'] : held(reader, above, now)
    found.push(...states.map((state) => `${name} ${state}`))
    parent = above.parent
  }
  return found
}

function toView(row: Row): BeadDepView {
  const edge = { issue_id: String(row.issue_id), depends_on_id: String(row.depends_on_id), type: String(row.type) }
  return row.status === null
    ? { ...edge, status: 'unknown' }
    : { ...edge, status: parseStatus(row.status), title: String(row.title) }
}
