/** From what somebody asks for to what the engine starts: which formula, with which variables, where, for whom. */
import type { CatalogFormula, CatalogPort } from '../../automation/catalog.ts'
import type { Plan, Value } from '../../automation/plan.ts'
import type { Target } from '../../automation/target.ts'
import { checkVars, readVarTexts, type VarIssue } from '../../automation/vars.ts'
import type { Tx } from '../../kernel/database.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { MoleculeRow } from './engine/base/rows.ts'
import type { StartInput } from './engine/life/start.ts'
import type { Molecules } from './engine/molecules.ts'
import type { Claimers } from './read/steps.ts'

/** What is asked for; where nothing is said it is as the formula says. */
export interface StartWish {
  readonly formula: string
  readonly vars?: Readonly<Record<string, Value>> | undefined
  /** Variables as templates gave them: texts are read by their types; `vars` win. */
  readonly texts?: Readonly<Record<string, Value>> | undefined
  readonly title?: string | undefined
  readonly rig?: string | undefined
  readonly bead?: string | undefined
  readonly target?: string | undefined
  readonly reassign?: boolean | undefined
  readonly replace?: boolean | undefined
  /** Milliseconds from its end to its deletion. */
  readonly keep?: number | undefined
  /** Milliseconds that the whole of it may take, instead of what the formula says. */
  readonly timeout?: number | undefined
  readonly order?: StartInput['order']
  readonly actor: string
}

export interface Surroundings extends Claimers {
  readonly catalog: Pick<CatalogPort, 'formula' | 'formulas'>
  /** What a rig says for all formulas; undefined where there is no such rig. */
  rigVars(rig: string): Readonly<Record<string, Value>> | undefined
  rigNames(): readonly string[]
  resolveTarget(target: string, rig: string): Target
  /** The rig of a bead; empty for the city, undefined where there is no such bead. */
  rigOfBead(bead: string): string | undefined
}

export class Starting {
  readonly #molecules: Molecules
  readonly #around: Surroundings

  constructor(molecules: Molecules, around: Surroundings) {
    this.#molecules = molecules
    this.#around = around
  }

  /** All of it or nothing; throws what is wrong with what is asked for. */
  start(tx: Tx, wish: StartWish): MoleculeRow {
    return this.#molecules.start(tx, this.#inputOf(wish))
  }

  #inputOf({
    formula: name,
    vars: said = {},
    texts = {},
    rig: inRig,
    bead,
    target,
    timeout,
    order,
    ...rest
  }: StartWish): StartInput {
    const rig = inRig ?? (bead === undefined ? undefined : this.#around.rigOfBead(bead)) ?? ''
    const rigVars = this.#rigVars(rig)
    const { plan, hash } = this.#formula(name, rig)
    const read = readVarTexts(plan.vars, texts)
    if (read.values === undefined) throw wrongVars(name, texts, read.issues)
    const vars = { ...read.values, ...said }
    const checked = checkVars(plan.vars, vars, rigVars)
    if (checked.values === undefined) throw wrongVars(name, vars, checked.issues)
    return {
      ...rest,
      plan: timeout === undefined ? plan : { ...plan, timeout },
      formula_hash: hash,
      vars: checked.values,
      rig,
      bead,
      ...(order === undefined ? {} : { order }),
      ...(target === undefined ? {} : { target: this.#around.resolveTarget(target, rig).target }),
    }
  }

  #rigVars(rig: string): Readonly<Record<string, Value>> {
    if (rig === '') return {}
    const vars = this.#around.rigVars(rig)
    if (vars === undefined) throw unknownName('rig-not-found', 'rig', rig, this.#around.rigNames())
    return vars
  }

  #formula(name: string, rig: string): CatalogFormula & { readonly plan: Plan } {
    const { catalog } = this.#around
    const where = rig === '' ? undefined : rig
    const found = catalog.formula(name, where)
    if (found === undefined) {
      const known = catalog.formulas(where).map((one) => one.name)
      throw unknownName('formula-not-found', 'formula', name, known)
    }
    return startable(found)
  }
}

function startable(formula: CatalogFormula): CatalogFormula & { readonly plan: Plan } {
  const { name, plan, issues, untrusted } = formula
  if (untrusted !== undefined)
    throw problem('untrusted-pack', `the formula ${name} is of the import ${untrusted}, which nobody has trusted yet`)
  if (plan === undefined || issues.length > 0) {
    const [first] = issues
    const why = first === undefined ? '' : `: ${first.file}:${first.line}: ${first.message}`
    throw problem('formula-invalid', `the formula ${name} is not valid${why}`, { issues: [...issues] })
  }
  if (plan.steps.length === 0)
    throw invalidField('body.formula', `${name} has no steps: it is there to be extended`, name)
  return { ...formula, plan }
}

function wrongVars(formula: string, given: Readonly<Record<string, Value>>, issues: readonly VarIssue[]) {
  const errors = issues.map(({ name, message, hint }) => ({
    location: `body.vars.${name}`,
    message: hint === undefined ? message : `${message}: ${hint}`,
    ...(Object.hasOwn(given, name) ? { value: given[name] } : {}),
  }))
  const said = errors.map(({ location, message }) => `${location}: ${message}`).join('; ')
  return problem('validation-failed', `${said} (of the formula ${formula})`, { errors })
}
