/**
 * Fits a message from a chat to what the supervisor accepts. The sender was already told that its message is on disk, so
 * nothing about one field may lose the message: a text is shortened, and half of an emoji becomes U+FFFD.
 */
import { cut } from '../../contract/base/text.ts'
import { MAX_CONVERSATION_PART } from '../../contract/messaging/conversations.ts'
import { MAX_ATTACHMENTS, MAX_CHAT_TEXT } from '../../contract/messaging/entries.ts'
import type { Attachment, Conversation, InboundMessage } from './shapes.ts'

/** The limit of a text is in bytes; one UTF-16 unit has at most three. */
const MAX_TEXT = Math.floor(MAX_CHAT_TEXT / 3)
const MAX_NAME = 512
const MAX_URL = 4096
const MAX_MIME_TYPE = 255
const NAMELESS = 'unknown'

// biome-ignore lint/suspicious/noControlCharactersInRegex: the supervisor refuses them in names.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

export function acceptable(message: InboundMessage): InboundMessage {
  const { actor, explicit_target: target, reply_to_message_id: reply, attachments } = message
  return {
    ...message,
    provider_message_id: name(message.provider_message_id, MAX_NAME),
    conversation: conversationOf(message.conversation),
    actor: { ...actor, id: name(actor.id, MAX_NAME), display_name: shortened(actor.display_name, MAX_NAME) },
    text: shortened(message.text, MAX_TEXT),
    ...(target === undefined ? {} : { explicit_target: shortened(target, MAX_NAME) }),
    ...(reply === undefined ? {} : { reply_to_message_id: name(reply, MAX_NAME) }),
    ...(attachments === undefined ? {} : { attachments: attachments.slice(0, MAX_ATTACHMENTS).map(attachmentOf) }),
  }
}

function conversationOf({ parent_conversation_id: parent, ...rest }: Conversation): Conversation {
  return {
    ...rest,
    conversation_id: name(rest.conversation_id, MAX_CONVERSATION_PART),
    ...(parent === undefined ? {} : { parent_conversation_id: name(parent, MAX_CONVERSATION_PART) }),
  }
}

/** A URL or a media type that is too long has no use when it is shortened. */
function attachmentOf({ provider_id: id, url, mime_type: type }: Attachment): Attachment {
  return {
    ...(id === undefined ? {} : { provider_id: name(id, MAX_NAME) }),
    ...(url === undefined || url.length > MAX_URL ? {} : { url: url.toWellFormed() }),
    ...(type === undefined || type.length > MAX_MIME_TYPE ? {} : { mime_type: type.toWellFormed() }),
  }
}

const shortened = (text: string, limit: number): string => cut(text.toWellFormed(), limit, '…')

const name = (text: string, limit: number): string =>
  cut(text.toWellFormed().replaceAll(CONTROL, ' ').trim(), limit).trim() || NAMELESS
