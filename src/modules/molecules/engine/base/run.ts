/**
 * One molecule in one write: what is to be done next, the rows in hand, and what all of it comes to.
 *
 * R1  Nothing calls itself by way of others: what follows from something is put on the agenda, however long the chain is.
 * R2  Rows are read once and changed by `set` alone, so that what is in hand is what is stored, and the counts follow.
 * R3  `finish` writes the molecule once, and says so once where its status is another one.
 */
import type { PlanStep } from '../../../../automation/plan.ts'
import type { MoleculeStatus, MoleculeStepStatus } from '../../../../contract/automation/words.ts'
import type { Clock } from '../../../../kernel/clock.ts'
import type { Database, Tx } from '../../../../kernel/database.ts'
import type { EventDraft, EventLog } from '../../../../kernel/event-log.ts'
import type { Awaited } from './awaited.ts'
import type { Doomed } from './faults.ts'
import type { CompiledPlan, PlanNode, Plans } from './plans.ts'
import type { EngineBeads, EngineExecs, EngineSurroundings } from './ports.ts'
import {
  type Failure,
  isLive,
  type MoleculeRow,
  parseMolecule,
  parseStep,
  parseWarnings,
  rootOf,
  type StepChange,
  type StepRow,
  type StepWarning,
  sqlOf,
} from './rows.ts'
import { SLICE_MS, spentIn } from './slice.ts'
import type { TimerKind, Timers } from './timers.ts'

export interface EngineDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write' | 'countDue'>
  readonly log: Pick<EventLog, 'append' | 'scan' | 'head' | 'pin'>
  readonly clock: Clock
  readonly random: () => number
  readonly beads: EngineBeads
  readonly execs: EngineExecs
  readonly city: EngineSurroundings
  readonly plans: Plans
  readonly timers: Timers
  readonly awaited: Awaited
  /** Rows that an earlier try of this very change threw at. */
  readonly doomed?: Doomed
}

/** What is to be done, for a row that may be elsewhere by then. */
export type Task =
  | { readonly do: 'begin' | 'attempt' | 'settled'; readonly row: StepRow }
  | { readonly do: 'body' | 'ended'; readonly row: StepRow; readonly failure: Failure | undefined }

/** What the molecule itself becomes. */
type Counted = 'total' | 'active' | 'waiting' | 'completed' | 'failed' | 'skipped' | 'canceled'
const isCounted = (status: MoleculeStepStatus): status is Exclude<Counted, 'total'> =>
  status !== 'pending' && status !== 'ready'

type MoleculeChange = Partial<
  Pick<MoleculeRow, 'status' | 'failure' | 'warnings' | 'closed_at' | 'expires_at' | 'begun' | 'rows'>
>

const STEP = 'SELECT * FROM molecule_steps WHERE id = ?'
const MOLECULE = 'SELECT * FROM molecules WHERE n = ?'

export class Run {
  readonly tx: Tx
  readonly deps: EngineDeps
  readonly plan: CompiledPlan
  readonly now: number
  readonly #agenda: Task[] = []
  readonly #rows = new Map<number, StepRow>()
  readonly #counts: Record<Counted, number> = {
    total: 0,
    active: 0,
    waiting: 0,
    completed: 0,
    failed: 0,
    skipped: 0,
    canceled: 0,
  }
  #before: MoleculeRow
  #change: MoleculeChange = {}
  #busy = 0
  #textsMs = 0
  #touched = false
  #reason: string | undefined
  /** Steps that were begun in this write. */
  begun = 0

  constructor(tx: Tx, deps: EngineDeps, molecule: MoleculeRow) {
    this.tx = tx
    this.deps = deps
    this.plan = deps.plans.get(molecule.plan)
    this.now = deps.clock.now()
    spentIn(tx, deps.clock.monotonic())
    this.#before = molecule
  }

  /** Processor time that the texts of the molecule have used so far. */
  get textsMs(): number {
    return this.#before.texts_ms + this.#textsMs
  }

  spentOnTexts(ms: number): void {
    this.#textsMs += ms
  }

  /** True: this write has taken its time, and the rest is for the next one. */
  get isLate(): boolean {
    return spentIn(this.tx, this.deps.clock.monotonic()) > SLICE_MS
  }

  /** The molecule of this number, in this write; undefined where it is gone. */
  static of(tx: Tx, deps: EngineDeps, n: number): Run | undefined {
    const row = tx.get(MOLECULE, n)
    return row === undefined ? undefined : new Run(tx, deps, parseMolecule(row))
  }

  /** As it was at the beginning of the write, with what it has become since. */
  get molecule(): MoleculeRow {
    return Object.keys(this.#change).length === 0 ? this.#before : { ...this.#before, ...this.#change }
  }

  get root(): StepRow {
    return this.row(rootOf(this.#before.n))
  }

  row(id: number): StepRow {
    const row = this.findRow(id)
    if (row === undefined) throw new Error(`there is no step ${id}`)
    return row
  }

  findRow(id: number): StepRow | undefined {
    const known = this.#rows.get(id)
    if (known !== undefined) return known
    const row = this.tx.get(STEP, id)
    return row === undefined ? undefined : this.#hold(parseStep(row))
  }

  /** The rows that a query finds, `SELECT *` of steps. */
  rows(sql: string, ...values: readonly (string | number)[]): readonly StepRow[] {
    return this.tx.all(sql, ...values).map((row) => this.#rows.get(Number(row.id)) ?? this.#hold(parseStep(row)))
  }

  /** What is in a list now, in its order. */
  children(row: StepRow): readonly StepRow[] {
    return this.rows('SELECT * FROM molecule_steps WHERE parent = ? AND superseded = 0 ORDER BY id', row.id)
  }

  /** The row of a step in a list; undefined where it has none. */
  child(list: number, node: PlanNode): StepRow | undefined {
    const [row] = this.rows(
      'SELECT * FROM molecule_steps WHERE parent = ? AND node = ? AND superseded = 0',
      list,
      node.index,
    )
    return row
  }

  /** The step of the plan that a row is of. */
  node(row: StepRow): PlanNode {
    const node = this.plan.nodes[row.node]
    if (node === undefined) throw new Error(`the plan ${this.plan.hash} has no step ${row.node}`)
    return node
  }

  step(row: StepRow): PlanStep {
    return this.node(row).step
  }

  set(row: StepRow, change: StepChange): void {
    const names = Object.keys(change)
    if (names.length === 0) return
    if (change.status !== undefined || change.superseded !== undefined) this.#recount(row, change)
    if (change.busy !== undefined && change.busy !== row.busy) this.#busy += change.busy ? 1 : -1
    Object.assign(row, change)
    this.tx.run(updateOf(names), ...Object.values(change).map(sqlOf), row.id)
    this.#touched = true
  }

  /** Rows that are new: they count from now on. */
  added(rows: number, leaves: number): void {
    this.change({ rows: this.molecule.rows + rows })
    this.#counts.total += leaves
  }

  /** It has been worked on, or something waits for somebody. */
  begin(reason: string): void {
    if (!this.molecule.begun) this.change({ begun: true })
    this.#reason = reason
  }

  change(change: MoleculeChange, reason?: string): void {
    this.#change = { ...this.#change, ...change }
    this.#touched = true
    if (reason !== undefined) this.#reason = reason
  }

  warn(warning: StepWarning): void {
    const others = parseWarnings(this.molecule.warnings).filter(({ message }) => message !== warning.message)
    this.change({ warnings: JSON.stringify([...others, warning].slice(-MAX_WARNINGS)) })
  }

  do(task: Task): void {
    // An attempt comes right behind its turn, so that the time of the write is known before the turn of the next one.
    if (task.do === 'attempt') this.#agenda.unshift(task)
    else this.#agenda.push(task)
  }

  next(): Task | undefined {
    return this.#agenda.shift()
  }

  emit(draft: EventDraft): void {
    this.deps.log.append(this.tx, draft)
  }

  timer(row: StepRow, kind: TimerKind, dueAt: number, data: string | null = null): void {
    this.deps.timers.set(this.tx, row.id, kind, dueAt, data)
  }

  noTimer(row: StepRow, kind: TimerKind): void {
    this.deps.timers.drop(this.tx, row.id, kind)
  }

  /** Writes what the molecule has become (R3). */
  finish(): MoleculeRow {
    if (!this.#touched) return this.#before
    const before = this.#before
    const changed = { ...before, ...this.#change }
    const busy = before.busy + this.#busy
    const status = isLive(changed.status) ? liveStatus(changed.begun, busy) : changed.status
    const counts = Object.fromEntries(COUNTED.map((name) => [name, before[name] + this.#counts[name]]))
    const texts_ms = Math.round(this.textsMs)
    const after = { ...changed, ...counts, busy, status, texts_ms, updated_at: this.now, revision: before.revision + 1 }
    this.tx.run(
      UPDATE,
      ...[status, after.failure, after.warnings, after.closed_at, after.expires_at, Number(after.begun), after.rows],
      ...[busy, ...COUNTED.map((name) => after[name]), after.texts_ms, after.updated_at, after.revision, after.n],
    )
    if (status !== before.status) this.#tellStatus(before.status, status)
    this.#before = after
    this.#change = {}
    this.#busy = 0
    this.#textsMs = 0
    this.#touched = false
    for (const name of COUNTED) this.#counts[name] = 0
    return after
  }

  #tellStatus(from: MoleculeStatus, to: MoleculeStatus): void {
    const { id } = this.#before
    const reason = this.#reason === undefined ? {} : { reason: this.#reason }
    this.emit({ type: 'molecule.status', actor: ACTOR, subject: id, payload: { molecule_id: id, from, to, ...reason } })
  }

  #hold(row: StepRow): StepRow {
    this.#rows.set(row.id, row)
    return row
  }

  #recount(row: StepRow, change: StepChange): void {
    if (row.superseded || !isLeaf(this, row)) return
    const status = change.status ?? row.status
    if (isCounted(row.status)) this.#counts[row.status]--
    if (change.superseded === true) this.#counts.total--
    else if (isCounted(status)) this.#counts[status]++
  }
}

const COUNTED = ['total', 'active', 'waiting', 'completed', 'failed', 'skipped', 'canceled'] as const
const UPDATE = `UPDATE molecules SET status = ?, failure = ?, warnings = ?, closed_at = ?, expires_at = ?, begun = ?, rows = ?,
  busy = ?, ${COUNTED.map((name) => `${name} = ?`).join(', ')}, texts_ms = ?, updated_at = ?, revision = ? WHERE n = ?`
/** The latest: each is looked at again whenever the molecule is read. */
const MAX_WARNINGS = 20

/** Statements by what they set: the engine knows a few dozen such sets, and a statement is found by its text. */
const UPDATES = new Map<string, string>()

function updateOf(names: readonly string[]): string {
  const key = names.join()
  const known = UPDATES.get(key)
  if (known !== undefined) return known
  const sql = `UPDATE molecule_steps SET ${names.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`
  UPDATES.set(key, sql)
  return sql
}

/** Who does what the engine does by itself. */
export const ACTOR = 'supervisor'

/** A delay is that much longer or shorter, so that what failed together is not tried again together. */
const JITTER = 0.2
export const jittered = ({ deps }: Pick<Run, 'deps'>, ms: number): number =>
  ms * (1 - JITTER + 2 * JITTER * deps.random())

const liveStatus = (begun: boolean, busy: number): MoleculeStatus =>
  begun ? (busy > 0 ? 'active' : 'waiting') : 'pending'

/** Work and gates count; what only contains others does not. */
export function isLeaf(run: Run, row: StepRow): boolean {
  if (row.node < 0) return false
  const { body, repeat } = run.step(row)
  return body.kind !== 'group' && (repeat === undefined || row.item_index > 0)
}

/** What a new row of this step counts: 1 for work and gates. */
export const leavesOf = (node: PlanNode): number => (node.step.repeat !== undefined ? 0 : leavesOfItem(node))
const leavesOfItem = (node: PlanNode): number =>
  node.step.body.kind === 'group' ? node.children.reduce((sum, child) => sum + leavesOf(child), 0) : 1
