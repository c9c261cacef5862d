/**
 * What the texts of a step may read (decisions 85, 87): variables, items, the steps before it, and what all is about. Only
 * what the texts name is looked up: most name nothing, and a molecule may have very many steps.
 */
import { inBudget } from '../../../../automation/bounded.ts'
import {
  evaluate,
  evaluateCondition,
  hasMarks,
  renderText,
  type Scope,
  TemplateFailure,
} from '../../../../automation/language.ts'
import type { Value } from '../../../../automation/plan.ts'
import { isoTime } from '../../../../kernel/clock.ts'
import type { EngineBead, EngineBeads } from '../base/ports.ts'
import { type MoleculeRow, parseFailure, parseValue, type StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'
import { TEXTS_OF_MOLECULE_MS, TEXTS_OF_STEP_MS } from '../base/slice.ts'

type Scoped = Record<string, Value | undefined>
const STEP_NAMES = /\bsteps\.([a-z][a-z0-9_-]*)/g

/** A text that could not be rendered: why the step fails. */
export { TemplateFailure }

/** Renders texts of a step, and evaluates its expressions, in its place. */
export class Texts {
  readonly #run: Run
  readonly #row: StepRow
  /** By what they name. */
  readonly #scopes = new Map<string, Scope>()

  constructor(run: Run, row: StepRow) {
    this.#run = run
    this.#row = row
  }

  render(text: string): string {
    return hasMarks(text) ? renderText(text, this.#scopeFor(text), this.#run.plan.plan.fragments) : text
  }

  record(texts: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, this.render(text)]))
  }

  /** A value whose texts are templates. */
  value(value: Value): Value {
    if (typeof value === 'string') return this.render(value)
    if (typeof value !== 'object' || value === null) return value
    if (isList(value)) return value.map((one) => this.value(one))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.value(one)]))
  }

  holds(expression: string): boolean {
    return evaluateCondition(expression, this.#scopeFor(expression))
  }

  evaluate(expression: string): Value {
    return evaluate(expression, this.#scopeFor(expression))
  }

  /** Variables alone. */
  get vars(): Readonly<Record<string, Value>> {
    return placeOf(this.#run, this.#row).vars
  }

  #scopeFor(text: string): Scope {
    const { fragments } = this.#run.plan.plan
    const read = text.includes('render') ? [text, ...Object.values(fragments)].join('\n') : text
    const steps = [...new Set([...read.matchAll(STEP_NAMES)].map(([, name = '']) => name))].sort()
    const bead = /\bbead\b/.test(read)
    const key = `${bead} ${steps.join(' ')}`
    const scope = this.#scopes.get(key) ?? scopeOf(this.#run, this.#row, steps, bead)
    this.#scopes.set(key, scope)
    return scope
  }
}

/**
 * Renders the texts of one step: they have a bound together, and so have all texts of a molecule. Without it a list of slow
 * ones would hold every city.
 */
export function rendering<T>(run: Run, work: () => T): T {
  if (run.textsMs > TEXTS_OF_MOLECULE_MS)
    throw new TemplateFailure(
      `the texts of this molecule have used ${TEXTS_OF_MOLECULE_MS / 1_000} s of processor time`,
    )
  const before = process.threadCpuUsage()
  try {
    return inBudget(TEXTS_OF_STEP_MS, work)
  } finally {
    const { user, system } = process.threadCpuUsage(before)
    run.spentOnTexts((user + system) / 1_000)
  }
}

const isList = (value: object): value is readonly Value[] => Array.isArray(value)

interface Place {
  readonly vars: Readonly<Record<string, Value>>
  /** Those that are around it, innermost first: by the names that they go by. */
  readonly items: Scoped
  /** Rows of steps whose siblings it may read, innermost first. */
  readonly levels: readonly StepRow[]
}

/** Goes outwards as far as the step may see. */
function placeOf(run: Run, row: StepRow): Place {
  const items: Scoped = {}
  const levels: StepRow[] = []
  for (let at = row; ; ) {
    if (at.item_index > 0) addItem(run, at, items)
    else levels.push(at)
    const container = at.parent === null ? run.root : run.row(at.parent)
    if (container.vars !== null) return { vars: recordOf(container.vars), items, levels }
    if (container.parent === null) return { vars: recordOf(run.molecule.vars), items, levels }
    at = container
  }
}

function addItem(run: Run, row: StepRow, items: Scoped): void {
  const item = row.item === null ? null : parseValue(row.item)
  const name = run.step(row).repeat?.as ?? 'item'
  if (!Object.hasOwn(items, name)) items[name] = item
  if (Object.hasOwn(items, 'index')) return
  items['item'] = item
  items['index'] = row.item_index
}

function recordOf(json: string): Readonly<Record<string, Value>> {
  return JSON.parse(json)
}

function scopeOf(run: Run, row: StepRow, steps: readonly string[], withBead: boolean): Scope {
  const { vars, items, levels } = placeOf(run, row)
  return {
    ...surroundingsOf(run),
    ...vars,
    ...items,
    ...(withBead ? { bead: beadValue(run.deps.beads, run.molecule.bead) } : {}),
    steps: Object.fromEntries(steps.map((id) => [id, stepValue(run, levels, id) ?? null])),
    attempt: row.attempt,
    previous: previousValue(run, row),
  }
}

/** What every text of a molecule sees, whatever step it is of. */
export function surroundingsOf({ molecule, deps: { city } }: Pick<Run, 'molecule' | 'deps'>): Record<string, Value> {
  return { molecule: moleculeValue(molecule), city: { ...city.city }, rig: rigValue(city.rig(molecule.rig)) }
}

const moleculeValue = ({ id, title, formula, target, bead, created_at }: MoleculeRow): Value => ({
  id,
  title,
  formula,
  target,
  bead_id: bead,
  created_at: isoTime(created_at),
})

const rigValue = (rig: { readonly name: string; readonly path?: string } | undefined): Value =>
  rig === undefined ? null : { name: rig.name, path: rig.path ?? null }

/** The bead that a molecule is about, with its members; null where there is none. */
export function beadValue(beads: EngineBeads, id: string | null): Value {
  const bead = id === null ? undefined : beads.find(id)
  if (bead === undefined) return null
  const members = beads.members(bead.id).map(({ id: member, title, status }) => ({ id: member, title, status }))
  const { title, description, priority, metadata } = bead
  return { id: bead.id, title, description, priority, metadata: { ...metadata }, members }
}

function stepValue(run: Run, levels: readonly StepRow[], id: string): Value | undefined {
  for (const level of levels) {
    const siblings = run.node(level).parent?.children ?? run.plan.roots
    const node = siblings.find(({ step }) => step.id === id)
    const row = node === undefined ? undefined : run.child(level.parent ?? run.root.id, node)
    if (row !== undefined) return valueOfStep(run, row)
  }
  return undefined
}

/** Where the work of a bead was done. */
export const workPlaceOf = (run: Pick<Run, 'deps'>, { session_id }: Pick<EngineBead, 'session_id'>) =>
  session_id === null ? undefined : run.deps.city.workPlace(session_id)

function valueOfStep(run: Run, row: StepRow): Value {
  const bead = row.bead === null ? undefined : run.deps.beads.find(row.bead)
  const place = bead === undefined ? undefined : workPlaceOf(run, bead)
  return present({
    work_dir: place?.path ?? null,
    branch: bead?.work_branch ?? place?.branch ?? null,
    outcome: outcomeOf(row),
    output: outputOf(run, row),
    assignee: row.assignee,
    commit: row.work_commit,
    bead_id: row.bead,
    failure_reason: parseFailure(row.failure)?.message ?? null,
  })
}

/** Without what there is none of: a text that prints it fails, instead of printing nothing. */
function present(record: Readonly<Record<string, Value>>): Value {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
}

const OUTCOMES: { readonly [S in StepRow['status']]?: string } = {
  completed: 'pass',
  failed: 'fail',
  skipped: 'skipped',
  canceled: 'canceled',
}
const outcomeOf = ({ status }: StepRow): Value => OUTCOMES[status] ?? null

/** What a pass reported; of a group by child, of a repeat by item. */
export function outputOf(run: Pick<Run, 'node' | 'children'>, row: StepRow): Value {
  const node = run.node(row)
  if (node.step.repeat !== undefined && row.item_index === 0)
    return run.children(row).map((item) => outputOf(run, item))
  if (node.step.body.kind !== 'group') return row.output === null ? null : parseValue(row.output)
  return Object.fromEntries(run.children(row).map((child) => [idOf(run, child), outputOf(run, child)]))
}

const idOf = (run: Pick<Run, 'node'>, row: StepRow): string => run.node(row).step.id

/**
 * How the attempt before this one came out; of a first attempt that before the one of the nearest group around it that began
 * anew, as far as the step may see. Null where nothing did.
 */
function previousValue(run: Run, row: StepRow): Value {
  for (let at = row; ; at = run.row(at.parent)) {
    if (at.attempt > 1) return attemptValue(run, at)
    if (at.parent === null || (at !== row && at.vars !== null)) return null
  }
}

function attemptValue(run: Run, row: StepRow): Value {
  const attempt = run.tx.get(
    'SELECT outcome, bead, assignee, failure, output FROM molecule_attempts WHERE step = ? AND attempt < ? ORDER BY attempt DESC LIMIT 1',
    row.id,
    row.attempt,
  )
  if (attempt === undefined) return null
  const failure = attempt.failure === null ? undefined : parseFailure(String(attempt.failure))
  return present({
    outcome: String(attempt.outcome),
    bead_id: attempt.bead === null ? null : String(attempt.bead),
    assignee: attempt.assignee === null ? null : String(attempt.assignee),
    output: attempt.output === null ? null : parseValue(String(attempt.output)),
    failure_reason: failure?.message ?? null,
  })
}
