/** Does what is on the agenda of a molecule until nothing is, then writes what has become of it. */

import { Problem } from '../../../../kernel/problem.ts'
import { isRefusal, StepFault } from '../base/faults.ts'
import { type MoleculeRow, parseFailure, type StepRow } from '../base/rows.ts'
import type { Run, Task } from '../base/run.ts'
import { attemptEnded, bodyEnded, startAttempt } from '../steps/attempts.ts'
import { begin } from '../steps/begin.ts'
import { settle, tellList } from '../steps/lists.ts'
import { itemSettled } from '../steps/repeat.ts'
import { failRow } from './fail.ts'
import { resolve } from './resolve.ts'

export function drain(run: Run): MoleculeRow {
  for (let task = run.next(); task !== undefined; task = run.next()) {
    const why = run.deps.doomed?.get(task.row.id)
    if (why !== undefined && MAY_FAIL.has(task.do)) failRow(run, task.row, why)
    else performed(run, task)
  }
  return run.finish()
}

/** What a row does of itself; what its end means to others is theirs. */
const MAY_FAIL: ReadonlySet<Task['do']> = new Set(['begin', 'attempt', 'body'])

function performed(run: Run, task: Task): void {
  try {
    perform(run, task)
  } catch (error) {
    const isOfStep = MAY_FAIL.has(task.do) && (!(error instanceof Problem) || isRefusal(error))
    throw isOfStep ? new StepFault(task.row.id, error) : error
  }
}

function perform(run: Run, task: Task): void {
  const { row } = task
  switch (task.do) {
    case 'begin':
      begin(run, row)
      return
    case 'attempt':
      startAttempt(run, row)
      return
    case 'body':
      bodyEnded(run, row, task.failure)
      return
    case 'ended':
      attemptEnded(run, row, task.failure)
      return
    case 'settled':
      settled(run, row)
      return
  }
}

function settled(run: Run, row: StepRow): void {
  if (row.parent === null) return
  const isOver = tellList(run, row)
  const list = run.row(row.parent)
  if (row.item_index > 0) itemSettled(run, list, row)
  if (isOver && list.open === 0) listEnded(run, list)
}

/** Everything in it is settled: that is how its body came out, or all of it. */
function listEnded(run: Run, list: StepRow): void {
  const failure = list.failures > 0 ? parseFailure(list.failure) : undefined
  if (list.parent === null) resolve(run, failure === undefined ? 'pass' : 'fail', failure)
  else if (list.phase === 'group') run.do({ do: 'body', row: list, failure })
  else if (list.phase === 'repeat')
    settle(run, list, failure === undefined ? 'completed' : 'failed', failure === undefined ? {} : { failure })
}
