/** What publishing needs of routing and of the outbox. */
import type { OutboundResult } from '../../../contract/messaging/transcripts.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Problem } from '../../../kernel/problem.ts'
import type { Address, Mailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import type { Way } from '../outbox/delivery.ts'

export interface Carrier {
  /** Undefined: nobody carries the conversation. */
  way(tx: Tx, conversation: Conversation): Way | undefined
  /** Resolves when the delivery has come to an end, at the latest after `waitMs`. */
  outcome(deliveryId: string, waitMs: number, signal: AbortSignal): Promise<unknown>
  /** What is known of its delivery; undefined: nothing any more. */
  receipt(deliveryId: string): OutboundResult['receipt']
}

export interface Speaker extends Pick<Address, 'mailbox' | 'display'> {
  /** Empty: nobody runs. */
  readonly session_id: string
}

/** Why somebody may not speak there, and whose the conversation is, if anybody's. */
export interface SpeechRefusal {
  readonly problem: Problem
  readonly owner?: Mailbox
}

export type RefusalToSpeak = (tx: Tx, conversation: Conversation, speaker: Speaker) => SpeechRefusal | undefined
