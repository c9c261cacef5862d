/** Conversations of chats: how one is named. It has a transcript of its own, whose id follows from the name (sheet 06 §2.1). */
import { component, optional, type Static, string } from '../base/schema.ts'

/** What kinds of conversations there are. */
export const CONVERSATION_KINDS = ['dm', 'room', 'thread'] as const
export type ConversationKind = (typeof CONVERSATION_KINDS)[number]

export const MAX_PROVIDER = 64
/** Characters of an account or of what a provider calls a conversation. */
export const MAX_CONVERSATION_PART = 512

const id = (description: string, example: string) => string({ description, examples: [example] })

export const ConversationRef = component(
  'ConversationRef',
  {
    scope_id: optional(id('Namespace; absent: name of the city.', 'alpha')),
    provider: id('What carries it; letter case does not count.', 'irc'),
    account_id: id('Account of the adapter there.', 'libera'),
    conversation_id: id('What the provider calls it.', '#builds'),
    parent_conversation_id: optional(id('Of a thread or topic: what it is in.', 'C024BE91L')),
    kind: id('`dm`, `room` or `thread`; letter case does not count.', 'room'),
  },
  {
    description: `All six are its identity: another kind or parent is another conversation. Blanks around them are cut off; what is empty, longer than ${MAX_CONVERSATION_PART} characters (provider: ${MAX_PROVIDER}) or has control characters is refused with \`invalid-conversation\`.`,
  },
)
export type ConversationRef = Static<typeof ConversationRef>

export const TRANSCRIPT_ID_PATTERN = '^cv-[0-9a-f]{32}$'
export const TranscriptId = string({
  description: 'Id of the transcript of a conversation: `cv-` and 32 hex digits of a hash of its six fields.',
  examples: ['cv-0123456789abcdef0123456789abcdef'],
})

/** The six fields one by one, as lists are filtered by them; all six mean one conversation. */
export const ConversationFilter = {
  transcript_id: optional(TranscriptId),
  scope_id: optional(string({ description: 'Only of this namespace.' })),
  provider: optional(string({ description: 'Only of this provider.' })),
  account_id: optional(string({ description: 'Only of this account.' })),
  conversation_id: optional(string({ description: 'Only what the provider calls so.' })),
  parent_conversation_id: optional(
    string({ description: 'Only what is in this conversation; empty: what is in none.' }),
  ),
  kind: optional(string({ description: 'Only `dm`, `room` or `thread`.' })),
}
