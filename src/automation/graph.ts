/** Steps of a plan as nodes and edges (decision 105): of a formula, of a preview, and of a molecule as it runs. */
import type { StepGraph, StepGraphNode } from '../contract/automation/graph.ts'
import type { StepKind } from '../contract/automation/words.ts'
import type { PlanStep } from './plan.ts'

/** What is known of a step, or of an item of one, besides what the plan says. */
export type NodeFacts = Pick<StepGraphNode, 'title' | 'status' | 'included' | 'repeat'>

export interface GraphView {
  /** `path` with the numbers of items where those are shown. */
  facts(path: string, step: PlanStep): Partial<NodeFacts>
  /** Numbers of the items of a step that repeats, each to be shown by itself; undefined: they are folded into it. */
  items?(path: string, step: PlanStep): readonly number[] | undefined
  /** Of a step that is folded, what is in each of its items is shown once. */
  readonly showsPattern: boolean
}

export function graphOf(steps: readonly PlanStep[], view: GraphView): StepGraph {
  const graph: StepGraph = { nodes: [], edges: [] }
  new Drawing(graph, view).list(steps, undefined)
  return graph
}

class Drawing {
  readonly #graph: StepGraph
  readonly #view: GraphView

  constructor(graph: StepGraph, view: GraphView) {
    this.#graph = graph
    this.#view = view
  }

  list(steps: readonly PlanStep[], parent: string | undefined): void {
    const at = (id: string) => (parent === undefined ? id : `${parent}.${id}`)
    for (const step of steps) this.#step(step, at(step.id), parent)
    for (const { id, needs } of steps) for (const need of needs) this.#edge(at(need), at(id))
  }

  #step(step: PlanStep, path: string, parent: string | undefined): void {
    const { repeat } = step
    this.#node(step, path, parent, repeat?.kind ?? step.body.kind)
    const items = repeat === undefined ? undefined : this.#view.items?.(path, step)
    if (items === undefined && (repeat === undefined || this.#view.showsPattern)) this.#body(step, path)
    for (const item of items ?? []) {
      this.#node(step, `${path}.${item}`, path, step.body.kind)
      this.#body(step, `${path}.${item}`)
    }
    if (items === undefined || repeat?.kind !== 'loop') return
    for (const [index, item] of items.slice(1).entries()) this.#edge(`${path}.${items[index]}`, `${path}.${item}`)
  }

  #body({ body }: PlanStep, path: string): void {
    if (body.kind === 'group') this.list(body.steps, path)
  }

  #node(step: PlanStep, id: string, parent: string | undefined, kind: StepKind): void {
    const { title = step.title ?? step.id, status, included = 'unknown', repeat } = this.#view.facts(id, step)
    const repeats = kind === 'for_each' || kind === 'loop'
    this.#graph.nodes.push({
      id,
      ...(parent === undefined ? {} : { parent }),
      kind,
      title,
      ...(status === undefined ? {} : { status }),
      included,
      ...(repeats ? { repeat: repeat ?? {} } : {}),
    })
  }

  #edge(from: string, to: string): void {
    this.#graph.edges.push({ from, to })
  }
}
