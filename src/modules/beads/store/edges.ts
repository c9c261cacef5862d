/**
 * Dependencies between beads (sheet 03 §2).
 *
 * E1  Between two beads there is at most one edge that is not `parent-child`, and one that is.
 * E2  A bead has one parent: `beads.parent` and its `parent-child` edge are the same.
 * E3  `beads.blockers` is the number of its blocking edges whose target is not closed or not there.
 */
import { BLOCKING_TYPES, PARENT_CHILD } from '../../../contract/beads.ts'
import type { Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'

export type Reader = Pick<Tx, 'get' | 'all'>

export interface Edge {
  readonly issue_id: string
  readonly depends_on_id: string
  readonly type: string
}

/** An edge with what the interchange keeps of it; what is undefined stays as it is. */
export interface EdgeDraft {
  readonly depends_on_id: string
  readonly type: string
  readonly created_at?: number
  readonly created_by?: string | null
  readonly metadata?: string | null
  readonly interchange?: string | null
}

export const isBlocking = (type: string): boolean => BLOCKING_TYPES.some((blocking) => blocking === type)
/** SQL: the type is one of those that block. */
export const BLOCKING_SQL = `type IN (${BLOCKING_TYPES.map((type) => `'${type}'`).join(', ')})`

/** `"id"` blocks, `"type:id"` is of that type. */
export function parseNeed(need: string): EdgeDraft {
  const colon = need.indexOf(':')
  return colon < 0
    ? { depends_on_id: need, type: 'blocks' }
    : { type: need.slice(0, colon) || 'blocks', depends_on_id: need.slice(colon + 1) }
}

/** What edges did to a bead. */
export interface EdgeEffect {
  readonly changed: boolean
  readonly blockers: number
  /** Undefined: as it was. */
  readonly parent?: string | null
}

/** Puts an edge in, instead of the one of its kind that is there (E1, E2). */
export function putEdge(tx: Tx, issueId: string, edge: EdgeDraft, now: number): EdgeEffect {
  const earlier = edgesLike(tx, issueId, edge)
  const same = earlier.find(({ depends_on_id, type }) => depends_on_id === edge.depends_on_id && type === edge.type)
  const others = earlier.filter((one) => one !== same)
  let blockers = 0
  for (const other of others) blockers -= deleteEdge(tx, other)
  const written = same === undefined ? insertEdge(tx, issueId, edge, now) : updateEdge(tx, same, edge)
  if (same === undefined && blocks(tx, edge)) blockers++
  const changed = written || others.length > 0
  return edge.type === PARENT_CHILD ? { changed, blockers, parent: edge.depends_on_id } : { changed, blockers }
}

/** Takes the edges to a target out, of one type or of all. */
export function dropEdges(tx: Tx, issueId: string, dependsOnId: string, type: string | undefined): EdgeEffect {
  const found = edgesBetween(tx, issueId, dependsOnId).filter((edge) => type === undefined || edge.type === type)
  let blockers = 0
  for (const edge of found) blockers -= deleteEdge(tx, edge)
  const effect = { changed: found.length > 0, blockers }
  return found.some((edge) => edge.type === PARENT_CHILD) ? { ...effect, parent: null } : effect
}

const toEdge = (row: { readonly [column: string]: unknown }): Edge => ({
  issue_id: String(row.issue_id),
  depends_on_id: String(row.depends_on_id),
  type: String(row.type),
})

const edgesBetween = (reader: Reader, issueId: string, dependsOnId: string): readonly Edge[] =>
  reader
    .all(
      'SELECT issue_id, depends_on_id, type FROM bead_deps WHERE issue_id = ? AND depends_on_id = ?',
      issueId,
      dependsOnId,
    )
    .map(toEdge)

/** The edges that `edge` would stand beside but must not. */
function edgesLike(tx: Tx, issueId: string, edge: EdgeDraft): readonly Edge[] {
  if (edge.type !== PARENT_CHILD)
    return edgesBetween(tx, issueId, edge.depends_on_id).filter(({ type }) => type !== PARENT_CHILD)
  const parent = tx.get('SELECT parent FROM beads WHERE id = ?', issueId)?.parent
  const parents = [...new Set([edge.depends_on_id, ...(parent == null ? [] : [String(parent)])])]
  return parents.flatMap((id) => edgesBetween(tx, issueId, id)).filter(({ type }) => type === PARENT_CHILD)
}

function insertEdge(tx: Tx, issueId: string, edge: EdgeDraft, now: number): boolean {
  tx.run(
    'INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at, created_by, metadata, interchange) VALUES (?, ?, ?, ?, ?, ?, ?)',
    issueId,
    edge.depends_on_id,
    edge.type,
    edge.created_at ?? now,
    edge.created_by ?? null,
    edge.metadata ?? null,
    edge.interchange ?? null,
  )
  return true
}

function updateEdge(tx: Tx, { issue_id, depends_on_id, type }: Edge, edge: EdgeDraft): boolean {
  const said = ['created_at', 'created_by', 'metadata', 'interchange'] as const
  let changed = 0
  for (const column of said) {
    const value = edge[column]
    if (value === undefined) continue
    changed += tx.run(
      `UPDATE bead_deps SET ${column} = ? WHERE issue_id = ? AND depends_on_id = ? AND type = ? AND ${column} IS NOT ?`,
      value,
      issue_id,
      depends_on_id,
      type,
      value,
    )
  }
  return changed > 0
}

/** Deletes it; 1 where it blocked. */
function deleteEdge(tx: Tx, edge: Edge): number {
  const blocked = blocks(tx, edge) ? 1 : 0
  tx.run(
    'DELETE FROM bead_deps WHERE issue_id = ? AND depends_on_id = ? AND type = ?',
    edge.issue_id,
    edge.depends_on_id,
    edge.type,
  )
  return blocked
}

/** True where the edge keeps its bead from being ready now: the target is not closed, or not there. */
function blocks(reader: Reader, edge: Pick<Edge, 'type' | 'depends_on_id'>): boolean {
  if (!isBlocking(edge.type)) return false
  return reader.get('SELECT status FROM beads WHERE id = ?', edge.depends_on_id)?.status !== 'closed'
}

// ---- cycles ---------------------------------------------------------------------------------------------------------

/**
 * The two relations that must stay free of cycles. They are apart: an epic that waits for its own children is no
 * deadlock, since containment blocks nobody.
 */
export type Relation = 'blocking' | 'containment'

export function relationOf(type: string): Relation | undefined {
  if (type === PARENT_CHILD) return 'containment'
  return isBlocking(type) ? 'blocking' : undefined
}

const STEPS: Readonly<Record<Relation, { readonly down: string; readonly up: string }>> = {
  blocking: {
    down: `SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND ${BLOCKING_SQL}`,
    up: `SELECT issue_id AS id FROM bead_deps WHERE depends_on_id = ? AND ${BLOCKING_SQL}`,
  },
  containment: {
    down: `SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND type = '${PARENT_CHILD}'`,
    up: `SELECT issue_id AS id FROM bead_deps WHERE depends_on_id = ? AND type = '${PARENT_CHILD}'`,
  },
}

/** Who is one step away from a bead, in one relation. */
export interface Neighbours {
  /** What it depends on, or is in. */
  readonly down: (id: string) => readonly string[]
  /** What depends on it, or is in it. */
  readonly up: (id: string) => readonly string[]
  /** False: nothing depends on it, nor is in it. */
  readonly isNeeded: (id: string) => boolean
}

export function neighboursIn(reader: Reader, relation: Relation): Neighbours {
  const { down, up } = STEPS[relation]
  return {
    down: steps(reader, down),
    up: steps(reader, up),
    isNeeded: (id) => reader.get('SELECT 1 FROM bead_deps WHERE depends_on_id = ? LIMIT 1', id) !== undefined,
  }
}

const steps = (reader: Reader, sql: string) => (id: string) => reader.all(sql, id).map((row) => String(row.id))

/** The cycle that an edge would close; of edges that order nothing only one from a bead to itself is one. */
export function cycleOf(
  reader: Reader,
  issueId: string,
  { depends_on_id: target, type }: EdgeDraft,
): readonly string[] | undefined {
  const relation = relationOf(type)
  if (relation === undefined) return issueId === target ? [issueId, issueId] : undefined
  return cycleThrough(neighboursIn(reader, relation), issueId, target)
}

/**
 * The cycle that an edge from `issueId` to `dependsOnId` would close: `[issue, target, …, issue]`. Looks from both ends in
 * turn, so that it costs no more than twice what lies behind the smaller of them.
 */
export function cycleThrough(
  { down, up }: Neighbours,
  issueId: string,
  dependsOnId: string,
): readonly string[] | undefined {
  if (issueId === dependsOnId) return [issueId, issueId]
  const fromTarget = walk(dependsOnId, issueId, down)
  const fromIssue = walk(issueId, dependsOnId, up)
  for (;;) {
    const below = fromTarget.next()
    if (below.done === true) return below.value === undefined ? undefined : [issueId, ...below.value]
    const above = fromIssue.next()
    if (above.done === true) return above.value === undefined ? undefined : [issueId, ...above.value.toReversed()]
  }
}

/** Breadth first; pauses after each bead; ends with the way from `start` to `goal`, or with undefined. */
function* walk(
  start: string,
  goal: string,
  next: (id: string) => readonly string[],
): Generator<undefined, readonly string[] | undefined, undefined> {
  const cameFrom = new Map<string, string>([[start, '']])
  for (const id of cameFrom.keys()) {
    for (const neighbour of next(id)) {
      if (cameFrom.has(neighbour)) continue
      cameFrom.set(neighbour, id)
      if (neighbour === goal) return wayBack(cameFrom, goal)
    }
    yield undefined
  }
  return undefined
}

function wayBack(cameFrom: ReadonlyMap<string, string>, goal: string): readonly string[] {
  const way: string[] = []
  for (let at = goal; at !== ''; at = cameFrom.get(at) ?? '') way.push(at)
  return way.toReversed()
}

/** A cycle that can be reached from any of `starts`; each bead is looked at once, however many starts there are. */
export function findCycle(reader: Reader, relation: Relation, starts: Iterable<string>): readonly string[] | undefined {
  const next = steps(reader, STEPS[relation].down)
  const finished = new Set<string>()
  for (const start of starts) {
    const cycle = finished.has(start) ? undefined : cycleFrom(start, next, finished)
    if (cycle !== undefined) return cycle
  }
  return undefined
}

/** Depth first without recursion: chains may be longer than the stack. */
function cycleFrom(
  start: string,
  next: (id: string) => readonly string[],
  finished: Set<string>,
): readonly string[] | undefined {
  const path: { readonly id: string; readonly rest: string[] }[] = [{ id: start, rest: [...next(start)] }]
  const onPath = new Set([start])
  for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
    const id = at.rest.pop()
    if (id === undefined) {
      path.pop()
      onPath.delete(at.id)
      finished.add(at.id)
    } else if (onPath.has(id)) {
      const ids = path.map((step) => step.id)
      return [...ids.slice(ids.indexOf(id)), id]
    } else if (!finished.has(id)) {
      path.push({ id, rest: [...next(id)] })
      onPath.add(id)
    }
  }
  return undefined
}

/** Beads of a cycle that a sentence names; all of them are in `errors`. */
const MAX_NAMED = 50

/** The refusal that names the whole cycle. */
export function cycleProblem(path: readonly string[], location = 'body.depends_on_id') {
  const named = path.length <= MAX_NAMED ? path : [...path.slice(0, MAX_NAMED - 2), '…', ...path.slice(-1)]
  return problem('dependency-cycle', `dependency cycle: ${named.join(' -> ')}`, {
    errors: [{ location, message: 'closes a cycle', value: [...path] }],
  })
}
