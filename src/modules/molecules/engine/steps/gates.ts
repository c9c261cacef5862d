/** Gates: a human, a time, an event (decision 96). */
import type { PlanGate } from '../../../../automation/plan.ts'
import { parseDurationMs } from '../../../../contract/base/durations.ts'
import { envelopeTest, type PayloadMatch } from '../../../../contract/base/payload-match.ts'
import { cut } from '../../../../contract/base/text.ts'
import { parseTime } from '../../../../kernel/clock.ts'
import type { StoredEvent } from '../../../../kernel/event-log.ts'
import { bounded } from '../base/bounds.ts'
import type { EngineBead } from '../base/ports.ts'
import type { StepRow } from '../base/rows.ts'
import { ACTOR, type Run } from '../base/run.ts'
import { CALENDAR } from '../base/timers.ts'
import { HUMAN, tellOpened } from './checks.ts'
import { TemplateFailure, type Texts } from './scope.ts'
import { tellGate } from './stop.ts'
import { assigneeOf, failureOf, ownBead } from './work.ts'

export function openGate(run: Run, row: StepRow, gate: PlanGate, texts: Texts): void {
  if (gate.kind === 'human') openHuman(run, row, texts)
  else if (gate.kind === 'timer') openTimer(run, row, texts.render(gate.timer).trim())
  else openEvent(run, row, gate.event, texts.record(gate.match))
  run.begin('gate')
  tellOpened(run, row, row.bead)
}

function openHuman(run: Run, row: StepRow, texts: Texts): void {
  const step = run.step(row)
  const { molecule, deps } = run
  const assignee = assigneeOf(run, row, texts) ?? HUMAN
  const description = step.description === undefined ? null : bounded('description', texts.render(step.description))
  const bead = deps.beads.newId(run.tx, molecule.rig)
  deps.beads.create(
    run.tx,
    {
      issue_type: 'gate',
      status: 'open',
      id: bead,
      title: row.title ?? step.id,
      description,
      rig: molecule.rig,
      priority: null,
      labels: [],
      metadata: { 'svc.step_id': row.path },
      assignee,
      routed_to: null,
      root: molecule.id,
      attempt: row.attempt,
    },
    ACTOR,
  )
  ownBead(run, row, bead)
  run.set(row, { bead, status: 'waiting', reason: 'human', assignee })
}

function openTimer(run: Run, row: StepRow, text: string): void {
  const due = Math.ceil(timeOf(text, run.now))
  run.timer(row, 'gate', due, parseTime(text) === undefined ? null : CALENDAR)
  run.set(row, { status: 'waiting', reason: 'timer', due_at: due })
}

/** A duration from now, or a time. */
function timeOf(text: string, now: number): number {
  const time = parseTime(text)
  if (time !== undefined) return time
  try {
    return now + parseDurationMs(text)
  } catch {
    throw new TemplateFailure(`"${cut(text, 64)}" is neither a duration nor a time: write 2h, or 2027-01-31T08:00:00Z`)
  }
}

/** It waits from now on, and looks at what came earlier. */
function openEvent(run: Run, row: StepRow, event: string, match: Readonly<Record<string, string>>): void {
  run.set(row, { event, event_match: JSON.stringify(match), status: 'waiting', reason: 'event' })
  run.deps.awaited.add(run.tx, event)
  run.timer(row, 'scan', run.now, String(sinceOf(run, row)))
}

/** Events count from the start of the attempt around it: of an item, of a group that began again, else of the molecule. */
export function sinceOf(run: Run, row: StepRow): number {
  for (let at = row; at.parent !== null; at = run.row(at.parent)) {
    const isAttemptAround = at !== row && at.attempt > 1
    if ((at.item_index > 0 || isAttemptAround) && at.since_seq !== null) return at.since_seq
  }
  return run.molecule.since_seq
}

const matchesOf = (row: Pick<StepRow, 'event_match'>): readonly PayloadMatch[] => {
  const match: Readonly<Record<string, string>> = JSON.parse(row.event_match ?? '{}')
  return Object.entries(match).map(([key, value]) => ({ key, value }))
}

/** Looks at a part of the events that came before it waited. */
export function scanEarlier(run: Run, row: StepRow, after: number): void {
  if (row.phase !== 'gate' || row.event === null) return
  const { log } = run.deps
  const payload = matchesOf(row)
  const filter = { types: [row.event], ...(payload.length === 0 ? {} : { payload }) }
  const found = log.scan(filter, { after, upTo: log.head }, 'asc', 1)
  if (found.events.length > 0) {
    gatePassed(run, row, 'event')
    return
  }
  if (!found.complete) run.timer(row, 'scan', run.now, String(found.reached))
}

/** Whether an event is one that a gate waits for. */
export function isAwaited(row: Pick<StepRow, 'event_match'>, event: Pick<StoredEvent, 'envelope'>): boolean {
  const matches = matchesOf(row)
  return matches.length === 0 || envelopeTest(matches)(event.envelope)
}

/** Its time or its event came. */
export function gatePassed(run: Run, row: StepRow, reason: string): void {
  if (row.phase !== 'gate') return
  run.set(row, { event: null, event_match: null })
  tellGate(run, row, null, 'completed', reason)
  run.do({ do: 'body', row, failure: undefined })
}

/** Somebody answered. */
export function gateAnswered(run: Run, row: StepRow, bead: EngineBead | undefined): void {
  if (row.phase !== 'gate' || (bead !== undefined && bead.status !== 'closed')) return
  const said = bead === undefined ? undefined : failureOf(row, bead)
  const failure =
    bead === undefined
      ? { step_id: row.path, class: 'transient' as const, reason: 'bead_gone', message: 'its gate is gone' }
      : said && { ...said, reason: 'rejected' }
  if (bead !== undefined) run.set(row, { output: bead.output_json, assignee: bead.assignee ?? row.assignee })
  tellGate(run, row, row.bead, failure === undefined ? 'completed' : 'failed', failure?.message ?? null)
  run.do({ do: 'body', row, failure })
}
