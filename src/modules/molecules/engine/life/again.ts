/**
 * `POST …/retry` (decisions 102, 121): a molecule that failed goes on. What failed and was not tolerated begins anew, and
 * what was left out because of it; what passed stays. Groups and repeats are taken up where they were, unless it was their
 * own check or their own time that failed.
 */
import { problem } from '../../../../kernel/problem.ts'
import type { StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'
import { supersede } from '../steps/attempts.ts'
import { dueIn } from '../steps/due.ts'
import { openList } from '../steps/lists.ts'
import { beginItems } from '../steps/repeat.ts'
import { retakeBead } from './attach.ts'
import { stopAllOf } from './cancel.ts'
import { listen } from './listeners.ts'

export function retryRun(run: Run, actor: string): void {
  const { id, status, bead } = run.molecule
  if (status !== 'failed')
    throw problem('conflict-wrong-state', `the molecule ${id} is ${status}: only one that failed can go on`)
  stopAllOf(run)
  if (bead !== null) retakeBead(run, bead, actor)
  run.deps.beads.resume(run.tx, id, actor)
  run.noTimer(run.root, 'keep')
  const { timeout } = run.plan.plan
  if (timeout !== undefined) run.timer(run.root, 'deadline', run.now + timeout)
  if (run.plan.listens) listen(run)
  run.change({ status: 'waiting', failure: null, closed_at: null, expires_at: null }, 'retry')
  takeUp(run, run.root)
}

/** A list goes on with those of its rows that are to begin anew. */
function takeUp(run: Run, list: StepRow): void {
  const children = run.children(list)
  const again = againOf(run, children)
  run.set(list, {
    phase: list.node >= 0 && isRepeat(run, list) ? 'repeat' : 'group',
    status: 'active',
    reason: null,
    failure: null,
    failures: 0,
    running: 0,
    open: again.length,
    finished_at: null,
  })
  const ids = new Set(again.map((child) => (child.item_index === 0 ? run.step(child).id : String(child.item_index))))
  for (const child of again) takeUpRow(run, child, waitsFor(run, child, ids))
  if (list.phase === 'repeat') {
    run.set(list, { running: again.filter(({ phase }) => phase !== 'pending').length })
    beginItems(run, list)
  } else openList(run, list)
}

/** What is to begin anew, and what came after it all the same (`always`): that is done once more too. */
function againOf(run: Run, children: readonly StepRow[]): readonly StepRow[] {
  const again = new Set(children.filter((child) => isAgain(run, child)))
  const steps = children.filter((child) => child.item_index === 0)
  for (let before = -1; before < again.size; ) {
    before = again.size
    const ids = new Set([...again].map((child) => (child.item_index === 0 ? run.step(child).id : '')))
    for (const child of steps) if (run.step(child).needs.some((need) => ids.has(need))) again.add(child)
  }
  return children.filter((child) => again.has(child))
}

function waitsFor(run: Run, row: StepRow, again: ReadonlySet<string>): number {
  const needs: readonly (string | number)[] =
    row.item_index === 0 ? [...new Set(run.step(row).needs)] : JSON.parse(row.item_needs ?? '[]')
  return needs.filter((need) => again.has(String(need))).length
}

const isRepeat = (run: Run, row: StepRow): boolean => run.step(row).repeat !== undefined && row.item_index === 0

function isAgain(run: Run, { status, reason, ...row }: StepRow): boolean {
  if (status === 'failed') return row.item_index > 0 || run.plan.nodes[row.node]?.step.on_fail !== 'continue'
  return status === 'canceled' || (status === 'skipped' && reason !== 'condition')
}

function takeUpRow(run: Run, row: StepRow, unsettled: number): void {
  run.set(row, { unsettled, blocked: 0 })
  if (goesOn(run, row)) {
    const { timeout } = run.step(row)
    if (timeout !== undefined && !isRepeat(run, row)) dueIn(run, row, timeout)
    takeUp(run, row)
    return
  }
  reset(run, row, unsettled)
}

/** True: something in it is to begin anew, and its own check was not what failed. */
function goesOn(run: Run, row: StepRow): boolean {
  const isDone = row.status === 'skipped' || row.status === 'completed'
  if (row.attempt === 0 || isDone || row.verdict !== null) return false
  const { children } = run.node(row)
  if (children.length === 0 && !isRepeat(run, row)) return false
  return run.children(row).some((child) => isAgain(run, child))
}

/** As it was before its turn; attempts go on to be counted. */
function reset(run: Run, row: StepRow, unsettled: number): void {
  run.set(row, {
    phase: 'pending',
    status: 'pending',
    reason: null,
    failure: null,
    unsettled,
    blocked: 0,
    attempts_before: row.attempt,
    finished_at: null,
  })
  // Items of a list that begins anew are others; those of before stay, and count no more.
  if (row.attempt > 0 && isRepeat(run, row)) for (const item of run.children(row)) supersede(run, item)
  // What was never begun is begun with what is there; everything else is made anew by the next attempt.
  if (row.attempt > 0) return
  for (const child of isLeafless(run, row) ? [] : run.children(row)) reset(run, child, needsOf(run, child))
}

const isLeafless = (run: Run, row: StepRow): boolean => run.node(row).children.length === 0 || isRepeat(run, row)
const needsOf = (run: Run, row: StepRow): number => new Set(run.step(row).needs).size
