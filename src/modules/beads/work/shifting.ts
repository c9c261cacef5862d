/** Tells what depends on a bead that closed or opened, where one write could not tell all of it (store/shifts.ts). */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'
import { isShifting } from '../store/shifts.ts'
import type { BeadStore } from '../store/store.ts'

export interface ShiftingDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write' | 'countDue'>
  readonly beads: Pick<BeadStore, 'shiftOn'>
  readonly clock: Clock
  readonly log: Logger
}

/** What waits to be told is always due. */
export const shiftingOf = ({ db, beads, clock, log }: ShiftingDeps): Due =>
  new Due({
    name: 'dependents of beads',
    db,
    clock,
    log,
    next: () => (isShifting(db) ? 0 : undefined),
    work: () => db.write((tx) => void beads.shiftOn(tx)),
  })
