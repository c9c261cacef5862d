/** Beads: units of work, their dependencies, who has them and what is ready (sheet 03 §§1–5; decisions 42–48). */

import { AsyncAcceptedResponse } from './base/accepted.ts'
import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityNameParam, RequestId, Timestamp } from './base/names.ts'
import { LINES_TYPE } from './base/operation.ts'
import { BlockingQuery, listBody, OrderQuery, PageQuery } from './base/paging.ts'
import {
  anything,
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  nullable,
  object,
  openObject,
  optional,
  record,
  type Schema,
  type Static,
  string,
} from './base/schema.ts'
import { FAILURE_CLASSES, MAX_DESCRIPTION, MAX_OUTPUT_BYTES, MAX_PERSON, MAX_TITLE } from './base/work.ts'

export const BEAD_STATUSES = ['open', 'in_progress', 'closed'] as const
export const BeadStatus = choice(BEAD_STATUSES, { $id: 'BeadStatus' })
export type BeadStatus = Static<typeof BeadStatus>
export const DEFAULT_ISSUE_TYPE = 'task'
export const MAX_LABEL = 256
export const MAX_METADATA_KEY = 256
export const MAX_METADATA_VALUE = 65_536
export const MAX_COMMENT = 65_536
/** `dependencies` of a bead shows so many edges; the rest are at `/deps`. */
export const MAX_SHOWN_DEPENDENCIES = 100
/** Each list of `/deps` holds at most so many. */
export const MAX_LISTED_DEPS = 2_000
export const MAX_BATCH_NODES = 1_000
export const MAX_BATCH_EDGES = 10_000
/** A deletion that concerns more beads and edges is accepted, and goes on behind its 202. */
export const MAX_REMOVED_AT_ONCE = 1_000
/** A graph of more is cut, and says so. */
export const MAX_GRAPH_BEADS = 10_000
export const MAX_IMPORT_BYTES = 256 * 1024 * 1024
/** Metadata of these prefixes belongs to the service (decision 43); the second is taken as an alias on import. */
export const RESERVED_METADATA_PREFIXES = ['svc.', 'gc.'] as const

/** Types of edges that keep the bead that has them from being ready until their target is closed. */
export const BLOCKING_TYPES = ['blocks', 'waits-for', 'conditional-blocks'] as const
export const PARENT_CHILD = 'parent-child'
export const OUTCOMES = ['pass', 'fail', 'skipped', 'canceled', 'missing_root'] as const
export const HOOK_TIERS = ['in_progress', 'assigned', 'routed'] as const

const text = (maxLength: number, description: string) => string({ minLength: 1, maxLength, description })
const orNull = <T extends Schema>(schema: T, description: string) => nullable(schema, { description })

const BeadId = text(256, 'Id of the bead: `<prefix>-<suffix>`; never used again.')
const Title = text(MAX_TITLE, 'What it is about.')
const IssueType = text(64, 'Any word, case-sensitive; `task` where nothing is said.')
const Priority = integer({ minimum: 0, maximum: 4, description: '0 is the most urgent; absent sorts as 2.' })
const Label = text(MAX_LABEL, 'Exact text.')
const Labels = array(Label, { maxItems: 500 })
const Person = string({
  maxLength: MAX_PERSON,
  description: 'Who has it: any name; of a session or agent its identity.',
})
const DepType = text(
  64,
  '`blocks` (default), `waits-for`, `conditional-blocks` block; `parent-child` contains; any other word informs.',
)
const MetadataValue = string({ maxLength: MAX_METADATA_VALUE })
const metadataKeys = { propertyNames: { minLength: 1, maxLength: MAX_METADATA_KEY } }
const Metadata = record(MetadataValue, {
  ...metadataKeys,
  maxProperties: 500,
  description: 'Text by key. `svc.*` and `gc.*` are the service’s.',
})

export const BeadDep = component('BeadDep', {
  issue_id: string({ description: 'The bead that depends.' }),
  depends_on_id: string({ description: 'What it depends on.' }),
  type: string(),
})
export type BeadDep = Static<typeof BeadDep>

const beadFields = {
  id: string({ description: '`<prefix>-<suffix>`; never used again.' }),
  title: string(),
  status: BeadStatus,
  issue_type: string(),
  priority: optional(integer({ description: '0 highest to 4 lowest; absent sorts as 2.' })),
  created_at: Timestamp,
  updated_at: Timestamp,
  closed_at: optional(Timestamp),
  close_reason: optional(string()),
  assignee: optional(string({ description: 'Who has it.' })),
  from: optional(string({ description: 'Who sent it.' })),
  parent: optional(string({ description: 'Id of the bead that contains it; also a `parent-child` edge.' })),
  ref: optional(string({ description: 'Formula of a molecule’s root, step of a step.' })),
  rig: optional(string({ description: 'Absent: it belongs to the city itself.' })),
  needs: optional(array(string(), { description: 'As it was created with.' })),
  dependencies: optional(
    array(BeadDep, {
      description: `Its own edges, at most ${MAX_SHOWN_DEPENDENCIES} of them; all are at \`/deps\`.`,
    }),
  ),
  description: optional(string()),
  labels: optional(array(string(), { description: 'A set, sorted.' })),
  metadata: optional(
    record(string(), {
      description: 'With what the service keeps in columns as `svc.*`.',
    }),
  ),
  ephemeral: optional(boolean({ description: 'Swept some time after it is closed.' })),
  no_history: optional(boolean({ description: 'Kept for the interchange only.' })),
  defer_until: optional(Timestamp),
  is_blocked: boolean({ description: 'Something that it depends on is not closed, or not there.' }),
  routed_to: optional(string({ description: 'Pool or agent that may claim it.' })),
  root_bead_id: optional(string({ description: 'Root of the molecule that it is part of.' })),
  outcome: optional(string()),
  attempt: optional(integer()),
  session_id: optional(string({ description: 'Session that claimed it.' })),
  lease_expires_at: optional(
    string({
      format: 'date-time',
      description: 'When a claim lapses that nobody renews; absent without a claim.',
    }),
  ),
  revision: integer({ minimum: 1, description: 'One more with every change; its ETag without the quotes.' }),
}

export const Bead = component('Bead', beadFields)
export type Bead = Static<typeof Bead>

export const HookBead = component('HookBead', {
  ...beadFields,
  tier: choice(HOOK_TIERS, {
    description: 'Why it is on the hook: under way, handed to it, or routed to its pool.',
  }),
})
export type HookBead = Static<typeof HookBead>

export const BeadWithWarnings = component('BeadWithWarnings', {
  ...beadFields,
  warnings: optional(
    array(string(), {
      description: 'Such as a target that nobody knows yet, a parent that is deferred, parts that are still open.',
    }),
  ),
})

export const BeadDepView = component('BeadDepView', {
  issue_id: string(),
  depends_on_id: string(),
  type: string(),
  status: choice([...BEAD_STATUSES, 'unknown'], {
    description: 'Of the other end; `unknown` where there is no such bead, which blocks.',
  }),
  title: optional(string({ description: 'Of the other end.' })),
})
export type BeadDepView = Static<typeof BeadDepView>

export const BeadDepsResponse = component('BeadDepsResponse', {
  children: array(Bead, { description: 'Beads whose parent it is, oldest first.' }),
  dependencies: array(BeadDepView, { description: 'What it depends on.' }),
  dependents: array(BeadDepView, { description: 'What depends on it.' }),
  truncated: optional(
    boolean({ description: `True: a list had more than ${MAX_LISTED_DEPS}, or the children are too large.` }),
  ),
})
export type BeadDepsResponse = Static<typeof BeadDepsResponse>

export const BeadGraphEdge = component('BeadGraphEdge', {
  from: string({ description: 'What blocks, or the parent.' }),
  to: string({ description: 'What is blocked, or the child.' }),
  kind: string(),
})
export type BeadGraphEdge = Static<typeof BeadGraphEdge>

export const BeadGraphResponse = component('BeadGraphResponse', {
  root: Bead,
  beads: array(Bead, { description: 'With the root; oldest first.' }),
  deps: array(BeadGraphEdge, { description: 'Edges with both ends in the set.' }),
  membership: choice(['direct-root-id+parent-closure', 'direct-root-id+parent-closure+convoy-members'], {
    description: 'The rule that says what belongs to it.',
  }),
  truncated: optional(
    boolean({ description: `True: there are more than ${MAX_GRAPH_BEADS} beads, or they are too large.` }),
  ),
})
export type BeadGraphResponse = Static<typeof BeadGraphResponse>

export const BeadComment = component('BeadComment', {
  id: string(),
  bead_id: string(),
  author: optional(string()),
  text: string(),
  created_at: Timestamp,
})
export type BeadComment = Static<typeof BeadComment>

const createFields = {
  title: Title,
  issue_type: optional(IssueType),
  type: optional(text(64, 'The same as `issue_type`.')),
  priority: optional(Priority),
  description: optional(string({ maxLength: MAX_DESCRIPTION })),
  assignee: optional(Person),
  labels: optional(Labels),
  metadata: optional(Metadata),
  defer_until: optional(Timestamp),
  ephemeral: optional(boolean()),
  from: optional(string({ maxLength: MAX_PERSON })),
  ref: optional(string({ maxLength: 256 })),
}
const Needs = array(text(330, '`<id>` blocks; `<type>:<id>` is an edge of that type.'), { maxItems: 500 })
const Rig = text(64, 'Rig that it belongs to; the city itself where absent.')

export const BeadCreateRequest = component('BeadCreateRequest', {
  ...createFields,
  parent: optional(BeadId),
  rig: optional(Rig),
  needs: optional(Needs),
})
export type BeadCreateRequest = Static<typeof BeadCreateRequest>

export const BeadPatchRequest = component(
  'BeadPatchRequest',
  {
    title: optional(Title),
    status: optional(BeadStatus),
    issue_type: optional(IssueType),
    type: optional(text(64, 'The same as `issue_type`.')),
    description: optional(orNull(string({ maxLength: MAX_DESCRIPTION }), 'Null or empty clears it.')),
    priority: optional(orNull(integer({ minimum: 0, maximum: 4 }), 'Null clears it.')),
    assignee: optional(orNull(string({ maxLength: MAX_PERSON }), 'Null or empty: nobody.')),
    parent: optional(orNull(string({ maxLength: 256 }), 'Null or empty: none.')),
    labels: optional(orNull(Labels, 'Labels to add.')),
    remove_labels: optional(orNull(Labels, 'Labels to remove, after the adding.')),
    metadata: optional(
      orNull(
        record(nullable(MetadataValue), { ...metadataKeys, maxProperties: 500 }),
        'Merged key by key; null removes a key, empty text stays as empty text.',
      ),
    ),
    defer_until: optional(orNull(Timestamp, 'Null clears it.')),
  },
  { description: 'JSON Merge Patch; `{}` changes nothing.' },
)
export type BeadPatchRequest = Static<typeof BeadPatchRequest>

export const BeadBatchNode = component('BeadBatchNode', {
  key: text(256, 'Names the node within the batch.'),
  ...createFields,
  rig: optional(Rig),
  parent_key: optional(text(256, 'Key of its parent in the batch.')),
  parent_id: optional(text(256, 'Id of its parent, a bead that exists.')),
  metadata_refs: optional(
    record(text(256, 'Key of a node.'), {
      ...metadataKeys,
      maxProperties: 100,
      description: 'Metadata whose values are the ids that nodes get.',
    }),
  ),
})
export type BeadBatchNode = Static<typeof BeadBatchNode>

export const BeadBatchEdge = component(
  'BeadBatchEdge',
  {
    from_key: optional(text(256, 'Key of the node that depends.')),
    from_id: optional(text(256, 'Id of the bead that depends.')),
    to_key: optional(text(256, 'Key of the node that it depends on.')),
    to_id: optional(text(256, 'Id of the bead that it depends on.')),
    type: optional(DepType),
  },
  { description: '`from` depends on `to`.' },
)
export type BeadBatchEdge = Static<typeof BeadBatchEdge>

export const BeadBatchRequest = component('BeadBatchRequest', {
  nodes: array(BeadBatchNode, { minItems: 1, maxItems: MAX_BATCH_NODES }),
  edges: optional(array(BeadBatchEdge, { maxItems: MAX_BATCH_EDGES })),
  rig: optional(text(64, 'Rig of the nodes that name none.')),
})
export type BeadBatchRequest = Static<typeof BeadBatchRequest>

export const BeadBatchResponse = component('BeadBatchResponse', {
  ids: record(string(), { description: 'Ids by key.' }),
})

export const BeadCloseRequest = component('BeadCloseRequest', {
  reason: optional(string({ maxLength: 2_000, description: 'Why it is done.' })),
  outcome: optional(choice(OUTCOMES)),
  output: optional(
    anything({ description: `Any JSON of at most ${MAX_OUTPUT_BYTES / 1024} KiB: what came out of it.` }),
  ),
  failure_class: optional(choice(FAILURE_CLASSES)),
  failure_reason: optional(string({ maxLength: 2_000 })),
  session_id: optional(
    text(256, 'Session that says so: refused where it had the bead of a step, and has lost it to another one.'),
  ),
  commit: optional(string({ maxLength: 256, description: 'Commit that holds the work.' })),
  cancel: optional(boolean({ description: 'Cancel the live molecule that is about the bead, and close it then.' })),
})
export type BeadCloseRequest = Static<typeof BeadCloseRequest>

export const BeadAssignRequest = component('BeadAssignRequest', {
  assignee: orNull(string({ maxLength: MAX_PERSON }), 'Null or empty: nobody.'),
  expected_assignee: optional(
    orNull(string({ maxLength: MAX_PERSON }), 'Only if this is who has it now; null or empty: nobody.'),
  ),
})
export const BeadRouteRequest = component('BeadRouteRequest', {
  target: orNull(string({ maxLength: MAX_PERSON }), 'Agent or pool that may claim it; null or empty: none.'),
})
export const BeadClaimRequest = component('BeadClaimRequest', {
  assignee: text(MAX_PERSON, 'Who takes it.'),
  session_id: optional(text(256, 'Session that works on it.')),
  session_name: optional(text(256, 'Name of that session.')),
  branch: optional(text(512, 'Branch that the work is on.')),
})
export type BeadClaimRequest = Static<typeof BeadClaimRequest>
const holder = optional(text(MAX_PERSON, 'Only if this is who has it.'))
export const BeadHeartbeatRequest = component('BeadHeartbeatRequest', { assignee: holder })
export const BeadReleaseRequest = component('BeadReleaseRequest', { assignee: holder })
export const BeadClaimResponse = component('BeadClaimResponse', {
  claimed: literal(true),
  bead: Bead,
  warnings: optional(array(string(), { description: 'Such as what it still waits for.' })),
})
export const BeadReleaseResponse = component('BeadReleaseResponse', { released: literal(true), bead: Bead })
export const BeadDepRequest = component('BeadDepRequest', { depends_on_id: BeadId, type: optional(DepType) })
export const BeadCommentRequest = component('BeadCommentRequest', {
  text: text(MAX_COMMENT, 'What is said.'),
  author: optional(text(MAX_PERSON, 'Who says it; who asks, where a token says who that is.')),
})
export const DeletedBead = component('DeletedBead', {
  status: literal('deleted'),
  id: string(),
  deleted: array(string(), { description: 'Ids of everything that went, itself included.' }),
})
export type DeletedBead = Static<typeof DeletedBead>

export const HookClaimRequest = component('HookClaimRequest', {
  agent: text(MAX_PERSON, 'Who asks: agent, pool or person.'),
  session_id: optional(text(256, 'Session that asks.')),
  session_name: optional(
    text(256, 'Its name; the assignee, unless the city knows the session and who it is. Without both the agent is.'),
  ),
  drain_ack: optional(boolean({ description: 'True: with nothing to do the session ends itself.' })),
})
export type HookClaimRequest = Static<typeof HookClaimRequest>

export const HookClaimResponse = component('HookClaimResponse', {
  action: choice(['work', 'drain']),
  reason: choice(['claimed', 'existing_assignment', 'ready_assignment', 'no_work', 'claims_errored', 'stale_session']),
  bead_id: optional(string()),
  assignee: optional(string()),
  bead: optional(Bead),
  route: optional(string()),
  root_bead_id: optional(string()),
  continuation_group: optional(string()),
  continuation_assigned: optional(
    array(string(), { description: 'Beads of the same group that were handed over with it.' }),
  ),
  drain_acknowledged: optional(boolean()),
})
export type HookClaimResponse = Static<typeof HookClaimResponse>

export const BeadImportIssue = component('BeadImportIssue', {
  line: integer({ minimum: 1 }),
  id: optional(string()),
  detail: string(),
})
export type BeadImportIssue = Static<typeof BeadImportIssue>

const count = (description: string) => integer({ minimum: 0, description })
export const BeadImportResponse = component('BeadImportResponse', {
  created: count('Beads that are new.'),
  updated: count('Beads that the import has a newer version of.'),
  unchanged: count('Beads that were as in the import.'),
  skipped: count('Lines that are older than what is here, or of deleted beads.'),
  failed: count('Lines that were refused; their first thousand are in `errors`.'),
  dry_run: optional(boolean({ description: 'True: nothing was written.' })),
  warnings: array(BeadImportIssue, { description: 'At most a thousand.' }),
  errors: array(BeadImportIssue, { description: 'At most a thousand.' }),
})
export type BeadImportResponse = Static<typeof BeadImportResponse>

/** A line of the interchange; whatever else it has is kept (docs/guide/interchange.md). */
export const BeadLine = openObject(
  {
    _type: optional(string({ description: '`issue`; lines of another type are skipped.' })),
    id: string({ minLength: 1, maxLength: 256 }),
    title: string({ minLength: 1, maxLength: MAX_TITLE }),
    description: optional(string()),
    status: optional(string({ description: 'Any word; what is not `in_progress` or `closed` is open here.' })),
    priority: optional(integer({ minimum: 0, maximum: 4 })),
    issue_type: optional(string()),
    assignee: optional(string()),
    created_at: optional(Timestamp),
    updated_at: optional(Timestamp),
    closed_at: optional(Timestamp),
    close_reason: optional(string()),
    labels: optional(array(string())),
    dependencies: optional(array(openObject({ depends_on_id: string(), type: string() }))),
    comments: optional(array(openObject({ text: string() }))),
    metadata: optional(record(anything())),
  },
  { $id: 'BeadLine' },
)

const id = (description: string) => string({ minLength: 1, maxLength: 256, description, examples: ['al-x1y'] })
const beads = family(
  { name: 'Beads', about: 'Units of work: their fields, dependencies, labels, queries and hooks.' },
  '/v0/city/{cityName}/beads',
  {
    cityName: CityNameParam,
    id: id('Id of the bead.'),
    rootID: id('Id of the root.'),
    dependsOnId: string({ minLength: 1, maxLength: 256, description: 'What it depends on.', examples: ['al-z9k'] }),
    label: string({ minLength: 1, maxLength: MAX_LABEL, description: 'Exact text.', examples: ['ui'] }),
  },
  { replyHeaders: ['X-SVC-Index'] },
)
const bead = beads.at('/{id}', { problems: ['bead-not-found'] })
const edit = bead.with({ headers: ['If-Match'], replyHeaders: ['ETag'] })
const change = edit.with({ replies: { 200: Bead } })

/** Filters of the list that also make sense where only ready beads are looked at. */
const sharedFilters = {
  type: optional(array(IssueType, { maxItems: 50, description: 'Any of these types.' })),
  label: optional(array(Label, { maxItems: 50, description: 'All of these labels.' })),
  assignee: optional(
    string({ minLength: 1, maxLength: MAX_PERSON, description: 'Who has it, under any of their names.' }),
  ),
  assignees: optional(array(Person, { maxItems: 50, description: 'Any of these; an empty one is nobody.' })),
  unassigned: optional(boolean({ description: 'True: nobody has it.' })),
  rig: optional(text(64, 'Name of a rig.')),
  parent: optional(text(256, 'Id of the parent.')),
  priority: optional(Priority),
  routed_to: optional(text(MAX_PERSON, 'Agent or pool that it is routed to.')),
  root_bead_id: optional(text(256, 'Root of a molecule.')),
  metadata: optional(
    array(text(MAX_METADATA_KEY + MAX_METADATA_VALUE + 1, '`key=value`, or `key` for any value but empty.'), {
      maxItems: 20,
      description: 'All of these.',
    }),
  ),
  created_before: optional(Timestamp),
  created_after: optional(Timestamp),
  updated_before: optional(Timestamp),
  updated_after: optional(Timestamp),
  ephemeral: optional(choice(['only', 'exclude'], { description: 'Both tiers where absent.' })),
  q: optional(string({ minLength: 1, maxLength: 4_096, description: 'Words of title and description.' })),
}
const listFilters = {
  status: optional(array(BeadStatus, { maxItems: 3, description: 'Any of these.' })),
  all: optional(boolean({ description: 'Closed beads too, which are left out where no status is given.' })),
  closed_before: optional(Timestamp),
  closed_after: optional(Timestamp),
  ...sharedFilters,
}

const ListBodyBead = listBody('ListBodyBead', Bead)
const UPDATED = ['bead.updated'] as const

export const listBeads = beads.get('list-beads', '', {
  summary: 'List beads',
  description:
    'Newest first. All filters must hold; closed beads are left out unless `all` or `status` says otherwise.',
  query: object({ ...BlockingQuery, ...PageQuery, ...OrderQuery, ...listFilters }),
  replies: { 200: ListBodyBead },
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const createBead = beads.post('create-bead', '', {
  summary: 'Create a bead',
  description: 'Its id begins with the prefix of the city, or of its `rig`. `needs` and `parent` must be there.',
  body: BeadCreateRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: Bead },
  replyHeaders: ['ETag'],
  problems: ['rig-not-found', 'bead-not-found'],
  emits: ['bead.created'],
})

export const listReadyBeads = beads.get('list-ready-beads', '/ready', {
  summary: 'List ready beads',
  description:
    'Open work with nothing in its way: most urgent first, then oldest. `sort=oldest` leaves the priority out of it.',
  query: object({
    ...BlockingQuery,
    ...PageQuery,
    ...sharedFilters,
    exclude_type: optional(array(IssueType, { maxItems: 50, description: 'None of these types.' })),
    exclude_label: optional(array(Label, { maxItems: 50, description: 'None of these labels.' })),
    sort: optional(
      choice(['ready', 'oldest'], {
        description: '`ready` (the default): most urgent first; `oldest`: longest there first.',
      }),
    ),
  }),
  replies: { 200: ListBodyBead },
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const listHook = beads.get('list-hook', '/hook', {
  summary: 'List what is on a hook',
  description:
    'What an agent would be given, in that order: work under way, work handed to it, work of its pool. A session is known by its id: its own name and its pool need not be said.',
  query: object({
    agent: text(MAX_PERSON, 'Who asks: agent, pool or person.'),
    session_id: optional(text(256, 'Session that asks.')),
    session_name: optional(text(256, 'Its name.')),
  }),
  replies: { 200: listBody('ListBodyHookBead', HookBead) },
})

export const claimHook = beads.post('claim-hook', '/hook/claim', {
  summary: 'Claim the next work on a hook',
  description: 'The first of the hook that can be claimed, claimed; or `drain` where there is nothing to do.',
  body: HookClaimRequest,
  replies: { 200: HookClaimResponse },
  emits: ['bead.claimed', 'bead.updated', 'bead.claim_rejected'],
})

export const importBeads = beads.post('import-beads', '/import', {
  summary: 'Import beads',
  description:
    'One JSON object a line, as the bd tool writes them: `application/x-ndjson`, at most 1 MiB a line. A bad line does not poison the rest; the same file twice changes nothing. Lines are taken in as they come: where the upload breaks off, those before it are in.',
  query: object({
    rig: optional(text(64, 'Rig whose beads these are; by their prefixes where absent.')),
    mode: optional(
      choice(['upsert', 'create'], { description: '`create`: an id that exists is an error; default `upsert`.' }),
    ),
    dry_run: optional(boolean({ description: 'Only says what would happen.' })),
    remap: optional(boolean({ description: 'New ids where the prefix is not one of the city.' })),
  }),
  body: BeadLine,
  bodyStream: 'ndjson',
  bodyLimit: MAX_IMPORT_BYTES,
  replies: { 200: BeadImportResponse },
  problems: ['rig-not-found'],
  emits: ['bead.created', 'bead.updated', 'bead.closed'],
})

// Closed beads are part of it anyway.
const { all: _all, ...exportFilters } = listFilters

export const exportBeads = beads.get('export-beads', '/export', {
  summary: 'Export beads',
  description:
    'One JSON object a line, sorted by id, in the shape of the bd tool; closed beads too, ephemeral ones only where asked.',
  query: object({
    ...exportFilters,
    ephemeral: optional(choice(['only', 'include'], { description: 'Left out where absent.' })),
  }),
  mediaType: LINES_TYPE,
  replies: { 200: BeadLine },
  problems: ['rig-not-found'],
})

export const getBead = bead.get('get-bead', '', {
  summary: 'Get a bead',
  description:
    'The ETag is its `revision`, for `If-Match`. `warnings` name parents that are deferred, blocked or closed: the bead is ready all the same.',
  replies: { 200: BeadWithWarnings },
  replyHeaders: ['ETag'],
})

export const listBeadDeps = bead.get('list-bead-deps', '/deps', {
  summary: 'List the dependencies of a bead',
  description: 'Edges with the status of what is at their other end; `direction` says which ones.',
  query: object({
    direction: optional(
      choice(['down', 'up', 'both'], { description: '`down`: what it depends on; `up`: what depends on it.' }),
    ),
    type: optional(DepType),
  }),
  replies: { 200: BeadDepsResponse },
})

export const beadOperations = [
  listBeads,
  createBead,
  listReadyBeads,
  beads.get('query-beads', '/query', {
    summary: 'Query beads',
    description:
      'Beads that satisfy an expression such as `status=open AND priority<2 AND (label:ui OR "cache")`; newest first. Without a word about the status closed beads are left out unless `all`.',
    query: object({
      q: string({ minLength: 1, maxLength: 4_096, description: 'The expression.' }),
      all: optional(boolean({ description: 'Closed beads too.' })),
      ...BlockingQuery,
      ...PageQuery,
      ...OrderQuery,
    }),
    replies: { 200: ListBodyBead },
    problems: ['invalid-cursor'],
  }),
  listHook,
  claimHook,
  beads.post('create-bead-batch', '/batch', {
    summary: 'Create many beads and their edges',
    description: 'All or nothing. Nodes name each other by key.',
    body: BeadBatchRequest,
    headers: ['Idempotency-Key'],
    replies: { 201: BeadBatchResponse },
    problems: ['rig-not-found', 'bead-not-found', 'dependency-cycle', 'conflict-wrong-state'],
    emits: ['bead.created', 'bead.updated'],
  }),
  importBeads,
  exportBeads,
  beads.get('get-bead-graph', '/graph/{rootID}', {
    summary: 'Get a graph of beads',
    description: 'A root, what belongs to it (see `membership`), and the edges between them.',
    replies: { 200: BeadGraphResponse },
    problems: ['bead-not-found'],
  }),
  getBead,
  change.patch('patch-bead', '', {
    summary: 'Change a bead',
    description: 'JSON Merge Patch. `status` follows the same rules as closing and reopening.',
    body: BeadPatchRequest,
    problems: ['conflict-wrong-state', 'dependency-cycle', 'molecule-live'],
    emits: ['bead.updated', 'bead.closed', 'bead.reopened'],
  }),
  bead.delete('delete-bead', '', {
    summary: 'Delete a bead',
    description: `For good, with its edges and comments. Refused while open beads, children or convoys refer to it. Where more than ${MAX_REMOVED_AT_ONCE} beads and edges are concerned: 202, then exactly one of \`request.result.bead.delete\` and \`request.failed\` in the log of the city. Children go before their parents, and what is put below it meanwhile goes too.`,
    query: object({ cascade: optional(boolean({ description: 'Delete its children too, and drop edges to them.' })) }),
    headers: ['If-Match', 'Idempotency-Key'],
    replies: { 200: DeletedBead, 202: AsyncAcceptedResponse },
    accepts: 'bead.delete',
    problems: ['still-referenced', 'operation-in-progress', 'conflict-wrong-state'],
    emits: ['bead.deleted', 'bead.updated'],
  }),
  change.post('close-bead', '/close', {
    summary: 'Close a bead',
    description:
      'A bead that is closed stays as it is. To close it with another outcome is refused: no outcome is `pass`. A step of a molecule passes only with what its formula declares, a gate is answered with `pass` or `fail`; the root of a molecule is not closed so. What a live molecule is about is closed by whoever works on one of its steps; others close it with `cancel`, which ends the molecule. Parts that stay open are a warning.',
    body: BeadCloseRequest,
    bodyOptional: true,
    replies: { 200: BeadWithWarnings },
    problems: ['conflict-wrong-state', 'conflict-claimed', 'molecule-live'],
    emits: ['bead.closed', 'bead.updated'],
  }),
  change.post('reopen-bead', '/reopen', {
    summary: 'Reopen a bead',
    description: 'Open again and nobody’s; what depends on it is blocked again.',
    problems: ['conflict-wrong-state'],
    emits: ['bead.updated', 'bead.reopened'],
  }),
  change.post('assign-bead', '/assign', {
    summary: 'Assign a bead',
    description:
      'Its status stays. With `expected_assignee` it is a hand-over, which fails where somebody else has it.',
    body: BeadAssignRequest,
    problems: ['conflict-assignee', 'conflict-wrong-state'],
    emits: UPDATED,
  }),
  edit.post('route-bead', '/route', {
    summary: 'Route a bead to an agent or pool',
    description:
      'Sets `svc.routed_to`, which `hook` looks at; `null` takes it away. A target that is not configured is a warning, no refusal.',
    body: BeadRouteRequest,
    replies: { 200: BeadWithWarnings },
    problems: ['conflict-wrong-state'],
    emits: UPDATED,
  }),
  edit.post('claim-bead', '/claim', {
    summary: 'Claim a bead',
    description:
      'Takes it if nobody has it, for as long as the lease is renewed; for who has it already it renews the lease. Sessions that share a name, such as that of their pool, take nothing from each other. What is blocked, or waits for a date, can be claimed by its id: `warnings` say so.',
    body: BeadClaimRequest,
    replies: { 200: BeadClaimResponse },
    problems: ['conflict-claimed', 'conflict-wrong-state'],
    emits: ['bead.claimed', 'bead.updated', 'bead.claim_rejected'],
  }),
  change.post('heartbeat-bead', '/heartbeat', {
    summary: 'Renew the lease of a claim',
    description: 'Changes nothing but `lease_expires_at`, and tells nobody.',
    body: BeadHeartbeatRequest,
    bodyOptional: true,
    problems: ['conflict-claimed', 'conflict-wrong-state'],
  }),
  edit.post('release-bead', '/release', {
    summary: 'Give a claimed bead back',
    description: 'It is open and unassigned again. With `assignee`, only if that one holds it.',
    body: BeadReleaseRequest,
    bodyOptional: true,
    replies: { 200: BeadReleaseResponse },
    problems: ['conflict-claimed', 'conflict-wrong-state'],
    emits: ['bead.released', 'bead.updated'],
  }),
  listBeadDeps,
  change.post('add-bead-dep', '/deps', {
    summary: 'Add a dependency',
    description:
      'The bead depends on another. Between two beads there is one edge, whose type this replaces, and a `parent-child` edge beside it.',
    body: BeadDepRequest,
    problems: ['dependency-cycle', 'conflict-wrong-state'],
    emits: UPDATED,
  }),
  change.delete('remove-bead-dep', '/deps/{dependsOnId}', {
    summary: 'Remove a dependency',
    description: 'Of one type, or of all types. One that is not there is no failure.',
    query: object({ type: optional(DepType) }),
    problems: ['conflict-wrong-state'],
    emits: UPDATED,
  }),
  change.put('add-bead-label', '/labels/{label}', {
    summary: 'Put a label on a bead',
    description: 'One that it has already is no change, and no event.',
    emits: UPDATED,
  }),
  change.delete('remove-bead-label', '/labels/{label}', {
    summary: 'Take a label off a bead',
    description: 'One that it does not have is no change, and no event.',
    emits: UPDATED,
  }),
  bead.get('list-bead-comments', '/comments', {
    summary: 'List the comments of a bead',
    description: 'Oldest first.',
    query: object({ ...PageQuery }),
    replies: { 200: listBody('ListBodyBeadComment', BeadComment) },
    problems: ['invalid-cursor'],
  }),
  bead.post('add-bead-comment', '/comments', {
    summary: 'Comment on a bead',
    description: 'Emits `bead.updated` with `changed: ["comments"]`.',
    body: BeadCommentRequest,
    headers: ['Idempotency-Key'],
    replies: { 201: BeadComment },
    emits: UPDATED,
  }),
] as const

// What the log of a city says about beads (sheet 03 §12).

const snapshot = { bead: Bead }
const changed = array(string(), {
  description:
    'Fields that differ; `comments` where one was added, `is_blocked` where something else closed or opened.',
})
const revision = integer({ minimum: 1, description: 'Of the bead, with this change.' })
const bead_id = string()

/** The bead as it is after the change; of a very large one without its edges, text or metadata. */
export const BeadPayload = component('BeadPayload', snapshot)
export const BeadChangedPayload = component('BeadChangedPayload', { ...snapshot, changed, revision })
export const BeadClaimedPayload = component('BeadClaimedPayload', {
  bead_id,
  assignee: string(),
  session_id: optional(string()),
  lease_expires_at: Timestamp,
})
export const BeadReleasedPayload = component('BeadReleasedPayload', {
  bead_id,
  previous_assignee: optional(string()),
  reason: string({ description: '`released`, or why it was taken from them.' }),
})
export const BeadReopenedPayload = component('BeadReopenedPayload', { bead_id })
export const BeadLeaseExpiredPayload = component('BeadLeaseExpiredPayload', {
  bead_id,
  previous_assignee: optional(string()),
})
export const BeadClaimRejectedPayload = component('BeadClaimRejectedPayload', {
  bead_id,
  existing_claimant: optional(string({ description: 'Absent: it is closed, and nobody has it.' })),
  attempted_claimant: string(),
})

export const BeadDeleteSucceededPayload = component('BeadDeleteSucceededPayload', {
  request_id: RequestId,
  bead_id,
  deleted: integer({ minimum: 0, description: 'Beads that went, itself included.' }),
})

const inLog = { log: 'city', emittedBy: 'beads' } as const

export const BEAD_EVENT_TYPES = {
  'bead.created': { payload: BeadPayload, ...inLog, when: 'a bead was created or imported' },
  'bead.updated': { payload: BeadChangedPayload, ...inLog, when: 'a bead changed in any way but to closed' },
  'bead.closed': { payload: BeadChangedPayload, ...inLog, when: 'a bead became closed, whichever way' },
  'bead.deleted': { payload: BeadPayload, ...inLog, when: 'a bead was deleted; its last version' },
  'bead.claimed': { payload: BeadClaimedPayload, ...inLog, when: 'somebody took a bead; beside bead.updated' },
  'bead.released': {
    payload: BeadReleasedPayload,
    ...inLog,
    when: 'a claimed bead was given back; beside bead.updated',
  },
  'bead.reopened': { payload: BeadReopenedPayload, ...inLog, when: 'a closed bead is open again; beside bead.updated' },
  'bead.lease_expired': {
    payload: BeadLeaseExpiredPayload,
    ...inLog,
    when: 'nobody renewed a claim, and the bead is open again; beside bead.updated',
  },
  'bead.claim_rejected': { payload: BeadClaimRejectedPayload, ...inLog, when: 'a claim came too late' },
  'request.result.bead.delete': {
    payload: BeadDeleteSucceededPayload,
    ...inLog,
    when: 'an accepted bead.delete is through: the bead and what was below it are gone',
  },
} as const satisfies EventTypes
