/** Transcripts of sessions: pages and streams, in three formats (sheet 04 §5; decision 66). */

import { Timestamp } from '../base/names.ts'
import {
  anything,
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  object,
  openObject,
  optional,
  type Static,
  string,
  union,
} from '../base/schema.ts'
import { SessionActivity } from './session-model.ts'

export const TRANSCRIPT_FORMATS = ['conversation', 'raw', 'structured'] as const
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number]

/** `<generation>-<offset>`: where the entry begins in the output of its run; grows along the transcript. */
export const ENTRY_ID_PATTERN = '^[0-9]+-[0-9]+(\\.[0-9]+)?$'

export const OutputTurn = component('OutputTurn', {
  id: string({
    description:
      'Id of the entry: `before` and `after` take it. In a stream, turns with one id are pieces of one text: join them as they are.',
  }),
  role: choice(['user', 'assistant', 'system', 'result', 'output'], {
    description:
      '`output`: text of a terminal, cut anywhere, each piece with an id of its own. Such turns, one behind the other, are one text; a carriage return at the beginning goes back to the beginning of the line.',
  }),
  text: string(),
  timestamp: optional(Timestamp),
})
export type OutputTurn = Static<typeof OutputTurn>

export const PaginationInfo = component('PaginationInfo', {
  has_older_messages: boolean(),
  has_newer_messages: boolean(),
  returned_message_count: integer({ minimum: 0 }),
  total_message_count: optional(integer({ minimum: 0, description: 'Absent where it is not known at no cost.' })),
  before: optional(string({ description: '`before` of the page of older ones.' })),
  after: optional(string({ description: '`after` of the page of newer ones.' })),
  dropped_bytes: optional(integer({ minimum: 0, description: 'Output of this run that is no longer kept.' })),
  dropped_runs: optional(
    integer({ minimum: 0, description: 'Runs of the session before this page of which nothing is kept.' }),
  ),
})
export type PaginationInfo = Static<typeof PaginationInfo>

const usage = component('TranscriptUsage', {
  input_tokens: optional(integer({ minimum: 0 })),
  output_tokens: optional(integer({ minimum: 0 })),
  reasoning_tokens: optional(integer({ minimum: 0 })),
  cache_read_tokens: optional(integer({ minimum: 0 })),
  cache_creation_tokens: optional(integer({ minimum: 0 })),
  context_window_tokens: optional(integer({ minimum: 0 })),
  context_used_tokens: optional(integer({ minimum: 0 })),
  context_percent: optional(integer({ minimum: 0, maximum: 100 })),
})

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

export const TranscriptBlock = union(
  [
    component('TextBlock', { type: literal('text'), text: string() }),
    component('ThinkingBlock', { type: literal('thinking'), thinking: string(), signature: optional(string()) }),
    component('ToolUseBlock', {
      type: literal('tool_use'),
      id: string(),
      name: string(),
      file_path: optional(string()),
      input: openObject(
        { kind: choice(INPUT_KINDS) },
        { $id: 'ToolInput', description: 'What the tool was given, by kind.' },
      ),
    }),
    component('ToolResultBlock', {
      type: literal('tool_result'),
      tool_call_id: string(),
      name: optional(string()),
      file_path: optional(string()),
      content: string(),
      is_error: boolean(),
      structured: optional(
        openObject(
          { kind: choice(RESULT_KINDS) },
          { $id: 'ToolResult', description: 'What the tool gave back, by kind.' },
        ),
      ),
      error: optional(
        component('ToolError', { category: string(), message: string(), user_reason: optional(string()) }),
      ),
    }),
    component('InteractionBlock', {
      type: literal('interaction'),
      request_id: string(),
      kind: string(),
      state: choice(['opened', 'pending', 'resolved', 'dismissed', 'resumed_after_restart']),
      prompt: optional(string()),
      options: optional(array(string())),
      action: optional(string({ description: 'Id of the option that was chosen, once `resolved`.' })),
      answer: optional(string({ description: 'Its label.' })),
    }),
    component('ImageBlock', { type: literal('image'), media_type: optional(string()), ref: optional(string()) }),
    component('AttachmentBlock', {
      type: literal('attachment'),
      name: string(),
      media_type: optional(string()),
      size: optional(integer({ minimum: 0, description: 'Bytes.' })),
    }),
    component('UnknownBlock', { type: literal('unknown'), value: anything() }),
  ],
  { $id: 'TranscriptBlock' },
)
export type TranscriptBlock = Static<typeof TranscriptBlock>

export const StructuredMessage = component('StructuredMessage', {
  id: string(),
  role: choice(['user', 'assistant', 'system', 'tool', 'unknown']),
  provider: string(),
  timestamp: optional(Timestamp),
  status: choice(['final', 'partial', 'superseded', 'unknown']),
  blocks: array(TranscriptBlock),
  model: optional(string()),
  stop_reason: optional(string()),
  usage: optional(usage),
  delivery_id: optional(string({ description: 'Delivery that a user message came by.' })),
  system_event: optional(
    object({
      kind: string(),
      category: optional(string()),
      code: optional(string()),
      message: optional(string()),
    }),
  ),
})
export type StructuredMessage = Static<typeof StructuredMessage>

export const TranscriptHistory = component('TranscriptHistory', {
  transcript_stream_id: string(),
  svc_session_id: string(),
  logical_conversation_id: string(),
  provider_session_id: optional(string()),
  generation: object({ id: string(), observed_at: Timestamp }),
  cursor: object({ after_entry_id: optional(string()), resume_token: string() }),
  continuity: object({
    status: choice(['unknown', 'continuous', 'compacted', 'degraded']),
    compaction_count: integer({ minimum: 0 }),
    has_branches: boolean(),
    note: optional(string()),
  }),
  tail_state: object({
    activity: choice(['unknown', 'idle', 'in_turn']),
    last_entry_id: optional(string()),
    open_tool_call_ids: array(string()),
    pending_interaction_ids: array(string()),
    degraded: boolean(),
    degraded_reason: optional(string()),
  }),
  diagnostics: array(object({ code: string(), count: integer({ minimum: 0 }), message: string() })),
})
export type TranscriptHistory = Static<typeof TranscriptHistory>

const about = { id: string(), template: string(), provider: string() }

export const SessionTranscriptResponse = component('SessionTranscriptResponse', {
  ...about,
  format: choice([...TRANSCRIPT_FORMATS, 'text'], {
    description: '`text`: no structure is known, the turns are what its terminal showed.',
  }),
  turns: optional(array(OutputTurn, { description: '`conversation` and `text`.' })),
  messages: optional(
    array(object({ id: string(), value: anything() }), {
      description: '`raw`: lines of the log of the program, as it wrote them; text where a line is not JSON.',
    }),
  ),
  schema_version: optional(literal('session.structured.v1')),
  operation: optional(
    choice(['snapshot', 'upsert', 'reset'], {
      description:
        '`structured`. `snapshot` and `reset` begin anew, with `history`; `upsert` adds messages, or puts them in the place of those with their ids.',
    }),
  ),
  reset_reason: optional(choice(['resume_invalid', 'stream_changed', 'cursor_invalidated', 'history_rewritten'])),
  history: optional(TranscriptHistory),
  structured_messages: optional(array(StructuredMessage)),
  pagination: optional(PaginationInfo),
})
export type SessionTranscriptResponse = Static<typeof SessionTranscriptResponse>

export const AgentOutputResponse = component('AgentOutputResponse', {
  agent: string(),
  session_id: optional(string()),
  format: choice(['conversation', 'text']),
  turns: array(OutputTurn),
  pagination: optional(PaginationInfo),
})
export type AgentOutputResponse = Static<typeof AgentOutputResponse>

export const SessionActivityFrame = component('SessionActivityFrame', { activity: SessionActivity })
export const SessionPendingClearedFrame = component('SessionPendingClearedFrame', { request_id: string() })
export const StreamEndedFrame = component('StreamEndedFrame', {
  session_id: optional(string()),
  state: string(),
  reason: string(),
  at: Timestamp,
})

export const SubAgent = component('SubAgent', {
  agent_id: string(),
  parent_tool_use_id: string(),
  status: optional(choice(['pending', 'running', 'completed', 'failed'])),
})
export const SubAgentListBody = component('SubAgentListBody', { agents: array(SubAgent) })
export const SubAgentTranscript = component('SubAgentTranscript', {
  messages: array(anything()),
  status: choice(['pending', 'running', 'completed', 'failed']),
})
