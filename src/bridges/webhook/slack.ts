/** Events of Slack (Events API) as messages: of people and bots, in channels, threads and private talks. */
import type { Attachment, Conversation } from '../library/shapes.ts'
import { at, type Json, list, text } from './reading.ts'
import { wordsOf } from './slack-words.ts'

/** What is not something said: edits, deletions, people who come and go. */
const SAID = ['', 'bot_message', 'file_share', 'me_message', 'thread_broadcast']
const MOST_FILES = 20

export interface SlackMessage {
  readonly id: string
  readonly conversation: Omit<Conversation, 'provider' | 'account_id'>
  readonly actor: { readonly id: string; readonly display_name: string; readonly is_bot: boolean }
  readonly text: string
  readonly at: string | undefined
  readonly reply: string | undefined
  readonly attachments: readonly Attachment[]
}

/** Undefined: nothing was said. */
export function readSlack(payload: Json): SlackMessage | undefined {
  const event = at(payload, 'event')
  const type = text(event, 'type')
  if (text(payload, 'type') !== 'event_callback' || (type !== 'message' && type !== 'app_mention')) return undefined
  const channel = text(event, 'channel')
  const stamp = text(event, 'ts')
  if (!SAID.includes(text(event, 'subtype')) || channel === '' || stamp === '') return undefined
  const files = list(event, 'files').slice(0, MOST_FILES)
  const said = wordsOf(event)
  if (said === '' && files.length === 0) return undefined
  const bot = text(event, 'bot_id')
  const user = text(event, 'user')
  const thread = text(event, 'thread_ts')
  return {
    // The same message comes as `message` and as `app_mention`, with two ids of events.
    id: `${channel}:${stamp}`,
    conversation: conversationOf(channel, text(event, 'channel_type'), thread === stamp ? '' : thread),
    actor: {
      id: `slack:${user || bot || 'unknown'}`,
      display_name: text(event, 'user_profile', 'display_name') || text(event, 'username') || user || bot || 'somebody',
      is_bot: bot !== '',
    },
    text: said,
    at: timeOf(stamp),
    reply: thread === '' || thread === stamp ? undefined : `${channel}:${thread}`,
    attachments: files.map((file) => ({
      provider_id: text(file, 'id'),
      ...optional('url', text(file, 'url_private')),
      ...optional('mime_type', text(file, 'mimetype')),
    })),
  }
}

const optional = <Name extends string>(
  name: Name,
  value: string,
): { readonly [K in Name]?: string } | Record<never, never> => (value === '' ? {} : { [name]: value })

function conversationOf(channel: string, type: string, thread: string): SlackMessage['conversation'] {
  if (thread !== '') return { conversation_id: thread, parent_conversation_id: channel, kind: 'thread' }
  return { conversation_id: channel, kind: type === 'im' || channel.startsWith('D') ? 'dm' : 'room' }
}

function timeOf(stamp: string): string | undefined {
  const ms = Number(stamp) * 1000
  return Number.isFinite(ms) && ms > 0 && ms < 8.64e15 ? new Date(ms).toISOString() : undefined
}
