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
  /** Names of `texts` that hold data of others, such as the payload of an event. */
  readonly derived?: readonly string[] | undefined
  /** Whether the caller may set a command freely (the right `city`); everybody else chooses a listed one. */
  readonly setsCommands: boolean
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
  /** Commands that everybody may choose: `[formulas] commands` of the city. */
  commands(): readonly string[]
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
    derived = [],
    setsCommands,
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
    const chosen = setsCommands ? derived.filter((one) => !Object.hasOwn(said, one)) : Object.keys(vars)
    refuseCommands(plan, checked.values, chosen, (one) => [...this.#around.commands(), rigVars[one]])
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

/**
 * A command runs as the user of the supervisor, outside of every container: whoever only works in the city chooses one that
 * its formula, its rig or its city lists.
 */
function refuseCommands(
  { formula, vars }: Plan,
  values: Readonly<Record<string, Value>>,
  names: readonly string[],
  listedFor: (name: string) => readonly (Value | undefined)[],
): void {
  for (const name of names) {
    const declared = Object.hasOwn(vars, name) ? vars[name] : undefined
    const value = values[name]
    if (declared?.type !== 'command' || typeof value !== 'string' || value.trim() === '') continue
    const listed = [declared.default, ...(declared.enum ?? []), ...listedFor(name)]
    if (listed.includes(value)) continue
    throw unlistedCommand(formula, name, value, listed)
  }
}

function unlistedCommand(formula: string, name: string, value: string, listed: readonly (Value | undefined)[]) {
  const choices = [...new Set(listed)].filter((one) => typeof one === 'string' && one.trim() !== '').slice(0, 20)
  const known = choices.length === 0 ? 'none is listed' : `listed are ${choices.map((one) => `\`${one}\``).join(', ')}`
  const message = `is a command that the city does not list (${known}): setting another one needs the right "city"`
  const hint = 'list it in city.toml: `[formulas]` with `commands = ["…"]`'
  const errors = [{ location: `body.vars.${name}`, message: `${message}; ${hint}`, value }]
  return problem('forbidden', `body.vars.${name} of the formula ${formula} ${message}; ${hint}`, { errors })
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
