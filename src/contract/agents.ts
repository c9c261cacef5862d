/** Agents: who can work. Definitions live in the files of the city; what they do is observed (sheet 04 §1). */

import type { EventTypes } from './base/event-type.ts'
import { family, qualified } from './base/family.ts'
import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, QualifiedName, Revision, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody, PageQuery } from './base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  described,
  integer,
  literal,
  object,
  optional,
  type Static,
  string,
} from './base/schema.ts'
import { HEARTBEAT } from './base/streams.ts'
import { AGENT_FIELDS, RIG_NAME } from './config-schema.ts'
import { PendingInteraction, SessionActivity, SessionExit } from './sessions/session-model.ts'
import {
  AgentOutputResponse,
  SessionActivityFrame,
  SessionPendingClearedFrame,
  StreamEndedFrame,
} from './sessions/session-transcript.ts'

export const AGENT_NAME_PATTERN = '^[a-zA-Z0-9][a-zA-Z0-9_-]*$'
/** Paths of their own below an agent, so no agent can have these names (decision 69). */
export const RESERVED_AGENT_NAMES = ['output', 'suspend', 'resume', 'prompt'] as const
export const AGENT_STATES = [
  'suspended',
  'needs_answer',
  'quarantined',
  'starting',
  'stopped',
  'working',
  'waiting',
  'idle',
] as const
export const AGENT_ACTIONS = ['suspend', 'resume'] as const

/** What files say of an agent; `scope` places it. */
export const AgentDefinition = component(
  'AgentDefinition',
  { ...AGENT_FIELDS },
  { description: 'The fields of `agent.toml`.' },
)
export type AgentDefinition = Static<typeof AgentDefinition>

export const AgentResponse = component('AgentResponse', {
  name: string({
    description: 'Qualified: `[<rig>/][<binding>.]<name>`, the name of its own for an instance.',
  }),
  description: optional(string()),
  provider: optional(string()),
  display_name: optional(string({ description: 'Of its provider.' })),
  rig: optional(string()),
  pool: optional(string({ description: 'Agent that it is an instance of.' })),
  running: boolean(),
  suspended: boolean(),
  state: choice(AGENT_STATES, {
    description:
      '`needs_answer`: a session of it asks a person. `starting`: a session is to start, for the first time or again. `working`: a turn runs, or it has a bead in progress and wrote something in the last 10 minutes; `waiting`: it has one, and wrote longer ago.',
  }),
  observed_at: Timestamp,
  available: optional(
    boolean({ description: 'Neither suspended nor without its program; absent while nobody has looked for that yet.' }),
  ),
  unavailable_reason: optional(
    string({ description: '`untrusted_pack` where a pack with a say in it is not trusted.' }),
  ),
  session: optional(
    object({
      id: string(),
      name: string(),
      state: string(),
      last_activity: optional(Timestamp),
      attached: boolean(),
      last_exit: optional(SessionExit),
    }),
  ),
  sessions: integer({ minimum: 0, description: 'Open sessions of it.' }),
  min_active_sessions: integer({ minimum: 0 }),
  max_active_sessions: integer({ minimum: -1, description: '-1: no limit.' }),
  demand: optional(integer({ minimum: 0, description: 'Work that waits for it, as last counted.' })),
  active_bead: optional(string({ description: 'In progress, held by it.' })),
  activity: optional(SessionActivity),
  model: optional(string()),
  context_pct: optional(integer({ minimum: 0, maximum: 100 })),
  context_window: optional(integer({ minimum: 0 })),
  last_output: optional(string({ description: 'Last 5 lines of its screen; with `peek`.' })),
  pack_derived: boolean({ description: 'It belongs to a pack: patch it instead of changing it.' }),
  pack: optional(string()),
  file: optional(string({ description: 'File that declares it.' })),
  line: optional(integer({ minimum: 1 })),
  definition: optional(described(AgentDefinition, 'As declared; values of `env` masked. Of single reads only.')),
  revision: Revision,
})
export type AgentResponse = Static<typeof AgentResponse>

const name = string({
  pattern: AGENT_NAME_PATTERN,
  minLength: 1,
  maxLength: 64,
  not: { enum: [...RESERVED_AGENT_NAMES] },
  description: 'Letters, digits, `_` and `-`; not `output`, `suspend`, `resume`, `prompt`.',
  examples: ['worker'],
})

export const AgentCreateRequest = component('AgentCreateRequest', {
  name,
  dir: optional(string({ pattern: RIG_NAME, description: 'Rig that it belongs to; absent: the city.' })),
  ...AGENT_FIELDS,
})
export type AgentCreateRequest = Static<typeof AgentCreateRequest>

export const AgentPatchRequest = mergePatchBody(
  'AgentPatchRequest',
  AGENT_FIELDS,
  'JSON Merge Patch of what is declared: null unsets a field, lists replace, maps merge.',
)

export const DeletedAgent = component('DeletedAgent', {
  status: literal('deleted'),
  name: string(),
  closed: array(string(), { description: 'Its sessions that were closed.' }),
  revision: string({ description: 'Of the configuration without it.' }),
})

const agents = family(
  { name: 'Agents', about: 'The agents of a city: what each runs, and its output.' },
  '/v0/city/{cityName}/agents',
  {
    cityName: CityNameParam,
    agent: string({
      minLength: 1,
      description: 'Name of the agent; one of a rig is `<rig>/<name>`, its slash written `%2F`.',
      examples: ['worker'],
    }),
  },
  {},
)
/** What answers with the definition, or changes it. */
const defined = agents.with({ replies: { 200: AgentResponse }, replyHeaders: ['X-SVC-Index', 'ETag'] })
const agent = defined.at('/{agent}', { problems: ['agent-not-found'] })
const edit = agent.with({ headers: ['If-Match'], problems: ['pack-derived', 'conflict-config', 'invalid-config'] })
const rewrite = edit.with({ replyHeaders: ['X-SVC-Config-Rejected'] })
const hold = agent.with({
  description: 'Written into the files: an agent of a pack gets a patch.',
  problems: ['conflict-config'],
})
const output = agents.at('/{agent}/output', { problems: ['agent-not-found', 'ambiguous-session'] })

export const listAgents = agents.get('list-agents', '', {
  summary: 'List agents',
  description: 'By name; an agent with several sessions is followed by its instances.',
  query: object({
    pool: optional(string({ minLength: 1, description: 'Instances of this agent.' })),
    rig: optional(string({ minLength: 1, description: 'Agents of this rig.' })),
    running: optional(boolean({ description: 'Those whose process runs, or does not.' })),
    peek: optional(boolean({ description: 'With the last lines of their screens.' })),
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: listBody('ListBodyAgentResponse', AgentResponse) },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['rig-not-found', 'invalid-cursor'],
})

export const createAgent = defined.post('create-agent', '', {
  summary: 'Define an agent',
  description: 'Writes `agents/<name>/agent.toml`, or `[[agent]]` of the rig.',
  body: AgentCreateRequest,
  headers: ['Idempotency-Key', 'If-Match'],
  replyHeaders: ['X-SVC-Config-Rejected'],
  replies: { 201: AgentResponse },
  problems: ['name-taken', 'rig-not-found', 'conflict-config', 'invalid-config'],
  emits: ['agent.created', 'config.reloaded'],
})

export const getAgent = agent.get('get-agent', '', {
  summary: 'Get an agent',
  description: 'Also an instance of one, by its own name while its session is open.',
})

const AgentPayload = component('AgentPayload', {
  agent: string({ description: 'Qualified name.' }),
  changed: array(string(), { description: 'Fields of its definition; empty where it came or went.' }),
})

const inLog = { log: 'city', emittedBy: 'agents' } as const

export const AGENT_EVENT_TYPES = {
  'agent.created': { payload: AgentPayload, ...inLog, when: 'an agent was defined' },
  'agent.updated': { payload: AgentPayload, ...inLog, when: 'the definition of an agent changed' },
  'agent.deleted': { payload: AgentPayload, ...inLog, when: 'the definition of an agent is gone' },
  'agent.suspended': { payload: AgentPayload, ...inLog, when: 'an agent became suspended' },
  'agent.resumed': { payload: AgentPayload, ...inLog, when: 'an agent is no longer suspended' },
} as const satisfies EventTypes

export const agentOperations = [
  listAgents,
  createAgent,
  ...qualified('agent', QualifiedName, [
    getAgent,
    rewrite.put('replace-agent', '', {
      summary: 'Replace the definition of an agent',
      description:
        'What the body does not name is no longer set. Written to the files of the city and applied at once.',
      body: AgentDefinition,
      emits: ['agent.updated', 'config.reloaded'],
    }),
    rewrite.patch('patch-agent', '', {
      summary: 'Change the definition of an agent',
      description:
        'JSON Merge Patch: `null` removes a field, an absent one stays. Written to the files of the city and applied at once.',
      body: AgentPatchRequest,
      emits: ['agent.updated', 'config.reloaded'],
    }),
    edit.delete('delete-agent', '', {
      summary: 'Remove the definition of an agent',
      description:
        'Its sessions are closed. Refused with their names while beads that are not closed, or live molecules, wait for it.',
      query: object({
        force: optional(boolean({ description: 'Also where work waits for it; that work stays, and waits.' })),
      }),
      replies: { 200: DeletedAgent },
      problems: ['still-referenced'],
      emits: ['agent.deleted', 'session.closed', 'config.reloaded'],
    }),
    hold.post('suspend-agent', '/suspend', {
      summary: 'Suspend an agent: its sessions finish and no new one starts',
      emits: ['agent.suspended', 'config.reloaded'],
    }),
    hold.post('resume-agent', '/resume', {
      summary: 'Let a suspended agent work again',
      emits: ['agent.resumed', 'config.reloaded'],
    }),
  ]),
] as const

/** What agents say; sessions answer these. */
export const agentOutputOperations = qualified('agent', QualifiedName, [
  output.get('get-agent-output', '', {
    summary: 'Read what an agent said and did',
    description: 'Of its session that runs, else of its last one.',
    query: object({
      limit: optional(
        integer({ minimum: 0, maximum: 1000, default: 100, description: 'Entries of the page; 0 means the default.' }),
      ),
      before: optional(string({ maxLength: 256, description: 'Turns before this entry.' })),
      after: optional(string({ maxLength: 256, description: 'Turns after this entry; not with `before`.' })),
    }),
    replies: { 200: AgentOutputResponse },
    problems: ['transcript-cursor-invalidated'],
  }),
  output.get('stream-agent-output', '/stream', {
    summary: 'Follow an agent',
    description:
      'Server-sent events: what there is, then what comes, over the sessions of the agent one after the other. With `SVC-Agent-Status: stopped` nothing runs and the transcript is replayed; the stream goes on when it starts.',
    query: object({
      after_cursor: optional(string({ maxLength: 2048, description: '`id:` of the last frame received.' })),
    }),
    headers: ['Last-Event-ID'],
    replies: {},
    replyHeaders: ['SVC-Agent-Status'],
    frames: [
      { event: 'turn', data: AgentOutputResponse, id: 'place in the transcript', description: 'Turns.' },
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
      { event: 'ended', data: StreamEndedFrame, description: 'A session of it ended; the stream goes on.' },
      HEARTBEAT,
    ],
    problems: ['invalid-cursor'],
  }),
])
