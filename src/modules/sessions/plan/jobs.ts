/** The jobs behind the 202s of sessions: always taken up again after a crash (decision 58). */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionState } from '../../../contract/sessions/session-model.ts'
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
    get deadlineMs() {
      const { startupTimeoutMs, setupTimeoutMs, worktreeSetupMs } = sessions.policy
      return Math.max(CREATE_MS, startupTimeoutMs + setupTimeoutMs + worktreeSetupMs + MARGIN_MS)
    },
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
        const more = closed ? undefined : await outputOf(sessions, id)
        throw new JobFailure('create_failed', `session ${id} was not started: ${why}${more ?? ''}`)
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

/** Where what its program said can be read, where it said anything. */
async function outputOf(sessions: Sessions, id: string): Promise<string | undefined> {
  const generation = sessions.store.byId(id)?.generation ?? 0
  const directory = join(sessions.directory(id), String(generation))
  const files = await readdir(directory).catch(() => [])
  const sizes = await Promise.all(
    files
      .filter((name) => name.startsWith('out.'))
      .map((name) =>
        stat(join(directory, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
  )
  return sizes.some((size) => size > 0) ? `; what it said: ${directory}, or GET /sessions/${id}/transcript` : undefined
}

const sessionOf = ({ input }: UnfinishedRequest): string => String(input['session_id'])
