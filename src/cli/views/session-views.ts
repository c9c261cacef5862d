/** Sessions, and what waits for them or is said to them, as they are shown. */

import type { DeliveryInfo, SessionExit, SessionResponse, WaitInfo } from '../../contract/sessions/session-model.ts'
import { relativeTime } from '../base/output.ts'
import type { AnswerOf } from '../framework/declaration.ts'
import { view } from '../print/view.ts'
import { moneyOf } from './usage-views.ts'

export const SESSION = view<SessionResponse>()('id alias template state ACTIVITY BEAD QUEUED last_active title', {
  wide: 'reason desired runtime provider session_name pid generation COST limited_until limit_source CRASHES quarantined_until LAST_EXIT work_dir attached pinned created_at observed_at',
  as: {
    ACTIVITY: (session) =>
      session.pending !== undefined
        ? 'needs answer'
        : session.limited_until !== undefined
          ? 'limited'
          : session.activity,
    BEAD: 'active_bead',
    QUEUED: (session) => (session.queued === 0 ? undefined : session.queued),
    COST: ({ usage }) => usage && moneyOf(usage),
    CRASHES: 'crash_count',
    LAST_EXIT: ({ last_exit: exit }) => exit && exitText(exit),
  },
})

export const DELIVERY = view<DeliveryInfo>()('id seq state WAITS_FOR source created_at text', {
  wide: 'FROM ERROR',
  as: { WAITS_FOR: 'waits_for', FROM: 'sender.name', ERROR: 'error_code' },
})

export const WAIT = view<WaitInfo>()('id state SESSION BEADS expires_at', {
  wide: 'note finished_at',
  as: { SESSION: 'session_id', BEADS: ({ dep_ids: beads, dep_mode: mode }) => `${mode} of ${beads.join(', ')}` },
})

export const PENDING = view<AnswerOf<'get-session-pending'>>()(
  'supported pending.request_id pending.kind pending.prompt OPTIONS',
  { as: { OPTIONS: ({ pending }) => pending?.options?.join(' | ') }, name: ({ pending }) => pending?.request_id ?? '' },
)

export const OPTION = view<AnswerOf<'get-session-options'>['options'][number]>()('key value current applies CHOICES', {
  as: {
    CHOICES: ({ choices, free }) => [...choices.map(({ value }) => value || '""'), ...(free ? ['…'] : [])].join(' '),
  },
})

export const DRAIN = view<AnswerOf<'get-session-drain'>>()('draining reason since deadline acknowledged', {
  name: ({ draining }) => (draining ? 'draining' : ''),
})

export const STOPPED = view<AnswerOf<'stop-session'>>()('session.id interrupted session.state')

export const DELETED = view<AnswerOf<'delete-session'>>()('status id', { name: 'id' })

export const PRUNED = view<AnswerOf<'prune-sessions'>>()('DELETED', {
  as: { DELETED: 'count' },
  name: ({ deleted }) => deleted.join('\n'),
})

export const SUB_AGENT = view<AnswerOf<'list-session-agents'>['agents'][number]>()('agent_id PARENT', {
  as: { PARENT: 'parent_tool_use_id' },
})

export const VERDICT = view<AnswerOf<'ask-session-permission'>>()('decision by reason request_id', { name: 'decision' })

export const exitText = (exit: SessionExit): string => `${exit.classification}: ${howItEnded(exit)}`

/** `exited with 3`, `signalled by SIGSEGV: last words`. */
export function howItEnded({ reason, code, signal, message, output }: SessionExit): string {
  const number = code === undefined ? '' : ` with ${code}`
  const by = signal === undefined ? '' : ` by ${signal}`
  const words = message ?? output?.split('\n').at(-1)
  return `${reason}${number}${by}${words === undefined ? '' : `: ${words}`}`
}

/** That it does not run, and why, for whoever reads what it said; undefined: it runs. */
export function endOf(session: SessionResponse, now: number): string | undefined {
  if (session.running) return undefined
  const { state, state_since: since, last_exit: exit, reason } = session
  const why = exit === undefined ? reason : howItEnded(exit)
  return `the session does not run: ${state}, ${relativeTime(since, now)}${why === undefined ? '' : ` (${why})`}`
}
