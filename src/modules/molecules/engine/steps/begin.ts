/** The turn of a step has come: its condition, its list, its attempts. */

import type { Failure, StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { settle, skip } from './lists.ts'
import { beginRepeat, driveMember } from './repeat.ts'
import { TemplateFailure, Texts } from './scope.ts'

/** Steps that one write begins; the others are begun by the next, so that other writers have their turn (decision 240). */
const MAX_BEGUN = 100

export function begin(run: Run, row: StepRow): void {
  if (row.phase !== 'pending') return
  if (run.begun >= MAX_BEGUN) {
    postpone(run, row)
    return
  }
  run.begun++
  if (row.queued) run.set(row, { queued: false })
  if (row.item_index > 0) {
    beginItem(run, row)
    return
  }
  const { condition, repeat } = run.step(row)
  const holds = condition === undefined ? true : tried(run, row, () => new Texts(run, row).holds(condition))
  if (holds === undefined) return
  if (!holds) {
    skip(run, row, 'condition')
    return
  }
  if (repeat === undefined) {
    run.do({ do: 'attempt', row })
    return
  }
  tried(run, row, () => beginRepeat(run, row, repeat))
}

/** What a text that cannot be rendered leads to: the step fails, for good. */
function tried<T>(run: Run, row: StepRow, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof TemplateFailure)) throw error
    settle(run, row, 'failed', { failure: hardFailure(row, 'template_error', error.message) })
    return undefined
  }
}

export const hardFailure = (row: StepRow, reason: string, message: string): Failure => ({
  step_id: row.path,
  class: 'hard',
  reason,
  message,
})

function postpone(run: Run, row: StepRow): void {
  if (!row.queued) run.set(row, { queued: true })
  run.timer(run.root, 'go', run.now)
}

/** Begins what an earlier write left. */
export function beginQueued(run: Run): void {
  const { id } = run.root
  const rows = run.rows(
    `SELECT * FROM molecule_steps WHERE queued = 1 AND id >= ? AND id < ? ORDER BY id LIMIT ${MAX_BEGUN + 1}`,
    id,
    id + ROWS_PER_MOLECULE,
  )
  for (const row of rows) run.do({ do: 'begin', row })
}

function beginItem(run: Run, row: StepRow): void {
  const refused = driveMember(run, row)
  if (refused === undefined) {
    run.do({ do: 'attempt', row })
    return
  }
  settle(run, row, 'failed', { failure: hardFailure(row, 'bead_driven', refused) })
}
