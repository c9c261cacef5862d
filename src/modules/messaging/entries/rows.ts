/** Rows of transcripts and entries as values, and as they are on the wire. */

import { CONVERSATION_KINDS } from '../../../contract/messaging/conversations.ts'
import {
  type Actor,
  type ChatAttachment,
  ENTRY_DELIVERY_STATUSES,
  ENTRY_KINDS,
  type EntryDeliveryStatus,
  PROVENANCES,
  type TranscriptEntry,
} from '../../../contract/messaging/entries.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { type Mailbox, parseMailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import { numberOf, textOf, wordOf } from '../base/rows.ts'

export interface TranscriptRow {
  readonly id: string
  readonly conversation: Conversation
  /** What the next entry gets. */
  readonly next: number
  /** The first one that may still be there. */
  readonly earliest: number
  readonly lastEntryAt: number | undefined
  readonly createdAt: number
}

type EntryKind = (typeof ENTRY_KINDS)[number]
type Provenance = (typeof PROVENANCES)[number]

/** What is said, before it has its place. */
export interface EntryDraft {
  readonly kind: EntryKind
  /** `live` where absent. */
  readonly provenance?: Provenance
  readonly providerMessageId?: string
  readonly actor: Actor
  readonly text: string
  readonly explicitTarget?: string
  readonly replyTo?: string
  /** Those with an `id` were uploaded; 422 where one is not there. */
  readonly attachments?: readonly ChatAttachment[]
  readonly metadata?: Readonly<Record<string, string>>
  readonly sessionId?: string
  /** Whose words they are, of agents: digests leave out their own. */
  readonly mailbox?: Mailbox
  readonly deliveryId?: string
  readonly deliveryStatus?: EntryDeliveryStatus
  /** The inbound entry that led to it; of an inbound one: itself. */
  readonly root?: number
  /** Name under which a repetition is known: unique in the transcript. */
  readonly dedupe?: string
  readonly receivedAt?: number
}

export interface EntryRow {
  readonly transcriptId: string
  readonly sequence: number
  readonly kind: EntryKind
  readonly provenance: Provenance
  readonly providerMessageId: string | undefined
  readonly actor: Actor
  readonly text: string
  readonly explicitTarget: string | undefined
  readonly replyTo: string | undefined
  readonly attachments: readonly ChatAttachment[]
  readonly metadata: Readonly<Record<string, string>>
  readonly sessionId: string | undefined
  readonly mailbox: Mailbox | undefined
  readonly deliveryId: string | undefined
  readonly deliveryStatus: EntryDeliveryStatus | undefined
  readonly root: number
  readonly receivedAt: number | undefined
  readonly createdAt: number
}

export function transcriptOf(row: Row): TranscriptRow {
  const parent = String(row.parent_conversation_id)
  return {
    id: String(row.id),
    conversation: {
      scope_id: String(row.scope_id),
      provider: String(row.provider),
      account_id: String(row.account_id),
      conversation_id: String(row.conversation_id),
      ...(parent === '' ? {} : { parent_conversation_id: parent }),
      kind: wordOf(CONVERSATION_KINDS, row.kind, 'a kind of conversation'),
    },
    next: Number(row.next_sequence),
    earliest: Number(row.earliest_sequence),
    lastEntryAt: numberOf(row.last_entry_at),
    createdAt: Number(row.created_at),
  }
}

export function entryOf(row: Row): EntryRow {
  const mailbox = textOf(row.source_mailbox)
  const status = textOf(row.delivery_status)
  return {
    transcriptId: String(row.transcript_id),
    sequence: Number(row.sequence),
    kind: wordOf(ENTRY_KINDS, row.kind, 'a kind of entry'),
    provenance: wordOf(PROVENANCES, row.provenance, 'a provenance'),
    providerMessageId: textOf(row.provider_message_id),
    actor: { id: String(row.actor_id), display_name: String(row.actor_name), is_bot: row.actor_is_bot === 1 },
    text: String(row.text),
    explicitTarget: textOf(row.explicit_target),
    replyTo: textOf(row.reply_to_message_id),
    attachments: JSON.parse(String(row.attachments_json)),
    metadata: JSON.parse(String(row.metadata_json)),
    sessionId: textOf(row.source_session_id),
    mailbox: mailbox === undefined ? undefined : parseMailbox(mailbox),
    deliveryId: textOf(row.delivery_id),
    deliveryStatus: status === undefined ? undefined : wordOf(ENTRY_DELIVERY_STATUSES, status, 'a delivery status'),
    root: Number(row.root),
    receivedAt: numberOf(row.received_at),
    createdAt: Number(row.created_at),
  }
}

export function entryView(entry: EntryRow): TranscriptEntry {
  return {
    transcript_id: entry.transcriptId,
    sequence: entry.sequence,
    kind: entry.kind,
    provenance: entry.provenance,
    ...given('provider_message_id', entry.providerMessageId),
    actor: entry.actor,
    text: entry.text,
    ...given('explicit_target', entry.explicitTarget),
    ...given('reply_to_message_id', entry.replyTo),
    attachments: [...entry.attachments],
    metadata: { ...entry.metadata },
    ...given('source_session_id', entry.sessionId),
    ...given('delivery_id', entry.deliveryId),
    ...given('delivery_status', entry.deliveryStatus),
    ...(entry.receivedAt === undefined ? {} : { received_at: isoTime(entry.receivedAt) }),
    created_at: isoTime(entry.createdAt),
  }
}
