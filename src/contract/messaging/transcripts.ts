/** Transcripts: what was said in conversations of chats, who reads it, and what is said there from here (sheet 06 §4.3). */

import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam, durationSchema, Seq, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, listFields, OrderQuery, PageQuery } from '../base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  object,
  optional,
  type Static,
  string,
} from '../base/schema.ts'
import { HEARTBEAT } from '../base/streams.ts'
import { ConversationFilter, ConversationRef, TranscriptId } from './conversations.ts'
import { PublishReceipt } from './deliveries.ts'
import { ChatMetadata, ENTRY_DELIVERY_STATUSES, MAX_ATTACHMENTS, MAX_CHAT_TEXT, TranscriptEntry } from './entries.ts'
import { BACKFILL_POLICIES, Membership } from './memberships.ts'

/** Of one file that goes with messages. */
export const MAX_ATTACHMENT_BYTES = 25 * 1024 * 1024

export const Transcript = component('Transcript', {
  transcript_id: TranscriptId,
  conversation: ConversationRef,
  next_sequence: integer({ minimum: 1, description: 'What the next entry gets.' }),
  earliest_available_sequence: integer({
    minimum: 1,
    description: 'Oldest entry that is kept; the next one where none is.',
  }),
  binding_id: optional(string({ description: 'Binding of the conversation, where it has one of its own.' })),
  group_id: optional(string({ description: 'Group of the conversation, where it has one of its own.' })),
  last_entry_at: optional(Timestamp),
  created_at: Timestamp,
})
export type Transcript = Static<typeof Transcript>

const deliveryStatus = choice(ENTRY_DELIVERY_STATUSES, {
  description: '`pending`: the adapter has yet to take it, or to say so. `dead`: it will not get it any more.',
})

export const OutboundResult = component('OutboundResult', {
  delivery_id: string({ examples: ['dl-0123456789abcdef'] }),
  delivery_status: deliveryStatus,
  receipt: optional(PublishReceipt),
  transcript_entry: TranscriptEntry,
})
export type OutboundResult = Static<typeof OutboundResult>

const word = (description: string) => string({ minLength: 1, maxLength: 256, description })

export const PublishRequest = component('PublishRequest', {
  session_id: optional(
    word(
      'Session that speaks: its id, name or alias. With the token of a session it is that one; absent otherwise: the operator speaks.',
    ),
  ),
  agent_name: optional(word('The same by the name of a named session or agent.')),
  text: optional(string({ description: `At most ${MAX_CHAT_TEXT} bytes; needed where nothing is attached.` })),
  attachments: optional(
    array(word('Id of an upload.'), {
      maxItems: MAX_ATTACHMENTS,
      uniqueItems: true,
      description: 'Files that were uploaded before.',
    }),
  ),
  reply_to_message_id: optional(
    string({ minLength: 1, maxLength: 512, description: 'What the provider calls the message that it answers.' }),
  ),
  explicit_target: optional(word('Handle that it is addressed to: of the others in the group only that one is told.')),
  metadata: optional(ChatMetadata),
  idempotency_key: optional(
    string({ minLength: 1, maxLength: 255, description: 'As the header Idempotency-Key, which wins.' }),
  ),
})
export type PublishRequest = Static<typeof PublishRequest>

export const UploadedAttachment = component('UploadedAttachment', {
  id: string({ examples: ['at-0123456789abcdef01234567'] }),
  filename: string(),
  mime_type: string(),
  size: integer({ minimum: 0, description: 'Bytes.' }),
  sha256: string({ description: 'Of its bytes, as 64 hex digits.' }),
  created_at: Timestamp,
})
export type UploadedAttachment = Static<typeof UploadedAttachment>

const transcripts = family(
  {
    name: 'Transcripts',
    about: 'What was said in conversations of chats, who reads it, and what is said there from here.',
  },
  '/v0/city/{cityName}/transcripts',
  {
    cityName: CityNameParam,
    transcriptId: TranscriptId,
    sessionId: string({
      minLength: 1,
      description: 'Who reads it: a session by its id, name or alias, an agent by its name, or `human`.',
    }),
    attachmentId: string({ minLength: 1, description: 'Id of an upload.' }),
  },
  {},
)
const one = transcripts.at('/{transcriptId}', { problems: ['transcript-not-found'] })
/** For the token of a session: only what that session reads. */
const read = one.with({ problems: ['session-forbidden'] })
const seen = read.with({ replyHeaders: ['X-SVC-Index'] })
/** What somebody does who reads it. */
const member = read.with({ problems: ['membership-not-found', 'recipient-not-found', 'ambiguous-recipient'] })
const sequence = (description: string) => integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })
const reader = (description: string) => optional(string({ minLength: 1, description }))
const SELF = 'With the token of a session it may be left out: it is that one.'

export const listTranscripts = transcripts.get('list-transcripts', '', {
  summary: 'List transcripts',
  description: 'Those with the newest entries come first. The token of a session sees those that it reads.',
  query: object({
    ...ConversationFilter,
    session_id: reader('Only those that this session, or whoever is called so, reads.'),
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: listBody('ListBodyTranscript', Transcript) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})

export const listTranscriptEntries = seen.get('list-transcript-entries', '/entries', {
  summary: 'List what was said',
  description: 'In the order in which it was said, page by page; with `q` only what has all of these words.',
  query: object({
    after_sequence: optional(sequence('Only what comes after it.')),
    before_sequence: optional(sequence('Only what comes before it.')),
    q: optional(
      string({
        minLength: 1,
        maxLength: 1000,
        description: 'Only texts with all of these words; `word*` finds what begins so. Whatever is typed is no error.',
      }),
    ),
    ...OrderQuery,
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: listBody('ListBodyTranscriptEntry', TranscriptEntry) },
  problems: ['invalid-cursor'],
})

export const publishTranscriptEntry = read.post('publish-transcript-entry', '/entries', {
  summary: 'Say something in a conversation',
  description:
    'It is in the transcript, and on its way, once this answers; the answer waits a little for the adapter to say that it was delivered. A session speaks where the conversation is bound to it, or in whose group it takes part. The same key answers with how far the same message is by now.',
  query: object({
    wait: optional(
      durationSchema(
        'How long to wait for the delivery: at most 2m, 5s where absent; not at all while no adapter is there.',
      ),
    ),
  }),
  headers: ['Idempotency-Key'],
  body: PublishRequest,
  replies: { 200: OutboundResult },
  problems: ['no-adapter', 'conversation-unbound', 'session-not-found', 'ambiguous-recipient'],
  emits: ['extmsg.outbound', 'extmsg.outbound_failed', 'extmsg.outbound_channel_mismatch'],
})

export const streamTranscript = read.get('stream-transcript', '/stream', {
  summary: 'Follow a conversation',
  description:
    'Server-sent events: what is said, as it is said. Without a cursor the stream starts at the end; `0` begins with the oldest entry that is kept. After a resumption it is told first how the last outbound entries before stand.',
  query: object({
    after_sequence: optional(string({ description: 'Sequence of the last entry that is known; `0`: none.' })),
  }),
  headers: ['Last-Event-ID'],
  replies: {},
  frames: [
    { event: 'entry', data: TranscriptEntry, id: 'its sequence', description: 'Something was said.' },
    {
      event: 'delivery',
      data: component('TranscriptDeliveryEvent', { sequence: integer({ minimum: 1 }), status: deliveryStatus }),
      description: 'The delivery of an outbound entry stands so now; without an `id:`, so the resume point stays.',
    },
    HEARTBEAT,
  ],
  problems: ['invalid-cursor', 'cursor-expired'],
})

const attachments = transcripts.at('/attachments', {})

export const uploadAttachment = attachments.post('upload-transcript-attachment', '', {
  summary: 'Upload a file that goes with a message',
  description:
    'Its bytes as they are, at most 25 MiB; the Content-Type says what they are. What no message has after 24 h is removed; while such files take 1 GiB, more are refused (413).',
  query: object({
    filename: optional(string({ minLength: 1, maxLength: 255, description: 'As it is offered for download.' })),
  }),
  headers: ['Idempotency-Key'],
  body: string({ description: 'Bytes.', format: 'binary' }),
  bodyStream: 'bytes',
  bodyType: 'application/octet-stream',
  bodyLimit: MAX_ATTACHMENT_BYTES,
  replies: { 201: UploadedAttachment },
  problems: ['idempotency-mismatch'],
})

export const transcriptOperations = [
  listTranscripts,
  transcripts.post('ensure-transcript', '', {
    summary: 'Make the transcript of a conversation',
    description: 'Where there is one already it is answered: its id follows from the conversation.',
    body: component('TranscriptEnsureRequest', { conversation: ConversationRef }),
    headers: ['Idempotency-Key'],
    replies: { 200: Transcript, 201: Transcript },
    problems: ['invalid-conversation'],
  }),
  uploadAttachment,
  attachments.get('get-transcript-attachment', '/{attachmentId}', {
    summary: 'Download an attachment',
    description: 'Its bytes, to be saved and not shown.',
    mediaType: 'application/octet-stream',
    replies: { 200: string({ format: 'binary' }) },
    replyHeaders: ['Content-Disposition'],
    problems: ['attachment-not-found', 'session-forbidden'],
  }),
  seen.get('get-transcript', '', {
    summary: 'Get a transcript',
    description: 'Its conversation, and how far it goes.',
    replies: { 200: Transcript },
  }),
  one.delete('delete-transcript', '', {
    summary: 'Delete a transcript',
    description:
      'What was said, who read it, and what was attached only there. A conversation that goes on gets a new one, whose sequences go on behind the old one’s.',
    query: object({
      cascade: optional(
        boolean({
          description:
            'Also end bindings and groups of the conversation, and give up what is pending there. Without it they are in the way: 409.',
        }),
      ),
    }),
    replies: {
      200: component('DeletedTranscript', {
        status: literal('deleted'),
        transcript_id: TranscriptId,
        entries: integer({ minimum: 0, description: 'How many there were.' }),
      }),
    },
    problems: ['still-referenced'],
    emits: [
      'extmsg.transcript_deleted',
      'extmsg.unbound',
      'extmsg.group_deleted',
      'extmsg.participant_removed',
      'extmsg.membership_changed',
      'extmsg.outbound_failed',
    ],
  }),
  listTranscriptEntries,
  publishTranscriptEntry,
  streamTranscript,
  member.post('ack-transcript', '/ack', {
    summary: 'Say up to where it was read',
    description: 'Never goes back: what is not beyond the last one changes nothing.',
    body: component('TranscriptAckRequest', {
      session_id: reader(`Who has read it. ${SELF}`),
      sequence: sequence('The last entry that was read.'),
    }),
    replies: { 200: component('TranscriptAcked', { status: literal('acked'), last_read_sequence: Seq }) },
  }),
  member.get('get-transcript-backfill', '/backfill', {
    summary: 'List what somebody has not read',
    description: 'Behind what that member has acknowledged, oldest first.',
    query: object({
      session_id: reader(`Who reads. ${SELF}`),
      limit: PageQuery.limit,
    }),
    replies: {
      200: component('TranscriptBackfill', {
        ...listFields(TranscriptEntry),
        head_sequence: integer({ minimum: 0, description: 'Newest entry; 0: there is none.' }),
        last_read_sequence: Seq,
      }),
    },
  }),
  seen.get('list-transcript-memberships', '/memberships', {
    summary: 'List who reads a transcript',
    description: 'Sessions, agents and people, by their name.',
    query: object(BlockingQuery),
    replies: { 200: listBody('ListBodyTranscriptMembership', Membership) },
  }),
  one.put('put-transcript-membership', '/memberships/{sessionId}', {
    summary: 'Let somebody read a transcript',
    description: 'They are told of what is said there, and have a place up to where they have read.',
    body: component('TranscriptMembershipRequest', {
      backfill_policy: optional(
        choice(BACKFILL_POLICIES, {
          description: 'What there is to read at first: `all` where absent.',
          default: 'all',
        }),
      ),
      metadata: optional(ChatMetadata),
    }),
    bodyOptional: true,
    headers: ['If-Match'],
    replies: { 200: Membership },
    replyHeaders: ['ETag'],
    problems: ['recipient-not-found', 'ambiguous-recipient'],
    emits: ['extmsg.membership_changed'],
  }),
  member.delete('delete-transcript-membership', '/memberships/{sessionId}', {
    summary: 'Let somebody read a transcript no longer',
    description: 'Only one that was made by hand: one that a binding or group has, ends with that.',
    replies: { 200: component('DeletedTranscriptMembership', { status: literal('removed'), mailbox: string() }) },
    problems: ['conflict-wrong-state'],
    emits: ['extmsg.membership_changed'],
  }),
] as const

export const ChannelMismatchPayload = component('ChannelMismatchPayload', {
  transcript_id: TranscriptId,
  provider: string(),
  conversation_id: string(),
  posting_session: string({ description: 'Who wanted to speak.' }),
  owner_session: string({ description: 'Whom the conversation is bound to.' }),
})
export const TranscriptDeletedPayload = component('TranscriptDeletedPayload', {
  transcript_id: TranscriptId,
  provider: string(),
  account_id: string(),
  conversation_id: string(),
  entries: integer({ minimum: 0 }),
})

const inLog = { log: 'city', emittedBy: 'transcripts' } as const
export const TRANSCRIPT_EVENT_TYPES = {
  'extmsg.outbound_channel_mismatch': {
    payload: ChannelMismatchPayload,
    ...inLog,
    subject: 'who wanted to speak',
    when: 'somebody wanted to speak in a conversation that is bound to somebody else, and was refused',
  },
  'extmsg.transcript_deleted': {
    payload: TranscriptDeletedPayload,
    ...inLog,
    subject: 'its id',
    when: 'a transcript was deleted, with what was said in it',
  },
} as const satisfies EventTypes
