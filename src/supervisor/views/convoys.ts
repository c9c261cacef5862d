/** Where convoys meet the beads that they and their members are. */
import { CONVOY_TYPE, OWNED_LABEL } from '../../contract/convoys.ts'
import type { Row, Tx } from '../../kernel/database.ts'
import { BARE_RECORD_SQL, parseRecord, wireBead } from '../../modules/beads/store/record.ts'
import type { WorkCity } from '../../modules/beads/work/city.ts'
import { placeOf, tierOf } from '../../modules/beads/work/drafts.ts'
import type { ConvoyBeads } from '../../modules/convoys/convoys.ts'

type BeadsOf = Pick<WorkCity, 'beads' | 'config'> & { readonly store: Pick<WorkCity['store'], 'db'> }

/** Children that leave a convoy in one write: other writers wait no longer than for these. */
const FREED_AT_ONCE = 150

/** Closed ones first: a convoy that the last open one has left would close by itself. */
function nextToLeave(db: Pick<Tx, 'get' | 'all'>, convoy: string): readonly Row[] {
  const some = (status: string) =>
    db.all(`SELECT id FROM beads WHERE parent = ? AND ${status} LIMIT ${FREED_AT_ONCE}`, convoy)
  const hasClosed = db.get('SELECT 1 FROM convoys WHERE id = ? AND closed > 0', convoy) !== undefined
  const closed = hasClosed ? some("status = 'closed'") : []
  return closed.length > 0 ? closed : some("status <> 'closed'")
}

export function convoyBeads({ store: { db }, beads, config }: BeadsOf): ConvoyBeads {
  const tracks = (ids: readonly string[]) => ids.map((id) => ({ depends_on_id: id, type: 'tracks' }))
  const childrenAmong = (parent: string, ids: readonly string[]) =>
    db.all(
      'SELECT b.id FROM json_each(?) AS m CROSS JOIN beads AS b ON b.id = m.value WHERE b.parent = ?',
      JSON.stringify(ids),
      parent,
    )
  const orphan = (tx: Tx, children: readonly Row[], actor: string) => {
    for (const { id } of children) beads.change(tx, String(id), { parent: null }, actor)
  }
  return {
    wire: (ids) => beads.load(ids).map(wireBead),
    wireBare(ids) {
      const rows = db.all(`${BARE_RECORD_SQL} WHERE b.id IN (SELECT value FROM json_each(?))`, JSON.stringify(ids))
      const known = new Map(rows.map((row) => [String(row.id), wireBead(parseRecord(row))]))
      return ids.flatMap((id) => known.get(id) ?? [])
    },
    create: (tx, { title, description = null, rig, labels, metadata, members }, actor) =>
      beads.insert(
        tx,
        {
          ...placeOf(config(), rig),
          title,
          description,
          ...tierOf(config(), { issue_type: CONVOY_TYPE }, 'body'),
          labels,
          metadata,
          edges: tracks(members),
        },
        actor,
      ).id,
    change(tx, id, { metadata = {}, owned, ...columns }, actor) {
      const before = beads.need(id)
      const merged = Object.entries({ ...before.metadata, ...metadata }).flatMap(([key, value]) =>
        value === null ? [] : [[key, value] as const],
      )
      const others = before.labels.filter((label) => label !== OWNED_LABEL)
      const labels = owned === undefined ? before.labels : owned ? [...others, OWNED_LABEL] : others
      beads.change(tx, id, { ...columns, labels, metadata: Object.fromEntries(merged) }, actor)
    },
    track: (tx, id, members, actor) => void beads.change(tx, id, { add_edges: tracks(members) }, actor),
    untrack(tx, id, members, actor) {
      beads.change(tx, id, { remove_edges: tracks(members) }, actor)
      orphan(tx, childrenAmong(id, members), actor)
    },
    close: (tx, id, reason, actor) =>
      void beads.change(tx, id, { status: 'closed', close_reason: reason ?? null }, actor),
    remove(tx, id, actor) {
      beads.refuseReferred(id, { children: false })
      const children = db.all(`SELECT id FROM beads WHERE parent = ? LIMIT ${FREED_AT_ONCE + 1}`, id)
      const isLast = children.length <= FREED_AT_ONCE
      orphan(tx, isLast ? children : nextToLeave(db, id), actor)
      if (isLast) beads.remove(tx, id, actor, false)
      return isLast
    },
  }
}
