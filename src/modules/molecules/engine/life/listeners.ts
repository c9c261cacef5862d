/** Molecules with gates that wait for events, or will: the log keeps what is newer than the oldest of them. */
import type { EngineDeps, Run } from '../base/run.ts'

export function listen({ tx, deps, molecule: { n, since_seq } }: Run): void {
  tx.run('INSERT OR REPLACE INTO molecule_listeners (molecule, since_seq) VALUES (?, ?)', n, since_seq)
  tx.afterCommit(() => pinLog(deps))
}

export function listenNoMore({ tx, deps, molecule: { n } }: Run): void {
  if (tx.run('DELETE FROM molecule_listeners WHERE molecule = ?', n) > 0) tx.afterCommit(() => pinLog(deps))
}

export function pinLog({ db, log }: Pick<EngineDeps, 'db' | 'log'>): void {
  const row = db.get('SELECT since_seq FROM molecule_listeners ORDER BY since_seq LIMIT 1')
  log.pin('gates of molecules', row === undefined ? undefined : Number(row.since_seq))
}
