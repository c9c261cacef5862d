/** A verified webhook → what is told to agents. */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { cut } from '../../contract/base/text.ts'
import type { InboundMessage } from '../library/shapes.ts'
import { readGithub } from './github.ts'
import { isJson, type Json, text } from './reading.ts'
import type { Style } from './signatures.ts'
import { readSlack } from './slack.ts'

const MOST_TEXT = 20_000
const MOST_EVENT = 200

export interface Webhook {
  readonly style: Style
  readonly account: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** What the sender calls it. */
  readonly id: string | undefined
  readonly now: number
}

export type Reading =
  | { readonly kind: 'message'; readonly message: InboundMessage }
  /** Slack asks whether we are there. */
  | { readonly kind: 'challenge'; readonly challenge: string }
  /** Nothing in it is for agents. */
  | { readonly kind: 'nothing'; readonly event: string }
  | { readonly kind: 'unreadable'; readonly why: string }

export function readWebhook(webhook: Webhook): Reading {
  const payload = payloadOf(webhook)
  if (payload === undefined) return { kind: 'unreadable', why: 'the body is no JSON object in UTF-8' }
  if (webhook.style === 'slack' && text(payload, 'type') === 'url_verification')
    return { kind: 'challenge', challenge: cut(text(payload, 'challenge'), 1_000) }
  const message = READERS[webhook.style](payload, webhook)
  return message === undefined
    ? { kind: 'nothing', event: eventOf(payload, webhook) }
    : { kind: 'message', message: bounded(message) }
}

/** Names a webhook for the log. */
function eventOf(payload: Json, { headers }: Webhook): string {
  const parts = [
    String(headers['x-github-event'] ?? ''),
    text(payload, 'event', 'type') || text(payload, 'type'),
    text(payload, 'event', 'subtype'),
  ]
  return cut(parts.filter((part) => part !== '').join(' '), MOST_EVENT)
}

/** GitHub can also send forms, with the JSON in one field. Bytes that are no UTF-8 are no JSON. */
function payloadOf({ headers, body, style }: Webhook): Json | undefined {
  if (!isUtf8(body)) return undefined
  const whole = body.toString('utf8')
  const isForm = style === 'github' && headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
  try {
    const value: unknown = JSON.parse(isForm ? (new URLSearchParams(whole).get('payload') ?? '') : whole)
    return isJson(value) ? value : undefined
  } catch {
    return undefined
  }
}

type Reader = (payload: Json, webhook: Webhook) => InboundMessage | undefined

const READERS: Readonly<Record<Style, Reader>> = {
  github(payload, webhook) {
    const event = webhook.headers['x-github-event']
    const told = readGithub(typeof event === 'string' ? event : 'event', payload)
    if (told === undefined) return undefined
    return {
      ...common(webhook),
      conversation: room('github', webhook.account, told.conversation),
      actor: told.actor,
      text: told.text,
    }
  },
  slack(payload, webhook) {
    const said = readSlack(payload)
    if (said === undefined) return undefined
    return {
      ...common(webhook),
      provider_message_id: said.id,
      conversation: { provider: 'slack', account_id: webhook.account, ...said.conversation },
      actor: said.actor,
      text: said.text,
      ...(said.at === undefined ? {} : { received_at: said.at }),
      ...(said.reply === undefined ? {} : { reply_to_message_id: said.reply }),
      ...(said.attachments.length === 0 ? {} : { attachments: said.attachments }),
    }
  },
  standard(payload, webhook) {
    const type = TYPE_FIELDS.map((field) => text(payload, field)).find((name) => name !== '') ?? 'event'
    const data = payload['data'] ?? payload
    return {
      ...common(webhook),
      conversation: room('webhook', webhook.account, webhook.account),
      actor: { id: `webhook:${webhook.account}`, display_name: webhook.account, is_bot: false },
      text: `${type}\n${JSON.stringify(data, null, 2)}`,
    }
  },
}

/** `type` is that of Standard Webhooks; the others are those of GitLab, Stripe's kin and tools for alerts. */
const TYPE_FIELDS = ['type', 'event_type', 'event_name', 'event', 'object_kind', 'action'] as const

export const providerOf = (style: Style): string => (style === 'standard' ? 'webhook' : style)

const room = (provider: string, account: string, id: string) =>
  ({ provider, account_id: account, conversation_id: id, kind: 'room' }) as const

const common = ({ id, body, now }: Webhook) => ({
  // What the sender calls it; else what it is.
  provider_message_id: id || digestOf(body),
  received_at: new Date(now).toISOString(),
})

export const digestOf = (body: Buffer): string => createHash('sha256').update(body).digest('hex')

/** The rest is in the page that the text links to; an agent reads all of this. */
const bounded = (message: InboundMessage): InboundMessage => ({ ...message, text: cut(message.text, MOST_TEXT, '…') })
