/** What goes between a bridge and the supervisor, as the contract of adapters has it (decisions 142, 151, 176). */

export interface Conversation {
  readonly provider: string
  readonly account_id: string
  readonly conversation_id: string
  readonly parent_conversation_id?: string
  readonly kind: 'dm' | 'room' | 'thread'
}

export interface Attachment {
  readonly provider_id?: string
  readonly url?: string
  readonly mime_type?: string
}

/** A line of the chat on its way in. */
export interface InboundMessage {
  readonly provider_message_id: string
  readonly conversation: Conversation
  readonly actor: { readonly id: string; readonly display_name: string; readonly is_bot: boolean }
  readonly text: string
  readonly received_at: string
  readonly explicit_target?: string
  readonly reply_to_message_id?: string
  readonly attachments?: readonly Attachment[]
}

/** Something that is to be said in the chat. */
export interface Delivery {
  readonly delivery_id: string
  readonly attempt: number
  readonly conversation: Conversation
  readonly text: string
  readonly reply_to_message_id?: string
  /** Files that go with it, by their names. */
  readonly attachments: readonly string[]
  /** Milliseconds since the epoch. */
  readonly lease_expires_at: number
}

export type FailureKind = 'transient' | 'auth' | 'not_found' | 'rate_limited' | 'permanent' | 'unsupported'

/** What became of a delivery: it is in the chat under this id, or why it is not. */
export type Outcome =
  | { readonly delivered: true; readonly message_id: string }
  | { readonly delivered: false; readonly kind: FailureKind; readonly error: string }

/** What a bridge asks of the supervisor. Throws as the client does. */
export interface Supervisor {
  register(signal: AbortSignal): Promise<void>
  /** Waits a while for something to do. */
  claim(limit: number, signal: AbortSignal): Promise<readonly Delivery[]>
  ack(delivery: string, messageId: string, conversation: Conversation, signal: AbortSignal): Promise<void>
  fail(delivery: string, attempt: number, outcome: Outcome & { delivered: false }, signal: AbortSignal): Promise<void>
  /** One line that is told to agents. */
  post(message: InboundMessage, signal: AbortSignal): Promise<void>
  /** Lines of the past: stored, and nobody is told. */
  postPast(messages: readonly InboundMessage[], signal: AbortSignal): Promise<void>
}
