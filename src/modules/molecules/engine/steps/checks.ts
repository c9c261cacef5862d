/** Checks: a command that judges what was done, or a question to a human (decisions 96, 97, 99). */
import type { PlanExec, Value } from '../../../../automation/plan.ts'
import { verdictOf } from '../../../../automation/verdict.ts'
import { cutStart } from '../../../../contract/base/text.ts'
import { isoTime } from '../../../../kernel/clock.ts'
import { present } from '../../../../kernel/present.ts'
import { boundedTitle } from '../base/bounds.ts'
import type { EngineBead, ExecEnd } from '../base/ports.ts'
import { type Failure, parseVerdict, type StepRow, type Verdict } from '../base/rows.ts'
import { ACTOR, jittered, type Run } from '../base/run.ts'
import { failureOfBegin } from './begin.ts'
import { dueIn } from './due.ts'
import { beadValue, outputOf, rendering, surroundingsOf, Texts, workPlaceOf } from './scope.ts'
import { tellGate } from './stop.ts'
import { payloadOf } from './telling.ts'
import { failureOf, ownBead } from './work.ts'

/** Runs that come to no verdict are repeated so often. */
const MAX_REPEATS = 5
const FIRST_REPEAT_MS = 2_000
const TOOK_TOO_LONG = 'the check took too long'
const MAX_OUTPUT = 64 * 1024
const MAX_TOLD = 2_000

export function beginCheck(run: Run, row: StepRow, check: PlanExec, texts = new Texts(run, row)): void {
  const { molecule, deps } = run
  const bead = row.bead === null ? undefined : deps.beads.find(row.bead)
  const { vars } = texts
  const { id: exec, isQueued } = deps.execs.begin(run.tx, {
    command: commandOf(check, vars),
    timeout_ms: check.timeout,
    env: texts.record(check.env),
    inherit_env: check.inherit_env,
    file_dir: check.file_dir,
    rig: molecule.rig,
    work_dir: bead === undefined ? undefined : workPlaceOf(run, bead)?.path,
    vars,
    molecule_id: molecule.id,
    step_id: row.path,
    bead_id: row.bead ?? undefined,
    attempt: row.attempt,
    context: contextOf(run, row, vars),
  })
  run.begin('check')
  const verdict: Verdict = { kind: 'exec', tries: row.unjudged + 1, ...(isQueued ? queued(run) : running(run)) }
  run.set(row, {
    exec,
    phase: 'check',
    status: 'active',
    reason: null,
    busy: true,
    next_attempt_at: null,
    verdict: JSON.stringify(verdict),
  })
  if (isQueued) run.noTimer(row, 'timeout')
  else goOnTiming(run, row, 0)
}

const queued = (run: Run) => ({ status: 'queued', queued_at: isoTime(run.now) }) as const
const running = (run: Run) => ({ status: 'running', started_at: isoTime(run.now) }) as const

/** A check that waited for a free slot has it: the time that it waited does not count. */
export function checkStarted(run: Run, row: StepRow): void {
  const verdict = parseVerdict(row.verdict)
  if (row.phase !== 'check' || verdict?.status !== 'queued') return
  run.set(row, { verdict: JSON.stringify({ ...verdict, ...running(run) } satisfies Verdict) })
  goOnTiming(run, row, run.now - Date.parse(verdict.queued_at ?? isoTime(run.now)))
}

/** Goes on with the time of the attempt, of which so much was spent waiting. */
function goOnTiming(run: Run, row: StepRow, waitedMs: number): void {
  const { timeout } = run.step(row)
  if (timeout === undefined) return
  const due = row.due_at === null ? run.now + timeout : row.due_at + Math.max(0, waitedMs)
  run.set(row, { due_at: null })
  dueIn(run, row, Math.max(0, due - run.now))
}

/** As the file says it, or the value of a command variable. */
export const commandOf = ({ exec, exec_var }: PlanExec, vars: Readonly<Record<string, Value>>): string =>
  exec_var === undefined ? exec : String(vars[exec_var] ?? '')

function contextOf(run: Run, row: StepRow, vars: Readonly<Record<string, Value>>): Record<string, Value> {
  const { deps, molecule } = run
  const { path, title, attempt, assignee, work_commit } = row
  return {
    ...surroundingsOf(run),
    vars,
    bead: beadValue(deps.beads, molecule.bead),
    step: { id: path, title, attempt, bead_id: row.bead, assignee, commit: work_commit, output: outputOf(run, row) },
    item: row.item === null ? null : JSON.parse(row.item),
  }
}

/** A run of the check has ended, with or without a verdict. */
export function checkEnded(run: Run, row: StepRow, end: ExecEnd): void {
  if (row.phase !== 'check') return
  const tries = row.unjudged + 1
  const output = cutStart(end.output, MAX_OUTPUT)
  const { queued_at, started_at } = parseVerdict(row.verdict) ?? {}
  const said = { kind: 'exec', tries, output, ...present({ queued_at, started_at }) } as const
  run.set(row, { exec: null, busy: false })
  const judged = verdictOf(end)
  const { exit_code } = end
  if (judged === 'none' || exit_code === undefined) {
    unjudged(run, row, said, whyNone(end))
    return
  }
  const passed = judged === 'pass'
  const status = passed ? 'passed' : 'failed'
  run.set(row, { verdict: JSON.stringify({ ...said, status, exit_code } satisfies Verdict), last_error: null })
  tellChecked(run, row, status, exit_code)
  const message = `the check exited with ${exit_code}${tailOf(output)}`
  run.do({ do: 'ended', row, failure: passed ? undefined : failed(row, 'check_failed', message) })
}

const failed = (row: StepRow, reason: string, message: string): Failure => ({
  step_id: row.path,
  class: 'transient',
  reason,
  message,
})

function tailOf(output: string): string {
  const text = output.trim()
  return text === '' ? '' : `: ${cutStart(text, MAX_TOLD)}`
}

function whyNone({ kind, exit_code, signal, error, output }: ExecEnd): string {
  const more = error === undefined ? tailOf(output) : `: ${error}`
  switch (kind) {
    case 'exited':
      return `the check exited with ${exit_code}, which is no verdict${more}`
    case 'signal':
      return `the check was ended by ${signal ?? 'a signal'}${more}`
    case 'timed_out':
      return `${TOOK_TOO_LONG}${more}`
    case 'interrupted':
      return `the check was cut off${more}`
    case 'not_started':
      return `the check did not start${more}`
  }
}

/** No attempt is burned: it is run again, after a while. */
function unjudged(run: Run, row: StepRow, said: Omit<Verdict, 'status'>, why: string): void {
  const count = row.unjudged + 1
  // One that hangs would hold its step for as many of its full times: it is given one more.
  const hangs = why.startsWith(TOOK_TOO_LONG) && row.last_error?.startsWith(TOOK_TOO_LONG) === true
  const over = hangs || count > MAX_REPEATS
  const verdict: Verdict = { ...said, status: over ? 'error' : 'waiting', error: why }
  run.set(row, { unjudged: count, last_error: why, verdict: JSON.stringify(verdict) })
  if (over) {
    tellChecked(run, row, 'error', undefined, why)
    const failure: Failure = hangs
      ? failed(row, 'check_timeout', why)
      : { step_id: row.path, class: 'hard', reason: 'check_error', message: why }
    run.do({ do: 'ended', row, failure })
    return
  }
  const at = Math.ceil(run.now + jittered(run, FIRST_REPEAT_MS * 2 ** (count - 1)))
  run.timer(row, 'check', at)
  run.change({}, 'check_error')
  run.set(row, { phase: 'unjudged', status: 'waiting', reason: 'check_error', next_attempt_at: at })
}

/** Runs it once more. */
export function checkAgain(run: Run, row: StepRow): void {
  const { check } = run.step(row)
  if (row.phase !== 'unjudged' || check?.kind !== 'exec') return
  try {
    rendering(run, () => beginCheck(run, row, check))
  } catch (error) {
    run.do({ do: 'ended', row, failure: failureOfBegin(row, error) })
  }
}

function tellChecked(run: Run, row: StepRow, status: string, exit_code: number | undefined, reason?: string): void {
  const payload = { ...payloadOf(run, row, { status, reason }), ...(exit_code === undefined ? {} : { exit_code }) }
  run.emit({ type: 'execution.check_completed', actor: ACTOR, subject: run.molecule.id, payload })
}

/** The gate behind the work: somebody looks at it. */
export function ask(run: Run, row: StepRow, question: string, texts: Texts): void {
  const { molecule, deps } = run
  const title = boundedTitle(texts.render(question), row.title ?? row.path)
  const asked = deps.beads.newId(run.tx, molecule.rig)
  deps.beads.create(
    run.tx,
    {
      issue_type: 'gate',
      status: 'open',
      id: asked,
      title,
      description: questioned(row, asked),
      rig: molecule.rig,
      priority: null,
      labels: [],
      metadata: { 'svc.step_id': row.path },
      assignee: HUMAN,
      routed_to: null,
      root: molecule.id,
      attempt: row.attempt,
    },
    ACTOR,
  )
  ownBead(run, row, asked)
  const { timeout } = run.step(row)
  if (timeout !== undefined && row.due_at === null) dueIn(run, row, timeout)
  run.begin('gate')
  const verdict: Verdict = { kind: 'manual', status: 'waiting', bead_id: asked }
  run.set(row, { asked, phase: 'ask', status: 'waiting', reason: 'question', verdict: JSON.stringify(verdict) })
  tellOpened(run, row, asked)
}

export const HUMAN = 'human'

const questioned = (row: StepRow, id: string): string =>
  [
    `About step ${row.path}${row.bead === null ? '' : `, done in ${row.bead}`}.`,
    `Yes: \`svcctl bead close ${id} --outcome pass\``,
    `No: \`svcctl bead close ${id} --outcome fail --failure-reason "why"\``,
  ].join('\n')

export function tellOpened(run: Run, row: StepRow, bead: string | null): void {
  run.emit({ type: 'gate.opened', actor: ACTOR, subject: run.molecule.id, payload: payloadOf(run, row, { bead }) })
}

/** Somebody answered the question. */
export function answered(run: Run, row: StepRow, bead: EngineBead | undefined): void {
  if (row.phase !== 'ask' || (bead !== undefined && bead.status !== 'closed')) return
  const failure = bead === undefined ? failed(row, 'bead_gone', 'the question is gone') : failureOf(row, bead)
  const before = parseVerdict(row.verdict)
  const status = failure === undefined ? 'passed' : 'failed'
  run.set(row, { verdict: JSON.stringify({ kind: 'manual', ...before, status }) })
  tellGate(run, row, row.asked, status === 'passed' ? 'completed' : 'failed', failure?.message ?? null)
  tellChecked(run, row, status, undefined, failure?.message)
  // An answer is about this attempt: the next one may do better.
  const transient = failure === undefined ? undefined : failed(row, 'rejected', failure.message)
  run.do({ do: 'ended', row, failure: transient })
}
