/** When an attempt times out (decision 95). */
import type { StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'

export function dueIn(run: Run, row: StepRow, ms: number): void {
  const due = Math.ceil(run.now + ms)
  run.timer(row, 'timeout', due)
  run.set(row, { due_at: row.due_at === null ? due : Math.min(row.due_at, due) })
}
