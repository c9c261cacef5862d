/** Conversations as they are compared and stored: normalised, with the id of their transcript. */
import { createHash } from 'node:crypto'
import { cut } from '../contract/base/text.ts'
import {
  CONVERSATION_KINDS,
  type ConversationKind,
  type ConversationRef,
  MAX_CONVERSATION_PART,
  MAX_PROVIDER,
} from '../contract/messaging/conversations.ts'
import { type Problem, problem } from '../kernel/problem.ts'

/** A reference with every field as it counts; one without a parent has no such field. */
export interface Conversation {
  readonly scope_id: string
  readonly provider: string
  readonly account_id: string
  readonly conversation_id: string
  readonly parent_conversation_id?: string
  readonly kind: ConversationKind
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** What a reference means in a city; 400 `invalid-conversation` where it can mean nothing. `at`: where it stands. */
export function normalConversation(ref: ConversationRef, city: string, at = 'body.conversation'): Conversation {
  const take = (field: keyof ConversationRef, text: string, longest = MAX_CONVERSATION_PART): string => {
    const value = text.trim()
    if (value === '') throw invalid(`${at}.${field}`, 'is empty', text)
    if (value.length > longest) throw invalid(`${at}.${field}`, `has more than ${longest} characters`)
    if (CONTROL.test(value)) throw invalid(`${at}.${field}`, 'has control characters', value)
    return value
  }
  const parent = ref.parent_conversation_id?.trim()
  return {
    scope_id: ref.scope_id === undefined || ref.scope_id.trim() === '' ? city : take('scope_id', ref.scope_id),
    provider: take('provider', ref.provider.toLowerCase(), MAX_PROVIDER),
    account_id: take('account_id', ref.account_id),
    conversation_id: take('conversation_id', ref.conversation_id),
    ...(parent === undefined || parent === ''
      ? {}
      : { parent_conversation_id: take('parent_conversation_id', parent) }),
    kind: kindOf(ref.kind, `${at}.kind`),
  }
}

/** Its transcript: anybody can compute it. */
export function transcriptId(conversation: Conversation): string {
  const { scope_id, provider, account_id, conversation_id, parent_conversation_id = '', kind } = conversation
  const text = JSON.stringify([scope_id, provider, account_id, conversation_id, parent_conversation_id, kind])
  return `cv-${cut(createHash('sha256').update(text).digest('hex'), 32)}`
}

function kindOf(text: string, at: string): ConversationKind {
  const kind = CONVERSATION_KINDS.find((one) => one === text.trim().toLowerCase())
  if (kind === undefined) throw invalid(at, 'is none of dm, room and thread', text)
  return kind
}

const invalid = (location: string, message: string, value?: string): Problem =>
  problem('invalid-conversation', `${location} ${message}`, {
    errors: [{ location, message, ...(value === undefined ? {} : { value: value.slice(0, 80) }) }],
  })
