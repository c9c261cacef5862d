/** The graph of a molecule (decision 105): what repeats is folded into counts, unless somebody wants to see its items. */
import { inBudget } from '../../../automation/bounded.ts'
import type { StepGraph, StepGraphNode } from '../../../contract/automation/graph.ts'
import type { Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import type { PlanNode } from '../engine/base/plans.ts'
import { parseStep, rootOf, type StepRow } from '../engine/base/rows.ts'
import { ROWS_PER_MOLECULE } from '../engine/base/schema.ts'
import { kindOf, type MoleculeAndPlan, needsOf, nodeOf, titleOf } from './steps.ts'

/** Rows with the same place in the plan, which are one node where they are folded. */
interface Spot {
  readonly path: string
  readonly parent: string | undefined
  readonly rows: readonly StepRow[]
  readonly isFolded: boolean
}

/** Processor time of titles of steps that have not begun. */
const TITLES_MS = 50

export function graphOf(reader: Pick<Tx, 'all'>, of: MoleculeAndPlan, expand: readonly string[]): StepGraph {
  const root = rootOf(of.molecule.n)
  const rows = reader
    .all('SELECT * FROM molecule_steps WHERE id > ? AND id < ? AND superseded = 0', root, root + ROWS_PER_MOLECULE)
    .map(parseStep)
  return inBudget(TITLES_MS, () => new Graph(of, rows, expand).draw(root))
}

class Graph {
  readonly #of: MoleculeAndPlan
  readonly #below: ReadonlyMap<number | null, readonly StepRow[]>
  readonly #expanded: ReadonlySet<string>
  readonly #nodes: StepGraphNode[] = []
  readonly #edges: { from: string; to: string }[] = []

  constructor(of: MoleculeAndPlan, rows: readonly StepRow[], expand: readonly string[]) {
    const unknown = expand.find((path) => !rows.some((row) => row.path === path))
    if (unknown !== undefined)
      throw problem('molecule-step-not-found', `the molecule ${of.molecule.id} has no step ${unknown}`, {
        errors: [{ location: 'query.expand', message: 'is the path of no step', value: unknown }],
      })
    this.#of = of
    this.#below = Map.groupBy(rows, ({ parent }) => parent)
    this.#expanded = new Set(expand)
  }

  draw(root: number): StepGraph {
    this.#list(this.#of.plan.roots, [root], undefined, false)
    return { nodes: this.#nodes, edges: this.#edges }
  }

  /** Steps of a list, or of many lists that are folded into one. */
  #list(nodes: readonly PlanNode[], parents: readonly number[], parent: string | undefined, isFolded: boolean): void {
    const rows = parents.flatMap((id) => this.#below.get(id) ?? [])
    const byNode = Map.groupBy(rows, ({ node }) => node)
    const prefix = parent === undefined ? '' : `${parent}.`
    for (const node of nodes) {
      const { id, needs } = node.step
      for (const need of needs) this.#edges.push({ from: `${prefix}${need}`, to: `${prefix}${id}` })
      this.#step(node, { path: `${prefix}${id}`, parent, rows: byNode.get(node.index) ?? [], isFolded })
    }
  }

  #step(node: PlanNode, spot: Spot): void {
    const { path, rows, isFolded } = spot
    const isRepeat = node.step.repeat !== undefined
    const items = isRepeat ? rows.flatMap(({ id }) => this.#below.get(id) ?? []) : []
    this.#nodes.push(this.#node(node, spot, isRepeat ? items : isFolded ? rows : undefined))
    const lists = (isRepeat ? items : rows).map(({ id }) => id)
    if (isRepeat && !isFolded && this.#expanded.has(path)) this.#items(node, path, items)
    else this.#list(node.children, lists, path, isFolded || isRepeat)
  }

  #items(node: PlanNode, parent: string, items: readonly StepRow[]): void {
    for (const item of items) {
      const spot = { path: item.path, parent, rows: [item], isFolded: false }
      this.#nodes.push({ ...this.#node(node, spot, undefined), kind: kindOf(node, item.item_index) })
      for (const need of needsOf(item, nodeOf(this.#of, item))) this.#edges.push({ from: need, to: item.path })
      this.#list(node.children, [item.id], item.path, false)
    }
  }

  #node(node: PlanNode, { path, parent, rows, isFolded }: Spot, folded: readonly StepRow[] | undefined): StepGraphNode {
    const [row] = rows
    const own = isFolded ? undefined : row
    const counts = folded === undefined ? undefined : Map.groupBy(folded, ({ status }) => status)
    return {
      id: path,
      ...(parent === undefined ? {} : { parent }),
      kind: kindOf(node, 0),
      title: own?.title ?? titleOf(this.#of, node),
      ...(own === undefined ? {} : { status: own.status }),
      included: includedOf(node, own),
      ...(counts === undefined || folded === undefined
        ? {}
        : {
            repeat: {
              count: folded.length,
              statuses: Object.fromEntries([...counts].map(([status, all]) => [status, all.length])),
            },
          }),
    }
  }
}

/** A condition is known once its step has begun, or was left out. */
function includedOf({ step }: PlanNode, row: StepRow | undefined): StepGraphNode['included'] {
  if (row?.reason === 'condition') return 'no'
  if (row !== undefined && row.phase !== 'pending') return 'yes'
  return step.condition === undefined && row !== undefined ? 'yes' : 'unknown'
}
