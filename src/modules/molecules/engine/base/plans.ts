/**
 * Plans as the engine reads them: the steps counted through, each with where it stands and what waits for it. Each is made
 * once from its JSON and kept for as long as it is in use.
 */
import { createHash } from 'node:crypto'
import type { Plan, PlanStep } from '../../../../automation/plan.ts'
import type { Database, Tx } from '../../../../kernel/database.ts'

export interface PlanNode {
  readonly index: number
  readonly step: PlanStep
  /** Undefined: in the first list of the plan. */
  readonly parent: PlanNode | undefined
  readonly children: readonly PlanNode[]
  /** Siblings that need it. */
  readonly dependents: readonly PlanNode[]
  /** Rows that it has when it is new: one, and those of its children where it does not repeat. */
  readonly size: number
  /** Rows that one item of it has; of a step that does not repeat the same as `size`. */
  readonly itemSize: number
}

export interface CompiledPlan {
  readonly hash: string
  readonly plan: Plan
  readonly nodes: readonly PlanNode[]
  /** The first list. */
  readonly roots: readonly PlanNode[]
  /** Some gate waits for an event. */
  readonly listens: boolean
}

const KEPT = 256

export class Plans {
  readonly #db: Pick<Database, 'get'>
  readonly #kept = new Map<string, CompiledPlan>()
  /** Those that were put: writing a large one down to hash it costs more than its rows. */
  readonly #seen = new WeakMap<Plan, CompiledPlan>()

  constructor(db: Pick<Database, 'get'>) {
    this.#db = db
  }

  get(hash: string): CompiledPlan {
    const known = this.#kept.get(hash)
    if (known !== undefined) return known
    const row = this.#db.get('SELECT plan FROM molecule_plans WHERE hash = ?', hash)
    if (row === undefined) throw new Error(`there is no plan ${hash}`)
    return this.#keep(indexed(hash, JSON.parse(String(row.plan))))
  }

  /** Stores it for one more molecule. */
  put(tx: Tx, plan: Plan): CompiledPlan {
    const compiled = this.#seen.get(plan) ?? this.#compile(plan)
    const { hash } = compiled
    if (tx.run('UPDATE molecule_plans SET molecules = molecules + 1 WHERE hash = ?', hash) === 0)
      tx.run('INSERT INTO molecule_plans (hash, plan, molecules) VALUES (?, ?, 1)', hash, JSON.stringify(plan))
    return compiled
  }

  /** One molecule less runs by it. */
  drop(tx: Tx, hash: string): void {
    tx.run('UPDATE molecule_plans SET molecules = molecules - 1 WHERE hash = ?', hash)
    tx.run('DELETE FROM molecule_plans WHERE hash = ? AND molecules <= 0', hash)
  }

  #compile(plan: Plan): CompiledPlan {
    const hash = createHash('sha256').update(JSON.stringify(plan)).digest('hex')
    const compiled = this.#kept.get(hash) ?? this.#keep(indexed(hash, plan))
    this.#seen.set(plan, compiled)
    return compiled
  }

  #keep(plan: CompiledPlan): CompiledPlan {
    const [oldest] = this.#kept.size >= KEPT ? this.#kept.keys() : []
    if (oldest !== undefined) this.#kept.delete(oldest)
    this.#kept.set(plan.hash, plan)
    return plan
  }
}

type Growing = { -readonly [K in keyof Omit<PlanNode, 'dependents'>]: PlanNode[K] } & {
  readonly dependents: PlanNode[]
}

function indexed(hash: string, plan: Plan): CompiledPlan {
  const nodes: PlanNode[] = []
  const roots = indexList(nodes, plan.steps, undefined)
  const listens = nodes.some(({ step: { body } }) => body.kind === 'gate' && body.gate.kind === 'event')
  return { hash, plan, nodes, roots, listens }
}

function indexList(nodes: PlanNode[], steps: readonly PlanStep[], parent: PlanNode | undefined): readonly PlanNode[] {
  const list = steps.map((step) => indexStep(nodes, step, parent))
  const byId = new Map(list.map((node) => [node.step.id, node]))
  for (const node of list) {
    for (const id of new Set(node.step.needs)) byId.get(id)?.dependents.push(node)
  }
  return list
}

function indexStep(nodes: PlanNode[], step: PlanStep, parent: PlanNode | undefined): Growing {
  const node: Growing = { index: nodes.length, step, parent, children: [], dependents: [], size: 1, itemSize: 1 }
  nodes.push(node)
  if (step.body.kind === 'group') node.children = indexList(nodes, step.body.steps, node)
  node.itemSize = node.children.reduce((sum, { size }) => sum + size, 1)
  if (step.repeat === undefined) node.size = node.itemSize
  return node
}
