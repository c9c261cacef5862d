/** The beads of the benchmark: one in twenty open, the first thousand of them one graph. */

export const GRAPH_SIZE = 1_000
const BEGAN = Date.parse('2026-01-01T00:00:00Z')
const TYPES = ['task', 'bug', 'feature', 'chore'] as const
export const BEAD_TEXT =
  'What is to be done, in a few sentences of ordinary length: where to look, what to change. '.repeat(3)

export interface BenchEdge {
  readonly target: string
  readonly type: 'blocks' | 'parent-child'
}

export interface BenchBead {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly closed: boolean
  readonly priority: number
  readonly issue_type: string
  readonly labels: readonly string[]
  /** Of those that are done. */
  readonly assignee?: string
  readonly metadata: Readonly<Record<string, string>>
  readonly created_at: number
  readonly defer_until?: number
  readonly edges: readonly BenchEdge[]
  /** Its target is open. */
  readonly blocked: boolean
}

const idOf = (at: number): string => `al-${at.toString(36).padStart(5, '0')}`
export const ROOT = idOf(0)
/** Numbers of a tree begin here: a root, and its children. */
const TREE = 1_000_000
export const TREE_ROOT = idOf(TREE)

export function benchBead(at: number): BenchBead {
  const closed = at % 20 !== 0
  // Every other open one waits for the open one before it; every fourth closed one did for its neighbour.
  const blocked = at > 0 && at % 40 === 0
  const blocks = blocked ? at - 20 : at % 4 === 3 ? at - 1 : undefined
  return {
    id: idOf(at),
    title: `Number ${at} of the things that are to be done in ${TYPES[at % 4]}`,
    description: BEAD_TEXT,
    closed,
    priority: (at >> 3) % 5,
    issue_type: at === 0 ? 'epic' : (TYPES[(at >> 2) % 4] ?? 'task'),
    labels: [`area-${at % 7}`, `label-${(at >> 4) % 50}`],
    ...(closed ? { assignee: `worker-${(at >> 2) % 20}` } : {}),
    metadata: { team: `team-${(at >> 5) % 13}` },
    created_at: BEGAN + at * 1_000,
    edges: [
      ...(blocks === undefined ? [] : [{ target: idOf(blocks), type: 'blocks' } as const]),
      ...(at > 0 && at < GRAPH_SIZE ? [{ target: ROOT, type: 'parent-child' } as const] : []),
    ],
    blocked,
  }
}

/** What an import brings. */
export const LINES: Readonly<Record<string, (at: number) => string>> = {
  work: (at) => lineOf(benchBead(at)),
  deferred: (at) => lineOf({ ...openBead(at), defer_until: BEGAN }),
  tree: (at) => {
    const edges = at === 0 ? [] : [{ target: TREE_ROOT, type: 'parent-child' } as const]
    return lineOf({ ...openBead(TREE + at), edges })
  },
}

function openBead(at: number): BenchBead {
  const { assignee: _, ...bead } = benchBead(at)
  return { ...bead, closed: false, blocked: false, edges: [] }
}

/** As a line of the interchange. */
function lineOf(bead: BenchBead): string {
  const { id, closed, blocked: _, created_at, defer_until, edges, ...said } = bead
  const created = isoOf(created_at)
  return `${JSON.stringify({
    _type: 'issue',
    id,
    ...said,
    status: closed ? 'closed' : 'open',
    created_at: created,
    updated_at: created,
    ...(closed ? { closed_at: created, close_reason: 'done' } : {}),
    ...(defer_until === undefined ? {} : { defer_until: isoOf(defer_until) }),
    dependencies: edges.map(({ target, type }) => ({
      issue_id: id,
      depends_on_id: target,
      type,
      created_at: created,
    })),
  })}\n`
}

const isoOf = (ms: number): string => new Date(ms).toISOString()
