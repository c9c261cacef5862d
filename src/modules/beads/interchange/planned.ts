/** What a dry run of an import would have written so far, as far as the lines to come depend on it. */
import { createHash } from 'node:crypto'
import type { Tx } from '../../../kernel/database.ts'
import { MAX_WALKED, type Neighbours, neighboursIn, type Relation, relationOf, wayBack } from '../store/edges.ts'
import { byEdge, type LineBead, type LineEdge } from './line.ts'

/** Edges that are followed; a file with more is told of cycles through these. */
const MAX_EDGES = 500_000

/** The last version of a bead that lines have. */
export class PlannedBead {
  readonly #updatedAt: number
  readonly #content: string
  readonly #comments: string

  constructor({ columns, labels, metadata, edges, comments }: LineBead) {
    this.#updatedAt = columns.updated_at
    this.#content = digestOf([columns, labels, metadata, edges.toSorted(byEdge)])
    this.#comments = comments.length === 0 ? '' : digestOf(comments)
  }

  /** What becomes of a line that says `next`, where it changes nothing. Comments are only ever added. */
  outcomeOf(next: PlannedBead): 'skipped' | 'unchanged' | undefined {
    if (next.#updatedAt < this.#updatedAt) return 'skipped'
    const isSame = this.#content === next.#content && (next.#comments === '' || next.#comments === this.#comments)
    return isSame ? 'unchanged' : undefined
  }
}

const digestOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64')

/** The edges of the lines so far, in front of those of the store. */
export class PlannedEdges {
  /** Targets by relation, of the beads that lines are about: these replace what the store has. */
  readonly #down = new Map<string, ReadonlyMap<Relation, readonly string[]>>()
  /** Who has an edge to a target, in any relation. */
  readonly #up = new Map<string, Set<string>>()
  #size = 0

  put(id: string, edges: readonly LineEdge[]): void {
    for (const targets of this.#down.get(id)?.values() ?? []) {
      for (const target of targets) this.#up.get(target)?.delete(id)
      this.#size -= targets.length
    }
    const bound = edges.filter(({ type }) => relationOf(type) !== undefined)
    if (this.#size + bound.length > MAX_EDGES) return
    this.#size += bound.length
    this.#down.set(id, targetsOf(bound))
    for (const { depends_on_id } of bound) {
      const issues = this.#up.get(depends_on_id)
      if (issues === undefined) this.#up.set(depends_on_id, new Set([id]))
      else issues.add(id)
    }
  }

  /** The cycle that an edge closes, over both; as far as a write would look. */
  cycleOf(
    reader: Pick<Tx, 'get' | 'all'>,
    id: string,
    { type, depends_on_id: target }: LineEdge,
    looked: (beads: number) => void,
  ): Path | undefined {
    const relation = relationOf(type)
    if (relation === undefined) return undefined
    if (target === id) return [id, id]
    const { down, up } = this.#over(reader, relation)
    const fromTarget = walk(target, id, down)
    const fromIssue = walk(id, target, up)
    for (;;) {
      const below = fromTarget.next()
      if (below.done === true) return below.value === undefined ? undefined : [id, ...below.value]
      const above = fromIssue.next()
      if (above.done === true) return above.value === undefined ? undefined : [id, ...above.value.toReversed()]
      looked(2)
    }
  }

  #over(reader: Pick<Tx, 'get' | 'all'>, relation: Relation): Neighbours {
    const stored = neighboursIn(reader, relation)
    const down = (id: string) => {
      const planned = this.#down.get(id)
      return planned === undefined ? stored.down(id) : (planned.get(relation) ?? [])
    }
    const up = (id: string) => [
      ...stored.up(id).filter((issue) => !this.#down.has(issue)),
      ...[...(this.#up.get(id) ?? [])].filter((issue) => down(issue).includes(id)),
    ]
    return { down, up }
  }
}

type Path = readonly string[]

/** Breadth first; pauses after each bead; ends with the way from `start` to `goal`, or with undefined. */
function* walk(
  start: string,
  goal: string,
  next: (id: string) => readonly string[],
): Generator<undefined, Path | undefined, undefined> {
  const cameFrom = new Map<string, string>([[start, '']])
  for (const id of cameFrom.keys()) {
    if (cameFrom.size > MAX_WALKED) return undefined
    for (const neighbour of next(id)) {
      if (cameFrom.has(neighbour)) continue
      cameFrom.set(neighbour, id)
      if (neighbour === goal) return wayBack(cameFrom, goal)
    }
    yield undefined
  }
  return undefined
}

function targetsOf(edges: readonly LineEdge[]): ReadonlyMap<Relation, readonly string[]> {
  const targets = new Map<Relation, string[]>()
  for (const { type, depends_on_id } of edges) {
    const relation = relationOf(type)
    if (relation !== undefined) targets.set(relation, [...(targets.get(relation) ?? []), depends_on_id])
  }
  return targets
}
