/**
 * Services in the city's store. `token` is there while a process of its `generation` may run: it commits before the start
 * and goes when nothing runs any more. `state` is the one that was told last. `service_runs` are the outputs that are
 * kept: `base` is the offset of the first byte of a run in the log of its service.
 */
import { SERVICE_REASONS, SERVICE_STATES, type ServiceReason, type ServiceState } from '../../contract/services.ts'
import type { Database, Row, Tx } from '../../kernel/database.ts'
import type { Upstream } from './ports.ts'

export const SERVICES_SCHEMA = `
CREATE TABLE services (
  name TEXT PRIMARY KEY,
  suspended INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT,
  changed_at INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  token TEXT,
  access_hash TEXT,
  fingerprint TEXT,
  upstream_json TEXT,
  started_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  next_start_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX services_access ON services (access_hash) WHERE access_hash IS NOT NULL;
CREATE TABLE service_runs (
  service TEXT NOT NULL,
  generation INTEGER NOT NULL,
  base INTEGER NOT NULL,
  PRIMARY KEY (service, generation)
) STRICT, WITHOUT ROWID;
`

export interface ServiceRow {
  readonly name: string
  readonly suspended: boolean
  readonly state: ServiceState
  readonly reason: ServiceReason
  readonly message: string | undefined
  readonly changed_at: number
  readonly generation: number
  readonly token: string | undefined
  readonly access_hash: string | undefined
  readonly fingerprint: string | undefined
  readonly upstream: Upstream | undefined
  readonly started_at: number | undefined
  readonly failures: number
  readonly next_start_at: number | undefined
}

/** The output of one start. */
export interface RunRow {
  readonly generation: number
  readonly base: number
}

type Reader = Pick<Database, 'get' | 'all'> | Tx

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

function parse(row: Row): ServiceRow {
  const upstream = textOf(row.upstream_json)
  return {
    name: String(row.name),
    suspended: row.suspended === 1,
    state: SERVICE_STATES.find((one) => one === row.state) ?? 'stopped',
    reason: SERVICE_REASONS.find((one) => one === row.reason) ?? 'city_started',
    message: textOf(row.message),
    changed_at: Number(row.changed_at),
    generation: Number(row.generation),
    token: textOf(row.token),
    access_hash: textOf(row.access_hash),
    fingerprint: textOf(row.fingerprint),
    upstream: upstream === undefined ? undefined : parseUpstream(upstream),
    started_at: numberOf(row.started_at),
    failures: Number(row.failures),
    next_start_at: numberOf(row.next_start_at),
  }
}

function parseUpstream(text: string): Upstream | undefined {
  const value: { socketPath?: unknown; host?: unknown; port?: unknown } = JSON.parse(text)
  if (typeof value.socketPath === 'string') return { socketPath: value.socketPath }
  return typeof value.host === 'string' && typeof value.port === 'number'
    ? { host: value.host, port: value.port }
    : undefined
}

export const all = (db: Reader): readonly ServiceRow[] => db.all('SELECT * FROM services ORDER BY name').map(parse)

/** Whose process speaks to the API with the token of this hash. */
export function nameWithAccess(db: Reader, hash: string): string | undefined {
  return textOf(db.get('SELECT name FROM services WHERE access_hash = ?', hash)?.name)
}

export const newRow = (name: string, now: number): ServiceRow => ({
  name,
  suspended: false,
  state: 'stopped',
  reason: 'first_start',
  message: undefined,
  changed_at: now,
  generation: 0,
  token: undefined,
  access_hash: undefined,
  fingerprint: undefined,
  upstream: undefined,
  started_at: undefined,
  failures: 0,
  next_start_at: undefined,
})

export function put(tx: Tx, row: ServiceRow): void {
  tx.run(
    `INSERT OR REPLACE INTO services (name, suspended, state, reason, message, changed_at, generation, token,
       access_hash, fingerprint, upstream_json, started_at, failures, next_start_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.name,
    row.suspended ? 1 : 0,
    row.state,
    row.reason,
    row.message ?? null,
    row.changed_at,
    row.generation,
    row.token ?? null,
    row.access_hash ?? null,
    row.fingerprint ?? null,
    row.upstream === undefined ? null : JSON.stringify(row.upstream),
    row.started_at ?? null,
    row.failures,
    row.next_start_at ?? null,
  )
}

export function remove(tx: Tx, name: string): void {
  tx.run('DELETE FROM services WHERE name = ?', name)
  tx.run('DELETE FROM service_runs WHERE service = ?', name)
}

/** Oldest first. */
export const runsOf = (db: Reader, service: string): readonly RunRow[] =>
  db
    .all('SELECT generation, base FROM service_runs WHERE service = ? ORDER BY generation', service)
    .map(({ generation, base }) => ({ generation: Number(generation), base: Number(base) }))

export function addRun(tx: Tx, service: string, { generation, base }: RunRow): void {
  tx.run('INSERT INTO service_runs (service, generation, base) VALUES (?, ?, ?)', service, generation, base)
}

export function dropRun(tx: Tx, service: string, generation: number): void {
  tx.run('DELETE FROM service_runs WHERE service = ? AND generation = ?', service, generation)
}
