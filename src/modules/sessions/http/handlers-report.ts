/** What agents and their hooks tell and ask (decisions 225, 226, 236). */
import type { sessionReportOperations } from '../../../contract/sessions/reports.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import { durationMs, invalidField } from '../../../kernel/problem.ts'
import { checkRun } from '../reports/reports.ts'
import { answer, type SessionCity } from './handlers.ts'

const ANSWERED_WITHIN_MS = 600_000
const MAX_WAIT_MS = 3_600_000

export const createSessionReportHandlers = () =>
  ({
    'report-session': async ({ params, body, city, actor }) => {
      const { id } = city.sessions.resolve(params.id)
      await city.sessions.report(id, body, actor)
      return answer(city, id)
    },

    'ask-session-permission': async ({ params, body, signal, city }) => {
      const { sessions } = city
      const session = sessions.resolve(params.id)
      checkRun(session, body)
      const timeoutMs = body.timeout === undefined ? ANSWERED_WITHIN_MS : durationMs('body.timeout', body.timeout)
      if (timeoutMs > MAX_WAIT_MS) throw invalidField('body.timeout', 'must be at most 1h', body.timeout)
      return ok(await sessions.permissions.ask(session, { request: body, timeoutMs, signal }))
    },
  }) satisfies Partial<Handlers<typeof sessionReportOperations, SessionCity>>
