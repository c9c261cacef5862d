/** What sessions ask about work: who holds some, and which of it is still open. Index reads. */
import type { Reader } from './edges.ts'

/** True where work that is not closed is assigned to one of these names. */
export function holdsWork(reader: Reader, names: readonly string[]): boolean {
  return names.some(
    (name) =>
      reader.get("SELECT 1 AS held FROM beads WHERE assignee = ? AND status <> 'closed' LIMIT 1", name) !== undefined,
  )
}

/** The bead that the session works on; the newest where there are several. */
export function beadInProgress(reader: Reader, sessionId: string): string | undefined {
  const row = reader.get(
    "SELECT id FROM beads WHERE session_id = ? AND status = 'in_progress' ORDER BY updated_at DESC, id LIMIT 1",
    sessionId,
  )
  return row === undefined ? undefined : String(row.id)
}

/** A moment of a turn, and when the turn began and ended, as far as that is known. */
export interface TurnTime {
  readonly at: number
  readonly since: number | undefined
  readonly until: number
}

/**
 * The bead that a session worked on at a moment of a turn: the next one that it closed in the turn, else the one that it has
 * in progress, else the last one that it closed in the turn.
 */
export function beadOfTurn(reader: Reader, sessionId: string, { at, since, until }: TurnTime): string | undefined {
  const closed = 'SELECT id FROM beads WHERE session_id = ? AND closed_at BETWEEN ? AND ? ORDER BY closed_at'
  const next = reader.get(`${closed} LIMIT 1`, sessionId, at, until)
  if (next !== undefined) return String(next.id)
  const current = beadInProgress(reader, sessionId)
  if (current !== undefined || since === undefined) return current
  const last = reader.get(`${closed} DESC LIMIT 1`, sessionId, since, until)
  return last === undefined ? undefined : String(last.id)
}

/** Which of these beads are not closed, and which there are none of. */
export function openAmong(
  reader: Reader,
  ids: readonly string[],
): { readonly open: readonly string[]; readonly unknown: readonly string[] } {
  const status = (id: string) => reader.get('SELECT status FROM beads WHERE id = ?', id)?.status
  const known = ids.map((id) => ({ id, status: status(id) }))
  return {
    open: known.filter((one) => one.status !== undefined && one.status !== 'closed').map(({ id }) => id),
    unknown: known.filter((one) => one.status === undefined).map(({ id }) => id),
  }
}
