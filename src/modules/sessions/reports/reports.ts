/**
 * What agents tell of themselves, taken over (decision 225).
 *
 * W1  What a run tells counts while that run goes on: another generation, or another token, changes nothing.
 * W2  Told again, or told later than something newer, nothing changes.
 */
import type { ReportedRateLimit, SessionReportRequest } from '../../../contract/sessions/reports.ts'
import type { Tx } from '../../../kernel/database.ts'
import { problem, timeMs } from '../../../kernel/problem.ts'
import type { Pending } from '../../../runtimes/process/runtime.ts'
import type { ToldLimit, UsagePort } from '../record/ports.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import type { Report } from '../record/report.ts'
import type { Note, SessionStore } from '../record/store.ts'

/** W1; 409 where it is about a run that is over. */
export function checkRun(
  session: SessionRecord,
  { generation, instance_token: token }: Pick<SessionReportRequest, 'generation' | 'instance_token'>,
): void {
  const { id, state } = session
  if (!session.process || state === 'closed')
    throw problem('session-conflict', `session ${id} is ${state}: nothing of it runs`)
  if (generation !== undefined && generation !== session.generation)
    throw problem('session-conflict', `run ${generation} of session ${id} is over`)
  if (token !== undefined && token !== session.token)
    throw problem('session-conflict', `that run of session ${id} is over`)
}

interface Keeping {
  readonly store: SessionStore
  readonly usage: Pick<UsagePort, 'report'>
  readonly limits: {
    limit(tx: Tx, id: string, told: ToldLimit): void
    liftLimit(tx: Tx, id: string, reason: 'report'): void
  }
  readonly note: Note
}

/** What of a report is kept. */
export function keepReport(
  tx: Tx,
  session: SessionRecord,
  report: SessionReportRequest,
  { store, usage, limits, note }: Keeping,
): void {
  store.change(tx, session.id, changeOf(session, report), note)
  if (report.usage !== undefined) usage.report(tx, session, report.usage)
  if (report.rate_limit === null) limits.liftLimit(tx, session.id, 'report')
  else if (report.rate_limit !== undefined) limits.limit(tx, session.id, limitOf(report.rate_limit))
}

function limitOf({ until, message }: ReportedRateLimit): ToldLimit {
  return { source: 'report', message, until: until === undefined ? undefined : timeMs('body.rate_limit.until', until) }
}

function changeOf(session: SessionRecord, report: SessionReportRequest): SessionChange {
  const { resume_key: key, title, model, transcript_path: path } = report
  return {
    ...(key === undefined ? {} : { conversation_id: key }),
    ...(title === undefined || session.titled ? {} : { title }),
    ...(model === undefined ? {} : { reported_model: model }),
    ...(path === undefined ? {} : { log_path: path }),
  }
}

/** What of a report is evidence of what it does; undefined: nothing. */
export function evidenceOf(report: SessionReportRequest, now: number): Report | undefined {
  const { activity, pending } = report
  if (activity === undefined && pending === undefined) return undefined
  const said = report.at === undefined ? now : Math.min(timeMs('body.at', report.at), now)
  return {
    at: said,
    ...(activity === undefined ? {} : { activity }),
    ...(pending === undefined ? {} : { pending: pending === null ? null : pendingOf(pending, said) }),
  }
}

/** Reported again it is another question: it was answered meanwhile, or the answer would have come here. */
function pendingOf(
  { kind, prompt, options = [] }: NonNullable<NonNullable<SessionReportRequest['pending']>>,
  at: number,
): Pending {
  return {
    requestId: `report-${at}`,
    kind,
    ...(prompt === undefined ? {} : { prompt }),
    options: options.map((label, index) => ({ id: String(index + 1), label })),
    metadata: { source: 'report' },
  }
}
