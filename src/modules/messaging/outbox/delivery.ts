/** A delivery as it is stored, and as it is shown. */
import {
  type DeliveryStatus,
  FAILURE_KINDS,
  type FailureKind,
  type OutboundDelivery,
  type PublishReceipt,
} from '../../../contract/messaging/deliveries.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row, Tx } from '../../../kernel/database.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import { numberOf, textOf, wordOf } from '../base/rows.ts'
import type { EntryRow } from '../entries/rows.ts'

const STATES = ['behind', 'ready', 'flying', 'delivered', 'dead'] as const
type State = (typeof STATES)[number]

/** What is to be delivered: an entry of a transcript. */
export interface OutboxDraft {
  /** Its id, which the entry has too. */
  readonly id: string
  readonly transcript_id: string
  readonly sequence: number
  readonly conversation: Conversation
  readonly session_id?: string | undefined
  /** Sequence of the message from outside that the chain began with; 0: none. */
  readonly root: number
  /** As it was written, in the same write. */
  readonly entry: EntryRow
}

/** How what is said in a conversation gets out; good for the write that asked. */
export interface Way {
  /** Whether who carries it is there. */
  readonly online: boolean
  /** What an entry is from the first: where readers fetch it themselves it is delivered with the commit. */
  readonly status: 'pending' | 'delivered'
  /** On its way from the commit on. */
  enqueue(tx: Tx, draft: OutboxDraft): void
}

export interface Delivery {
  readonly seq: number
  readonly id: string
  readonly provider: string
  readonly account_id: string
  readonly transcript_id: string
  readonly sequence: number
  readonly conversation_id: string
  readonly session_id: string | undefined
  readonly root: number
  readonly state: State
  readonly attempts: number
  readonly tries: number
  readonly answered: number
  readonly since: number
  readonly next_at: number
  readonly lease_until: number | undefined
  readonly failure_kind: FailureKind | undefined
  readonly last_error: string | undefined
  readonly receipt: PublishReceipt | undefined
  readonly created_at: number
  readonly settled_at: number | undefined
}

const STATUS: Readonly<Record<State, DeliveryStatus>> = {
  behind: 'pending',
  ready: 'pending',
  flying: 'in_flight',
  delivered: 'delivered',
  dead: 'dead',
}
export const statusOf = ({ state }: Delivery): DeliveryStatus => STATUS[state]
/** What a filter by status means; `pending` is everything that is not over. */
export const STATES_OF: Readonly<Record<DeliveryStatus, readonly State[]>> = {
  pending: ['behind', 'ready', 'flying'],
  in_flight: ['flying'],
  delivered: ['delivered'],
  dead: ['dead'],
}

export const isOver = ({ state }: Delivery): boolean => state === 'delivered' || state === 'dead'

export function deliveryOf(row: Row): Delivery {
  const { failure_kind, receipt_json } = row
  return {
    seq: Number(row.seq),
    id: String(row.id),
    provider: String(row.provider),
    account_id: String(row.account_id),
    transcript_id: String(row.transcript_id),
    sequence: Number(row.sequence),
    conversation_id: String(row.conversation_id),
    session_id: textOf(row.session_id),
    root: Number(row.root),
    state: wordOf(STATES, row.state, 'a state'),
    attempts: Number(row.attempts),
    tries: Number(row.tries),
    answered: Number(row.answered),
    since: Number(row.since),
    next_at: Number(row.next_at),
    lease_until: numberOf(row.lease_until),
    failure_kind: failure_kind === null ? undefined : wordOf(FAILURE_KINDS, failure_kind, 'a kind of failure'),
    last_error: textOf(row.last_error),
    receipt: receipt_json === null ? undefined : JSON.parse(String(receipt_json)),
    created_at: Number(row.created_at),
    settled_at: numberOf(row.settled_at),
  }
}

export function shown(one: Delivery): OutboundDelivery {
  const { session_id, lease_until, failure_kind, last_error, receipt, settled_at } = one
  return {
    id: one.id,
    provider: one.provider,
    account_id: one.account_id,
    transcript_id: one.transcript_id,
    sequence: one.sequence,
    ...(session_id === undefined ? {} : { session_id }),
    status: statusOf(one),
    attempts: one.attempts,
    answered_attempts: one.answered,
    ...(one.state === 'ready' || one.state === 'behind' ? { next_attempt_at: isoTime(one.next_at) } : {}),
    ...(lease_until === undefined ? {} : { lease_expires_at: isoTime(lease_until) }),
    ...(failure_kind === undefined ? {} : { failure_kind }),
    ...(last_error === undefined ? {} : { last_error }),
    ...(receipt === undefined ? {} : { receipt }),
    created_at: isoTime(one.created_at),
    ...(settled_at === undefined ? {} : { settled_at: isoTime(settled_at) }),
  }
}
