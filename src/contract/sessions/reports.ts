/** What agents tell of themselves, and what they ask before they use a tool (decisions 225, 226, 236). */
import { durationSchema, Timestamp } from '../base/names.ts'
import {
  anything,
  array,
  choice,
  component,
  integer,
  nullable,
  optional,
  record,
  type Static,
  string,
} from '../base/schema.ts'
import { SessionActivity } from './session-model.ts'
import { change, session } from './sessions.ts'
import { UsageReport } from './usage.ts'

export const ReportedRateLimit = component(
  'ReportedRateLimit',
  {
    until: optional(Timestamp),
    message: optional(string({ maxLength: 4096 })),
  },
  { description: 'It may use its model no more, until then where that is known.' },
)
export type ReportedRateLimit = Static<typeof ReportedRateLimit>

export const ReportedPending = component('ReportedPending', {
  kind: choice(['approval', 'question']),
  prompt: optional(string({ maxLength: 16_384 })),
  options: optional(array(string({ maxLength: 1024 }), { maxItems: 32, description: 'Labels, in order.' })),
})
export type ReportedPending = Static<typeof ReportedPending>

/** Whose word it is: that of one run of the session, which may be over. */
const run = {
  generation: optional(
    integer({ minimum: 0, description: 'Run of the session that it is about (`SVC_RUNTIME_EPOCH`).' }),
  ),
  instance_token: optional(
    string({
      maxLength: 128,
      description: 'Secret of that run (`SVC_INSTANCE_TOKEN`). What is told of another one counts for nothing.',
    }),
  ),
}

export const SessionReportRequest = component('SessionReportRequest', {
  ...run,
  at: optional(Timestamp),
  activity: optional(SessionActivity),
  pending: optional(nullable(ReportedPending)),
  resume_key: optional(
    string({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$',
      description: 'By which its harness takes the conversation up again.',
    }),
  ),
  title: optional(
    string({ minLength: 1, maxLength: 500, pattern: '\\S', description: 'Counts where nobody has named the session.' }),
  ),
  model: optional(string({ minLength: 1, maxLength: 256, description: 'Name of the model that answers.' })),
  transcript_path: optional(
    string({ minLength: 1, maxLength: 4096, pattern: '^/', description: 'File in which its harness logs it.' }),
  ),
  usage: optional(UsageReport),
  rate_limit: optional(nullable(ReportedRateLimit)),
})
export type SessionReportRequest = Static<typeof SessionReportRequest>

export const SessionToolRequest = component('SessionToolRequest', {
  ...run,
  request_id: optional(
    string({
      pattern: '^[A-Za-z0-9._:-]{1,128}$',
      description: 'Who lost the answer asks again under the same id, and is told what was decided.',
    }),
  ),
  tool: string({ minLength: 1, maxLength: 256, description: 'As its harness calls it.' }),
  input: optional(record(anything(), { description: 'What the tool is to be called with.' })),
  timeout: optional(durationSchema('So long an answer is waited for; 10m where absent, at most 1h.')),
})
export type SessionToolRequest = Static<typeof SessionToolRequest>

export const PERMISSION_DECISIONS = ['allow', 'deny', 'none'] as const
export const SessionToolVerdict = component('SessionToolVerdict', {
  request_id: string(),
  decision: choice(PERMISSION_DECISIONS, { description: '`none`: nobody has decided; the harness asks by itself.' }),
  reason: optional(string({ description: 'For the agent.' })),
  by: string({ description: 'Who answered, or which rule; `timeout` where nobody did.' }),
})
export type SessionToolVerdict = Static<typeof SessionToolVerdict>

export const reportSession = change.post('report-session', '/report', {
  summary: 'Say what a session does',
  description:
    'For the session itself, and for hooks of its harness: what it does, what it waits for, by which key it is resumed, what it has used. The same again changes nothing; of a run that is over nothing counts any more.',
  body: SessionReportRequest,
  problems: ['session-conflict'],
  emits: ['session.updated', 'session.pending', 'session.pending_cleared'],
})

export const askSessionPermission = session.post('ask-session-permission', '/permission', {
  summary: 'Ask whether a session may use a tool',
  description:
    'For hooks of its harness. The rules of `permissions` decide, else it is a pending interaction: the answer comes when somebody has answered, `none` when nobody has in time. Who goes away takes the question along.',
  body: SessionToolRequest,
  bodyLimit: 2 * 1024 * 1024,
  replies: { 200: SessionToolVerdict },
  problems: ['session-conflict', 'queue-full'],
  emits: ['session.pending', 'session.pending_cleared', 'session.permission'],
})

export const sessionReportOperations = [reportSession, askSessionPermission] as const
