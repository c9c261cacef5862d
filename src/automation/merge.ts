/** `extends` (decision 85): a formula with what its parents say, before anything is compiled. */
import { type IssueList, nearestHint } from '../files/issues.ts'
import type { ScalarNode } from '../files/toml.ts'
import { type FormulaDraft, readFormulaFile, type StepDraft, type VarDraft } from './draft.ts'
import type { SourceFile } from './source.ts'

/** Where files are looked up: of each name the one of the strongest layer. */
export interface FormulaSources {
  readonly formula: (name: string) => SourceFile | undefined
  /** Text of `template-fragments/<name>.template.md`. */
  readonly fragment: (name: string) => string | undefined
  /** Asked for hints only. */
  readonly formulaNames: () => Iterable<string>
  readonly fragmentNames: () => Iterable<string>
}

/** A formula with everything that it inherits. */
export interface MergedFormula extends Omit<FormulaDraft, 'extends'> {
  readonly name: string
}

export class Merger {
  readonly #sources: FormulaSources
  readonly #issues: IssueList
  readonly #merged = new Map<string, MergedFormula | undefined>()
  /** Names of the formulas that are being merged, outermost first. */
  readonly #path: string[] = []

  constructor(sources: FormulaSources, issues: IssueList) {
    this.#sources = sources
    this.#issues = issues
  }

  /** The formula of this name; undefined where its file is none. What is wrong with any file on the way is reported once. */
  merge(name: string): MergedFormula | undefined {
    if (this.#merged.has(name)) return this.#merged.get(name)
    const source = this.#sources.formula(name)
    if (source === undefined) return undefined
    const { draft, issues } = readFormulaFile(name, source)
    this.#issues.errors.push(...issues.errors)
    this.#issues.warnings.push(...issues.warnings)
    this.#path.push(name)
    const merged = draft === undefined ? undefined : this.#withParents(name, draft)
    this.#path.pop()
    this.#merged.set(name, merged)
    return merged
  }

  /** Says that there is no formula of this name. */
  reportMissing(node: ScalarNode, key: string): void {
    const name = String(node.value)
    this.#issues.error(node.at, key, `there is no formula \`${name}\``, nearestHint(name, this.#sources.formulaNames()))
  }

  /** Of everything that was merged so far. */
  get names(): readonly string[] {
    return [...this.#merged.keys()]
  }

  has(name: string): boolean {
    return this.#sources.formula(name) !== undefined
  }

  #withParents(name: string, draft: FormulaDraft): MergedFormula {
    const parents = draft.extends.flatMap((node, index) => this.#parent(node, `extends[${index}]`) ?? [])
    const first = <T>(own: T | undefined, of: (parent: MergedFormula) => T | undefined): T | undefined =>
      own ?? parents.map(of).find((value) => value !== undefined)
    return {
      name,
      source: draft.source,
      at: draft.at,
      title: first(draft.title, ({ title }) => title),
      description: first(draft.description, ({ description }) => description),
      target: first(draft.target, ({ target }) => target),
      timeout: first(draft.timeout, ({ timeout }) => timeout),
      vars: varsOf(draft, parents),
      steps: this.#steps(draft, parents),
    }
  }

  #parent(node: ScalarNode, key: string): MergedFormula | undefined {
    const name = String(node.value)
    if (this.#path.includes(name)) {
      const circle = [...this.#path.slice(this.#path.indexOf(name)), name].join(' → ')
      this.#issues.error(node.at, key, `\`${name}\` extends itself: ${circle}`)
      return undefined
    }
    if (!this.has(name)) this.reportMissing(node, key)
    return this.merge(name)
  }

  // A child's step stands where the parent's stood; the others come behind.
  #steps(draft: FormulaDraft, parents: readonly MergedFormula[]): readonly StepDraft[] {
    const steps = new Map<string, StepDraft>()
    const owners = new Map<string, string>()
    for (const parent of parents) {
      for (const step of parent.steps) {
        const owner = owners.get(step.id)
        if (owner !== undefined && owner !== parent.name) this.#reportTwin(draft, step.id, owner, parent.name)
        owners.set(step.id, parent.name)
        if (!steps.has(step.id)) steps.set(step.id, step)
      }
    }
    for (const step of draft.steps) steps.set(step.id, step)
    return [...steps.values()]
  }

  #reportTwin(draft: FormulaDraft, id: string, first: string, second: string): void {
    const node = draft.extends.find(({ value }) => value === second)
    this.#issues.error(
      node?.at ?? draft.at,
      'extends',
      `\`${first}\` and \`${second}\` both have a step \`${id}\``,
      'rename one of them',
    )
  }
}

/** Of one name the child's own, else that of the first parent. */
function varsOf(draft: FormulaDraft, parents: readonly MergedFormula[]): ReadonlyMap<string, VarDraft> {
  const vars = new Map(draft.vars)
  for (const [name, declared] of parents.flatMap((parent) => [...parent.vars])) {
    if (!vars.has(name)) vars.set(name, declared)
  }
  return vars
}
