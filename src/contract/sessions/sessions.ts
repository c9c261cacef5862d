/** Sessions: conversations with real agent processes (sheet 04 §4; decisions 51–73). */

import { family } from '../base/family.ts'
import { CityNameParam, durationSchema, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, OrderQuery, PageQuery } from '../base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  NULL,
  nullable,
  object,
  optional,
  record,
  type Static,
  string,
  union,
} from '../base/schema.ts'
import { HEARTBEAT } from '../base/streams.ts'
import {
  ALIAS_PATTERN,
  DeliveryInfo,
  DeliveryState,
  ISOLATIONS,
  MAX_ATTACHED_BYTES,
  MAX_ATTACHMENTS,
  MAX_MESSAGE_BYTES,
  OptionApplied,
  PendingInteraction,
  RuntimeName,
  SESSION_KINDS,
  SessionResponse,
  SubmitIntent,
  WaitInfo,
  WaitState,
} from './session-model.ts'
import {
  SessionActivityFrame,
  SessionPendingClearedFrame,
  SessionTranscriptResponse,
  StreamEndedFrame,
  SubAgentListBody,
  SubAgentTranscript,
  TRANSCRIPT_FORMATS,
} from './session-transcript.ts'

/** Of bodies with a message: in JSON, quotes and line breaks take two bytes; what is attached is base64. */
const bodyLimit = 2 * MAX_MESSAGE_BYTES + Math.ceil((MAX_ATTACHED_BYTES * 4) / 3) + 65_536
const message = string({
  minLength: 1,
  maxLength: MAX_MESSAGE_BYTES,
  // A control character is not typed: of nothing else there would be an Enter alone.
  pattern: '[^\\s\\u0000-\\u001f\\u007f-\\u009f]',
  description:
    'At most 1 MiB in UTF-8. Control characters other than newline and tab do not reach the agent; one of nothing else is refused.',
  examples: ['hello'],
})
const title = string({ minLength: 1, maxLength: 500, description: 'What people call it.' })
const alias = string({
  pattern: ALIAS_PATTERN,
  maxLength: 64,
  description: 'Letters, digits, `_`, `-`, `.` and `/` between segments; not `human`, not beginning with `s-`.',
  examples: ['helper'],
})

/** Either `data` or `path`. */
export const MessageAttachment = component(
  'MessageAttachment',
  {
    name: optional(
      string({ minLength: 1, maxLength: 255, description: 'For people and the agent; that of the path.' }),
    ),
    mime_type: optional(
      string({
        pattern: '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$',
        maxLength: 127,
        description: 'Needed with `data`.',
        examples: ['image/png'],
      }),
    ),
    data: optional(string({ minLength: 1, description: 'The bytes, as base64.' })),
    path: optional(
      string({
        minLength: 1,
        maxLength: 4096,
        description: 'A file in the work directory of the session, which the agent reads itself.',
      }),
    ),
  },
  { description: 'A picture or a file that goes with a message; its bytes, or where it is.' },
)
export type MessageAttachment = Static<typeof MessageAttachment>
const attachments = array(MessageAttachment, {
  maxItems: MAX_ATTACHMENTS,
  description: 'Only over ACP, and what its agent takes; at most 8 MiB together.',
})

export const SessionAcceptedResponse = component('SessionAcceptedResponse', {
  status: literal('accepted'),
  request_id: string(),
  event_cursor: string({ description: 'Pass it as `after_seq` to the stream of the city.' }),
  session_id: string(),
  delivery_id: optional(string({ description: 'Place of the message in the queue of the session.' })),
})
export type SessionAcceptedResponse = Static<typeof SessionAcceptedResponse>

export const SessionCreateRequest = component('SessionCreateRequest', {
  kind: choice(SESSION_KINDS),
  name: string({
    minLength: 1,
    maxLength: 256,
    description: 'Qualified name of an agent, or name of a provider.',
    examples: ['shell'],
  }),
  alias: optional(alias),
  title: optional(title),
  message: optional(message),
  attachments: optional(attachments),
  options: optional(record(string(), { description: 'By key of the options of the provider.' })),
  runtime: optional(RuntimeName),
  work_dir: optional(
    string({ minLength: 1, maxLength: 4096, description: 'Absolute, or inside the city. Must exist.' }),
  ),
  isolation: optional(
    choice(ISOLATIONS, {
      description: '`worktree`: it works in a git worktree of its own, on a branch of its own. Else as its agent says.',
    }),
  ),
  project_id: optional(string({ minLength: 1, maxLength: 256 })),
  metadata: optional(record(string({ maxLength: 4096 }), { maxProperties: 100 })),
  env: optional(
    record(string({ maxLength: 32_768 }), {
      maxProperties: 100,
      description: 'Variables of its environment, over all others; not `SVC_*`. They are shown nowhere.',
    }),
  ),
  fork_of: optional(
    string({
      minLength: 1,
      maxLength: 256,
      description: 'A session of the same agent or provider: this one begins with what was said there.',
    }),
  ),
})
export type SessionCreateRequest = Static<typeof SessionCreateRequest>

export const SessionPatchRequest = component('SessionPatchRequest', {
  title: optional(title),
  alias: optional(union([alias, literal(''), NULL], { description: 'Empty or null: none.' })),
  metadata: optional(record(nullable(string({ maxLength: 4096 })), { maxProperties: 100 })),
  pinned: optional(boolean({ description: 'Kept awake: it does not fall asleep when it is idle.' })),
  options: optional(
    record(nullable(string({ maxLength: 256 })), {
      maxProperties: 50,
      description: 'By key, as `GET …/options` has them; null: what it would have had without a choice.',
    }),
  ),
  model: optional(nullable(string({ maxLength: 256, description: 'The option `model`, as free text.' }))),
  mode: optional(
    nullable(
      string({ maxLength: 256, description: 'The option `permission_mode`, or a mode that its agent offers itself.' }),
    ),
  ),
})

/** What can be chosen for a session: by its provider, and by its agent as far as it has said. */
export const SessionOption = component('SessionOption', {
  key: string(),
  label: string(),
  value: optional(string({ description: 'What is effective, or will be at the next start.' })),
  current: optional(string({ description: 'What the agent says that it is set to.' })),
  choices: array(object({ value: string(), label: string() }), { description: 'Suggestions, where `free`.' }),
  free: boolean({ description: 'Any text is a value.' }),
  applies: OptionApplied,
})
export type SessionOption = Static<typeof SessionOption>
export const SessionOptionsBody = component('SessionOptionsBody', {
  options: array(SessionOption),
  attachments: object(
    { images: boolean(), audio: boolean(), files: boolean(), links: boolean() },
    { description: 'What may go with a message; all false where its runtime takes text alone.' },
  ),
  forks: boolean({ description: 'Another session can begin with its conversation.' }),
})
export type SessionOptionsBody = Static<typeof SessionOptionsBody>

export const SessionMessageRequest = component('SessionMessageRequest', {
  message,
  attachments: optional(attachments),
})
export const SessionSubmitRequest = component('SessionSubmitRequest', {
  message,
  attachments: optional(attachments),
  intent: optional(SubmitIntent),
})
export const SessionNudgeRequest = component('SessionNudgeRequest', {
  message,
  delivery: optional(
    choice(['immediate', 'wait_idle', 'queue'], {
      default: 'wait_idle',
      description: '`immediate` does not wait for the end of a turn; `queue` does not wake a sleeping session.',
    }),
  ),
})
export const SessionRespondRequest = component('SessionRespondRequest', {
  action: choice(['approve', 'allow', 'approve_always', 'approve_accept_edits', 'deny', 'option', 'cancel'], {
    description:
      '`allow` is `approve`, `approve_accept_edits` is `approve_always`; `option` chooses one by `option_id`; `cancel` dismisses the question.',
  }),
  request_id: optional(string({ description: 'The one that is meant; another one pending answers 409.' })),
  option_id: optional(string({ description: 'With `option`: id or label.' })),
  text: optional(string({ maxLength: 16_384, description: 'Free answer to a question.' })),
})
export const SessionPendingBody = component('SessionPendingBody', {
  supported: boolean({ description: 'False: its runtime cannot tell.' }),
  pending: optional(PendingInteraction),
})
export const PendingItem = component('PendingItem', {
  session_id: string(),
  template: string(),
  title: string(),
  alias: optional(string()),
  since: Timestamp,
  ...PendingInteraction.properties,
})
export type PendingItem = Static<typeof PendingItem>
export const DeletedSession = component('DeletedSession', { status: literal('deleted'), id: string() })
export const SessionStopBody = component('SessionStopBody', {
  session: SessionResponse,
  interrupted: boolean({ description: 'A turn was under way, and was seen to end.' }),
  ended: boolean({ description: 'No turn runs now.' }),
  forced: optional(boolean({ description: 'The turn went on, so its process was killed; it starts again.' })),
})
export const SessionDrainBody = component('SessionDrainBody', {
  draining: boolean(),
  reason: optional(string()),
  since: optional(Timestamp),
  deadline: optional(Timestamp),
  acknowledged: boolean(),
})
export const SessionPruneBody = component('SessionPruneBody', {
  deleted: array(string()),
  count: integer({ minimum: 0 }),
})

const states = string({
  pattern: '^[a-z-]+(,[a-z-]+)*$',
  description: 'States, separated by commas; also `all`, `open` (the default: all but closed) and `closed`.',
})
const peek = {
  peek: optional(boolean({ description: 'With the last lines of the screen.' })),
  peek_lines: optional(integer({ minimum: 0, maximum: 10_000, default: 5, description: 'How many, with `peek`.' })),
}

const SESSIONS = { name: 'Sessions', about: 'Agent processes: start, message, prompt, interact, watch, stop.' }
const sessions = family(
  SESSIONS,
  '/v0/city/{cityName}',
  {
    cityName: CityNameParam,
    id: string({
      minLength: 1,
      maxLength: 256,
      description: 'Id, name of a configured named session, runtime name or alias; percent-encode `/`.',
      examples: ['s-0123456789abcdef'],
    }),
    deliveryId: string({ minLength: 1, description: 'As in the list of deliveries.' }),
    agentId: string({
      minLength: 1,
      maxLength: 256,
      pattern: '^[A-Za-z0-9_.:-]+$',
      description: 'As in the list of sub-agents.',
    }),
  },
  {},
)
/** Every operation on one session resolves its `{id}` first (sheet 04 §2.3); `name-taken`: another one has a configured name. */
const RESOLVE = ['session-not-found', 'ambiguous-session', 'name-taken'] as const
export const session = sessions.at('/sessions/{id}', { problems: RESOLVE })

export const change = session.with({ replies: { 200: SessionResponse }, replyHeaders: ['ETag'] })
const wake = change.with({
  description: 'Lifts holds and quarantine and starts it; what comes of that is told by session events.',
  problems: ['illegal-transition', 'conflict-config'],
  emits: [
    'session.waking',
    'session.starting',
    'session.woke',
    'session.start_failed',
    'session.undrained',
    'wait.canceled',
  ],
})
/** What is to be said to a session. */
const say = session.with({ bodyLimit, headers: ['Idempotency-Key'], problems: ['session-conflict', 'queue-full'] })
const send = say.with({
  replies: { 202: SessionAcceptedResponse },
  problems: ['pending-interaction', 'conflict-config', 'unsupported', 'unsupported-media-type'],
})

export const createSession = sessions.post('create-session', '/sessions', {
  summary: 'Start a session',
  description:
    'Everything that can be refused is refused before the 202. Ends in `request.result.session.create` when the session can take commands.',
  body: SessionCreateRequest,
  bodyLimit,
  headers: ['Idempotency-Key'],
  replies: { 202: SessionAcceptedResponse },
  problems: [
    'agent-not-found',
    'provider-not-found',
    'name-taken',
    'conflict-config',
    'untrusted-pack',
    'missing-dependency',
    'unsupported',
    'unsupported-media-type',
    'session-not-found',
    'ambiguous-session',
    'too-many-sessions',
  ],
  accepts: 'session.create',
  emits: ['session.created', 'session.starting', 'session.woke', 'session.start_failed', 'session.delivery'],
})

export const getSession = change.get('get-session', '', {
  summary: 'Get a session',
  description: '`{id}` is an id, an alias, or the name of a configured session.',
  query: object(peek),
  replyHeaders: ['X-SVC-Index'],
})

/** What ends with a session (decision 71). */
const closing = ['session.closed', 'session.delivery', 'session.stranded', 'wait.canceled', 'bead.released'] as const

export const sendSessionMessage = send.post('send-session-message', '/messages', {
  summary: 'Say something to a session',
  description:
    'Wakes it where it sleeps. Ends in `request.result.session.message` when the message was typed or queued.',
  body: SessionMessageRequest,
  accepts: 'session.message',
  emits: ['session.delivery', 'session.waking'],
})

export const submitSession = send.post('submit-session', '/submit', {
  summary: 'Say something to a session, with an intent',
  description:
    '`default` waits for the session to be idle, `follow_up` stands behind what is under way, `interrupt_now` ends the turn first.',
  body: SessionSubmitRequest,
  accepts: 'session.submit',
  emits: ['session.delivery', 'session.waking'],
})

export const listSessionDeliveries = session.get('list-session-deliveries', '/deliveries', {
  summary: 'List what was and will be said to a session',
  description: 'Newest first.',
  query: object({ state: optional(DeliveryState), ...PageQuery, ...OrderQuery, ...BlockingQuery }),
  replies: { 200: listBody('ListBodyDeliveryInfo', DeliveryInfo) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})

export const getSessionPending = session.get('get-session-pending', '/pending', {
  summary: 'See what a session waits for',
  description: 'The question or permission request that is open; `supported: false` where its runtime has none.',
  replies: { 200: SessionPendingBody },
  replyHeaders: ['X-SVC-Index'],
})

export const respondSession = change.post('respond-session', '/respond', {
  summary: 'Answer what a session waits for',
  description:
    '`request_id` makes sure that the answer is for the question that was seen. What the agent makes of it is told by events.',
  body: SessionRespondRequest,
  problems: ['no-pending', 'invalid-interaction', 'unsupported', 'gateway-timeout'],
  emits: ['session.pending_cleared'],
})

export const listPending = sessions.get('list-pending', '/pending', {
  summary: 'List everything that waits for a person',
  description: 'Open questions and permission requests of all sessions of the city.',
  query: object(BlockingQuery),
  replies: { 200: listBody('ListBodyPendingItem', PendingItem) },
  replyHeaders: ['X-SVC-Index'],
})

const transcriptQuery = {
  format: optional(
    choice(TRANSCRIPT_FORMATS, {
      default: 'conversation',
      description:
        '`conversation`: turns as text; `raw`: as the runtime or the harness wrote it; `structured`: messages in blocks.',
    }),
  ),
  include_thinking: optional(boolean({ description: 'With what the model thought, where it is known.' })),
}

export const getSessionTranscript = session.get('get-session-transcript', '/transcript', {
  summary: 'Read the transcript of a session',
  description: 'The newest page where neither `before` nor `after` is given; chronological inside a page.',
  query: object({
    ...transcriptQuery,
    limit: optional(
      integer({
        minimum: 0,
        maximum: 1000,
        default: 100,
        description: 'Entries of the page; 0 means the default.',
      }),
    ),
    before: optional(string({ maxLength: 256, description: 'Entries before this one.' })),
    after: optional(string({ maxLength: 256, description: 'Entries after this one; not with `before`.' })),
  }),
  replies: { 200: SessionTranscriptResponse },
  problems: ['transcript-cursor-invalidated'],
})

const waits = family(
  SESSIONS,
  '/v0/city/{cityName}/waits',
  { cityName: CityNameParam, id: string({ minLength: 1, description: 'As in the list of waits.' }) },
  {},
)
const wait = waits.at('/{id}', { replies: { 200: WaitInfo }, problems: ['wait-not-found'] })

export const sessionOperations = [
  sessions.get('list-sessions', '/sessions', {
    summary: 'List sessions',
    description: 'Newest first.',
    query: object({
      state: optional(states),
      template: optional(string({ minLength: 1, description: 'Sessions of this agent or provider.' })),
      rig: optional(string({ minLength: 1, description: 'Sessions of agents of this rig.' })),
      ...peek,
      ...PageQuery,
      ...OrderQuery,
      ...BlockingQuery,
    }),
    replies: { 200: listBody('ListBodySessionResponse', SessionResponse) },
    replyHeaders: ['X-SVC-Index'],
    problems: ['invalid-cursor'],
  }),
  createSession,
  sessions.post('prune-sessions', '/sessions/prune', {
    summary: 'Delete closed sessions',
    description: 'Those that were closed longer ago than `closed_before`, with their transcripts.',
    body: component('SessionPruneRequest', { closed_before: durationSchema('Closed at least this long ago.') }),
    replies: { 200: SessionPruneBody },
    emits: ['session.deleted'],
  }),
  getSession,
  change.patch('patch-session', '', {
    summary: 'Change a session: its title, alias, metadata, options, whether it is pinned',
    description:
      'JSON Merge Patch; an empty object changes nothing. Options reach an agent that runs where its protocol or its terminal has a word for it, else its next start; `options_applied` says which. What the agent refuses is 422, and nothing is changed.',
    body: SessionPatchRequest,
    headers: ['If-Match'],
    problems: ['forbidden', 'session-conflict', 'unsupported'],
    emits: ['session.updated', 'session.delivery'],
  }),
  session.get('get-session-options', '/options', {
    summary: 'See what can be chosen for a session',
    description:
      'Options of its provider, and what its agent has said that it can be set to; what may go with a message. Of an agent that never ran only the first is known.',
    replies: { 200: SessionOptionsBody },
  }),
  session.delete('delete-session', '', {
    summary: 'Close a session and delete its record',
    description: 'Its process is ended, its deliveries fail, its waits are cancelled, its leases are released.',
    headers: ['If-Match'],
    replies: { 200: DeletedSession },
    problems: ['session-conflict'],
    emits: [...closing, 'session.deleted'],
  }),
  sendSessionMessage,
  send.post('prompt-session', '/prompt', {
    summary: 'Say something to a session (as `messages`)',
    description: 'The same as `POST /sessions/{id}/messages`, under another name.',
    body: SessionMessageRequest,
    accepts: 'session.message',
    emits: ['session.delivery', 'session.waking'],
  }),
  submitSession,
  say.post('nudge-session', '/nudge', {
    summary: 'Remind a session of something',
    description: 'A message that nobody waits for: answers with its delivery. It wakes no session that was suspended.',
    body: SessionNudgeRequest,
    replies: { 201: DeliveryInfo },
    emits: ['session.delivery', 'session.waking'],
  }),
  listSessionDeliveries,
  session.delete('cancel-session-delivery', '/deliveries/{deliveryId}', {
    summary: 'Cancel a queued delivery',
    description: 'One that is being typed, or was, is not taken back.',
    replies: { 200: DeliveryInfo },
    problems: ['delivery-not-found', 'conflict-wrong-state'],
    emits: ['session.delivery'],
  }),
  session.post('stop-session', '/stop', {
    summary: 'Interrupt the turn of a session',
    description:
      'The process stays; nothing happens where none runs. 504 where the turn goes on: with `force` its process is then killed, and started again with the conversation that it had.',
    query: object({ force: optional(boolean({ description: 'Kill the process where its turn goes on.' })) }),
    replies: { 200: SessionStopBody },
    problems: ['unsupported', 'gateway-timeout'],
  }),
  change.post('kill-session', '/kill', {
    summary: 'End the processes of a session by force',
    headers: ['Idempotency-Key'],
    description: 'The record stays: the reconciler starts it again. Use `suspend` to stop for good.',
    problems: ['session-conflict', 'gateway-timeout'],
    emits: ['session.killed'],
  }),
  change.post('suspend-session', '/suspend', {
    summary: 'Stop a session until a person wakes it',
    description:
      'Held until a person wakes it, or says something to it. Messages of agents and services wait; nudges, mail and work do not wake it either.',
    problems: ['illegal-transition'],
    emits: ['session.suspended'],
  }),
  wake.post('wake-session', '/wake', {
    summary: 'Wake a session',
  }),
  wake.post('resume-session', '/resume', {
    summary: 'Wake a session (as `wake`)',
  }),
  change.post('close-session', '/close', {
    summary: 'End a session for good',
    description:
      'Ends its process, its streams, deliveries and waits, and gives its work back. The record stays until it is pruned or deleted.',
    query: object({ delete: optional(boolean({ description: 'Also delete its record.' })) }),
    problems: ['session-conflict'],
    emits: closing,
  }),
  change.post('reset-session', '/reset', {
    summary: 'Restart a session with a fresh conversation',
    headers: ['Idempotency-Key'],
    description: 'Its process ends and is started with a conversation of its own, under a new `continuation_epoch`.',
    problems: ['session-conflict'],
    emits: ['session.draining', 'session.reset'],
  }),
  change.post('request-session-restart', '/request-restart', {
    summary: 'Restart a session once its turn has ended',
    headers: ['Idempotency-Key'],
    description: 'For agents themselves; the conversation goes on.',
    problems: ['session-conflict'],
    emits: ['session.draining', 'session.killed'],
  }),
  change.post('heartbeat-session', '/heartbeat', {
    summary: 'Say that a session is at work',
    description: 'Renews the leases of what it has claimed.',
    problems: ['session-conflict'],
  }),
  change.post('drain-session', '/drain', {
    summary: 'Ask a session to finish and sleep',
    description:
      'It ends what it is doing; its process ends when it says that it has finished, or when the time for that is over.',
    problems: ['illegal-transition'],
    emits: ['session.draining'],
  }),
  change.post('undrain-session', '/undrain', {
    summary: 'Take a drain back',
    description: 'Only while it is draining: it goes on as before.',
    problems: ['illegal-transition'],
    emits: ['session.undrained'],
  }),
  change.post('ack-session-drain', '/drain-ack', {
    summary: 'Say that a draining session has finished',
    description: 'Its process is ended now instead of after the time-out of the drain.',
    problems: ['illegal-transition'],
    emits: ['session.stopped'],
  }),
  session.get('get-session-drain', '/drain', {
    summary: 'See whether a session is asked to finish',
    description: 'For the agent to ask, too: whether it is draining, why, and until when.',
    replies: { 200: SessionDrainBody },
  }),
  change.post('release-session-name', '/release-name', {
    summary: 'Free the alias of a closed session',
    description: 'So that another session can take it.',
    problems: ['session-conflict'],
    emits: ['session.updated'],
  }),
  getSessionPending,
  respondSession,
  listPending,
  getSessionTranscript,
  session.get('stream-session', '/stream', {
    summary: 'Follow a session',
    description:
      'Server-sent events: what there is, then what comes; ends with an `ended` frame when the session is closed. Resumable in every format.',
    query: object({
      ...transcriptQuery,
      after_cursor: optional(string({ maxLength: 2048, description: '`id:` of the last frame received.' })),
      attended: optional(
        boolean({ description: 'A person is watching: the session is not restarted without consent.' }),
      ),
    }),
    headers: ['Last-Event-ID'],
    replies: {},
    replyHeaders: ['SVC-Session-State', 'SVC-Session-Status'],
    frames: [
      {
        event: 'turn',
        data: SessionTranscriptResponse,
        id: 'place in the transcript',
        description: 'Turns, with `format=conversation`.',
      },
      {
        event: 'message',
        data: SessionTranscriptResponse,
        id: 'place in the transcript',
        description: 'Lines of the log of the program, with `format=raw`.',
      },
      {
        event: 'structured',
        data: SessionTranscriptResponse,
        id: 'place in the transcript',
        description: 'Messages, with `format=structured`; `upsert` replaces by id.',
      },
      { event: 'activity', data: SessionActivityFrame, description: 'A turn began or ended.' },
      {
        event: 'pending',
        data: PendingInteraction,
        id: 'place in the transcript, and the question',
        description: 'It waits for an answer. Who resumes behind it is told again, or that it no longer waits.',
      },
      {
        event: 'pending_cleared',
        data: SessionPendingClearedFrame,
        id: 'place in the transcript',
        description: 'It no longer waits.',
      },
      { event: 'ended', data: StreamEndedFrame, description: 'The session is closed; nothing more comes.' },
      HEARTBEAT,
    ],
    problems: ['invalid-cursor'],
  }),
  session.get('list-session-agents', '/agents', {
    summary: 'List the sub-agents of a session',
    description: 'Found in the logs that its harness writes; empty where it writes none.',
    replies: { 200: SubAgentListBody },
  }),
  session.get('get-session-agent', '/agents/{agentId}', {
    summary: 'Read the transcript of a sub-agent',
    description: 'As its harness wrote it.',
    replies: { 200: SubAgentTranscript },
    problems: ['agent-not-found'],
  }),
  waits.get('list-waits', '', {
    summary: 'List waits',
    description: 'Newest first.',
    query: object({
      state: optional(WaitState),
      session: optional(string({ minLength: 1, description: 'Waits of this session: its id or alias.' })),
      ...PageQuery,
      ...OrderQuery,
    }),
    replies: { 200: listBody('ListBodyWaitInfo', WaitInfo) },
    replyHeaders: ['X-SVC-Index'],
    problems: ['session-not-found', 'ambiguous-session', 'name-taken', 'invalid-cursor'],
  }),
  wait.get('get-wait', '', {
    summary: 'Get a wait',
    description: 'Also one that has ended, until its session is deleted.',
  }),
  wait.delete('cancel-wait', '', {
    summary: 'Cancel a wait',
    description: 'Only one that is pending; its session is not told.',
    problems: ['conflict-wrong-state'],
    emits: ['wait.canceled'],
  }),
  session.post('create-session-wait', '/waits', {
    summary: 'Park a session until beads are closed',
    description: 'It may sleep meanwhile; when the wait is over it is woken and told.',
    body: component('SessionWaitRequest', {
      dep_ids: array(string({ minLength: 1 }), { minItems: 1, maxItems: 1000 }),
      dep_mode: optional(choice(['all', 'any'], { default: 'all' })),
      note: optional(string({ maxLength: 16_384 })),
      timeout: optional(durationSchema('After this long it is over anyway; 24h where absent.')),
    }),
    headers: ['Idempotency-Key'],
    replies: { 201: WaitInfo },
    problems: ['bead-not-found', 'session-conflict'],
    emits: ['wait.created'],
  }),
] as const
