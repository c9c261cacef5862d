/** The end of a molecule: said once, with what it is about and who started it (decisions 101, 121, 124). */
import { CONVOY_TYPE } from '../../../../contract/convoys.ts'
import type { Ending } from '../base/ports.ts'
import type { Failure } from '../base/rows.ts'
import { ACTOR, type Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { listenNoMore } from './listeners.ts'

const STATUSES = { pass: 'completed', fail: 'failed', canceled: 'canceled' } as const

/** `reason`: why, where that is not what failed. */
export function resolve(run: Run, outcome: Ending['outcome'], failure?: Failure, reason?: string, actor = ACTOR): void {
  const { molecule, now, tx } = run
  const said = reason ?? failure?.message ?? 'all steps are done'
  const status = STATUSES[outcome]
  const expires = molecule.keep_ms === null ? null : now + molecule.keep_ms
  run.set(run.root, { phase: 'settled', status, finished_at: now })
  forget(run)
  if (expires !== null) run.timer(run.root, 'keep', expires)
  run.change(
    {
      status,
      closed_at: now,
      expires_at: expires,
      ...(failure === undefined ? {} : { failure: JSON.stringify(failure) }),
    },
    failure?.reason ?? reason,
  )
  closeBeads(run, outcome, failure, said, actor)
  const { id, formula, order_run_id } = molecule
  // The change of status before what it means.
  run.finish()
  run.emit({
    type: 'molecule.resolved',
    actor,
    subject: id,
    payload: { issue_id: id, formula, outcome, close_reason: said, ...(failure === undefined ? {} : { failure }) },
  })
  if (order_run_id === null) return
  // Only the time of the molecule is a hard failure: a step that took too long is a step that failed.
  const timed_out = failure?.reason === 'timeout' && failure.class === 'hard'
  run.deps.city.orderEnded(tx, order_run_id, { outcome, reason: said, timed_out })
}

/** Nothing waits any more, and what it had for itself is free. */
function forget(run: Run): void {
  const {
    tx,
    molecule: { n },
  } = run
  const [from, to] = [n * ROWS_PER_MOLECULE, (n + 1) * ROWS_PER_MOLECULE]
  tx.run('DELETE FROM molecule_timers WHERE step >= ? AND step < ?', from, to)
  tx.run('DELETE FROM molecule_drives WHERE step >= ? AND step < ?', from, to)
  listenNoMore(run)
}

/** The root first: what it is about waits for it. A convoy closes by its members. */
function closeBeads(run: Run, outcome: Ending['outcome'], failure: Failure | undefined, reason: string, actor: string) {
  const { tx, molecule, deps } = run
  const why = failure === undefined ? {} : { failure_class: failure.class, failure_reason: failure.reason }
  deps.beads.close(tx, molecule.id, { outcome, reason, ...why }, actor)
  if (outcome !== 'pass' || molecule.bead === null) return
  if (deps.beads.find(molecule.bead)?.issue_type === CONVOY_TYPE) return
  deps.beads.close(tx, molecule.bead, { outcome: 'pass', reason: `${molecule.id} is done with it` }, ACTOR)
}
