/**
 * The template language of everything here: LiquidJS, strict about filters and closed in. A template sees the values given
 * to it and named fragments, nothing else: no files, no names of fragments that are made while it renders, and bounds on
 * time and memory. Prompts and formulas have their rules on top of it.
 */
import { createRequire } from 'node:module'
import type { Liquid } from 'liquidjs'
import { nearestHint } from '../files/issues.ts'
import { lazily } from '../kernel/lazy.ts'

/** The library, loaded when the first template is. */
export const library = lazily((): typeof import('liquidjs') => createRequire(import.meta.url)('liquidjs'))

export interface EngineOptions {
  readonly fragments: Readonly<Record<string, string>>
  /** Whether a name that is not there is an error, rather than nil. */
  readonly strictVariables: boolean
  /** Whether it is nil where a tag asks or `default` answers, all the same. */
  readonly lenientIf: boolean
  readonly maxChars: number
  readonly renderLimitMs: number
  /** Of the library's own count: about one for each character or element that is made. */
  readonly memoryLimit: number
}

/** Tags that reach for other files in ways that cannot be checked beforehand, and one that does not tell what it reads. */
const REFUSED_TAGS = ['include', 'layout', 'block', 'cycle'] as const
/** Filters that take the text of an expression: it would be read while rendering, and may come from anybody. */
const REFUSED_FILTERS = ['where_exp', 'reject_exp', 'group_by_exp', 'has_exp', 'find_exp', 'find_index_exp'] as const

export function createEngine(options: EngineOptions): Liquid {
  const engine = new (library().Liquid)({
    strictVariables: options.strictVariables,
    lenientIf: options.lenientIf,
    strictFilters: true,
    ownPropertyOnly: true,
    relativeReference: false,
    // Always set: without it the engine would read fragments from the working directory.
    templates: Object.assign(Object.create(null), options.fragments),
    parseLimit: options.maxChars,
    renderLimit: options.renderLimitMs,
    memoryLimit: options.memoryLimit,
    outputEscape: printable,
  })
  for (const tag of REFUSED_TAGS) delete engine.tags[tag]
  for (const filter of REFUSED_FILTERS) delete engine.filters[filter]
  return engine
}

/** Objects and lists as JSON: their own text would be `[object Object]`. */
function printable(given: unknown): string {
  const value = library().toValue(given)
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '')
}

/** A problem of a template, by line and column of its text (from 1). */
export interface TemplateProblem {
  readonly line: number
  readonly column: number
  readonly message: string
  readonly hint?: string
}

export function withHint(problem: TemplateProblem, hint: string | undefined): TemplateProblem {
  return hint === undefined ? problem : { ...problem, hint }
}

type LiquidFailure = { token?: { input: string; begin: number }; originalError?: Error }

/** What the engine threw over `text`, in words of ours; anything that is no error is thrown on. */
export function templateProblem(error: unknown, text: string, engine: Liquid): TemplateProblem {
  if (!(error instanceof Error)) throw error
  const { token, originalError } = error as Error & LiquidFailure
  const [line, column] = token === undefined ? [1, 1] : positionOf(token.input, token.begin)
  const sentence = (originalError?.message ?? error.message).replace(/, (?:file|line):.*$/s, '')
  const inFragment = token !== undefined && token.input !== text ? ' (in a fragment)' : ''
  const filter = /^undefined filter: (.+)$/.exec(sentence)?.[1]
  if (filter === undefined) return { line, column, message: inWords(sentence, engine) + inFragment }
  const problem = { line, column, message: `there is no filter \`${filter}\`` }
  return withHint(problem, nearestHint(filter, Object.keys(engine.filters)))
}

/** Whether rendering was cut off because it took too long. */
export const isTimeLimit = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('template render limit')

function inWords(sentence: string, engine: Liquid): string {
  const tag = /^tag "(.+)" not found$/.exec(sentence)?.[1]
  if (tag !== undefined) return `there is no tag \`${tag}\``
  const unknown = /^undefined variable: (.+)$/.exec(sentence)?.[1]
  if (unknown !== undefined) return `there is no \`${unknown}\``
  if (sentence.startsWith('template render limit'))
    return `it takes longer than its limit of ${engine.options.renderLimit} ms`
  if (sentence.startsWith('memory alloc limit')) return 'it makes more text than its limit'
  return sentence
}

/** Line and column of `offset`, from 1. */
export function positionOf(input: string, offset: number): [number, number] {
  const before = input.slice(0, offset)
  return [before.split('\n').length, offset - before.lastIndexOf('\n')]
}
