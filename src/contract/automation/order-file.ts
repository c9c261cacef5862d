/** Every key that an order's file may have (decisions 110, 111, 125), declared once as those of formulas are. */
import type { TableRules } from '../base/config-shape.ts'
import { anything, optional } from '../base/schema.ts'
import { flag, map, oneOf, table, text, whole } from '../base/settings.ts'
import {
  command,
  commandEnv,
  eventMatch,
  eventType,
  FORMULA_NAME,
  FORMULA_NAME_TEXT,
  span,
  template,
  VAR_NAME,
  VAR_NAME_TEXT,
} from './formula-file.ts'

export const TRIGGERS = ['cron', 'cooldown', 'condition', 'event', 'manual'] as const
export type TriggerKind = (typeof TRIGGERS)[number]

const RULES: TableRules = {
  oneOf: ['formula', 'exec'],
  needs: {
    target: 'formula',
    title: 'formula',
    bead: 'formula',
    keep: 'formula',
    env: 'exec',
    inherit_env: 'exec',
    idempotent: 'exec',
  },
  cases: {
    of: 'trigger',
    keys: {
      cron: ['schedule', 'tz', 'catch_up'],
      cooldown: ['interval'],
      condition: ['check', 'check_timeout', 'interval'],
      event: ['on', 'match', 'batch', 'max_per_hour'],
      manual: [],
    },
    required: { cron: ['schedule'], cooldown: ['interval'], condition: ['check'], event: ['on'] },
  },
}

const Order = table(
  {
    description: optional(text()),
    enabled: optional(flag({ default: true })),
    scope: optional(oneOf(['city', 'rig'])),
    vars: optional(map(anything(), { names: { pattern: VAR_NAME, words: VAR_NAME_TEXT } })),

    formula: optional(text({ pattern: FORMULA_NAME, description: FORMULA_NAME_TEXT })),
    target: optional(text({ minLength: 1, maxLength: 256 })),
    title: optional(template({ minLength: 1 })),
    bead: optional(template({ minLength: 1 })),
    keep: optional(span({ default: '7d' })),

    exec: optional(command()),
    ...commandEnv,
    idempotent: optional(flag({ default: false })),

    timeout: optional(span({ minimumMs: 1 })),
    overlap: optional(oneOf(['skip', 'allow'], { default: 'skip' })),

    trigger: oneOf(TRIGGERS, {
      gone: { webhook: { now: 'manual', hint: 'run it over the API, or emit an event and write `trigger = "event"`' } },
    }),
    schedule: optional(text({ minLength: 1, maxLength: 256 })),
    tz: optional(text({ kind: 'timezone' })),
    catch_up: optional(span({ default: '24h' })),
    interval: optional(span({ minimumMs: 1_000 })),
    check: optional(command()),
    check_timeout: optional(span({ default: '10s', minimumMs: 1 })),
    on: optional(eventType()),
    match: optional(eventMatch(text({ maxLength: 4_096 }))),
    batch: optional(flag()),
    max_per_hour: optional(whole({ minimum: 1, maximum: 1_000, default: 600 })),
  },
  { rules: RULES },
)
export const OrderFile = table({ order: Order })

/** Keys of other systems and of earlier grammars (decision 117), and what to write instead. */
export const DROPPED_ORDER_KEYS: ReadonlyMap<string, string> = new Map([
  ['pool', 'write `target`'],
  ['params', 'write `vars`; `order run --var` gives others'],
  ['no_work_gate', 'write `overlap = "allow"`'],
  ['gate', 'write `trigger`'],
  ['webhook', 'run it over the API, or emit an event and write `trigger = "event"`'],
  ['skip_aliases', 'write the name itself in `[orders] skip`'],
  ['name', 'the name of an order is that of its file'],
  ['command', 'write `exec`'],
  ['cron', 'write `trigger = "cron"` and `schedule`'],
  ['timezone', 'write `tz`'],
  ['event', 'write `on`'],
])
