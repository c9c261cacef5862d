/** Variables of formulas (decisions 86, 120): whether a value is what its declaration says, and who gives it. */
import { isDeepStrictEqual } from 'node:util'
import { isNativeError } from 'node:util/types'
import { createContext, Script } from 'node:vm'
import { MAX_COMMAND } from '../contract/automation/formula-file.ts'
import { parseVarText, type VarType } from '../contract/automation/var-text.ts'
import { cut } from '../contract/base/text.ts'
import { nearestHint } from '../files/issues.ts'
import { lazily } from '../kernel/lazy.ts'
import { inBudget, OverBudget, withinCpu } from './bounded.ts'
import type { Value, VarDeclaration } from './plan.ts'

export type VarDeclarations = Readonly<Record<string, VarDeclaration>>
export type VarValues = Readonly<Record<string, Value>>

/** What is wrong with the value of one variable. */
export interface VarIssue {
  readonly name: string
  readonly message: string
  readonly hint?: string
}

export type CheckedVars =
  | { readonly values: VarValues; readonly issues?: undefined }
  | { readonly values?: undefined; readonly issues: readonly VarIssue[] }

/**
 * Every variable with its value: what the caller gives, else what the rig says in `formula_vars`, else the default, else
 * null. A rig's variables are for all formulas: those that this one does not declare are passed over.
 */
export function checkVars(declarations: VarDeclarations, given: VarValues, rigVars: VarValues = {}): CheckedVars {
  return inBudget(PATTERNS_LIMIT_MS, () => checked(declarations, given, rigVars))
}

function checked(declarations: VarDeclarations, given: VarValues, rigVars: VarValues): CheckedVars {
  const issues: VarIssue[] = []
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(declarations, name)) issues.push(unknownVar(name, declarations))
  }
  const values: Record<string, Value> = {}
  for (const [name, declaration] of Object.entries(declarations)) {
    const { value, from } = chosen(name, declaration, given, rigVars)
    values[name] = value ?? null
    const message = value === undefined ? missing(declaration) : varProblem(declaration, value)
    if (message !== undefined) issues.push({ name, message: `${message}${from}` })
  }
  return issues.length === 0 ? { values } : { issues }
}

/** The same for values that may be texts of any type, as templates give them. */
export function readVarTexts(declarations: VarDeclarations, texts: VarValues): CheckedVars {
  const issues: VarIssue[] = []
  const values: Record<string, Value> = {}
  for (const [name, value] of Object.entries(texts)) {
    const declared = Object.hasOwn(declarations, name) ? declarations[name] : undefined
    try {
      values[name] = declared === undefined || typeof value !== 'string' ? value : parseVarText(declared.type, value)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      issues.push({ name, message: error.message })
    }
  }
  return issues.length === 0 ? { values } : { issues }
}

export function unknownVar(name: string, declarations: VarDeclarations): VarIssue {
  const hint = nearestHint(name, Object.keys(declarations))
  const issue = { name, message: `there is no variable \`${name}\`` }
  return hint === undefined ? issue : { ...issue, hint }
}

function chosen(name: string, declaration: VarDeclaration, given: VarValues, rigVars: VarValues) {
  if (Object.hasOwn(given, name)) return { value: given[name], from: '' }
  if (Object.hasOwn(rigVars, name)) return { value: rigVars[name], from: ' (from `formula_vars` of the rig)' }
  return { value: declaration.default, from: '' }
}

const missing = ({ required }: VarDeclaration): string | undefined =>
  required === true ? 'is required, and nobody gives it' : undefined

/** Why `value` is not what the declaration asks for, if it is not. */
export function varProblem(declaration: VarDeclaration, value: Value): string | undefined {
  if (!TYPES[declaration.type](value)) return `must be ${TYPE_WORDS[declaration.type]}, not ${kindOf(value)}`
  if (declaration.enum !== undefined && !declaration.enum.some((one) => isDeepStrictEqual(one, value))) {
    return `${shown(value)} is not one of ${declaration.enum.map(shown).join(', ')}`
  }
  if (declaration.type === 'command' && typeof value === 'string') return commandProblem(value)
  const { pattern } = declaration
  if (pattern === undefined || typeof value !== 'string') return undefined
  return patternProblem(pattern, value)
}

/** The shell cannot be handed a longer command, nor one with a NUL. */
function commandProblem(command: string): string | undefined {
  if (command.includes('\0')) return 'must not contain a NUL character'
  const bytes = Buffer.byteLength(command)
  return bytes > MAX_COMMAND ? `has ${bytes} bytes: a command has at most ${MAX_COMMAND}` : undefined
}

const TYPES: Readonly<Record<VarType, (value: Value) => boolean>> = {
  string: (value) => typeof value === 'string',
  int: (value) => Number.isSafeInteger(value),
  bool: (value) => typeof value === 'boolean',
  json: () => true,
  command: (value) => typeof value === 'string',
}
const TYPE_WORDS: Readonly<Record<VarType, string>> = {
  string: 'text',
  int: 'a whole number',
  bool: '`true` or `false`',
  json: 'JSON',
  command: 'a command of the shell, as text',
}

function kindOf(value: Value): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : typeof value === 'string' ? 'text' : String(value)
}

function shown(value: Value): string {
  const text = JSON.stringify(value)
  return `\`${text.length > 100 ? `${cut(text, 100)}…` : text}\``
}

// ---- patterns -------------------------------------------------------------------------------------------------------

/** Patterns are anybody's: one that tries for ever is cut off, and all of a document or a request have so much together. */
const PATTERN_LIMIT_MS = 50
export const PATTERNS_LIMIT_MS = 150
const MAX_PATTERN_TEXT = 64 * 1024

/** Why `pattern` is no regular expression, if it is none. */
export function patternError(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u')
    return undefined
  } catch (error) {
    const [, reason = 'not a regular expression'] = /: ([^:]*)$/.exec(String(error)) ?? []
    return reason
  }
}

function patternProblem(pattern: string, value: string): string | undefined {
  if (value.length > MAX_PATTERN_TEXT) return `has ${value.length} characters: too many for its pattern`
  const key = `${pattern}\0${value}`
  const tried = TOO_SLOW.has(key) ? 'too slow' : matches(pattern, value)
  if (tried === 'over budget')
    return `its pattern \`${pattern}\` is not tried: those before it have used the time for all of them`
  if (tried === 'too slow') {
    rememberSlow(key)
    return `its pattern \`${pattern}\` takes longer than ${PATTERN_LIMIT_MS} ms`
  }
  return tried ? undefined : `${shown(value)} does not match \`${pattern}\``
}

/** Pairs of a pattern and a text that were cut off: they are slow each time, and a file is read again and again. */
const TOO_SLOW = new Set<string>()
const MAX_SLOW = 1_000
/** Longer ones are tried each time. */
const MAX_SLOW_KEY = 4_096

function rememberSlow(key: string): void {
  if (key.length > MAX_SLOW_KEY) return
  const [oldest] = TOO_SLOW.size >= MAX_SLOW ? TOO_SLOW : []
  if (oldest !== undefined) TOO_SLOW.delete(oldest)
  TOO_SLOW.add(key)
}

// The engine of regular expressions can be stopped from outside only where a script runs with a deadline.
function matches(pattern: string, value: string): boolean | 'too slow' | 'over budget' {
  const { script, place } = matcher()
  place['pattern'] = whole(pattern)
  place['value'] = value
  try {
    const match = (timeout: number) => script.runInContext(place, { timeout }) === true
    return withinCpu(PATTERN_LIMIT_MS, match, isTimeout)
  } catch (error) {
    if (error instanceof OverBudget) return 'over budget'
    if (isTimeout(error)) return 'too slow'
    throw error
  }
}

/** It comes from another realm: it is no `Error` of this one. */
const isTimeout = (error: unknown): boolean =>
  isNativeError(error) && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'

const whole = (pattern: string): string => `^(?:${pattern})$`

const matcher = lazily(() => ({
  script: new Script('new RegExp(pattern, "u").test(value)'),
  place: createContext(Object.create(null)),
}))
