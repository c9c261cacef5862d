/** What a session is on the wire: its record, its deliveries, its interactions, its waits (sheet 04 §§2, 3; decisions 51–73). */
import Type, { type Static } from 'typebox'
import { Timestamp } from './base/names.ts'

export const RUNTIME_NAMES = ['tmux', 'subprocess', 'acp'] as const
export const RuntimeName = Type.Enum(RUNTIME_NAMES, {
  $id: 'RuntimeName',
  description: 'How a session talks to its agent.',
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
export const SessionState = Type.Enum(SESSION_STATES, { $id: 'SessionState' })
export type SessionState = Static<typeof SessionState>

export const SESSION_DESIRES = ['running', 'asleep', 'suspended', 'closed'] as const
export const SessionActivity = Type.Enum(['idle', 'in-turn'], {
  $id: 'SessionActivity',
  description: 'What its agent does; absent where that is not known.',
})
export const SESSION_KINDS = ['agent', 'provider'] as const
export const SESSION_ORIGINS = ['named', 'ephemeral', 'manual'] as const

/** Shapes of names (sheet 04 §2.1): a handle for people, and the id that it must not look like. */
export const SESSION_ID_PATTERN = '^s-[0-9a-f]{16}$'
export const ALIAS_PATTERN = '^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$'
export const MAX_MESSAGE_BYTES = 1_048_576

export const SessionExit = Type.Object(
  {
    at: Timestamp,
    reason: Type.String({
      description:
        'What the process did: `exited`, `signalled`, `killed`, `protocol_error`, `handshake_failed`, `host_lost` or `unknown`.',
    }),
    classification: Type.Enum(['crash', 'rate_limited', 'user_stop', 'idle', 'config_change', 'exited'], {
      description: 'What it was taken for.',
    }),
    code: Type.Optional(Type.Integer()),
    signal: Type.Optional(Type.String()),
    message: Type.Optional(Type.String({ description: 'Last words.' })),
  },
  { $id: 'SessionExit', additionalProperties: false },
)
export type SessionExit = Static<typeof SessionExit>

export const SessionResponse = Type.Object(
  {
    id: Type.String({ pattern: SESSION_ID_PATTERN }),
    kind: Type.Enum(SESSION_KINDS, { description: '`provider`: a conversation with a program, without an agent.' }),
    template: Type.String({ description: 'Qualified name of the agent, or name of the provider.' }),
    state: SessionState,
    desired: Type.Enum(SESSION_DESIRES, { description: 'What the reconciler moves it to.' }),
    reason: Type.Optional(Type.String({ description: 'Why it does not run (sheet of reasons in the reference).' })),
    agent: Type.String({ description: 'Name under which it works and owns work: of its agent, or of the instance.' }),
    title: Type.String(),
    alias: Type.Optional(Type.String({ description: 'Handle for people, unique among open sessions.' })),
    provider: Type.String(),
    display_name: Type.Optional(Type.String()),
    session_name: Type.String({ description: 'Name at its runtime.' }),
    runtime: RuntimeName,
    work_dir: Type.Optional(Type.String()),
    origin: Type.Enum(SESSION_ORIGINS),
    created_at: Timestamp,
    updated_at: Timestamp,
    state_since: Timestamp,
    last_active: Type.Optional(Timestamp),
    last_nudge_delivered_at: Type.Optional(Timestamp),
    running: Type.Boolean({ description: 'Its process was alive when last observed.' }),
    liveness: Type.Enum(['alive', 'dead', 'unknown'], { description: 'What is known of its process.' }),
    observed_at: Timestamp,
    attached: Type.Boolean({ description: 'Somebody is at its terminal or at an attended stream.' }),
    pinned: Type.Boolean({ description: 'Kept awake.' }),
    rig: Type.Optional(Type.String()),
    pool: Type.Optional(Type.String({ description: 'Agent that it is an instance of.' })),
    agent_kind: Type.Optional(Type.Enum(['crew', 'pool', 'role'])),
    active_bead: Type.Optional(Type.String({ description: 'Bead in progress that it holds.' })),
    last_output: Type.Optional(Type.String({ description: 'Last lines of its screen; with `peek`.' })),
    model: Type.Optional(Type.String()),
    context_pct: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
    context_window: Type.Optional(Type.Integer({ minimum: 0, description: 'Tokens.' })),
    activity: Type.Optional(SessionActivity),
    pending: Type.Optional(Type.String({ description: 'Id of the interaction that it waits for.' })),
    queued: Type.Integer({ minimum: 0, description: 'Deliveries that wait.' }),
    submission_capabilities: Type.Object(
      { supports_follow_up: Type.Boolean(), supports_interrupt_now: Type.Boolean() },
      { additionalProperties: false },
    ),
    configured_named_session: Type.Optional(Type.Boolean()),
    options: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Effective options.' })),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    project_id: Type.Optional(Type.String()),
    generation: Type.Integer({ minimum: 0, description: 'How often it was started.' }),
    pid: Type.Optional(Type.Integer({ minimum: 1 })),
    last_exit: Type.Optional(SessionExit),
    crash_count: Type.Integer({ minimum: 0, description: 'Crashes that count towards its quarantine.' }),
    quarantined_until: Type.Optional(Timestamp),
    revision: Type.Integer({ minimum: 1 }),
  },
  { $id: 'SessionResponse', additionalProperties: false },
)
export type SessionResponse = Static<typeof SessionResponse>

export const PendingInteraction = Type.Object(
  {
    request_id: Type.String(),
    kind: Type.Enum(['approval', 'question']),
    prompt: Type.Optional(Type.String()),
    options: Type.Optional(Type.Array(Type.String(), { description: 'Labels, in order.' })),
    option_ids: Type.Optional(Type.Array(Type.String(), { description: 'Ids of the options, in the same order.' })),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
  },
  { $id: 'PendingInteraction', additionalProperties: false },
)
export type PendingInteraction = Static<typeof PendingInteraction>

export const DELIVERY_STATES = ['queued', 'delivering', 'delivered', 'failed', 'cancelled', 'expired'] as const
export const DeliveryState = Type.Enum(DELIVERY_STATES, { $id: 'DeliveryState', description: 'How far a delivery is.' })
export const DELIVERY_SOURCES = ['message', 'submit', 'nudge', 'wait', 'prompt'] as const
export const DeliverySource = Type.Enum(DELIVERY_SOURCES, {
  $id: 'DeliverySource',
  description: 'What made a delivery.',
})
export const SUBMIT_INTENTS = ['default', 'follow_up', 'interrupt_now'] as const
export const SubmitIntent = Type.Enum(SUBMIT_INTENTS, {
  $id: 'SubmitIntent',
  description:
    '`default` waits for the end of the turn, up to 30 s; `follow_up` queues behind it; `interrupt_now` interrupts it.',
})
export type SubmitIntent = Static<typeof SubmitIntent>

export const DeliveryInfo = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    seq: Type.Integer({ minimum: 1, description: 'Place in the queue; delivered in this order.' }),
    source: DeliverySource,
    intent: SubmitIntent,
    state: DeliveryState,
    text: Type.String(),
    request_id: Type.Optional(Type.String()),
    error_code: Type.Optional(
      Type.String({ description: '`delivery_uncertain`: it may have been typed, and is not typed again.' }),
    ),
    error_message: Type.Optional(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Timestamp,
  },
  { $id: 'DeliveryInfo', additionalProperties: false },
)
export type DeliveryInfo = Static<typeof DeliveryInfo>

export const WAIT_STATES = ['pending', 'ready', 'canceled', 'expired'] as const
export const WaitState = Type.Enum(WAIT_STATES, { $id: 'WaitState', description: 'How far a wait is.' })
export const WaitInfo = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    kind: Type.Literal('deps'),
    state: WaitState,
    dep_ids: Type.Array(Type.String(), { description: 'Beads that it waits for.' }),
    dep_mode: Type.Enum(['all', 'any']),
    note: Type.Optional(Type.String({ description: 'Said to the session when the wait is over.' })),
    delivery_id: Type.Optional(Type.String({ description: 'How it was told.' })),
    created_at: Timestamp,
    expires_at: Timestamp,
    finished_at: Type.Optional(Timestamp),
  },
  { $id: 'WaitInfo', additionalProperties: false },
)
export type WaitInfo = Static<typeof WaitInfo>

// ---- payloads of events ---------------------------------------------------------------------------------------------

export const SessionLifecyclePayload = Type.Object(
  {
    session_id: Type.String(),
    template: Type.String(),
    from: Type.Union([SessionState, Type.Literal('none')]),
    to: Type.Union([SessionState, Type.Literal('none')]),
    reason: Type.Optional(Type.String()),
    attempt: Type.Optional(Type.Integer({ minimum: 1, description: 'Of starting it, since it last lived.' })),
  },
  { $id: 'SessionLifecyclePayload', additionalProperties: false, description: '`none`: before it was, after it is.' },
)

export const SessionUpdatedPayload = Type.Object(
  {
    session_id: Type.String(),
    template: Type.String(),
    changed: Type.Array(Type.String()),
    revision: Type.Integer({ minimum: 1 }),
    session: SessionResponse,
  },
  { $id: 'SessionUpdatedPayload', additionalProperties: false },
)

export const SessionPendingPayload = Type.Object(
  { session_id: Type.String(), template: Type.String(), pending: PendingInteraction },
  { $id: 'SessionPendingPayload', additionalProperties: false },
)
export const SessionPendingClearedPayload = Type.Object(
  {
    session_id: Type.String(),
    template: Type.String(),
    request_id: Type.String(),
    outcome: Type.Enum(['answered', 'dismissed', 'gone']),
    action: Type.Optional(Type.String()),
  },
  { $id: 'SessionPendingClearedPayload', additionalProperties: false },
)

export const SessionDeliveryPayload = Type.Object(
  {
    session_id: Type.String(),
    delivery_id: Type.String(),
    state: DeliveryState,
    source: DeliverySource,
    error_code: Type.Optional(Type.String()),
  },
  { $id: 'SessionDeliveryPayload', additionalProperties: false },
)

export const SessionStrandedPayload = Type.Object(
  {
    session_id: Type.String(),
    session_name: Type.String(),
    template: Type.String(),
    work_bead_ids: Type.Array(Type.String()),
  },
  { $id: 'SessionStrandedPayload', additionalProperties: false },
)

export const SessionCreateSucceededPayload = Type.Object(
  { request_id: Type.String(), session: SessionResponse },
  { $id: 'SessionCreateSucceededPayload', additionalProperties: false },
)
export const SessionMessageSucceededPayload = Type.Object(
  { request_id: Type.String(), session_id: Type.String(), delivery_id: Type.String(), queued: Type.Boolean() },
  { $id: 'SessionMessageSucceededPayload', additionalProperties: false },
)
export const SessionSubmitSucceededPayload = Type.Object(
  {
    request_id: Type.String(),
    session_id: Type.String(),
    delivery_id: Type.String(),
    queued: Type.Boolean({ description: 'It waits in the queue; its delivery says when it was typed.' }),
    intent: SubmitIntent,
  },
  { $id: 'SessionSubmitSucceededPayload', additionalProperties: false },
)

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
export const WorkerOperationPayload = Type.Object(
  {
    op_id: Type.String(),
    operation: Type.Enum(WORKER_OPERATIONS),
    result: Type.Enum(['succeeded', 'failed']),
    session_id: Type.String(),
    session_name: Type.String(),
    template: Type.String(),
    provider: Type.String(),
    transport: RuntimeName,
    started_at: Timestamp,
    finished_at: Timestamp,
    duration_ms: Type.Number({ minimum: 0 }),
    queued: Type.Optional(Type.Boolean()),
    delivered: Type.Optional(Type.Boolean()),
    error: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    agent_name: Type.Optional(Type.String()),
    bead_id: Type.Optional(Type.String()),
    input_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    output_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    cache_read_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    cache_creation_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  { $id: 'WorkerOperationPayload', additionalProperties: false },
)
export type WorkerOperationPayload = Static<typeof WorkerOperationPayload>

export const WaitPayload = Type.Object(
  {
    wait_id: Type.String(),
    session_id: Type.String(),
    state: WaitState,
    dep_ids: Type.Array(Type.String()),
  },
  { $id: 'WaitPayload', additionalProperties: false },
)
