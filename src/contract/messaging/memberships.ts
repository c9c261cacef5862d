/** Memberships: who reads a transcript, and up to where. */
import type { EventTypes } from '../base/event-type.ts'
import { Timestamp } from '../base/names.ts'
import { array, choice, component, integer, optional, type Static, string } from '../base/schema.ts'
import { TranscriptId } from './conversations.ts'
import { ChatMetadata } from './entries.ts'

export const MEMBERSHIP_OWNERS = ['manual', 'binding', 'group'] as const
export type MembershipOwner = (typeof MEMBERSHIP_OWNERS)[number]
export const BACKFILL_POLICIES = ['all', 'since_join'] as const
export type BackfillPolicy = (typeof BACKFILL_POLICIES)[number]

const owners = array(choice(MEMBERSHIP_OWNERS), { description: 'Why it is there; it ends with the last of them.' })
const policy = choice(BACKFILL_POLICIES, {
  description: 'What a backfill begins with where nothing is read yet: everything, or what came since it joined.',
})
const mailbox = string({ description: 'Who it is, for good: `agent:<identity>`, `session:<id>` or `human`.' })
const name = string({ description: 'As it is called now.' })
const session = string({ description: 'Session that reads it now.' })

export const Membership = component('TranscriptMembership', {
  transcript_id: TranscriptId,
  mailbox,
  name,
  session_id: optional(session),
  owners,
  backfill_policy: policy,
  manual_backfill: optional(choice(BACKFILL_POLICIES, { description: 'What was asked for by hand.' })),
  joined_sequence: integer({ minimum: 0, description: 'Newest entry when it joined.' }),
  last_read_sequence: integer({ minimum: 0, description: 'Up to where it has read; 0: nothing.' }),
  metadata: ChatMetadata,
  joined_at: Timestamp,
})
export type Membership = Static<typeof Membership>

export const MembershipChangedPayload = component('MembershipChangedPayload', {
  transcript_id: TranscriptId,
  mailbox,
  name,
  session_id: optional(session),
  change: choice(['joined', 'changed', 'left']),
  owners,
  backfill_policy: policy,
})

export const MEMBERSHIP_EVENT_TYPES = {
  'extmsg.membership_changed': {
    payload: MembershipChangedPayload,
    log: 'city',
    emittedBy: 'transcripts',
    subject: 'id of the transcript',
    when: 'somebody begins or ceases to read a conversation, or for another reason than before',
  },
} as const satisfies EventTypes
