/** Orders (decisions 110, 111): a text to its trigger and what it starts, or everything that is wrong with it. */
import { DROPPED_ORDER_KEYS, OrderFile, TRIGGERS, type TriggerKind } from '../contract/automation/order-file.ts'
import { checkTable, childKey } from '../files/check-table.ts'
import { type ConfigIssue, IssueList, sortIssues } from '../files/issues.ts'
import { type ConfigNode, numberOf, readToml, type TableNode, tableOf, textOf } from '../files/toml.ts'
import { scheduleFault } from './cron.ts'
import { checkName, durationOf, placedOf } from './draft.ts'
import { hasMarks } from './language.ts'
import type { Value } from './plan.ts'
import { findInTemplate } from './reads.ts'
import { booleanOf, jsonOf, type PlacedText, type SourceFile, textMapOf, textsOf } from './source.ts'
import { type Names, placed, TextChecker } from './text-check.ts'

/** Durations are milliseconds; `title`, `bead` and the texts in `vars` are templates over `event` and `events`. */
export interface OrderDefinition {
  readonly name: string
  readonly description?: string
  readonly enabled: boolean
  readonly scope?: 'city' | 'rig'
  readonly vars: Readonly<Record<string, Value>>
  readonly action: OrderAction
  /** Of the run: a command's is 300 s, a formula's is that of the molecule. */
  readonly timeout?: number
  readonly overlap: 'skip' | 'allow'
  readonly trigger: OrderTrigger
  /** A text of it reads `event`: one event, and not all that come together. */
  readonly readsOneEvent?: true
}

export type OrderAction =
  | {
      readonly kind: 'formula'
      readonly formula: string
      readonly target?: string
      readonly title?: string
      readonly bead?: string
      readonly keep: number
    }
  | {
      readonly kind: 'exec'
      readonly exec: string
      readonly env: Readonly<Record<string, string>>
      readonly inherit_env: readonly string[]
      readonly idempotent: boolean
    }

export type OrderTrigger =
  | { readonly kind: 'cron'; readonly schedule: string; readonly tz?: string; readonly catch_up: number }
  | { readonly kind: 'cooldown'; readonly interval: number }
  | { readonly kind: 'condition'; readonly check: string; readonly check_timeout: number; readonly interval: number }
  | {
      readonly kind: 'event'
      readonly on: string
      readonly match: Readonly<Record<string, string>>
      readonly batch: boolean
      readonly max_per_hour: number
    }
  | { readonly kind: 'manual' }

export interface ReadOrder {
  /** Absent where there is any issue. */
  readonly order?: OrderDefinition
  readonly issues: readonly ConfigIssue[]
}

/** Reads the file of the order `name`. */
export function parseOrder(name: string, source: SourceFile): ReadOrder {
  const issues = new IssueList()
  const raw = readToml(source.text, source.file, 'city', issues)
  const order = raw === undefined ? undefined : readOrder(name, source, raw, issues)
  const sorted = sortIssues(issues.errors)
  return order === undefined || sorted.length > 0 ? { issues: sorted } : { order, issues: [] }
}

const COMMAND_MS = 300_000
const CATCH_UP_MS = 86_400_000
const CHECK_MS = 10_000
const CHECK_INTERVAL_MS = 60_000
export const MAX_PER_HOUR = 600
const KEEP_MS = 7 * 86_400_000

function readOrder(name: string, source: SourceFile, raw: TableNode, issues: IssueList): OrderDefinition | undefined {
  const checked = tableOf(checkTable(raw, OrderFile, issues, { dropped: DROPPED_ORDER_KEYS, partial: true }), 'order')
  const said = tableOf(raw, 'order')
  if (said === undefined) return undefined
  const kind = TRIGGERS.find((one) => one === textOf(said, 'trigger'))
  if (checked === undefined) return undefined
  const readsOne = checkTexts(checked, source, issues).some(readsOneEvent)
  checkSchedule(checked, issues)
  if (kind === undefined) return undefined
  const action = actionOf(checked)
  const trigger = triggerOf(checked, kind, readsOne)
  const timeout = durationOf(checked, 'timeout') ?? (action?.kind === 'exec' ? COMMAND_MS : undefined)
  const scope = textOf(checked, 'scope')
  const description = textOf(checked, 'description')
  if (action === undefined || trigger === undefined) return undefined
  return {
    name,
    ...(description === undefined ? {} : { description }),
    enabled: booleanOf(checked, 'enabled', true),
    ...(scope === 'city' || scope === 'rig' ? { scope } : {}),
    vars: varsOf(checked, issues),
    action,
    ...(timeout === undefined ? {} : { timeout }),
    overlap: textOf(checked, 'overlap') === 'allow' ? 'allow' : 'skip',
    trigger,
    ...(readsOne ? { readsOneEvent: true } : {}),
  }
}

const readsOneEvent = (text: string): boolean =>
  hasMarks(text) && findInTemplate(text).reads.some(({ path: [root] }) => root === 'event')

function checkSchedule(order: TableNode, issues: IssueList): void {
  const node = order.entries.get('schedule')
  const schedule = textOf(order, 'schedule')
  const fault = schedule === undefined ? undefined : scheduleFault(schedule)
  if (node !== undefined && fault !== undefined) issues.error(node.at, 'order.schedule', fault)
}

// ---- texts ----------------------------------------------------------------------------------------------------------

/** An order has no steps and no variables of its own: `vars` is what it gives. */
const NAMES: Names = { names: new Set(['event', 'events']), steps: { get: () => undefined, keys: () => [] } }
const NO_FRAGMENTS = { fragment: () => undefined, fragmentNames: () => [] }

/** Checks the templates of an order; all of them. */
function checkTexts(order: TableNode, source: SourceFile, issues: IssueList): readonly string[] {
  const texts = new TextChecker(issues, NO_FRAGMENTS)
  const found: string[] = []
  const check = (text: PlacedText): void => {
    found.push(text.text)
    texts.template(text, NAMES)
  }
  for (const name of ['title', 'bead']) {
    const text = placedOf(order, name, 'order', source)
    if (text !== undefined) check(text)
  }
  const visit = (node: ConfigNode, key: string): void => {
    if (node.kind === 'table') for (const [name, child] of node.entries) visit(child, childKey(key, name))
    else if (node.kind === 'list') for (const [index, child] of node.items.entries()) visit(child, `${key}[${index}]`)
    else if (typeof node.value === 'string') check(placed(node, key, source))
  }
  const vars = tableOf(order, 'vars')
  for (const [name, child] of vars?.entries ?? []) {
    const key = `order.vars.${name}`
    checkName(name, child.keyAt ?? child.at, key, issues)
    visit(child, key)
  }
  return found
}

function varsOf(order: TableNode, issues: IssueList): Readonly<Record<string, Value>> {
  const entries = tableOf(order, 'vars')?.entries ?? new Map<string, ConfigNode>()
  return Object.fromEntries([...entries].map(([name, node]) => [name, jsonOf(node, `order.vars.${name}`, issues)]))
}

// ---- values ---------------------------------------------------------------------------------------------------------

function actionOf(order: TableNode): OrderAction | undefined {
  const exec = textOf(order, 'exec')
  if (exec !== undefined) {
    return {
      kind: 'exec',
      exec,
      env: textMapOf(order, 'env'),
      inherit_env: textsOf(order, 'inherit_env'),
      idempotent: booleanOf(order, 'idempotent', false),
    }
  }
  const formula = textOf(order, 'formula')
  if (formula === undefined) return undefined
  const texts = ['target', 'title', 'bead'].flatMap((key) => {
    const text = textOf(order, key)
    return text === undefined ? [] : [[key, text]]
  })
  return { kind: 'formula', formula, ...Object.fromEntries(texts), keep: durationOf(order, 'keep') ?? KEEP_MS }
}

function triggerOf(order: TableNode, kind: TriggerKind, readsOne: boolean): OrderTrigger | undefined {
  if (kind === 'manual') return { kind }
  const interval = durationOf(order, 'interval')
  if (kind === 'cooldown') return interval === undefined ? undefined : { kind, interval }
  if (kind === 'cron') {
    const [schedule, tz] = [textOf(order, 'schedule'), textOf(order, 'tz')]
    const catch_up = durationOf(order, 'catch_up') ?? CATCH_UP_MS
    return schedule === undefined ? undefined : { kind, schedule, ...(tz === undefined ? {} : { tz }), catch_up }
  }
  if (kind === 'condition') {
    const check = textOf(order, 'check')
    const check_timeout = durationOf(order, 'check_timeout') ?? CHECK_MS
    return check === undefined ? undefined : { kind, check, check_timeout, interval: interval ?? CHECK_INTERVAL_MS }
  }
  const on = textOf(order, 'on')
  // Of several events that come together `event` is the newest: the others would be lost.
  const batch = booleanOf(order, 'batch', !readsOne)
  const max_per_hour = numberOf(order, 'max_per_hour') ?? MAX_PER_HOUR
  return on === undefined ? undefined : { kind, on, match: textMapOf(order, 'match'), batch, max_per_hour }
}
