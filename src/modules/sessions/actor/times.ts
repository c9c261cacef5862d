/**
 * Times of a session after its machine's clock was set, or the machine slept: what lasts some time goes on to last as
 * long; what ends at a date (a limit, the age of a process) ends at that date.
 */
import type { SessionRecord } from '../record/record.ts'

/** Whether something that is of that time was written by the clock as it was before it jumped to `now`. */
const isFromBefore = (at: number, now: number, jump: number): boolean => (jump > 0 ? at <= now - jump : at > now)

type Times = Pick<SessionRecord, 'state_since' | 'deadline' | 'quarantined_until' | 'retry_at'>

/** Undefined: they are of the clock as it is now. */
export function timesAfter(session: Times, now: number, jump: number): Times | undefined {
  if (!isFromBefore(session.state_since, now, jump)) return undefined
  const moved = (at: number | undefined) => (at === undefined ? undefined : at + jump)
  return {
    state_since: session.state_since + jump,
    deadline: moved(session.deadline),
    quarantined_until: moved(session.quarantined_until),
    retry_at: moved(session.retry_at),
  }
}
