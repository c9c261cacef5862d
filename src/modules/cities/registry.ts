/** SQL of the registry: which cities exist, which are leaving, which scaffolds are unfinished. */
import type { Row, Tx } from '../../kernel/database.ts'
import type { Store } from '../../kernel/store.ts'
import type { ScaffoldNote } from './scaffold.ts'

export const REGISTRY_SCHEMA = `
CREATE TABLE cities (
  name TEXT PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  path TEXT NOT NULL UNIQUE,
  desired TEXT NOT NULL CHECK (desired IN ('running', 'stopped')),
  registered_at INTEGER NOT NULL,
  start_head INTEGER NOT NULL,
  known_head INTEGER NOT NULL,
  previous_uid TEXT,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  retry_at INTEGER,
  error_code TEXT,
  error TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE departures (
  uid TEXT NOT NULL,
  name TEXT NOT NULL,
  path TEXT NOT NULL,
  request_id TEXT PRIMARY KEY,
  registered_at INTEGER NOT NULL,
  start_head INTEGER NOT NULL,
  known_head INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX departures_name ON departures (name, finished_at);
CREATE TABLE scaffolds (path TEXT PRIMARY KEY, made TEXT NOT NULL) STRICT, WITHOUT ROWID;
`
/** How long the log of an unregistered city stays part of the merged stream (decision 17). */
export const GRACE_MS = 120_000
const DEPARTURES_KEPT_MS = 30 * 86_400_000

export interface CityRow {
  readonly name: string
  readonly uid: string
  readonly path: string
  readonly desired: 'running' | 'stopped'
  /** Head of the supervisor's log right after its registration. */
  readonly registeredAt: number
  /** Head of its own log at its registration. */
  readonly startHead: number
  readonly knownHead: number
  readonly previousUid: string | undefined
  readonly attempts: number
  readonly retryAt: number | undefined
  readonly errorCode: string | undefined
  readonly error: string | undefined
}

export interface DepartureRow {
  readonly uid: string
  readonly name: string
  readonly path: string
  readonly requestId: string
  readonly registeredAt: number
  readonly startHead: number
  readonly knownHead: number
  readonly finishedAt: number | undefined
}

/** What a create had begun to make in a directory. */
export interface Scaffold {
  readonly path: string
  readonly note: ScaffoldNote
}

export interface StartFailure {
  readonly attempts: number
  readonly retryAt: number | undefined
  readonly errorCode: string
  readonly error: string
}

export class Registry {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  cities(): readonly CityRow[] {
    return this.#store.db.all('SELECT * FROM cities ORDER BY name').map(toCity)
  }

  /** Departures that are not over, then those that ended after `sinceMs`, newest first. */
  departures(sinceMs: number): readonly DepartureRow[] {
    return this.#store.db
      .all(
        'SELECT * FROM departures WHERE finished_at IS NULL OR finished_at > ? ORDER BY finished_at IS NOT NULL, finished_at DESC',
        sinceMs,
      )
      .map(toDeparture)
  }

  add(tx: Tx, city: Pick<CityRow, 'name' | 'uid' | 'path' | 'registeredAt' | 'startHead'>, now: number): CityRow {
    const previous = tx.get('SELECT uid FROM departures WHERE name = ? ORDER BY finished_at DESC LIMIT 1', city.name)
    tx.run(
      `INSERT INTO cities (name, uid, path, desired, registered_at, start_head, known_head, previous_uid, created_at)
       VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?)`,
      city.name,
      city.uid,
      city.path,
      city.registeredAt,
      city.startHead,
      city.startHead,
      previous === undefined ? null : String(previous.uid),
      now,
    )
    tx.run('DELETE FROM scaffolds WHERE path = ?', city.path)
    return {
      ...city,
      desired: 'running',
      knownHead: city.startHead,
      previousUid: previous === undefined ? undefined : String(previous.uid),
      attempts: 0,
      retryAt: undefined,
      errorCode: undefined,
      error: undefined,
    }
  }

  /** Takes the entry away and notes that the city is leaving. */
  depart(tx: Tx, name: string, requestId: string, head: number, now: number): void {
    tx.run(
      `INSERT INTO departures (uid, name, path, request_id, registered_at, start_head, known_head)
       SELECT uid, name, path, ?, registered_at, start_head, ? FROM cities WHERE name = ?`,
      requestId,
      head,
      name,
    )
    tx.run('DELETE FROM cities WHERE name = ?', name)
    tx.run('DELETE FROM departures WHERE finished_at < ?', now - DEPARTURES_KEPT_MS)
  }

  departed(tx: Tx, requestId: string, head: number, now: number): void {
    tx.run('UPDATE departures SET finished_at = ?, known_head = ? WHERE request_id = ?', now, head, requestId)
  }

  /** True while this very city is registered; inside the write, so that what commits before is seen. */
  has(tx: Tx, name: string, uid: string): boolean {
    return tx.get('SELECT name FROM cities WHERE name = ? AND uid = ?', name, uid) !== undefined
  }

  setDesired(tx: Tx, name: string, desired: 'running' | 'stopped'): void {
    tx.run('UPDATE cities SET desired = ? WHERE name = ?', desired, name)
  }

  started(tx: Tx, name: string, head: number): void {
    tx.run(
      'UPDATE cities SET attempts = 0, retry_at = NULL, error_code = NULL, error = NULL, known_head = ? WHERE name = ?',
      head,
      name,
    )
  }

  startFailed(tx: Tx, name: string, { attempts, retryAt, errorCode, error }: StartFailure): void {
    tx.run(
      'UPDATE cities SET attempts = ?, retry_at = ?, error_code = ?, error = ? WHERE name = ?',
      attempts,
      retryAt ?? null,
      errorCode,
      error,
      name,
    )
  }

  rememberHead(tx: Tx, name: string, head: number): void {
    tx.run('UPDATE cities SET known_head = ? WHERE name = ?', head, name)
  }

  /** Journals a scaffold before its first file is written. */
  beginScaffold(tx: Tx, path: string, note: ScaffoldNote): void {
    tx.run('INSERT OR REPLACE INTO scaffolds (path, made) VALUES (?, ?)', path, JSON.stringify(note))
  }

  endScaffold(tx: Tx, path: string): void {
    tx.run('DELETE FROM scaffolds WHERE path = ?', path)
  }

  unfinishedScaffolds(): readonly Scaffold[] {
    return this.#store.db.all('SELECT path, made FROM scaffolds').map(toScaffold)
  }

  unfinishedScaffold(path: string): Scaffold | undefined {
    const row = this.#store.db.get('SELECT path, made FROM scaffolds WHERE path = ?', path)
    return row === undefined ? undefined : toScaffold(row)
  }
}

const numberOr = (value: unknown): number | undefined =>
  value === null || value === undefined ? undefined : Number(value)
const textOr = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value)

function toCity(row: Row): CityRow {
  return {
    name: String(row.name),
    uid: String(row.uid),
    path: String(row.path),
    desired: row.desired === 'stopped' ? 'stopped' : 'running',
    registeredAt: Number(row.registered_at),
    startHead: Number(row.start_head),
    knownHead: Number(row.known_head),
    previousUid: textOr(row.previous_uid),
    attempts: Number(row.attempts),
    retryAt: numberOr(row.retry_at),
    errorCode: textOr(row.error_code),
    error: textOr(row.error),
  }
}

function toScaffold(row: Row): Scaffold {
  const found: ScaffoldNote | readonly string[] = JSON.parse(String(row.made))
  // Earlier ones were lists of paths: nothing tells what of them is ours.
  return { path: String(row.path), note: 'id' in found ? found : { id: '', directories: [], files: [] } }
}

function toDeparture(row: Row): DepartureRow {
  return {
    uid: String(row.uid),
    name: String(row.name),
    path: String(row.path),
    requestId: String(row.request_id),
    registeredAt: Number(row.registered_at),
    startHead: Number(row.start_head),
    knownHead: Number(row.known_head),
    finishedAt: numberOr(row.finished_at),
  }
}
