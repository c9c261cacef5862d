/**
 * Who takes part in conversations of chats: bindings (who a conversation belongs to), groups (several who are called by
 * handles) and their participants (sheet 06 §§2.4, 2.5, 4.2; decisions 131, 140, 155, 156).
 */
import { family } from '../base/family.ts'
import { CityNameParam, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, PageQuery } from '../base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  nullable,
  object,
  optional,
  record,
  type Schema,
  type Static,
  string,
} from '../base/schema.ts'
import { ConversationFilter, ConversationRef, TranscriptId } from './conversations.ts'

export const MAX_HANDLE = 128
const MAX_METADATA_KEYS = 64
const MAX_NAME = 512

export const GROUP_MODES = ['launcher'] as const
export const BINDING_STATUSES = ['active', 'ended'] as const
export const PARTICIPANT_STATUSES = ['active', 'removed'] as const
/** What a binding to people goes to: whoever reads the mail of `human`. */
export const BOUND_MAILBOXES = ['human'] as const

const count = (description: string) => integer({ minimum: 0, maximum: 1_000_000, description })
const Metadata = record(string({ maxLength: 4_096 }), {
  maxProperties: MAX_METADATA_KEYS,
  propertyNames: { minLength: 1, maxLength: 256 },
  description: 'Notes of whoever made it.',
})
const MetadataPatch = nullable(
  record(nullable(string({ maxLength: 4_096 })), {
    maxProperties: MAX_METADATA_KEYS,
    propertyNames: { minLength: 1, maxLength: 256 },
  }),
  { description: 'Keys are merged in; null removes one, or all of them.' },
)
const Handle = string({
  minLength: 1,
  maxLength: MAX_HANDLE,
  description: 'What it is called in the group. Blanks around it and letter case do not count.',
  examples: ['mayor'],
})
const SessionWord = string({
  minLength: 1,
  maxLength: MAX_NAME,
  description: 'Id, name or alias of a session that is not closed; it ends with that session.',
})
const AgentWord = string({
  minLength: 1,
  maxLength: MAX_NAME,
  description: 'Configured named session, or agent that is no pool: whichever session it has at the time.',
})

/** Who it is for: one of these. */
const target = {
  session_id: optional(string({ description: 'Session that it is for.' })),
  session_name: optional(string({ description: 'Runtime name of that session.' })),
  agent_name: optional(string({ description: 'Configured named session or agent that it is for.' })),
}
const boundTo = {
  ...target,
  mailbox: optional(choice(BOUND_MAILBOXES, { description: 'Whose mail goes there, and is answered there.' })),
}

// --- Bindings --------------------------------------------------------------------------------------------------------

export const Binding = component('Binding', {
  id: string({ description: 'Begins with `bd-`.' }),
  transcript_id: TranscriptId,
  conversation: ConversationRef,
  ...boundTo,
  status: choice(BINDING_STATUSES),
  binding_generation: integer({
    minimum: 1,
    description: 'How many bindings the conversation has had with this one; never used again.',
  }),
  bound_at: Timestamp,
  expires_at: optional({ ...Timestamp, description: 'When it ends by itself.' }),
  ended_at: optional(Timestamp),
  ended_reason: optional(string({ description: 'Why it ended; as in `extmsg.unbound`.' })),
  metadata: Metadata,
})
export type Binding = Static<typeof Binding>

export const BindingCreateRequest = component(
  'BindingCreateRequest',
  {
    conversation: ConversationRef,
    session_id: optional(SessionWord),
    agent_name: optional(AgentWord),
    mailbox: optional(
      choice(BOUND_MAILBOXES, {
        description: 'Mail to this mailbox is said in the conversation, and what is said there answers it.',
      }),
    ),
    replace: optional(boolean({ description: 'Takes the conversation from whoever has it, in one step.' })),
    expires_at: optional({ ...Timestamp, description: 'Ends it by itself; absent: never.' }),
    metadata: optional(Metadata),
  },
  { description: 'Exactly one of `session_id`, `agent_name` and `mailbox` is there.' },
)
export type BindingCreateRequest = Static<typeof BindingCreateRequest>

export const UnbindRequest = component(
  'UnbindRequest',
  {
    conversation: optional(ConversationRef),
    session_id: optional(string({ minLength: 1, maxLength: MAX_NAME })),
    agent_name: optional(string({ minLength: 1, maxLength: MAX_NAME })),
    mailbox: optional(choice(BOUND_MAILBOXES)),
  },
  { description: 'Bindings that all of this is true of; at least one has to be said.' },
)
export type UnbindRequest = Static<typeof UnbindRequest>

export const Unbound = component('Unbound', { unbound: array(Binding, { description: 'Those that ended.' }) })

// --- Groups ----------------------------------------------------------------------------------------------------------

export const FanoutPolicy = component(
  'FanoutPolicy',
  {
    enabled: boolean({ description: 'Others in the group are told what one of them says.' }),
    allow_untargeted_publication: boolean({ description: 'Also of what is said to nobody in particular.' }),
    max_peer_triggered_publishes: count(
      'What sessions may say in answer to each other, per message of a person; 0: any.',
    ),
    max_total_peer_deliveries: count('How often others are told, per message of a person; 0: any.'),
  },
  { description: 'How far sessions hear of each other; a person is always heard.' },
)
export type FanoutPolicy = Static<typeof FanoutPolicy>
const { enabled, allow_untargeted_publication, max_peer_triggered_publishes, max_total_peer_deliveries } =
  FanoutPolicy.properties
export const FanoutPolicyPatch = component(
  'FanoutPolicyPatch',
  {
    enabled: optional(enabled),
    allow_untargeted_publication: optional(allow_untargeted_publication),
    max_peer_triggered_publishes: optional(max_peer_triggered_publishes),
    max_total_peer_deliveries: optional(max_total_peer_deliveries),
  },
  { description: 'What is absent stays as it is.' },
)
export type FanoutPolicyPatch = Static<typeof FanoutPolicyPatch>

export const Group = component('ConversationGroup', {
  id: string({ description: 'Begins with `gr-`.' }),
  transcript_id: TranscriptId,
  root_conversation: ConversationRef,
  mode: choice(GROUP_MODES, { description: 'What is said goes to the one who is called, or was called last.' }),
  default_handle: optional(string({ description: 'Who is meant where nobody is called.' })),
  last_addressed_handle: optional(string({ description: 'Who was called last.' })),
  fanout_policy: FanoutPolicy,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Group = Static<typeof Group>

export const GroupEnsureRequest = component(
  'GroupEnsureRequest',
  {
    root_conversation: ConversationRef,
    mode: optional(choice(GROUP_MODES)),
    default_handle: optional(Handle),
    fanout_policy: optional(FanoutPolicyPatch),
    metadata: optional(Metadata),
  },
  {
    description:
      'Of a group that is there, what is absent stays as it is. `default_handle` may be of somebody who comes later, while the group has no participants.',
  },
)
export type GroupEnsureRequest = Static<typeof GroupEnsureRequest>

const orNull = <T extends Schema>(schema: T) => nullable(schema, { description: 'Null clears it.' })
export const GroupPatchRequest = component(
  'GroupPatchRequest',
  {
    default_handle: optional(orNull(Handle)),
    last_addressed_handle: optional(orNull(Handle)),
    fanout_policy: optional(nullable(FanoutPolicyPatch, { description: 'Null: as in a new group.' })),
    metadata: optional(MetadataPatch),
  },
  { description: 'JSON Merge Patch; `{}` changes nothing.' },
)
export type GroupPatchRequest = Static<typeof GroupPatchRequest>

export const DeletedGroup = component('DeletedGroup', { status: literal('deleted'), id: string() })

// --- Participants ----------------------------------------------------------------------------------------------------

export const Participant = component('Participant', {
  id: string({ description: 'Begins with `pt-`.' }),
  group_id: string(),
  handle: string(),
  ...target,
  public: boolean({ description: 'As it was said; nothing acts on it.' }),
  status: choice(PARTICIPANT_STATUSES),
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  removed_at: optional(Timestamp),
})
export type Participant = Static<typeof Participant>

export const ParticipantUpsertRequest = component(
  'ParticipantUpsertRequest',
  {
    group_id: string({ minLength: 1, maxLength: 256 }),
    handle: Handle,
    session_id: optional(SessionWord),
    agent_name: optional(AgentWord),
    public: optional(boolean()),
    metadata: optional(Metadata),
  },
  { description: 'Exactly one of `session_id` and `agent_name` is there.' },
)
export type ParticipantUpsertRequest = Static<typeof ParticipantUpsertRequest>

export const RemovedParticipant = component('RemovedParticipant', { status: literal('removed'), id: string() })

// --- Operations ------------------------------------------------------------------------------------------------------

const idOf = (what: string, example: string) =>
  string({ minLength: 1, maxLength: 256, description: `Id of the ${what}.`, examples: [example] })
const participants = family(
  { name: 'Participants', about: 'Who takes part in conversations of chats: bindings, groups and their participants.' },
  '/v0/city/{cityName}/participants',
  {
    cityName: CityNameParam,
    groupId: idOf('group', 'gr-0123456789abcdef'),
    bindingId: idOf('binding', 'bd-0123456789abcdef'),
    participantId: idOf('participant', 'pt-0123456789abcdef'),
  },
  { replyHeaders: ['X-SVC-Index'] },
)
const groups = participants.at('/groups', {})
const oneGroup = groups.at('/{groupId}', { problems: ['extmsg-group-not-found'] })
const bindings = participants.at('/bindings', {})
const oneBinding = bindings.at('/{bindingId}', { problems: ['binding-not-found'] })
const oneParticipant = participants.at('/{participantId}', { problems: ['participant-not-found'] })

const LIST_PROBLEMS = ['invalid-cursor', 'invalid-conversation'] as const
const TARGET_PROBLEMS = ['session-not-found', 'agent-not-found', 'ambiguous-recipient', 'session-conflict'] as const
const who = {
  session_id: optional(string({ description: 'Only of this session: its id, name or alias.' })),
  agent_name: optional(string({ description: 'Only of this agent.' })),
}

export const participantOperations = [
  participants.get('list-participants', '', {
    summary: 'List participants',
    description: 'Of all groups, oldest first.',
    query: object({
      group_id: optional(string({ description: 'Only of this group.' })),
      handle: optional(string({ description: 'Only who is called so.' })),
      ...who,
      status: optional(choice(PARTICIPANT_STATUSES, { description: '`active` where absent.' })),
      ...ConversationFilter,
      ...PageQuery,
      ...BlockingQuery,
    }),
    replies: { 200: listBody('ListBodyParticipant', Participant) },
    problems: LIST_PROBLEMS,
  }),
  participants.post('upsert-participant', '', {
    summary: 'Give somebody a handle in a group',
    description:
      'A handle that somebody has goes over to whom the request names: 200 then, 201 where nobody had it. Who has one reads what is said in the conversation of the group.',
    body: ParticipantUpsertRequest,
    headers: ['Idempotency-Key'],
    replies: { 200: Participant, 201: Participant },
    problems: ['extmsg-group-not-found', ...TARGET_PROBLEMS],
    emits: ['extmsg.participant_upserted', 'extmsg.membership_changed'],
  }),
  participants.delete('remove-participant-by-handle', '', {
    summary: 'Take a handle away',
    description: 'The same as by the id of the participant.',
    query: object({
      group_id: string({ minLength: 1, description: 'The group.' }),
      handle: string({ minLength: 1, description: 'What it is called there.' }),
    }),
    replies: { 200: RemovedParticipant },
    problems: ['extmsg-group-not-found', 'participant-not-found'],
    emits: ['extmsg.participant_removed', 'extmsg.membership_changed'],
  }),
  groups.get('list-groups', '', {
    summary: 'List groups',
    description: 'Oldest first.',
    query: object({ ...ConversationFilter, ...PageQuery, ...BlockingQuery }),
    replies: { 200: listBody('ListBodyConversationGroup', Group) },
    problems: LIST_PROBLEMS,
  }),
  groups.post('ensure-group', '', {
    summary: 'Make sure that a conversation has a group',
    description:
      'Several sessions share a conversation, each called by a handle. 201 where it is new; 200 where the conversation has one, which takes what the request says and keeps everything else.',
    body: GroupEnsureRequest,
    headers: ['Idempotency-Key'],
    replies: { 200: Group, 201: Group },
    problems: ['invalid-conversation'],
    emits: ['extmsg.group_created', 'extmsg.group_updated'],
  }),
  oneGroup.get('get-group', '', {
    summary: 'Get a group',
    description: 'With its handles: who is called, and who is meant where nobody is.',
    replies: { 200: Group },
    replyHeaders: ['ETag'],
  }),
  oneGroup.patch('patch-group', '', {
    summary: 'Change a group',
    description: 'A handle has to be that of a participant.',
    body: GroupPatchRequest,
    headers: ['If-Match'],
    replies: { 200: Group },
    replyHeaders: ['ETag'],
    emits: ['extmsg.group_updated'],
  }),
  oneGroup.delete('delete-group', '', {
    summary: 'Delete a group',
    description: 'Its participants are removed with it; the transcript of its conversation stays.',
    replies: { 200: DeletedGroup },
    emits: ['extmsg.group_deleted', 'extmsg.participant_removed', 'extmsg.membership_changed'],
  }),
  bindings.get('list-bindings', '', {
    summary: 'List bindings',
    description: 'Oldest first; those that have ended are kept for 30 days.',
    query: object({
      ...who,
      mailbox: optional(choice(BOUND_MAILBOXES, { description: 'Only of this mailbox.' })),
      status: optional(choice(BINDING_STATUSES, { description: '`active` where absent.' })),
      ...ConversationFilter,
      ...PageQuery,
      ...BlockingQuery,
    }),
    replies: { 200: listBody('ListBodyBinding', Binding) },
    problems: LIST_PROBLEMS,
  }),
  bindings.post('bind-conversation', '', {
    summary: 'Bind a conversation to a session, an agent or people',
    description:
      'What is said there goes to it from then on. 201 where the binding is new or was handed over, 200 where it was there: its metadata is merged, and its end set or cleared. Who takes no messages (prompt mode `omit`) cannot be bound: a chat must not become a shell.',
    body: BindingCreateRequest,
    headers: ['Idempotency-Key'],
    replies: { 200: Binding, 201: Binding },
    problems: ['invalid-conversation', 'binding-conflict', ...TARGET_PROBLEMS],
    emits: ['extmsg.bound', 'extmsg.unbound', 'extmsg.membership_changed'],
  }),
  bindings.post('unbind-conversations', '/unbind', {
    summary: 'End bindings',
    description: 'All that what is said is true of; none is an answer too.',
    body: UnbindRequest,
    replies: { 200: Unbound },
    problems: ['invalid-conversation'],
    emits: ['extmsg.unbound', 'extmsg.membership_changed'],
  }),
  oneBinding.get('get-binding', '', {
    summary: 'Get a binding',
    description: 'One that has ended says when, and why.',
    replies: { 200: Binding },
  }),
  oneBinding.delete('end-binding', '', {
    summary: 'End a binding',
    description: 'One that has ended stays as it is.',
    query: object({
      if_generation: optional(
        integer({ minimum: 1, description: 'Only while its conversation has had as many bindings, and no more.' }),
      ),
    }),
    replies: { 200: Binding },
    problems: ['binding-conflict'],
    emits: ['extmsg.unbound', 'extmsg.membership_changed'],
  }),
  oneParticipant.get('get-participant', '', {
    summary: 'Get a participant',
    description: 'Its group and its handle there.',
    replies: { 200: Participant },
  }),
  oneParticipant.delete('remove-participant', '', {
    summary: 'Remove a participant',
    description: 'Its handle means nobody then. It is kept for 30 days.',
    replies: { 200: RemovedParticipant },
    emits: ['extmsg.participant_removed', 'extmsg.membership_changed'],
  }),
] as const
