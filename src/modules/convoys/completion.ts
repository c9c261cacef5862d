/**
 * How convoys end: each is closed once, by itself or by somebody, and the log says so once (sheet 03 §7, decision 49).
 *
 * A1  An open convoy whose last open member was closed or went is closed, whatever did it and whatever crashed since; never
 *     one that is empty or `owned`.
 * A2  `convoy.created` and `convoy.closed` are appended once for each time a convoy becomes what they say, and
 *     `convoy.updated` for members that came or went, in the write that makes it so where that is an operation of convoys,
 *     and else in the reaction to it.
 * A3  The close of a convoy is a `bead.closed` like any other: convoys that track it follow.
 */
import { CONVOY_TYPE, MAX_CONVOY_ITEMS, MAX_SWEPT_CONVOYS, OWNED_LABEL } from '../../contract/convoys.ts'
import type { PayloadOf } from '../../contract/event-types.ts'
import { nextTurn } from '../../kernel/clock.ts'
import type { Database, Tx } from '../../kernel/database.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import type { EventLog, StoredEvent } from '../../kernel/event-log.ts'
import type { Reaction } from '../../kernel/reactions.ts'
import { type ConvoyBeads, needConvoy, readConvoy } from './convoys.ts'
import { countConvoys } from './members.ts'

export interface CompletionDeps {
  readonly db: Database
  readonly log: EventLog
  readonly beads: ConvoyBeads
}

const ALL_CLOSED = 'all children closed'
/** Convoys closed in one write of a sweep: other writers wait no longer than for these. */
const SWEEP_BATCH = 50

const CAN_CLOSE = `b.issue_type = '${CONVOY_TYPE}' AND b.status <> 'closed' AND c.total > 0 AND c.closed = c.total
  AND NOT EXISTS (SELECT 1 FROM json_each(b.labels) WHERE value = '${OWNED_LABEL}')`
/** Convoys that have become complete and are still open. */
const ALL_DUE = `SELECT c.id FROM convoys AS c CROSS JOIN beads AS b ON b.id = c.id WHERE c.due = 1 AND ${CAN_CLOSE}`
/** The bead itself and those that it is a member of, as far as they are due. */
const DUE = `${ALL_DUE} AND c.id IN (SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = 'tracks'
  UNION ALL SELECT depends_on_id FROM bead_deps WHERE issue_id = ? AND type = 'parent-child' UNION ALL SELECT ?)`
const UNANNOUNCED = `SELECT b.status, coalesce(c.announced, '') AS announced FROM beads AS b LEFT JOIN convoys AS c ON c.id = b.id
  WHERE b.id = ? AND b.issue_type = '${CONVOY_TYPE}'
    AND (coalesce(c.announced, '') = '' OR (b.status = 'closed' AND c.announced <> 'closed'))`

const CHANGED = `SELECT convoy AS id FROM convoy_changes WHERE convoy = ? UNION SELECT convoy FROM convoy_changes WHERE member = ?`
/** As many as a request may name. */
const CHANGES = `SELECT n, member, came FROM convoy_changes WHERE convoy = ? ORDER BY n LIMIT ${MAX_CONVOY_ITEMS}`

/** As JSON has it: whatever became a convoy said so in the event of its becoming one. */
const SAYS_CONVOY = `"issue_type":"${CONVOY_TYPE}"`
/** Almost always none, and that is cheaper to know than whom a bead is tracked by. */
const ANY_DUE = 'SELECT 1 FROM convoys WHERE due = 1 LIMIT 1'
const ANY_CHANGE = 'SELECT 1 FROM convoy_changes LIMIT 1'

/** Closes what an event about a bead has completed, and says what became of convoys in other ways than through theirs. */
export function convoyReaction(deps: CompletionDeps): Reaction {
  const { db } = deps
  return {
    name: 'convoys',
    types: ['bead.created', 'bead.updated', 'bead.closed', 'bead.deleted'],
    since: 'start',
    concerns: (event) =>
      (db.get(ANY_CHANGE) !== undefined && changedBy(db, event).length > 0) ||
      (event.envelope.includes(SAYS_CONVOY) && db.get(UNANNOUNCED, event.subject ?? '') !== undefined) ||
      (db.get(ANY_DUE) !== undefined && dueBy(db, event).length > 0),
    react(tx, event) {
      const { subject = '' } = event
      if (tx.get(UNANNOUNCED, subject)?.announced === '') {
        announce(deps, tx, subject, 'created', 'supervisor')
        // One that was imported as closed: that is no news, and whoever was to be told was told then.
        if (isBornClosed(event)) markAnnounced(tx, subject, 'closed')
      }
      if (tx.get(UNANNOUNCED, subject) !== undefined) announce(deps, tx, subject, 'closed', 'supervisor')
      for (const id of changedBy(tx, event)) sayMembers(deps, tx, id, 'supervisor')
      for (const id of dueBy(tx, event)) closeConvoy(deps, tx, id, ALL_CLOSED, 'supervisor')
    },
  }
}

/** Convoys of whose members the log has still to speak: the bead is one, or came or went. */
const changedBy = (reader: Pick<Tx, 'all'>, { subject = '' }: StoredEvent): readonly string[] =>
  reader.all(CHANGED, subject, subject).map(({ id }) => String(id))

/** Says who came and who went since the log last spoke of the convoy. */
export function sayMembers({ log }: Pick<CompletionDeps, 'log'>, tx: Tx, id: string, actor: string): void {
  for (;;) {
    const rows = tx.all(CHANGES, id)
    const last = rows.at(-1)
    if (last === undefined) return
    tx.run('DELETE FROM convoy_changes WHERE convoy = ? AND n <= ?', id, Number(last.n))
    const members = (came: 0 | 1) => rows.filter((row) => row.came === came).map(({ member }) => String(member))
    const payload = { convoy_id: id, added: members(1), removed: members(0) }
    log.append(tx, { type: 'convoy.updated', actor, subject: id, payload })
  }
}

/** Convoys that are due for what the event tells of. Who a child has left is not written anywhere: then all that are due. */
function dueBy(reader: Pick<Tx, 'all'>, event: StoredEvent): readonly string[] {
  const { subject = '' } = event
  const rows = leavesParent(event) ? reader.all(ALL_DUE) : reader.all(DUE, subject, subject, subject)
  return rows.map(({ id }) => String(id))
}

/** True where a bead may be no child any more of the one that it was a child of. */
export function leavesParent({ type, envelope }: StoredEvent): boolean {
  if (type === 'bead.deleted') return true
  if ((type !== 'bead.updated' && type !== 'bead.closed') || !envelope.includes('"parent"')) return false
  const { payload }: { readonly payload: PayloadOf<'bead.updated'> } = JSON.parse(envelope)
  return payload.changed.includes('parent')
}

function isBornClosed({ type, envelope }: StoredEvent): boolean {
  if (type !== 'bead.created') return false
  const { payload }: { readonly payload: PayloadOf<'bead.created'> } = JSON.parse(envelope)
  return payload.bead.status === 'closed'
}

/** Speaks of a convoy for the first time, where nobody has yet: what made it may be a bead's own operation, just now. */
export function introduce(deps: CompletionDeps, tx: Tx, id: string, actor: string): void {
  if (tx.get(UNANNOUNCED, id)?.announced === '') announce(deps, tx, id, 'created', actor)
}

/** Closes an open convoy and says so. */
export function closeConvoy(deps: CompletionDeps, tx: Tx, id: string, reason: string | undefined, actor: string): void {
  introduce(deps, tx, id, actor)
  deps.beads.close(tx, id, reason, actor)
  announce(deps, tx, id, 'closed', actor)
}

/** Appends what the convoy has become, and notes that it is said (A2). */
export function announce(
  { db, log, beads }: CompletionDeps,
  tx: Tx,
  id: string,
  what: 'created' | 'closed',
  actor: string,
): void {
  const { title, close_reason, owner, notify, progress } = readConvoy(db, beads, id)
  const said = {
    convoy_id: id,
    title,
    ...progress,
    ...(owner === undefined ? {} : { owner }),
    ...(notify === undefined ? {} : { notify }),
  }
  markAnnounced(tx, id, what)
  if (what === 'created') log.append(tx, { type: 'convoy.created', actor, subject: id, payload: said })
  else {
    const payload = { ...said, ...(close_reason === undefined ? {} : { reason: close_reason }) }
    log.append(tx, { type: 'convoy.closed', actor, subject: id, payload })
  }
}

function markAnnounced(tx: Tx, id: string, what: 'created' | 'closed'): void {
  tx.run(
    'INSERT INTO convoys (id, announced) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET announced = excluded.announced',
    id,
    what,
  )
}

/** Deletes a convoy that is as `If-Match` says, a part at a time where it contains very much. */
export async function removeConvoy(
  { db, beads }: Pick<CompletionDeps, 'db' | 'beads'>,
  id: string,
  ifMatch: string | undefined,
  actor: string,
): Promise<void> {
  const removing = (isFirst: boolean) =>
    db.write((tx) => {
      const { revision } = needConvoy(beads, id)
      if (isFirst) checkPrecondition(ifMatch, String(revision))
      return beads.remove(tx, id, actor)
    })
  for (let isGone = await removing(true); !isGone; isGone = await removing(false)) await nextTurn()
}

export interface Sweep {
  readonly checked: number
  readonly closed: readonly string[]
  readonly truncated: boolean
}

/** Closes every convoy that is complete, also those that came complete; and those that this completes. */
export async function sweepConvoys(deps: CompletionDeps, actor: string): Promise<Sweep> {
  const checked = countConvoys(deps.db, { statuses: undefined })
  const closed: string[] = []
  for (;;) {
    const room = Math.min(SWEEP_BATCH, MAX_SWEPT_CONVOYS - closed.length)
    if (room === 0) break
    // Where nothing is complete nothing is written.
    if (completeConvoys(deps.db, 1).length === 0) break
    const done = await deps.db.write((tx) => {
      const ids = completeConvoys(tx, room)
      for (const id of ids) closeConvoy(deps, tx, id, ALL_CLOSED, actor)
      return ids
    })
    closed.push(...done)
  }
  return { checked, closed, truncated: completeConvoys(deps.db, 1).length > 0 }
}

function completeConvoys(reader: Pick<Tx, 'all'>, limit: number): readonly string[] {
  return reader
    .all(
      `SELECT b.id FROM beads AS b INDEXED BY beads_convoys CROSS JOIN convoys AS c ON c.id = b.id WHERE ${CAN_CLOSE} LIMIT ?`,
      limit,
    )
    .map(({ id }) => String(id))
}
