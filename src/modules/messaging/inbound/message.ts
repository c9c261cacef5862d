/** What an adapter brings, checked: everything that can be wrong with it is said before the first is taken. */

import { MAX_CHAT_TEXT } from '../../../contract/messaging/entries.ts'
import {
  type ExternalInboundMessage,
  type InboundBody,
  MAX_INBOUND_BATCH,
} from '../../../contract/messaging/inbound.ts'
import { given } from '../../../kernel/present.ts'
import { invalidField, timeMs } from '../../../kernel/problem.ts'
import { type Conversation, normalConversation, transcriptId } from '../../../messaging/conversation.ts'
import type { EntryDraft } from '../entries/rows.ts'
import { normalHandle } from '../routing/handles.ts'

/** The adapter that it comes from. */
export interface Source {
  readonly provider: string
  readonly account_id: string
}

export interface Message {
  readonly conversation: Conversation
  readonly transcript: string
  readonly draft: EntryDraft
  /** Whom the conversation is bound to if nobody has it. */
  readonly target: string | undefined
}

interface Context {
  readonly source: Source
  readonly city: string
  readonly now: number
}

/** What a request brings, in its order. */
export function messagesOf(body: InboundBody, context: Context): readonly Message[] {
  if ('message' in body) return [messageOf(body.message, 'body.message', 'live', context, body.target)]
  const { messages, provenance = 'live' } = body
  if (messages.length > MAX_INBOUND_BATCH)
    throw invalidField('body.messages', `has ${messages.length} messages, more than ${MAX_INBOUND_BATCH}`)
  return messages.map((message, index) => messageOf(message, `body.messages[${index}]`, provenance, context))
}

function messageOf(
  message: ExternalInboundMessage,
  at: string,
  provenance: 'live' | 'hydrated',
  { source, city, now }: Context,
  target?: string,
): Message {
  const { actor, text, metadata, attachments } = message
  if (Buffer.byteLength(text) > MAX_CHAT_TEXT)
    throw invalidField(`${at}.text`, `takes more than ${MAX_CHAT_TEXT / 1024} KiB: it is for the bridge to split it`)
  const conversation = conversationOf(message, source, city, `${at}.conversation`)
  const called = normalHandle(message.explicit_target ?? '')
  const draft: EntryDraft = {
    kind: 'inbound',
    provenance,
    providerMessageId: message.provider_message_id,
    actor: { id: actor.id, display_name: actor.display_name ?? actor.id, is_bot: actor.is_bot ?? false },
    text,
    ...(called === '' ? {} : { explicitTarget: called }),
    ...given('replyTo', message.reply_to_message_id),
    ...given('attachments', attachments),
    ...given('metadata', metadata),
    dedupe: dedupeOf(message),
    receivedAt: receivedAt(message.received_at, now, `${at}.received_at`),
  }
  return { conversation, transcript: transcriptId(conversation), draft, target }
}

/** An adapter speaks for its own account and no other. */
function conversationOf(
  { conversation }: ExternalInboundMessage,
  source: Source,
  city: string,
  at: string,
): Conversation {
  const { provider = source.provider, account_id = source.account_id, ...rest } = conversation
  const normal = normalConversation({ ...rest, provider, account_id }, city, at)
  for (const field of ['provider', 'account_id'] as const)
    if (normal[field] !== source[field])
      throw invalidField(`${at}.${field}`, `is not that of the adapter, ${source[field]}`, conversation[field])
  return normal
}

/** Keys of adapters and names of providers are told apart: one may look like the other. */
const dedupeOf = ({ dedup_key: key, provider_message_id: id }: ExternalInboundMessage): string =>
  key === undefined ? `id:${id}` : `key:${key}`

/** The zero of a program that knows no time is no time. */
function receivedAt(text: string | undefined, now: number, at: string): number {
  const ms = text === undefined ? 0 : timeMs(at, text)
  return ms <= 0 ? now : ms
}
