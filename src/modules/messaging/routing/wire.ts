/** Who takes part, as clients see it and as events tell of it. */

import type { Binding, Group, Participant } from '../../../contract/messaging/participants.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { given } from '../../../kernel/present.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import type { BindingRow, GroupRow, ParticipantRow } from './rows.ts'
import { wireTarget } from './targets.ts'

const time = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : isoTime(ms))

/** True for one that counts at this time: what has expired is over, also before anybody has said so. */
export const isActive = ({ ended_at: ended, expires_at: expires }: BindingRow, now: number): boolean =>
  ended === undefined && (expires === undefined || expires > now)

export function wireBinding(row: BindingRow, now: number): Binding {
  const active = isActive(row, now)
  const expired = !active && row.ended_at === undefined
  return {
    id: row.id,
    transcript_id: row.transcript_id,
    conversation: row.conversation,
    ...wireTarget(row),
    status: active ? 'active' : 'ended',
    binding_generation: row.generation,
    bound_at: isoTime(row.bound_at),
    ...given('expires_at', time(row.expires_at)),
    ...given('ended_at', time(expired ? row.expires_at : row.ended_at)),
    ...given('ended_reason', expired ? 'expired' : row.ended_reason),
    metadata: { ...row.metadata },
  }
}

export const wireGroup = (row: GroupRow): Group => ({
  id: row.id,
  transcript_id: row.transcript_id,
  root_conversation: row.conversation,
  mode: row.mode,
  ...given('default_handle', row.default_handle),
  ...given('last_addressed_handle', row.last_addressed_handle),
  fanout_policy: row.fanout,
  metadata: { ...row.metadata },
  created_at: isoTime(row.created_at),
  updated_at: isoTime(row.updated_at),
})

export const wireParticipant = (row: ParticipantRow): Participant => {
  const { session_id, session_name, agent_name } = wireTarget(row)
  return {
    id: row.id,
    group_id: row.group_id,
    handle: row.handle,
    ...given('session_id', session_id),
    ...given('session_name', session_name),
    ...given('agent_name', agent_name),
    public: row.public,
    status: row.removed_at === undefined ? 'active' : 'removed',
    metadata: { ...row.metadata },
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
    ...given('removed_at', time(row.removed_at)),
  }
}

/** Which conversation an event is about. */
export const placeOf = (transcript: string, { provider, account_id, conversation_id }: Conversation) => ({
  transcript_id: transcript,
  provider,
  account_id,
  conversation_id,
})
