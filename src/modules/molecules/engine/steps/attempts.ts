/** Attempts: body, then check; again after a while where the step says so (decision 94). */
import type { PlanRetry, PlanScope } from '../../../../automation/plan.ts'
import { checkVars, readVarTexts } from '../../../../automation/vars.ts'
import { boundedTitle } from '../base/bounds.ts'
import type { PlanNode } from '../base/plans.ts'
import type { Failure, StepRow } from '../base/rows.ts'
import { ACTOR, isLeaf, jittered, type Run } from '../base/run.ts'
import { failureOfBegin } from './begin.ts'
import { ask, beginCheck, commandOf } from './checks.ts'
import { dueIn } from './due.ts'
import { openGate } from './gates.ts'
import { addList, MAX_ROWS, openList, remember, settle, tellCompleted } from './lists.ts'
import { rendering, TemplateFailure, Texts } from './scope.ts'
import { payloadOf } from './telling.ts'
import { makeBead } from './work.ts'

const LONGEST_BACKOFF_EXPONENT = 30
const NEW_ATTEMPT = {
  lost: 0,
  unjudged: 0,
  bead: null,
  asked: null,
  reason: null,
  output: null,
  failure: null,
  verdict: null,
  assignee: null,
  work_commit: null,
  last_error: null,
  due_at: null,
  next_attempt_at: null,
  finished_at: null,
} as const

export function startAttempt(run: Run, row: StepRow): void {
  if (row.phase !== 'pending' && row.phase !== 'backoff') return
  const node = run.node(row)
  const { body, title, timeout } = node.step
  run.set(row, {
    ...NEW_ATTEMPT,
    phase: body.kind,
    status: 'active',
    attempt: row.attempt + 1,
    started_at: row.started_at ?? run.now,
    began_at: run.now,
    since_seq: run.deps.log.head,
  })
  const texts = new Texts(run, row)
  try {
    rendering(run, () => {
      if (title !== undefined) run.set(row, { title: boundedTitle(texts.render(title), node.step.id) })
      if (body.kind === 'work') makeBead(run, row, texts)
      else if (body.kind === 'gate') openGate(run, row, body.gate, texts)
      else beginGroup(run, row, node, body.scope, texts)
    })
  } catch (error) {
    run.do({ do: 'ended', row, failure: failureOfBegin(row, error) })
    return
  }
  tellStarted(run, row)
  if (timeout !== undefined && body.kind !== 'work') dueIn(run, row, timeout)
}

function tellStarted(run: Run, row: StepRow): void {
  run.emit({ type: 'execution.step_started', actor: ACTOR, subject: run.molecule.id, payload: payloadOf(run, row) })
}

function beginGroup(run: Run, row: StepRow, node: PlanNode, scope: PlanScope | undefined, texts: Texts): void {
  if (scope !== undefined) run.set(row, { vars: JSON.stringify(varsOf(scope, texts)) })
  const before = run.children(row)
  // Of a first attempt they are there from the start of the molecule.
  const isNew = before.some(({ phase }) => phase !== 'pending')
  if (isNew) for (const child of before) supersede(run, child)
  if (isNew || before.length === 0) {
    if (run.molecule.rows + node.itemSize > MAX_ROWS) throw tooManyRows(run)
    addList(run, row, node.children)
  }
  run.set(row, { open: node.children.length, failures: 0, failure: null })
  openList(run, row)
}

const tooManyRows = (run: Run): TemplateFailure =>
  new TemplateFailure(`the molecule has ${run.molecule.rows} rows: at most ${MAX_ROWS}`)

function varsOf({ formula, vars, with: given }: PlanScope, texts: Texts) {
  const rendered = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, texts.value(value)]))
  const read = readVarTexts(vars, rendered)
  const checked = read.values === undefined ? read : checkVars(vars, read.values)
  if (checked.values !== undefined) return checked.values
  const said = checked.issues.map(({ name, message }) => `${name} ${message}`)
  throw new TemplateFailure(`variables of ${formula}: ${said.join('; ')}`)
}

/** A later attempt of the group around it takes its place: it stays, and counts no more. */
export function supersede(run: Run, row: StepRow): void {
  for (const child of isLeaf(run, row) ? [] : run.children(row)) supersede(run, child)
  run.set(row, { superseded: true })
}

/** The body is done, or failed; then comes the check. */
export function bodyEnded(run: Run, row: StepRow, failure: Failure | undefined): void {
  if (row.phase !== 'work' && row.phase !== 'gate' && row.phase !== 'group') return
  if (row.busy) run.set(row, { busy: false })
  const { check } = run.step(row)
  if (failure !== undefined || check === undefined) {
    attemptEnded(run, row, failure)
    return
  }
  const texts = new Texts(run, row)
  if (check.kind === 'exec' && commandOf(check, texts.vars).trim() === '') {
    attemptEnded(run, row, undefined)
    return
  }
  try {
    rendering(run, () => {
      if (check.kind === 'exec') beginCheck(run, row, check, texts)
      else ask(run, row, check.question, texts)
    })
  } catch (error) {
    attemptEnded(run, row, failureOfBegin(row, error))
  }
}

/** The attempt came out so: it is the last, or the next begins after a while. */
export function attemptEnded(run: Run, row: StepRow, failure: Failure | undefined): void {
  if (row.phase === 'settled' || row.phase === 'pending' || row.phase === 'backoff') return
  run.deps.timers.dropAll(run.tx, row.id)
  if (failure !== undefined) run.set(row, { failure: JSON.stringify(failure) })
  remember(run, row, failure === undefined ? 'pass' : 'fail')
  const { retry } = run.step(row)
  if (failure === undefined) settle(run, row, 'completed')
  else if (retry !== undefined && mayRetry(row, retry, failure)) backOff(run, row, retry, failure)
  else settle(run, row, 'failed', { failure })
}

const mayRetry = ({ attempt, attempts_before }: StepRow, { max_attempts }: PlanRetry, failure: Failure): boolean =>
  failure.class !== 'hard' && attempt - attempts_before < max_attempts

function backOff(run: Run, row: StepRow, { backoff, max_backoff }: PlanRetry, failure: Failure): void {
  run.set(row, { status: 'failed', reason: failure.reason, finished_at: run.now })
  tellCompleted(run, row)
  const again = Math.min(row.attempt - row.attempts_before - 1, LONGEST_BACKOFF_EXPONENT)
  const at = Math.ceil(run.now + jittered(run, Math.min(backoff * 2 ** again, max_backoff)))
  run.timer(row, 'retry', at)
  run.set(row, {
    phase: 'backoff',
    status: 'waiting',
    busy: false,
    due_at: null,
    next_attempt_at: at,
    finished_at: null,
  })
}
