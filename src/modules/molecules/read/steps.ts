/** Steps as clients see them: what a row says, with what its formula says of it. */
import { hasMarks, renderText, sketchOf, TemplateFailure } from '../../../automation/language.ts'
import type { Value } from '../../../automation/plan.ts'
import type { MoleculeAttempt, MoleculeStep } from '../../../contract/automation/molecules.ts'
import type { StepKind } from '../../../contract/automation/words.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row, Tx } from '../../../kernel/database.ts'
import { present } from '../../../kernel/present.ts'
import type { CompiledPlan, PlanNode } from '../engine/base/plans.ts'
import { type MoleculeRow, parseFailure, parseVerdict, type StepRow } from '../engine/base/rows.ts'
import { HUMAN } from '../engine/steps/checks.ts'
import { MEMBER_BUSY } from '../engine/steps/stop.ts'

type Reader = Pick<Tx, 'get' | 'all'>

/** A molecule with what it runs by. */
export interface MoleculeAndPlan {
  readonly molecule: MoleculeRow
  readonly plan: CompiledPlan
  /** The bead that it is about, as templates see it: looked up where a title reads it. */
  readonly about?: () => Value
}

/** Who may claim what is ready. */
export interface Claimers {
  knows(target: string): boolean
  /** Why nobody of that name takes work now; undefined where they may. */
  idle(target: string): string | undefined
  /** A bead as templates see it; null where it is gone. */
  about(bead: string): Value
}

export function nodeOf({ plan }: MoleculeAndPlan, { node }: Pick<StepRow, 'node'>): PlanNode {
  const found = plan.nodes[node]
  if (found === undefined) throw new Error(`the plan ${plan.hash} has no step ${node}`)
  return found
}

/** What repeats is one row, and each of its items another of the kind of what is repeated. */
export const kindOf = ({ step }: PlanNode, item: number): StepKind =>
  step.repeat !== undefined && item === 0 ? step.repeat.kind : step.body.kind

export function wireStep(of: MoleculeAndPlan, row: StepRow, claimers: Claimers): MoleculeStep {
  const node = nodeOf(of, row)
  const { step } = node
  const failure = parseFailure(row.failure)
  const check = parseVerdict(row.verdict)
  return {
    id: row.path,
    kind: kindOf(node, row.item_index),
    title: row.title ?? titleOf(of, node),
    status: row.status,
    ...present({ reason: reasonOf(row, node, claimers) }),
    needs: [...needsOf(row, node)],
    ...present({ bead_id: row.bead ?? undefined }),
    ...present({ assignee: row.assignee ?? undefined }),
    ...present({ target: row.target ?? undefined }),
    attempt: row.attempt,
    max_attempts: step.repeat !== undefined && row.item_index === 0 ? 1 : (step.retry?.max_attempts ?? 1),
    ...(row.output === null ? {} : { output: JSON.parse(row.output) }),
    ...(failure === undefined ? {} : { failure: wireFailure(failure) }),
    ...(check === undefined ? {} : { check }),
    ...(row.item_index === 0 || row.item === null ? {} : { item: JSON.parse(row.item) }),
    // While its check waits for a slot its time stands still.
    ...present({ due_at: check?.status === 'queued' ? undefined : time(row.due_at) }),
    ...present({ next_attempt_at: time(row.next_attempt_at) }),
    ...present({ last_error: row.last_error ?? undefined }),
    superseded: row.superseded,
    ...present({ started_at: time(row.started_at) }),
    ...present({ finished_at: time(row.finished_at) }),
  }
}

const time = (ms: number | null): string | undefined => (ms === null ? undefined : isoTime(ms))

const wireFailure = ({ class: kind, reason, message }: NonNullable<ReturnType<typeof parseFailure>>) => ({
  class: kind,
  reason,
  message,
})

/** Of a step that has not begun: with what is known from the start, else its id. Nobody is shown a template. */
export function titleOf({ molecule, plan, about }: MoleculeAndPlan, node: PlanNode): string {
  const { step } = node
  if (step.title === undefined) return step.id
  if (!hasMarks(step.title)) return step.title
  // What repeats is called by the names of its items only, and a formula that is expanded knows its variables once it begins.
  const otherwise = step.repeat === undefined ? sketchOf(step.title) || step.id : step.id
  if (isScoped(node)) return otherwise
  try {
    const vars: Record<string, Value> = JSON.parse(molecule.vars)
    return renderText(step.title, { bead: about?.() ?? null, ...vars }, plan.plan.fragments)
  } catch (error) {
    if (error instanceof TemplateFailure) return otherwise
    throw error
  }
}

function isScoped({ parent }: PlanNode): boolean {
  for (let at = parent; at !== undefined; at = at.parent)
    if (at.step.body.kind === 'group' && at.step.body.scope !== undefined) return true
  return false
}

/** Paths of what comes before it; of an item: of other items. */
export function needsOf(
  { path, item_index: item, item_needs: others }: StepRow,
  { step }: PlanNode,
): readonly string[] {
  const list = path.slice(0, path.lastIndexOf('.') + 1)
  if (item === 0) return step.needs.map((id) => `${list}${id}`)
  const indices: readonly number[] = others === null ? [] : JSON.parse(others)
  return indices.map((index) => `${list}${index}`)
}

/** What it waits for, in words; of what is over the reason that is kept. */
function reasonOf(row: StepRow, node: PlanNode, claimers: Claimers): string | undefined {
  if (row.phase === 'settled') return row.reason ?? undefined
  if (row.phase === 'work' && row.status === 'ready') return readyReason(row, claimers)
  return waitReason(row, node) ?? row.reason ?? undefined
}

function readyReason({ assignee, target, bead }: StepRow, claimers: Claimers): string {
  const idle = assignee === null && target !== null ? claimers.idle(target) : undefined
  return `waits for ${assignee ?? target ?? 'somebody'} to claim ${bead}${idle === undefined ? '' : `: ${idle}`}`
}

function waitReason(row: StepRow, node: PlanNode): string | undefined {
  if (row.phase === 'pending') return pendingReason(row, node)
  if (row.phase === 'gate') return gateReason(row, node)
  if (row.phase === 'ask') return `waits for an answer about its work: ${row.asked}`
  if (row.phase === 'backoff') return `waits for its next attempt${because(parseFailure(row.failure)?.message)}`
  if (row.phase === 'unjudged') return `waits for its check to be run again${because(row.last_error ?? undefined)}`
  if (row.phase === 'check') return checkReason(row)
  return undefined
}

const checkReason = ({ verdict }: StepRow): string =>
  parseVerdict(verdict)?.status === 'queued' ? 'its check waits for a free slot' : 'its check runs'

/** Of a long story the beginning: all of it stands in `failure` and `last_error`. */
const MAX_BECAUSE = 200

const because = (why: string | undefined): string => {
  const [line = ''] = (why ?? '').trim().split('\n', 1)
  return line === '' ? '' : `: ${Array.from(line).slice(0, MAX_BECAUSE).join('')}`
}

function pendingReason(row: StepRow, node: PlanNode): string | undefined {
  if (row.queued && row.reason === MEMBER_BUSY) return `waits until another step is done with ${row.member}`
  if (row.queued) return 'is about to begin'
  if (row.unsettled > 0) return `waits for ${needsOf(row, node).join(', ')}`
  const around = row.path.slice(0, Math.max(0, row.path.lastIndexOf('.')))
  if (row.item_index > 0) return turnReason(row, node, around)
  // What is in a list begins with it.
  return around === '' ? undefined : `waits for ${around} to begin`
}

/** An item waits for those before it: for the last of a loop, for so many that go at once of others. */
function turnReason({ item_index: item }: StepRow, { step: { repeat } }: PlanNode, around: string): string | undefined {
  if (repeat === undefined) return undefined
  if (repeat.kind === 'loop') return `waits for ${around}.${item - 1}`
  return `waits for its turn: at most ${repeat.max_parallel} of ${around} at once`
}

/** A gate is a question and no work: it is on no hook. */
function gateReason({ bead, event, assignee }: StepRow, { step: { body } }: PlanNode): string | undefined {
  if (body.kind !== 'gate') return undefined
  if (body.gate.kind === 'human')
    return assignee === null || assignee === HUMAN
      ? `waits for an answer: ${bead}`
      : `waits for an answer of ${assignee}, whom nobody tells: ${bead}`
  return body.gate.kind === 'timer' ? 'waits for its time' : `waits for the event ${event ?? body.gate.event}`
}

/** Of what attempts reported, and what their checks printed. */
const ATTEMPTS_BYTES = 2 * 1024 * 1024
const ATTEMPTS = 'SELECT * FROM molecule_attempts WHERE step = ? ORDER BY attempt'

/** Oldest first, with the one that it is at. */
export function attemptsOf(reader: Reader, row: StepRow): readonly MoleculeAttempt[] {
  const rows = reader.all(ATTEMPTS, row.id)
  // The newest say most: of many large ones the older ones keep how they came out.
  let left = ATTEMPTS_BYTES
  const ended = rows
    .toReversed()
    .map((one) => {
      left -= String(one.output ?? '').length + String(one.verdict ?? '').length
      return endedAttempt(left >= 0 ? one : { ...one, output: null, verdict: null })
    })
    .toReversed()
  const isRecorded = ended.some(({ attempt }) => attempt === row.attempt)
  return row.attempt === 0 || isRecorded ? ended : [...ended, presentAttempt(row)]
}

function endedAttempt(row: Row): MoleculeAttempt {
  const text = (value: unknown) => (value === null ? null : String(value))
  const failure = parseFailure(text(row.failure))
  const check = parseVerdict(text(row.verdict))
  const passed = row.outcome === 'pass'
  return {
    attempt: Number(row.attempt),
    ...present({ bead_id: text(row.bead) ?? undefined }),
    ...present({ assignee: text(row.assignee) ?? undefined }),
    status: passed ? 'completed' : row.outcome === 'canceled' ? 'canceled' : 'failed',
    ...(row.output === null ? {} : { output: JSON.parse(String(row.output)) }),
    ...(failure === undefined || passed ? {} : { failure: wireFailure(failure) }),
    ...(check === undefined ? {} : { check }),
    ...present({ started_at: time(row.started_at === null ? null : Number(row.started_at)) }),
    ...present({ finished_at: time(Number(row.finished_at)) }),
  }
}

function presentAttempt(row: StepRow): MoleculeAttempt {
  const failure = parseFailure(row.failure)
  const check = parseVerdict(row.verdict)
  return {
    attempt: row.attempt,
    ...present({ bead_id: row.bead ?? undefined }),
    ...present({ assignee: row.assignee ?? undefined }),
    status: row.status,
    ...(row.output === null ? {} : { output: JSON.parse(row.output) }),
    ...(failure === undefined ? {} : { failure: wireFailure(failure) }),
    ...(check === undefined ? {} : { check }),
    ...present({ started_at: time(row.began_at) }),
    ...present({ finished_at: time(row.finished_at) }),
  }
}
