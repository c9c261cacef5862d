/**
 * The columns of a session, each said once: how it is stored and read, what a new session has of which nothing is said,
 * and whether a client sees it. Record, parser, writer and the difference that events are made from follow from it.
 */
import { AGENT_APIS } from '../../../contract/access.ts'
import {
  ISOLATIONS,
  LIMIT_SOURCES,
  RUNTIME_NAMES,
  SESSION_DESIRES,
  SESSION_KINDS,
  SESSION_ORIGINS,
  SESSION_STATES,
  type SessionExit,
} from '../../../contract/sessions/session-model.ts'
import type { Row, SqlValue } from '../../../kernel/database.ts'
import type { AdoptSpec, AgentOffers } from '../../../runtimes/process/runtime.ts'

/** What must be known of a launch after a restart of ours, and how its terminal is read. Never a secret. */
export type LaunchFacts = Omit<AdoptSpec, 'identity' | 'name'> & {
  readonly ready: ReadyHints
  /** Names of programs that prove that it lives. */
  readonly columns: number
  readonly rows: number
  /** A bounded command that is expected to end: no readiness, no set-up, no nudge. */
  readonly oneShot: boolean
  /** Its harness asks by a hook before it uses a tool, and draws its own dialog meanwhile. */
  readonly asksByHook?: true
  /** Nothing is known that tells what its turns use. */
  readonly uncounted?: true
  /** A shell that a person would sit at; absent in what earlier versions have started. */
  readonly shell?: boolean
  /** Id that a new conversation was started under; a key to resume it by once something was said in it. */
  readonly conversation?: string
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

interface Column<T> {
  /** As `CREATE TABLE` has it. */
  readonly sql: string
  readonly parse: (value: unknown) => T
  /** What a new session has; absent where it must be said. */
  readonly empty?: { readonly value: T }
  /** It is stored as JSON, in a column whose name ends in `_json`. */
  readonly json?: true
  /** No client sees it, or sees it as an observation: it changes without an event and without a revision. */
  readonly quiet?: true
}

/** Of what may be undefined, which is NULL. */
const maybe = <T>(sql: string, parse: (value: unknown) => T) =>
  ({
    sql,
    parse: (value: unknown): T | undefined => (value === null || value === undefined ? undefined : parse(value)),
    empty: { value: undefined },
  }) satisfies Column<T | undefined>
const word = <T extends string>(known: readonly T[]) =>
  ({ sql: 'TEXT NOT NULL', parse: (value: unknown) => oneOf(known, value) }) satisfies Column<T>
const counted = (from: number) =>
  ({ sql: `INTEGER NOT NULL DEFAULT ${from}`, parse: Number, empty: { value: from } }) satisfies Column<number>
const fromJson = <T>(value: unknown): T => JSON.parse(String(value))
const json = <T>() => ({ ...maybe<T>('TEXT', fromJson<T>), json: true as const })
const jsonOr = <T>(none: string) => ({
  sql: `TEXT NOT NULL DEFAULT '${none}'`,
  parse: fromJson<T>,
  empty: { value: fromJson<T>(none) },
  json: true as const,
})
const quiet = <C extends object>(column: C) => ({ ...column, quiet: true as const })

const TEXT = { sql: 'TEXT NOT NULL', parse: String } satisfies Column<string>
const SOME_TEXT = maybe('TEXT', String)
/** Milliseconds since the epoch. */
const TIME = { sql: 'INTEGER NOT NULL', parse: Number } satisfies Column<number>
const SOME_NUMBER = maybe('INTEGER', Number)
const FLAG = {
  sql: 'INTEGER NOT NULL DEFAULT 0',
  parse: (value: unknown) => value === 1,
  empty: { value: false },
} satisfies Column<boolean>

/** In the order of the table. */
const COLUMNS = {
  id: TEXT,
  kind: word(SESSION_KINDS),
  template: TEXT,
  origin: word(SESSION_ORIGINS),
  /** Configured named identity. */
  named: SOME_TEXT,
  /** Agent that it is an instance of. */
  pool: SOME_TEXT,
  /** Who owns its work: an agent's identity, a pool instance's name, a named identity; the id for a provider's chat. */
  agent: TEXT,
  title: TEXT,
  alias: SOME_TEXT,
  session_name: TEXT,
  provider: TEXT,
  runtime: word(RUNTIME_NAMES),
  rig: SOME_TEXT,
  work_dir: SOME_TEXT,
  project_id: SOME_TEXT,
  /** As asked for at its creation; else as its agent says. */
  isolation: maybe('TEXT', (value) => oneOf(ISOLATIONS, value)),
  /** As asked for; what is effective is the launch's business. */
  options: jsonOr<Readonly<Record<string, string>>>('{}'),
  metadata: jsonOr<Readonly<Record<string, string>>>('{}'),
  state: word(SESSION_STATES),
  desired: word(SESSION_DESIRES),
  reason: SOME_TEXT,
  state_since: quiet(TIME),
  /** When the state is left by `expire` (L1). */
  deadline: quiet(SOME_NUMBER),
  /** Not to be started before. */
  retry_at: quiet(SOME_NUMBER),
  pinned: FLAG,
  /** The next start begins a new conversation. */
  fresh: quiet(FLAG),
  generation: quiet(counted(0)),
  continuation_epoch: quiet(counted(1)),
  token: quiet(SOME_TEXT),
  /** Of the token that its process speaks to the API with. */
  access_hash: quiet(SOME_TEXT),
  /** What that token lets it do: as its agent was configured when it started. */
  access_api: quiet(maybe('TEXT', (value) => oneOf(AGENT_APIS, value))),
  /** A process of (generation, token) may exist. */
  process: quiet(FLAG),
  pid: quiet(SOME_NUMBER),
  launch: quiet(json<LaunchFacts>()),
  fingerprints: quiet(json<Fingerprints>()),
  conversation_id: quiet(SOME_TEXT),
  /** Somebody has named it: what its harness calls it does not count. */
  titled: quiet(FLAG),
  /** As its harness tells. */
  reported_model: quiet(SOME_TEXT),
  log_path: quiet(SOME_TEXT),
  last_woke_at: quiet(SOME_NUMBER),
  /** When it was first active. */
  lived_at: quiet(SOME_NUMBER),
  last_active: quiet(SOME_NUMBER),
  last_nudge_delivered_at: quiet(SOME_NUMBER),
  heartbeat_at: quiet(SOME_NUMBER),
  max_age_at: quiet(SOME_NUMBER),
  /** Starts since it last lived. */
  attempts: quiet(counted(0)),
  rapid_crashes: quiet(counted(0)),
  churn: quiet(counted(0)),
  /** Times of the crashes within the restart window. */
  crashes: quiet(jsonOr<readonly number[]>('[]')),
  quarantined_until: quiet(SOME_NUMBER),
  /** Its provider limits it until then. */
  limited_until: SOME_NUMBER,
  limited_at: quiet(SOME_NUMBER),
  limit_source: quiet(maybe('TEXT', (value) => oneOf(LIMIT_SOURCES, value))),
  /** The words of the last limit. */
  limit_message: quiet(SOME_TEXT),
  last_exit: quiet(json<SessionExit>()),
  drain_reason: quiet(SOME_TEXT),
  drain_acked: quiet(FLAG),
  /** Deliveries ever queued: the last seq. */
  deliveries: quiet(counted(0)),
  /** Deliveries that wait. */
  queued: quiet(counted(0)),
  created_at: TIME,
  updated_at: quiet(TIME),
  closed_at: quiet(SOME_NUMBER),
  revision: quiet(counted(1)),
  /** What its agent has said that it takes and can be set to. */
  offers: quiet(json<AgentOffers>()),
  /** The conversation that its first one begins with. */
  fork_of: quiet(SOME_TEXT),
  /** Variables of its own. Never shown: they may be secrets. */
  env: quiet(jsonOr<Readonly<Record<string, string>>>('{}')),
} as const

type Columns = typeof COLUMNS
export type SessionField = keyof Columns
/** A session as it is stored. Field names are the columns'. */
export type SessionRecord = { readonly [Field in SessionField]: ReturnType<Columns[Field]['parse']> }
export type SessionChange = { readonly [Field in SessionField]?: SessionRecord[Field] | undefined }
/** What must be said of a new session; the rest has a value of its own. */
export type NewRecord = SessionChange & {
  readonly [Field in SessionField as Columns[Field] extends { empty: object } ? never : Field]: SessionRecord[Field]
}

const isField = (name: string): name is SessionField => Object.hasOwn(COLUMNS, name)
export const FIELDS: readonly SessionField[] = Object.keys(COLUMNS).filter(isField)
/** Each with the type of its own value, for whoever goes through them. */
const BY_NAME: { readonly [Field in SessionField]: Column<SessionRecord[Field]> } = COLUMNS

export const columnOf = (field: SessionField): string => (BY_NAME[field].json ? `${field}_json` : field)
export const isQuiet = (field: SessionField): boolean => BY_NAME[field].quiet === true
export const sqlOf = (field: SessionField): string => BY_NAME[field].sql

export function columnValue(field: SessionField, value: SessionRecord[SessionField]): SqlValue {
  if (value === undefined) return null
  if (BY_NAME[field].json) return JSON.stringify(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'number' ? value : String(value)
}

/** A row has one value a column, whatever its type; `FIELDS` goes through all of them. */
const isWhole = (fields: Partial<SessionRecord>): fields is SessionRecord => FIELDS.every((field) => field in fields)

function filled(found: (field: SessionField) => unknown): SessionRecord {
  const fields: Partial<SessionRecord> = Object.fromEntries(FIELDS.map((field) => [field, found(field)]))
  if (!isWhole(fields)) throw new Error('a session lacks a column')
  return fields
}

/** The one place where a row becomes a record: what is in the table was written from one. */
export const parseSession = (row: Row): SessionRecord => filled((field) => BY_NAME[field].parse(row[columnOf(field)]))

export const newRecord = (said: NewRecord): SessionRecord =>
  filled((field) => (said[field] === undefined ? BY_NAME[field].empty?.value : said[field]))

export function oneOf<T extends string>(known: readonly T[], value: unknown): T {
  const found = known.find((one) => one === value)
  if (found === undefined) throw new Error(`the session store holds an unknown value: ${String(value)}`)
  return found
}
