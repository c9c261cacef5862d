/** Work: the bead that somebody claims, does and closes (decisions 90, 93, 94). */

import { cut } from '../../../../contract/base/text.ts'
import { bounded } from '../base/bounds.ts'
import type { EngineBead } from '../base/ports.ts'
import { type Failure, parseFailure, type StepRow } from '../base/rows.ts'
import { ACTOR, type Run } from '../base/run.ts'
import { dueIn } from './due.ts'
import { Texts } from './scope.ts'

/** Leases of one attempt that may be lost: with the last of these it fails. */
const MAX_LOST = 3
const MAX_TOLD = 4_000
/** A reason that programs tell apart; anything else is a message for people. */
const WORD = /^[a-z][a-z0-9_]{0,63}$/

export function makeBead(run: Run, row: StepRow, texts: Texts): void {
  const step = run.step(row)
  const { molecule, deps } = run
  const assignee = assigneeOf(run, row, texts)
  const target = assignee === null ? targetOf(run, row) : null
  const description = step.description === undefined ? '' : texts.render(step.description)
  const bead = deps.beads.newId(run.tx, molecule.rig)
  deps.beads.create(
    run.tx,
    {
      issue_type: 'task',
      status: 'open',
      id: bead,
      title: row.title ?? step.id,
      description: bounded('description', described(run, row, description, bead)),
      rig: molecule.rig,
      priority: step.priority ?? aboutPriority(run),
      labels: step.tags.map((tag) => bounded('tag', texts.render(tag))).filter((tag) => tag.trim() !== ''),
      metadata: { ...metadataOf(texts, step.metadata), 'svc.step_id': row.path },
      assignee,
      routed_to: target,
      root: molecule.id,
      attempt: row.attempt,
    },
    ACTOR,
  )
  ownBead(run, row, bead)
  run.set(row, { bead, status: 'ready', assignee, target })
}

const metadataOf = (texts: Texts, metadata: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([key, text]) => [key, bounded('metadata', texts.render(text))]))

/** Who is named, by their one name; nobody where that comes to nothing. */
export function assigneeOf(run: Run, row: StepRow, texts: Texts): string | null {
  const { assignee } = run.step(row)
  const named = assignee === undefined ? '' : bounded('assignee', texts.render(assignee).trim())
  return named === '' ? null : run.deps.city.canonical(named)
}

/** From now on what happens to this bead is for that row. */
export function ownBead(run: Run, row: StepRow, bead: string): void {
  run.tx.run('INSERT OR REPLACE INTO molecule_beads (bead, step) VALUES (?, ?)', bead, row.id)
}

function aboutPriority({ molecule, deps }: Run): number | null {
  return molecule.bead === null ? null : (deps.beads.find(molecule.bead)?.priority ?? null)
}

/** Its own target, else the next one around it, else that of the molecule. */
function targetOf(run: Run, row: StepRow): string | null {
  const { molecule, deps } = run
  const said = saidTarget(run, row) ?? molecule.target
  if (said === '') {
    const message = `step ${row.path} has no target: it waits until somebody claims its bead`
    run.warn({ code: 'no_target', message, step: row.id })
    return null
  }
  const { target, known } = deps.city.resolveTarget(said, molecule.rig)
  const message = `nobody is called ${target}: step ${row.path} waits until somebody is`
  if (!known) run.warn({ code: 'unknown_target', message, step: row.id, target })
  return target
}

function saidTarget(run: Run, row: StepRow): string | undefined {
  for (let at = row; at.node >= 0; at = at.parent === null ? run.root : run.row(at.parent)) {
    const { target } = run.step(at)
    if (target === undefined) continue
    const rendered = bounded('target', new Texts(run, at).render(target).trim())
    if (rendered !== '') return rendered
  }
  return undefined
}

/** What is to be done, then how to report it, and what went wrong the last time. */
function described(run: Run, row: StepRow, description: string, bead: string): string {
  const { output } = run.step(row)
  const flags = output.map((key) => ` --result ${key}=…`).join('')
  const reported = output.length === 0 ? '' : ` A pass has to report: ${output.join(', ')}.`
  const report = [
    '---',
    `Step ${row.path} of ${run.molecule.id} (${run.molecule.title}).${reported}`,
    `Done: \`svcctl bead close ${bead}${flags}\``,
    `Failed: \`svcctl bead close ${bead} --outcome fail --reason "why"\``,
  ].join('\n')
  return [description.trimEnd(), report, toldAgain(run, row)].filter((part) => part !== '').join('\n\n')
}

/** Why it is done again: it failed, or the group around it did. */
function toldAgain(run: Run, row: StepRow): string {
  for (let at = row; at.node >= 0; at = at.parent === null ? run.root : run.row(at.parent)) {
    if (at.attempt < 2) continue
    const last = run.tx.get(
      'SELECT failure FROM molecule_attempts WHERE step = ? AND attempt = ?',
      at.id,
      at.attempt - 1,
    )
    const failure = last === undefined || last.failure === null ? undefined : parseFailure(String(last.failure))
    if (failure === undefined) continue
    const whose = at === row ? '' : ` of ${at.path}`
    return `This is attempt ${at.attempt}${whose}. The last one failed: ${cut(failure.message, MAX_TOLD)}`
  }
  return ''
}

/** Makes the row what its bead is by now: claimed, given back, closed. */
/** `wasGiven`: somebody gave it back since the last look, so that who has it now has just claimed it. */
export function syncBead(run: Run, row: StepRow, bead: EngineBead | undefined, wasGiven: boolean): void {
  if (row.phase !== 'work') return
  if (bead === undefined) {
    failWork(run, row, 'bead_gone', `its bead ${row.bead} is gone`)
    return
  }
  if (bead.status === 'closed') {
    closed(run, row, bead)
    return
  }
  if (bead.status === 'in_progress' && (!row.busy || wasGiven)) {
    claimed(run, row, bead)
    return
  }
  if (bead.status === 'open' && row.busy) {
    given(run, row, bead)
    return
  }
  if (bead.assignee !== row.assignee) run.set(row, { assignee: bead.assignee })
}

function claimed(run: Run, row: StepRow, { assignee }: EngineBead): void {
  run.begin('claimed')
  run.set(row, { status: 'active', busy: true, assignee, due_at: null })
  const { timeout } = run.step(row)
  if (timeout !== undefined) dueIn(run, row, timeout)
}

function given(run: Run, row: StepRow, { assignee }: EngineBead): void {
  run.noTimer(row, 'timeout')
  run.change({}, 'released')
  run.set(row, { status: 'ready', busy: false, assignee, due_at: null })
}

/** A worker was lost: with the third the attempt fails, before that the bead is simply open again. */
export function lostWorker(run: Run, row: StepRow): void {
  if (row.phase !== 'work') return
  run.set(row, { lost: row.lost + 1 })
  if (row.lost < MAX_LOST || row.bead === null) return
  const message = `${MAX_LOST} workers were lost at it`
  const failure = { failure_class: 'transient', failure_reason: 'worker_lost' } as const
  const closed = run.deps.beads.close(run.tx, row.bead, { outcome: 'fail', reason: message, ...failure }, ACTOR)
  if (closed !== undefined) failWork(run, row, 'worker_lost', message)
}

function failWork(run: Run, row: StepRow, reason: string, message: string): void {
  run.do({ do: 'body', row, failure: { step_id: row.path, class: 'transient', reason, message } })
}

function closed(run: Run, row: StepRow, bead: EngineBead): void {
  const { assignee, output_json: output, work_commit } = bead
  if (!run.molecule.begun) run.begin('claimed')
  run.set(row, { assignee: assignee ?? row.assignee, output, work_commit })
  run.do({ do: 'body', row, failure: failureOf(row, bead) })
}

/** Closed without a word is a pass. */
export function failureOf(row: StepRow, bead: EngineBead): Failure | undefined {
  const { outcome, failure_class, failure_reason, close_reason } = bead
  if (outcome === null || outcome === 'pass') return undefined
  const said = failure_reason ?? close_reason
  return {
    step_id: row.path,
    class: failure_class === 'hard' ? 'hard' : 'transient',
    reason:
      failure_reason !== null && WORD.test(failure_reason) ? failure_reason : outcome === 'fail' ? 'failed' : outcome,
    message: said ?? `it was closed as ${outcome}`,
  }
}
