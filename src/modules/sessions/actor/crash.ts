/** What an exit is taken for, and what it costs (sheet 04 §8, decision 62). Pure. */
import { cut } from '../../../contract/base/text.ts'
import type { SessionExit } from '../../../contract/sessions/session-model.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Exit } from '../../../runtimes/process/runtime.ts'
import { KEY_LOST } from '../record/identity.ts'
import type { CrashPolicy } from '../record/policy.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import type { Turn } from './reconcile.ts'

export interface ExitFacts {
  readonly exit: Exit
  /** Its last lines, for people: nothing is judged by them. */
  readonly output?: string
  /** The conversation was resumed by its key at this start. */
  readonly resumed: boolean
  readonly now: number
}

export interface ExitVerdict {
  readonly classification: SessionExit['classification']
  /** Which edge it takes. */
  readonly signal: 'crash' | 'quarantine' | 'rest'
  readonly reason: string
  /** How long the quarantine lasts. */
  readonly holdMs?: number
  /** Why it is held, and until when; undefined where it is not. */
  readonly why?: string
  readonly fields: SessionChange
}

/** An exit that nobody asked for. What was asked for never comes here: it counts nothing. */
export function classifyExit(session: SessionRecord, facts: ExitFacts, policy: CrashPolicy): ExitVerdict {
  const { exit, now } = facts
  const base = { last_exit: undefined, process: false, pid: undefined } as const
  const told = (classification: SessionExit['classification']): SessionExit =>
    wireExit(exit, classification, facts.output)
  if (exit.reason === 'exited' && exit.code === 0) {
    return {
      classification: 'exited',
      signal: 'rest',
      reason: 'exited',
      fields: { ...base, last_exit: told('exited'), ...clearedCounters },
    }
  }
  const until = limitOf(session, now)
  if (exit.reason === 'exited' && until !== undefined) {
    return {
      classification: 'rate_limited',
      signal: 'quarantine',
      reason: 'rate_limit',
      holdMs: until - now,
      why: `its provider limits it: it ended with status ${exit.code}; ${held(until)}`,
      fields: { ...base, last_exit: told('rate_limited'), quarantined_until: until },
    }
  }
  return crashVerdict(session, facts, policy, { ...base, last_exit: told('crash') })
}

const held = (until: number): string => `it is held until ${isoTime(until)}, or until somebody wakes it`

/** The end of a limit that its log, its protocol or a report names. What stood on its screen may be anybody's words. */
function limitOf({ limited_until: until, limit_source: source }: SessionRecord, now: number): number | undefined {
  return until !== undefined && until > now && source !== 'screen' ? until : undefined
}

const clearedCounters: SessionChange = { rapid_crashes: 0, churn: 0 }

function crashVerdict(
  session: SessionRecord,
  { exit, resumed, now }: ExitFacts,
  policy: CrashPolicy,
  base: SessionChange,
): ExitVerdict {
  const livedMs = now - (session.last_woke_at ?? now)
  const rapid = livedMs < policy.rapidMs ? session.rapid_crashes + 1 : 0
  const churn = livedMs >= policy.rapidMs && livedMs < policy.churnMs ? session.churn + 1 : 0
  const crashes = crashesWith(session, now, policy)
  const fields: SessionChange = {
    ...base,
    rapid_crashes: rapid,
    churn,
    crashes,
    // Who was killed, or died with its host, says nothing of its key.
    ...(resumed && exit.reason === 'exited' && livedMs < policy.staleKeyMs ? KEY_LOST : {}),
    retry_at: now + backOffMs(Math.max(rapid, 1), policy),
  }
  const row: Hold | undefined =
    rapid >= policy.rapidLimit
      ? { reason: 'quarantine', holdMs: policy.holdMs, why: `it crashed ${rapid} times in a row right after its start` }
      : churn >= policy.churnLimit
        ? {
            reason: 'context-churn',
            holdMs: policy.holdMs,
            why: `it crashed ${churn} times in a row soon after its start`,
          }
        : undefined
  const spent = spentBudget(session, crashes, now, policy)
  if (row === undefined && spent === undefined)
    return { classification: 'crash', signal: 'crash', reason: 'crashed', fields }
  const holdMs = Math.max(row?.holdMs ?? 0, spent?.holdMs ?? 0)
  // An open breaker says more than the crash that opened it.
  const hold = spent?.reason === OPEN ? spent : (row ?? spent)
  return {
    classification: 'crash',
    signal: 'quarantine',
    reason: hold?.reason ?? 'quarantine',
    holdMs,
    why: `${hold?.why ?? 'it crashed'}; ${held(now + holdMs)}`,
    fields: { ...fields, quarantined_until: now + holdMs, rapid_crashes: 0, churn: 0 },
  }
}

interface Hold {
  readonly reason: string
  readonly holdMs: number
  readonly why: string
}

const OPEN = 'circuit-open'
const MAX_CRASHES = 100

/** This one with those before it that still count for something. */
export function crashesWith(
  { crashes }: Pick<SessionRecord, 'crashes'>,
  now: number,
  policy: CrashPolicy,
): readonly number[] {
  const windowMs = Math.max(policy.restartWindowMs, policy.breaker?.windowMs ?? 0)
  return [...crashes.filter((at) => at > now - windowMs), now].slice(-MAX_CRASHES)
}

/** More restarts than the city allows within a window; a named session has its breaker for that, where it is switched on. */
function spentBudget(
  { named }: SessionRecord,
  crashes: readonly number[],
  now: number,
  policy: CrashPolicy,
): Hold | undefined {
  const breaker = named === undefined ? undefined : policy.breaker
  const { maxRestarts, windowMs } = breaker ?? { maxRestarts: policy.maxRestarts, windowMs: policy.restartWindowMs }
  const counted = crashes.filter((at) => at > now - windowMs)
  if (maxRestarts === 0 || counted.length <= maxRestarts) return undefined
  const why = `it crashed ${counted.length} times within ${Math.round(windowMs / 1000)} s`
  if (breaker !== undefined) return { reason: OPEN, holdMs: breaker.resetMs, why: `${why}: its breaker is open` }
  // The budget frees up when its oldest crash leaves the window, not before.
  return { reason: 'quarantine', holdMs: Math.max((counted[0] ?? now) + windowMs - now, policy.holdMs), why }
}

/** What a turn without a sign of life costs: it is restarted, and counts towards the budget as a crash does. */
export function stalledTurn(session: SessionRecord, now: number, policy: CrashPolicy): Turn {
  const crashes = crashesWith(session, now, policy)
  const spent = spentBudget(session, crashes, now, policy)
  if (spent === undefined) return { signal: 'kill', reason: STALLED, fields: { crashes } }
  const { reason, holdMs } = spent
  const held = reason === OPEN ? OPEN : STALLED
  return { signal: 'quarantine', reason: held, fields: { crashes, quarantined_until: now + holdMs } }
}

const STALLED = 'progress-stall'

/** Pause before the n-th start in a row. */
export const backOffMs = (inARow: number, { backOffMs: first, maxBackOffMs }: CrashPolicy): number =>
  Math.min(first * 2 ** Math.max(inARow - 1, 0), maxBackOffMs)

/** Crashes that count towards the quarantine now. */
export const crashCount = ({ crashes }: SessionRecord, now: number, restartWindowMs: number): number =>
  crashes.filter((at) => at > now - restartWindowMs).length

export function wireExit(exit: Exit, classification: SessionExit['classification'], output = ''): SessionExit {
  return {
    at: isoTime(exit.at),
    reason: exit.reason,
    classification,
    ...(exit.code === undefined ? {} : { code: exit.code }),
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
    ...(exit.message === undefined ? {} : { message: cut(exit.message, 4096) }),
    ...(output === '' ? {} : { output }),
  }
}
