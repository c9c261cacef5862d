/**
 * The templates of prompts and commands: strict, in the language that formulas have too. An unknown variable, fragment or
 * filter is found before anything is rendered.
 */
import type { Liquid, Template } from 'liquidjs'
import {
  createEngine,
  library,
  positionOf,
  type TemplateProblem,
  templateProblem,
  withHint,
} from '../../../automation/liquid.ts'
import type { PROMPT_FILTERS } from '../../../contract/prompt-words.ts'
import { nearestHint } from '../../../files/issues.ts'
import { lazily } from '../../../kernel/lazy.ts'

/** What a template may refer to. */
export type TemplateScope = {
  readonly variables: ReadonlySet<string>
  readonly fragments: ReadonlyMap<string, unknown>
}

/** One use of a fragment: its name and the names passed along. */
export type FragmentUse = {
  readonly name: string
  readonly passed: readonly string[]
  readonly line: number
  readonly column: number
}

/** What the filters need to know of their surroundings. */
export type FilterFacts = {
  /** Name of the command line client, for `cmd`. */
  readonly commandName: string
  /** Runtime session name of an agent, for `session`; undefined when there is no such agent. */
  readonly sessionName: (agent: string) => string | undefined
}

/** Longest template, and the longest that one rendering may take: everybody waits for it, and sessions start in groups. */
const MAX_TEMPLATE_CHARS = 1_000_000
const RENDER_LIMIT_MS = 250
const MEMORY_LIMIT = 20_000_000
const checker = lazily(() => promptEngine(new Map(), { commandName: 'svcctl', sessionName: (agent) => agent }))

/** Everything wrong with `text` itself, and which fragments it uses. Fragments are checked by their own call. */
export function checkTemplate(
  text: string,
  scope: TemplateScope,
): { problems: TemplateProblem[]; uses: FragmentUse[] } {
  let templates: Template[]
  try {
    templates = checker().parse(text)
  } catch (error) {
    return { problems: [templateProblem(error, text, checker())], uses: [] }
  }
  const problems: TemplateProblem[] = []
  const uses: FragmentUse[] = []
  for (const template of walk(templates)) {
    if (!isRender(template)) continue
    const [line, column] = positionOf(template.token.input, template.token.begin)
    const partial = template.partialScope?.()
    if (partial === undefined) {
      problems.push({ line, column, message: '`render` takes the name of a fragment in quotes' })
    } else if (scope.fragments.has(partial.name)) {
      uses.push({
        name: partial.name,
        passed: [...partial.scope].map((item) => (typeof item === 'string' ? item : item[0])),
        line,
        column,
      })
    } else {
      problems.push(
        withHint(
          { line, column, message: `there is no fragment \`${partial.name}\`` },
          nearestHint(partial.name, scope.fragments.keys()),
        ),
      )
    }
  }
  return { problems: [...problems, ...unknownVariables(templates, scope)], uses }
}

/** Renders `text`; `fragments` are the texts by name. Throws with a sentence that names line and column, never renders part of it. */
export function renderTemplate(
  text: string,
  data: Readonly<Record<string, unknown>>,
  fragments: ReadonlyMap<string, string>,
  filters: FilterFacts,
): string {
  const engine = promptEngine(fragments, filters)
  try {
    // Globals, because a fragment is rendered in a scope of its own and still sees what every prompt sees.
    return String(engine.parseAndRenderSync(text, {}, { globals: { ...data } }))
  } catch (error) {
    const { line, column, message } = templateProblem(error, text, engine)
    throw new Error(`line ${line}, column ${column}: ${message}`, { cause: error })
  }
}

function promptEngine(fragments: ReadonlyMap<string, string>, filters: FilterFacts): Liquid {
  const engine = createEngine({
    fragments: Object.fromEntries(fragments),
    strictVariables: true,
    lenientIf: false,
    maxChars: MAX_TEMPLATE_CHARS,
    renderLimitMs: RENDER_LIMIT_MS,
    memoryLimit: MEMORY_LIMIT,
  })
  for (const [name, filter] of Object.entries(filtersOf(filters)))
    engine.registerFilter(name, (value: unknown) => filter(String(value)))
  return engine
}

const filtersOf = (facts: FilterFacts): Readonly<Record<keyof typeof PROMPT_FILTERS, (value: string) => string>> => ({
  cmd: (words) => `${facts.commandName} ${words}`.trim(),
  basename: (name) => name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('.')) + 1),
  session: (agent) => {
    const name = facts.sessionName(agent)
    if (name === undefined) throw new Error(`there is no agent \`${agent}\``)
    return name
  },
})

function* walk(templates: readonly Template[]): Generator<Template> {
  for (const template of templates) {
    yield template
    // Without partials: a fragment is checked once, not once for each use.
    const children =
      template.children === undefined ? [] : library().toValueSync<Template[]>(template.children(false, true))
    yield* walk(children)
  }
}

function isRender(template: Template): boolean {
  return 'name' in template && template.name === 'render'
}

function unknownVariables(templates: Template[], scope: TemplateScope): TemplateProblem[] {
  const { globals } = checker().analyzeSync(templates, { partials: false })
  return Object.entries(globals).flatMap(([name, uses]) => {
    if (scope.variables.has(name)) return []
    const hint = nearestHint(name, scope.variables)
    return uses.map(({ location }) =>
      withHint({ line: location.row, column: location.col, message: `there is no variable \`${name}\`` }, hint),
    )
  })
}
