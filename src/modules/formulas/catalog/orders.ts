/** Orders as their files say them. */
import { inBudget } from '../../../automation/bounded.ts'
import type { CatalogFormula, CatalogOrder } from '../../../automation/catalog.ts'
import { type OrderDefinition, parseOrder } from '../../../automation/order.ts'
import {
  PATTERNS_LIMIT_MS,
  readVarTexts,
  unknownVar,
  type VarDeclarations,
  type VarIssue,
  type VarValues,
  varProblem,
} from '../../../automation/vars.ts'
import { type ConfigIssue, compareText, IssueList, nearestHint, sortIssues } from '../../../files/issues.ts'
import { readToml, tableOf } from '../../../files/toml.ts'
import { present } from '../../../kernel/present.ts'
import { documentOf, faultsOf, issueAt, untrustedIssue } from './faults.ts'
import { type DocumentLayout, type SourceFile, type Sources, type Stack, winnerOf } from './sources.ts'

/** What orders can name, in the city or in a rig. */
export interface FormulaNames {
  formula(name: string, rig: string): CatalogFormula | undefined
  names(rig: string): readonly string[]
}

/**
 * The orders of the city and of each rig. One of a pack that several rigs import is there for each of them, unless it says
 * that it is for the city: then it is there once, where the city has none of that name.
 */
export function ordersOf(sources: Sources, layout: DocumentLayout, formulas: FormulaNames): readonly CatalogOrder[] {
  const found = new Map<string, CatalogOrder>()
  const add = (order: CatalogOrder): void => {
    const key = `${order.name}\0${order.rig ?? ''}`
    if (!found.has(key)) found.set(key, order)
  }
  for (const stack of sources.city.orders.values())
    for (const source of chosen(stack)) add(orderOf(source, undefined, formulas))
  for (const rig of [...layout.rigs].sort(compareText)) {
    for (const stack of sources.rigs.get(rig)?.orders.values() ?? [])
      for (const source of chosen(stack)) {
        const order = orderOf(source, rig, formulas)
        add(order.order?.scope === 'city' ? orderOf(source, undefined, formulas) : order)
      }
  }
  return [...found.values()].sort((a, b) => compareText(a.name, b.name) || compareText(a.rig ?? '', b.rig ?? ''))
}

/** One that nobody has trusted is shown where there is no other. */
const chosen = (stack: Stack): readonly SourceFile[] => {
  const source = winnerOf(stack) ?? stack.held.at(-1)
  return source === undefined ? [] : [source]
}

/** The order of a file, for a rig or for the city. */
export function orderOf(source: SourceFile, rig: string | undefined, formulas: FormulaNames): CatalogOrder {
  const unreadable = source.unreadable?.message
  const about = { ...documentOf(source), ...present({ rig, unreadable }), text: source.text }
  const faults = source.home.trusted ? faultsOf('order', source) : [untrustedIssue(source)]
  if (faults.length > 0) return { ...about, issues: faults }
  const { order, issues } = parsed(source)
  if (order === undefined) return { ...about, issues: sortIssues(issues) }
  const more = [...misplaced(source, order, rig), ...formulaFaults(source, order, rig, formulas)]
  return { ...about, issues: sortIssues([...issues, ...more]), order }
}

/**
 * A formula that no file has, that cannot be started, or that does not take what it is given; one that is not valid is
 * there, and says itself what is wrong with it. A bead may be of a rig that has a formula of its own of this name.
 */
function formulaFaults(
  source: SourceFile,
  { action, vars }: OrderDefinition,
  rig: string | undefined,
  formulas: FormulaNames,
): readonly ConfigIssue[] {
  if (action.kind !== 'formula') return []
  const { formula: name, bead } = action
  const issue = (key: string, message: string, hint?: string): ConfigIssue => ({
    ...placeOf(source, key),
    message,
    ...present({ hint }),
  })
  const formula = formulas.formula(name, rig ?? '')
  if (formula === undefined)
    return [issue('order.formula', `there is no formula \`${name}\``, nearestHint(name, formulas.names(rig ?? '')))]
  const { plan } = formula
  if (plan === undefined || bead !== undefined) return []
  if (plan.steps.length === 0)
    return [issue('order.formula', `the formula \`${name}\` has no steps: it can be extended, and not started`)]
  return varFaults(plan.vars, vars).map(({ name: one, message, hint }) => issue(`order.vars.${one}`, message, hint))
}

/** Of what is known by now: a template says more once it is rendered. */
function varFaults(declarations: VarDeclarations, vars: VarValues): readonly VarIssue[] {
  return inBudget(PATTERNS_LIMIT_MS, () => varFaultsOf(declarations, vars))
}

function varFaultsOf(declarations: VarDeclarations, vars: VarValues): readonly VarIssue[] {
  return Object.entries(vars).flatMap(([name, text]): readonly VarIssue[] => {
    const declaration = Object.hasOwn(declarations, name) ? declarations[name] : undefined
    if (declaration === undefined) return [unknownVar(name, declarations)]
    if (/\{[{%]/.test(JSON.stringify(text))) return []
    const { values, issues } = readVarTexts({ [name]: declaration }, { [name]: text })
    if (values === undefined) return issues
    const message = varProblem(declaration, values[name] ?? null)
    return message === undefined ? [] : [{ name, message }]
  })
}

/** What is wrong with the reading of one file is no reason that the others are not there. */
function parsed(source: SourceFile): { readonly order?: OrderDefinition; readonly issues: readonly ConfigIssue[] } {
  try {
    return parseOrder(source.name, source)
  } catch (error) {
    const message = `cannot be read as an order: ${error instanceof Error ? error.message : String(error)}`
    return { issues: [issueAt(source, message)] }
  }
}

/** A file of the city is not of any rig. */
function misplaced(source: SourceFile, { scope }: OrderDefinition, rig: string | undefined): readonly ConfigIssue[] {
  if (scope !== 'rig' || rig !== undefined) return []
  const issue = {
    ...placeOf(source, 'order.scope'),
    message: 'only an order of a rig, or of a pack that a rig imports, can be for a rig',
  }
  return [{ ...issue, hint: 'import the pack in the rig, or leave the key out' }]
}

/** Where a key stands in its file. */
function placeOf({ file, text, home }: SourceFile, key: string): Omit<ConfigIssue, 'message'> {
  const tree = readToml(text, file, home.layer === 'pack' ? 'pack' : 'city', new IssueList())
  const [table = '', name = '', inner = ''] = key.split('.')
  const entries = tree === undefined ? undefined : tableOf(tree, table)
  const within = entries === undefined ? undefined : tableOf(entries, name)?.entries.get(inner)
  const at = (within ?? entries?.entries.get(name))?.at
  return { file, line: at?.line ?? 1, column: at?.column ?? 1, key }
}
