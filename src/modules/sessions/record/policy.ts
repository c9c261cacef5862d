/**
 * Every deadline and threshold of sessions, from the city's `[session]`, `[daemon]` and the agent's own fields. The
 * defaults are those of the schema (contract/config-schema.ts) and are nowhere else.
 */

import { shapeOf } from '../../../contract/base/config-shape.ts'
import { parseDurationMs } from '../../../contract/base/durations.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import { AGENT_FIELDS, SETTINGS } from '../../../contract/config-schema.ts'
import type { AgentView, SessionsView } from './config-view.ts'
import { rigOf } from './config-view.ts'
import type { SessionRecord } from './record.ts'

export interface Policy {
  readonly startupTimeoutMs: number
  /** In `start-pending` without a turn. */
  readonly startPendingMs: number
  readonly setupTimeoutMs: number
  readonly handshakeTimeoutMs: number
  /** For all commands that make a worktree ready. */
  readonly worktreeSetupMs: number
  /** How long the first prompt of a line-oriented program is waited for. */
  readonly lineReadyMs: number
  /** Grace between asking a process to end and ending it. */
  readonly shutdownMs: number
  readonly patrolMs: number
  readonly debounceMs: number
  readonly driftDrainMs: number
  /** How long a start waits for the agents it depends on. */
  readonly dependencyMs: number
  readonly startsAtOnce: number
  readonly probesAtOnce: number
  /** A busy agent's request succeeds as queued after this long (decision 59). */
  readonly busyMs: number
  /** A turn that was interrupted has ended by then, or the message is typed all the same. */
  readonly interruptMs: number
  readonly deliveryMs: number
  readonly deliveryTtlMs: number
  readonly crash: CrashPolicy
  readonly stall: StallPolicy
  readonly unknownMs: number
  readonly retention: Retention
}

/** How long what sessions leave behind is kept; undefined: for ever. */
interface Retention {
  readonly runsAgeMs: number | undefined
  readonly runsBytes: number | undefined
  readonly closedMs: number | undefined
  readonly textsMs: number | undefined
}

export interface CrashPolicy {
  readonly rapidMs: number
  readonly rapidLimit: number
  readonly churnMs: number
  readonly churnLimit: number
  readonly holdMs: number
  readonly rateLimitHoldMs: number
  /** 0: no limit. */
  readonly maxRestarts: number
  readonly restartWindowMs: number
  /** First pause before a restart; doubles with every crash in a row. */
  readonly backOffMs: number
  readonly maxBackOffMs: number
  /** Dead this soon after resuming a conversation: its key is stale. */
  readonly staleKeyMs: number
  /** What named sessions have instead of the budget, where it is switched on. */
  readonly breaker: BreakerPolicy | undefined
}

export interface BreakerPolicy {
  readonly maxRestarts: number
  readonly windowMs: number
  /** How long it stays open. */
  readonly resetMs: number
}

/** Undefined: never. */
export interface StallPolicy {
  /** A turn without a sign of life for this long is ended with its process. */
  readonly turnMs: number | undefined
  /** Who holds work and shows no sign of life for this long is nudged, then loses it. */
  readonly holderMs: number | undefined
}

type Given = Pick<SessionsView, 'session' | 'daemon'> & {
  readonly worktrees?: SessionsView['worktrees'] | undefined
  readonly retention?: SessionsView['retention'] | undefined
}
const known = new WeakMap<Given['session'], { readonly given: Given; readonly policy: Policy }>()

/** Computed once per configuration: it is asked for at every look at a session. */
export function policyOf(given: Given): Policy {
  const cached = known.get(given.session)
  if (cached !== undefined && isSame(cached.given, given)) return cached.policy
  const policy = readPolicy(given)
  known.set(given.session, { given, policy })
  return policy
}

const isSame = (one: Given, other: Given): boolean =>
  one.daemon === other.daemon && one.worktrees === other.worktrees && one.retention === other.retention

function readPolicy({ session, worktrees, retention, daemon }: Given): Policy {
  const ofSession = reader(SETTINGS.session.properties, session)
  const ofDaemon = reader(SETTINGS.daemon.properties, daemon)
  const ofWorktrees = reader(SETTINGS.worktrees.properties, worktrees ?? {})
  const ofRetention = reader(SETTINGS.retention.properties, retention ?? {})
  const ofAcp = reader(SETTINGS.session.properties.acp.properties, session.acp ?? {})
  return {
    startupTimeoutMs: ofSession.ms('startup_timeout'),
    startPendingMs: ofSession.ms('start_pending_timeout'),
    setupTimeoutMs: ofSession.ms('setup_timeout'),
    handshakeTimeoutMs: ofAcp.ms('handshake_timeout'),
    worktreeSetupMs: ofWorktrees.ms('setup_timeout'),
    lineReadyMs: ofSession.ms('line_ready_timeout'),
    shutdownMs: ofDaemon.ms('shutdown_timeout'),
    patrolMs: ofDaemon.ms('patrol_interval'),
    debounceMs: ofSession.count('debounce_ms'),
    driftDrainMs: ofDaemon.ms('drift_drain_timeout'),
    dependencyMs: ofDaemon.ms('start_ready_timeout'),
    startsAtOnce: ofDaemon.count('max_wakes_per_tick'),
    probesAtOnce: ofDaemon.count('probe_concurrency'),
    busyMs: ofSession.ms('nudge_lock_timeout'),
    interruptMs: ofSession.ms('interrupt_timeout'),
    deliveryMs: ofSession.ms('delivery_timeout'),
    deliveryTtlMs: ofSession.ms('delivery_ttl'),
    crash: crashPolicy(ofDaemon),
    stall: {
      turnMs: ofSession.msOrOff('progress_stall_timeout'),
      holderMs: ofSession.msOrOff('claim_holder_stall_timeout'),
    },
    unknownMs: ofDaemon.ms('unknown_state_timeout'),
    retention: {
      runsAgeMs: ofRetention.msOrOff('runs_age'),
      runsBytes: ofRetention.count('runs_bytes') || undefined,
      closedMs: ofRetention.msOrOff('closed_sessions'),
      textsMs: ofRetention.msOrOff('delivery_texts'),
    },
  }
}

function crashPolicy(daemon: Reader<keyof typeof SETTINGS.daemon.properties>): CrashPolicy {
  return {
    rapidMs: daemon.ms('rapid_crash_window'),
    rapidLimit: daemon.count('rapid_crash_limit'),
    churnMs: daemon.ms('churn_window'),
    churnLimit: daemon.count('churn_limit'),
    holdMs: daemon.ms('quarantine_hold'),
    rateLimitHoldMs: daemon.ms('rate_limit_hold'),
    maxRestarts: daemon.count('max_restarts'),
    restartWindowMs: daemon.ms('restart_window'),
    backOffMs: daemon.ms('restart_backoff'),
    maxBackOffMs: daemon.ms('restart_backoff_max'),
    staleKeyMs: daemon.ms('stale_key_window'),
    breaker: daemon.flag('session_circuit_breaker') ? breakerPolicy(daemon) : undefined,
  }
}

function breakerPolicy(daemon: Reader<keyof typeof SETTINGS.daemon.properties>): BreakerPolicy {
  const windowMs = daemon.msOrOff('session_circuit_breaker_window') ?? daemon.ms('restart_window')
  return {
    maxRestarts: daemon.countOrNone('session_circuit_breaker_max_restarts') ?? daemon.count('max_restarts'),
    windowMs,
    resetMs: daemon.msOrOff('session_circuit_breaker_reset_after') ?? 2 * windowMs,
  }
}

/** What an agent adds: when its sessions end by themselves. Undefined: never. */
export interface AgePolicy {
  readonly idleTimeoutMs: number | undefined
  readonly sleepAfterIdleMs: number | undefined
  readonly maxAgeMs: number | undefined
  readonly maxAgeJitterMs: number
  readonly drainMs: number
  /** How long assigned work may put an idle stop off. */
  readonly deferMs: number
}

/** A session without an agent has what an agent has by default, and sleeps by the city's word. */
export function agePolicyOf(config: SessionsView, agent: AgentView | undefined, session: SessionRecord): AgePolicy {
  const own = reader(AGENT_FIELDS, agent ?? {})
  return {
    idleTimeoutMs: own.msOrOff('idle_timeout'),
    sleepAfterIdleMs:
      agent === undefined
        ? reader(SETTINGS.chat_sessions.properties, config.chat_sessions).msOrOff('idle_timeout')
        : sleepMs(config, agent, session),
    maxAgeMs: own.msOrOff('max_session_age'),
    maxAgeJitterMs: own.msOrOff('max_session_age_jitter') ?? 0,
    drainMs: own.ms('drain_timeout'),
    deferMs: own.ms('assigned_work_defer_limit'),
  }
}

/** The agent's own word, else that of its class at rig or city, else the city's for a session that exists on demand. */
function sleepMs(config: SessionsView, agent: AgentView, session: SessionRecord): number | undefined {
  if (agent.sleep_after_idle !== undefined) return orOff(agent.sleep_after_idle)
  const kind = !agent.attach
    ? 'noninteractive'
    : agent.wake_mode === 'resume'
      ? 'interactive_resume'
      : 'interactive_fresh'
  const rig = rigOf(config, agent.dir)?.session_sleep
  const declared = rig?.[kind] ?? config.session_sleep[kind]
  if (declared !== undefined) return orOff(declared)
  if (session.origin !== 'named') return undefined
  return reader(SETTINGS.session.properties, config.session).msOrOff('on_demand_sleep')
}

// ---- reading --------------------------------------------------------------------------------------------------------

/** The values of one table, or the defaults of its schema. A field that must have a value and has none is our mistake. */
interface Reader<Key extends string> {
  ms(key: Key): number
  /** Undefined where it is off, or has neither a value nor a default. */
  msOrOff(key: Key): number | undefined
  count(key: Key): number
  countOrNone(key: Key): number | undefined
  flag(key: Key): boolean
}

function reader<Fields extends Readonly<Record<string, Schema>>>(
  fields: Fields,
  given: { readonly [Key in keyof Fields & string]?: unknown },
): Reader<keyof Fields & string> {
  type Key = keyof Fields & string
  const valueAt = (key: Key): unknown => given[key] ?? shapeOf(field(fields, key)).preset
  const msOrOff = (key: Key) => orOff(valueAt(key))
  const countOrNone = (key: Key) => {
    const value = valueAt(key)
    return typeof value === 'number' ? value : undefined
  }
  return {
    ms: (key) => needed(key, msOrOff(key)),
    msOrOff,
    count: (key) => needed(key, countOrNone(key)),
    countOrNone,
    flag: (key) => valueAt(key) === true,
  }
}

function field(fields: Readonly<Record<string, Schema>>, key: string): Schema {
  return needed(key, fields[key])
}

function needed<Value>(key: string, value: Value | undefined): Value {
  if (value === undefined) throw new Error(`the setting ${key} has neither a value nor a default`)
  return value
}

const orOff = (text: unknown): number | undefined =>
  typeof text !== 'string' || text === 'off' ? undefined : parseDurationMs(text)
