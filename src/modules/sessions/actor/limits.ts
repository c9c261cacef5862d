/**
 * Rate limits of an agent that lives (decision 231): until its limit ends nothing is typed to it, and what waits says so.
 *
 * J1  A limit has an end, said or assumed; it also ends when its harness says so, when a turn of it succeeds, and when a
 *     person wakes it.
 * J2  It is told when it begins and when it ends, in the write that changes it.
 */

import { cut } from '../../../contract/base/text.ts'
import { resetTime } from '../../../harnesses/rate-limits.ts'
import { isoTime, localZone } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { SessionsDeps, ToldLimit } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import { SUPERVISOR } from './scene.ts'

const MAX_WORDS = 500
/** A second sentence about the same limit moves its end by no more. */
const SAME_MS = 60_000

export interface LimitDeps extends Pick<SessionsDeps, 'store' | 'clock'> {
  readonly sessions: SessionStore
  /** How long one lasts whose end nobody says. */
  readonly holdMs: number
}

export function limitSession(tx: Tx, id: string, told: ToldLimit, { sessions, store, clock, holdMs }: LimitDeps): void {
  const session = sessions.need(tx, id)
  const now = clock.now()
  const message = told.message === undefined ? undefined : cut(told.message, MAX_WORDS)
  const said = told.until ?? (message === undefined ? undefined : resetTime(message, now, localZone()))
  const until = said ?? Math.max(session.limited_until ?? 0, now + holdMs)
  if (session.state === 'closed' || until <= now) return
  const before = session.limited_until
  if (before !== undefined && (said === undefined || Math.abs(before - until) < SAME_MS)) return
  sessions.change(
    tx,
    id,
    { limited_until: until, limited_at: session.limited_at ?? now, limit_source: told.source, limit_message: message },
    SUPERVISOR,
  )
  store.log.append(tx, {
    type: 'session.rate_limited',
    ...SUPERVISOR,
    subject: id,
    payload: {
      session_id: id,
      template: session.template,
      limited_until: isoTime(until),
      limit_source: told.source,
      ...(message === undefined ? {} : { message }),
    },
  })
}

/** Nothing where there is none. */
export function liftLimit(
  tx: Tx,
  session: SessionRecord,
  reason: 'time' | 'report' | 'output' | 'wake',
  { sessions, store }: Pick<LimitDeps, 'sessions' | 'store'>,
): void {
  if (session.limited_until === undefined) return
  sessions.change(
    tx,
    session.id,
    { limited_until: undefined, limited_at: undefined, limit_source: undefined },
    SUPERVISOR,
  )
  store.log.append(tx, {
    type: 'session.rate_limit_ended',
    ...SUPERVISOR,
    subject: session.id,
    payload: { session_id: session.id, template: session.template, reason },
  })
}
