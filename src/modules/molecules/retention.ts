/** Molecules that have ended and say nothing of how long they are kept go as `[beads.policies.molecule]` says. */
import type { Clock } from '../../kernel/clock.ts'
import type { Sweep } from '../../kernel/retention.ts'
import type { Store } from '../../kernel/store.ts'
import type { Molecules } from './engine/molecules.ts'

/** Molecules of one round; each goes in writes of its own, and the rest with the next rounds. */
const MAX_IN_ROUND = 500

const OLD = `SELECT id FROM molecules WHERE expires_at IS NULL AND closed_at < ? ORDER BY closed_at LIMIT ${MAX_IN_ROUND}`

export interface MoleculeRetentionDeps {
  readonly store: Pick<Store, 'db'>
  readonly clock: Clock
  readonly molecules: Pick<Molecules, 'remove'>
  /** Undefined: for ever. */
  readonly keptMs: () => number | undefined
}

export const sweepOfMolecules = ({ store, clock, molecules, keptMs }: MoleculeRetentionDeps): Sweep => ({
  name: 'molecules',
  setting: keptMs,
  run: async (round) => {
    const kept = round.agesCount ? keptMs() : undefined
    const old = kept === undefined ? [] : store.db.all(OLD, clock.now() - kept).map(({ id }) => String(id))
    let gone = 0
    for (const id of old) {
      if (round.isOver) break
      await molecules.remove(id, 'supervisor')
      gone++
    }
    return { molecules: gone }
  },
})
