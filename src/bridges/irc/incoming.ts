/** What a line of the server means for a bridge. Pure: the line and who we are in, a message for agents or nothing out. */
import type { IrcMessage } from 'irc-framework'
import type { Conversation, InboundMessage } from '../library/shapes.ts'
import { addressedIn, ctcpIn, folded, isChannelName, withoutFormatting } from './text.ts'

export const DELIVERY_TAG = '+svc/delivery'
const BOT_TAGS = ['bot', 'draft/bot', 'inspircd.org/bot', DELIVERY_TAG]
const REPLY_TAGS = ['+reply', '+draft/reply']

export interface Reader {
  readonly account: string
  /** Ours at the moment. */
  readonly nick: string
  /** Who we are, or were when this was said. */
  readonly isOwn: (nick: string) => boolean
  /** What people call us. */
  readonly isName: (name: string) => boolean
  readonly mapping: string
  /** Ids of what the server gave none. */
  readonly newKey: () => string
  /** Milliseconds; the server's own time is preferred. */
  readonly now: number
}

/** A message of somebody else, or undefined for everything that is none. */
export function readMessage(message: IrcMessage, reader: Reader): InboundMessage | undefined {
  const { command, params, nick, tags } = message
  const [target, raw] = params
  if ((command !== 'PRIVMSG' && command !== 'NOTICE') || target === undefined || raw === undefined) return undefined
  if (nick === '' || reader.isOwn(nick)) return undefined
  const isNotice = command === 'NOTICE'
  const conversation = conversationOf(target, nick, isNotice, reader)
  const text = textOf(raw, isNotice)
  if (conversation === undefined || text === undefined) return undefined
  // By custom nobody answers a notice by itself: it speaks to nobody, and counts as a machine's.
  const isBot = isNotice || BOT_TAGS.some((tag) => tags[tag] !== undefined)
  const explicit = isNotice ? undefined : addressedIn(text, reader.isName)
  const reply = REPLY_TAGS.map((tag) => tags[tag]).find((id) => id !== undefined && id !== '')
  const { account } = tags
  return {
    provider_message_id: tags['msgid'] || `line-${reader.newKey()}`,
    conversation,
    // A name is anybody's; only the server's word for an account is proof.
    actor: {
      id: account ? `account:${account}` : `nick:${folded(nick, reader.mapping)}`,
      display_name: nick,
      is_bot: isBot,
    },
    text,
    received_at: new Date(timeOf(tags['time']) ?? reader.now).toISOString(),
    ...(explicit === undefined ? {} : { explicit_target: explicit }),
    ...(reply === undefined ? {} : { reply_to_message_id: reply }),
  }
}

function textOf(raw: string, isNotice: boolean): string | undefined {
  const ctcp = ctcpIn(raw)
  if (ctcp !== undefined && (isNotice || ctcp.name !== 'ACTION')) return undefined
  const text = withoutFormatting(ctcp === undefined ? raw : `* ${ctcp.rest}`).trim()
  return text === '' ? undefined : text
}

/** Undefined: it is for the clients of people, not for agents. */
function conversationOf(target: string, nick: string, isNotice: boolean, reader: Reader): Conversation | undefined {
  const { account, mapping } = reader
  // Operators may speak to a part of a channel: `@#c`.
  const name = folded(target.replace(/^[~&@%+]+(?=[#&])/, ''), mapping)
  if (isChannelName(name)) return { provider: 'irc', account_id: account, conversation_id: name, kind: 'room' }
  if (isNotice || name !== folded(reader.nick, mapping)) return undefined
  return { provider: 'irc', account_id: account, conversation_id: folded(nick, mapping), kind: 'dm' }
}

function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : time
}
