/**
 * What molecules do about the log: their beads are claimed, given back, closed; events come that gates wait for
 * (decision 91). What a bead is by now counts, not what an event says that it was: an event may come twice, or late.
 */
import type { Tx } from '../../../kernel/database.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import type { Reaction } from '../../../kernel/reactions.ts'
import { Faults, StepFault } from './base/faults.ts'
import { isLive, moleculeOf, type StepRow } from './base/rows.ts'
import { type EngineDeps, Run } from './base/run.ts'
import { drain } from './life/drain.ts'
import { failRow } from './life/fail.ts'
import { answered } from './steps/checks.ts'
import { gateAnswered, gatePassed, isAwaited, sinceOf } from './steps/gates.ts'
import { lostWorker, syncBead } from './steps/work.ts'

/** Gates that one event opens in the write that handles it; the others are opened by those that follow. */
const MAX_OPENED = 50
/** Whoever claims one changes it: `bead.updated` tells of that too. */
const OF_BEADS: ReadonlySet<string> = new Set([
  'bead.released',
  'bead.lease_expired',
  'bead.updated',
  'bead.closed',
  'bead.deleted',
])
/** What almost all changes of beads do not have in them: these need not be looked up. An end always is. */
const ROOT_KEY = '"root_bead_id":'
const STEP_OF_BEAD =
  'SELECT id FROM molecule_steps WHERE bead = ? UNION ALL SELECT id FROM molecule_steps WHERE asked = ? LIMIT 1'
const WAITING = 'SELECT id, event_match FROM molecule_steps WHERE event IN (SELECT value FROM json_each(?))'

export function moleculeReaction(deps: EngineDeps): Reaction {
  /** Why an event could not be handled at all: the second time the step that it is of fails instead. */
  const broken = new Map<number, string>()
  const faults = new Faults()
  return {
    name: 'molecules',
    // Nothing older is of a molecule.
    since: 'head',
    concerns: (event) => stepOf(deps.db, event) !== undefined || deps.awaited.has(event.type),
    react(tx, event) {
      const why = broken.get(event.seq)
      broken.delete(event.seq)
      try {
        faults.during(String(event.seq), (doomed) => react(tx, { ...deps, doomed }, event, why))
      } catch (error) {
        if (!(error instanceof StepFault)) broken.set(event.seq, error instanceof Error ? error.message : String(error))
        throw error
      }
    },
  }
}

function react(tx: Tx, deps: EngineDeps, event: StoredEvent, why: string | undefined): void {
  const step = stepOf(tx, event)
  if (step !== undefined)
    withRow(tx, deps, step, (run, row) => {
      if (why === undefined) beadChanged(run, row, event)
      else failRow(run, row, why)
    })
  for (const [at, gate] of gatesFor(tx, deps, event).entries()) {
    if (at >= MAX_OPENED) deps.timers.set(tx, gate, 'event', deps.clock.now(), String(event.seq))
    else withRow(tx, deps, gate, (run, row) => eventCame(run, row, event.seq))
  }
}

/** The step that is at this bead now. */
function stepOf(reader: Pick<Tx, 'get'>, { type, subject, envelope }: StoredEvent): number | undefined {
  if (subject === undefined || !OF_BEADS.has(type)) return undefined
  if (type === 'bead.updated' && !envelope.includes(ROOT_KEY)) return undefined
  const row = reader.get(STEP_OF_BEAD, subject, subject)
  return row === undefined ? undefined : Number(row.id)
}

function gatesFor(tx: Tx, { awaited }: EngineDeps, event: StoredEvent): readonly number[] {
  const patterns = awaited.patternsFor(event.type)
  if (patterns.length === 0) return []
  return tx
    .all(WAITING, JSON.stringify(patterns))
    .filter(({ event_match }) => isAwaited({ event_match: String(event_match) }, event))
    .map(({ id }) => Number(id))
}

/** Does something about a row of a molecule that lives, and everything that follows from it. */
export function withRow(tx: Tx, deps: EngineDeps, step: number, work: (run: Run, row: StepRow) => void): void {
  const run = Run.of(tx, deps, moleculeOf(step))
  const row = run?.findRow(step)
  if (run === undefined || row === undefined || !isLive(run.molecule.status)) return
  work(run, row)
  drain(run)
}

function beadChanged(run: Run, row: StepRow, { type, actor, subject }: StoredEvent): void {
  const bead = run.deps.beads.find(subject ?? '')
  if (row.phase === 'ask' && row.asked === subject) {
    answered(run, row, bead)
    return
  }
  if (row.bead !== subject) return
  if (row.phase === 'gate') {
    gateAnswered(run, row, bead)
    return
  }
  syncBead(run, row, bead, type === 'bead.released' || type === 'bead.lease_expired')
  // Nobody gave it back: who had it is gone.
  if (type === 'bead.lease_expired' || (type === 'bead.released' && actor === 'supervisor')) lostWorker(run, row)
}

/** Events that are older than what the gate is in do not count: after a crash some are looked at again. */
export function eventCame(run: Run, row: StepRow, seq: number): void {
  if (seq > sinceOf(run, row)) gatePassed(run, row, 'event')
}
