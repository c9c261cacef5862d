/** What could not be done at all: the step fails for good, and everything else goes on (decision 91). */

import type { Failure, StepRow } from './base/rows.ts'
import type { Run } from './base/run.ts'
import { settle } from './steps/lists.ts'

export function failEngine(run: Run, row: StepRow, why: string): void {
  const failing = row.parent === null ? nextQueued(run) : row
  if (failing === undefined || failing.phase === 'settled') return
  const failure: Failure = { step_id: failing.path, class: 'hard', reason: 'engine_error', message: why }
  if (failing.phase === 'pending') settle(run, failing, 'failed', { failure })
  else run.do({ do: 'ended', row: failing, failure })
}

/** Of the molecule itself: the step whose turn it was. */
function nextQueued(run: Run): StepRow | undefined {
  const [row] = run.rows('SELECT * FROM molecule_steps WHERE queued = 1 AND id >= ? ORDER BY id LIMIT 1', run.root.id)
  return row
}
