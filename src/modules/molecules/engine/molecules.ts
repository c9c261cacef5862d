/**
 * Molecules of one city: formulas at work, exactly as written (decisions 80–102).
 *
 * M1  What a change does to a molecule, and that the change was looked at, are one write: a crash repeats nothing and loses
 *     nothing.
 * M2  A change reads and writes the rows that depend on it. Nothing goes through all molecules, or all rows of one that is
 *     large, but what ends it.
 * M3  A molecule ends once (and once more after each retry), and says so once.
 * M4  The outside is told after the commit: commands, holders.
 */
import type { Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Reaction } from '../../../kernel/reactions.ts'
import { Awaited } from './base/awaited.ts'
import { causeOf } from './base/faults.ts'
import { Plans } from './base/plans.ts'
import type { ExecEnd } from './base/ports.ts'
import { type MoleculeRow, moleculeOf, parseMolecule, rootOf } from './base/rows.ts'
import { type EngineDeps, Run } from './base/run.ts'
import { Timers, type TimersDeps } from './base/timers.ts'
import { Firing } from './due-timers.ts'
import { retryRun } from './life/again.ts'
import { cancelRun, stopRest } from './life/cancel.ts'
import { drain } from './life/drain.ts'
import { pinLog } from './life/listeners.ts'
import { removeMolecule } from './life/removal.ts'
import { type StartInput, startMolecule } from './life/start.ts'
import { moleculeReaction, withRow } from './reaction.ts'
import { checkEnded, checkStarted } from './steps/checks.ts'

export type MoleculesDeps = Omit<EngineDeps, 'plans' | 'timers' | 'awaited'> & Omit<TimersDeps, 'db'>

export class Molecules {
  readonly plans: Plans
  readonly #deps: EngineDeps

  constructor({ logger, ...deps }: MoleculesDeps) {
    this.plans = new Plans(deps.db)
    const timers = new Timers({ db: deps.db, clock: deps.clock, logger })
    this.#deps = { ...deps, plans: this.plans, timers, awaited: new Awaited(deps.db) }
  }

  /** What is due begins to be done; before that nothing happens by itself. */
  async open(): Promise<void> {
    const deps = this.#deps
    pinLog(deps)
    const firing = new Firing(deps)
    await deps.timers.start({
      fire: (tx, timer) => firing.fire(tx, timer),
      failed: (tx, timer, why) => firing.failed(tx, timer, why),
      swept: (step) => this.#sweep(step),
    })
  }

  /** Resolves when nothing is under way any more. */
  close(): Promise<void> {
    return this.#deps.timers.stop()
  }

  /** What it does about the log of the city. */
  reaction(): Reaction {
    return moleculeReaction(this.#deps)
  }

  start(tx: Tx, input: StartInput): MoleculeRow {
    return asAsked(() => startMolecule(tx, this.#deps, input))
  }

  /** Ends it now; 409 where it has ended. `check`: whether it is the version that is meant. */
  cancel(tx: Tx, id: string, reason: string, actor: string, check = ACCEPT): MoleculeRow {
    return this.#change(tx, id, check, (run) => cancelRun(run, reason, actor))
  }

  /** Resolves when nothing of one that was ended is under way any more: of a large one that takes some writes. */
  stopped(id: string): Promise<void> {
    const row = this.#deps.db.get('SELECT n FROM molecules WHERE id = ?', id)
    return row === undefined ? Promise.resolve() : stopRest(this.#deps, rootOf(Number(row.n)))
  }

  /** Goes on with one that failed. */
  retry(tx: Tx, id: string, actor: string, check = ACCEPT): MoleculeRow {
    return this.#change(tx, id, check, (run) => retryRun(run, actor))
  }

  /** Deletes one that has ended, with its beads; how many. In writes of its own. */
  remove(id: string, actor: string, check = ACCEPT): Promise<number> {
    return removeMolecule(this.#deps, id, actor, check)
  }

  /** A command of a check that had to wait has a slot; in the write that records it. */
  checkStarted(tx: Tx, exec: string): void {
    const row = tx.get('SELECT id FROM molecule_steps WHERE exec = ?', exec)
    if (row !== undefined) withRow(tx, this.#deps, Number(row.id), checkStarted)
  }

  /** A command of a check has ended; in the write that records it. */
  checkEnded(tx: Tx, exec: string, end: ExecEnd): void {
    const row = tx.get('SELECT id FROM molecule_steps WHERE exec = ?', exec)
    if (row !== undefined) withRow(tx, this.#deps, Number(row.id), (run, step) => checkEnded(run, step, end))
  }

  #change(tx: Tx, id: string, check: (molecule: MoleculeRow) => void, work: (run: Run) => void): MoleculeRow {
    const row = tx.get('SELECT * FROM molecules WHERE id = ?', id)
    if (row === undefined) throw problem('molecule-not-found', `there is no molecule ${id}`)
    const molecule = parseMolecule(row)
    check(molecule)
    const run = new Run(tx, this.#deps, molecule)
    return asAsked(() => {
      work(run)
      return drain(run)
    })
  }

  async #sweep(step: number): Promise<void> {
    const { db, timers } = this.#deps
    const row = db.get('SELECT id FROM molecules WHERE n = ?', moleculeOf(step))
    if (row === undefined) return void (await db.write((tx) => timers.dropAll(tx, step)))
    await this.remove(String(row.id), 'supervisor')
  }
}

/** Whoever asks for a change is told what was thrown, not at which step. */
function asAsked<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw causeOf(error)
  }
}

const ACCEPT = (_molecule: MoleculeRow): void => {}
