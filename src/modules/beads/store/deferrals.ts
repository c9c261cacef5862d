/**
 * Beads whose date comes: `deferred` of each is cleared soon afterwards, so that what is looked for among is what still
 * waits. The date itself stays, nothing of the bead changes that anybody sees, and no event tells of it: whether a bead is
 * ready is a matter of its date alone, before and after.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'

export interface DeferralsDeps {
  readonly db: Pick<Database, 'get' | 'write' | 'countDue'>
  readonly clock: Clock
  readonly log: Logger
}

/** In one write: other writers wait no longer than for these. */
const SLICE = 250
/** Dates that come one after the other are seen to together. */
const TOGETHER_MS = 1_000

const NEXT = 'SELECT defer_until FROM beads INDEXED BY beads_deferred WHERE deferred = 1 ORDER BY defer_until LIMIT 1'
const CLEAR = `UPDATE beads SET deferred = 0 WHERE n IN (SELECT n FROM beads INDEXED BY beads_deferred
  WHERE deferred = 1 AND defer_until <= ? ORDER BY defer_until LIMIT ${SLICE})`

export const deferralsOf = ({ db, clock, log }: DeferralsDeps): Due =>
  new Due({
    name: 'deferred beads',
    db,
    clock,
    log,
    togetherMs: TOGETHER_MS,
    next: () => {
      const next = db.get(NEXT)
      return next === undefined ? undefined : Number(next.defer_until)
    },
    work: (now) => db.write((tx) => void tx.run(CLEAR, now)),
  })
