/**
 * The ledger of accepted requests of one database (architecture §3, "Requests survive crashes").
 *
 * R1  A 202 is a row before it is answered.
 * R2  The terminal event and the row's end commit together, and a row ends once: exactly one terminal event per 202.
 * R3  Every row that has not ended has an owner, who must end it; at boot `unfinished` says which ones are left.
 */

import type { RequestOperation } from '../contract/event-types.ts'
import { REQUEST_OPERATIONS } from '../contract/event-types.ts'
import type { RequestInfo, RequestState } from '../contract/requests.ts'
import { REQUEST_STATES } from '../contract/requests.ts'
import { type Clock, isoTime } from './clock.ts'
import type { Database, Row, SqlValue, Tx } from './database.ts'
import type { EventDraft, EventLog } from './event-log.ts'
import { problem } from './problem.ts'

export const REQUESTS_SCHEMA = `
CREATE TABLE requests (
  id TEXT PRIMARY KEY,
  operation TEXT NOT NULL,
  status TEXT NOT NULL,
  city TEXT,
  subject TEXT,
  event_cursor TEXT NOT NULL,
  input TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  result TEXT,
  error_code TEXT,
  error_message TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_created ON requests (created_at, id);
CREATE INDEX requests_status ON requests (status, created_at, id);
CREATE INDEX requests_city ON requests (city, created_at, id);
`
const KEPT_MS = 30 * 86_400_000
const KEPT_ROWS = 100_000
/** Requests of a city that are still found after it was unregistered. */
const MAX_KEPT_ON = 1_000
const MAX_KNOWN_COUNTS = 16

export interface AcceptedRequest {
  readonly id: string
  readonly operation: RequestOperation
  readonly city: string
  readonly subject?: string
  readonly eventCursor: string
  /** What the owner needs to go on after a crash. */
  readonly input: object
}

export interface UnfinishedRequest {
  readonly id: string
  readonly operation: RequestOperation
  readonly city: string
  /** Id of what it is about; undefined: the city itself. */
  readonly subject: string | undefined
  readonly input: { readonly [key: string]: unknown }
  readonly createdAt: number
}

export interface RequestFilter {
  readonly operation?: RequestOperation
  readonly status?: RequestState
  readonly city?: string
}

/** Position in the list: newest first by time, then id. */
export type RequestKey = readonly [createdAt: number, id: string]

/** How a request ended: the terminal event, in full. */
export type TerminalEvent = Extract<EventDraft, { type: `request.${string}` }>

export class RequestLedger {
  readonly #db: Database
  readonly #log: EventLog
  readonly #clock: Clock
  #pending: number
  #newestAt: number
  /** Sizes of filtered sets, until something changes. */
  readonly #counts = new Map<string, number>()

  constructor(db: Database, log: EventLog, clock: Clock) {
    this.#db = db
    this.#log = log
    this.#clock = clock
    this.#pending = this.unfinished().length
    this.#newestAt = this.#readNewestAt()
  }

  /** No request is newer: a list need not look into a ledger whose newest is older than its last item. */
  get newestAt(): number {
    return this.#newestAt
  }

  /** How many have not ended. */
  get pending(): number {
    return this.#pending
  }

  accept(tx: Tx, request: AcceptedRequest): void {
    tx.run(
      'INSERT INTO requests (id, operation, status, city, subject, event_cursor, input, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      request.id,
      request.operation,
      'accepted',
      request.city,
      request.subject ?? null,
      request.eventCursor,
      JSON.stringify(request.input),
      this.#clock.now(),
    )
    tx.afterCommit(() => {
      this.#pending++
      this.#changed()
    })
  }

  markRunning(tx: Tx, id: string): void {
    tx.run("UPDATE requests SET status = 'running' WHERE id = ? AND status = 'accepted'", id)
    tx.afterCommit(() => this.#changed())
  }

  /** Ends a request with its terminal event; false, and nothing happens, where it has ended before. */
  finish(tx: Tx, event: TerminalEvent): boolean {
    const { payload } = event
    const failed = event.type === 'request.failed'
    const changed = tx.run(
      `UPDATE requests SET status = ?, finished_at = ?, result = ?, error_code = ?, error_message = ?
       WHERE id = ? AND status IN ('accepted', 'running')`,
      failed ? 'failed' : 'succeeded',
      this.#clock.now(),
      resultOf(event),
      failed ? event.payload.error_code : null,
      failed ? event.payload.error_message : null,
      payload.request_id,
    )
    if (changed === 0) return false
    this.#log.append(tx, event)
    tx.afterCommit(() => {
      this.#pending--
      this.#changed()
    })
    return true
  }

  unfinished(city?: string): readonly UnfinishedRequest[] {
    const rows = this.#db.all("SELECT * FROM requests WHERE status IN ('accepted', 'running') ORDER BY created_at, id")
    return rows.map(toUnfinished).filter((request) => city === undefined || request.city === city)
  }

  /** Throws operation-in-progress, with that request, where the same is being done to the same thing already. */
  refuseSecond(operation: RequestOperation, subject: string, sentence: string): void {
    const row = this.#db.get(
      `SELECT id, event_cursor FROM requests WHERE status IN ('accepted', 'running') AND operation = ? AND subject = ?`,
      operation,
      subject,
    )
    if (row === undefined) return
    const named = { request_id: String(row.id), event_cursor: String(row.event_cursor) }
    throw problem('operation-in-progress', sentence, named)
  }

  get(id: string): RequestInfo | undefined {
    const row = this.#db.get('SELECT * FROM requests WHERE id = ?', id)
    return row === undefined ? undefined : toInfo(row)
  }

  /** Newest first, strictly after `after` in that order. */
  page(filter: RequestFilter, after: RequestKey | undefined, limit: number): readonly RequestInfo[] {
    const { where, values } = filterSql(filter)
    const beyond = after === undefined ? '' : 'AND (created_at, id) < (?, ?)'
    return this.#db
      .all(
        `SELECT * FROM requests WHERE ${where} ${beyond} ORDER BY created_at DESC, id DESC LIMIT ?`,
        ...values,
        ...(after ?? []),
        limit,
      )
      .map(toInfo)
  }

  count(filter: RequestFilter): number {
    const key = JSON.stringify([filter.operation, filter.status, filter.city])
    const known = this.#counts.get(key)
    if (known !== undefined) return known
    const { where, values } = filterSql(filter)
    const count = Number(this.#db.get(`SELECT count(*) AS n FROM requests WHERE ${where}`, ...values)?.n ?? 0)
    if (this.#counts.size >= MAX_KNOWN_COUNTS) this.#counts.clear()
    this.#counts.set(key, count)
    return count
  }

  /** What has ended, as it is stored, newest first: for a ledger that outlives this one. */
  ended(): readonly Row[] {
    return this.#db.all(
      'SELECT * FROM requests WHERE finished_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?',
      MAX_KEPT_ON,
    )
  }

  /** Takes over what another ledger has ended; what is here already stays as it is. */
  keepOn(tx: Tx, ended: readonly Row[]): void {
    const columns =
      'id, operation, status, city, subject, event_cursor, input, created_at, finished_at, result, error_code, error_message'
    for (const row of ended) {
      const values = columns.split(', ').map((column) => sqlValue(row[column]))
      tx.run(`INSERT OR IGNORE INTO requests (${columns}) VALUES (${values.map(() => '?').join(', ')})`, ...values)
    }
    tx.afterCommit(() => this.#changed())
  }

  /** Gives back what was taken over: the ledger it came from is read again. */
  giveBack(tx: Tx, ended: readonly Row[]): void {
    for (const { id } of ended) tx.run('DELETE FROM requests WHERE id = ? AND finished_at IS NOT NULL', String(id))
    tx.afterCommit(() => this.#changed())
  }

  /** True where `prune` would find something: cheap, and writes nothing. */
  needsPruning(): boolean {
    const sql = 'SELECT 1 FROM requests WHERE created_at < ? AND finished_at IS NOT NULL LIMIT 1'
    const old = this.#log.agesCount() && this.#db.get(sql, this.#clock.now() - KEPT_MS) !== undefined
    return old || this.#db.get('SELECT 1 FROM requests LIMIT 1 OFFSET ?', KEPT_ROWS) !== undefined
  }

  /** Forgets what ended long ago: older than 30 days, or beyond 100,000 rows. */
  prune(tx: Tx): void {
    const limit = this.#clock.now() - KEPT_MS
    if (this.#log.agesCount()) tx.run('DELETE FROM requests WHERE finished_at IS NOT NULL AND created_at < ?', limit)
    tx.run(
      `DELETE FROM requests WHERE finished_at IS NOT NULL AND (created_at, id) <=
       (SELECT created_at, id FROM requests ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?)`,
      KEPT_ROWS,
    )
    tx.afterCommit(() => this.#changed())
  }

  #changed(): void {
    this.#counts.clear()
    this.#newestAt = this.#readNewestAt()
  }

  #readNewestAt(): number {
    return Number(this.#db.get('SELECT max(created_at) AS at FROM requests')?.at ?? 0)
  }
}

function filterSql(filter: RequestFilter): { where: string; values: SqlValue[] } {
  const parts = ['1 = 1']
  const values: SqlValue[] = []
  for (const column of ['operation', 'status', 'city'] as const) {
    const value = filter[column]
    if (value === undefined) continue
    parts.push(`${column} = ?`)
    values.push(value)
  }
  return { where: parts.join(' AND '), values }
}

const sqlValue = (value: unknown): SqlValue => (typeof value === 'number' || typeof value === 'string' ? value : null)

/** What a request came to; of a failed one the issues, which have no column of their own. */
function resultOf(event: TerminalEvent): string | null {
  if (event.type !== 'request.failed') return JSON.stringify(event.payload)
  const { issues } = event.payload
  return issues === undefined ? null : JSON.stringify({ issues })
}

function resultIn({ status, result }: Row): Pick<RequestInfo, 'result' | 'issues'> {
  if (result === null) return {}
  const value = JSON.parse(String(result))
  return status === 'failed' ? { issues: value.issues } : { result: value }
}

function toInfo(row: Row): RequestInfo {
  return {
    request_id: String(row.id),
    operation: oneOf(REQUEST_OPERATIONS, row.operation),
    status: oneOf(REQUEST_STATES, row.status),
    ...(row.city === null ? {} : { city: String(row.city) }),
    ...(row.subject === null ? {} : { subject: String(row.subject) }),
    event_cursor: String(row.event_cursor),
    created_at: isoTime(Number(row.created_at)),
    ...(row.finished_at === null ? {} : { finished_at: isoTime(Number(row.finished_at)) }),
    ...resultIn(row),
    ...(row.error_code === null ? {} : { error_code: String(row.error_code) }),
    ...(row.error_message === null ? {} : { error_message: String(row.error_message) }),
  }
}

function toUnfinished(row: Row): UnfinishedRequest {
  return {
    id: String(row.id),
    operation: oneOf(REQUEST_OPERATIONS, row.operation),
    city: String(row.city ?? ''),
    subject: row.subject === null ? undefined : String(row.subject),
    input: JSON.parse(String(row.input)),
    createdAt: Number(row.created_at),
  }
}

function oneOf<T extends string>(known: readonly T[], value: unknown): T {
  const found = known.find((one) => one === value)
  if (found === undefined) throw new Error(`the ledger holds an unknown value: ${String(value)}`)
  return found
}
