/**
 * Deleting a molecule that has ended, with its beads (decision 102): a slice of them in each write, the molecule itself
 * with the last. What a crash leaves is deleted by whoever asks again.
 */
import { nextTurn } from '../../../../kernel/clock.ts'
import type { Tx } from '../../../../kernel/database.ts'
import { problem } from '../../../../kernel/problem.ts'
import { isLive, type MoleculeRow, parseMolecule } from '../base/rows.ts'
import type { EngineDeps } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'

/** Beads that go in one write. */
const SLICE = 100

/** How many beads went; `check` is asked once, in the first write. */
export async function removeMolecule(
  deps: EngineDeps,
  id: string,
  actor: string,
  check: (molecule: MoleculeRow) => void,
): Promise<number> {
  let removed = 0
  for (let isFirst = true; ; isFirst = false) {
    const gone = await deps.db.write((tx) => removeSlice(tx, deps, id, actor, isFirst ? check : () => {}))
    removed += gone.beads
    if (gone.all) return removed
    await nextTurn()
  }
}

function removeSlice(
  tx: Tx,
  deps: EngineDeps,
  id: string,
  actor: string,
  check: (molecule: MoleculeRow) => void,
): { readonly beads: number; readonly all: boolean } {
  const row = tx.get('SELECT * FROM molecules WHERE id = ?', id)
  if (row === undefined) throw problem('molecule-not-found', `there is no molecule ${id}`)
  const molecule = parseMolecule(row)
  if (isLive(molecule.status))
    throw problem('conflict-wrong-state', `the molecule ${id} is ${molecule.status}: cancel it before it is deleted`)
  check(molecule)
  const parts = partsOf(tx, molecule)
  const steps = parts.filter((bead) => deps.beads.find(bead) !== undefined)
  if (steps.length > 0) deps.beads.remove(tx, steps, actor)
  tx.run('DELETE FROM molecule_beads WHERE bead IN (SELECT value FROM json_each(?))', JSON.stringify(parts))
  if (parts.length === SLICE) return { beads: steps.length, all: false }
  const root = deps.beads.find(id) === undefined ? [] : [id]
  deps.beads.remove(tx, root, actor)
  removeRows(tx, deps, molecule)
  return { beads: steps.length + root.length, all: true }
}

/** Beads that the molecule made. A bead that only says so of itself (an import may) is not one of them. */
const partsOf = (tx: Tx, { n }: MoleculeRow): readonly string[] =>
  tx
    .all('SELECT bead FROM molecule_beads WHERE step >= ? AND step < ? LIMIT ?', ...stepsOf(n), SLICE)
    .map(({ bead }) => String(bead))

const stepsOf = (n: number) => [n * ROWS_PER_MOLECULE, (n + 1) * ROWS_PER_MOLECULE] as const

function removeRows(tx: Tx, deps: EngineDeps, { n, plan }: MoleculeRow): void {
  for (const [table, column] of TABLES)
    tx.run(`DELETE FROM ${table} WHERE ${column} >= ? AND ${column} < ?`, ...stepsOf(n))
  tx.run('DELETE FROM molecules WHERE n = ?', n)
  deps.plans.drop(tx, plan)
}

const TABLES = [
  ['molecule_steps', 'id'],
  ['molecule_attempts', 'step'],
  ['molecule_beads', 'step'],
  ['molecule_drives', 'step'],
  ['molecule_timers', 'step'],
] as const
