/** Entries of transcripts: what was said in a conversation, on the wire. */
import { Timestamp } from '../base/names.ts'
import { array, boolean, choice, component, integer, optional, record, type Static, string } from '../base/schema.ts'
import { TranscriptId } from './conversations.ts'

export const ENTRY_KINDS = ['inbound', 'outbound'] as const
export const PROVENANCES = ['live', 'hydrated'] as const
export const ENTRY_DELIVERY_STATUSES = ['pending', 'delivered', 'dead'] as const
export type EntryDeliveryStatus = (typeof ENTRY_DELIVERY_STATUSES)[number]

/** Bytes of UTF-8 of one message (decision 139). */
export const MAX_CHAT_TEXT = 64 * 1024
export const MAX_ATTACHMENTS = 20

export const Actor = component('ChatActor', {
  id: string({ minLength: 1, maxLength: 512, description: 'What the provider calls them; of a session its id.' }),
  display_name: string({ maxLength: 512, description: 'As people see them.' }),
  is_bot: boolean({ description: 'True: no person.' }),
})
export type Actor = Static<typeof Actor>

export const ChatMetadata = record(string({ maxLength: 4096 }), {
  maxProperties: 64,
  description: 'Whatever belongs to it; passed on as it is.',
})

export const ChatAttachment = component('ChatAttachment', {
  id: optional(
    string({ maxLength: 64, description: 'Of a file that was uploaded here.', examples: ['at-0123456789abcdef'] }),
  ),
  provider_id: optional(string({ maxLength: 512, description: 'What the provider calls it.' })),
  url: optional(string({ maxLength: 4096, description: 'Where the provider has it; it is never fetched from there.' })),
  mime_type: optional(string({ maxLength: 255 })),
  filename: optional(string({ maxLength: 255 })),
  size: optional(integer({ minimum: 0, description: 'Bytes.' })),
})
export type ChatAttachment = Static<typeof ChatAttachment>

export const TranscriptEntry = component('TranscriptEntry', {
  transcript_id: TranscriptId,
  sequence: integer({ minimum: 1, description: 'Its place in the conversation: 1, 2, 3 … without gaps.' }),
  kind: choice(ENTRY_KINDS, { description: '`inbound`: from the chat. `outbound`: said there from here.' }),
  provenance: choice(PROVENANCES, { description: '`hydrated`: history or what was missed; nobody was told of it.' }),
  provider_message_id: optional(string({ description: 'What the provider calls it; outbound: once it is delivered.' })),
  actor: Actor,
  text: string(),
  explicit_target: optional(string({ description: 'Handle that it was addressed to.' })),
  reply_to_message_id: optional(string({ description: 'What the provider calls the message that it answers.' })),
  attachments: array(ChatAttachment),
  metadata: ChatMetadata,
  source_session_id: optional(
    string({ description: 'Session that said it; absent: the operator, or somebody in the chat.' }),
  ),
  delivery_id: optional(string({ description: 'Outbound: its delivery to the adapter.' })),
  delivery_status: optional(
    choice(ENTRY_DELIVERY_STATUSES, { description: 'Outbound: `dead` where the adapter will not get it any more.' }),
  ),
  received_at: optional({ ...Timestamp, description: 'Inbound: when the adapter got it, as it says.' }),
  created_at: Timestamp,
})
export type TranscriptEntry = Static<typeof TranscriptEntry>
