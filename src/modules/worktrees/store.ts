/**
 * Worktrees in the city's store. A row is there before git is asked for anything, and goes after everything else has.
 *
 * `adding`: git may be making it. `setting_up`: it is there, and its commands may be running. `removing`: git may be
 * removing it. `discarding`: the same of what was still being made. `token` is in the environment of whatever runs for it, so that it can be found and ended after a crash.
 */
import { KEPT_REASONS, type KeptReason, WORKTREE_STATES } from '../../contract/worktrees.ts'
import type { Database, Row, SqlValue, Tx } from '../../kernel/database.ts'

export const WORKTREES_SCHEMA = `
CREATE TABLE worktrees (
  name TEXT PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  rig TEXT NOT NULL,
  repository TEXT NOT NULL,
  prefix TEXT NOT NULL,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  base_ref TEXT NOT NULL,
  base TEXT NOT NULL,
  state TEXT NOT NULL,
  token TEXT NOT NULL,
  kept_reason TEXT,
  error TEXT,
  laid_json TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
`

const STATES = [...WORKTREE_STATES, 'removing', 'discarding'] as const
export type StoredState = (typeof STATES)[number]

export interface LaidFile {
  readonly file: string
  readonly size: number
  readonly mtime: number
}

export interface WorktreeRecord {
  readonly name: string
  readonly session_id: string
  /** Empty: that of the city itself. */
  readonly rig: string
  readonly repository: string
  readonly prefix: string
  readonly path: string
  readonly branch: string
  readonly base_ref: string
  readonly base: string
  readonly state: StoredState
  readonly token: string
  readonly kept_reason: KeptReason | undefined
  readonly error: string | undefined
  readonly laid: readonly LaidFile[]
  readonly created_at: number
  readonly updated_at: number
}

export type Change = Partial<Pick<WorktreeRecord, 'state' | 'token' | 'kept_reason' | 'error' | 'laid'>>

function parse(row: Row): WorktreeRecord {
  const state = STATES.find((one) => one === row.state)
  if (state === undefined) throw new Error(`the store holds a worktree in an unknown state: ${String(row.state)}`)
  const text = (value: unknown) => (value === null || value === undefined ? undefined : String(value))
  return {
    name: String(row.name),
    session_id: String(row.session_id),
    rig: String(row.rig),
    repository: String(row.repository),
    prefix: String(row.prefix),
    path: String(row.path),
    branch: String(row.branch),
    base_ref: String(row.base_ref),
    base: String(row.base),
    state,
    token: String(row.token),
    kept_reason: KEPT_REASONS.find((one) => one === row.kept_reason),
    error: text(row.error),
    laid: JSON.parse(String(row.laid_json)),
    created_at: Number(row.created_at),
    updated_at: Number(row.updated_at),
  }
}

type Reader = Pick<Database, 'get' | 'all'> | Tx

export const all = (db: Reader): readonly WorktreeRecord[] => db.all('SELECT * FROM worktrees ORDER BY name').map(parse)

export function byName(db: Reader, name: string): WorktreeRecord | undefined {
  const row = db.get('SELECT * FROM worktrees WHERE name = ?', name)
  return row === undefined ? undefined : parse(row)
}

export function ofSession(db: Reader, session: string): WorktreeRecord | undefined {
  const row = db.get('SELECT * FROM worktrees WHERE session_id = ?', session)
  return row === undefined ? undefined : parse(row)
}

export function insert(tx: Tx, record: WorktreeRecord): void {
  const { laid, kept_reason, error, ...rest } = record
  const fields: Record<string, SqlValue> = {
    ...rest,
    laid_json: JSON.stringify(laid),
    kept_reason: kept_reason ?? null,
    error: error ?? null,
  }
  const names = Object.keys(fields)
  tx.run(
    `INSERT INTO worktrees (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    ...Object.values(fields),
  )
}

export function change(tx: Tx, before: WorktreeRecord, now: number, change: Change): WorktreeRecord {
  const after = { ...before, ...change, updated_at: now }
  tx.run(
    'UPDATE worktrees SET state = ?, token = ?, kept_reason = ?, error = ?, laid_json = ?, updated_at = ? WHERE name = ?',
    after.state,
    after.token,
    after.kept_reason ?? null,
    after.error ?? null,
    JSON.stringify(after.laid),
    now,
    after.name,
  )
  return after
}

export const remove = (tx: Tx, name: string): number => tx.run('DELETE FROM worktrees WHERE name = ?', name)
