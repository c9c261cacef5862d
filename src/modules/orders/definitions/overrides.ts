/** What a city says otherwise of an order (`[[orders.overrides]]`): the result has to be an order as a file could say it. */

import { scheduleFault } from '../../../automation/cron.ts'
import { MAX_PER_HOUR, type OrderDefinition, type OrderTrigger } from '../../../automation/order.ts'
import { parseDurationMs } from '../../../contract/base/durations.ts'
import type { Settings } from '../../../contract/config-schema.ts'
import type { ConfigIssue, Place } from '../../../files/issues.ts'

type Override = NonNullable<Settings['orders']['overrides']>[number]
type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
export type PlacedOverride = DeepReadonly<Override> & {
  readonly at: Place
  /** Of the key, such as `orders.overrides[2]`. */
  readonly key: string
}

interface Applied {
  readonly definition: OrderDefinition | undefined
  readonly issues: readonly ConfigIssue[]
  /** What is said otherwise. */
  readonly keys: readonly string[]
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Keys of each trigger. */
const KEYS = {
  cron: ['schedule', 'tz', 'catch_up'],
  cooldown: ['interval'],
  condition: ['check', 'check_timeout', 'interval'],
  event: ['on', 'match', 'batch'],
  manual: [],
} as const satisfies Record<OrderTrigger['kind'], readonly (keyof Override)[]>
const OF_TRIGGERS = [
  'schedule',
  'tz',
  'catch_up',
  'interval',
  'check',
  'check_timeout',
  'on',
  'match',
  'batch',
] as const
/** What a trigger cannot do without. */
const NEEDED = { cron: ['schedule'], cooldown: ['interval'], condition: ['check'], event: ['on'], manual: [] } as const

/** Applies them in their order; of several that say the same the last wins. */
export function applyOverrides(
  order: OrderDefinition | undefined,
  overrides: readonly PlacedOverride[],
  maxTimeoutMs: number | undefined,
): Applied {
  const issues: ConfigIssue[] = []
  let definition = order
  const keys = new Set<string>()
  for (const override of overrides) {
    for (const key of saidBy(override)) keys.add(key)
    if (definition !== undefined) definition = applied(definition, override, maxTimeoutMs, issues)
  }
  return { definition, issues, keys: [...keys].sort() }
}

const saidBy = (override: PlacedOverride): readonly string[] =>
  Object.entries(override)
    .filter(([key, value]) => value !== undefined && !['name', 'rig', 'at', 'key'].includes(key))
    .map(([key]) => key)

function applied(
  order: OrderDefinition,
  override: PlacedOverride,
  maxTimeoutMs: number | undefined,
  issues: ConfigIssue[],
): OrderDefinition {
  const report = (key: string, message: string): void => {
    const { file, line, column } = override.at
    issues.push({ file, line, column, key: `${override.key}.${key}`, message })
  }
  const timeout = override.timeout === undefined ? order.timeout : parseDurationMs(override.timeout)
  return {
    ...order,
    enabled: override.enabled ?? order.enabled,
    overlap: override.overlap ?? order.overlap,
    ...(timeout === undefined ? {} : { timeout: Math.min(timeout, maxTimeoutMs ?? timeout) }),
    action: actionWith(order, override, report),
    trigger: triggerWith(order, override, report),
  }
}

type Report = (key: string, message: string) => void

function actionWith({ action }: OrderDefinition, override: PlacedOverride, report: Report): OrderDefinition['action'] {
  const { target, idempotent, env } = override
  if (action.kind === 'formula') {
    if (idempotent !== undefined) report('idempotent', 'is of orders with `exec`: this one has a formula')
    if (env !== undefined) report('env', 'is of orders with `exec`: this one has a formula')
    return target === undefined ? action : { ...action, target }
  }
  if (target !== undefined) report('target', 'is of orders with a formula: this one has `exec`')
  return { ...action, idempotent: idempotent ?? action.idempotent, env: { ...action.env, ...env } }
}

function triggerWith(order: OrderDefinition, override: PlacedOverride, report: Report): OrderTrigger {
  const { trigger } = order
  const kind = override.trigger ?? trigger.kind
  const known: readonly string[] = KEYS[kind]
  for (const key of OF_TRIGGERS)
    if (override[key] !== undefined && !known.includes(key)) report(key, `is of no order whose trigger is ${kind}`)
  const isOther = kind !== trigger.kind
  const missing = isOther ? NEEDED[kind].filter((key) => override[key] === undefined) : []
  for (const key of missing) report(key, `is needed where the trigger becomes ${kind}`)
  if (missing.length > 0) return trigger
  const made = built(kind, isOther ? undefined : trigger, override, report)
  const isNew = isOther && made.kind === 'event' && override.batch === undefined
  return isNew ? { ...made, batch: order.readsOneEvent !== true } : made
}

function built(
  kind: OrderTrigger['kind'],
  before: OrderTrigger | undefined,
  override: PlacedOverride,
  report: Report,
): OrderTrigger {
  const ms = (key: 'interval' | 'catch_up' | 'check_timeout', otherwise: number): number => {
    const text = override[key]
    return text === undefined ? otherwise : parseDurationMs(text)
  }
  switch (kind) {
    case 'cron': {
      const was = before?.kind === 'cron' ? before : undefined
      const schedule = override.schedule ?? was?.schedule ?? ''
      const fault = override.schedule === undefined ? undefined : scheduleFault(schedule)
      if (fault !== undefined) report('schedule', fault)
      const tz = override.tz === undefined || override.tz === '' ? was?.tz : override.tz
      return { kind, schedule, catch_up: ms('catch_up', was?.catch_up ?? DAY_MS), ...(tz === undefined ? {} : { tz }) }
    }
    case 'cooldown':
      return { kind, interval: ms('interval', before?.kind === kind ? before.interval : 0) }
    case 'condition': {
      const was = before?.kind === 'condition' ? before : undefined
      return {
        kind,
        check: override.check ?? was?.check ?? '',
        check_timeout: ms('check_timeout', was?.check_timeout ?? 10_000),
        interval: ms('interval', was?.interval ?? MINUTE_MS),
      }
    }
    case 'event': {
      const was = before?.kind === 'event' ? before : undefined
      return {
        kind,
        on: override.on ?? was?.on ?? '',
        match: override.match ?? was?.match ?? {},
        batch: override.batch ?? was?.batch ?? true,
        max_per_hour: was?.max_per_hour ?? MAX_PER_HOUR,
      }
    }
    case 'manual':
      return { kind }
  }
}
