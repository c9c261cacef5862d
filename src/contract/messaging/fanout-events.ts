/** What the log says of words of agents that other agents were not told of (sheet 06 §2.5; decision 154). */
import type { EventTypes } from '../base/event-type.ts'
import { choice, component, integer, optional, type Static, string } from '../base/schema.ts'
import { TranscriptId } from './conversations.ts'

export const FANOUT_LIMITS = ['untargeted', 'peer_triggered_publishes', 'total_peer_deliveries'] as const

export const FanoutSuppressedPayload = component('FanoutSuppressedPayload', {
  transcript_id: TranscriptId,
  provider: string(),
  account_id: string(),
  conversation_id: string(),
  sequence: integer({ description: 'What was said.' }),
  root: integer({ description: 'Sequence of the message from outside that led to it; 0: none did.' }),
  session_id: optional(string({ description: 'Session that said it.' })),
  limit: choice(FANOUT_LIMITS, {
    description:
      'What of the policy of its group kept it from them. `untargeted`: it was addressed to nobody. `peer_triggered_publishes`: sessions have answered each other often enough. `total_peer_deliveries`: enough was told among them.',
  }),
  suppressed: integer({ minimum: 1, description: 'How many members were not told.' }),
})
export type FanoutSuppressedPayload = Static<typeof FanoutSuppressedPayload>

export const FANOUT_EVENT_TYPES = {
  'extmsg.fanout_suppressed': {
    payload: FanoutSuppressedPayload,
    log: 'city',
    emittedBy: 'messaging',
    subject: 'id of the transcript',
    when: 'members of a conversation were not told of what one of them said, because of a bound of its group',
  },
} as const satisfies EventTypes
