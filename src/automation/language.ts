/**
 * The language of formulas and orders (decisions 87, 88): texts are templates, conditions and lists are expressions. A
 * template is strict: what it prints must be there. An expression is not: a key that is missing in an output is nil.
 * Values are data: they are put in once and never read as a template again.
 */
import type { Liquid } from 'liquidjs'
import { cut } from '../contract/base/text.ts'
import { lazily } from '../kernel/lazy.ts'
import { OverBudget, withinCpu } from './bounded.ts'
import { createEngine, isTimeLimit, library, templateProblem } from './liquid.ts'
import type { Value } from './plan.ts'

/** What a text may read: variables by their names, and the reserved names. Absent and nil is the same in expressions. */
export type Scope = Readonly<Record<string, Value | undefined>>

/** A template or an expression that cannot be rendered with the values at hand; the message is a sentence. */
export class TemplateFailure extends Error {}

/** Of the text of a template, and of what it renders to. */
const MAX_TEMPLATE_CHARS = 256 * 1024
const MAX_RENDERED_CHARS = 1024 * 1024
const RENDER_LIMIT_MS = 50
const MEMORY_LIMIT = 4_000_000
const MAX_VALUE_DEPTH = 64

const BOUNDS = { maxChars: MAX_TEMPLATE_CHARS, renderLimitMs: RENDER_LIMIT_MS, memoryLimit: MEMORY_LIMIT }

/** The engine that renders templates with these fragments. */
export const templateEngine = (fragments: Readonly<Record<string, string>>): Liquid =>
  createEngine({ ...BOUNDS, fragments, strictVariables: true, lenientIf: true })

/** The engine of expressions: `evalValue` ignores `lenientIf`, so they have one of their own. */
export const expressionEngine = lazily(() =>
  createEngine({ ...BOUNDS, fragments: {}, strictVariables: false, lenientIf: true }),
)

/** The fragments of a plan are one object, which all its steps render with. */
const engines = new WeakMap<Readonly<Record<string, string>>, Liquid>()

/** Renders a template; throws `TemplateFailure`, never answers a part of it. */
export function renderText(template: string, scope: Scope, fragments: Readonly<Record<string, string>> = NONE): string {
  if (!hasMarks(template)) return template
  const engine = engineFor(fragments)
  let text: string
  try {
    // Globals, because a fragment is rendered in a scope of its own and still sees what every text sees.
    const render = (renderLimit: number) =>
      engine.parseAndRenderSync(template, Object.create(null), { globals: namesOf(scope), renderLimit })
    text = String(withinCpu(RENDER_LIMIT_MS, render, isTimeLimit))
  } catch (error) {
    if (error instanceof OverBudget) throw new TemplateFailure(error.message, { cause: error })
    const { line, column, message } = templateProblem(error, template, engine)
    throw new TemplateFailure(`line ${line}, column ${column}: ${message}`, { cause: error })
  }
  if (text.length > MAX_RENDERED_CHARS) throw new TemplateFailure(`it renders to ${text.length} characters`)
  return text
}

/** Whether a text has anything to render. */
export const hasMarks = (text: string): boolean => text.includes('{{') || text.includes('{%')

/** A template as people may see it before it can be rendered: what it would put in is `…`. */
export function sketchOf(template: string): string {
  let sketch = ''
  for (let at = 0; at < template.length; ) {
    const open = nextMark(template, at)
    sketch += template.slice(at, open)
    if (open === template.length) break
    const isOutput = template.startsWith('{{', open)
    const end = template.indexOf(isOutput ? '}}' : '%}', open)
    if (isOutput && !sketch.endsWith('…')) sketch += '…'
    at = end < 0 ? template.length : end + 2
  }
  return sketch.trim()
}

function nextMark(template: string, from: number): number {
  const at = ['{{', '{%'].map((mark) => template.indexOf(mark, from)).filter((found) => found >= 0)
  return Math.min(template.length, ...at)
}

/** The value of an expression; nil is null. Throws `TemplateFailure`. */
export function evaluate(expression: string, scope: Scope): Value {
  const engine = expressionEngine()
  let value: unknown
  try {
    value = engine.evalValueSync(expression, namesOf(scope))
  } catch (error) {
    throw new TemplateFailure(templateProblem(error, expression, engine).message, { cause: error })
  }
  return plainValue(value, 0)
}

/** Whether a condition holds: true, or false and nil. Anything else is no answer, because `""`, `0` and `"false"` are true to Liquid. */
export function evaluateCondition(expression: string, scope: Scope): boolean {
  const value = evaluate(expression, scope)
  if (value === true) return true
  if (value === false || value === null) return false
  throw new TemplateFailure(`a condition is true, false or nil, but \`${expression}\` is ${shown(value)}`)
}

const NONE: Readonly<Record<string, string>> = Object.freeze({})

function engineFor(fragments: Readonly<Record<string, string>>): Liquid {
  const known = engines.get(fragments)
  if (known !== undefined) return known
  const engine = templateEngine(fragments)
  engines.set(fragments, engine)
  return engine
}

/** What is known under two names: printed it is the one word, with a dot it has its fields. */
const NAMED: Readonly<Record<string, string>> = { molecule: 'id', city: 'name', rig: 'name' }

// Without a prototype: `constructor` is a name like any other. A copy: `increment` and its like change what they are given.
function namesOf(scope: Scope): Record<string, unknown> {
  const names: Record<string, unknown> = Object.assign(Object.create(null), scope)
  for (const [name, word] of Object.entries(NAMED)) names[name] = named(scope[name], word)
  return names
}

function named(value: Value | undefined, word: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value ?? null
  return new (namedDrop())(Object.entries(value), word)
}

const namedDrop = lazily(
  () =>
    class Named extends library().Drop {
      readonly #fields: ReadonlyMap<string, unknown>
      readonly #word: string

      constructor(fields: Iterable<readonly [string, unknown]>, word: string) {
        super()
        this.#fields = new Map(fields)
        this.#word = word
      }

      override liquidMethodMissing(key: unknown): unknown {
        return this.#fields.get(String(key))
      }

      override valueOf(): unknown {
        return this.#fields.get(this.#word)
      }

      toJSON(): unknown {
        return Object.fromEntries(this.#fields)
      }
    },
)

function plainValue(given: unknown, depth: number): Value {
  const value = library().toValue(given)
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'object') throw new TemplateFailure(`it gives no value, but ${String(value)}`)
  if (depth === MAX_VALUE_DEPTH) throw new TemplateFailure(`its value is deeper than ${MAX_VALUE_DEPTH} levels`)
  if (Array.isArray(value)) return value.map((item) => plainValue(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainValue(item, depth + 1)]))
}

function shown(value: Value): string {
  const text = JSON.stringify(value)
  return text.length > 100 ? `${cut(text, 100)}…` : text
}
