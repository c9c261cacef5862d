/**
 * What is to be done about one session next: its record, what is observed of its process, what waits for it and what the
 * city wants, to one action. Pure; the actor performs it and asks again (sheet 04 §8; decisions 57–63).
 *
 * R1  A process of which nothing is known is neither ended nor replaced.
 * R2  Every state with a deadline is left at it, except where R1 forbids.
 * R3  A turn is interrupted only for a message that asks for it, or because its session is to end.
 * R4  A session that somebody attends is not restarted for a reason of ours.
 * R5  Nothing is typed behind the half line of a person who is there. One that was left behind is taken back for the
 *     next message; where that cannot be done, messages wait as for somebody who is there, and say why they fail.
 */
import type { SessionState, WaitsFor } from '../../../contract/sessions/session-model.ts'
import type { Activity } from '../../../runtimes/process/runtime.ts'
import type { DeliveryRecord } from '../queue/deliveries.ts'
import { failedStart, hasProcess, mayMove, type SessionSignal } from '../record/lifecycle.ts'
import type { AgePolicy, Policy } from '../record/policy.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import { stalledTurn } from './crash.ts'
import { takesMessages } from './evidence.ts'

/** What the city wants of a session beyond its own `desired`. */
export type Want =
  /** As its record says. */
  | { readonly run: 'as-desired' }
  /** Kept awake, and woken. */
  | { readonly run: 'yes'; readonly cause: string }
  /** Not to run now: it finishes, then sleeps or is closed. */
  | { readonly run: 'no'; readonly reason: string; readonly end: 'asleep' | 'closed' }

/** How its configuration differs from what it was started with. */
export type DriftKind = 'none' | 'reapply' | 'restart'

export interface Situation {
  readonly session: SessionRecord
  /** `unadopted`: a process may be there, and nobody has looked yet. */
  readonly process: 'none' | 'alive' | 'unknown' | 'unadopted'
  readonly activity: Activity
  /** Since when it has shown no sign of work. */
  readonly quietSince: number
  /** Since when it takes no messages. */
  readonly busySince: number | undefined
  readonly pending: boolean
  readonly attended: boolean
  /** It has work that is assigned to it. */
  readonly assigned: boolean
  /** What waits, in order: of a long queue its head, one that wakes and those whose time comes next. */
  readonly queue: readonly DeliveryRecord[]
  /** Since when a person has half a line in its terminal. */
  readonly personTypingSince: number | undefined
  /** When that half line counts as left behind and is taken back; undefined: somebody is there, or it cannot be. */
  readonly lineLeftAt: number | undefined
  /** When the last message began to be typed into this process. */
  readonly saidAt: number | undefined
  /** When the turn was last interrupted for what waits. */
  readonly interruptedAt: number | undefined
  readonly want: Want
  readonly drift: DriftKind
  /** Why it may not start now: a limit, a dependency, a suspended city. */
  readonly blocked: string | undefined
  readonly policy: Policy
  readonly age: AgePolicy
  readonly now: number
}

/** A move with what goes with it. */
export interface Turn {
  readonly signal: SessionSignal
  readonly reason?: string
  readonly event?: 'session.idle_killed' | 'session.max_age_killed' | 'session.reset' | 'session.start_failed'
  readonly deadlineMs?: number
  readonly fields?: SessionChange
}

export type Action =
  | { readonly do: 'wait'; readonly until: number | undefined }
  | { readonly do: 'adopt' }
  | { readonly do: 'start' }
  | { readonly do: 'move'; readonly turn: Turn }
  /** Ends the process, then moves. */
  | { readonly do: 'stop'; readonly graceMs: number; readonly turn: Turn }
  | { readonly do: 'deliver'; readonly delivery: DeliveryRecord }
  /** Finds out what became of a delivery that was under way. */
  | { readonly do: 'settle'; readonly delivery: DeliveryRecord }
  | { readonly do: 'interrupt'; readonly delivery: DeliveryRecord }
  | { readonly do: 'report-queued'; readonly deliveries: readonly DeliveryRecord[]; readonly waitsFor: WaitsFor }
  | { readonly do: 'lift-limit' }
  | {
      readonly do: 'expire-deliveries'
      readonly deliveries: readonly DeliveryRecord[]
      readonly why: 'expired' | 'timeout' | 'held'
    }
  | { readonly do: 'reapply' }

const STICKY_DRAINS: ReadonlySet<string> = new Set([
  'orphaned',
  'suspended',
  'config-drift',
  'max-session-age',
  'restart-requested',
  'reset',
])
/** Drains for a hold, which may be lifted. */
const HOLDS: ReadonlySet<string> = new Set(['orphaned', 'suspended', 'missing-config', 'untrusted-pack'])
/** Drains that a caller has asked for. */
const CALLERS_DRAINS: ReadonlySet<string> = new Set(['requested', 'restart-requested', 'reset'])
/** Idle for this long: the turn in which it asked for its restart is over. */
const TURN_OVER_MS = 1_000
/** Drains after which it starts again. */
const RESTARTING_DRAINS: ReadonlySet<string> = new Set([
  'config-drift',
  'max-session-age',
  'restart-requested',
  'reset',
])

const DRAIN_EVENTS: { readonly [reason: string]: Turn['event'] } = {
  'max-session-age': 'session.max_age_killed',
  reset: 'session.reset',
}

export function nextAction(situation: Situation): Action {
  const { session, process } = situation
  if (process === 'unadopted') return { do: 'adopt' }
  if (due(session.limited_until, situation.now)) return { do: 'lift-limit' }
  const queueing = queueAction(situation)
  if (queueing !== undefined) return queueing
  // R1: until it can be observed again, nothing but its queue is touched.
  if (process === 'unknown') return wait(situation)
  if (process === 'none' && session.process) return lost(situation)
  return session.desired === 'running' ? running(situation) : ending(situation)
}

// ---- what is to end -------------------------------------------------------------------------------------------------

function ending(situation: Situation): Action {
  const { session, process, policy } = situation
  const turn = endOf(session)
  if (process === 'alive') return { do: 'stop', graceMs: policy.shutdownMs, turn }
  const target = RESTING[session.desired]
  if (session.state === target || session.state === 'closed') return wake(situation) ?? wait(situation)
  if (session.desired === 'asleep' && !hasProcess(session.state)) return wake(situation) ?? resting(situation)
  return { do: 'move', turn }
}

const RESTING: { readonly [Desired in SessionRecord['desired']]: SessionState } = {
  running: 'active',
  asleep: 'asleep',
  suspended: 'suspended',
  closed: 'closed',
}

/** Why a session is suspended whose budget is used up. */
export const BUDGET = 'budget'

/** What ends a session as its record wants it; one that never ran sleeps before it is held. */
export function endOf({ state, desired, drain_reason: reason }: SessionRecord): Turn {
  if (desired === 'closed')
    return { signal: 'close', reason: reason ?? 'requested', fields: { drain_reason: undefined } }
  if (desired === 'suspended' && mayMove(state, 'suspend'))
    return { signal: 'suspend', reason: reason === BUDGET ? BUDGET : 'user-hold', fields: { drain_reason: undefined } }
  return { signal: 'rest', reason: reason ?? 'no-wake-reason', fields: { drain_reason: undefined } }
}

/** Asleep by its own record: a quarantine runs out all the same. */
function resting(situation: Situation): Action {
  const { session, now } = situation
  if (session.state === 'quarantined' && due(session.quarantined_until, now)) return { do: 'move', turn: UNQUARANTINE }
  if (session.state === 'start-pending') return { do: 'move', turn: endOf(session) }
  return wait(situation)
}

const UNQUARANTINE: Turn = {
  signal: 'expire',
  reason: 'quarantine-expired',
  fields: { quarantined_until: undefined, retry_at: undefined },
}

/** The city wants it awake although its record rests. A caller's hold is not lifted by that (decision 61). */
function wake(situation: Situation): Action | undefined {
  const { session, want, queue } = situation
  const wanted = want.run === 'yes' || (want.run === 'as-desired' && queue.some(({ wakes }) => wakes))
  if (!wanted || (session.state !== 'asleep' && session.state !== 'failed-create')) return undefined
  if (session.desired === 'suspended' || !mayRetry(situation)) return undefined
  const cause = want.run === 'yes' ? want.cause : 'message'
  return { do: 'move', turn: { signal: 'wake', reason: cause, fields: { desired: 'running' } } }
}

// ---- what is to run -------------------------------------------------------------------------------------------------

function running(situation: Situation): Action {
  const { session, process, now } = situation
  switch (session.state) {
    case 'start-pending':
      return startPending(situation)
    case 'creating':
      // Its start is under way, or was taken over; without a process it is `lost`.
      return process === 'alive' && due(session.deadline, now) ? overdueStart(situation) : wait(situation)
    case 'quarantined':
      return due(session.quarantined_until ?? session.deadline, now)
        ? { do: 'move', turn: UNQUARANTINE }
        : wait(situation)
    case 'asleep':
    case 'failed-create':
      return sleeping(situation)
    case 'active':
      return active(situation)
    case 'draining':
      return draining(situation)
    // A message came while it was being suspended: that lifts the hold.
    case 'suspended':
      return { do: 'move', turn: { signal: 'wake', reason: 'message' } }
    case 'closed':
      return wait(situation)
  }
}

function startPending(situation: Situation): Action {
  const { session, want, blocked, now, policy } = situation
  if (want.run === 'no')
    return { do: 'move', turn: { signal: want.end === 'closed' ? 'close' : 'rest', reason: want.reason } }
  if (blocked === undefined && mayRetry(situation)) return { do: 'start' }
  if (now >= session.state_since + policy.startPendingMs && (session.retry_at ?? 0) <= now)
    return {
      do: 'move',
      turn: {
        signal: failedStart(session.lived_at !== undefined),
        reason: blocked ?? 'failed-create',
        fields: { desired: 'asleep' },
      },
    }
  return wait(situation)
}

function overdueStart({ session, policy }: Situation): Action {
  return {
    do: 'stop',
    graceMs: policy.shutdownMs,
    turn: {
      signal: failedStart(session.lived_at !== undefined),
      reason: 'startup-timeout',
      fields: { desired: 'asleep' },
    },
  }
}

/** Asleep, and its record says that it should run: as after a stop of the city, or a start that failed. */
function sleeping(situation: Situation): Action {
  const { session, want } = situation
  if (want.run === 'no' || !mayRetry(situation)) return wait(situation)
  const lifted = session.reason === undefined ? undefined : LIFTED[session.reason]
  return {
    do: 'move',
    turn: { signal: 'wake', reason: want.run === 'yes' ? want.cause : (lifted ?? session.reason ?? 'wanted') },
  }
}

/** Why it is back, by why it slept. */
const LIFTED: { readonly [reason: string]: string } = {
  suspended: 'resumed',
  orphaned: 'resumed',
  'missing-config': 'resumed',
  'untrusted-pack': 'resumed',
  'city-stop': 'city-start',
}

/** Its row says that a process exists, and none is there: what its exit was is decided with the exit at hand. */
function lost({ session }: Situation): Action {
  const turn: Turn =
    session.state === 'creating'
      ? { signal: 'crash', reason: 'interrupted', event: 'session.start_failed' }
      : { signal: 'rest', reason: 'runtime-missing' }
  return { do: 'move', turn: { ...turn, fields: { process: false, pid: undefined } } }
}

function active(situation: Situation): Action {
  const { session, want, drift, attended, pending, policy, age } = situation
  if (want.run === 'no' && !attended) return drain(want.reason, age.drainMs)
  const free = !attended && !pending && situation.queue.length === 0
  if (drift === 'restart' && !attended && !session.pinned) return drain('config-drift', policy.driftDrainMs)
  if (drift === 'reapply') return { do: 'reapply' }
  if (due(stallsAt(situation), situation.now))
    return {
      do: 'stop',
      graceMs: policy.shutdownMs,
      turn: stalledTurn(session, situation.now, policy.crash),
    }
  if (free && isQuiet(situation)) {
    const old = ageAction(situation)
    if (old !== undefined) return old
  }
  return deliver(situation) ?? wait(situation)
}

const drain = (reason: string, deadlineMs: number): Action => ({
  do: 'move',
  turn: { signal: 'drain', reason, deadlineMs, fields: { drain_reason: reason, drain_acked: false } },
})

/** When a turn that shows no sign of life is given up; who asks or is watched is not stalled. */
function stallsAt({ activity, pending, attended, quietSince, busySince, policy }: Situation): number | undefined {
  const ms = policy.stall.turnMs
  if (ms === undefined || activity !== 'in-turn' || pending || attended) return undefined
  return Math.max(quietSince, busySince ?? quietSince) + ms
}

const isQuiet = ({ activity }: Situation): boolean => activity !== 'in-turn'

/** Old age, idleness: guards first (sheet 04 §8). */
function ageAction(situation: Situation): Action | undefined {
  const { session, want, age, assigned, quietSince, now, policy } = situation
  const stop = (turn: Turn): Action => ({ do: 'stop', graceMs: policy.shutdownMs, turn })
  const cleared: SessionChange = { max_age_at: undefined }
  if (due(session.max_age_at, now) && !assigned)
    return stop({ signal: 'kill', reason: 'max-session-age', event: 'session.max_age_killed', fields: cleared })
  const idleMs = now - quietSince
  const deferred = assigned && (age.deferMs === 0 || idleMs < age.deferMs)
  if (session.pinned || deferred) return undefined
  if (age.idleTimeoutMs !== undefined && idleMs >= age.idleTimeoutMs)
    return stop({
      signal: 'kill',
      reason: assigned ? 'assigned-work-exhausted' : 'idle-timeout',
      event: 'session.idle_killed',
      fields: { ...cleared, fresh: true },
    })
  if (age.sleepAfterIdleMs === undefined || want.run === 'yes' || idleMs < age.sleepAfterIdleMs) return undefined
  return stop({
    signal: 'rest',
    reason: assigned ? 'assigned-work-exhausted' : 'idle',
    fields: { ...cleared, desired: 'asleep' },
  })
}

function draining(situation: Situation): Action {
  const { session, now, policy, pending } = situation
  const reason = session.drain_reason ?? 'drained'
  const cause = undrainCause(situation, reason)
  if (cause !== undefined) {
    const fields: SessionChange = { drain_reason: undefined, drain_acked: false }
    return { do: 'move', turn: { signal: 'undrain', reason: cause, fields } }
  }
  const overdue = due(session.deadline, now)
  const silent = !pending && isQuiet(situation) && due(silentAt(situation), now)
  if (!overdue && !session.drain_acked && !silent) return deliver(situation) ?? wait(situation)
  return { do: 'stop', graceMs: policy.shutdownMs, turn: afterDrain(situation, reason) }
}

/** Why it is not to end after all; undefined: it is. */
function undrainCause({ session, want, queue, attended }: Situation, reason: string): string | undefined {
  // R4: whoever is there has not asked for it.
  if (attended && !CALLERS_DRAINS.has(reason)) return 'attached'
  if (HOLDS.has(reason) && want.run !== 'no' && !session.drain_acked) return 'resumed'
  if (STICKY_DRAINS.has(reason)) return undefined
  if (want.run === 'yes') return want.cause
  return want.run === 'as-desired' && queue.some(({ wakes }) => wakes) ? 'message' : undefined
}

/**
 * When its silence says that it has finished: after a whole tick without a word and without work; where a restart was
 * asked for as soon as the turn that asked is over.
 */
function silentAt({ session, activity, quietSince, policy }: Situation): number {
  const restart = session.drain_reason === 'restart-requested' && activity === 'idle'
  return restart ? Math.max(quietSince, session.state_since) + TURN_OVER_MS : session.state_since + policy.patrolMs
}

/** What comes after a drain has done what it was for. */
export function afterDrain({ session, want }: Pick<Situation, 'session' | 'want'>, reason: string): Turn {
  const fields: SessionChange = { drain_reason: undefined, drain_acked: false }
  if (RESTARTING_DRAINS.has(reason))
    return {
      signal: 'kill',
      reason,
      ...(DRAIN_EVENTS[reason] === undefined ? {} : { event: DRAIN_EVENTS[reason] }),
      fields: { ...fields, ...(reason === 'reset' ? { fresh: true, conversation_id: undefined } : {}) },
    }
  if (want.run === 'no' && want.end === 'closed') return { signal: 'close', reason, fields }
  return {
    signal: 'rest',
    reason: session.drain_acked ? 'drained' : reason,
    // What was only held goes on when it is held no longer.
    fields: { ...fields, desired: want.run === 'no' || HOLDS.has(reason) ? session.desired : 'asleep' },
  }
}

// ---- the queue ------------------------------------------------------------------------------------------------------

/** What is due for the queue whatever the process does: ends that time brings, and requests that have waited enough. */
function queueAction(situation: Situation): Action | undefined {
  const { queue, now, policy } = situation
  if (queue.length === 0) return undefined
  const queued = queue.filter(({ state }) => state === 'queued')
  const expired = queued.filter(({ expires_at }) => expires_at <= now)
  if (expired.length > 0) return { do: 'expire-deliveries', deliveries: expired, why: 'expired' }
  const open = queued.filter(({ request_open }) => request_open)
  const busy = busyOf(situation)
  const reported = open.filter((one) => due(reportAt(one, busy, situation), now))
  if (reported.length > 0) return { do: 'report-queued', deliveries: reported, waitsFor: waitsFor(situation) ?? 'turn' }
  const held = queued.filter((one) => due(heldUntil(one, situation), now))
  if (held.length > 0) return { do: 'expire-deliveries', deliveries: held, why: 'held' }
  const late = open.filter(({ created_at }) => created_at + policy.deliveryMs <= now)
  return late.length > 0 ? { do: 'expire-deliveries', deliveries: late, why: 'timeout' } : undefined
}

/** R5: whoever stays away from a half line must not stop the queue for good. */
function heldUntil({ created_at }: DeliveryRecord, situation: Situation): number | undefined {
  const { session, process, personTypingSince, activity, pending, quietSince, policy } = situation
  if (
    personTypingSince === undefined ||
    situation.lineLeftAt !== undefined ||
    pending ||
    process !== 'alive' ||
    session.state !== 'active'
  )
    return undefined
  if (session.limited_until !== undefined) return undefined
  if (!takesMessages(activity, session)) return undefined
  return Math.max(created_at, personTypingSince, quietSince) + policy.deliveryMs
}

/** Since when it cannot take what waits, where it runs at all. */
function busyOf({ session, process, pending, busySince, personTypingSince }: Situation): number | undefined {
  if (session.desired === 'suspended') return session.state_since
  if (process !== 'alive' || session.state !== 'active') return undefined
  if (session.limited_until !== undefined) return session.limited_at ?? session.state_since
  return busySince ?? (pending ? session.state_since : personTypingSince)
}

function waitsFor({ session, pending, personTypingSince, busySince }: Situation): WaitsFor | undefined {
  if (session.desired === 'suspended') return 'hold'
  if (isRestarting(session)) return 'restart'
  if (session.limited_until !== undefined) return 'rate_limit'
  if (pending) return 'answer'
  if (busySince !== undefined) return 'turn'
  return personTypingSince === undefined ? undefined : 'person'
}

export type Obstacle = WaitsFor | 'start'

/** Why what is queued is not said now; undefined: it is about to be. */
export function obstacleOf(situation: Situation): Obstacle | undefined {
  const { process, session } = situation
  const listens = process === 'alive' && (session.state === 'active' || session.state === 'draining')
  return listens || session.desired === 'suspended' ? waitsFor(situation) : 'start'
}

/** A busy agent: who follows up is told at once, everybody else after 30 s (decision 59); of a limit all are at once. */
function reportAt(
  { intent, created_at }: DeliveryRecord,
  busy: number | undefined,
  { session, policy }: Pick<Situation, 'session' | 'policy'>,
): number | undefined {
  if (busy === undefined) return undefined
  const isHeld = session.limited_until !== undefined || session.desired === 'suspended'
  return intent === 'follow_up' || isHeld ? busy : Math.max(created_at, busy) + policy.busyMs
}

function deliver(situation: Situation): Action | undefined {
  const { queue, activity, pending, interruptedAt, personTypingSince, now, policy, session } = situation
  const head = queue[0]
  if (head === undefined) return undefined
  if (head.state === 'delivering') return { do: 'settle', delivery: head }
  if (session.limited_until !== undefined) return undefined
  if (pending || (personTypingSince !== undefined && !due(situation.lineLeftAt, now))) return interrupt(situation)
  if (isRestarting(session)) return interrupt(situation)
  if (takesMessages(activity, session)) return { do: 'deliver', delivery: head }
  // ACP has no way to say something into a turn: what is urgent waits for its end too, and goes to the next process after a kill.
  if (head.eager && session.runtime !== 'acp') return { do: 'deliver', delivery: head }
  if (session.runtime !== 'acp' && interruptedAt !== undefined && now >= interruptedAt + policy.interruptMs)
    return { do: 'deliver', delivery: head }
  return interrupt(situation)
}

/** An urgent message ends the turn, or dismisses the question, that was there when it was accepted; once. */
function interrupt(situation: Situation): Action | undefined {
  const { queue, saidAt, interruptedAt, pending, now, policy } = situation
  const head = queue[0]
  if (head?.intent !== 'interrupt_now') return undefined
  if (!pending && saidAt !== undefined && saidAt > head.created_at) return undefined
  if (interruptedAt === undefined) return { do: 'interrupt', delivery: head }
  // A question that is still open after so long was asked behind the one that was dismissed.
  return pending && now >= interruptedAt + policy.interruptMs ? { do: 'interrupt', delivery: head } : undefined
}

/** Its process is about to be replaced: what waits is for the next one, which takes it within a second. */
const isRestarting = ({ state, drain_reason: reason }: SessionRecord): boolean =>
  state === 'draining' && reason !== undefined && RESTARTING_DRAINS.has(reason)

// ---- waiting --------------------------------------------------------------------------------------------------------

/** Until when nothing can happen by itself; everything else wakes the actor. */
function wait(situation: Situation): Action {
  const { session, queue, policy, age, now, interruptedAt, process, quietSince, activity } = situation
  const open = queue.filter(({ request_open }) => request_open)
  const busy = busyOf(situation)
  const alive = process === 'alive'
  const times: (number | undefined)[] = [
    session.retry_at,
    session.deadline,
    session.quarantined_until,
    session.limited_until,
    ...queue.map(({ expires_at }) => expires_at),
    ...open.map((one) => reportAt(one, busy, situation)),
    ...open.map(({ created_at }) => created_at + policy.deliveryMs),
    ...queue.map((one) => heldUntil(one, situation)),
    queue.length === 0 ? undefined : situation.lineLeftAt,
  ]
  if (session.state === 'start-pending') times.push(session.state_since + policy.startPendingMs)
  if (alive) {
    times.push(session.max_age_at)
    if (session.state === 'draining') times.push(silentAt(situation))
    if (interruptedAt !== undefined) times.push(interruptedAt + policy.interruptMs)
    if (session.state === 'active') times.push(stallsAt(situation))
    if (activity !== 'in-turn')
      for (const ms of [age.idleTimeoutMs, age.sleepAfterIdleMs]) if (ms !== undefined) times.push(quietSince + ms)
  }
  const later = times.filter((at) => at !== undefined).filter((at) => at > now)
  return { do: 'wait', until: later.length === 0 ? undefined : Math.min(...later) }
}

/** No pause is longer than the longest: one that seems to be is that of a clock which was set back meanwhile. */
const mayRetry = ({ session: { retry_at: at }, now, policy }: Situation): boolean =>
  at === undefined || now >= at || at - now > policy.crash.maxBackOffMs

/** Whether a time has come; `otherwise` where none is set. */
function due(at: number | undefined, now: number, otherwise = false): boolean {
  return at === undefined ? otherwise : now >= at
}
