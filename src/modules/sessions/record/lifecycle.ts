/**
 * The one table of a session's states (sheet 04 §3, decisions 61, 62). The reconciler, the API and the reference
 * documents read it from here; nothing else decides where a session may go.
 *
 * L1  Every state but the resting ones has a deadline, and exactly one edge that its expiry takes.
 * L2  A move that is not in the table is refused, with the words of the table.
 * L3  `closed` is left by nothing.
 */
import type { SessionState } from '../../../contract/sessions/session-model.ts'
import { problem } from '../../../kernel/problem.ts'

export const SESSION_SIGNALS = [
  'wake',
  'prewake',
  'ready',
  'start-failed',
  'roll-back',
  'drain',
  'undrain',
  'rest',
  'suspend',
  'crash',
  'kill',
  'quarantine',
  'expire',
  'close',
] as const
export type SessionSignal = (typeof SESSION_SIGNALS)[number]

interface StateFacts {
  readonly means: string
  /** May a process of it exist? `starting`: between the commit of its token and its being ready. */
  readonly process: 'none' | 'starting' | 'alive'
  /** Counts towards the limits of its agent, rig and city. */
  readonly counts: boolean
  /** The setting that bounds how long it may last; absent for states that may last for ever. */
  readonly deadline?: 'start_pending' | 'startup_timeout' | 'drain_timeout' | 'quarantine'
  readonly moves: { readonly [Signal in SessionSignal]?: SessionState }
}

export const STATES: { readonly [State in SessionState]: StateFacts } = {
  'start-pending': {
    means: 'waits for its turn to start',
    process: 'none',
    counts: true,
    deadline: 'start_pending',
    moves: {
      wake: 'start-pending',
      prewake: 'creating',
      rest: 'asleep',
      'start-failed': 'failed-create',
      'roll-back': 'asleep',
      quarantine: 'quarantined',
      expire: 'failed-create',
      close: 'closed',
    },
  },
  creating: {
    means: 'its process is being started',
    process: 'starting',
    counts: true,
    deadline: 'startup_timeout',
    moves: {
      wake: 'creating',
      ready: 'active',
      'start-failed': 'failed-create',
      'roll-back': 'asleep',
      rest: 'asleep',
      kill: 'start-pending',
      crash: 'start-pending',
      quarantine: 'quarantined',
      expire: 'failed-create',
      close: 'closed',
    },
  },
  active: {
    means: 'its process runs',
    process: 'alive',
    counts: true,
    moves: {
      wake: 'active',
      drain: 'draining',
      rest: 'asleep',
      suspend: 'suspended',
      crash: 'start-pending',
      kill: 'start-pending',
      quarantine: 'quarantined',
      close: 'closed',
    },
  },
  draining: {
    means: 'it was asked to finish',
    process: 'alive',
    counts: true,
    deadline: 'drain_timeout',
    moves: {
      wake: 'active',
      drain: 'draining',
      undrain: 'active',
      rest: 'asleep',
      suspend: 'suspended',
      crash: 'start-pending',
      kill: 'start-pending',
      quarantine: 'quarantined',
      expire: 'asleep',
      close: 'closed',
    },
  },
  asleep: {
    means: 'no process; wakes on a cause',
    process: 'none',
    counts: false,
    moves: { wake: 'start-pending', rest: 'asleep', suspend: 'suspended', quarantine: 'quarantined', close: 'closed' },
  },
  suspended: {
    means: 'held until a caller wakes it',
    process: 'none',
    counts: false,
    moves: { wake: 'start-pending', suspend: 'suspended', rest: 'suspended', close: 'closed' },
  },
  quarantined: {
    means: 'held for a while after crashes or a rate limit',
    process: 'none',
    counts: true,
    deadline: 'quarantine',
    moves: {
      wake: 'start-pending',
      rest: 'asleep',
      suspend: 'suspended',
      quarantine: 'quarantined',
      expire: 'asleep',
      close: 'closed',
    },
  },
  'failed-create': {
    means: 'it could never be started',
    process: 'none',
    counts: false,
    moves: { wake: 'start-pending', rest: 'failed-create', suspend: 'suspended', close: 'closed' },
  },
  closed: {
    means: 'ended for good; readable',
    process: 'none',
    counts: false,
    moves: { close: 'closed' },
  },
}

/** Where `signal` takes a session, or 409 `illegal_transition:`. */
export function nextState(session: { readonly id: string; readonly state: SessionState }, signal: SessionSignal) {
  const next = STATES[session.state].moves[signal]
  if (next === undefined)
    throw problem('illegal-transition', `session ${session.id} is ${session.state}: it takes no ${signal}`)
  return next
}

export const mayMove = (state: SessionState, signal: SessionSignal): boolean =>
  STATES[state].moves[signal] !== undefined

/** A start that failed: a session that has lived goes to sleep and may be woken again; a new one is a failed creation. */
export const failedStart = (lived: boolean): SessionSignal => (lived ? 'roll-back' : 'start-failed')

export const hasProcess = (state: SessionState): boolean => STATES[state].process !== 'none'
export const countsTowardCaps = (state: SessionState): boolean => STATES[state].counts
