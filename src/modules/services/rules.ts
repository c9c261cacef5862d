/**
 * What is next for a service (decisions 164 to 166). Pure: times are those of a clock that only goes forward.
 *
 * L1  Nothing is started while what was started before may still run.
 * L2  What fails is tried again, later each time and at most a minute apart, and never given up.
 */

/** How long it may take until it listens. */
export const READY_MS = 30_000
export const PROBE_EVERY_MS = 5_000
export const MOST_FAILED_PROBES = 3
/** Healthy for so long, its failures are forgotten. */
export const HEALED_MS = 60_000
/** Between two looks at one that is to become ready: at first often, for most are there at once. */
const EAGER_MS = 50
const EAGER_FOR_MS = 2_000
const WATCHFUL_MS = 500
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
const JITTER = 0.2

/** What is wanted of it; `block`: somebody has to allow it first. */
export type Wanted = 'run' | 'suspend' | 'block' | 'end'

/** `unknown`: an earlier run of the supervisor has started it, and it is not found yet. */
export type ProcessState = 'none' | 'unknown' | 'starting' | 'ready' | 'ended'

export interface Facts {
  readonly wanted: Wanted
  /** The supervisor ends: processes run on. */
  readonly leaving: boolean
  readonly process: ProcessState
  /** It runs what is not configured any more. */
  readonly stale: boolean
  /** Somebody wants it to begin anew. */
  readonly restart: boolean
  readonly now: number
  readonly startedAt: number
  readonly readyAt: number
  /** When it was looked at last. */
  readonly probedAt: number
  readonly failedProbes: number
  /** So many failed starts and ends in a row. */
  readonly failures: number
  readonly nextStartAt: number
}

export type StopWhy = 'restart' | 'reconfigured' | 'unhealthy' | 'not_ready' | 'suspended' | 'untrusted_pack' | 'ended'

export type Step =
  | { readonly do: 'leave' | 'adopt' | 'bury' | 'start' | 'probe' | 'heal' }
  | { readonly do: 'stop'; readonly why: StopWhy }
  /** Until something changes, or then. */
  | { readonly do: 'wait'; readonly until: number }

export function nextStep(facts: Facts): Step {
  if (facts.leaving) return { do: 'leave' }
  if (facts.process === 'unknown') return { do: 'adopt' }
  if (facts.process === 'ended') return { do: 'bury' }
  return facts.process === 'none' ? withoutProcess(facts) : withProcess(facts)
}

function withoutProcess({ wanted, restart, now, nextStartAt }: Facts): Step {
  if (wanted === 'end') return { do: 'leave' }
  if (wanted !== 'run') return { do: 'wait', until: Number.POSITIVE_INFINITY }
  return restart || now >= nextStartAt ? { do: 'start' } : { do: 'wait', until: nextStartAt }
}

function withProcess(facts: Facts): Step {
  const { wanted, stale, restart, process, now, startedAt, probedAt, failedProbes, failures, readyAt } = facts
  if (wanted !== 'run') return { do: 'stop', why: WHY[wanted] }
  if (restart) return { do: 'stop', why: 'restart' }
  if (stale) return { do: 'stop', why: 'reconfigured' }
  if (process === 'starting') {
    if (now - startedAt >= READY_MS) return { do: 'stop', why: 'not_ready' }
    const pause = now - startedAt < EAGER_FOR_MS ? EAGER_MS : WATCHFUL_MS
    return now >= probedAt + pause ? { do: 'probe' } : { do: 'wait', until: probedAt + pause }
  }
  if (failedProbes >= MOST_FAILED_PROBES) return { do: 'stop', why: 'unhealthy' }
  const healsAt = failures > 0 && failedProbes === 0 ? readyAt + HEALED_MS : Number.POSITIVE_INFINITY
  if (now >= healsAt) return { do: 'heal' }
  const probeAt = probedAt + PROBE_EVERY_MS
  return now >= probeAt ? { do: 'probe' } : { do: 'wait', until: Math.min(probeAt, healsAt) }
}

const WHY = { suspend: 'suspended', block: 'untrusted_pack', end: 'ended' } as const

/** Before the next start, after so many failures in a row; `chance` from 0 up to 1 keeps those of many services apart. */
export function pauseMs(failures: number, chance: number): number {
  const doubled = FIRST_PAUSE_MS * 2 ** Math.min(Math.max(failures, 1) - 1, 16)
  const most = Math.min(doubled, LONGEST_PAUSE_MS)
  return Math.round(Math.min(most * (1 + JITTER * (2 * chance - 1)), LONGEST_PAUSE_MS))
}
