/** Sessions, and what waits for them or is said to them, as they are shown. */
import type { DeliveryInfo, SessionExit, SessionResponse, WaitInfo } from '../../contract/session-model.ts'
import { relativeTime } from '../base/output.ts'
import type { AnswerOf, View } from '../framework/declaration.ts'

const id = (item: { readonly id: string }): string => item.id

export const SESSION: View<SessionResponse> = {
  columns: [
    { header: 'ID', value: id },
    { header: 'ALIAS', value: (session) => session.alias },
    { header: 'TEMPLATE', value: (session) => session.template },
    { header: 'STATE', value: (session) => session.state, kind: 'state' },
    { header: 'ACTIVITY', value: (session) => (session.pending === undefined ? session.activity : 'needs answer') },
    { header: 'BEAD', value: (session) => session.active_bead },
    { header: 'QUEUED', value: (session) => (session.queued === 0 ? undefined : session.queued) },
    { header: 'LAST_ACTIVE', value: (session) => session.last_active, kind: 'time' },
    { header: 'TITLE', value: (session) => session.title },
    { header: 'REASON', value: (session) => session.reason, wide: true },
    { header: 'DESIRED', value: (session) => session.desired, wide: true },
    { header: 'RUNTIME', value: (session) => session.runtime, wide: true },
    { header: 'PROVIDER', value: (session) => session.provider, wide: true },
    { header: 'SESSION_NAME', value: (session) => session.session_name, wide: true },
    { header: 'PID', value: (session) => session.pid, wide: true },
    { header: 'GENERATION', value: (session) => session.generation, wide: true },
    { header: 'CRASHES', value: (session) => session.crash_count, wide: true },
    { header: 'QUARANTINED_UNTIL', value: (session) => session.quarantined_until, kind: 'time', wide: true },
    {
      header: 'LAST_EXIT',
      value: ({ last_exit: exit }) => exit && `${exit.classification}: ${howItEnded(exit)}`,
      wide: true,
    },
    { header: 'WORK_DIR', value: (session) => session.work_dir, wide: true },
    { header: 'ATTACHED', value: (session) => session.attached, wide: true },
    { header: 'PINNED', value: (session) => session.pinned, wide: true },
    { header: 'CREATED_AT', value: (session) => session.created_at, kind: 'time', wide: true },
    { header: 'OBSERVED_AT', value: (session) => session.observed_at, kind: 'time', wide: true },
  ],
  name: id,
}

export const DELIVERY: View<DeliveryInfo> = {
  columns: [
    { header: 'ID', value: id },
    { header: 'SEQ', value: (delivery) => delivery.seq },
    { header: 'STATE', value: (delivery) => delivery.state, kind: 'state' },
    { header: 'SOURCE', value: (delivery) => delivery.source },
    { header: 'CREATED_AT', value: (delivery) => delivery.created_at, kind: 'time' },
    { header: 'TEXT', value: (delivery) => delivery.text },
    { header: 'ERROR', value: (delivery) => delivery.error_code, wide: true },
  ],
  name: id,
}

export const WAIT: View<WaitInfo> = {
  columns: [
    { header: 'ID', value: id },
    { header: 'STATE', value: (wait) => wait.state, kind: 'state' },
    { header: 'SESSION', value: (wait) => wait.session_id },
    { header: 'BEADS', value: ({ dep_ids: beads, dep_mode: mode }) => `${mode} of ${beads.join(', ')}` },
    { header: 'EXPIRES_AT', value: (wait) => wait.expires_at, kind: 'time' },
    { header: 'NOTE', value: (wait) => wait.note, wide: true },
    { header: 'FINISHED_AT', value: (wait) => wait.finished_at, kind: 'time', wide: true },
  ],
  name: id,
}

export const PENDING: View<AnswerOf<'get-session-pending'>> = {
  columns: [
    { header: 'SUPPORTED', value: ({ supported }) => supported },
    { header: 'REQUEST_ID', value: ({ pending }) => pending?.request_id },
    { header: 'KIND', value: ({ pending }) => pending?.kind },
    { header: 'PROMPT', value: ({ pending }) => pending?.prompt },
    { header: 'OPTIONS', value: ({ pending }) => pending?.options?.join(' | ') },
  ],
  name: ({ pending }) => pending?.request_id ?? '',
}

export const DRAIN: View<AnswerOf<'get-session-drain'>> = {
  columns: [
    { header: 'DRAINING', value: ({ draining }) => draining },
    { header: 'REASON', value: ({ reason }) => reason },
    { header: 'SINCE', value: ({ since }) => since, kind: 'time' },
    { header: 'DEADLINE', value: ({ deadline }) => deadline, kind: 'time' },
    { header: 'ACKNOWLEDGED', value: ({ acknowledged }) => acknowledged },
  ],
  name: ({ draining }) => (draining ? 'draining' : ''),
}

export const STOPPED: View<AnswerOf<'stop-session'>> = {
  columns: [
    { header: 'ID', value: ({ session }) => session.id },
    { header: 'INTERRUPTED', value: ({ interrupted }) => interrupted },
    { header: 'STATE', value: ({ session }) => session.state, kind: 'state' },
  ],
  name: ({ session }) => session.id,
}

export const DELETED: View<AnswerOf<'delete-session'>> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'ID', value: id },
  ],
  name: id,
}

export const PRUNED: View<AnswerOf<'prune-sessions'>> = {
  columns: [{ header: 'DELETED', value: ({ count }) => count }],
  name: ({ deleted }) => deleted.join('\n'),
}

export const SUB_AGENT: View<AnswerOf<'list-session-agents'>['agents'][number]> = {
  columns: [
    { header: 'AGENT_ID', value: ({ agent_id }) => agent_id },
    { header: 'PARENT', value: ({ parent_tool_use_id }) => parent_tool_use_id },
  ],
  name: ({ agent_id }) => agent_id,
}

/** `exited with 3`, `signalled by SIGSEGV: last words`. */
function howItEnded({ reason, code, signal, message }: SessionExit): string {
  const number = code === undefined ? '' : ` with ${code}`
  const by = signal === undefined ? '' : ` by ${signal}`
  return `${reason}${number}${by}${message === undefined ? '' : `: ${message}`}`
}

/** That it does not run, and why, for whoever reads what it said; undefined: it runs. */
export function endOf(session: SessionResponse, now: number): string | undefined {
  if (session.running) return undefined
  const { state, state_since: since, last_exit: exit, reason } = session
  const why = exit === undefined ? reason : howItEnded(exit)
  return `the session does not run: ${state}, ${relativeTime(since, now)}${why === undefined ? '' : ` (${why})`}`
}
