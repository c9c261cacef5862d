/** The jobs behind the 202s of sessions: always taken up again after a crash (decision 58). */
import type { SessionState } from '../../../contract/session-model.ts'
import { type Job, JobFailure } from '../../../kernel/jobs.ts'
import type { UnfinishedRequest } from '../../../kernel/requests.ts'
import type { Sessions } from './service.ts'

const CREATE_MS = 120_000
/** The queue of the session ends its requests itself, well before that. */
const SAY_MS = 10 * 60_000
const MARGIN_MS = 60_000
/** A session that can take commands: it runs, or a message wakes it. */
const USABLE: ReadonlySet<SessionState> = new Set(['active', 'draining', 'asleep', 'suspended', 'quarantined'])

export function sessionJobs(sessions: Sessions): readonly Job[] {
  const say = (operation: 'session.message' | 'session.submit'): Job => ({
    operation,
    deadlineMs: Math.max(SAY_MS, sessions.policy.deliveryMs + MARGIN_MS),
    resumable: true,
    async run({ id }, signal) {
      await sessions.requestEnd(id, signal)
      return () => undefined
    },
  })
  return [createJob(sessions), say('session.message'), say('session.submit')]
}

function createJob(sessions: Sessions): Job<'session.create'> {
  return {
    operation: 'session.create',
    deadlineMs: Math.max(CREATE_MS, sessions.policy.startupTimeoutMs + MARGIN_MS),
    resumable: true,
    async run(request, signal) {
      const id = sessionOf(request)
      await sessions.until(
        id,
        (session) => session === undefined || !['start-pending', 'creating'].includes(session.state),
        signal,
      )
      const found = sessions.store.byId(id)
      if (found === undefined || !USABLE.has(found.state)) {
        const closed = found === undefined || found.state === 'closed'
        const why = closed
          ? 'it was closed before it had started'
          : (sessions.actor(id)?.lastError ?? found.reason ?? found.state)
        throw new JobFailure('create_failed', `session ${id} was not started: ${why}`)
      }
      return (tx) => ({
        type: 'request.result.session.create',
        actor: 'supervisor',
        subject: id,
        payload: { request_id: request.id, session: sessions.view(sessions.store.need(tx, id)) },
      })
    },
  }
}

const sessionOf = ({ input }: UnfinishedRequest): string => String(input['session_id'])
