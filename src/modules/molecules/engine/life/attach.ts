/** The bead that a molecule is about (decision 101): one live molecule at a time, nobody's, and waiting for its root. */
import type { Tx } from '../../../../kernel/database.ts'
import { type Problem, problem } from '../../../../kernel/problem.ts'
import type { EngineBead } from '../base/ports.ts'
import { moleculeOf, rootOf } from '../base/rows.ts'
import { type EngineDeps, Run } from '../base/run.ts'
import { cancelRun } from './cancel.ts'

export interface Attaching {
  readonly reassign?: boolean | undefined
  readonly replace?: boolean | undefined
  readonly actor: string
}

/** Refuses a bead that no molecule may have; where it is asked for, ends the molecule that has it. */
export function freeBead(tx: Tx, deps: EngineDeps, id: string, { reassign, replace, actor }: Attaching): void {
  const bead = deps.beads.find(id)
  if (bead === undefined)
    throw problem('bead-not-found', `there is no bead ${id}`, { errors: [errorOf(id, 'is the id of no bead')] })
  if (bead.status === 'closed') throw wrongState(id, 'is closed: reopen it first')
  refuseStep(tx, bead)
  const driver = driverOf(tx, id)
  if (driver !== undefined && driver.item !== undefined) throw listed(id, driver, driver.item)
  if (driver !== undefined && replace !== true) throw live(id, driver)
  if (driver !== undefined) replaceDriver(tx, deps, driver, actor)
  const held = deps.beads.find(id)?.assignee ?? null
  if (held !== null && reassign !== true)
    throw problem('conflict-claimed', `${held} has ${id}`, { errors: [errorOf(id, `is held by ${held}`)] })
}

const errorOf = (value: string, message: string) => ({ location: 'body.bead', message, value })

const wrongState = (id: string, why: string): Problem =>
  problem('conflict-wrong-state', `the bead ${id} ${why}`, { errors: [errorOf(id, why)] })

function refuseStep(tx: Tx, { id, issue_type }: EngineBead): void {
  if (issue_type === 'molecule') throw wrongState(id, 'is the root of a molecule')
  const step = tx.get('SELECT step FROM molecule_beads WHERE bead = ?', id)
  const molecule = step === undefined ? undefined : idOf(tx, moleculeOf(Number(step.step)))
  if (molecule !== undefined) throw wrongState(id, `is a step of ${molecule}`)
}

interface Driver {
  readonly n: number
  readonly id: string
  /** Path of the item that has the bead for itself; absent where the whole molecule is about it. */
  readonly item?: string
}

/** The live molecule that has a bead. */
function driverOf(tx: Pick<Tx, 'get'>, bead: string): Driver | undefined {
  const row = tx.get('SELECT step FROM molecule_drives WHERE bead = ?', bead)
  if (row === undefined) return undefined
  const step = Number(row.step)
  const n = moleculeOf(step)
  const id = idOf(tx, n)
  if (id === undefined) return undefined
  return step === rootOf(n) ? { n, id } : { n, id, item: pathOf(tx, step) }
}

function pathOf(tx: Pick<Tx, 'get'>, step: number): string {
  return String(tx.get('SELECT path FROM molecule_steps WHERE id = ?', step)?.path ?? '')
}

/** To end the molecule of a whole list because of one of its items is not what somebody asks for who names the item. */
function listed(bead: string, { id }: Driver, item: string): Problem {
  const cure = `wait for it, or end all of it with \`svcctl molecule cancel ${id}\``
  return problem('molecule-live', `the molecule ${id} works on ${bead} as one of several (${item}): ${cure}`, {
    errors: [{ location: 'body.bead', message: `is an item of ${id}`, value: id }],
  })
}

function idOf(tx: Pick<Tx, 'get'>, n: number): string | undefined {
  const row = tx.get('SELECT id FROM molecules WHERE n = ?', n)
  return row === undefined ? undefined : String(row.id)
}

function live(bead: string, { id }: Driver): Problem {
  return problem('molecule-live', `the molecule ${id} works on ${bead}: \`replace\` cancels it first`, {
    errors: [{ location: 'body.bead', message: `is driven by ${id}`, value: id }],
  })
}

function replaceDriver(tx: Tx, deps: EngineDeps, { n }: Driver, actor: string): void {
  const run = Run.of(tx, deps, n)
  if (run !== undefined) cancelRun(run, 'replaced by another molecule', actor)
}

/** It waits for the molecule, and is nobody's and routed nowhere meanwhile. */
export function takeBead(run: Run, id: string, actor: string): void {
  run.tx.run('INSERT INTO molecule_drives (bead, step) VALUES (?, ?)', id, run.root.id)
  run.deps.beads.give(run.tx, id, actor)
  run.deps.beads.block(run.tx, id, run.molecule.id, actor)
}

/** Takes it once more, for a molecule that goes on. */
export function retakeBead(run: Run, id: string, actor: string): void {
  const driver = driverOf(run.tx, id)
  if (driver !== undefined && driver.n !== run.molecule.n) throw live(id, driver)
  const bead = run.deps.beads.find(id)
  if (bead === undefined || bead.status === 'closed') return
  if (bead.assignee !== null) throw wrongState(id, `is held by ${bead.assignee}, who has to release it first`)
  takeBead(run, id, actor)
}
