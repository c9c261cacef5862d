/** What the handlers of sessions share: the city, finding the session, answering with it. */

import type { SessionResponse } from '../../../contract/sessions/session-model.ts'
import { ok, type Reply } from '../../../kernel/call.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { deadline } from '../../../kernel/deadline.ts'
import type { Jobs } from '../../../kernel/jobs.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Sessions } from '../plan/service.ts'
import type { SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'

/** One running city, for handlers. */
export interface SessionCity {
  readonly name: string
  readonly path: string
  readonly store: Store
  readonly sessions: Sessions
  readonly deps: Pick<
    SessionsDeps,
    'config' | 'provider' | 'usage' | 'runtimes' | 'work' | 'worktrees' | 'render' | 'env' | 'suspended'
  >
  readonly launch: Jobs['launchAnswering']
}

/** Who did it, for events. */
export interface Note {
  readonly actor: string
}

/** Ending a process takes its grace, and as long again for a tree that does not want to. */
const ENDING_MS = 20_000

export const tag = (session: SessionRecord | SessionResponse): string => `"${session.revision}"`

/** An answer that was given before is a body without its headers. */
export const tagged = ({ status, body }: Reply<SessionResponse>): Reply<SessionResponse> => ({
  status,
  body,
  headers: { ETag: tag(body) },
})

/** The session as it is now, with its ETag. */
export function answer({ sessions }: SessionCity, id: string): Reply<SessionResponse> {
  const session = sessions.store.byId(id)
  if (session === undefined) throw problem('session-not-found', `session ${id} has been deleted`)
  return ok(sessions.view(session), { ETag: tag(session) })
}

/** Waits until the record says so, or until it is clear that it will not soon; true: it does. */
export async function settled(
  { sessions }: SessionCity,
  id: string,
  done: (session: SessionRecord | undefined) => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  using limit = deadline(clock, sessions.policy.shutdownMs + ENDING_MS, 'it takes too long', signal)
  try {
    await sessions.until(id, done, limit.signal)
    return true
  } catch {
    return false
  }
}

/** Brings a resting session back, with everything that held it lifted. */
export function wakeUp(tx: Tx, { store }: Sessions, session: SessionRecord, reason: string, note: Note): SessionRecord {
  return store.move(tx, session.id, 'wake', {
    ...note,
    reason,
    fields: {
      desired: 'running',
      quarantined_until: undefined,
      retry_at: undefined,
      drain_reason: undefined,
      drain_acked: false,
      attempts: 0,
      rapid_crashes: 0,
      churn: 0,
      crashes: [],
    },
  })
}

export const isOver = ({ state, desired }: SessionRecord): boolean => state === 'closed' || desired === 'closed'

/** Who is held is not woken by anybody: whoever suspended it, or took its agent away, is asked first. */
export function refuseHeld(session: SessionRecord, { sessions }: SessionCity): void {
  const why = sessions.hold(session)
  if (why !== undefined) throw problem('conflict-config', why)
}

export function refuseOver(session: SessionRecord): void {
  if (isOver(session)) throw problem('session-conflict', `session ${session.id} is closed`)
}
