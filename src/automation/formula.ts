/** Formulas (decisions 80–89): texts to a plan, or everything that is wrong with them. */

import { MAX_LEVELS, MAX_STEPS, ON_FAIL } from '../contract/automation/formula-file.ts'
import { childKey } from '../files/check-table.ts'
import { type ConfigIssue, fileStart, IssueList, sortIssues } from '../files/issues.ts'
import { type ConfigNode, numberOf, type ScalarNode, type TableNode, tableOf, textOf } from '../files/toml.ts'
import { given } from '../kernel/present.ts'
import { inBudget } from './bounded.ts'
import { durationOf, placedOf, type StepDraft, type VarDraft } from './draft.ts'
import { commandsOf, givenProblem } from './given.ts'
import { hasMarks } from './language.ts'
import { type FormulaSources, type MergedFormula, Merger } from './merge.ts'
import { idsBelow, readNeeds, type StepNeeds } from './order-of-steps.ts'
import type { Plan, PlanBody, PlanCheck, PlanGate, PlanRepeat, PlanScope, PlanStep, Value } from './plan.ts'
import {
  booleanOf,
  jsonOf,
  listNodeOf,
  type PlacedText,
  type SourceFile,
  scalarOf,
  textMapOf,
  textsOf,
} from './source.ts'
import { execOf, isMoment, retryOf } from './step-parts.ts'
import { type Names, placed, type ReadableSteps, TextChecker } from './text-check.ts'
import { PATTERNS_LIMIT_MS, type VarDeclarations } from './vars.ts'

export type { FormulaSources } from './merge.ts'
export type { SourceFile } from './source.ts'

export interface CompiledFormula {
  /** Absent where there is any issue. Without steps it can be extended, but not started. */
  readonly plan?: Plan
  readonly issues: readonly ConfigIssue[]
  /** What the file says of itself as far as it could be read, for lists that show broken formulas too. */
  readonly definition: FormulaDefinition
}

export interface FormulaDefinition {
  readonly title?: string
  readonly description?: string
  readonly vars: VarDeclarations
  /** Names of the formulas that it extends or expands, directly or by way of others. */
  readonly uses: readonly string[]
}

/** Compiles the formula `name` with all that it extends, expands and renders. */
export function compileFormula(name: string, sources: FormulaSources): CompiledFormula {
  const issues = new IssueList()
  const compiler = new Compiler(sources, issues)
  // Values that its steps hand to others are checked by patterns too.
  const compiled = inBudget(PATTERNS_LIMIT_MS, () => compiler.compile(name))
  const sorted = sortIssues(issues.errors)
  const definition = { ...compiled?.definition, vars: compiled?.plan.vars ?? {}, uses: compiler.uses(name) }
  return compiled === undefined || sorted.length > 0
    ? { issues: sorted, definition }
    : { plan: compiled.plan, issues: [], definition }
}

/** What the steps of one list see of what is around them. */
interface Around {
  readonly names: ReadonlySet<string>
  readonly steps: ReadableSteps
  readonly level: number
  /** Variables of the type `command`, as far as no item hides them. */
  readonly commands: ReadonlySet<string>
  /** Ids of all steps of the formula. */
  readonly ids: ReadonlySet<string>
}

/** Steps of a list or of a formula, how many there are with those below, and how many levels. */
interface Compiled {
  readonly steps: readonly PlanStep[]
  readonly size: number
  readonly depth: number
  /** Of a formula that is expanded: how long it may take where the step says nothing. */
  readonly timeout?: number | undefined
}

const NO_STEPS: Compiled = { steps: [], size: 0, depth: 0 }
const EVERYWHERE = ['bead', 'molecule', 'city', 'rig'] as const
const OF_ATTEMPT = ['attempt', 'previous'] as const

class Compiler {
  readonly #issues: IssueList
  readonly #merger: Merger
  readonly #texts: TextChecker
  readonly #inlined = new Map<string, Compiled>()
  /** Names of the formulas that are being put into each other, outermost first. */
  readonly #path: string[] = []

  constructor(sources: FormulaSources, issues: IssueList) {
    this.#issues = issues
    this.#merger = new Merger(sources, issues)
    this.#texts = new TextChecker(issues, sources)
  }

  compile(name: string): { plan: Plan; definition: Pick<FormulaDefinition, 'title' | 'description'> } | undefined {
    const merged = this.#merger.merge(name)
    if (merged === undefined) {
      if (!this.#merger.has(name)) this.#issues.error(fileStart(`${name}.toml`), '', `there is no formula \`${name}\``)
      return undefined
    }
    const names = new Set([...merged.vars.keys(), ...EVERYWHERE])
    for (const text of [merged.title, merged.description, merged.target]) this.#template(text, { names, steps: NONE })
    const { steps, size } = this.#formula(merged, names)
    if (size > MAX_STEPS) {
      const message = `has ${size} steps with what it expands: at most ${MAX_STEPS}`
      this.#issues.error(fileStart(merged.source.file), 'steps', message)
    }
    const definition = { ...text('title', merged.title), ...text('description', merged.description) }
    const plan: Plan = {
      version: 1,
      formula: name,
      title: name,
      ...definition,
      ...text('target', merged.target),
      ...given('timeout', merged.timeout),
      vars: declarationsOf(merged.vars),
      steps,
      fragments: this.#texts.usedFragments,
    }
    return { plan, definition }
  }

  uses(name: string): readonly string[] {
    return this.#merger.names.filter((one) => one !== name)
  }

  #formula(merged: MergedFormula, names: ReadonlySet<string>): Compiled {
    this.#path.push(merged.name)
    const ids = idsBelow(merged.steps)
    const commands = commandsOf(merged.vars)
    const compiled = this.#list(merged.steps, { names, steps: NONE, level: 1, commands, ids })
    this.#path.pop()
    return compiled
  }

  #list(drafts: readonly StepDraft[], around: Around): Compiled {
    const needs = readNeeds(drafts, (id) => around.ids.has(id), this.#issues)
    const siblings = new Set(drafts.map(({ id }) => id))
    const made = drafts.map((draft) => {
      const steps = {
        get: (id: string) => (siblings.has(id) ? readable(draft.id, id, needs) : around.steps.get(id)),
        keys: () => [...siblings, ...around.steps.keys()],
      }
      return this.#step(draft, needs, { ...around, steps })
    })
    return {
      steps: made.map(({ step }) => step),
      size: made.reduce((sum, { below }) => sum + 1 + below.size, 0),
      depth: made.length === 0 ? 0 : 1 + Math.max(...made.map(({ below }) => below.depth)),
    }
  }

  #step(draft: StepDraft, needs: StepNeeds, around: Around): { step: PlanStep; below: Compiled } {
    const { node, key, source } = draft
    const outer: Names = around
    const repeat = this.#repeat(draft, outer)
    const items = repeat === undefined ? [] : [repeat.as, 'index']
    const commands = new Set([...around.commands].filter((name) => !items.includes(name)))
    const inner: Around = { ...around, commands, names: new Set([...around.names, ...OF_ATTEMPT, ...items]) }
    const { body, below } = this.#body(draft, inner)
    const condition = placedOf(node, 'condition', key, source)
    if (condition !== undefined) this.#texts.expression(condition, outer)
    const template = (name: string) => this.#template(placedOf(node, name, key, source), inner)
    const step: PlanStep = {
      id: draft.id,
      needs: needs.of(draft.id),
      ...given('title', template('title')),
      ...given('description', template('description')),
      ...given('condition', condition?.text),
      ...given('target', template('target')),
      ...given('assignee', template('assignee')),
      ...given('priority', numberOf(node, 'priority')),
      tags: this.#templates(draft, 'tags', inner),
      metadata: this.#templateMap(tableOf(node, 'metadata'), `${key}.metadata`, source, inner),
      output: textsOf(node, 'output'),
      ...given('timeout', durationOf(node, 'timeout') ?? below.timeout),
      always: booleanOf(node, 'always', false),
      on_fail: ON_FAIL.find((one) => one === textOf(node, 'on_fail')) ?? 'fail',
      ...given('retry', retryOf(tableOf(node, 'retry'))),
      ...given('check', this.#check(draft, inner)),
      ...given('repeat', repeat),
      body,
    }
    return { step, below }
  }

  // ---- texts --------------------------------------------------------------------------------------------------------

  #template(placedText: PlacedText | undefined, names: Names): string | undefined {
    if (placedText !== undefined) this.#texts.template(placedText, names)
    return placedText?.text
  }

  #templates({ node, key, source }: StepDraft, name: string, names: Names): readonly string[] {
    for (const [index, item] of (listNodeOf(node, name)?.items ?? []).entries()) {
      if (item.kind === 'scalar') this.#texts.template(placed(item, `${key}.${name}[${index}]`, source), names)
    }
    return textsOf(node, name)
  }

  #templateMap(
    node: TableNode | undefined,
    key: string,
    source: SourceFile,
    names: Names,
  ): Readonly<Record<string, string>> {
    for (const [name, child] of node?.entries ?? []) {
      if (child.kind === 'scalar') this.#texts.template(placed(child, childKey(key, name), source), names)
    }
    return node === undefined ? {} : textMapOf({ ...node, entries: new Map([['map', node]]) }, 'map')
  }

  // ---- around the body ----------------------------------------------------------------------------------------------

  #repeat({ node, key, source }: StepDraft, names: Names): PlanRepeat | undefined {
    const each = tableOf(node, 'for_each')
    if (each !== undefined) {
      const list = placedOf(each, 'in', `${key}.for_each`, source)
      if (list !== undefined) this.#texts.expression(list, names)
      return {
        kind: 'for_each',
        in: list?.text ?? '',
        as: textOf(each, 'as') ?? 'item',
        max_parallel: numberOf(each, 'max_parallel') ?? 10,
        stop_on_fail: booleanOf(each, 'stop_on_fail', false),
        exclusive: booleanOf(each, 'exclusive', false),
      }
    }
    const loop = tableOf(node, 'loop')
    if (loop === undefined) return undefined
    const [from, to] = this.#range(loop, `${key}.loop`, source, names)
    return { kind: 'loop', from, to, as: textOf(loop, 'as') ?? 'item' }
  }

  #range(loop: TableNode, key: string, source: SourceFile, names: Names): readonly [string, string] {
    const count = scalarOf(loop, 'count')
    if (count !== undefined) {
      if (typeof count.value === 'string') this.#texts.expression(placed(count, `${key}.count`, source), names)
      return ['1', String(count.value)]
    }
    const range = placedOf(loop, 'range', key, source)
    if (range === undefined) return ['1', '0']
    const dots = range.text.indexOf('..')
    if (dots < 0) {
      this.#issues.error(range.node.at, range.key, 'must be a range: `1..n`')
      return ['1', '0']
    }
    this.#texts.expression(range, names, 0, dots)
    this.#texts.expression(range, names, dots + 2)
    return [range.text.slice(0, dots).trim(), range.text.slice(dots + 2).trim()]
  }

  #check({ node, key, source }: StepDraft, names: Around): PlanCheck | undefined {
    const check = tableOf(node, 'check')
    if (check === undefined) return undefined
    const variable = scalarOf(check, 'exec_var')
    if (variable !== undefined) {
      const exec_var = String(variable.value)
      if (!names.commands.has(exec_var)) this.#noCommand(variable, `${key}.check.exec_var`, exec_var)
      return { kind: 'exec', ...execOf('', check, source), exec_var }
    }
    const exec = textOf(check, 'exec')
    if (exec !== undefined) return { kind: 'exec', ...execOf(exec, check, source) }
    const question = this.#template(placedOf(check, 'manual', `${key}.check`, source), names)
    return question === undefined ? undefined : { kind: 'manual', question }
  }

  #noCommand(node: ScalarNode, key: string, name: string): void {
    const message = `\`${name}\` is no variable of the type \`command\` here`
    this.#issues.error(node.at, key, message, `write \`[vars.${name}]\` with \`type = "command"\``)
  }

  // ---- bodies -------------------------------------------------------------------------------------------------------

  #body(draft: StepDraft, around: Around): { body: PlanBody; below: Compiled } {
    const { node } = draft
    const gate = tableOf(node, 'gate')
    if (gate !== undefined) return { body: { kind: 'gate', gate: this.#gate(gate, draft, around) }, below: NO_STEPS }
    if (draft.children !== undefined) {
      const held = `\`${draft.id}\` holds this step: it is not settled yet`
      const steps = { ...around.steps, get: (id: string) => (id === draft.id ? held : around.steps.get(id)) }
      const below = this.#children(draft, { ...around, steps })
      return { body: { kind: 'group', steps: below.steps }, below }
    }
    return this.#expansion(draft, around) ?? { body: { kind: 'work' }, below: NO_STEPS }
  }

  #children(draft: StepDraft, around: Around): Compiled {
    const level = around.level + 1
    if (level <= MAX_LEVELS) return this.#list(draft.children ?? [], { ...around, level })
    this.#tooDeep(draft.node.entries.get('children'), `${draft.key}.children`, level)
    return NO_STEPS
  }

  #tooDeep(node: ConfigNode | undefined, key: string, level: number): void {
    const message = `puts steps on level ${level}: at most ${MAX_LEVELS}`
    if (node !== undefined) this.#issues.error(node.keyAt ?? node.at, key, message)
  }

  #gate(gate: TableNode, { key, source }: StepDraft, names: Names): PlanGate {
    const timer = placedOf(gate, 'timer', `${key}.gate`, source)
    if (timer !== undefined) {
      this.#template(timer, names)
      if (!hasMarks(timer.text) && !isMoment(timer.text)) {
        const message = `\`${timer.text}\` is neither a duration nor a time`
        this.#issues.error(timer.node.at, timer.key, message, 'write `2h`, or `2026-03-01T06:00:00Z`')
      }
      return { kind: 'timer', timer: timer.text }
    }
    const event = textOf(gate, 'event')
    if (event === undefined) return { kind: 'human' }
    return {
      kind: 'event',
      event,
      match: this.#templateMap(tableOf(gate, 'match'), `${key}.gate.match`, source, names),
    }
  }

  #expansion(draft: StepDraft, around: Around): { body: PlanBody; below: Compiled } | undefined {
    const node = scalarOf(draft.node, 'expand')
    if (node === undefined) return undefined
    const name = String(node.value)
    const key = `${draft.key}.expand`
    if (!this.#merger.has(name)) this.#merger.reportMissing(node, key)
    const merged = this.#path.includes(name) ? undefined : this.#merger.merge(name)
    if (this.#path.includes(name)) {
      const circle = [...this.#path.slice(this.#path.indexOf(name)), name].join(' → ')
      this.#issues.error(node.at, key, `\`${name}\` expands itself: ${circle}`)
    }
    if (merged === undefined) return { body: { kind: 'group', steps: [] }, below: NO_STEPS }
    if (merged.steps.length === 0) this.#issues.error(node.at, key, `\`${name}\` has no steps`)
    const below = this.#inline(merged)
    if (around.level + below.depth > MAX_LEVELS) this.#tooDeep(node, key, around.level + below.depth)
    const vars = declarationsOf(merged.vars)
    const scope: PlanScope = { formula: name, vars, with: this.#with(draft, vars, around) }
    const steps = draft.node.entries.has('target') ? below.steps : withTarget(below.steps, merged.target?.text)
    return { body: { kind: 'group', steps, scope }, below: { ...below, timeout: merged.timeout } }
  }

  /** The steps of another formula. They see nothing of who expands them, so they are made once. */
  #inline(merged: MergedFormula): Compiled {
    const before = this.#inlined.get(merged.name)
    if (before !== undefined) return before
    const names = new Set([...merged.vars.keys(), ...EVERYWHERE])
    this.#template(merged.target, { names, steps: NONE })
    const compiled = this.#formula(merged, names)
    this.#inlined.set(merged.name, compiled)
    return compiled
  }

  #with({ node, key, source }: StepDraft, vars: VarDeclarations, names: Around): Readonly<Record<string, Value>> {
    const given = tableOf(node, 'with')
    const values: Record<string, Value> = {}
    for (const [name, child] of given?.entries ?? []) {
      const at = childKey(`${key}.with`, name)
      this.#withTexts(child, at, source, names)
      const value = jsonOf(child, at, this.#issues)
      const problem = givenProblem(name, value, vars, names.commands)
      if (problem !== undefined) this.#issues.error(child.keyAt ?? child.at, at, problem.message, problem.hint)
      values[name] = value
    }
    for (const [name, { required }] of Object.entries(vars)) {
      if (required === true && !Object.hasOwn(values, name))
        this.#issues.error(
          (node.entries.get('expand') ?? node).at,
          childKey(`${key}.with`, name),
          `\`${textOf(node, 'expand')}\` requires \`${name}\``,
          `write \`with = { ${name} = … }\``,
        )
    }
    return values
  }

  #withTexts(node: ConfigNode, key: string, source: SourceFile, names: Names): void {
    if (node.kind === 'table') {
      for (const [name, child] of node.entries) this.#withTexts(child, childKey(key, name), source, names)
    } else if (node.kind === 'list') {
      for (const [index, child] of node.items.entries()) this.#withTexts(child, `${key}[${index}]`, source, names)
    } else if (typeof node.value === 'string') this.#texts.template(placed(node, key, source), names)
  }
}

const NONE: ReadableSteps = { get: () => undefined, keys: () => [] }

function readable(reader: string, id: string, needs: StepNeeds): string {
  if (id === reader) return 'a step does not read itself: `previous` is the attempt before this one'
  return needs.reaches(reader, id) ? 'readable' : `\`${reader}\` does not need \`${id}\`: write it into \`needs\``
}

function declarationsOf(vars: ReadonlyMap<string, VarDraft>): VarDeclarations {
  return Object.fromEntries([...vars].map(([name, { declaration }]) => [name, declaration]))
}

/** Steps of an expanded formula go to its own target where the one that expands says none. */
function withTarget(steps: readonly PlanStep[], target: string | undefined): readonly PlanStep[] {
  if (target === undefined) return steps
  return steps.map((step) =>
    step.target !== undefined || step.assignee !== undefined || step.body.kind === 'gate' ? step : { ...step, target },
  )
}

const text = <K extends string>(key: K, value: PlacedText | undefined) => given(key, value?.text)
