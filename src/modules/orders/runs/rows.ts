/** Runs of orders as rows (`order_runs`). */

import type { Value } from '../../../automation/plan.ts'
import type {
  OrderRun,
  OrderRunDetail,
  OrderRunPayload,
  OrderRunStatus,
  OrderSource,
} from '../../../contract/automation/orders.ts'
import {
  ORDER_ACTIONS,
  ORDER_RUN_STATUSES,
  ORDER_SOURCES,
  ORDER_TRIGGERS,
} from '../../../contract/automation/orders.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Database, Row, SqlValue, Tx } from '../../../kernel/database.ts'

export interface RunRow {
  readonly n: number
  readonly id: string
  readonly scoped: string
  readonly name: string
  readonly rig: string | undefined
  readonly action: OrderRun['action']
  readonly trigger: OrderRun['trigger']
  readonly source: OrderSource
  readonly reason: string
  readonly status: OrderRunStatus
  readonly slot: number | undefined
  readonly molecule_id: string | undefined
  readonly first_seq: number | undefined
  readonly last_seq: number | undefined
  readonly events: number | undefined
  readonly vars: Readonly<Record<string, Value>> | undefined
  /** Of one that is queued: when it was made. */
  readonly started_at: number
  readonly queued_at: number | undefined
  /** How many runs led to it, each by an event of the one before. */
  readonly depth: number
  readonly finished_at: number | undefined
  readonly exit_code: number | undefined
  readonly signal: string | undefined
  readonly error: string | undefined
}

export interface RunEnd {
  readonly status: Exclude<OrderRunStatus, 'running' | 'skipped'>
  readonly exit_code?: number
  readonly signal?: string
  readonly error?: string
  readonly output?: string
  readonly truncated?: boolean
}

type Reader = Pick<Database, 'get' | 'all'> | Tx

const STATUS = "CASE WHEN waiting = 1 AND status = 'running' THEN 'queued' ELSE status END"
const COLUMNS = `n, id, scoped, name, rig, action, trigger, source, reason, ${STATUS} AS status, queued_at, depth, slot, molecule_id, first_seq, last_seq, events, vars_json, started_at, finished_at, exit_code, signal, error`

/** False: its time of cron has a run already. */
export function insertRun(tx: Tx, run: Omit<RunRow, 'n'>): boolean {
  const fields: Record<string, SqlValue> = {
    id: run.id,
    scoped: run.scoped,
    name: run.name,
    rig: run.rig ?? null,
    action: run.action,
    trigger: run.trigger,
    source: run.source,
    reason: run.reason,
    status: run.status,
    slot: run.slot ?? null,
    molecule_id: run.molecule_id ?? null,
    first_seq: run.first_seq ?? null,
    last_seq: run.last_seq ?? null,
    events: run.events ?? null,
    vars_json: run.vars === undefined ? null : JSON.stringify(run.vars),
    started_at: run.started_at,
    depth: run.depth,
    finished_at: run.finished_at ?? null,
    exit_code: run.exit_code ?? null,
    signal: run.signal ?? null,
    error: run.error ?? null,
  }
  const names = Object.keys(fields)
  const places = names.map(() => '?').join(', ')
  // The one thing that may be there twice is the time of a cron.
  return (
    tx.run(
      `INSERT INTO order_runs (${names.join(', ')}) VALUES (${places}) ON CONFLICT (scoped, slot) WHERE slot IS NOT NULL DO NOTHING`,
      ...Object.values(fields),
    ) > 0
  )
}

export function setMolecule(tx: Tx, id: string, moleculeId: string): void {
  tx.run('UPDATE order_runs SET molecule_id = ? WHERE id = ?', moleculeId, id)
}

/** Its command waits for a free slot. */
export function queueRun(tx: Tx, id: string, now: number): void {
  tx.run('UPDATE order_runs SET waiting = 1, queued_at = ? WHERE id = ?', now, id)
}

/** Its command runs: only from now on its time counts. */
export function startRun(tx: Tx, id: string, now: number): void {
  tx.run(
    "UPDATE order_runs SET waiting = 0, started_at = ? WHERE id = ? AND waiting = 1 AND status = 'running'",
    now,
    id,
  )
}

/** When the run began that is the `nth` newest of an order; undefined where there are fewer. */
export function nthNewest(db: Reader, scoped: string, nth: number): number | undefined {
  const row = db.get(
    'SELECT started_at AS at FROM order_runs WHERE scoped = ? ORDER BY n DESC LIMIT 1 OFFSET ?',
    scoped,
    nth - 1,
  )
  return row === undefined ? undefined : Number(row.at)
}

/** The run as it ended; undefined where it had ended before. */
export function endRun(tx: Tx, id: string, end: RunEnd, now: number): RunRow | undefined {
  const ended = tx.run(
    `UPDATE order_runs SET status = ?, finished_at = ?, exit_code = ?, signal = ?, error = ?, output = ?, truncated = ?
      WHERE id = ? AND status = 'running'`,
    end.status,
    now,
    end.exit_code ?? null,
    end.signal ?? null,
    end.error ?? null,
    end.output ?? null,
    Number(end.truncated ?? false),
    id,
  )
  return ended === 0 ? undefined : findRun(tx, id)
}

export function findRun(db: Reader, id: string): RunRow | undefined {
  const row = db.get(`SELECT ${COLUMNS} FROM order_runs WHERE id = ?`, id)
  return row === undefined ? undefined : runOf(row)
}

/** What a run wrote, apart: it may be much. */
export function outputOf(db: Reader, id: string): Pick<OrderRunDetail, 'output' | 'output_truncated'> {
  const row = db.get('SELECT output, truncated FROM order_runs WHERE id = ?', id)
  if (row === undefined) return {}
  return {
    ...(row.output === null ? {} : { output: String(row.output) }),
    ...(row.truncated === 1 ? { output_truncated: true } : {}),
  }
}

export const countRunning = (db: Reader, scoped: string): number =>
  Number(db.get("SELECT count(*) AS n FROM order_runs WHERE scoped = ? AND status = 'running'", scoped)?.n)

/** How many are under way of each order that has any. */
export const allRunning = (db: Reader): ReadonlyMap<string, number> =>
  new Map(
    db
      .all("SELECT scoped, count(*) AS n FROM order_runs WHERE status = 'running' GROUP BY scoped")
      .map(({ scoped, n }) => [String(scoped), Number(n)]),
  )

export const liveRuns = (db: Reader): readonly RunRow[] =>
  db.all(`SELECT ${COLUMNS} FROM order_runs WHERE status = 'running' ORDER BY n`).map(runOf)

const OF_NEWEST = `FROM order_runs WHERE n IN
  (SELECT (SELECT max(n) FROM order_runs WHERE scoped = one.value) FROM json_each(?) AS one)`

/** The newest run of each of these orders. */
export function lastRuns(db: Reader, scoped: readonly string[]): ReadonlyMap<string, RunRow> {
  const rows = db.all(`SELECT ${COLUMNS} ${OF_NEWEST}`, JSON.stringify(scoped))
  return new Map(rows.map((row) => [String(row.scoped), runOf(row)]))
}

/** A run changes once after the write that begins it: at its end. */
export interface LastRun {
  readonly n: number
  readonly status: string
}

/** As much of the newest run of each of these as tells whether it is another. */
export function newestRuns(db: Reader, scoped: readonly string[]): ReadonlyMap<string, LastRun> {
  const rows = db.all(`SELECT scoped, n, ${STATUS} AS status ${OF_NEWEST}`, JSON.stringify(scoped))
  return new Map(rows.map((row) => [String(row.scoped), { n: Number(row.n), status: String(row.status) }]))
}

/** The order of a run, and how many runs led to it. */
export interface RunPlace {
  readonly scoped: string
  readonly depth: number
}

/** Of the run that started this molecule. */
export const runOfMolecule = (db: Reader, molecule: string): RunPlace | undefined =>
  placeOf(db.get('SELECT scoped, depth FROM order_runs WHERE molecule_id = ?', molecule))

export const runOfId = (db: Reader, id: string): RunPlace | undefined =>
  placeOf(db.get('SELECT scoped, depth FROM order_runs WHERE id = ?', id))

const placeOf = (row: Row | undefined): RunPlace | undefined =>
  row === undefined ? undefined : { scoped: String(row.scoped), depth: Number(row.depth) }

export interface HistoryFilter {
  readonly names?: readonly string[] | undefined
  readonly statuses?: readonly OrderRunStatus[] | undefined
}

/** Newest first: a page behind `before`, one more than `limit` where there are more. */
export function historyPage(
  db: Reader,
  filter: HistoryFilter,
  before: number | undefined,
  limit: number,
): readonly RunRow[] {
  const { sql, values } = whereOf(filter)
  const behind = before === undefined ? '' : ' AND n < ?'
  return db
    .all(
      `SELECT ${COLUMNS} FROM order_runs WHERE ${sql}${behind} ORDER BY n DESC LIMIT ?`,
      ...values,
      ...(before === undefined ? [] : [before]),
      limit,
    )
    .map(runOf)
}

export const historyTotal = (db: Reader, filter: HistoryFilter): number => {
  const { sql, values } = whereOf(filter)
  return Number(db.get(`SELECT count(*) AS n FROM order_runs WHERE ${sql}`, ...values)?.n)
}

function whereOf({ names, statuses }: HistoryFilter): { readonly sql: string; readonly values: readonly SqlValue[] } {
  const parts = ['TRUE']
  const values: SqlValue[] = []
  if (names !== undefined && names.length > 0) {
    parts.push('(scoped IN (SELECT value FROM json_each(?)) OR name IN (SELECT value FROM json_each(?)))')
    values.push(JSON.stringify(names), JSON.stringify(names))
  }
  if (statuses !== undefined && statuses.length > 0) {
    parts.push(`${STATUS} IN (SELECT value FROM json_each(?))`)
    values.push(JSON.stringify(statuses))
  }
  return { sql: parts.join(' AND '), values }
}

// --- Retention -----------------------------------------------------------------------------------------------------

const KEPT_AT_LEAST = 10
const KEPT_AT_MOST = 1_000
const KEPT_MS = 30 * 86_400_000
const PRUNED_AT_ONCE = 500
const NTH_NEWEST = 'SELECT n FROM order_runs WHERE scoped = ? ORDER BY n DESC LIMIT 1'

/** Takes the runs of an order that are too many, and those that are too old; `agesCount`: the clock can say what is old. */
export function pruneRuns(tx: Tx, scoped: string, now: number, agesCount: boolean): number {
  const old = agesCount ? now - KEPT_MS : 0
  return tx.run(
    `DELETE FROM order_runs WHERE n IN (
      SELECT n FROM order_runs WHERE scoped = ? AND status <> 'running' AND (
        n < (${NTH_NEWEST} OFFSET ${KEPT_AT_MOST - 1})
        OR (coalesce(finished_at, started_at) < ? AND n < (${NTH_NEWEST} OFFSET ${KEPT_AT_LEAST - 1})))
      ORDER BY n LIMIT ${PRUNED_AT_ONCE})`,
    scoped,
    scoped,
    old,
    scoped,
  )
}

/** What the runs of an order wrote, and those of all orders of a city, is kept up to here: the newest of it. */
const OUTPUTS_OF_ORDER = 4 * 1024 * 1024
const OUTPUTS_OF_CITY = 256 * 1024 * 1024
const OUTPUTS_AT_ONCE = 1_000

/** As many of the oldest as it takes to get rid of so many bytes. */
const FORGET_OLDEST = `UPDATE order_runs SET output = NULL, truncated = 1 WHERE n IN (
  SELECT n FROM (
    SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS freed_before FROM (
      SELECT n, octet_length(output) AS bytes FROM order_runs INDEXED BY order_runs_wrote
        WHERE output IS NOT NULL ORDER BY n LIMIT ${OUTPUTS_AT_ONCE}))
  WHERE freed_before < ?)`

/** Forgets what old runs wrote where it is too much; the runs themselves stay. */
export function pruneOutputs(tx: Tx, scoped: string, ofOrder = OUTPUTS_OF_ORDER, ofCity = OUTPUTS_OF_CITY): void {
  tx.run(
    `UPDATE order_runs SET output = NULL, truncated = 1 WHERE n IN (
      SELECT n FROM (
        SELECT n, sum(octet_length(output)) OVER (ORDER BY n DESC) AS bytes FROM order_runs INDEXED BY order_runs_wrote_of
          WHERE scoped = ? AND output IS NOT NULL)
      WHERE bytes > ?)`,
    scoped,
    ofOrder,
  )
  for (let over = outputBytes(tx) - ofCity; over > 0; over = outputBytes(tx) - ofCity)
    if (tx.run(FORGET_OLDEST, over) === 0) return
}

const outputBytes = (db: Reader): number => Number(db.get('SELECT bytes FROM order_outputs')?.bytes)

// --- As they are told ----------------------------------------------------------------------------------------------

function runOf(row: Row): RunRow {
  const number = (value: unknown) => (value === null ? undefined : Number(value))
  const text = (value: unknown) => (value === null ? undefined : String(value))
  return {
    n: Number(row.n),
    id: String(row.id),
    scoped: String(row.scoped),
    name: String(row.name),
    rig: text(row.rig),
    action: ORDER_ACTIONS.find((one) => one === row.action) ?? 'exec',
    trigger: ORDER_TRIGGERS.find((one) => one === row.trigger) ?? 'manual',
    source: ORDER_SOURCES.find((one) => one === row.source) ?? 'tick',
    reason: String(row.reason),
    status: ORDER_RUN_STATUSES.find((one) => one === row.status) ?? 'failed',
    slot: number(row.slot),
    molecule_id: text(row.molecule_id),
    first_seq: number(row.first_seq),
    last_seq: number(row.last_seq),
    events: number(row.events),
    vars: row.vars_json === null ? undefined : JSON.parse(String(row.vars_json)),
    started_at: Number(row.started_at),
    queued_at: number(row.queued_at),
    depth: Number(row.depth),
    finished_at: number(row.finished_at),
    exit_code: number(row.exit_code),
    signal: text(row.signal),
    error: text(row.error),
  }
}

const resultOf = ({ status, queued_at, started_at, finished_at, exit_code, signal, error }: RunRow) => ({
  ...(queued_at === undefined ? {} : { queued_at: isoTime(queued_at) }),
  ...(status === 'queued' ? {} : { started_at: isoTime(started_at) }),
  ...(finished_at === undefined
    ? {}
    : // A clock that was set back is no shorter run.
      { finished_at: isoTime(finished_at), duration_ms: Math.max(0, finished_at - started_at) }),
  ...(exit_code === undefined ? {} : { exit_code }),
  ...(signal === undefined ? {} : { signal }),
  ...(error === undefined ? {} : { error }),
})

const aboutOf = ({ name, scoped, rig, action, trigger, source, reason, status, slot }: RunRow) => ({
  name,
  scoped_name: scoped,
  ...(rig === undefined ? {} : { rig }),
  action,
  trigger,
  source,
  reason,
  status,
  ...(slot === undefined ? {} : { scheduled_for: isoTime(slot) }),
})

export const wireRun = (run: RunRow): OrderRun => ({
  id: run.id,
  ...aboutOf(run),
  ...(run.molecule_id === undefined ? {} : { molecule_id: run.molecule_id }),
  ...(run.first_seq === undefined ? {} : { event_seq_from: run.first_seq }),
  ...(run.last_seq === undefined ? {} : { event_seq_to: run.last_seq }),
  ...(run.events === undefined ? {} : { event_count: run.events }),
  ...(run.vars === undefined ? {} : { vars: run.vars }),
  ...resultOf(run),
})

export const payloadOf = (run: RunRow): OrderRunPayload => ({
  run_id: run.id,
  ...aboutOf(run),
  ...(run.molecule_id === undefined ? {} : { root_bead_id: run.molecule_id }),
  ...(run.last_seq === undefined ? {} : { event_seq: run.last_seq }),
  ...resultOf(run),
})
