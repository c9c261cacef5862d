/**
 * Lists: of the molecule, of a group, of the items of a repeat. What a row that settles means to its siblings and to what it
 * is in (decision 92).
 */
import type { Tx } from '../../../../kernel/database.ts'
import type { PlanNode } from '../base/plans.ts'
import type { Failure, StepRow } from '../base/rows.ts'
import { ACTOR, leavesOf, type Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import { type Stop, stopOwn } from './stop.ts'
import { payloadOf } from './telling.ts'

type SettledStatus = 'completed' | 'failed' | 'skipped' | 'canceled'

/** Rows of a molecule, with those that are superseded. */
export const MAX_ROWS = 10_000

const NEW_ROW = `INSERT INTO molecule_steps (id, parent, node, item_index, path, phase, status, unsettled, item, item_needs, member)
  VALUES (?, ?, ?, ?, ?, 'pending', 'pending', ?, ?, ?, ?)`

/** Makes rows for what is in a list, and below it as far as that is known by now. */
export function addList(run: Run, list: StepRow, nodes: readonly PlanNode[]): void {
  insertList(run.tx, rowIds(run), { id: list.id, path: list.path }, nodes)
  run.added(sizeOf(nodes), leavesIn(nodes))
}

/** The same for a list of which there is nothing else yet. */
export function insertList(tx: Tx, first: number, list: ListPlace, nodes: readonly PlanNode[]): void {
  let next = first
  const add = (parent: number, path: string, children: readonly PlanNode[]) => {
    for (const node of children) {
      const id = next++
      const { step } = node
      const own = path === '' ? step.id : `${path}.${step.id}`
      tx.run(NEW_ROW, id, parent, node.index, 0, own, new Set(step.needs).size, null, null, null)
      if (step.repeat === undefined) add(id, own, node.children)
    }
  }
  add(list.id, list.path, nodes)
}

interface ListPlace {
  readonly id: number
  readonly path: string
}

export const sizeOf = (nodes: readonly PlanNode[]): number => nodes.reduce((sum, { size }) => sum + size, 0)
export const leavesIn = (nodes: readonly PlanNode[]): number => nodes.reduce((sum, node) => sum + leavesOf(node), 0)

export interface NewItem {
  readonly item: string
  readonly needs: readonly number[]
  readonly member: string | null
}

/** Makes the rows of items, each without what is in it. */
export function addItems(run: Run, repeat: StepRow, items: readonly NewItem[], leaves: number): void {
  const first = rowIds(run)
  for (const [at, { item, needs, member }] of items.entries()) {
    const waits = needs.length === 0 ? null : JSON.stringify(needs)
    const path = `${repeat.path}.${at + 1}`
    run.tx.run(NEW_ROW, first + at, repeat.id, repeat.node, at + 1, path, needs.length, item, waits, member)
  }
  run.added(items.length, leaves)
}

const rowIds = (run: Run): number => run.molecule.n * ROWS_PER_MOLECULE + run.molecule.rows

/** Begins what waits for nothing in a list. */
export function openList(run: Run, list: StepRow): void {
  const ready = run.rows(
    `SELECT * FROM molecule_steps WHERE parent = ? AND superseded = 0 AND phase = 'pending' AND unsettled = 0 ORDER BY id`,
    list.id,
  )
  for (const row of ready) run.do({ do: 'begin', row })
}

interface Settled {
  readonly reason?: string | null
  readonly failure?: Failure | undefined
}

/** A step or an item is done, in this way or that. */
export function settle(run: Run, row: StepRow, status: SettledStatus, { reason = null, failure }: Settled = {}): void {
  run.deps.timers.dropAll(run.tx, row.id)
  close(run, row, status, { reason: reason ?? failure?.reason ?? null, failure })
  run.do({ do: 'settled', row })
}

function close(run: Run, row: StepRow, status: SettledStatus, { reason = null, failure }: Settled): void {
  run.set(row, {
    phase: 'settled',
    status,
    reason,
    queued: false,
    busy: false,
    due_at: null,
    next_attempt_at: null,
    failure: failure === undefined ? row.failure : JSON.stringify(failure),
    finished_at: run.now,
  })
  // What was to come and does not is told of by what ended it.
  if (status !== 'canceled' || row.attempt > 0) tellCompleted(run, row)
}

/** Leaves out a step, with all that is in it; each says so. */
export function skip(run: Run, row: StepRow, reason: string): void {
  closeBelow(run, row, 'skipped', reason)
  settle(run, row, 'skipped', { reason })
}

/** It may have rows below it; the molecule itself has. */
const contains = (run: Run, row: StepRow): boolean =>
  row.node < 0 || run.node(row).children.length > 0 || run.step(row).repeat !== undefined

/** Settles what is in a row, of which nothing is under way any more. */
function closeBelow(run: Run, row: StepRow, status: SettledStatus, reason: string): void {
  if (!contains(run, row)) return
  for (const child of run.children(row)) {
    if (child.phase === 'settled') continue
    closeBelow(run, child, status, reason)
    close(run, child, status, { reason })
  }
}

export function tellCompleted(run: Run, row: StepRow): void {
  const payload = payloadOf(run, row, { reason: row.reason })
  run.emit({ type: 'execution.step_completed', actor: ACTOR, subject: run.molecule.id, payload })
}

/** What one write may still end: rows that were not begun count once, the others as much more as they cost. */
export interface Budget {
  left: number
}
const BEGUN_COSTS = 5

/**
 * Ends everything that is under way in a row, and below it; the row itself is settled by who asks for it. False: the budget
 * did not suffice.
 */
export function stop(run: Run, row: StepRow, how: Stop, budget: Budget = { left: ROWS_PER_MOLECULE * BEGUN_COSTS }) {
  // What waits for its turn has neither.
  if (row.phase !== 'pending') {
    run.deps.timers.dropAll(run.tx, row.id)
    stopOwn(run, row, how)
  }
  // A repeat has no attempts of its own, and what waits for the next one has none under way.
  if (how.status === 'canceled' && row.began_at !== null && row.phase !== 'backoff') remember(run, row, 'canceled')
  return stopBelow(run, row, how, budget)
}

export function stopBelow(run: Run, row: StepRow, how: Stop, budget: Budget): boolean {
  if (!contains(run, row)) return true
  for (const child of unsettled(run, row, budget.left)) {
    const began = child.phase !== 'pending'
    if (budget.left <= 0) return false
    budget.left -= began ? BEGUN_COSTS : 1
    if (!stop(run, child, how, budget)) return false
    close(run, child, began ? how.status : 'canceled', {
      reason: how.reason,
      failure: began && how.failure !== undefined ? { ...how.failure, step_id: child.path } : undefined,
    })
  }
  return true
}

/** In their order; one more than these, where there are more. */
const unsettled = (run: Run, row: StepRow, most: number): readonly StepRow[] =>
  run.rows(
    `SELECT * FROM molecule_steps WHERE parent = ? AND superseded = 0 AND phase <> 'settled' ORDER BY node, id LIMIT ?`,
    row.id,
    Math.max(most, 0) + 1,
  )

/** What follows for its siblings and for what it is in. True: all of that is settled. */
export function tellList(run: Run, row: StepRow): boolean {
  if (row.parent === null) return false
  const list = run.row(row.parent)
  if (list.phase === 'settled') return false
  const failed = row.status === 'failed' && (row.item_index > 0 || run.step(row).on_fail !== 'continue')
  const bars = failed || row.status === 'canceled' || (row.status === 'skipped' && row.reason !== 'condition')
  run.set(list, {
    open: list.open - 1,
    ...(failed ? { failures: list.failures + 1, failure: list.failure ?? row.failure } : {}),
  })
  if (row.item_index > 0) tellItems(run, row, bars)
  else tellDependents(run, row, bars)
  if (failed && row.item_index === 0 && run.step(row).on_fail === 'abort') abortList(run, list, row)
  return list.open === 0
}

function tellDependents(run: Run, row: StepRow, bars: boolean): void {
  for (const node of run.node(row).dependents) {
    const dependent = run.child(row.parent ?? 0, node)
    if (dependent === undefined || dependent.phase !== 'pending') continue
    run.set(dependent, {
      unsettled: dependent.unsettled - 1,
      ...(bars ? { blocked: dependent.blocked + 1 } : {}),
    })
    if (dependent.blocked > 0 && !node.step.always) skip(run, dependent, 'upstream_failed')
    else if (dependent.unsettled === 0) run.do({ do: 'begin', row: dependent })
  }
}

/** Items that have their members to themselves come one after the other where those do. */
function tellItems(run: Run, row: StepRow, bars: boolean): void {
  const waiting = run.rows(
    `SELECT * FROM molecule_steps WHERE parent = ? AND phase = 'pending' AND item_needs IS NOT NULL ORDER BY id`,
    row.parent ?? 0,
  )
  for (const item of waiting) {
    const needs: readonly number[] = JSON.parse(item.item_needs ?? '[]')
    if (!needs.includes(row.item_index)) continue
    run.set(item, { unsettled: item.unsettled - 1 })
    if (bars) skip(run, item, 'upstream_failed')
  }
}

/** Ends the rest of a list at once: what depends on the failure is skipped, what is to run in any case is left. */
function abortList(run: Run, list: StepRow, failed: StepRow): void {
  const upstream = barredBy(run.node(failed))
  for (const sibling of run.children(list)) {
    const { step } = run.node(sibling)
    if (sibling.phase === 'settled' || step.always) continue
    if (sibling.phase === 'pending' && upstream.has(step.id)) {
      skip(run, sibling, 'upstream_failed')
      continue
    }
    stop(run, sibling, { status: 'canceled', reason: 'aborted' })
    settle(run, sibling, 'canceled', { reason: 'aborted' })
  }
}

/** What does not run because of it, and because of that. */
function barredBy(node: PlanNode): ReadonlySet<string> {
  const barred = new Set<string>()
  const nodes = [node]
  for (let next = nodes.pop(); next !== undefined; next = nodes.pop()) {
    for (const dependent of next.dependents) {
      if (dependent.step.always || barred.has(dependent.step.id)) continue
      barred.add(dependent.step.id)
      nodes.push(dependent)
    }
  }
  return barred
}

/** Keeps how an attempt came out. */
export function remember(run: Run, row: StepRow, outcome: 'pass' | 'fail' | 'canceled'): void {
  run.tx.run(
    `INSERT OR REPLACE INTO molecule_attempts (step, attempt, outcome, bead, assignee, failure, verdict, output, started_at, finished_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.id,
    row.attempt,
    outcome,
    row.bead,
    row.assignee,
    row.failure,
    row.verdict,
    row.output,
    row.began_at,
    run.now,
  )
}
