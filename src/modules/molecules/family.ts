/** Molecules, as the supervisor joins them. */

import { moleculeOperations } from '../../contract/automation/molecules.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { Store } from '../../kernel/store.ts'
import type { MoleculeRow } from './engine/base/rows.ts'
import { MOLECULES_SCHEMA } from './engine/base/schema.ts'
import { Molecules, type MoleculesDeps } from './engine/molecules.ts'
import { createMoleculeHandlers } from './handlers.ts'
import { gateNeeds, moleculeNeeds } from './read/needs.ts'
import { MoleculeReads } from './read/reads.ts'
import { sweepOfMolecules } from './retention.ts'
import { Starting, type Surroundings } from './starting.ts'

export interface MoleculesContext {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly engine: MoleculesDeps
  readonly around: Surroundings
  /** How long one that has ended and says nothing of it is kept; undefined: for ever. */
  readonly keptMs: () => number | undefined
  /** Tells it of the ends of the commands that it has begun, from now on. */
  readonly listen: (molecules: Molecules) => void
}

export const molecules = defineFamily({
  operations: moleculeOperations,
  schema: migrationsOf('molecules', ...MOLECULES_SCHEMA),
  handlers: (host: { readonly clock: Clock }) => createMoleculeHandlers(host),
  open: ({ store, engine, around, listen, keptMs }: MoleculesContext) => {
    const molecules = new Molecules(engine)
    listen(molecules)
    const reads = new MoleculeReads(store.db, molecules.plans, around)
    const starting = new Starting(molecules, around)
    const isChanged = ({ formula, formula_hash, rig }: MoleculeRow): boolean =>
      around.catalog.formula(formula, rig === '' ? undefined : rig)?.hash !== formula_hash
    const rigNames = () => around.rigNames()
    const sweeps = [sweepOfMolecules({ store, clock: engine.clock, molecules, keptMs })]
    return { sweeps, now: () => engine.clock.now(), store, molecules, reads, starting, rigNames, isChanged }
  },
  // What runs commands and sessions is there by then.
  phases: { starting_agents: ({ molecules }) => molecules.open() },
  needs: ({ reads, now }) => [gateNeeds, moleculeNeeds(reads, now)],
  retention: ({ sweeps }) => sweeps,
  reactions: ({ molecules }) => [molecules.reaction()],
  stop: ({ molecules }) => molecules.close(),
})
