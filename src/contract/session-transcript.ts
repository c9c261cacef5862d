/** Transcripts of sessions: pages and streams, in three formats (sheet 04 §5; decision 66). */
import Type, { type Static } from 'typebox'
import { Timestamp } from './base/names.ts'
import { SessionActivity } from './session-model.ts'

export const TRANSCRIPT_FORMATS = ['conversation', 'raw', 'structured'] as const
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number]

/** `<generation>-<offset>`: where the entry begins in the output of its run; grows along the transcript. */
export const ENTRY_ID_PATTERN = '^[0-9]+-[0-9]+(\\.[0-9]+)?$'

export const OutputTurn = Type.Object(
  {
    id: Type.String({
      description:
        'Id of the entry: `before` and `after` take it. In a stream, turns with one id are pieces of one text: join them as they are.',
    }),
    role: Type.Enum(['user', 'assistant', 'system', 'result', 'output'], {
      description:
        '`output`: text of a terminal. Such turns, one behind the other, are one text; a carriage return at the beginning goes back to the beginning of the line.',
    }),
    text: Type.String(),
    timestamp: Type.Optional(Timestamp),
  },
  { $id: 'OutputTurn', additionalProperties: false },
)
export type OutputTurn = Static<typeof OutputTurn>

export const PaginationInfo = Type.Object(
  {
    has_older_messages: Type.Boolean(),
    has_newer_messages: Type.Boolean(),
    returned_message_count: Type.Integer({ minimum: 0 }),
    total_message_count: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Absent where it is not known at no cost.' }),
    ),
    before: Type.Optional(Type.String({ description: '`before` of the page of older ones.' })),
    after: Type.Optional(Type.String({ description: '`after` of the page of newer ones.' })),
    dropped_bytes: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Output of this run that is no longer kept.' }),
    ),
  },
  { $id: 'PaginationInfo', additionalProperties: false },
)
export type PaginationInfo = Static<typeof PaginationInfo>

const usage = Type.Object(
  {
    input_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    output_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    reasoning_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    cache_read_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    cache_creation_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    context_window_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    context_used_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
    context_percent: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  },
  { $id: 'TranscriptUsage', additionalProperties: false },
)

export const INPUT_KINDS = [
  'command',
  'stdin',
  'code',
  'patch',
  'write',
  'glob',
  'fetch',
  'search',
  'file',
  'todo',
  'plan',
  'question',
  'task',
  'text',
  'arguments',
  'unknown',
] as const
export const RESULT_KINDS = [
  'bash',
  'python',
  'read',
  'glob',
  'grep',
  'search',
  'fetch',
  'todo',
  'plan',
  'question',
  'stdin',
  'task',
  'write',
  'edit',
  'text',
  'unknown',
] as const

const closed = { additionalProperties: false } as const
const named = <const Id extends string>($id: Id) => ({ $id, additionalProperties: false }) as const
export const TranscriptBlock = Type.Union(
  [
    Type.Object({ type: Type.Literal('text'), text: Type.String() }, named('TextBlock')),
    Type.Object(
      { type: Type.Literal('thinking'), thinking: Type.String(), signature: Type.Optional(Type.String()) },
      named('ThinkingBlock'),
    ),
    Type.Object(
      {
        type: Type.Literal('tool_use'),
        id: Type.String(),
        name: Type.String(),
        file_path: Type.Optional(Type.String()),
        input: Type.Object(
          { kind: Type.Enum(INPUT_KINDS) },
          { $id: 'ToolInput', additionalProperties: true, description: 'What the tool was given, by kind.' },
        ),
      },
      named('ToolUseBlock'),
    ),
    Type.Object(
      {
        type: Type.Literal('tool_result'),
        tool_call_id: Type.String(),
        name: Type.Optional(Type.String()),
        file_path: Type.Optional(Type.String()),
        content: Type.String(),
        is_error: Type.Boolean(),
        structured: Type.Optional(
          Type.Object(
            { kind: Type.Enum(RESULT_KINDS) },
            { $id: 'ToolResult', additionalProperties: true, description: 'What the tool gave back, by kind.' },
          ),
        ),
        error: Type.Optional(
          Type.Object(
            { category: Type.String(), message: Type.String(), user_reason: Type.Optional(Type.String()) },
            named('ToolError'),
          ),
        ),
      },
      named('ToolResultBlock'),
    ),
    Type.Object(
      {
        type: Type.Literal('interaction'),
        request_id: Type.String(),
        kind: Type.String(),
        state: Type.Enum(['opened', 'pending', 'resolved', 'dismissed', 'resumed_after_restart']),
        prompt: Type.Optional(Type.String()),
        options: Type.Optional(Type.Array(Type.String())),
        action: Type.Optional(Type.String()),
      },
      named('InteractionBlock'),
    ),
    Type.Object(
      { type: Type.Literal('image'), media_type: Type.Optional(Type.String()), ref: Type.Optional(Type.String()) },
      named('ImageBlock'),
    ),
    Type.Object({ type: Type.Literal('unknown'), value: Type.Unknown() }, named('UnknownBlock')),
  ],
  { $id: 'TranscriptBlock' },
)
export type TranscriptBlock = Static<typeof TranscriptBlock>

export const StructuredMessage = Type.Object(
  {
    id: Type.String(),
    role: Type.Enum(['user', 'assistant', 'system', 'tool', 'unknown']),
    provider: Type.String(),
    timestamp: Type.Optional(Timestamp),
    status: Type.Enum(['final', 'partial', 'superseded', 'unknown']),
    blocks: Type.Array(TranscriptBlock),
    model: Type.Optional(Type.String()),
    stop_reason: Type.Optional(Type.String()),
    usage: Type.Optional(usage),
    delivery_id: Type.Optional(Type.String({ description: 'Delivery that a user message came by.' })),
    system_event: Type.Optional(
      Type.Object(
        {
          kind: Type.String(),
          category: Type.Optional(Type.String()),
          code: Type.Optional(Type.String()),
          message: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
  },
  { $id: 'StructuredMessage', additionalProperties: false },
)
export type StructuredMessage = Static<typeof StructuredMessage>

export const TranscriptHistory = Type.Object(
  {
    transcript_stream_id: Type.String(),
    svc_session_id: Type.String(),
    logical_conversation_id: Type.String(),
    provider_session_id: Type.Optional(Type.String()),
    generation: Type.Object({ id: Type.String(), observed_at: Timestamp }, closed),
    cursor: Type.Object({ after_entry_id: Type.Optional(Type.String()), resume_token: Type.String() }, closed),
    continuity: Type.Object(
      {
        status: Type.Enum(['unknown', 'continuous', 'compacted', 'degraded']),
        compaction_count: Type.Integer({ minimum: 0 }),
        has_branches: Type.Boolean(),
        note: Type.Optional(Type.String()),
      },
      closed,
    ),
    tail_state: Type.Object(
      {
        activity: Type.Enum(['unknown', 'idle', 'in_turn']),
        last_entry_id: Type.Optional(Type.String()),
        open_tool_call_ids: Type.Array(Type.String()),
        pending_interaction_ids: Type.Array(Type.String()),
        degraded: Type.Boolean(),
        degraded_reason: Type.Optional(Type.String()),
      },
      closed,
    ),
    diagnostics: Type.Array(
      Type.Object({ code: Type.String(), count: Type.Integer({ minimum: 0 }), message: Type.String() }, closed),
    ),
  },
  { $id: 'TranscriptHistory', additionalProperties: false },
)
export type TranscriptHistory = Static<typeof TranscriptHistory>

const about = { id: Type.String(), template: Type.String(), provider: Type.String() }

export const SessionTranscriptResponse = Type.Object(
  {
    ...about,
    format: Type.Enum([...TRANSCRIPT_FORMATS, 'text'], {
      description: '`text`: no structure is known, the turns are what its terminal showed.',
    }),
    turns: Type.Optional(Type.Array(OutputTurn, { description: '`conversation` and `text`.' })),
    messages: Type.Optional(
      Type.Array(Type.Object({ id: Type.String(), value: Type.Unknown() }, closed), {
        description: '`raw`: lines of the log of the program, as it wrote them; text where a line is not JSON.',
      }),
    ),
    schema_version: Type.Optional(Type.Literal('session.structured.v1')),
    operation: Type.Optional(
      Type.Enum(['snapshot', 'upsert', 'reset'], {
        description:
          '`structured`. `snapshot` and `reset` begin anew, with `history`; `upsert` adds messages, or puts them in the place of those with their ids.',
      }),
    ),
    reset_reason: Type.Optional(
      Type.Enum(['resume_invalid', 'stream_changed', 'cursor_invalidated', 'history_rewritten']),
    ),
    history: Type.Optional(TranscriptHistory),
    structured_messages: Type.Optional(Type.Array(StructuredMessage)),
    pagination: Type.Optional(PaginationInfo),
  },
  { $id: 'SessionTranscriptResponse', additionalProperties: false },
)
export type SessionTranscriptResponse = Static<typeof SessionTranscriptResponse>

export const AgentOutputResponse = Type.Object(
  {
    agent: Type.String(),
    session_id: Type.Optional(Type.String()),
    format: Type.Enum(['conversation', 'text']),
    turns: Type.Array(OutputTurn),
    pagination: Type.Optional(PaginationInfo),
  },
  { $id: 'AgentOutputResponse', additionalProperties: false },
)
export type AgentOutputResponse = Static<typeof AgentOutputResponse>

export const SessionActivityFrame = Type.Object(
  { activity: SessionActivity },
  { $id: 'SessionActivityFrame', additionalProperties: false },
)
export const SessionPendingClearedFrame = Type.Object(
  { request_id: Type.String() },
  { $id: 'SessionPendingClearedFrame', additionalProperties: false },
)
export const StreamEndedFrame = Type.Object(
  {
    session_id: Type.Optional(Type.String()),
    state: Type.String(),
    reason: Type.String(),
    at: Timestamp,
  },
  { $id: 'StreamEndedFrame', additionalProperties: false },
)

export const SubAgent = Type.Object(
  {
    agent_id: Type.String(),
    parent_tool_use_id: Type.String(),
    status: Type.Optional(Type.Enum(['pending', 'running', 'completed', 'failed'])),
  },
  { $id: 'SubAgent', additionalProperties: false },
)
export const SubAgentListBody = Type.Object(
  { agents: Type.Array(SubAgent) },
  { $id: 'SubAgentListBody', additionalProperties: false },
)
export const SubAgentTranscript = Type.Object(
  { messages: Type.Array(Type.Unknown()), status: Type.Enum(['pending', 'running', 'completed', 'failed']) },
  { $id: 'SubAgentTranscript', additionalProperties: false },
)
