/**
 * The template language of prompts and commands: LiquidJS, strict and closed in. A template sees the variables given to
 * it and named fragments, nothing else: no files, no dynamic fragment names, bounded time and size. An unknown variable,
 * fragment or filter is found before anything is rendered.
 */
import { createRequire } from 'node:module'
import type { Liquid, Template } from 'liquidjs'
import { nearestHint } from '../../../files/issues.ts'
import { lazily } from '../../../kernel/lazy.ts'

/** A problem of a template, by line and column of its text (from 1). */
export type TemplateProblem = {
  readonly line: number
  readonly column: number
  readonly message: string
  readonly hint?: string
}

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
/** Tags that reach for other files in ways that cannot be checked beforehand. */
const REFUSED_TAGS = ['include', 'layout', 'block'] as const

const library = lazily((): typeof import('liquidjs') => createRequire(import.meta.url)('liquidjs'))
const checker = lazily(() => createEngine(new Map(), { commandName: 'svcctl', sessionName: (agent) => agent }))

/** Everything wrong with `text` itself, and which fragments it uses. Fragments are checked by their own call. */
export function checkTemplate(
  text: string,
  scope: TemplateScope,
): { problems: TemplateProblem[]; uses: FragmentUse[] } {
  let templates: Template[]
  try {
    templates = checker().parse(text)
  } catch (error) {
    return { problems: [templateProblem(error, text)], uses: [] }
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
  const engine = createEngine(fragments, filters)
  try {
    // Globals, because a fragment is rendered in a scope of its own and still sees what every prompt sees.
    return String(engine.parseAndRenderSync(text, {}, { globals: { ...data } }))
  } catch (error) {
    const { line, column, message } = templateProblem(error, text)
    throw new Error(`line ${line}, column ${column}: ${message}`, { cause: error })
  }
}

function createEngine(fragments: ReadonlyMap<string, string>, filters: FilterFacts): Liquid {
  const engine = new (library().Liquid)({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    relativeReference: false,
    // Always set: without it the engine would read fragments from the working directory.
    templates: Object.assign(Object.create(null), Object.fromEntries(fragments)),
    parseLimit: MAX_TEMPLATE_CHARS,
    renderLimit: RENDER_LIMIT_MS,
    memoryLimit: MEMORY_LIMIT,
    outputEscape: printable,
  })
  for (const tag of REFUSED_TAGS) delete engine.tags[tag]
  engine.registerFilter('cmd', (words: unknown) => `${filters.commandName} ${String(words)}`.trim())
  engine.registerFilter('basename', (name: unknown) =>
    String(name).slice(Math.max(String(name).lastIndexOf('/'), String(name).lastIndexOf('.')) + 1),
  )
  engine.registerFilter('session', (agent: unknown) => {
    const name = filters.sessionName(String(agent))
    if (name === undefined) throw new Error(`there is no agent \`${String(agent)}\``)
    return name
  })
  return engine
}

function printable(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '')
}

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

function withHint(problem: TemplateProblem, hint: string | undefined): TemplateProblem {
  return hint === undefined ? problem : { ...problem, hint }
}

type LiquidFailure = { token?: { input: string; begin: number }; originalError?: Error }

function templateProblem(error: unknown, text: string): TemplateProblem {
  if (!(error instanceof Error)) throw error
  const { token, originalError } = error as Error & LiquidFailure
  const [line, column] = token === undefined ? [1, 1] : positionOf(token.input, token.begin)
  const sentence = (originalError?.message ?? error.message).replace(/, (?:file|line):.*$/s, '')
  const inFragment = token !== undefined && token.input !== text ? ' (in a fragment)' : ''
  const filter = /^undefined filter: (.+)$/.exec(sentence)?.[1]
  if (filter === undefined) return { line, column, message: sentence + inFragment }
  return withHint(
    { line, column, message: `there is no filter \`${filter}\`` },
    nearestHint(filter, Object.keys(checker().filters)),
  )
}

function positionOf(input: string, offset: number): [number, number] {
  const before = input.slice(0, offset)
  return [before.split('\n').length, offset - before.lastIndexOf('\n')]
}
