/** What of sessions needs a person: questions that are open, and sessions that cannot go on by themselves. */
import { isoTime } from '../../../kernel/clock.ts'
import type { NeedDraft, NeedSource } from '../../../kernel/needs.ts'
import type { Pending } from '../../../runtimes/process/runtime.ts'
import type { LiveFacts } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'

interface Looked {
  readonly store: {
    byId(id: string): SessionRecord | undefined
    open(): readonly SessionRecord[]
  }
  live(id: string): LiveFacts | undefined
}

const nameOf = ({ alias, agent }: SessionRecord): string => alias ?? agent
const subjectOf = (session: SessionRecord): NeedDraft['subject'] => ({
  kind: 'session',
  id: session.id,
  name: nameOf(session),
})

/** Questions and permission requests. */
export const questionNeeds = (sessions: Looked): NeedSource => ({
  name: 'questions',
  types: ['session.*'],
  subjectsOf: ({ subject }) => (subject === undefined ? [] : [subject]),
  subjects: () => sessions.store.open().map(({ id }) => id),
  needsOf: (_, id) => {
    const session = sessions.store.byId(id)
    const facts = sessions.live(id)
    if (session === undefined || facts === undefined || session.closed_at !== undefined) return []
    // Nobody has looked at its process since the supervisor started.
    if (session.process && facts.source === 'none') return undefined
    return facts.pending === undefined ? [] : [questionOf(session, facts.pending, facts.pendingSince)]
  },
})

function questionOf(session: SessionRecord, pending: Pending, since: number | undefined): NeedDraft {
  const { requestId, kind, prompt, options } = pending
  const name = nameOf(session)
  return {
    key: requestId,
    kind,
    ...(since === undefined ? {} : { since }),
    subject: subjectOf(session),
    title: `${name} ${kind === 'approval' ? 'asks for permission' : 'asks'}: ${firstLine(prompt ?? 'see its screen')}`,
    ...(prompt === undefined ? {} : { content: prompt }),
    operations: (options.length === 0 ? [{ id: 'approve', label: 'Approve' }] : options).map((option) => ({
      operation: 'respond-session',
      params: { id: session.id, request_id: requestId, action: 'option', option_id: option.id },
      label: option.label,
      command: `svcctl session respond ${name} ${quoted(option.id)}`,
    })),
  }
}

/** Sessions that nothing starts again by itself, or whose last start failed. */
export const sessionNeeds = (sessions: Looked): NeedSource => ({
  name: 'sessions',
  types: ['session.*'],
  subjectsOf: ({ subject }) => (subject === undefined ? [] : [subject]),
  subjects: () => sessions.store.open().map(({ id }) => id),
  needsOf: (_, id) => {
    const session = sessions.store.byId(id)
    if (session === undefined || session.closed_at !== undefined) return []
    const found = stateNeed(session)
    const limited = limitNeed(session)
    return [...(found === undefined ? [] : [found]), ...(limited === undefined ? [] : [limited])]
  },
})

function stateNeed(session: SessionRecord): NeedDraft | undefined {
  const name = nameOf(session)
  const lastWords = session.last_exit?.message
  const shared: Pick<NeedDraft, 'subject' | 'since' | 'detail' | 'operations'> = {
    subject: subjectOf(session),
    since: session.state_since,
    ...(lastWords === undefined ? {} : { detail: lastWords }),
    operations: [
      { operation: 'wake-session', params: { id: session.id }, label: 'Start', command: `svcctl session wake ${name}` },
      {
        operation: 'get-session-transcript',
        params: { id: session.id },
        label: 'Log',
        command: `svcctl session logs ${name}`,
      },
    ],
  }
  const reason = session.reason === undefined ? '' : `: ${session.reason}`
  if (session.state === 'quarantined')
    return { ...shared, key: 'quarantined', kind: 'agent_quarantined', title: `${name} failed too often${reason}` }
  if (session.state === 'suspended' && session.reason === 'budget')
    return { ...shared, key: 'budget', kind: 'budget_suspended', title: `${name} is suspended: its budget is used up` }
  if (session.state === 'start-pending' && session.attempts > 0)
    return { ...shared, key: 'start', kind: 'agent_failed_start', title: `${name} could not start${reason}` }
  return undefined
}

function limitNeed(session: SessionRecord): NeedDraft | undefined {
  const { limited_until: until, limited_at: since, limit_message: message } = session
  if (until === undefined) return undefined
  return {
    key: 'limit',
    kind: 'rate_limited',
    subject: subjectOf(session),
    ...(since === undefined ? {} : { since }),
    title: `${nameOf(session)} is limited by its provider until ${isoTime(until)}`,
    ...(message === undefined ? {} : { detail: message }),
  }
}

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? ''
/** As a shell takes it. */
const quoted = (word: string): string => (/^[\w.:/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
