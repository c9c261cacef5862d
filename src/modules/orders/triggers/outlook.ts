/** What an order waits for, or that it is due. Pure: facts in, a sentence and a time out. */
import type { OrderTrigger } from '../../../automation/order.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { OrderState } from '../runs/states.ts'

export interface Facts {
  readonly now: number
  readonly enabled: boolean
  /** Nothing is wrong with it. */
  readonly runnable: boolean
  readonly untrusted: string | undefined
  readonly suspended: boolean
  readonly overlap: 'skip' | 'allow'
  /** Runs under way. */
  readonly running: number
  readonly state: OrderState
  readonly trigger: OrderTrigger | undefined
  /** Of cron: the next time, and the last one that is not decided yet. */
  readonly times: { readonly next: number | undefined; readonly open: number | undefined }
  /** Of cron: since when its times have been waited for; those before it are late. */
  readonly watchedSince: number
  /** Of event: some are there that no run has had. */
  readonly hasEvents: boolean
  /** Of event: it has run so often within an hour that it waits until then. */
  readonly restsUntil: number | undefined
}

export type Outlook =
  | { readonly kind: 'due'; readonly reason: string; readonly slot?: number }
  /** A time of cron came while a run was under way. */
  | { readonly kind: 'skip'; readonly reason: string; readonly slot: number }
  /** The check of a condition is to be run. */
  | { readonly kind: 'check'; readonly reason: string }
  /** `at`: when to look again, where time decides; `next`: when it may be due, for people. */
  | { readonly kind: 'wait'; readonly reason: string; readonly at?: number; readonly next?: number }

/** Runs of one order at a time, where it allows several to be started by itself. */
const MAX_PARALLEL_RUNS = 100
/** A timer may be late on a busy machine; a time is a minute long anyway. */
const ON_TIME_MS = 60_000
const FIRST_BACKOFF_MS = 10_000
const LONGEST_BACKOFF_MS = 600_000
/** Nothing is started more often by mere time. */
const SHORTEST_INTERVAL_MS = 1_000

export function outlookOf(facts: Facts): Outlook {
  const { enabled, runnable, untrusted, suspended, trigger } = facts
  if (untrusted !== undefined) return wait(`the pack ${untrusted} is not trusted yet`)
  if (!runnable || trigger === undefined) return wait('it is not valid: see `issues`')
  if (!enabled) return wait('it is disabled')
  if (suspended) return wait('it is suspended')
  switch (trigger.kind) {
    case 'cron':
      return cron(facts, trigger.catch_up)
    case 'cooldown':
      return cooldown(facts, Math.max(trigger.interval, SHORTEST_INTERVAL_MS))
    case 'condition':
      return condition(facts, Math.max(trigger.interval, SHORTEST_INTERVAL_MS))
    case 'event':
      return event(facts, trigger.on)
    case 'manual':
      return wait('it is run by hand only')
  }
}

const wait = (reason: string, at?: number): Outlook =>
  at === undefined ? { kind: 'wait', reason } : { kind: 'wait', reason, at, next: at }

const isHeld = ({ overlap, running }: Facts): boolean => running >= (overlap === 'skip' ? 1 : MAX_PARALLEL_RUNS)

const UNDER_WAY = 'a run is under way'

function cron(facts: Facts, catchUp: number): Outlook {
  const { now, times, watchedSince } = facts
  const { open, next } = times
  const late = open === undefined ? 0 : now - open
  const isOnTime = open !== undefined && open > watchedSince && late <= ON_TIME_MS
  if (open !== undefined && (isOnTime || late <= catchUp)) {
    const reason = isOnTime ? `cron: due at ${isoTime(open)}` : `cron: ${isoTime(open)} was missed, and is caught up`
    return isHeld(facts) ? { kind: 'skip', reason: UNDER_WAY, slot: open } : { kind: 'due', reason, slot: open }
  }
  return next === undefined ? wait('cron: never again') : wait(`cron: next at ${isoTime(next)}`, next)
}

function cooldown(facts: Facts, interval: number): Outlook {
  const { now, state } = facts
  if (isHeld(facts)) return wait(UNDER_WAY)
  if (state.cooled_from === undefined) return { kind: 'due', reason: 'cooldown: it has never run' }
  const at = state.cooled_from + interval
  if (now >= at) return { kind: 'due', reason: `cooldown: the last run began at ${isoTime(state.cooled_from)}` }
  return wait(`cooldown: until ${isoTime(at)}`, at)
}

function condition(facts: Facts, interval: number): Outlook {
  const { now, state } = facts
  if (isHeld(facts)) return wait(UNDER_WAY)
  if (state.holds) return { kind: 'due', reason: 'condition: its check passed (exit 0)' }
  if (state.check_exec !== undefined) return wait('condition: its check is running')
  const checked = state.checked_at === undefined ? now : state.checked_at + interval
  const at = Math.max(checked, backedOffUntil(state))
  if (now >= at) return { kind: 'check', reason: 'condition: its check is to be run' }
  return wait(
    state.failures > 1 ? `condition: after ${state.failures} failures in a row` : 'condition: checked again',
    at,
  )
}

function event(facts: Facts, on: string): Outlook {
  const { now, state, hasEvents, restsUntil } = facts
  if (!hasEvents) return wait(`event: none of ${on} so far`)
  if (isHeld(facts)) return wait(`${UNDER_WAY}; events wait`)
  const at = backedOffUntil(state)
  if (now < at) return wait(`event: after ${state.failures} failures in a row; events wait`, at)
  const again = refusedUntil(state)
  if (now < again)
    return wait(`event: it could not begin (${state.refusals} of ${MAX_REFUSALS} tries); events wait`, again)
  if (restsUntil !== undefined && now < restsUntil)
    return wait('event: it has run as often as `max_per_hour` allows; events wait', restsUntil)
  return { kind: 'due', reason: `event: ${on} occurred` }
}

/** Tries to begin a run for events, after which they are passed over, and the order says so. */
export const MAX_REFUSALS = 8

/** What refuses to begin takes no event: it is tried again, later each time. */
function refusedUntil({ refusals, refused_at }: OrderState): number {
  if (refusals === 0 || refused_at === undefined) return 0
  return refused_at + Math.min(FIRST_BACKOFF_MS * 2 ** (refusals - 1), LONGEST_BACKOFF_MS)
}

/** What has failed once may just be tried again. */
function backedOffUntil({ failures, failed_at }: OrderState): number {
  if (failures < 2 || failed_at === undefined) return 0
  return failed_at + Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 2), LONGEST_BACKOFF_MS)
}
