/** The start of a molecule: all of it, or nothing (decisions 89, 90). */
import { inBudget } from '../../../../automation/bounded.ts'
import { hasMarks, renderText, TemplateFailure } from '../../../../automation/language.ts'
import type { Plan, Value } from '../../../../automation/plan.ts'
import type { Tx } from '../../../../kernel/database.ts'
import { invalidField, problem } from '../../../../kernel/problem.ts'
import { bounded, boundedTitle } from '../base/bounds.ts'
import type { PlanNode } from '../base/plans.ts'
import { type MoleculeRow, parseMolecule, rootOf } from '../base/rows.ts'
import { type EngineDeps, Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { TEXTS_OF_STEP_MS } from '../base/slice.ts'
import { wireMolecule } from '../base/wire.ts'
import { HUMAN } from '../steps/checks.ts'
import { insertList, leavesIn, openList, sizeOf } from '../steps/lists.ts'
import { beadValue } from '../steps/scope.ts'
import { freeBead, takeBead } from './attach.ts'
import { drain } from './drain.ts'
import { listen } from './listeners.ts'

export interface StartInput {
  readonly plan: Plan
  /** As the catalog tells it: to know later whether the formula is another one. */
  readonly formula_hash: string
  /** All of them, checked, with their defaults. */
  readonly vars: Readonly<Record<string, Value>>
  /** Instead of the title of the formula. */
  readonly title?: string | undefined
  /** Empty: of the city itself. */
  readonly rig: string
  /** Who does steps that say nothing; that of the formula where absent. */
  readonly target?: string | undefined
  /** What it is about. */
  readonly bead?: string | undefined
  readonly reassign?: boolean | undefined
  readonly replace?: boolean | undefined
  /** Milliseconds from its end to its deletion. */
  readonly keep?: number | undefined
  readonly order?: { readonly name: string; readonly run_id: string } | undefined
  readonly actor: string
}

const NEW = `INSERT INTO molecules (id, formula, formula_hash, plan, title, status, rig, target, bead, order_name, order_run_id, vars,
  actor, keep_ms, created_at, updated_at, since_seq, rows, total) VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const ROOT = `INSERT INTO molecule_steps (id, parent, node, path, phase, status, open, started_at, since_seq)
  VALUES (?, NULL, -1, '', 'group', 'active', ?, ?, ?)`

export function startMolecule(tx: Tx, deps: EngineDeps, input: StartInput): MoleculeRow {
  const { plan, actor } = input
  if (plan.steps.length === 0)
    throw invalidField('body.formula', 'has no steps: it is there to be extended, not to be started', plan.formula)
  refuseTooMuch(input.vars)
  if (input.bead !== undefined) freeBead(tx, deps, input.bead, input)
  const id = deps.beads.newId(tx, input.rig)
  const texts = inBudget(TEXTS_OF_STEP_MS, () => textsOf(deps, input, id))
  const now = deps.clock.now()
  deps.beads.create(
    tx,
    {
      issue_type: 'molecule',
      status: 'in_progress',
      id,
      title: texts.title,
      description: texts.description,
      rig: input.rig,
      priority: null,
      labels: [],
      metadata: { 'svc.formula_name': plan.formula, 'svc.formula_hash': input.formula_hash },
      assignee: null,
      routed_to: null,
      root: null,
      attempt: null,
    },
    actor,
  )
  const compiled = deps.plans.put(tx, plan)
  const rows = 1 + sizeOf(compiled.roots)
  tx.run(
    NEW,
    ...[id, plan.formula, input.formula_hash, compiled.hash, texts.title, input.rig, texts.target, input.bead ?? null],
    ...[input.order?.name ?? null, input.order?.run_id ?? null, JSON.stringify(input.vars), actor, input.keep ?? null],
    ...[now, now, deps.log.head, rows, leavesIn(compiled.roots)],
  )
  const molecule = need(tx, id)
  const root = rootOf(molecule.n)
  tx.run(ROOT, root, compiled.roots.length, now, deps.log.head)
  insertList(tx, root + 1, { id: root, path: '' }, compiled.roots)
  tellCreated(deps, tx, molecule)
  return goOn(new Run(tx, deps, molecule), input)
}

/** The event that tells of a molecule has room for them. */
const MAX_VARS_BYTES = 248 * 1024

function refuseTooMuch(vars: Readonly<Record<string, Value>>): void {
  const bytes = Buffer.byteLength(JSON.stringify(vars))
  if (bytes <= MAX_VARS_BYTES) return
  const message = `take ${bytes} bytes as JSON: at most ${MAX_VARS_BYTES}`
  throw problem('payload-too-large', `the variables ${message}`, { errors: [{ location: 'body.vars', message }] })
}

/** Takes what it is about, and begins what waits for nothing. */
function goOn(run: Run, { bead, plan, actor }: StartInput): MoleculeRow {
  if (bead !== undefined) takeBead(run, bead, actor)
  if (run.plan.listens) listen(run)
  if (plan.timeout !== undefined) run.timer(run.root, 'deadline', run.now + plan.timeout)
  openList(run, run.root)
  warnOfStrangers(run)
  return drain(run)
}

/** Names that nobody has: said at once, and not when the step that waits for them is reached. */
function warnOfStrangers(run: Run): void {
  const known = new Map<string, boolean>()
  for (const node of run.plan.nodes) {
    const word = node.step.assignee ?? node.step.target
    if (word === undefined || hasMarks(word) || word.trim() === '' || word === HUMAN) continue
    const isKnown = known.get(word) ?? run.deps.city.resolveTarget(word.trim(), run.molecule.rig).known
    known.set(word, isKnown)
    if (!isKnown) warnOfStranger(run, node, word.trim())
  }
}

/** The row of a step in what repeats is made later: the warning is of what it is in. */
function warnOfStranger(run: Run, node: PlanNode, target: string): void {
  const { id } = run.root
  for (let at: PlanNode | undefined = node; at !== undefined; at = at.parent) {
    const [row] = run.rows(ROW_OF, id, id + ROWS_PER_MOLECULE, at.index)
    if (row === undefined) continue
    const message = `nobody is called ${target}: step ${row.path} waits until somebody is`
    run.warn({ code: 'unknown_target', message, step: row.id, target })
    return
  }
}

const ROW_OF = 'SELECT * FROM molecule_steps WHERE id > ? AND id < ? AND node = ? ORDER BY id LIMIT 1'

function need(tx: Tx, id: string): MoleculeRow {
  const row = tx.get('SELECT * FROM molecules WHERE id = ?', id)
  if (row === undefined) throw new Error(`the molecule ${id} is not there`)
  return parseMolecule(row)
}

function tellCreated({ log }: EngineDeps, tx: Tx, molecule: MoleculeRow): void {
  const { id, actor } = molecule
  const payload = { molecule: wireMolecule(molecule, false) }
  log.append(tx, { type: 'molecule.created', actor, subject: id, payload })
}

interface StartTexts {
  readonly title: string
  readonly description: string | null
  readonly target: string
}

function textsOf(deps: EngineDeps, { plan, vars, title, rig, target, bead }: StartInput, id: string): StartTexts {
  const scope = {
    ...vars,
    bead: beadValue(deps.beads, bead ?? null),
    city: { ...deps.city.city },
    rig: rigOf(deps, rig),
    molecule: { id, formula: plan.formula },
  }
  const render = (what: 'title' | 'description' | 'target', text: string): string => {
    try {
      const said = renderText(text, scope, plan.fragments)
      return what === 'title' ? said : bounded(what, said)
    } catch (error) {
      if (error instanceof TemplateFailure)
        throw invalidField('body.formula', `its ${what}: ${error.message}`, plan.formula)
      throw error
    }
  }
  const meant = target ?? (plan.target === undefined ? '' : render('target', plan.target).trim())
  return {
    title: boundedTitle((title ?? render('title', plan.title)).trim(), plan.formula),
    description: plan.description === undefined ? null : render('description', plan.description),
    target: meant === '' ? '' : deps.city.resolveTarget(meant, rig).target,
  }
}

function rigOf(deps: EngineDeps, name: string): Value {
  const rig = deps.city.rig(name)
  return rig === undefined ? null : { name: rig.name, path: rig.path ?? null }
}
