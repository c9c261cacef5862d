/** A graph of beads as a tree: what contains what by nesting, what waits for what beside it. */
import type { Bead, BeadGraphEdge, BeadGraphResponse, BLOCKING_TYPES } from '../../contract/beads.ts'
import { printable } from '../base/failure.ts'
import { cutTo } from '../print/text-width.ts'

/** Typed by the contract's list, whose module would bring the weight of its schemas. */
const BLOCKING: Readonly<Record<(typeof BLOCKING_TYPES)[number], true>> = {
  blocks: true,
  'waits-for': true,
  'conditional-blocks': true,
}
/** Deeper trees lose the left of their lines, so that their size stays in bounds. */
const MAX_INDENT = 120

export interface TreeStyle {
  /** Lines are cut there. */
  readonly width: number
  readonly paint: (state: string, text: string) => string
}

/** A line for each bead; members without a parent in the graph hang below its root. A circle of parents is cut open. */
export function graphLines({ root, beads, deps }: BeadGraphResponse, style: TreeStyle): readonly string[] {
  const children = childrenOf(root, beads, deps)
  const waits = blockersOf(beads, deps)
  const lines: string[] = []
  const drawn = new Set<string>()
  // A stack instead of recursion: a chain may be as long as the graph is large. What a circle keeps from it comes last.
  const open: { bead: Bead; lead: string; below: string }[] = [
    ...beads.toReversed().map((bead) => ({ bead, lead: '', below: '' })),
    { bead: root, lead: '', below: '' },
  ]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { bead, lead, below } = next
    if (drawn.has(bead.id)) continue
    drawn.add(bead.id)
    lines.push(lineOf(bead, lead, waits.get(bead.id) ?? [], style))
    const under = children.get(bead.id) ?? []
    for (const [back, child] of under.toReversed().entries()) {
      const last = back === 0
      open.push({
        bead: child,
        lead: `${below}${last ? '└─ ' : '├─ '}`,
        below: `${below}${last ? '   ' : '│  '}`.slice(-MAX_INDENT),
      })
    }
  }
  return lines
}

function childrenOf(root: Bead, beads: readonly Bead[], deps: readonly BeadGraphEdge[]) {
  const parents = new Map(deps.filter(({ kind }) => kind === 'parent-child').map(({ from, to }) => [to, from]))
  const others = beads.filter(({ id }) => id !== root.id)
  return Map.groupBy(others, ({ id }) => parents.get(id) ?? root.id)
}

/** Ids of what each bead waits for still. */
function blockersOf(beads: readonly Bead[], deps: readonly BeadGraphEdge[]): ReadonlyMap<string, readonly string[]> {
  const closed = new Set(beads.filter(({ status }) => status === 'closed').map(({ id }) => id))
  const waits = new Map<string, string[]>()
  for (const { from, to, kind } of deps) {
    if (!Object.hasOwn(BLOCKING, kind) || closed.has(from) || closed.has(to)) continue
    const found = waits.get(to)
    if (found === undefined) waits.set(to, [from])
    else found.push(from)
  }
  return waits
}

function lineOf(bead: Bead, lead: string, blockers: readonly string[], { width, paint }: TreeStyle): string {
  const [state, mark] = markOf(bead)
  const notes = [
    bead.assignee === undefined ? '' : ` (${bead.assignee})`,
    blockers.length > 0 ? ` ← waits for ${blockers.join(', ')}` : '',
    state === 'blocked' && blockers.length === 0 ? ' ← waits for something outside' : '',
  ]
  const text = printable(`${bead.id} ${bead.title}${notes.join('')}`.replaceAll(/[\t\n]+/g, ' '))
  return `${lead}${paint(state, mark)} ${cutTo(text, Math.max(16, width - lead.length - 2))}`
}

function markOf({ status, is_blocked: blocked }: Bead): readonly [state: string, mark: string] {
  if (status === 'closed') return ['closed', '✓']
  if (blocked) return ['blocked', '■']
  return status === 'in_progress' ? ['in_progress', '▶'] : ['open', '○']
}
