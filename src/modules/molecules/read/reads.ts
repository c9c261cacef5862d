/** What is asked about molecules: indexed look-ups; no read looks at more than one molecule's steps. */
import { inBudget } from '../../../automation/bounded.ts'
import type { Value } from '../../../automation/plan.ts'
import type { MoleculeStepView } from '../../../contract/automation/molecules.ts'
import type { MoleculeStatus } from '../../../contract/automation/words.ts'
import type { Tx } from '../../../kernel/database.ts'
import { PAGE_BYTES, type Page } from '../../../kernel/page.ts'
import type { CompiledPlan, PlanNode, Plans } from '../engine/base/plans.ts'
import {
  isLive,
  type MoleculeRow,
  parseMolecule,
  parseStep,
  parseValue,
  parseWarnings,
  rootOf,
  type StepRow,
  type StepWarning,
} from '../engine/base/rows.ts'
import { attemptsOf, type Claimers, type MoleculeAndPlan, wireStep } from './steps.ts'
import { countSteps, type StepsFilter, stepsBehind } from './walk.ts'

type Reader = Pick<Tx, 'get' | 'all'>

/** All must hold; of one with several values any. */
export interface MoleculeFilter {
  readonly status?: readonly MoleculeStatus[] | undefined
  readonly formula?: readonly string[] | undefined
  readonly rig?: readonly string[] | undefined
  readonly target?: readonly string[] | undefined
  readonly bead?: readonly string[] | undefined
  readonly order?: readonly string[] | undefined
}

const COLUMNS = {
  status: 'status',
  formula: 'formula',
  rig: 'rig',
  target: 'target',
  bead: 'bead',
  order: 'order_name',
} as const
const FILTERS = ['status', 'formula', 'rig', 'target', 'bead', 'order'] as const

/** Processor time of titles of steps that have not begun, in one answer. */
const TITLES_MS = 50

const WAITING =
  "SELECT 1 FROM molecule_steps WHERE id = ? AND (phase IN ('pending', 'repeat', 'group') OR (phase = 'work' AND status = 'ready'))"

export class MoleculeReads {
  readonly #db: Reader
  readonly #plans: Plans
  readonly #claimers: Claimers

  constructor(db: Reader, plans: Plans, claimers: Claimers) {
    this.#db = db
    this.#plans = plans
    this.#claimers = claimers
  }

  find(id: string): MoleculeRow | undefined {
    const row = this.#db.get('SELECT * FROM molecules WHERE id = ?', id)
    return row === undefined ? undefined : parseMolecule(row)
  }

  /** With what titles of its steps may read. */
  of(molecule: MoleculeRow): MoleculeAndPlan {
    let known: Value | undefined
    const about = (): Value => {
      known ??= molecule.bead === null ? null : this.#claimers.about(molecule.bead)
      return known
    }
    return { molecule, plan: this.planOf(molecule), about }
  }

  planOf(molecule: MoleculeRow): CompiledPlan {
    return this.#plans.get(molecule.plan)
  }

  /** Those of steps that still wait for somebody, who is still not known. */
  warnings(molecule: MoleculeRow): readonly StepWarning[] {
    if (!isLive(molecule.status)) return []
    return parseWarnings(molecule.warnings).filter(
      ({ step, target }) => this.#waits(step) && (target === undefined || !this.#claimers.knows(target)),
    )
  }

  /** Ids of live molecules of which something was odd when a step began to wait. */
  withWarnings(): readonly string[] {
    return this.#db
      .all("SELECT id FROM molecules WHERE status IN ('pending', 'active', 'waiting') AND warnings IS NOT NULL")
      .map(({ id }) => String(id))
  }

  #waits(step: number | undefined): boolean {
    return step !== undefined && this.#db.get(WAITING, step) !== undefined
  }

  /** Newest first, from below `before` on. */
  list(filter: MoleculeFilter, limit: number, before: number | undefined): readonly MoleculeRow[] {
    const { where, values } = conditionsOf(filter)
    const all = [...where, ...(before === undefined ? [] : ['n < ?'])]
    return this.#db
      .all(
        `SELECT * FROM molecules ${all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`} ORDER BY n DESC LIMIT ?`,
        ...values,
        ...(before === undefined ? [] : [before]),
        limit,
      )
      .map(parseMolecule)
  }

  /** How many there are of each status, whatever status is asked for. */
  counts({ status: _, ...filter }: MoleculeFilter): Record<MoleculeStatus, number> {
    const counts = { pending: 0, active: 0, waiting: 0, completed: 0, failed: 0, canceled: 0 }
    const { where, values } = conditionsOf(filter)
    const kept = filter.bead === undefined && filter.order === undefined
    const condition = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`
    const rows = this.#db.all(
      kept
        ? `SELECT status, sum(molecules) AS count FROM molecule_counts ${condition} GROUP BY status`
        : `SELECT status, count(*) AS count FROM molecules ${condition} GROUP BY status`,
      ...values,
    )
    for (const { status, count } of rows) if (isKey(counts, status)) counts[status] = Number(count)
    return counts
  }

  /** A page of steps in the order of the formula, items behind what repeats, and how many there are. */
  steps(molecule: MoleculeRow, filter: StepsFilter, page: Page<readonly ['number']>) {
    const of = this.of(molecule)
    const rows = stepsBehind(this.#db, { molecule, nodes: of.plan.nodes }, filter, page.after?.[0])
    const shown = inBudget(TITLES_MS, () =>
      page.of(
        rows,
        (row) => [row.id],
        (row) => wireStep(of, row, this.#claimers),
      ),
    )
    return { ...shown, total: countSteps(this.#db, molecule, filter) }
  }

  /** The row at a path, the one of now where the group around it began anew. */
  step(molecule: MoleculeRow, path: string): StepRow | undefined {
    const root = rootOf(molecule.n)
    let list = root
    let nodes = this.planOf(molecule).roots
    let found: StepRow | undefined
    const parts = path.split('.')
    for (let at = 0; at < parts.length; at++) {
      const node = nodes.find(({ step }) => step.id === parts[at])
      if (node === undefined) return undefined
      found = this.#child(list, node, 0)
      if (found !== undefined && node.step.repeat !== undefined && at + 1 < parts.length) {
        at++
        found = this.#child(found.id, node, Number(parts[at]))
      }
      if (found === undefined) return undefined
      list = found.id
      nodes = node.children
    }
    // Numbers have other spellings.
    return found?.path === path ? found : undefined
  }

  /** A step with its attempts, and what it reported or what is in it did. */
  view(molecule: MoleculeRow, path: string): MoleculeStepView | undefined {
    const row = this.step(molecule, path)
    if (row === undefined) return undefined
    const of = this.of(molecule)
    const attempts = [...attemptsOf(this.#db, row)]
    return inBudget(TITLES_MS, () => ({
      ...wireStep(of, row, this.#claimers),
      ...this.#outputOf(molecule, row),
      attempts,
    }))
  }

  /** None where what they reported does not fit: it is not even read. */
  #fitting(row: StepRow, room: { left: number }): readonly StepRow[] {
    const { bytes } = this.#db.get(BYTES_IN, row.id) ?? {}
    room.left -= Number(bytes ?? 0)
    if (room.left < 0) return []
    return this.#db
      .all('SELECT * FROM molecule_steps WHERE parent = ? AND superseded = 0 ORDER BY node, item_index, id', row.id)
      .map(parseStep)
  }

  #child(list: number, node: PlanNode, item: number): StepRow | undefined {
    const row = this.#db.get(
      'SELECT * FROM molecule_steps WHERE parent = ? AND node = ? AND item_index = ? AND superseded = 0',
      list,
      node.index,
      item,
    )
    return row === undefined ? undefined : parseStep(row)
  }

  /** What it reported; of what contains others all of that, where it fits into an answer. */
  #outputOf(molecule: MoleculeRow, row: StepRow): Pick<MoleculeStepView, 'output' | 'output_left_out'> {
    const room = { left: PAGE_BYTES / 2 }
    const output = this.#output(molecule, row, room)
    if (room.left < 0) return { output_left_out: true }
    return output === null ? {} : { output }
  }

  #output(molecule: MoleculeRow, row: StepRow, room: { left: number }): unknown {
    const { nodes } = this.planOf(molecule)
    const node = (of: StepRow) => nodes[of.node]
    const outputOf = (of: StepRow): unknown => {
      if (room.left < 0) return null
      const { repeat, body } = node(of)?.step ?? {}
      if (repeat !== undefined && of.item_index === 0) return this.#fitting(of, room).map(outputOf)
      if (body?.kind !== 'group') return of.output === null ? null : parseValue(of.output)
      return Object.fromEntries(this.#fitting(of, room).map((child) => [node(child)?.step.id ?? '', outputOf(child)]))
    }
    return outputOf(row)
  }
}

const BYTES_IN = `SELECT sum(64 + coalesce(octet_length(output), 0)) AS bytes FROM molecule_steps
  WHERE parent = ? AND superseded = 0`

const isKey = <T extends object>(record: T, key: unknown): key is keyof T =>
  typeof key === 'string' && Object.hasOwn(record, key)

function conditionsOf(filter: MoleculeFilter): {
  readonly where: readonly string[]
  readonly values: readonly string[]
} {
  const where: string[] = []
  const values: string[] = []
  for (const name of FILTERS) {
    const wanted = filter[name]
    if (wanted === undefined || wanted.length === 0) continue
    const [only] = wanted
    const isOne = wanted.length === 1 && only !== undefined
    where.push(isOne ? `${COLUMNS[name]} = ?` : `${COLUMNS[name]} IN (SELECT value FROM json_each(?))`)
    values.push(isOne ? only : JSON.stringify(wanted))
  }
  return { where, values }
}
