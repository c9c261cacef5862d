/**
 * Lets the leases of a city lapse in time.
 *
 * L1  No lease lapses before its time, and each does soon after it.
 * L2  Time in which nobody could renew does not count: neither while the city was down nor while the machine slept or the
 *     process stood still.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Claims } from './claim.ts'

export interface LeaseTimerDeps {
  readonly db: Pick<Database, 'write' | 'countDue'>
  readonly claims: Pick<Claims, 'expire' | 'restartLeases' | 'adjustLeases' | 'nextExpiry'>
  readonly clock: Clock
  readonly log: Logger
}

export const leaseTimer = ({ db, claims, clock, log }: LeaseTimerDeps): Due =>
  new Due({
    name: 'bead leases',
    db,
    clock,
    log,
    next: () => claims.nextExpiry(),
    work: (_, slice) => db.write((tx) => claims.expire(tx, slice)),
    adjust: ({ stepMs, pausedMs }) => {
      const atStart = stepMs === 0 && pausedMs === 0
      return db.write((tx) => (atStart ? claims.restartLeases(tx) : claims.adjustLeases(tx, pausedMs)))
    },
  })
