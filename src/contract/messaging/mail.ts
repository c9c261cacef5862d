/** Mail: what people and agents of a city write to each other (decisions 130 to 139, 175). */

import type { EventTypes } from '../base/event-type.ts'
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
  object,
  optional,
  type Static,
  string,
} from '../base/schema.ts'

export const MAIL_STATUSES = ['unread', 'read', 'archived'] as const
export type MailStatus = (typeof MAIL_STATUSES)[number]
export const MAX_SUBJECT = 998
/** Bytes of a body, in UTF-8. */
export const MAX_BODY_BYTES = 256 * 1024
export const MAX_CC = 50
export const MAX_RECIPIENTS = 1_000
/** Messages that one request archives. */
export const MAX_ARCHIVED = 1_000
/** A body of control characters takes six times as much as JSON. */
const MAX_REQUEST_BYTES = 2 * 1024 * 1024
/** Bytes of a body that events carry. */
export const EVENT_BODY_BYTES = 2 * 1024
/** Days that the id of a deleted message is remembered. */
export const TOMBSTONE_DAYS = 30
/** Ids that a check names. */
export const MAX_CHECKED = 1_000
const MAX_ADDRESS = 256

/** No control characters: a name is shown wherever mail is. */
const ADDRESS_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]+$'

const address = (description: string) =>
  string({ minLength: 1, maxLength: MAX_ADDRESS, pattern: ADDRESS_PATTERN, description })
const MessageId = string({ description: 'Unique in the city.', examples: ['ml-0123456789abcdef'] })
const ThreadId = string({ description: '`thread-` and 12 hex digits.', examples: ['thread-0123456789ab'] })
const Subject = string({ minLength: 1, maxLength: MAX_SUBJECT })
const Body = string({ maxLength: MAX_BODY_BYTES, description: 'At most 256 KiB in UTF-8.' })
const Priority = integer({ minimum: 0, maximum: 9, description: 'What is higher is told first; 0 where absent.' })
const Status = choice(MAIL_STATUSES, {
  description: '`archived` is out of the inbox and of counts, and stays where it can be read, found and answered.',
})

const message = {
  id: MessageId,
  from: string({ description: 'Who sent it, as he was called then.' }),
  to: string({ description: 'Whose mailbox it is in, as he was called then.' }),
  mailbox: string({
    description:
      'Whose mailbox it is in, by a key that stays: `human`, `agent:<identity>` of a named session or an agent that is no pool, `session:<id>` of any other session.',
    examples: ['human', 'agent:mayor'],
  }),
  subject: string(),
  body: string(),
  created_at: Timestamp,
  status: Status,
  read: boolean({ description: 'It was read, and not marked unread since.' }),
  read_at: optional(Timestamp),
  archived_at: optional(Timestamp),
  thread_id: ThreadId,
  reply_to: optional(string({ description: 'Id of the message that it answers.' })),
  copy_of: optional(string({ description: 'Id of the message that it is a copy of (`cc`).' })),
  cc: array(string(), { description: 'Who got copies.' }),
  priority: Priority,
  rig: optional(string({ description: 'Rig of its recipient, else of its sender, when it was sent.' })),
  from_session_id: optional(string({ description: 'Session that sent it.' })),
  to_session_id: optional(string({ description: 'Session that read the mailbox when it was sent.' })),
}
export const Message = component('Message', message)
export type Message = Static<typeof Message>

const from = optional(
  address(
    'Who sends it: a label, `human` where absent. With the token of a session it is that session, and nobody else.',
  ),
)
const to = address('Name, alias or id: of a session, of a named session, of an agent that is no pool; or `human`.')
const cc = optional(array(to, { maxItems: MAX_CC, description: 'Each gets a copy of its own, in the same thread.' }))
const notify = optional(
  boolean({
    description:
      'Absent: a recipient that runs is reminded when it is idle. True: it is also started or woken for it, unless it is suspended. False: nobody is told.',
  }),
)
const priority = optional(Priority)
const said = { subject: Subject, body: optional(Body), from, priority, notify }

export const MailSendRequest = component('MailSendRequest', {
  to,
  ...said,
  cc,
  thread_id: optional(
    string({ minLength: 1, maxLength: 64, description: 'A thread that it goes on with, or a message in it.' }),
  ),
})
export type MailSendRequest = Static<typeof MailSendRequest>

export const MailReplyRequest = component('MailReplyRequest', {
  ...said,
  subject: optional({ ...Subject, description: 'What it is about; `Re: ` and that of the message where absent.' }),
  cc,
})
export type MailReplyRequest = Static<typeof MailReplyRequest>

export const MailBroadcastRequest = component('MailBroadcastRequest', {
  ...said,
  to: optional(
    array(to, {
      minItems: 1,
      maxItems: MAX_RECIPIENTS,
      description: 'Who gets it; everybody else with an open session where absent.',
    }),
  ),
  include_human: optional(boolean({ description: 'Also `human`.' })),
})
export type MailBroadcastRequest = Static<typeof MailBroadcastRequest>
export const MailBroadcast = component('MailBroadcast', {
  items: array(Message, { description: 'One for each recipient, in the order of their names; one thread.' }),
  total: integer({ minimum: 0 }),
})

const part = (description: string) => string({ minLength: 1, maxLength: MAX_SUBJECT, description })
export const MailArchiveFilter = component(
  'MailArchiveFilter',
  {
    to: optional(address('Whose mailbox.')),
    all_recipients: optional(literal(true, { description: 'All mailboxes.' })),
    from: optional(address('Its sender, in full.')),
    subject_prefix: optional(part('What its subject begins with.')),
    subject_contains: optional(part('What is in its subject.')),
    empty_body: optional(boolean({ description: 'Only messages with nothing, or only blanks, in their body.' })),
    include_read: optional(boolean({ description: 'Also what was read; else only unread messages.' })),
  },
  {
    description:
      'Either `to` or `all_recipients`, and one of `from`, `subject_prefix`, `subject_contains` at least; case does not matter.',
  },
)
export type MailArchiveFilter = Static<typeof MailArchiveFilter>
export const MailArchiveRequest = component(
  'MailArchiveRequest',
  {
    ids: optional(array(string({ minLength: 1, maxLength: 64 }), { minItems: 1, maxItems: MAX_ARCHIVED })),
    filter: optional(MailArchiveFilter),
    limit: optional(
      integer({
        minimum: 1,
        maximum: MAX_ARCHIVED,
        default: 100,
        description: 'With `filter`: the oldest messages up to this many; 100 where absent.',
      }),
    ),
    dry_run: optional(boolean({ description: 'Only say what would happen.' })),
  },
  { description: 'Either `ids` or `filter`.' },
)
export type MailArchiveRequest = Static<typeof MailArchiveRequest>
export const MailArchived = component('MailArchived', {
  dry_run: boolean(),
  results: array(
    object({
      id: string(),
      status: choice(['archived', 'unchanged', 'not_found'], {
        description: '`unchanged`: it was archived before. With `dry_run`: what it would be.',
      }),
      error: optional(string({ description: 'With `not_found`.' })),
    }),
    { description: 'In the order of `ids`; of a filter: oldest first.' },
  ),
  total: integer({ minimum: 0, description: 'How many messages `results` has.' }),
})
export type MailArchived = Static<typeof MailArchived>

export const MailCount = component('MailCount', {
  total: integer({ minimum: 0, description: 'Without what is archived.' }),
  unread: integer({ minimum: 0 }),
})
export const MailCheck = component('MailCheck', {
  unread: integer({ minimum: 0 }),
  message_ids: array(string(), {
    description: `Unread messages, in the order in which they are told: at most ${MAX_CHECKED}.`,
  }),
  text: string({ description: 'What an agent is told of them; empty where there are none.' }),
})
export const DeletedMail = component('DeletedMail', { id: string(), status: literal('deleted') })

const mail = family(
  { name: 'Mail', about: 'What people and agents of a city write to each other.' },
  '/v0/city/{cityName}/mail',
  {
    cityName: CityNameParam,
    id: string({ minLength: 1, description: 'Id of the message.', examples: ['ml-0123456789abcdef'] }),
  },
  { replyHeaders: ['X-SVC-Index'] },
)
const one = mail.at('/{id}', { problems: ['mail-not-found'] })
const move = one.with({ replies: { 200: Message } })
const lists = mail.with({ replies: { 200: listBody('ListBodyMessage', Message) }, problems: ['invalid-cursor'] })
/** What is sent, and to whom. */
const SENDS = {
  headers: ['Idempotency-Key'],
  bodyLimit: MAX_REQUEST_BYTES,
  problems: ['recipient-not-found', 'ambiguous-recipient', 'recipient-closed'],
} as const
const creating = mail.with(SENDS)

const agent = optional(
  string({
    minLength: 1,
    maxLength: MAX_ADDRESS,
    description: 'Whose mailbox; all of them where absent. Nobody of this name: an empty answer.',
  }),
)
const rig = optional(string({ minLength: 1, maxLength: 64, description: 'Rig of the message.' }))

export const listMail = lists.get('list-mail', '', {
  summary: 'List or search mail',
  description: 'Newest first. Without `status` the inbox: what is unread. A wait with `index` ends with mail only.',
  query: object({
    agent,
    status: optional(
      choice([...MAIL_STATUSES, 'all'], {
        description: '`unread` where absent, without `q`; `all`: unread and read.',
      }),
    ),
    from: optional(string({ minLength: 1, maxLength: MAX_ADDRESS, description: 'Its sender: name or label.' })),
    thread_id: optional(string({ minLength: 1, maxLength: 64, description: 'Its thread.' })),
    since: optional({ ...Timestamp, description: 'Sent then or later.' }),
    rig,
    q: optional(
      string({
        minLength: 1,
        maxLength: 1_000,
        description:
          'Words of its subject, body or sender, all of which it has; `word*` is the beginning of one. Looks at archived messages too where no `status` is given.',
      }),
    ),
    ...PageQuery,
    ...BlockingQuery,
  }),
  problems: ['rig-not-found'],
})

export const sendMail = creating.post('send-mail', '', {
  summary: 'Send a message',
  description:
    'It is in the mailbox of its recipient when this answers, whether that runs or not; mail to an agent waits for its next session.',
  body: MailSendRequest,
  replies: { 201: Message },
  problems: ['mail-not-found'],
  emits: ['mail.sent'],
})

export const countMail = mail.get('count-mail', '/count', {
  summary: 'Count mail',
  description: 'Of one mailbox or of all, without what is archived.',
  query: object({ agent, rig }),
  replies: { 200: MailCount },
  problems: ['rig-not-found'],
})

export const checkMail = mail.get('check-mail', '/check', {
  summary: 'What an agent is told of its mail',
  description: 'Changes nothing: what it names stays unread.',
  query: object({ agent: address('Whose mailbox.') }),
  replies: { 200: MailCheck },
})

export const broadcastMail = creating.post('broadcast-mail', '/broadcast', {
  summary: 'Send a message to many',
  description: 'All of them or nobody gets it, each as a message of its own, in one thread.',
  body: MailBroadcastRequest,
  replies: { 201: MailBroadcast },
  problems: ['no-recipients'],
  emits: ['mail.sent'],
})

export const archiveMails = mail.post('archive-mails', '/archive', {
  summary: 'Archive many messages',
  description: 'By their ids, or by what they have in common.',
  body: MailArchiveRequest,
  replies: { 200: MailArchived },
  emits: ['mail.archived'],
})

export const getMailThread = lists.get('get-mail-thread', '/threads/{id}', {
  summary: 'Read a thread',
  description: 'Oldest first, archived messages too. `id` is a thread, or any message in it.',
  query: object({
    agent: optional(
      string({
        minLength: 1,
        maxLength: MAX_ADDRESS,
        description: 'Only what this one was sent or has sent, copies too; else every message once, without copies.',
      }),
    ),
    ...PageQuery,
    ...BlockingQuery,
  }),
  problems: ['mail-not-found'],
})

export const replyMail = one.with(SENDS).post('reply-mail', '/reply', {
  summary: 'Answer a message',
  description: 'Goes to its sender, in its thread; archived mail can be answered too.',
  body: MailReplyRequest,
  bodyOptional: true,
  replies: { 201: Message },
  problems: ['conflict-wrong-state'],
  emits: ['mail.replied', 'mail.sent'],
})

export const mailOperations = [
  listMail,
  sendMail,
  countMail,
  checkMail,
  broadcastMail,
  archiveMails,
  getMailThread,
  one.get('get-mail', '', {
    summary: 'Read a message',
    description: 'Changes nothing: it stays unread.',
    replies: { 200: Message },
  }),
  one.delete('delete-mail', '', {
    summary: 'Delete a message',
    description: `For good: it is neither read nor found any more. Repeated, it answers the same for ${TOMBSTONE_DAYS} days. What the event log has of it stays until that forgets it.`,
    replies: { 200: DeletedMail },
    emits: ['mail.deleted'],
  }),
  move.post('read-mail', '/read', {
    summary: 'Mark a message as read',
    description: 'Of the mailbox that it is in; a message that is read stays so. What is archived is 409.',
    problems: ['conflict-wrong-state'],
    emits: ['mail.marked_read'],
  }),
  move.post('mark-mail-unread', '/mark-unread', {
    summary: 'Mark a message as unread',
    description: 'It counts as unread again. What is archived is 409.',
    problems: ['conflict-wrong-state'],
    emits: ['mail.marked_unread'],
  }),
  move.post('archive-mail', '/archive', {
    summary: 'Archive a message',
    description: 'It is in no list that does not ask for it, and can still be answered.',
    emits: ['mail.archived'],
  }),
  move.post('unarchive-mail', '/unarchive', {
    summary: 'Take a message out of the archive',
    description: 'It is again what it was before: read or unread.',
    emits: ['mail.unarchived'],
  }),
  replyMail,
] as const

export const MailEventMessage = component('MailEventMessage', {
  ...message,
  body_truncated: optional(boolean({ description: 'True: the body is longer; here are its first 2 KiB.' })),
})
export type MailEventMessage = Static<typeof MailEventMessage>
export const MailEventPayload = component('MailEventPayload', {
  message_id: MessageId,
  to: string(),
  mailbox: string({ description: 'Whose mailbox it is in.' }),
  thread_id: ThreadId,
  rig: string({ description: 'Rig of the message; empty: none.' }),
  message: optional(MailEventMessage),
})
export type MailEventPayload = Static<typeof MailEventPayload>

const inLog = { payload: MailEventPayload, log: 'city', emittedBy: 'mail', subject: 'its id' } as const
export const MAIL_EVENT_TYPES = {
  'mail.sent': { ...inLog, when: 'a message was sent; one for each copy and each recipient of a broadcast' },
  'mail.replied': { ...inLog, when: 'a message was sent that answers another' },
  'mail.marked_read': { ...inLog, when: 'it was marked as read' },
  'mail.marked_unread': { ...inLog, when: 'it was marked as unread' },
  'mail.archived': { ...inLog, when: 'it was archived' },
  'mail.unarchived': { ...inLog, when: 'it was taken out of the archive' },
  'mail.deleted': { ...inLog, when: 'it was deleted, by a caller or by `mail.retention_ttl` (actor `retention`)' },
} as const satisfies EventTypes
