/**
 * Commands in the city's store, from the transaction that wants one until its end is recorded: what has ended has no row.
 *
 * `queued`: it waits for its turn, by `seq`. `running`: start number `starts` may have begun, in that `boot` of the machine.
 * `canceled`: its owner wants no outcome any more, but its processes may still be there.
 */
import type { Database, Row, Tx } from '../../kernel/database.ts'
import { EXEC_OWNERS, type Exec, type ExecOwner, type ExecStart, type NewExec } from './ports.ts'

export const EXECS_SCHEMA = `
CREATE TABLE execs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  ref TEXT NOT NULL,
  state TEXT NOT NULL,
  spec_json TEXT NOT NULL,
  token TEXT NOT NULL,
  starts INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  boot TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  started_at INTEGER
) STRICT;
CREATE INDEX execs_queued ON execs (seq) WHERE state = 'queued';
CREATE INDEX execs_active ON execs (seq) WHERE state <> 'queued';
`

/** The next one of each owner is found without those of the others before it. */
export const EXECS_BY_OWNER = `
DROP INDEX execs_queued;
CREATE INDEX execs_queued ON execs (owner, seq) WHERE state = 'queued';
`

/** Its processes are known by its id. */
export const EXECS_WITHOUT_TOKEN = 'ALTER TABLE execs DROP COLUMN token;'

const STATES = ['queued', 'running', 'canceled'] as const

export interface ExecRow extends Exec {
  /** How often it was started. */
  readonly starts: number
  /** How often it was cut off and begun anew. */
  readonly interruptions: number
  readonly boot: string
}

type Reader = Pick<Database, 'get' | 'all'> | Tx

export const startOf = ({ id, starts }: ExecRow): ExecStart => ({ id, number: starts })

function parse(row: Row): ExecRow {
  const state = STATES.find((one) => one === row.state)
  const owner = EXEC_OWNERS.find((one) => one === row.owner)
  if (state === undefined || owner === undefined)
    throw new Error(`the store holds a command of a strange kind: ${row.id}`)
  const spec: Omit<NewExec, 'id' | 'owner' | 'ref'> = JSON.parse(String(row.spec_json))
  return {
    ...spec,
    id: String(row.id),
    owner,
    ref: String(row.ref),
    state,
    starts: Number(row.starts),
    interruptions: Number(row.interruptions),
    boot: String(row.boot),
    created_at: Number(row.created_at),
    started_at: row.started_at === null ? undefined : Number(row.started_at),
  }
}

export function byId(db: Reader, id: string): ExecRow | undefined {
  const row = db.get('SELECT * FROM execs WHERE id = ?', id)
  return row === undefined ? undefined : parse(row)
}

/** Those that have processes, or may have. */
export const active = (db: Reader): readonly ExecRow[] =>
  db.all("SELECT * FROM execs WHERE state <> 'queued' ORDER BY seq").map(parse)

export const nextQueued = (db: Reader, owner: ExecOwner, limit: number): readonly ExecRow[] =>
  db.all("SELECT * FROM execs WHERE state = 'queued' AND owner = ? ORDER BY seq LIMIT ?", owner, limit).map(parse)

/** How many of each owner have processes, or may have. */
export function activeByOwner(db: Reader): ReadonlyMap<string, number> {
  const rows = db.all("SELECT owner, count(*) AS n FROM execs WHERE state <> 'queued' GROUP BY owner")
  return new Map(rows.map(({ owner, n }) => [String(owner), Number(n)]))
}

/** At least as many as wait, without counting them: those that are begun by the thousand would be counted as often. */
export function queueSpan(db: Reader): number {
  const row = db.get(
    `SELECT sum(last - first + 1) AS n FROM (SELECT max(seq) AS last, min(seq) AS first FROM execs
      WHERE state = 'queued' GROUP BY owner)`,
  )
  return Number(row?.n ?? 0)
}

export const countActive = (db: Reader): number =>
  Number(db.get("SELECT count(*) AS n FROM execs WHERE state <> 'queued'")?.n)

export const countQueued = (db: Reader): number =>
  Number(db.get("SELECT count(*) AS n FROM execs WHERE state = 'queued'")?.n)

/** `spec`: the rest of it, as JSON. */
export function insert(tx: Tx, { id, owner, ref }: NewExec, spec: string, now: number): void {
  tx.run(
    `INSERT INTO execs (id, owner, ref, state, spec_json, created_at) VALUES (?, ?, ?, 'queued', ?, ?)`,
    id,
    owner,
    ref,
    spec,
    now,
  )
}

/** Another start of it may begin with the commit. */
export function begun(tx: Tx, row: ExecRow, boot: string, now: number): ExecRow {
  tx.run(
    "UPDATE execs SET state = 'running', starts = starts + 1, boot = ?, started_at = ? WHERE id = ?",
    boot,
    now,
    row.id,
  )
  return { ...row, state: 'running', starts: row.starts + 1, boot, started_at: now }
}

export const canceled = (tx: Tx, id: string): number => tx.run("UPDATE execs SET state = 'canceled' WHERE id = ?", id)

/** It was cut off: it is the next one again. */
export const again = (tx: Tx, id: string): number =>
  tx.run("UPDATE execs SET state = 'queued', interruptions = interruptions + 1 WHERE id = ?", id)

/** Its last start never began: it waits as before. */
export const back = (tx: Tx, id: string): number => tx.run("UPDATE execs SET state = 'queued' WHERE id = ?", id)

export const remove = (tx: Tx, id: string): number => tx.run('DELETE FROM execs WHERE id = ?', id)
