/** A session as it is stored, and the one parser that makes it from a row. Field names are the columns'. */

import { AGENT_APIS, type AgentApi } from '../../../contract/access.ts'
import {
  RUNTIME_NAMES,
  type RuntimeName,
  SESSION_DESIRES,
  SESSION_KINDS,
  SESSION_ORIGINS,
  SESSION_STATES,
  type SessionExit,
  type SessionResponse,
  type SessionState,
} from '../../../contract/session-model.ts'
import type { Row, SqlValue } from '../../../kernel/database.ts'
import type { AdoptSpec } from '../../../runtimes/process/runtime.ts'

/** What must be known of a launch after a restart of ours, and how its terminal is read. Never a secret. */
export type LaunchFacts = Omit<AdoptSpec, 'identity' | 'name'> & {
  readonly ready: ReadyHints
  /** Names of programs that prove that it lives. */
  readonly processNames: readonly string[]
  readonly columns: number
  readonly rows: number
  /** A bounded command that is expected to end: no readiness, no set-up, no nudge. */
  readonly oneShot: boolean
  /** Variables of its environment that say where a harness keeps its logs. */
  readonly logPlaces: Readonly<Record<string, string>>
}

/** How readiness and activity are recognised on a screen (sheet 04 §6). */
export interface ReadyHints {
  readonly family: string
  /** The program that was started, which says whose screen it is. */
  readonly program: string
  readonly promptPrefix?: string
  readonly delayMs?: number
  readonly confirm: boolean
  readonly acceptDialogs: boolean
}

/** Hashes of what the process was started with (config/drift.ts). */
export interface Fingerprints {
  readonly reapply: string
  readonly launch: string
  readonly provision: string
  readonly prompt: string
}

export interface SessionRecord {
  readonly id: string
  readonly kind: SessionResponse['kind']
  readonly template: string
  readonly origin: SessionResponse['origin']
  /** Configured named identity. */
  readonly named: string | undefined
  /** Agent that it is an instance of. */
  readonly pool: string | undefined
  /** Who owns its work: an agent's identity, a pool instance's name, a named identity; the id for a provider's chat. */
  readonly agent: string
  readonly title: string
  readonly alias: string | undefined
  readonly session_name: string
  readonly provider: string
  readonly runtime: RuntimeName
  readonly rig: string | undefined
  readonly work_dir: string | undefined
  readonly project_id: string | undefined
  /** As asked for; what is effective is the launch's business. */
  readonly options: Readonly<Record<string, string>>
  readonly metadata: Readonly<Record<string, string>>
  readonly state: SessionState
  readonly desired: SessionResponse['desired']
  readonly reason: string | undefined
  readonly state_since: number
  /** When the state is left by `expire` (L1). */
  readonly deadline: number | undefined
  /** Not to be started before. */
  readonly retry_at: number | undefined
  readonly pinned: boolean
  /** The next start begins a new conversation. */
  readonly fresh: boolean
  readonly generation: number
  readonly continuation_epoch: number
  readonly token: string | undefined
  /** Of the token that its process speaks to the API with. */
  readonly access_hash: string | undefined
  /** What that token lets it do: as its agent was configured when it started. */
  readonly access_api: AgentApi | undefined
  /** A process of (generation, token) may exist. */
  readonly process: boolean
  readonly pid: number | undefined
  readonly launch: LaunchFacts | undefined
  readonly fingerprints: Fingerprints | undefined
  readonly conversation_id: string | undefined
  readonly last_woke_at: number | undefined
  /** When it was first active. */
  readonly lived_at: number | undefined
  readonly last_active: number | undefined
  readonly last_nudge_delivered_at: number | undefined
  readonly heartbeat_at: number | undefined
  readonly max_age_at: number | undefined
  readonly idle_defers: number
  /** Starts since it last lived. */
  readonly attempts: number
  readonly rapid_crashes: number
  readonly churn: number
  /** Times of the crashes within the restart window. */
  readonly crashes: readonly number[]
  readonly quarantined_until: number | undefined
  readonly last_exit: SessionExit | undefined
  readonly drain_reason: string | undefined
  readonly drain_acked: boolean
  /** Deliveries ever queued: the last seq. */
  readonly deliveries: number
  /** Deliveries that wait. */
  readonly queued: number
  readonly created_at: number
  readonly updated_at: number
  readonly closed_at: number | undefined
  readonly revision: number
}

export type SessionField = keyof SessionRecord
export type SessionChange = { readonly [Field in SessionField]?: SessionRecord[Field] | undefined }

const JSON_FIELDS: ReadonlySet<SessionField> = new Set([
  'options',
  'metadata',
  'launch',
  'fingerprints',
  'crashes',
  'last_exit',
])

export const columnOf = (field: SessionField): string => (JSON_FIELDS.has(field) ? `${field}_json` : field)

export function columnValue(field: SessionField, value: unknown): SqlValue {
  if (value === undefined || value === null) return null
  if (JSON_FIELDS.has(field)) return JSON.stringify(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'number' ? value : String(value)
}

/** The one place where a row becomes a record: what is in the table was written from one. */
export function parseSession(row: Row): SessionRecord {
  const state = oneOf(SESSION_STATES, row.state)
  return {
    id: String(row.id),
    kind: oneOf(SESSION_KINDS, row.kind),
    template: String(row.template),
    origin: oneOf(SESSION_ORIGINS, row.origin),
    named: text(row.named),
    pool: text(row.pool),
    agent: String(row.agent),
    title: String(row.title),
    alias: text(row.alias),
    session_name: String(row.session_name),
    provider: String(row.provider),
    runtime: oneOf(RUNTIME_NAMES, row.runtime),
    rig: text(row.rig),
    work_dir: text(row.work_dir),
    project_id: text(row.project_id),
    options: json(row.options_json) ?? {},
    metadata: json(row.metadata_json) ?? {},
    state,
    desired: oneOf(SESSION_DESIRES, row.desired),
    reason: text(row.reason),
    state_since: Number(row.state_since),
    deadline: whole(row.deadline),
    retry_at: whole(row.retry_at),
    pinned: row.pinned === 1,
    fresh: row.fresh === 1,
    generation: Number(row.generation),
    continuation_epoch: Number(row.continuation_epoch),
    token: text(row.token),
    access_hash: text(row.access_hash),
    access_api: AGENT_APIS.find((api) => api === row.access_api),
    process: row.process === 1,
    pid: whole(row.pid),
    launch: json(row.launch_json),
    fingerprints: json(row.fingerprints_json),
    conversation_id: text(row.conversation_id),
    last_woke_at: whole(row.last_woke_at),
    lived_at: whole(row.lived_at),
    last_active: whole(row.last_active),
    last_nudge_delivered_at: whole(row.last_nudge_delivered_at),
    heartbeat_at: whole(row.heartbeat_at),
    max_age_at: whole(row.max_age_at),
    idle_defers: Number(row.idle_defers),
    attempts: Number(row.attempts),
    rapid_crashes: Number(row.rapid_crashes),
    churn: Number(row.churn),
    crashes: json(row.crashes_json) ?? [],
    quarantined_until: whole(row.quarantined_until),
    last_exit: json(row.last_exit_json),
    drain_reason: text(row.drain_reason),
    drain_acked: row.drain_acked === 1,
    deliveries: Number(row.deliveries),
    queued: Number(row.queued),
    created_at: Number(row.created_at),
    updated_at: Number(row.updated_at),
    closed_at: whole(row.closed_at),
    revision: Number(row.revision),
  }
}

const text = (value: unknown): string | undefined => (value === null || value === undefined ? undefined : String(value))
const whole = (value: unknown): number | undefined =>
  value === null || value === undefined ? undefined : Number(value)

function json<T>(value: unknown): T | undefined {
  return value === null || value === undefined ? undefined : JSON.parse(String(value))
}

export function oneOf<T extends string>(known: readonly T[], value: unknown): T {
  const found = known.find((one) => one === value)
  if (found === undefined) throw new Error(`the session store holds an unknown value: ${String(value)}`)
  return found
}
