/** Orders as clients see them. */
import type { OrderDefinition } from '../../automation/order.ts'
import type { Order, OrderRun } from '../../contract/automation/orders.ts'
import { formatDuration } from '../../contract/base/durations.ts'
import { MASK } from '../../contract/base/merge-patch.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { SeenOrder } from './orders.ts'

const HOLDS_LOG =
  'events wait for it that are older or more than the log would keep: the log grows until it has run for them, or is disabled'

const TAKES_NEWEST =
  '`batch` is true and a text reads `event`: of events that come together only the newest is read. Write `batch = false`, or read `events`'
const ENDS_CHAIN =
  'orders set each other off: it passes by the events of a chain of 8 runs, each of which was begun by an event of the one before'
const RUNS_OFTEN =
  'it has run as often as `max_per_hour` allows: look whether it sets itself off, or write a larger `max_per_hour`'

function warningsOf({ order: { definition }, holdsLog, endsChain, outlook }: SeenOrder): readonly string[] {
  const takesNewest =
    definition?.readsOneEvent === true && definition.trigger.kind === 'event' && definition.trigger.batch
  return [
    ...(holdsLog ? [HOLDS_LOG] : []),
    ...(takesNewest ? [TAKES_NEWEST] : []),
    ...(endsChain ? [ENDS_CHAIN] : []),
    ...(outlook.reason.includes('`max_per_hour`') ? [RUNS_OFTEN] : []),
  ]
}

export function wireOrder(seen: SeenOrder, lastRun: OrderRun | undefined): Order {
  const { order, state, enabled, suspended, running, outlook, evaluatedAt } = seen
  const warnings = warningsOf(seen)
  const { file, definition, issues, scoped, zone } = order
  const next = outlook.kind === 'wait' ? outlook.next : undefined
  return {
    name: file.name,
    scoped_name: scoped,
    ...(file.rig === undefined ? {} : { rig: file.rig }),
    layer: file.layer,
    ...(file.pack === undefined ? {} : { pack: file.pack }),
    ...(file.untrusted === undefined ? {} : { untrusted_pack: file.untrusted }),
    file: file.file,
    revision: file.revision,
    valid: definition !== undefined && issues.length === 0,
    issues: [...issues],
    ...(definition === undefined ? {} : wireDefinition(definition, zone)),
    enabled,
    enabled_by: state.enabled === undefined ? order.enabledBy : 'api',
    overridden: [...order.overridden],
    suspended,
    running,
    due: outlook.kind === 'due',
    reason: outlook.reason,
    ...(next === undefined ? {} : { next_run_at: isoTime(next) }),
    ...(lastRun === undefined ? {} : { last_run: lastRun }),
    ...(evaluatedAt === undefined ? {} : { evaluated_at: isoTime(evaluatedAt) }),
    ...(state.error === undefined ? {} : { error: state.error }),
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  }
}

function wireDefinition(definition: OrderDefinition, zone: string): Partial<Order> {
  const { description, scope, vars, timeout, overlap } = definition
  return {
    ...(description === undefined ? {} : { description }),
    ...(scope === undefined ? {} : { scope }),
    ...wireAction(definition),
    vars: { ...vars },
    ...(timeout === undefined ? {} : { timeout: formatDuration(timeout) }),
    overlap,
    ...wireTrigger(definition, zone),
  }
}

function wireAction({ action }: OrderDefinition): Partial<Order> {
  if (action.kind === 'formula') {
    const { kind, keep, ...rest } = action
    return { action: kind, ...rest, ...(keep === undefined ? {} : { keep: formatDuration(keep) }) }
  }
  return {
    action: action.kind,
    exec: action.exec,
    // Whether a value is a secret nobody says.
    env: Object.fromEntries(Object.keys(action.env).map((name) => [name, MASK])),
    inherit_env: [...action.inherit_env],
    idempotent: action.idempotent,
  }
}

function wireTrigger({ trigger }: OrderDefinition, zone: string): Partial<Order> {
  switch (trigger.kind) {
    case 'cron':
      return { trigger: 'cron', schedule: trigger.schedule, tz: zone, catch_up: formatDuration(trigger.catch_up) }
    case 'cooldown':
      return { trigger: 'cooldown', interval: formatDuration(trigger.interval) }
    case 'condition':
      return {
        trigger: 'condition',
        check: trigger.check,
        check_timeout: formatDuration(trigger.check_timeout),
        interval: formatDuration(trigger.interval),
      }
    case 'event':
      return {
        trigger: 'event',
        on: trigger.on,
        match: { ...trigger.match },
        batch: trigger.batch,
        max_per_hour: trigger.max_per_hour,
      }
    case 'manual':
      return { trigger: 'manual' }
  }
}
