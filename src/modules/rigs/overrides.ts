/** Live suspension of rigs: rows in the city's store, not files (decision 30). */
import type { Tx } from '../../kernel/database.ts'

const PREFIX = 'rig.suspended:'

/** True or false where it is overridden; undefined: as the files say. */
export function readOverride(db: Pick<Tx, 'get'>, rig: string): boolean | undefined {
  const value = db.get('SELECT value FROM overrides WHERE key = ?', PREFIX + rig)?.value
  return value === undefined ? undefined : value === 'true'
}

/** Undefined removes the override. */
export function writeOverride(tx: Tx, rig: string, suspended: boolean | undefined, now: number): void {
  if (suspended === undefined) tx.run('DELETE FROM overrides WHERE key = ?', PREFIX + rig)
  else
    tx.run(
      'INSERT OR REPLACE INTO overrides (key, value, updated_at) VALUES (?, ?, ?)',
      PREFIX + rig,
      String(suspended),
      now,
    )
}
