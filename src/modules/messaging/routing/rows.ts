/** How rows of who takes part are read. */

import type { FanoutPolicy } from '../../../contract/messaging/participants.ts'
import type { Row } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { type Mailbox, parseMailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import { numberOf, textOf } from '../base/rows.ts'

export type Metadata = Readonly<Record<string, string>>

export interface BindingRow {
  readonly id: string
  readonly transcript_id: string
  readonly conversation: Conversation
  readonly generation: number
  readonly mailbox: Mailbox
  readonly session_id?: string
  readonly session_name?: string
  readonly metadata: Metadata
  readonly bound_at: number
  readonly expires_at?: number
  readonly ended_at?: number
  readonly ended_reason?: string
}

export interface GroupRow {
  readonly id: string
  readonly transcript_id: string
  readonly conversation: Conversation
  readonly mode: 'launcher'
  readonly default_handle?: string
  readonly last_addressed_handle?: string
  readonly fanout: FanoutPolicy
  readonly metadata: Metadata
  readonly created_at: number
  readonly updated_at: number
}

export interface ParticipantRow {
  readonly id: string
  readonly group_id: string
  readonly transcript_id: string
  readonly handle: string
  readonly mailbox: Mailbox
  readonly session_id?: string
  readonly session_name?: string
  readonly public: boolean
  readonly metadata: Metadata
  readonly created_at: number
  readonly updated_at: number
  readonly removed_at?: number
}

// What this service wrote itself is trusted to be what it wrote.
const fromJson = <T>(value: unknown): T => JSON.parse(String(value))

export const bindingRow = (row: Row): BindingRow => ({
  id: String(row.id),
  transcript_id: String(row.transcript_id),
  conversation: fromJson<Conversation>(row.conversation_json),
  generation: Number(row.generation),
  mailbox: parseMailbox(String(row.mailbox)),
  ...given('session_id', textOf(row.session_id)),
  ...given('session_name', textOf(row.session_name)),
  metadata: fromJson<Metadata>(row.metadata_json),
  bound_at: Number(row.bound_at),
  ...given('expires_at', numberOf(row.expires_at)),
  ...given('ended_at', numberOf(row.ended_at)),
  ...given('ended_reason', textOf(row.ended_reason)),
})

export const groupRow = (row: Row): GroupRow => ({
  id: String(row.id),
  transcript_id: String(row.transcript_id),
  conversation: fromJson<Conversation>(row.conversation_json),
  mode: 'launcher',
  ...given('default_handle', textOf(row.default_handle)),
  ...given('last_addressed_handle', textOf(row.last_addressed_handle)),
  fanout: fromJson<FanoutPolicy>(row.fanout_json),
  metadata: fromJson<Metadata>(row.metadata_json),
  created_at: Number(row.created_at),
  updated_at: Number(row.updated_at),
})

export const participantRow = (row: Row): ParticipantRow => ({
  id: String(row.id),
  group_id: String(row.group_id),
  transcript_id: String(row.transcript_id),
  handle: String(row.handle),
  mailbox: parseMailbox(String(row.mailbox)),
  ...given('session_id', textOf(row.session_id)),
  ...given('session_name', textOf(row.session_name)),
  public: row.public === 1,
  metadata: fromJson<Metadata>(row.metadata_json),
  created_at: Number(row.created_at),
  updated_at: Number(row.updated_at),
  ...given('removed_at', numberOf(row.removed_at)),
})
