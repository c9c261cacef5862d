/** Asks an adapter to open a conversation within another one: a thread, a topic. */
import { cut } from '../../../contract/base/text.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { type Problem, problem } from '../../../kernel/problem.ts'
import { type Conversation, normalConversation } from '../../../messaging/conversation.ts'
import { sign } from '../../../messaging/signature.ts'
import { type Adapter, nameOfKey } from '../adapters/adapter.ts'
import { below } from '../adapters/url.ts'
import { type Posted, post } from './post.ts'

export interface ChildWanted {
  readonly adapter: Adapter
  readonly secrets: readonly string[]
  readonly parent: Conversation
  readonly label: string
  readonly city: string
}

/** 409 where the adapter cannot, 502 where it does not. */
export async function openChild(wanted: ChildWanted, clock: Clock, signal: AbortSignal): Promise<Conversation> {
  const { adapter, secrets, parent, label, city } = wanted
  if (adapter.callback_url === undefined || adapter.capabilities.supports_child_conversations !== true)
    throw problem('adapter-unsupported', `${nameOfKey(adapter)} does not say that it supports child conversations`)
  const body = Buffer.from(JSON.stringify({ conversation: parent, label }))
  const signed = secrets.length === 0 ? {} : sign(secrets, `child-${randomHex(12)}`, clock.now(), body)
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'x-svc-request': 'true', ...signed }
  const posted = await post(
    { url: below(adapter.callback_url, 'child-conversation'), headers, body },
    clock,
    signal,
  ).catch((error: unknown) => {
    throw badGateway(adapter, error instanceof Error ? error.message : String(error))
  })
  return conversationIn(posted, adapter, city)
}

function conversationIn({ status, body }: Posted, adapter: Adapter, city: string): Conversation {
  if (status !== 200 && status !== 201) throw badGateway(adapter, `it answered HTTP ${status}`)
  const said = parsed(body)
  const [provider, account, id, kind] = ['provider', 'account_id', 'conversation_id', 'kind'].map((field) =>
    textIn(said, field),
  )
  if (id === undefined || kind === undefined) throw badGateway(adapter, 'its answer is no conversation')
  const ref = {
    scope_id: textIn(said, 'scope_id') ?? city,
    provider: provider ?? adapter.provider,
    account_id: account ?? adapter.account_id,
    conversation_id: id,
    parent_conversation_id: textIn(said, 'parent_conversation_id') ?? '',
    kind,
  }
  const conversation = asConversation(ref, adapter, city)
  if (nameOfKey(conversation) !== nameOfKey(adapter)) throw badGateway(adapter, 'its answer is of another account')
  return conversation
}

function asConversation(ref: Parameters<typeof normalConversation>[0], adapter: Adapter, city: string): Conversation {
  try {
    return normalConversation(ref, city)
  } catch (error) {
    throw badGateway(
      adapter,
      `its answer is no conversation: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

function parsed(body: Buffer | undefined): unknown {
  try {
    return JSON.parse(body?.toString('utf8') ?? '')
  } catch {
    return undefined
  }
}

function textIn(value: unknown, field: string): string | undefined {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined
  return typeof found === 'string' ? found : undefined
}

const badGateway = (adapter: Adapter, why: string): Problem =>
  problem('bad-gateway', `${nameOfKey(adapter)} opened no conversation: ${cut(why, 500)}`)
