/** What could not be done at all: the step fails for good, and everything else goes on. */

import type { Failure, StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'
import { settle } from '../steps/lists.ts'

export function failRow(run: Run, row: StepRow, why: string): void {
  // The molecule itself does nothing that a step could be blamed for.
  if (row.parent === null || row.phase === 'settled') return
  const failure: Failure = { step_id: row.path, class: 'hard', reason: 'engine_error', message: why }
  if (row.phase === 'pending') settle(run, row, 'failed', { failure })
  else run.do({ do: 'ended', row, failure })
}
