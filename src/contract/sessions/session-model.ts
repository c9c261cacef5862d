/** What a session is on the wire: its record, its deliveries, its interactions, its waits (sheet 04 §§2, 3; decisions 51–73). */

import type { Gone } from '../base/config-shape.ts'
import type { EventTypes } from '../base/event-type.ts'
import { Timestamp } from '../base/names.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  number,
  object,
  optional,
  record,
  type Static,
  string,
  union,
} from '../base/schema.ts'
import { UsageTotals } from './usage.ts'

/** Where a session works: in the directory as it is, or in a git worktree of its own. */
export const ISOLATIONS = ['none', 'worktree'] as const
export type Isolation = (typeof ISOLATIONS)[number]

export const RUNTIME_NAMES = ['subprocess', 'acp'] as const
export const GONE_RUNTIMES: Gone = {
  tmux: {
    now: 'subprocess',
    hint: 'every agent runs on a terminal of its own host now: write `subprocess`; `svcctl session attach` opens that terminal',
  },
}
export const RuntimeName = choice(RUNTIME_NAMES, {
  $id: 'RuntimeName',
  description: 'How a session talks to its agent.',
  'x-svc': { gone: GONE_RUNTIMES },
})
export type RuntimeName = Static<typeof RuntimeName>

export const SESSION_STATES = [
  'start-pending',
  'creating',
  'active',
  'asleep',
  'suspended',
  'draining',
  'quarantined',
  'failed-create',
  'closed',
] as const
export const SessionState = choice(SESSION_STATES, { $id: 'SessionState' })
export type SessionState = Static<typeof SessionState>

export const SESSION_DESIRES = ['running', 'asleep', 'suspended', 'closed'] as const
export const SessionActivity = choice(['idle', 'in-turn'], {
  $id: 'SessionActivity',
  description: 'What its agent does; absent where that is not known.',
})
export const LIMIT_SOURCES = ['protocol', 'report', 'log', 'screen'] as const
export const SESSION_KINDS = ['agent', 'provider'] as const
export const SESSION_ORIGINS = ['named', 'ephemeral', 'manual'] as const

/** Shapes of names (sheet 04 §2.1): a handle for people, and the id that it must not look like. */
export const SESSION_ID_PATTERN = '^s-[0-9a-f]{16}$'
export const ALIAS_PATTERN = '^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$'
export const MAX_MESSAGE_BYTES = 1_048_576
/** Of all that goes with one message, decoded. */
export const MAX_ATTACHED_BYTES = 8 * 1_048_576
export const MAX_ATTACHMENTS = 10

export const SessionExit = component('SessionExit', {
  at: Timestamp,
  reason: string({
    description:
      'What the process did: `exited`, `signalled`, `killed`, `protocol_error`, `handshake_failed`, `host_lost` or `unknown`.',
  }),
  classification: choice(['crash', 'rate_limited', 'user_stop', 'idle', 'config_change', 'exited'], {
    description: 'What it was taken for.',
  }),
  code: optional(integer()),
  signal: optional(string()),
  message: optional(string({ description: 'Last words.' })),
  output: optional(string({ description: 'The last 20 lines that it wrote, at most 4,000 characters.' })),
})
export type SessionExit = Static<typeof SessionExit>

export const OptionApplied = choice(['now', 'queued', 'next_start'], {
  $id: 'OptionApplied',
  description:
    '`now`: the agent was told; `queued`: a command for it waits in the queue of the session; `next_start`: it runs on as it was started.',
})
export type OptionApplied = Static<typeof OptionApplied>

export const SessionResponse = component('SessionResponse', {
  id: string({ pattern: SESSION_ID_PATTERN }),
  kind: choice(SESSION_KINDS, { description: '`provider`: a conversation with a program, without an agent.' }),
  template: string({ description: 'Qualified name of the agent, or name of the provider.' }),
  state: SessionState,
  desired: choice(SESSION_DESIRES, { description: 'What the reconciler moves it to.' }),
  reason: optional(string({ description: 'Why it does not run (sheet of reasons in the reference).' })),
  agent: string({ description: 'Name under which it works and owns work: of its agent, or of the instance.' }),
  title: string(),
  alias: optional(string({ description: 'Handle for people, unique among open sessions.' })),
  provider: string(),
  display_name: optional(string()),
  session_name: string({ description: 'Name at its runtime.' }),
  runtime: RuntimeName,
  work_dir: optional(string()),
  worktree: optional(string({ description: 'Name of the git worktree that it works in.' })),
  origin: choice(SESSION_ORIGINS),
  created_at: Timestamp,
  updated_at: Timestamp,
  state_since: Timestamp,
  last_active: optional(Timestamp),
  last_nudge_delivered_at: optional(Timestamp),
  running: boolean({ description: 'Its process was alive when last observed.' }),
  liveness: choice(['alive', 'dead', 'unknown'], { description: 'What is known of its process.' }),
  observed_at: Timestamp,
  attached: boolean({ description: 'Somebody is at its terminal or at an attended stream.' }),
  pinned: boolean({ description: 'Kept awake.' }),
  rig: optional(string()),
  pool: optional(string({ description: 'Agent that it is an instance of.' })),
  agent_kind: optional(choice(['crew', 'pool', 'role'])),
  active_bead: optional(string({ description: 'Bead in progress that it holds.' })),
  last_output: optional(string({ description: 'Last lines of its screen; with `peek`.' })),
  model: optional(string()),
  context_pct: optional(integer({ minimum: 0, maximum: 100 })),
  context_window: optional(integer({ minimum: 0, description: 'Tokens.' })),
  activity: optional(SessionActivity),
  activity_source: optional(
    choice(['protocol', 'report', 'screen', 'none'], {
      description:
        'Who says so: the agent protocol or, of a shell, its terminal; a report of the harness; its screen; nobody.',
    }),
  ),
  activity_since: optional(Timestamp),
  pending: optional(string({ description: 'Id of the interaction that it waits for.' })),
  queued: integer({ minimum: 0, description: 'Deliveries that wait.' }),
  submission_capabilities: object({ supports_follow_up: boolean(), supports_interrupt_now: boolean() }),
  configured_named_session: optional(boolean()),
  options: optional(record(string(), { description: 'Effective options.' })),
  options_applied: optional(
    record(OptionApplied, {
      description: 'By key, since when a change of options is effective; in the answer to that change only.',
    }),
  ),
  mode: optional(string({ description: 'Mode that its agent is in, where it tells.' })),
  metadata: optional(record(string())),
  project_id: optional(string()),
  generation: integer({ minimum: 0, description: 'How often it was started.' }),
  pid: optional(integer({ minimum: 1 })),
  last_exit: optional(SessionExit),
  crash_count: integer({ minimum: 0, description: 'Crashes that count towards its quarantine.' }),
  quarantined_until: optional(Timestamp),
  limited_until: optional({
    ...Timestamp,
    description: 'Its provider limits it: until then nothing is typed to it, and what is sent waits.',
  }),
  limit_source: optional(choice(LIMIT_SOURCES, { description: 'Who says that it is limited.' })),
  limit_message: optional(string({ description: 'In the words of its harness.' })),
  usage: optional(UsageTotals),
  revision: integer({ minimum: 1 }),
})
export type SessionResponse = Static<typeof SessionResponse>

export const PendingInteraction = component('PendingInteraction', {
  request_id: string(),
  kind: choice(['approval', 'question']),
  prompt: optional(string()),
  options: optional(array(string(), { description: 'Labels, in order.' })),
  option_ids: optional(array(string(), { description: 'Ids of the options, in the same order.' })),
  metadata: optional(record(string())),
})
export type PendingInteraction = Static<typeof PendingInteraction>

export const DELIVERY_STATES = ['queued', 'delivering', 'delivered', 'failed', 'cancelled', 'expired'] as const
export const DeliveryState = choice(DELIVERY_STATES, { $id: 'DeliveryState', description: 'How far a delivery is.' })
export const DELIVERY_SOURCES = ['message', 'submit', 'nudge', 'wait', 'prompt', 'option', 'mail', 'chat'] as const
export const DeliverySource = choice(DELIVERY_SOURCES, {
  $id: 'DeliverySource',
  description:
    'What made a delivery; `mail` and `chat` are reminders whose text is put together when they are typed, empty before.',
})
export const ACKNOWLEDGERS = ['protocol', 'hook', 'screen', 'nobody'] as const
export const Acknowledger = choice(ACKNOWLEDGERS, {
  $id: 'Acknowledger',
  description:
    'Who says that the program took a delivered message: its protocol (of a shell, its terminal), a report of the harness, its screen; `nobody`: it was typed, and whether it was read is not known.',
})
export type Acknowledger = Static<typeof Acknowledger>
export const SUBMIT_INTENTS = ['default', 'follow_up', 'interrupt_now'] as const
export const SubmitIntent = choice(SUBMIT_INTENTS, {
  $id: 'SubmitIntent',
  description:
    '`default` waits for the end of the turn, up to 30 s; `follow_up` queues behind it; `interrupt_now` interrupts it.',
})
export type SubmitIntent = Static<typeof SubmitIntent>

const WAITS_FOR = ['turn', 'answer', 'person', 'rate_limit', 'hold', 'restart'] as const
export type WaitsFor = (typeof WAITS_FOR)[number]
const WHY_QUEUED =
  'Why it is queued: a turn is under way, a question is open, a person is typing, the provider limits the agent, the session is held (`hold`: a person suspended it, or its budget is used up, and a person must wake it), or it is about to restart (`restart`).'

export const SENDER_KINDS = ['person', 'agent', 'service', 'supervisor'] as const
export const MessageSender = component(
  'MessageSender',
  {
    kind: choice(SENDER_KINDS),
    name: string({ description: 'Name of the agent or service; of a person `api`, or `token:NAME`.' }),
    session_id: optional(string({ description: 'Session of the agent.' })),
  },
  {
    description:
      'Who speaks. What an agent or a service says begins with a line that names it, except where the program runs what it reads. Without `auth` every caller counts as a person.',
  },
)
export type MessageSender = Static<typeof MessageSender>

export const DeliveryInfo = component('DeliveryInfo', {
  id: string(),
  session_id: string(),
  seq: integer({ minimum: 1, description: 'Place in the queue; delivered in this order.' }),
  source: DeliverySource,
  intent: SubmitIntent,
  state: DeliveryState,
  sender: optional(MessageSender),
  text: string({ description: 'As it was sent, without the line that names the sender.' }),
  attachments: optional(
    array(object({ name: string(), mime_type: optional(string()), size: integer({ minimum: 0 }) }), {
      description: 'What goes with it; bytes are kept until it has ended.',
    }),
  ),
  waits_for: optional(
    choice([...WAITS_FOR, 'start'], {
      description: `${WHY_QUEUED} \`start\`: its program does not run. Only in lists, and absent where it is about to be said.`,
    }),
  ),
  text_removed: optional(boolean({ description: 'Its text is no longer kept: `[retention] delivery_texts`.' })),
  request_id: optional(string()),
  error_code: optional(
    string({ description: '`delivery_uncertain`: it may have been typed, and is not typed again.' }),
  ),
  error_message: optional(string()),
  acknowledged_by: optional(Acknowledger),
  created_at: Timestamp,
  updated_at: Timestamp,
  expires_at: Timestamp,
})
export type DeliveryInfo = Static<typeof DeliveryInfo>

export const WAIT_STATES = ['pending', 'ready', 'canceled', 'expired'] as const
export const WaitState = choice(WAIT_STATES, { $id: 'WaitState', description: 'How far a wait is.' })
export const WaitInfo = component('WaitInfo', {
  id: string(),
  session_id: string(),
  kind: literal('deps'),
  state: WaitState,
  dep_ids: array(string(), { description: 'Beads that it waits for.' }),
  dep_mode: choice(['all', 'any']),
  note: optional(string({ description: 'Said to the session when the wait is over.' })),
  delivery_id: optional(string({ description: 'How it was told.' })),
  created_at: Timestamp,
  expires_at: Timestamp,
  finished_at: optional(Timestamp),
})
export type WaitInfo = Static<typeof WaitInfo>

// ---- payloads of events ---------------------------------------------------------------------------------------------

export const SessionLifecyclePayload = component(
  'SessionLifecyclePayload',
  {
    session_id: string(),
    template: string(),
    from: union([SessionState, literal('none')]),
    to: union([SessionState, literal('none')]),
    reason: optional(string()),
    attempt: optional(integer({ minimum: 1, description: 'Of starting it, since it last lived.' })),
  },
  { description: '`none`: before it was, after it is.' },
)

export const SessionUpdatedPayload = component('SessionUpdatedPayload', {
  session_id: string(),
  template: string(),
  changed: array(string()),
  revision: integer({ minimum: 1 }),
  session: SessionResponse,
})

export const SessionPendingPayload = component('SessionPendingPayload', {
  session_id: string(),
  template: string(),
  pending: PendingInteraction,
})
export const SessionPendingClearedPayload = component('SessionPendingClearedPayload', {
  session_id: string(),
  template: string(),
  request_id: string(),
  outcome: choice(['answered', 'dismissed', 'gone']),
  action: optional(string()),
  by: optional(string({ description: 'Who answered.' })),
})

/** A tool of a session was let through or refused: by somebody who was asked, or by a rule. */
export const SessionPermissionPayload = component('SessionPermissionPayload', {
  session_id: string(),
  template: string(),
  request_id: string(),
  tool: string(),
  subject: optional(string({ description: 'The command, or the path.' })),
  decision: choice(['allow', 'deny']),
  by: string({ description: 'Who answered, or which rule.' }),
  asked: boolean({ description: 'Somebody was asked; false: a rule decided.' }),
})

export const SessionDeliveryPayload = component('SessionDeliveryPayload', {
  session_id: string(),
  delivery_id: string(),
  state: DeliveryState,
  source: DeliverySource,
  sender: optional(MessageSender),
  error_code: optional(string()),
})

export const SessionRateLimitedPayload = component('SessionRateLimitedPayload', {
  session_id: string(),
  template: string(),
  limited_until: Timestamp,
  limit_source: choice(LIMIT_SOURCES),
  message: optional(string({ description: 'In the words of its harness.' })),
})
export const SessionRateLimitEndedPayload = component('SessionRateLimitEndedPayload', {
  session_id: string(),
  template: string(),
  reason: choice(['time', 'report', 'output', 'wake'], { description: '`output`: a turn of it has succeeded since.' }),
})

export const SessionStrandedPayload = component('SessionStrandedPayload', {
  session_id: string(),
  session_name: string(),
  template: string(),
  work_bead_ids: array(string()),
})

const went = (description: string) => integer({ minimum: 0, description })
export const RetentionSweptPayload = component('RetentionSweptPayload', {
  runs: went('Outputs of processes that have ended.'),
  run_bytes: went('What they took on the disk.'),
  closed_sessions: went('Sessions that were closed long ago.'),
  delivery_texts: went('Texts of messages that have ended.'),
  text_bytes: went('What those were long.'),
  other: optional(
    record(went('How many.'), {
      description:
        'What else went, by kind: `mail`, `mail_left_behind`, `mail_tombstones`, `transcript_entries`, `attachments`, `deliveries`, `order_runs` and others.',
    }),
  ),
})
export type RetentionSweptPayload = Static<typeof RetentionSweptPayload>

export const SessionCreateSucceededPayload = component('SessionCreateSucceededPayload', {
  request_id: string(),
  session: SessionResponse,
})
const WaitsFor = optional(choice(WAITS_FOR, { description: WHY_QUEUED }))
export const SessionMessageSucceededPayload = component('SessionMessageSucceededPayload', {
  request_id: string(),
  session_id: string(),
  delivery_id: string(),
  queued: boolean(),
  waits_for: WaitsFor,
})
export const SessionSubmitSucceededPayload = component('SessionSubmitSucceededPayload', {
  request_id: string(),
  session_id: string(),
  delivery_id: string(),
  queued: boolean({ description: 'It waits in the queue; its delivery says when it was typed.' }),
  intent: SubmitIntent,
  waits_for: WaitsFor,
})

export const WORKER_OPERATIONS = [
  'start',
  'adopt',
  'stop',
  'kill',
  'message',
  'interrupt',
  'nudge',
  'respond',
  'reset',
] as const
export const WorkerOperationPayload = component('WorkerOperationPayload', {
  op_id: string(),
  operation: choice(WORKER_OPERATIONS),
  result: choice(['succeeded', 'failed']),
  session_id: string(),
  session_name: string(),
  template: string(),
  provider: string(),
  transport: RuntimeName,
  started_at: Timestamp,
  finished_at: Timestamp,
  duration_ms: number({ minimum: 0 }),
  queued: optional(boolean()),
  delivered: optional(boolean()),
  error: optional(string()),
  model: optional(string()),
  agent_name: optional(string()),
  bead_id: optional(string()),
  input_tokens: optional(integer({ minimum: 0 })),
  output_tokens: optional(integer({ minimum: 0 })),
  cache_read_tokens: optional(integer({ minimum: 0 })),
  cache_creation_tokens: optional(integer({ minimum: 0 })),
})
export type WorkerOperationPayload = Static<typeof WorkerOperationPayload>

export const WaitPayload = component('WaitPayload', {
  wait_id: string(),
  session_id: string(),
  state: WaitState,
  dep_ids: array(string()),
})

// What the log of a city says about sessions and waits (sheet 04 §12).

const inLog = { log: 'city', emittedBy: 'sessions' } as const

export const SESSION_EVENT_TYPES = {
  'session.created': { payload: SessionLifecyclePayload, ...inLog, when: 'a session was accepted' },
  'session.waking': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'something wants it to run: it waits for its turn to start',
  },
  'session.starting': { payload: SessionLifecyclePayload, ...inLog, when: 'its process is being started' },
  'session.woke': { payload: SessionLifecyclePayload, ...inLog, when: 'its process is ready' },
  'session.stopped': { payload: SessionLifecyclePayload, ...inLog, when: 'its process ended in an orderly way' },
  'session.asleep': { payload: SessionLifecyclePayload, ...inLog, when: 'it sleeps: nothing wants it to run' },
  'session.crashed': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its process ended unexpectedly; `message` has its last screen',
  },
  'session.start_failed': { payload: SessionLifecyclePayload, ...inLog, when: 'a start did not succeed' },
  'session.killed': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its processes were ended by force, on request',
  },
  'session.draining': { payload: SessionLifecyclePayload, ...inLog, when: 'it was asked to finish' },
  'session.undrained': { payload: SessionLifecyclePayload, ...inLog, when: 'a drain was taken back' },
  'session.quarantined': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'it crashed too often; it is tried again later',
  },
  'session.suspended': { payload: SessionLifecyclePayload, ...inLog, when: 'it was stopped until a person wakes it' },
  'session.idle_killed': { payload: SessionLifecyclePayload, ...inLog, when: 'it was idle too long and starts afresh' },
  'session.max_age_killed': { payload: SessionLifecyclePayload, ...inLog, when: 'it was too old and starts afresh' },
  'session.reset': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'it starts again with a fresh conversation; with the reason `conversation-lost` nobody asked for that: its harness did not have the one that it was to go on with',
  },
  'session.closed': { payload: SessionLifecyclePayload, ...inLog, when: 'it ended for good' },
  'session.deleted': { payload: SessionLifecyclePayload, ...inLog, when: 'its record was deleted' },
  'session.unknown_state': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its process could not be observed for too long',
  },
  'session.updated': {
    payload: SessionUpdatedPayload,
    ...inLog,
    when: 'its title, alias, options or other fields changed',
  },
  'session.pending': { payload: SessionPendingPayload, ...inLog, when: 'it waits for an answer' },
  'session.pending_cleared': {
    payload: SessionPendingClearedPayload,
    ...inLog,
    when: 'it no longer waits for an answer',
  },
  'session.permission': {
    payload: SessionPermissionPayload,
    ...inLog,
    when: 'it was decided whether it may use a tool',
  },
  'session.delivery': { payload: SessionDeliveryPayload, ...inLog, when: 'a delivery changed its state' },
  'session.rate_limited': {
    payload: SessionRateLimitedPayload,
    ...inLog,
    when: 'its provider limits it, or the end of that has moved',
  },
  'session.rate_limit_ended': {
    payload: SessionRateLimitEndedPayload,
    ...inLog,
    when: 'its provider limits it no more',
  },
  'session.stranded': { payload: SessionStrandedPayload, ...inLog, when: 'it ended while it held work' },
  'request.result.session.create': {
    payload: SessionCreateSucceededPayload,
    ...inLog,
    when: 'the session can take commands',
  },
  'request.result.session.message': {
    payload: SessionMessageSucceededPayload,
    ...inLog,
    when: 'the message was typed, or is queued',
  },
  'request.result.session.submit': {
    payload: SessionSubmitSucceededPayload,
    ...inLog,
    when: 'the message was typed, or is queued',
  },
  'retention.swept': {
    payload: RetentionSweptPayload,
    ...inLog,
    subject: 'the name of the city',
    when: 'what is kept for a while only was removed: what sessions left, mail, transcripts, runs of orders',
  },
  'worker.operation': { payload: WorkerOperationPayload, ...inLog, when: 'a call of a runtime ended' },
  'wait.created': { payload: WaitPayload, ...inLog, when: 'a session waits for beads' },
  'wait.ready': { payload: WaitPayload, ...inLog, when: 'what it waited for is closed' },
  'wait.canceled': { payload: WaitPayload, ...inLog, when: 'the wait was cancelled, or its session is gone' },
  'wait.expired': { payload: WaitPayload, ...inLog, when: 'the wait took too long' },
} as const satisfies EventTypes
