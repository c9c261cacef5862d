/** `for_each` and `loop` (decision 100): the list is fixed when the step begins; items come and go as it says. */
import type { PlanRepeat, Value } from '../../../../automation/plan.ts'
import type { PlanNode } from '../base/plans.ts'
import { moleculeOf, parseFailure, type StepRow } from '../base/rows.ts'
import { ACTOR, type Run } from '../base/run.ts'
import { addItems, MAX_ROWS, type NewItem, settle, skip } from './lists.ts'
import { Texts } from './scope.ts'
import { MEMBER_BUSY, releaseMember } from './stop.ts'

const MAX_ITEMS = 1_000

/** Why a list is none: the step fails, for good. */
class ListFailure extends Error {
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

export function beginRepeat(run: Run, row: StepRow, repeat: PlanRepeat): void {
  const node = run.node(row)
  try {
    const items = itemsOf(run, new Texts(run, row), repeat)
    refuseTooMany(run, node, items.length)
    run.set(row, { attempt: 1, started_at: row.started_at ?? run.now })
    if (items.length === 0) {
      settle(run, row, 'completed', { reason: 'no items' })
      return
    }
    const leaves = node.step.body.kind === 'group' ? 0 : items.length
    run.set(row, { phase: 'repeat', status: 'active', open: items.length, failures: 0, running: 0, failure: null })
    addItems(run, row, items, leaves)
    beginItems(run, row)
  } catch (error) {
    if (!(error instanceof ListFailure)) throw error
    const { reason, message } = error
    settle(run, row, 'failed', { failure: { step_id: row.path, class: 'hard', reason, message } })
  }
}

function refuseTooMany(run: Run, { itemSize }: PlanNode, items: number): void {
  if (items > MAX_ITEMS) throw new ListFailure('too_many_items', `the list has ${items} items: at most ${MAX_ITEMS}`)
  const rows = run.molecule.rows + items * itemSize
  if (rows > MAX_ROWS)
    throw new ListFailure('too_many_rows', `the molecule would have ${rows} rows: at most ${MAX_ROWS}`)
}

function itemsOf(run: Run, texts: Texts, repeat: PlanRepeat): readonly NewItem[] {
  if (repeat.kind === 'loop') return numbersOf(texts.evaluate(repeat.from), texts.evaluate(repeat.to)).map(itemOf)
  const list = texts.evaluate(repeat.in)
  if (!Array.isArray(list)) throw new ListFailure('not_a_list', `\`${repeat.in}\` is no list`)
  if (list.length > MAX_ITEMS)
    throw new ListFailure('too_many_items', `the list has ${list.length} items: at most ${MAX_ITEMS}`)
  return repeat.exclusive ? membersOf(run, list) : list.map(itemOf)
}

const itemOf = (value: Value): NewItem => ({ item: JSON.stringify(value), needs: [], member: null })

function numbersOf(from: Value, to: Value): readonly number[] {
  const [first, last] = [numberOf(from), numberOf(to)]
  const count = Math.max(last - first + 1, 0)
  if (count > MAX_ITEMS)
    throw new ListFailure('too_many_items', `it would go round ${count} times: at most ${MAX_ITEMS}`)
  return Array.from({ length: count }, (_, at) => first + at)
}

function numberOf(value: Value): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw new ListFailure('not_a_number', `\`${JSON.stringify(value)}\` is no whole number`)
}

/** Open members, each waiting for those among them that it waits for anyway. */
function membersOf(run: Run, list: readonly Value[]): readonly NewItem[] {
  const { beads } = run.deps
  const open = list
    .map((item) => ({ item, id: idOf(item) }))
    .filter(({ id }) => {
      const bead = beads.find(id)
      if (bead === undefined) throw new ListFailure('not_a_bead', `there is no bead ${id}`)
      return bead.status !== 'closed'
    })
  const places = new Map(open.map(({ id }, at) => [id, at + 1]))
  if (places.size < open.length) throw new ListFailure('not_a_bead', 'a bead is in the list twice')
  const edges = beads.edgesAmong([...places.keys()])
  return open.map(({ item, id }) => ({
    item: JSON.stringify(item),
    needs: edges.flatMap(([waits, on]) => (waits === id ? (places.get(on) ?? []) : [])),
    member: id,
  }))
}

function idOf(item: Value): string {
  if (typeof item === 'string') return item
  if (typeof item === 'object' && item !== null && 'id' in item && typeof item.id === 'string') return item.id
  throw new ListFailure('not_a_bead', `\`${JSON.stringify(item)}\` is no bead`)
}

/** As many as may run at once. */
export function beginItems(run: Run, repeat: StepRow): void {
  const { repeat: said } = run.step(repeat)
  const most = said?.kind === 'for_each' ? said.max_parallel : 1
  const free = most - repeat.running
  if (free <= 0) return
  const items = run.rows(
    `SELECT * FROM molecule_steps WHERE parent = ? AND node = ? AND phase = 'pending' AND unsettled <= 0 AND queued = 0
      AND superseded = 0 ORDER BY id LIMIT ?`,
    repeat.id,
    repeat.node,
    free,
  )
  if (items.length === 0) return
  run.set(repeat, { running: repeat.running + items.length })
  for (const row of items) {
    // Counted as running from now on, also where this write has no time for it.
    run.set(row, { queued: true })
    run.do({ do: 'begin', row })
  }
}

/** An item is settled; what it means for those that come behind it. */
export function itemSettled(run: Run, repeat: StepRow, item: StepRow): void {
  if (item.member !== null) memberDone(run, item, item.member)
  // Those that are left out never ran.
  if (item.status !== 'skipped') run.set(repeat, { running: repeat.running - 1 })
  if (repeat.phase !== 'repeat') return
  const { repeat: said } = run.step(repeat)
  const stops = said?.kind === 'loop' || said?.stop_on_fail === true
  if (stops && repeat.failures > 0) {
    leaveRest(run, repeat)
    return
  }
  beginItems(run, repeat)
}

function leaveRest(run: Run, repeat: StepRow): void {
  const rest = run.rows(
    `SELECT * FROM molecule_steps WHERE parent = ? AND phase = 'pending' AND superseded = 0 ORDER BY id`,
    repeat.id,
  )
  for (const item of rest) skip(run, item, 'previous_failed')
}

/** Takes the member of an item for it alone; why not, where somebody else has it. */
export function driveMember(run: Run, item: StepRow): string | undefined {
  const { member } = item
  if (member === null) return undefined
  const driver = run.tx.get('SELECT step FROM molecule_drives WHERE bead = ?', member)
  const holder = driver === undefined ? item.id : Number(driver.step)
  if (holder !== item.id) {
    if (moleculeOf(holder) !== run.molecule.n) return `another molecule works on ${member}`
    // What it is itself a part of has the member for it.
    return isWithin(run, item, holder) ? undefined : MEMBER_BUSY
  }
  const bead = run.deps.beads.find(member)
  if (bead === undefined) return `there is no bead ${member} any more`
  run.tx.run('INSERT OR REPLACE INTO molecule_drives (bead, step) VALUES (?, ?)', member, item.id)
  if (bead.status !== 'closed') run.deps.beads.block(run.tx, member, run.molecule.id, ACTOR)
  return undefined
}

function isWithin(run: Run, row: StepRow, holder: number): boolean {
  for (let at = row; at.parent !== null; at = run.row(at.parent)) if (at.parent === holder) return true
  return false
}

function memberDone(run: Run, item: StepRow, member: string): void {
  const { beads } = run.deps
  releaseMember(run, item)
  if (item.status === 'completed') {
    beads.close(run.tx, member, { outcome: 'pass', reason: `${run.molecule.id} is done with it` }, ACTOR)
    return
  }
  const bead = item.status === 'failed' ? beads.find(member) : undefined
  if (bead !== undefined && bead.status !== 'closed') {
    const why = parseFailure(item.failure)?.message ?? 'it failed'
    beads.comment(run.tx, member, `${run.molecule.id}, step ${item.path}: ${why}`)
  }
}
