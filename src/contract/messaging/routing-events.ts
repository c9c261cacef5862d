/** Events of who takes part in conversations, and of what comes in (sheet 06 §2.9). */
import type { EventTypes } from '../base/event-type.ts'
import { choice, component, integer, optional, type Static, string } from '../base/schema.ts'
import { FanoutPolicy, GROUP_MODES } from './participants.ts'
import { INBOUND_MATCHES } from './routes.ts'

export const BOUND_REASONS = ['bound', 'refreshed', 'handoff', 'default_route', 'target'] as const
export type BoundReason = (typeof BOUND_REASONS)[number]
export const UNBOUND_REASONS = ['requested', 'expired', 'handoff', 'session_closed', 'transcript_deleted'] as const
export type UnboundReason = (typeof UNBOUND_REASONS)[number]
export const REMOVED_REASONS = ['requested', 'group_deleted', 'session_closed'] as const
export type RemovedReason = (typeof REMOVED_REASONS)[number]

const where = {
  transcript_id: string(),
  provider: string(),
  account_id: string(),
  conversation_id: string(),
}
const who = {
  session_id: optional(string()),
  agent_name: optional(string()),
}

export const BoundPayload = component('BoundPayload', {
  binding_id: string(),
  binding_generation: integer(),
  ...where,
  ...who,
  mailbox: optional(string()),
  reason: choice(BOUND_REASONS, {
    description:
      '`refreshed`: it was bound to the same before, and changed. `handoff`: it was taken from another. `default_route`: as the configuration says. `target`: as the first message said.',
  }),
  replaced_binding_id: optional(string({ description: 'Binding that it was taken from.' })),
})
export const UnboundPayload = component('UnboundPayload', {
  binding_id: string(),
  binding_generation: integer(),
  ...where,
  ...who,
  mailbox: optional(string()),
  reason: choice(UNBOUND_REASONS),
})
export const GroupPayload = component('GroupPayload', {
  group_id: string(),
  ...where,
  mode: choice(GROUP_MODES),
  default_handle: optional(string()),
  last_addressed_handle: optional(string()),
  fanout_policy: FanoutPolicy,
})
export const GroupDeletedPayload = component('GroupDeletedPayload', { group_id: string(), ...where })
const participant = { participant_id: string(), group_id: string(), transcript_id: string(), handle: string(), ...who }
export const ParticipantPayload = component('ParticipantPayload', participant)
export const ParticipantRemovedPayload = component('ParticipantRemovedPayload', {
  ...participant,
  reason: choice(REMOVED_REASONS),
})

export const InboundPayload = component('InboundPayload', {
  ...where,
  sequence: integer({ description: 'Its place in the transcript.' }),
  provider_message_id: string(),
  actor: string({ description: 'Who said it, as the chat shows it.' }),
  match: choice(INBOUND_MATCHES),
  target_session: optional(string({ description: 'Session that it goes to.' })),
  target_agent: optional(string({ description: 'Agent that it goes to.' })),
  target_mailbox: optional(string({ description: 'People that it goes to.' })),
})
export type InboundPayload = Static<typeof InboundPayload>

const inLog = { log: 'city', emittedBy: 'messaging' } as const
const aboutTarget = { ...inLog, subject: 'session, agent or mailbox' } as const
const aboutGroup = { ...inLog, subject: 'its group' } as const
const aboutHandle = { ...inLog, subject: 'the participant' } as const
export const ROUTING_EVENT_TYPES = {
  'extmsg.bound': { payload: BoundPayload, ...aboutTarget, when: 'a conversation belongs to somebody from now on' },
  'extmsg.unbound': { payload: UnboundPayload, ...aboutTarget, when: 'a binding ended' },
  'extmsg.group_created': { payload: GroupPayload, ...aboutGroup, when: 'a conversation got a group' },
  'extmsg.group_updated': { payload: GroupPayload, ...aboutGroup, when: 'a group changed' },
  'extmsg.group_deleted': { payload: GroupDeletedPayload, ...aboutGroup, when: 'a group was deleted' },
  'extmsg.participant_upserted': {
    payload: ParticipantPayload,
    ...aboutHandle,
    when: 'a handle means somebody, or somebody else',
  },
  'extmsg.participant_removed': { payload: ParticipantRemovedPayload, ...aboutHandle, when: 'a handle means nobody' },
  'extmsg.inbound': {
    payload: InboundPayload,
    ...inLog,
    subject: 'session, agent or mailbox that it goes to; else its transcript',
    when: 'somebody said something in a chat; also where it goes to nobody',
  },
} as const satisfies EventTypes
