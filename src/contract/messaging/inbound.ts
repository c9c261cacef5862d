/** What adapters bring in from chats, one by one or many at a time (sheet 06 §2.3; decisions 151, 152, 176). */
import { Timestamp } from '../base/names.ts'
import { array, boolean, choice, component, object, optional, type Static, string, union } from '../base/schema.ts'
import { ConversationRef, TranscriptId } from './conversations.ts'
import {
  Actor,
  ChatAttachment,
  ChatMetadata,
  MAX_ATTACHMENTS,
  MAX_CHAT_TEXT,
  PROVENANCES,
  TranscriptEntry,
} from './entries.ts'
import { Binding } from './participants.ts'
import { INBOUND_MATCHES } from './routes.ts'

export const MAX_INBOUND_BATCH = 500
/** Bytes of a request that brings messages. */
export const INBOUND_BODY_LIMIT = 8 * 1024 * 1024

const { provider, account_id, ...ownOfConversation } = ConversationRef.properties
const InboundConversation = component(
  'InboundConversation',
  { ...ownOfConversation, provider: optional(provider), account_id: optional(account_id) },
  { description: 'A `ConversationRef`, whose provider and account may be left out: they are those of the adapter.' },
)

export const ExternalInboundMessage = component('ExternalInboundMessage', {
  provider_message_id: string({
    minLength: 1,
    maxLength: 512,
    description: 'What the provider calls it; the same again is the same message.',
  }),
  dedup_key: optional(
    string({
      minLength: 1,
      maxLength: 512,
      description: 'What it is known again by, instead of `provider_message_id`.',
    }),
  ),
  conversation: InboundConversation,
  actor: object({
    id: Actor.properties.id,
    display_name: optional(Actor.properties.display_name),
    is_bot: optional(Actor.properties.is_bot),
  }),
  text: string({ maxLength: MAX_CHAT_TEXT, description: `At most ${MAX_CHAT_TEXT / 1024} KiB of UTF-8.` }),
  received_at: optional({ ...Timestamp, description: 'When it was said; absent: now.' }),
  explicit_target: optional(
    string({ maxLength: 512, description: 'Handle of who is called, where the conversation has a group.' }),
  ),
  reply_to_message_id: optional(
    string({ maxLength: 512, description: 'What the provider calls the message that it answers.' }),
  ),
  attachments: optional(array(ChatAttachment, { maxItems: MAX_ATTACHMENTS })),
  metadata: optional(ChatMetadata),
})
export type ExternalInboundMessage = Static<typeof ExternalInboundMessage>

export const InboundRequest = component('InboundRequest', {
  message: ExternalInboundMessage,
  target: optional(
    string({
      minLength: 1,
      maxLength: 512,
      description: 'Session or agent that a conversation is bound to with this message, if it goes to nobody yet.',
    }),
  ),
})
export const InboundBatchRequest = component('InboundBatchRequest', {
  messages: array(ExternalInboundMessage, { minItems: 1, maxItems: MAX_INBOUND_BATCH, description: 'Oldest first.' }),
  provenance: optional(
    choice(PROVENANCES, {
      description:
        '`hydrated`: history, or what was missed. It is kept, and nobody is told of it. `live` where absent.',
    }),
  ),
})
export const InboundBody = union([InboundRequest, InboundBatchRequest], { $id: 'InboundBody' })
export type InboundBody = Static<typeof InboundBody>

export const InboundResult = component('InboundResult', {
  transcript_id: TranscriptId,
  match: choice(INBOUND_MATCHES, {
    description:
      'Why it goes where it goes. `binding`: the conversation belongs to somebody, or that which its thread is in does. `explicit_target`, `last_addressed`, `default`: who is called in its group, was called last, or is meant else. `no_match`: the group has nobody of that handle. `default_route`: as the configuration says; bound from now on. `target`: as the message said; bound from now on. `unrouted`: nobody; it is kept. `hydrated`: history goes to nobody.',
  }),
  binding: optional(Binding),
  group_route: optional(
    object({
      group_id: string(),
      handle: optional(string({ description: 'Handle of whom it goes to.' })),
      match: choice(INBOUND_MATCHES),
      update_cursor: boolean({ description: 'Whoever was called is meant from now on where nobody is.' }),
    }),
  ),
  target_session_id: optional(string({ description: 'Session that it goes to.' })),
  target_agent_name: optional(string({ description: 'Agent that it goes to: to the session that it has then.' })),
  target_mailbox: optional(string({ description: 'People that it goes to.' })),
  mail_id: optional(string({ description: 'Mail that it became, as a reply.' })),
  told: optional(boolean({ description: 'Whether an agent, or mail of a person, gets it. Absent: history.' })),
  reason: optional(string({ description: 'Why nobody gets it, and what would change that.' })),
  transcript_entry: TranscriptEntry,
  duplicate: boolean({ description: 'True: it was here before, and this is what was answered then.' }),
})
export type InboundResult = Static<typeof InboundResult>
export const InboundBatch = component('InboundBatch', {
  results: array(InboundResult, { description: 'In the order of the messages.' }),
})
export const InboundReply = union([InboundResult, InboundBatch], { $id: 'InboundReply' })
export type InboundReply = Static<typeof InboundReply>

/** What the operation promises besides who may use it: declared with the adapters, whose path it has. */
export const INBOUND = {
  summary: 'Bring in messages of a chat',
  description:
    'One write: the message gets its place in the transcript, goes to whoever it is for, and everybody hears of it. 200 says that it is kept. What was here before is answered as it was then. 400 and 422 will not change by trying again; everything else may.',
  body: InboundBody,
  bodyLimit: INBOUND_BODY_LIMIT,
  replies: { 200: InboundReply },
  problems: ['invalid-conversation', 'recipient-not-found', 'ambiguous-recipient', 'session-conflict'],
  emits: ['extmsg.inbound', 'extmsg.bound', 'extmsg.unbound', 'extmsg.membership_changed'],
} as const
