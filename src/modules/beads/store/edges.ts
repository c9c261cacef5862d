/**
 * Dependencies between beads (sheet 03 §2).
 *
 * E1  Between two beads there is at most one edge that is not `parent-child`, and one that is.
 * E2  A bead has one parent: `beads.parent` and its `parent-child` edge are the same.
 * E3  `beads.blockers` is the number of its blocking edges whose target is not closed or not there; where the target has
 *     just closed or opened and very much depends on it, as store/shifts.ts says.
 */
import { BLOCKING_TYPES, PARENT_CHILD } from '../../../contract/beads.ts'
import type { Tx } from '../../../kernel/database.ts'
import { type Problem, problem } from '../../../kernel/problem.ts'
import { BLOCKING_SQL, counts } from './shifts.ts'

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
  if (same === undefined && blocks(tx, { ...edge, issue_id: issueId })) blockers++
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

/** True where the edge is one of its bead's blockers (E3). */
function blocks(reader: Reader, { issue_id, depends_on_id, type }: Edge): boolean {
  return isBlocking(type) && counts(reader, issue_id, depends_on_id)
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

const TYPES: Readonly<Record<Relation, string>> = {
  blocking: BLOCKING_SQL,
  containment: `type = '${PARENT_CHILD}'`,
}
/** `down` is to what a bead depends on, or is in; `up` to what depends on it, or is in it. */
const ENDS = {
  down: { own: 'issue_id', other: 'depends_on_id' },
  up: { own: 'depends_on_id', other: 'issue_id' },
} as const
type Way = keyof typeof ENDS
const WAYS = ['up', 'down'] as const

/** Beads that are looked at on one side of an edge: to look at more takes longer than a write may. */
export const MAX_WALKED = 10_000
/** Most cycles, and most places where none can be, are near. */
const WALKS = [100, 1_000, MAX_WALKED] as const

/** SQL: what can be reached, nearest first; takes the ids to start from as JSON, and how many at most. */
const reachedSql = (relation: Relation, way: Way): string =>
  `WITH RECURSIVE reached (id) AS (SELECT value FROM json_each(?) UNION SELECT d.${ENDS[way].other} FROM reached AS r
    CROSS JOIN bead_deps AS d ON d.${ENDS[way].own} = r.id AND d.${TYPES[relation]} LIMIT ?)`
const edgesSql = (relation: Relation, way: Way): string =>
  `SELECT d.${ENDS[way].own} AS id, d.${ENDS[way].other} AS next FROM reached AS r
    CROSS JOIN bead_deps AS d ON d.${ENDS[way].own} = r.id AND d.${TYPES[relation]}`

/** Who is one step away from a bead, in one relation. */
export interface Neighbours {
  readonly down: (id: string) => readonly string[]
  readonly up: (id: string) => readonly string[]
}

export function neighboursIn(reader: Reader, relation: Relation): Neighbours {
  const steps = (way: Way) => {
    const { own, other } = ENDS[way]
    const sql = `SELECT ${other} AS id FROM bead_deps WHERE ${own} = ? AND ${TYPES[relation]}`
    return (id: string) => reader.all(sql, id).map((row) => String(row.id))
  }
  return { down: steps('down'), up: steps('up') }
}

/**
 * The cycle `[issue, target, …, issue]` that an edge would close; of edges that order nothing only one from a bead to itself
 * is one. Looks from both ends, a little further each time, so that it costs no more than what lies behind the smaller of
 * them; refuses where there is too much behind both. `looked` is told how many beads each look has seen.
 */
export function cycleOf(
  reader: Reader,
  issueId: string,
  { depends_on_id: target, type }: Pick<EdgeDraft, 'depends_on_id' | 'type'>,
  looked: (beads: number) => void = () => {},
): readonly string[] | undefined {
  const relation = relationOf(type)
  if (issueId === target) return [issueId, issueId]
  if (relation === undefined) return undefined
  for (const limit of WALKS) {
    for (const way of WAYS) {
      const [start, goal] = way === 'down' ? [target, issueId] : [issueId, target]
      const sql = `${reachedSql(relation, way)} SELECT count(*) AS size, max(id = ?) AS met FROM reached`
      const reached = reader.get(sql, JSON.stringify([start]), limit, goal)
      looked(Number(reached?.size))
      if (reached?.met === 1) return [issueId, ...wayTo(reader, relation, way, start, goal)]
      if (Number(reached?.size) < limit) return undefined
    }
  }
  throw tooFar(`${issueId} -> ${target}`)
}

/** From `target` to `issue`, whichever of them the walk started from. */
function wayTo(reader: Reader, relation: Relation, way: Way, start: string, goal: string): readonly string[] {
  const sql = `${reachedSql(relation, way)} ${edgesSql(relation, way)}`
  const cameFrom = new Map([[start, '']])
  for (const { id, next } of reader.all(sql, JSON.stringify([start]), MAX_WALKED)) {
    if (!cameFrom.has(String(next))) cameFrom.set(String(next), String(id))
  }
  const found = wayBack(cameFrom, goal)
  return way === 'down' ? found : found.toReversed()
}

export function wayBack(cameFrom: ReadonlyMap<string, string>, goal: string): readonly string[] {
  const way: string[] = []
  for (let at = goal; at !== ''; at = cameFrom.get(at) ?? '') way.push(at)
  return way.toReversed()
}

/**
 * A cycle that new edges of `starts` can have closed. Where nothing else depends on them (`alone`), only what is between
 * them is looked at; else what lies below them, and more than a write can look at is refused.
 */
export function findCycle(
  reader: Reader,
  relation: Relation,
  starts: readonly string[],
  alone: boolean,
): readonly string[] | undefined {
  const limit = alone ? starts.length : Math.max(MAX_WALKED, starts.length + 1)
  const sql = reachedSql(relation, 'down')
  const ids = JSON.stringify(starts)
  if (!alone && Number(reader.get(`${sql} SELECT count(*) AS size FROM reached`, ids, limit)?.size) >= limit)
    throw tooFar('the batch')
  const targets = new Map<string, string[]>()
  for (const { id, next } of reader.all(`${sql} ${edgesSql(relation, 'down')}`, ids, limit)) {
    const known = targets.get(String(id))
    if (known === undefined) targets.set(String(id), [String(next)])
    else known.push(String(next))
  }
  const finished = new Set<string>()
  for (const start of starts) {
    const cycle = finished.has(start) ? undefined : cycleFrom(start, targets, finished)
    if (cycle !== undefined) return cycle
  }
  return undefined
}

/** Depth first without recursion: chains may be longer than the stack. */
function cycleFrom(
  start: string,
  targets: ReadonlyMap<string, readonly string[]>,
  finished: Set<string>,
): readonly string[] | undefined {
  const step = (id: string) => ({ id, rest: [...(targets.get(id) ?? [])] })
  const path = [step(start)]
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
      path.push(step(id))
      onPath.add(id)
    }
  }
  return undefined
}

/** The refusal where nobody can tell in time. */
export const tooFar = (what: string): Problem =>
  problem(
    'dependency-cycle',
    `whether ${what} closes a cycle cannot be told: that takes a look at more than ${MAX_WALKED} beads`,
  )

/** Beads of a cycle that a sentence names, and that `errors` lists: a cycle may have thousands. */
const MAX_NAMED = 10
const MAX_LISTED = 1_000

/** The refusal that names the whole cycle. */
export function cycleProblem(path: readonly string[], location = 'body.depends_on_id') {
  const left = path.length - MAX_NAMED
  const named = left <= 0 ? path : [...path.slice(0, MAX_NAMED - 1), `… ${left} more …`, ...path.slice(-1)]
  return problem('dependency-cycle', `dependency cycle: ${named.join(' -> ')}`, {
    errors: [{ location, message: 'closes a cycle', value: path.slice(0, MAX_LISTED) }],
  })
}
