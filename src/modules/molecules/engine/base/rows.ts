/** Rows of molecules and of their steps, as the engine has them in its hands. */
import type { Value } from '../../../../automation/plan.ts'
import {
  MOLECULE_STATUSES,
  MOLECULE_STEP_STATUSES,
  type MoleculeStatus,
  type MoleculeStepStatus,
} from '../../../../contract/automation/words.ts'
import type { Database, Row, SqlValue } from '../../../../kernel/database.ts'
import { ROWS_PER_MOLECULE } from './schema.ts'

export interface Failure {
  /** Path of the step that failed first. */
  readonly step_id: string
  readonly class: 'transient' | 'hard'
  readonly reason: string
  readonly message: string
}

/** What was odd when a step began to wait for somebody; it stands while it waits for them. */
export interface StepWarning {
  readonly code: string
  readonly message: string
  /** Row of the step; not kept by what ran before it was. */
  readonly step?: number
  /** Who was not known; absent where nobody is meant. */
  readonly target?: string
}

/** How far a check has come. */
export interface Verdict {
  readonly kind: 'exec' | 'manual'
  readonly status: 'queued' | 'running' | 'waiting' | 'passed' | 'failed' | 'error'
  readonly exit_code?: number
  readonly output?: string
  readonly error?: string
  readonly bead_id?: string
  readonly tries?: number
  /** Since when the command has waited for a free slot, if it had to. */
  readonly queued_at?: string
  /** When the command began to run. */
  readonly started_at?: string
}

/**
 * Where a row is: `pending` until its turn, then one after the other of what it has (decision 80), at last `settled`.
 * `gate`: its gate waits. `ask`: the question after the work. `unjudged`: the check is to be run again.
 */
export type Phase =
  | 'pending'
  | 'work'
  | 'gate'
  | 'group'
  | 'repeat'
  | 'check'
  | 'unjudged'
  | 'ask'
  | 'backoff'
  | 'settled'

export interface StepRow {
  readonly id: number
  readonly parent: number | null
  readonly node: number
  readonly item_index: number
  readonly path: string
  phase: Phase
  status: MoleculeStepStatus
  reason: string | null
  superseded: boolean
  queued: boolean
  unsettled: number
  blocked: number
  open: number
  failures: number
  running: number
  attempt: number
  attempts_before: number
  lost: number
  unjudged: number
  busy: boolean
  bead: string | null
  exec: string | null
  asked: string | null
  event: string | null
  event_match: string | null
  title: string | null
  item: string | null
  item_needs: string | null
  member: string | null
  vars: string | null
  output: string | null
  failure: string | null
  verdict: string | null
  assignee: string | null
  target: string | null
  work_commit: string | null
  last_error: string | null
  due_at: number | null
  next_attempt_at: number | null
  started_at: number | null
  /** This attempt. */
  began_at: number | null
  finished_at: number | null
  since_seq: number | null
}

export type StepChange = Partial<Omit<StepRow, 'id' | 'parent' | 'node' | 'item_index' | 'path'>>

export interface MoleculeRow {
  readonly n: number
  readonly id: string
  readonly formula: string
  readonly formula_hash: string
  readonly plan: string
  readonly title: string
  readonly status: MoleculeStatus
  readonly rig: string
  readonly target: string
  readonly bead: string | null
  readonly order_name: string | null
  readonly order_run_id: string | null
  readonly vars: string
  readonly failure: string | null
  readonly warnings: string | null
  readonly actor: string
  readonly keep_ms: number | null
  readonly created_at: number
  readonly updated_at: number
  readonly closed_at: number | null
  readonly expires_at: number | null
  readonly revision: number
  readonly since_seq: number
  readonly begun: boolean
  readonly busy: number
  readonly rows: number
  readonly total: number
  readonly active: number
  readonly waiting: number
  readonly completed: number
  readonly failed: number
  readonly skipped: number
  readonly canceled: number
  /** Processor time that its texts have used. */
  readonly texts_ms: number
}

const text = (value: unknown): string | null => (value === null ? null : String(value))
const number = (value: unknown): number | null => (value === null ? null : Number(value))

/** As they are stored; each in the table of its kind. */
const PHASES: ReadonlySet<string> = new Set<Phase>([
  'pending',
  'work',
  'gate',
  'group',
  'repeat',
  'check',
  'unjudged',
  'ask',
  'backoff',
  'settled',
])
const isPhase = (value: unknown): value is Phase => typeof value === 'string' && PHASES.has(value)
const STEP_STATUSES: ReadonlySet<string> = new Set(MOLECULE_STEP_STATUSES)
const isStepStatus = (value: unknown): value is MoleculeStepStatus =>
  typeof value === 'string' && STEP_STATUSES.has(value)
const STATUSES: ReadonlySet<string> = new Set(MOLECULE_STATUSES)
const isStatus = (value: unknown): value is MoleculeStatus => typeof value === 'string' && STATUSES.has(value)

function known<T>(value: unknown, is: (value: unknown) => value is T): T {
  if (!is(value)) throw new Error(`a row of a molecule says ${String(value)}`)
  return value
}

export function parseStep(row: Row): StepRow {
  return {
    id: Number(row.id),
    parent: number(row.parent),
    node: Number(row.node),
    item_index: Number(row.item_index),
    path: String(row.path),
    phase: known(row.phase, isPhase),
    status: known(row.status, isStepStatus),
    reason: text(row.reason),
    superseded: row.superseded === 1,
    queued: row.queued === 1,
    unsettled: Number(row.unsettled),
    blocked: Number(row.blocked),
    open: Number(row.open),
    failures: Number(row.failures),
    running: Number(row.running),
    attempt: Number(row.attempt),
    attempts_before: Number(row.attempts_before),
    lost: Number(row.lost),
    unjudged: Number(row.unjudged),
    busy: row.busy === 1,
    bead: text(row.bead),
    exec: text(row.exec),
    asked: text(row.asked),
    event: text(row.event),
    event_match: text(row.event_match),
    title: text(row.title),
    item: text(row.item),
    item_needs: text(row.item_needs),
    member: text(row.member),
    vars: text(row.vars),
    output: text(row.output),
    failure: text(row.failure),
    verdict: text(row.verdict),
    assignee: text(row.assignee),
    target: text(row.target),
    work_commit: text(row.work_commit),
    last_error: text(row.last_error),
    due_at: number(row.due_at),
    next_attempt_at: number(row.next_attempt_at),
    started_at: number(row.started_at),
    began_at: number(row.began_at),
    finished_at: number(row.finished_at),
    since_seq: number(row.since_seq),
  }
}

export function parseMolecule(row: Row): MoleculeRow {
  return {
    n: Number(row.n),
    id: String(row.id),
    formula: String(row.formula),
    formula_hash: String(row.formula_hash),
    plan: String(row.plan),
    title: String(row.title),
    status: known(row.status, isStatus),
    rig: String(row.rig),
    target: String(row.target),
    bead: text(row.bead),
    order_name: text(row.order_name),
    order_run_id: text(row.order_run_id),
    vars: String(row.vars),
    failure: text(row.failure),
    warnings: text(row.warnings),
    actor: String(row.actor),
    keep_ms: number(row.keep_ms),
    created_at: Number(row.created_at),
    updated_at: Number(row.updated_at),
    closed_at: number(row.closed_at),
    expires_at: number(row.expires_at),
    revision: Number(row.revision),
    since_seq: Number(row.since_seq),
    begun: row.begun === 1,
    busy: Number(row.busy),
    rows: Number(row.rows),
    total: Number(row.total),
    active: Number(row.active),
    waiting: Number(row.waiting),
    completed: Number(row.completed),
    failed: Number(row.failed),
    skipped: Number(row.skipped),
    canceled: Number(row.canceled),
    texts_ms: Number(row.texts_ms),
  }
}

export const sqlOf = (value: string | number | boolean | null): SqlValue =>
  typeof value === 'boolean' ? Number(value) : value

export const moleculeOf = (step: number): number => Math.floor(step / ROWS_PER_MOLECULE)
export const rootOf = (molecule: number): number => molecule * ROWS_PER_MOLECULE

/** JSON that the engine itself has written. */
export function parseFailure(json: string | null): Failure | undefined {
  return json === null ? undefined : JSON.parse(json)
}
export function parseVerdict(json: string | null): Verdict | undefined {
  return json === null ? undefined : JSON.parse(json)
}
export function parseWarnings(json: string | null): readonly StepWarning[] {
  return json === null ? [] : JSON.parse(json)
}
export function parseValue(json: string): Value {
  return JSON.parse(json)
}

export const isLive = (status: MoleculeStatus): boolean =>
  status === 'pending' || status === 'active' || status === 'waiting'

/** How many molecules of a rig have not ended. */
export const liveMoleculesOfRig = (reader: Pick<Database, 'get'>, rig: string): number =>
  Number(reader.get('SELECT count(*) AS live FROM molecules WHERE rig = ? AND closed_at IS NULL', rig)?.live)
