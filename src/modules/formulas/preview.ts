/**
 * What a formula comes to with these variables, as far as that is known before anything runs. A text or an expression is
 * only looked at where all that it reads is known: what a step will report, nobody guesses.
 */
import { inBudget } from '../../automation/bounded.ts'
import { type GraphView, graphOf } from '../../automation/graph.ts'
import { evaluate, evaluateCondition, renderText, sketchOf } from '../../automation/language.ts'
import type { Plan, PlanRepeat, PlanScope, PlanStep, Value } from '../../automation/plan.ts'
import { findInExpression, findInTemplate, type Read } from '../../automation/reads.ts'
import { checkVars, readVarTexts, type VarValues } from '../../automation/vars.ts'
import type { FormulaPreview, PreviewedStep } from '../../contract/automation/formulas.ts'
import { present } from '../../kernel/present.ts'

/** What is known: names with their values. What is not among them may be something else than nothing. */
export type Known = Readonly<Record<string, Value>>

export interface PreviewInput {
  readonly plan: Plan
  readonly vars: VarValues
  /** Of reserved names: `bead`, `city`, `rig`. */
  readonly around: Known
  readonly target: string | undefined
}

type Included = PreviewedStep['included']
type Previewed = Pick<FormulaPreview, 'title' | 'description' | 'target' | 'steps' | 'graph'>

/** Processor time of all texts of a preview; those behind it are shown as unknown. */
const TEXTS_LIMIT_MS = 200

export const previewOf = (input: PreviewInput): Previewed => inBudget(TEXTS_LIMIT_MS, () => previewed(input))

function previewed({ plan, vars, around, target }: PreviewInput): Previewed {
  const reader = new Reader(plan.fragments)
  const top: Known = { ...around, ...vars }
  const own = reader.text(plan.title, top)
  const title = titleOf(own, plan.formula) ?? plan.formula
  const known: Known = { ...top, molecule: { title, formula: plan.formula } }
  const steps = new Map<string, PreviewedStep & { readonly count?: number }>()
  const place = target ?? reader.maybe(plan.target, known)?.text
  new Walk(reader, around, steps).list(plan.steps, '', { known, included: 'yes', target: place })
  const view: GraphView = {
    showsPattern: true,
    facts: (path) => {
      const { title: shown, included, count } = steps.get(path) ?? {}
      return present({ title: shown, included, repeat: count === undefined ? undefined : { count } })
    },
  }
  return {
    title,
    ...present({ description: reader.maybe(plan.description, known)?.text, target: place }),
    steps: [...steps.values()].map(({ count: _, ...step }) => step),
    graph: graphOf(plan.steps, view),
  }
}

interface Around {
  readonly known: Known
  readonly included: Included
  readonly target: string | undefined
}

class Walk {
  readonly #reader: Reader
  /** What the steps of an expanded formula see of who expands it. */
  readonly #everywhere: Known
  readonly #steps: Map<string, PreviewedStep & { readonly count?: number }>

  constructor(reader: Reader, everywhere: Known, steps: Map<string, PreviewedStep & { readonly count?: number }>) {
    this.#reader = reader
    this.#everywhere = everywhere
    this.#steps = steps
  }

  list(steps: readonly PlanStep[], parent: string, around: Around): void {
    for (const step of steps) this.#step(step, `${parent}${step.id}`, around)
  }

  #step(step: PlanStep, id: string, around: Around): void {
    const { repeat, body } = step
    const included = both(around.included, this.#holds(step.condition, around.known))
    const count = repeat === undefined ? undefined : this.#count(repeat, around.known)
    const known = repeat === undefined ? around.known : without(around.known, [repeat.as, 'index'])
    const texts = {
      title: this.#reader.maybe(step.title, known),
      description: this.#reader.maybe(step.description, known),
      target: this.#reader.maybe(step.target, known),
      assignee: this.#reader.maybe(step.assignee, known),
    }
    const own = step.assignee === undefined ? (texts.target?.text ?? around.target) : undefined
    const goesSomewhere = body.kind === 'work'
    this.#steps.set(id, {
      id,
      included,
      ...present({
        title: titleOf(texts.title, id),
        description: texts.description?.text,
        target: goesSomewhere ? own : undefined,
        assignee: texts.assignee?.text,
        count,
      }),
      rendered: Object.values(texts).every((text) => text?.rendered !== false),
    })
    if (body.kind !== 'group') return
    const inside = body.scope === undefined ? known : this.#scoped(body.scope, known)
    const within = count === 0 ? 'no' : included
    this.list(body.steps, `${id}.`, { known: inside, included: within, target: own })
  }

  #holds(condition: string | undefined, known: Known): Included {
    if (condition === undefined) return 'yes'
    const value = this.#reader.expression(condition, known, (scope) => evaluateCondition(condition, scope))
    return value === undefined ? 'unknown' : value ? 'yes' : 'no'
  }

  #count(repeat: PlanRepeat, known: Known): number | undefined {
    if (repeat.kind === 'for_each') {
      const list = this.#reader.expression(repeat.in, known, (scope) => evaluate(repeat.in, scope))
      return Array.isArray(list) ? list.length : undefined
    }
    const [from, to] = [repeat.from, repeat.to].map((text) =>
      this.#reader.expression(text, known, (scope) => evaluate(text, scope)),
    )
    return typeof from === 'number' && typeof to === 'number' ? Math.max(0, Math.floor(to - from) + 1) : undefined
  }

  /** Variables of an expanded formula; those that are given something unknown are unknown themselves. */
  #scoped({ vars, with: given, formula }: PlanScope, known: Known): Known {
    const found: Record<string, Value> = {}
    const unknown: string[] = []
    for (const [name, value] of Object.entries(given)) {
      const rendered = this.#reader.value(value, known)
      if (rendered === undefined) unknown.push(name)
      else found[name] = rendered
    }
    const read = readVarTexts(vars, found)
    const checked = read.values === undefined ? undefined : checkVars(vars, read.values)
    const values = checked?.values ?? defaultsOf(vars, found)
    const molecule = known['molecule'] ?? { formula }
    return without({ ...this.#everywhere, molecule, ...values }, unknown)
  }
}

/** Nobody is shown a template as a title: what is not known yet is `…`. */
const titleOf = (title: Text | undefined, id: string): string | undefined =>
  title === undefined || title.rendered ? title?.text : sketchOf(title.text) || id

/** Where a required one is unknown, the others are known all the same. */
function defaultsOf(vars: PlanScope['vars'], found: VarValues): VarValues {
  const defaults = Object.entries(vars).flatMap(([name, declared]): [string, Value][] =>
    declared.required === true ? [] : [[name, declared.default ?? null]],
  )
  return { ...Object.fromEntries(defaults), ...found }
}

interface Text {
  readonly text: string
  readonly rendered: boolean
}

class Reader {
  readonly #fragments: Readonly<Record<string, string>>

  constructor(fragments: Readonly<Record<string, string>>) {
    this.#fragments = fragments
  }

  maybe(template: string | undefined, known: Known): Text | undefined {
    return template === undefined ? undefined : this.text(template, known)
  }

  /** As rendered, or as written. */
  text(template: string, known: Known): Text {
    const rendered = this.#render(template, known)
    return rendered === undefined ? { text: template, rendered: false } : { text: rendered, rendered: true }
  }

  /** Texts in it are templates; undefined where one of them cannot be rendered yet. */
  value(value: Value, known: Known): Value | undefined {
    if (typeof value === 'string') return this.#render(value, known)
    if (Array.isArray(value)) {
      const items = value.map((item: Value) => this.value(item, known))
      return items.every((item) => item !== undefined) ? items : undefined
    }
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([key, one]) => [key, this.value(one, known)] as const)
    const all = entries.flatMap(([key, one]): [string, Value][] => (one === undefined ? [] : [[key, one]]))
    return all.length === entries.length ? Object.fromEntries(all) : undefined
  }

  expression<T>(text: string, known: Known, work: (scope: Known) => T): T | undefined {
    if (!findInExpression(text).reads.every((read) => isKnown(read, known))) return undefined
    return attempt(() => work(known))
  }

  #render(template: string, known: Known): string | undefined {
    if (!this.#reads(template, []).every((read) => isKnown(read, known))) return undefined
    return attempt(() => renderText(template, known, this.#fragments))
  }

  /** Also those of the fragments that it renders; what these are passed is read where it is passed. */
  #reads(template: string, path: readonly string[]): readonly Read[] {
    const { reads, uses } = findInTemplate(template)
    const inner = uses.flatMap(({ name, passed }) => {
      const text = this.#fragments[name]
      if (text === undefined || path.includes(name)) return []
      return this.#reads(text, [...path, name]).filter((read) => !passed.includes(String(read.path[0])))
    })
    return [...reads, ...inner]
  }
}

function isKnown({ path }: Read, known: Known): boolean {
  const [root, field] = path
  if (typeof root !== 'string' || !Object.hasOwn(known, root)) return false
  // Its id is made when it starts.
  return root !== 'molecule' || field === 'title' || field === 'formula'
}

/** What cannot be rendered with these values is left as it is written: a molecule would say why. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

const both = (around: Included, own: Included): Included =>
  around === 'no' || own === 'no' ? 'no' : around === 'unknown' || own === 'unknown' ? 'unknown' : 'yes'

const without = (known: Known, names: readonly string[]): Known =>
  Object.fromEntries(Object.entries(known).filter(([name]) => !names.includes(name)))
