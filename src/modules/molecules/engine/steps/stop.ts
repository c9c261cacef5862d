/** Ending what is under way before its time: beads are closed, commands ended, holders told. */
import type { Ending } from '../base/ports.ts'
import { type Failure, parseVerdict, type StepRow } from '../base/rows.ts'
import { ACTOR, type Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { payloadOf } from './telling.ts'

export interface Stop {
  readonly status: 'canceled' | 'failed'
  readonly reason: string
  readonly failure?: Failure
}

/** Ends what a row itself has under way. */
export function stopOwn(run: Run, row: StepRow, stop: Stop): void {
  if (row.exec !== null) stopExec(run, row)
  if (row.phase === 'ask') closeGate(run, row, row.asked, stop)
  if (row.phase === 'gate') closeGate(run, row, row.bead, stop)
  if (row.phase === 'work' && row.bead !== null) closeBead(run, row.bead, stop)
  releaseMember(run, row)
  if (row.exec !== null || row.event !== null || row.busy)
    run.set(row, { exec: null, event: null, event_match: null, busy: false })
}

function stopExec(run: Run, row: StepRow): void {
  run.deps.execs.cancel(run.tx, row.exec ?? '')
  const verdict = parseVerdict(row.verdict)
  if (verdict !== undefined)
    run.set(row, { verdict: JSON.stringify({ ...verdict, status: 'error', error: 'canceled' }) })
}

const endingOf = ({ status, reason, failure }: Stop): Ending =>
  status === 'failed'
    ? {
        outcome: 'fail',
        reason,
        failure_class: failure?.class ?? 'transient',
        failure_reason: reason,
      }
    : { outcome: 'canceled', reason }

/** Closes the bead of work, and tells who has it. */
function closeBead(run: Run, id: string, stop: Stop): void {
  const { beads, city } = run.deps
  const bead = beads.close(run.tx, id, endingOf(stop), ACTOR)
  if (bead?.status !== 'in_progress') return
  const why = `${id} is closed: ${stop.reason}`
  const { session_id, assignee } = bead
  run.tx.afterCommit(() => city.interrupt({ session_id, assignee }, why))
}

function closeGate(run: Run, row: StepRow, bead: string | null, stop: Stop): void {
  if (bead !== null) closeBead(run, bead, stop)
  tellGate(run, row, bead, stop.status, stop.reason)
}

export function tellGate(run: Run, row: StepRow, bead: string | null, status: string, reason: string | null): void {
  const payload = payloadOf(run, row, { bead, status, reason })
  run.emit({ type: 'gate.closed', actor: ACTOR, subject: run.molecule.id, payload })
}

/** A member that an item had for itself is free for others again. */
export function releaseMember(run: Run, row: StepRow): void {
  if (row.member === null || run.tx.run('DELETE FROM molecule_drives WHERE step = ?', row.id) === 0) return
  // Others of the same molecule may have waited for it: all of them are tried again, since the first may be canceled by then.
  const { id } = run.root
  for (const next of run.rows(WAITING_FOR, id, id + ROWS_PER_MOLECULE, row.member)) {
    run.set(next, { reason: MEMBER_FREE })
    run.do({ do: 'begin', row: next })
  }
}

/** Why an item waits whose turn has come: another item of the same molecule has its bead, or has just let go of it. */
export const MEMBER_BUSY = 'member_busy'
export const MEMBER_FREE = 'member_free'

const WAITING_FOR = `SELECT * FROM molecule_steps WHERE queued = 1 AND id >= ? AND id < ? AND member = ?
  AND reason = '${MEMBER_BUSY}' ORDER BY id`
