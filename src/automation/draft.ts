/** One formula's file as it is written: its keys checked one by one and against each other (decisions 81–83, 86). */

import {
  BODIES,
  DROPPED_FORMULA_KEYS,
  FormulaFile,
  LANGUAGE_WORDS,
  RESERVED_NAMES,
} from '../contract/automation/formula-file.ts'
import { VAR_TYPES } from '../contract/automation/var-text.ts'
import { parseDurationMs } from '../contract/base/durations.ts'
import { checkTable, childKey } from '../files/check-table.ts'
import { IssueList, type Place, placeText } from '../files/issues.ts'
import { type ConfigNode, listOf, readToml, type ScalarNode, type TableNode, textOf } from '../files/toml.ts'
import { present } from '../kernel/present.ts'
import { inBudget } from './bounded.ts'
import type { Value, VarDeclaration, VarType } from './plan.ts'
import { booleanOf, jsonOf, listNodeOf, type PlacedText, type SourceFile, scalarOf } from './source.ts'
import { placed } from './text-check.ts'
import { PATTERNS_LIMIT_MS, patternError, varProblem } from './vars.ts'

export interface FormulaDraft {
  readonly source: SourceFile
  readonly at: Place
  readonly title: PlacedText | undefined
  readonly description: PlacedText | undefined
  readonly target: PlacedText | undefined
  readonly timeout: number | undefined
  readonly extends: readonly ScalarNode[]
  readonly vars: ReadonlyMap<string, VarDraft>
  readonly steps: readonly StepDraft[]
}

export interface VarDraft {
  readonly declaration: VarDeclaration
  readonly at: Place
  readonly key: string
  readonly source: SourceFile
}

export interface StepDraft {
  readonly id: string
  /** Where its id stands. */
  readonly at: Place
  /** Dotted path of its table. */
  readonly key: string
  readonly node: TableNode
  readonly source: SourceFile
  readonly children: readonly StepDraft[] | undefined
}

export interface ReadFile<Draft> {
  readonly draft: Draft | undefined
  readonly issues: IssueList
}

const known = new WeakMap<SourceFile, ReadFile<FormulaDraft>>()

/** Reads a file once: several formulas extend and expand the same one. */
export function readFormulaFile(name: string, source: SourceFile): ReadFile<FormulaDraft> {
  const before = known.get(source)
  if (before !== undefined) return before
  const issues = new IssueList()
  const raw = readToml(source.text, source.file, 'city', issues)
  const draft = raw === undefined ? undefined : inBudget(PATTERNS_LIMIT_MS, () => readDraft(name, source, raw, issues))
  const read = { draft, issues }
  known.set(source, read)
  return read
}

function readDraft(name: string, source: SourceFile, raw: TableNode, issues: IssueList): FormulaDraft {
  const table = checkTable(raw, FormulaFile, issues, { dropped: DROPPED_FORMULA_KEYS, partial: true })
  const said = scalarOf(raw, 'formula')
  if (typeof said?.value === 'string' && said.value !== name)
    issues.error(said.at, 'formula', `must be \`${name}\`, the name of the file, not \`${said.value}\``)
  return {
    source,
    at: raw.at,
    title: placedOf(table, 'title', '', source),
    description: placedOf(table, 'description', '', source),
    target: placedOf(table, 'target', '', source),
    timeout: durationOf(table, 'timeout'),
    extends: listOf(table, 'extends'),
    vars: readVars(table, source, issues),
    steps: readSteps(raw, table, 'steps', 'steps', source, issues),
  }
}

export function placedOf(table: TableNode, name: string, key: string, source: SourceFile): PlacedText | undefined {
  const node = scalarOf(table, name)
  return typeof node?.value === 'string' ? placed(node, childKey(key, name), source) : undefined
}

/** Milliseconds of a duration that was checked. */
export function durationOf(table: TableNode, name: string): number | undefined {
  const text = textOf(table, name)
  return text === undefined ? undefined : parseDurationMs(text)
}

// ---- variables ------------------------------------------------------------------------------------------------------

function readVars(table: TableNode, source: SourceFile, issues: IssueList): ReadonlyMap<string, VarDraft> {
  const node = table.entries.get('vars')
  const vars = new Map<string, VarDraft>()
  if (node?.kind !== 'table') return vars
  const lower = new Map<string, string>()
  for (const [name, value] of node.entries) {
    const at = value.keyAt ?? value.at
    const key = childKey('vars', name)
    checkName(name, at, key, issues)
    const twin = lower.get(name.toLowerCase())
    if (twin !== undefined) issues.error(at, key, `\`${name}\` differs from \`${twin}\` only in case`)
    lower.set(name.toLowerCase(), name)
    vars.set(name, { declaration: readVar(value, key, issues), at, key, source })
  }
  return vars
}

/** Refuses names that mean something already. */
export function checkName(name: string, at: Place, key: string, issues: IssueList): void {
  if (RESERVED_NAMES.some((one) => one === name)) issues.error(at, key, `\`${name}\` is a reserved name`)
  if (LANGUAGE_WORDS.some((one) => one === name)) issues.error(at, key, `\`${name}\` is a word of the language`)
}

function readVar(node: ConfigNode, key: string, issues: IssueList): VarDeclaration {
  if (node.kind !== 'table') {
    const value = jsonOf(node, key, issues)
    return { type: scalarType(value), default: value }
  }
  const given = <T>(name: string, read: (child: ConfigNode, key: string) => T): T | undefined => {
    const child = node.entries.get(name)
    return child === undefined ? undefined : read(child, childKey(key, name))
  }
  const preset = given('default', (child, at) => jsonOf(child, at, issues))
  const values = given('enum', (child, at) => jsonOf(child, at, issues))
  const type =
    VAR_TYPES.find((one) => one === textOf(node, 'type')) ?? (preset === undefined ? 'string' : scalarType(preset))
  const declaration: VarDeclaration = {
    type,
    ...present({ description: textOf(node, 'description') }),
    ...present({ default: preset }),
    ...(booleanOf(node, 'required', false) ? { required: true } : {}),
    ...(Array.isArray(values) ? { enum: values } : {}),
    ...present({ pattern: textOf(node, 'pattern') }),
  }
  checkVar(declaration, node, key, issues)
  return declaration
}

function scalarType(value: Value): VarType {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return Number.isInteger(value) ? 'int' : 'json'
}

function checkVar(declaration: VarDeclaration, node: TableNode, key: string, issues: IssueList): void {
  const { type, pattern, enum: values, required } = declaration
  const report = (name: string, message: string): void => {
    const child = node.entries.get(name)
    issues.error(child?.at ?? node.at, childKey(key, name), message)
  }
  if (required === true && declaration.default !== undefined)
    report('required', 'a variable that is required has no `default`')
  if (pattern !== undefined && type !== 'string') report('pattern', `only text has a pattern, and this is ${type}`)
  const reason = pattern === undefined ? undefined : patternError(pattern)
  if (reason !== undefined) report('pattern', `is no regular expression: ${reason}`)
  const bare = { type }
  for (const value of values ?? []) {
    const problem = varProblem(bare, value)
    if (problem !== undefined) report('enum', problem)
  }
  if (declaration.default === undefined || reason !== undefined) return
  const problem = varProblem(declaration, declaration.default)
  if (problem !== undefined) report('default', problem)
}

// ---- steps ----------------------------------------------------------------------------------------------------------

function readSteps(
  rawParent: TableNode,
  parent: TableNode,
  name: string,
  key: string,
  source: SourceFile,
  issues: IssueList,
): readonly StepDraft[] {
  const raw = listNodeOf(rawParent, name)?.items ?? []
  const kept = new Map((listNodeOf(parent, name)?.items ?? []).map((node) => [node.at, node]))
  const steps = new Map<string, StepDraft>()
  for (const [index, item] of raw.entries()) {
    if (item.kind !== 'table') continue
    const stepKey = `${key}[${index}]`
    // The check leaves out what is no table; where one stands tells which one is which.
    const node = kept.get(item.at)
    if (node?.kind !== 'table') continue
    const step = readStep(item, node, { key: stepKey, index, source }, issues)
    const twin = steps.get(step.id)
    if (twin === undefined) steps.set(step.id, step)
    else issues.error(step.at, `${stepKey}.id`, `there is a step \`${step.id}\` already (${placeText(twin.at)})`)
  }
  return [...steps.values()]
}

function readStep(
  raw: TableNode,
  node: TableNode,
  { key, index, source }: { key: string; index: number; source: SourceFile },
  issues: IssueList,
): StepDraft {
  // One whose id is wrong is told of, and has a name that nothing can mean, so that the rest of it is checked too.
  const id = textOf(node, 'id') ?? `#${index + 1}`
  checkParts(node, key, issues)
  const children = node.entries.has('children')
    ? readSteps(raw, node, 'children', `${key}.children`, source, issues)
    : undefined
  return { id, at: node.entries.get('id')?.at ?? node.at, key, node, source, children }
}

/** What a schema cannot say. */
function checkParts(step: TableNode, key: string, issues: IssueList): void {
  const { entries } = step
  checkHuman(entries.get('gate'), `${key}.gate.human`, issues)
  checkTitle(step, key, issues)
  checkBackoff(entries.get('retry'), childKey(key, 'retry'), issues)
  for (const name of ['for_each', 'loop']) checkItemName(entries.get(name), childKey(key, name), issues)
}

function checkHuman(gate: ConfigNode | undefined, key: string, issues: IssueList): void {
  const human = gate?.kind === 'table' ? scalarOf(gate, 'human') : undefined
  if (human?.value === false) issues.error(human.at, key, 'must be `true`, or left out')
}

function checkTitle(step: TableNode, key: string, issues: IssueList): void {
  if (step.entries.has('title')) return
  const gate = step.entries.get('gate')
  const isWork = BODIES.every((body) => !step.entries.has(body))
  const isHuman = gate?.kind === 'table' && gate.entries.has('human')
  if (!(isWork || isHuman)) return
  issues.error(step.at, `${key}.title`, `\`title\` is required for ${isWork ? 'work' : 'a human gate'}`)
}

function checkBackoff(retry: ConfigNode | undefined, key: string, issues: IssueList): void {
  if (retry?.kind !== 'table') return
  const [first, most] = [durationOf(retry, 'backoff'), durationOf(retry, 'max_backoff')]
  const node = retry.entries.get('max_backoff')
  if (first !== undefined && most !== undefined && node !== undefined && most < first)
    issues.error(node.at, `${key}.max_backoff`, 'is less than `backoff`')
}

function checkItemName(repeat: ConfigNode | undefined, key: string, issues: IssueList): void {
  const node = repeat?.kind === 'table' ? scalarOf(repeat, 'as') : undefined
  if (node !== undefined && node.value !== 'item') checkName(String(node.value), node.at, `${key}.as`, issues)
}
