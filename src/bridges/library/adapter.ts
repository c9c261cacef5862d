/** The supervisor as a bridge sees it: the operations of adapters, called with the adapter's own secret. */
import type { Client } from '../../client/client.ts'
import { deadline } from '../../client/clock.ts'
import { ApiProblem } from '../../client/problems.ts'
import { cut } from '../../contract/base/text.ts'
import type { Conversation, Delivery, InboundMessage, Outcome, Supervisor } from './shapes.ts'

const CALL_MS = 30_000
const CLAIM_WAIT_SEC = 30
const DELIVERY_LEASE_SEC = 120
/** Renewed every 30 s; twice may fail. */
const ADAPTER_LEASE_SEC = 100
const LONGEST_ERROR = 2_000
/** As many as the supervisor lists at once. */
const MOST_HANDLES = 1_000

export interface AdapterOptions {
  readonly client: Client
  readonly city: string
  readonly provider: string
  readonly account: string
  readonly name: string
  readonly secret: string
  /** Nothing can be said in the chat: the supervisor lets bots through then. */
  readonly noWayOut?: boolean
}

export class Adapter implements Supervisor {
  readonly #options: AdapterOptions
  readonly #its: { readonly cityName: string; readonly provider: string; readonly accountId: string }
  readonly #headers: Readonly<Record<string, string>>

  constructor(options: AdapterOptions) {
    this.#options = options
    this.#its = { cityName: options.city, provider: options.provider, accountId: options.account }
    this.#headers = { authorization: `Bearer ${options.secret}` }
  }

  /** As whoever runs the bridge: the secret is proved in the body, so that a new city gets to know it. */
  async register(signal: AbortSignal): Promise<void> {
    const { client, city, provider, account, name, secret, noWayOut = false } = this.#options
    using limit = deadline(client.clock, CALL_MS, signal)
    await client.call('register-adapter', {
      params: { cityName: city },
      body: {
        provider,
        account_id: account,
        name,
        transport: 'pull',
        secret,
        lease_seconds: ADAPTER_LEASE_SEC,
        capabilities: {
          supports_child_conversations: false,
          supports_attachments: false,
          max_message_length: 0,
          no_way_out: noWayOut,
        },
      },
      signal: limit.signal,
    })
  }

  async claim(limit: number, signal: AbortSignal): Promise<readonly Delivery[]> {
    const { client } = this.#options
    using until = deadline(client.clock, CALL_MS + CLAIM_WAIT_SEC * 1_000, signal)
    const { body } = await client.call('claim-deliveries', {
      params: this.#its,
      body: { limit, wait: `${CLAIM_WAIT_SEC}s`, lease_seconds: DELIVERY_LEASE_SEC },
      headers: this.#headers,
      signal: until.signal,
    })
    return body.items.map(({ delivery_id, attempt, conversation, entry, lease_expires_at }) => ({
      delivery_id,
      attempt,
      conversation: { ...conversation, kind: kindOf(conversation.kind) },
      text: entry.text,
      ...(entry.reply_to_message_id === undefined ? {} : { reply_to_message_id: entry.reply_to_message_id }),
      attachments: (entry.attachments ?? []).map(({ filename, url, id }) => filename ?? url ?? id ?? 'file'),
      lease_expires_at: Date.parse(lease_expires_at),
    }))
  }

  async ack(delivery: string, messageId: string, _conversation: Conversation, signal: AbortSignal): Promise<void> {
    const { client } = this.#options
    using limit = deadline(client.clock, CALL_MS, signal)
    await client.call('ack-delivery', {
      params: { ...this.#its, deliveryId: delivery },
      body: { receipt: { delivered: true, message_id: messageId } },
      headers: this.#headers,
      signal: limit.signal,
    })
  }

  async fail(
    delivery: string,
    attempt: number,
    { kind, error }: Outcome & { delivered: false },
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#options
    using limit = deadline(client.clock, CALL_MS, signal)
    await client.call('fail-delivery', {
      params: { ...this.#its, deliveryId: delivery },
      body: { attempt, failure_kind: kind, error: cut(error, LONGEST_ERROR) },
      headers: this.#headers,
      signal: limit.signal,
    })
  }

  async post(message: InboundMessage, signal: AbortSignal): Promise<void> {
    await this.#bring({ message: await this.#addressed(message, signal) }, signal)
  }

  /**
   * `note: …` may be any word before a colon: in a group it calls somebody only where somebody is called so. Whoever is
   * called and is not there is nobody, and nobody would be told.
   */
  async #addressed(message: InboundMessage, signal: AbortSignal): Promise<InboundMessage> {
    const { explicit_target: called, ...plain } = message
    if (called === undefined) return message
    const handles = await this.#handlesIn(message.conversation, signal)
    return handles.length === 0 || handles.includes(called) ? message : plain
  }

  /** Handles in the group of a conversation; none where there is no group, or where we are not told. */
  async #handlesIn(conversation: Conversation, signal: AbortSignal): Promise<readonly string[]> {
    const { client, city } = this.#options
    const { provider, account_id, conversation_id, kind } = conversation
    using limit = deadline(client.clock, CALL_MS, signal)
    try {
      const { body } = await client.call('list-participants', {
        params: { cityName: city },
        query: { provider, account_id, conversation_id, kind, limit: MOST_HANDLES },
        signal: limit.signal,
      })
      return body.items.map(({ handle }) => handle)
    } catch (error) {
      // Who runs the bridge may not be allowed to see them: then the line says what it says.
      if (error instanceof ApiProblem && (error.status === 401 || error.status === 403)) return []
      throw error
    }
  }

  async postPast(messages: readonly InboundMessage[], signal: AbortSignal): Promise<void> {
    await this.#bring({ messages: [...messages], provenance: 'hydrated' }, signal)
  }

  async #bring(body: object, signal: AbortSignal): Promise<void> {
    const { client } = this.#options
    using limit = deadline(client.clock, CALL_MS, signal)
    await client.request('receive-inbound', { params: this.#its, body, headers: this.#headers, signal: limit.signal })
  }
}

const kindOf = (kind: string): Conversation['kind'] => (kind === 'dm' || kind === 'thread' ? kind : 'room')
