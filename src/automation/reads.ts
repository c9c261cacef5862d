/**
 * What a template or an expression reads, found without rendering it: names with their places, fragments, and what is wrong
 * with its form. Names that the text makes for itself (`assign`, `for`) are its own and do not come up.
 */
import type { Expression, Template, Token, Value } from 'liquidjs'
import { lazily } from '../kernel/lazy.ts'
import { expressionEngine, templateEngine } from './language.ts'
import { library, templateProblem } from './liquid.ts'

/** One use of a name: `steps.plan.output` is three segments. A segment in brackets that is made while rendering is undefined. */
export interface Read {
  readonly path: readonly (string | number | undefined)[]
  /** Of the first character, in the text. */
  readonly offset: number
  /** As it is written. */
  readonly text: string
}

/** One use of a fragment, and the names that it is passed. */
export interface FragmentUse {
  readonly name: string
  readonly passed: readonly string[]
  readonly offset: number
}

export interface TextProblem {
  readonly offset: number
  readonly message: string
  readonly hint?: string
}

export interface Findings {
  readonly reads: readonly Read[]
  readonly uses: readonly FragmentUse[]
  readonly problems: readonly TextProblem[]
}

const NOTHING: Findings = { reads: [], uses: [], problems: [] }
/** Parses only: which fragments there are is looked up by who asks. */
const checker = lazily(() => templateEngine({}))

export function findInTemplate(text: string): Findings {
  const engine = checker()
  let templates: Template[]
  try {
    templates = engine.parse(text)
  } catch (error) {
    return { ...NOTHING, problems: [problemOf(templateProblem(error, text, engine), text)] }
  }
  const walk = new Walk()
  walk.visitAll(templates)
  return walk
}

export function findInExpression(text: string): Findings {
  const engine = expressionEngine()
  const { Tokenizer, Value: ValueClass } = library()
  try {
    const tokenizer = new Tokenizer(text, engine.options.operators)
    const value = new ValueClass(tokenizer.readFilteredValue(), engine)
    tokenizer.skipBlank()
    if (!tokenizer.end()) return { ...NOTHING, problems: [leftOver(text, tokenizer.p)] }
    const walk = new Walk()
    walk.visitArgument(value)
    return walk
  } catch (error) {
    return { ...NOTHING, problems: [problemOf(templateProblem(error, text, engine), text)] }
  }
}

const leftOver = (text: string, offset: number): TextProblem => ({
  offset,
  message: `\`${text.slice(offset, offset + 20)}\` belongs to nothing`,
})

function problemOf(problem: ReturnType<typeof templateProblem>, text: string): TextProblem {
  const lines = text.split('\n').slice(0, problem.line - 1)
  const offset = lines.reduce((sum, line) => sum + line.length + 1, 0) + problem.column - 1
  const { message, hint } = problem
  return hint === undefined ? { offset, message } : { offset, message, hint }
}

type Argument = Value | Token
type PropertyAccess = Token & { readonly props: readonly Token[] }

class Walk implements Findings {
  readonly reads: Read[] = []
  readonly uses: FragmentUse[] = []
  readonly problems: TextProblem[] = []
  /** Names that the text has made: by its blocks, and for the rest of it. */
  readonly #blocks: ReadonlySet<string>[] = []
  readonly #made = new Set<string>()

  visitAll(templates: Iterable<Template>): void {
    for (const template of templates) this.#visit(template)
  }

  #visit(template: Template): void {
    for (const argument of template.arguments?.() ?? []) this.visitArgument(argument)
    this.#checkEnd(template)
    for (const made of template.localScope?.() ?? []) this.#made.add(textOf(made))
    if (isRender(template)) {
      this.#use(template)
      return
    }
    this.#blocks.push(new Set(template.blockScope?.()))
    this.visitAll(library().toValueSync<Template[]>(template.children?.(false, true) ?? []))
    this.#blocks.pop()
  }

  #use(template: Template): void {
    const offset = template.token.begin
    const partial = template.partialScope?.()
    if (partial === undefined) {
      this.problems.push({ offset, message: '`render` takes the name of a fragment in quotes' })
      return
    }
    const passed = [...partial.scope].map((item) => (typeof item === 'string' ? item : item[0]))
    this.uses.push({ name: partial.name, passed, offset })
  }

  // The parser stops at a bracket or a comma and forgets the rest.
  #checkEnd({ token }: Template): void {
    const { Tokenizer, TypeGuards } = library()
    if (!TypeGuards.isOutputToken(token)) return
    const tokenizer = new Tokenizer(token.input, checker().options.operators, undefined, token.contentRange)
    tokenizer.readFilteredValue()
    tokenizer.skipBlank()
    if (!tokenizer.end()) this.problems.push(leftOver(token.input.slice(0, tokenizer.N), tokenizer.p))
  }

  visitArgument(argument: Argument): void {
    if (argument instanceof library().Value) {
      this.#checkForm(argument.initial)
      for (const token of argument.initial.postfix) this.#visitToken(token)
      for (const filter of argument.filters) for (const value of filter.args) this.#visitFilterArgument(value)
    } else this.#visitToken(argument)
  }

  #visitFilterArgument(argument: unknown): void {
    const token = Array.isArray(argument) ? argument[1] : argument
    if (token instanceof library().Token) this.#visitToken(token)
  }

  #visitToken(token: Token): void {
    const { isRangeToken, isPropertyAccessToken } = library().TypeGuards
    if (isRangeToken(token)) {
      this.#visitToken(token.lhs)
      this.#visitToken(token.rhs)
    } else if (isPropertyAccessToken(token)) {
      if (token.variable !== undefined) this.#visitToken(token.variable)
      else this.#read(token)
      for (const prop of token.props) this.#visitToken(prop)
    }
  }

  #read(token: PropertyAccess): void {
    const path = token.props.map(segmentOf)
    const [root] = path
    const isOwn = typeof root === 'string' && (this.#made.has(root) || this.#blocks.some((block) => block.has(root)))
    if (!isOwn) this.reads.push({ path, offset: token.begin, text: token.getText() })
  }

  /** Operands and operators must make one value: Liquid takes the first of several and says nothing. */
  #checkForm({ postfix }: Expression): void {
    const { isOperatorToken } = library().TypeGuards
    const operators = postfix.filter(isOperatorToken).map(({ operator }) => operator)
    const first = postfix.reduce((least, token) => Math.min(least, token.begin), Number.POSITIVE_INFINITY)
    const wanted = operators.filter((operator) => operator !== 'not').length + 1
    if (postfix.length - operators.length !== wanted) {
      const message = 'is no expression: between two values stands one operator'
      this.problems.push({ offset: first, message })
    }
    if (operators.includes('and') && operators.includes('or')) {
      const message = '`and` and `or` in one expression: it would be read from the right to the left'
      this.problems.push({
        offset: first,
        message,
        hint: 'write one of them, and put the rest into a step or a variable',
      })
    }
  }
}

const isRender = (template: Template): boolean => 'name' in template && template.name === 'render'

function segmentOf(token: Token): string | number | undefined {
  const { isQuotedToken, isNumberToken, isWordToken } = library().TypeGuards
  if (isQuotedToken(token) || isNumberToken(token) || isWordToken(token)) return token.content
  return undefined
}

function textOf(token: Token): string {
  return token.getText()
}
