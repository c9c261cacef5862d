/** The turn of a step has come: its condition, its list, its attempts. */

import { isRefusal } from '../base/faults.ts'
import { type Failure, isLive, type StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { settle, skip } from './lists.ts'
import { beginRepeat, driveMember } from './repeat.ts'
import { TemplateFailure, Texts } from './scope.ts'
import { MEMBER_BUSY, MEMBER_FREE } from './stop.ts'

/** Steps that one write begins, unless its time is over before; the others are begun by the next, so that other writers have their turn (decision 240). */
const MAX_BEGUN = 100

export function begin(run: Run, row: StepRow): void {
  if (row.phase !== 'pending' || !isLive(run.molecule.status)) return
  if (run.begun >= MAX_BEGUN || (run.begun > 0 && run.isLate)) {
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

/** What a text that cannot be rendered, or a refusal, leads to: the step fails, for good. */
function tried<T>(run: Run, row: StepRow, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    settle(run, row, 'failed', { failure: failureOfBegin(row, error) })
    return undefined
  }
}

/** How a row fails that cannot be begun; throws what is no matter of the row. */
export function failureOfBegin(row: StepRow, error: unknown): Failure {
  if (error instanceof TemplateFailure) return hardFailure(row, 'template_error', error.message)
  if (isRefusal(error)) return hardFailure(row, 'cannot_begin', error.message)
  throw error
}

const hardFailure = (row: StepRow, reason: string, message: string): Failure => ({
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
    `SELECT * FROM molecule_steps WHERE queued = 1 AND id >= ? AND id < ? AND reason IS NOT '${MEMBER_BUSY}'
      ORDER BY id LIMIT ${MAX_BEGUN + 1}`,
    id,
    id + ROWS_PER_MOLECULE,
  )
  for (const row of rows) run.do({ do: 'begin', row })
}

function beginItem(run: Run, row: StepRow): void {
  const hasWaited = row.reason === MEMBER_FREE
  if (hasWaited) run.set(row, { reason: null })
  if (hasWaited && row.member !== null && run.deps.beads.find(row.member)?.status === 'closed') {
    settle(run, row, 'completed', { reason: 'bead_closed' })
    return
  }
  const refused = driveMember(run, row)
  if (refused === MEMBER_BUSY) {
    run.set(row, { queued: true, reason: MEMBER_BUSY })
    return
  }
  if (refused === undefined) {
    run.do({ do: 'attempt', row })
    return
  }
  settle(run, row, 'failed', { failure: hardFailure(row, 'bead_driven', refused) })
}
