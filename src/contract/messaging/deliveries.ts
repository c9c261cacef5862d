/** Deliveries: what is on its way from here to the chat of an adapter (decisions 142 to 146, 176). */
import { durationSchema, Timestamp } from '../base/names.ts'
import { listBody } from '../base/paging.ts'
import { array, boolean, choice, component, integer, optional, record, type Static, string } from '../base/schema.ts'
import { ConversationRef, TranscriptId } from './conversations.ts'
import { TranscriptEntry } from './entries.ts'

export const DELIVERY_STATUSES = ['pending', 'in_flight', 'delivered', 'dead'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

export const FAILURE_KINDS = ['transient', 'rate_limited', 'auth', 'not_found', 'permanent', 'unsupported'] as const
export type FailureKind = (typeof FAILURE_KINDS)[number]

export const MAX_CLAIM = 100
export const DEFAULT_LEASE_SECONDS = 60
export const MAX_LEASE_SECONDS = 3_600
/** Longer pauses are cut to this. */
export const MAX_RETRY_AFTER_MS = 3_600_000

const failureKind = choice(FAILURE_KINDS, {
  description:
    '`permanent`, `not_found` and `unsupported` in a receipt are final: no further attempt. `rate_limited` is no fault of the adapter. All others are tried again.',
})
const deliveryId = string({
  description: 'The same at every attempt: whoever has delivered it already knows it again.',
})
const retryAfter = integer({
  minimum: 0,
  maximum: MAX_RETRY_AFTER_MS,
  description: 'Nothing is sent to this adapter for so long, in milliseconds.',
})

export const PublishReceipt = component('PublishReceipt', {
  delivered: optional(boolean({ description: 'It is in the chat; true where absent.' })),
  message_id: optional(string({ maxLength: 512, description: 'What the provider calls it.' })),
  conversation: optional(ConversationRef),
  failure_kind: optional(failureKind),
  retry_after_ms: optional(retryAfter),
  error: optional(string({ maxLength: 2_000, description: 'Why it was not delivered.' })),
  metadata: optional(record(string({ maxLength: 4_096 }), { maxProperties: 64 })),
})
export type PublishReceipt = Static<typeof PublishReceipt>

export const OutboundDelivery = component('OutboundDelivery', {
  id: deliveryId,
  provider: string(),
  account_id: string(),
  transcript_id: TranscriptId,
  sequence: integer({ minimum: 1, description: 'Entry of the transcript that it is of.' }),
  session_id: optional(string({ description: 'Session that speaks; absent: the operator.' })),
  status: choice(DELIVERY_STATUSES, {
    description:
      '`pending`: it waits for its turn, for the next attempt, or to be claimed. `in_flight`: an attempt is under way. `dead`: given up; `retry` starts it anew.',
  }),
  attempts: integer({ minimum: 0, description: 'Attempts that have begun.' }),
  answered_attempts: integer({
    minimum: 0,
    description: 'Attempts since it was published, or retried, that the adapter refused; the tenth is the last.',
  }),
  next_attempt_at: optional({
    ...Timestamp,
    description: 'Not before; behind others of its conversation it is later.',
  }),
  lease_expires_at: optional({ ...Timestamp, description: 'Claimed until then.' }),
  failure_kind: optional(failureKind),
  last_error: optional(string()),
  receipt: optional(PublishReceipt),
  created_at: Timestamp,
  settled_at: optional({ ...Timestamp, description: 'When it was delivered, or given up.' }),
})
export type OutboundDelivery = Static<typeof OutboundDelivery>
export const DeliveryList = listBody('ListBodyOutboundDelivery', OutboundDelivery)

export const ClaimRequest = component('ClaimRequest', {
  limit: optional(integer({ minimum: 1, maximum: MAX_CLAIM, description: 'At most so many; 100 where absent.' })),
  wait: optional(durationSchema('How long to wait where there is nothing: at most 2m, not at all where absent.')),
  lease_seconds: optional(
    integer({
      minimum: 1,
      maximum: MAX_LEASE_SECONDS,
      description: 'They are given to somebody else after that; 60 where absent.',
    }),
  ),
})

export const ClaimedDelivery = component('ClaimedDelivery', {
  delivery_id: deliveryId,
  attempt: integer({ minimum: 1, description: 'Which one this is; `fail` names it.' }),
  conversation: ConversationRef,
  entry: TranscriptEntry,
  lease_expires_at: Timestamp,
})
export type ClaimedDelivery = Static<typeof ClaimedDelivery>
export const ClaimedDeliveries = component('ClaimedDeliveries', {
  items: array(ClaimedDelivery, { description: 'Of each conversation at most the first that waits.' }),
})

export const AckRequest = component('AckRequest', { receipt: optional(PublishReceipt) })
export const FailRequest = component('FailRequest', {
  attempt: integer({ minimum: 1, description: 'The attempt that failed.' }),
  failure_kind: failureKind,
  retry_after_ms: optional(retryAfter),
  error: optional(string({ maxLength: 2_000, description: 'Why, in words for people.' })),
})
export type FailRequest = Static<typeof FailRequest>
