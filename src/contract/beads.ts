/** Beads: units of work, their dependencies, who has them and what is ready (sheet 03 §§1–5; decisions 42–48). */
import Type, { type Static, type TSchema } from 'typebox'
import { CityNameParam, Timestamp } from './base/names.ts'
import { LINES_TYPE, operation } from './base/operation.ts'
import { BlockingQuery, listBody, OrderQuery, PageQuery } from './base/paging.ts'

export const BEAD_STATUSES = ['open', 'in_progress', 'closed'] as const
export const BeadStatus = Type.Enum(BEAD_STATUSES, { $id: 'BeadStatus' })
export type BeadStatus = Static<typeof BeadStatus>
export const DEFAULT_ISSUE_TYPE = 'task'
export const MAX_TITLE = 500
export const MAX_DESCRIPTION = 262_144
export const MAX_PERSON = 256
export const MAX_LABEL = 256
export const MAX_METADATA_KEY = 256
export const MAX_METADATA_VALUE = 65_536
export const MAX_COMMENT = 65_536
export const MAX_OUTPUT_CHARACTERS = 65_536
/** `dependencies` of a bead shows so many edges; the rest are at `/deps`. */
export const MAX_SHOWN_DEPENDENCIES = 100
/** Each list of `/deps` holds at most so many. */
export const MAX_LISTED_DEPS = 2_000
export const MAX_BATCH_NODES = 1_000
export const MAX_BATCH_EDGES = 10_000
/** A graph of more is cut, and says so. */
export const MAX_GRAPH_BEADS = 10_000
export const MAX_IMPORT_BYTES = 256 * 1024 * 1024
/** Metadata of these prefixes belongs to the service (decision 43); the second is taken as an alias on import. */
export const RESERVED_METADATA_PREFIXES = ['svc.', 'gc.'] as const

/** Types of edges that keep the bead that has them from being ready until their target is closed. */
export const BLOCKING_TYPES = ['blocks', 'waits-for', 'conditional-blocks'] as const
export const PARENT_CHILD = 'parent-child'
export const OUTCOMES = ['pass', 'fail', 'skipped', 'canceled', 'missing_root'] as const
export const FAILURE_CLASSES = ['transient', 'hard'] as const
export const HOOK_TIERS = ['in_progress', 'assigned', 'routed'] as const

const text = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
const orNull = <T extends TSchema>(schema: T, description: string) => Type.Union([schema, Type.Null()], { description })

const BeadId = text(256, 'Id of the bead: `<prefix>-<suffix>`; never used again.')
const Title = text(MAX_TITLE, 'What it is about.')
const IssueType = text(64, 'Any word, case-sensitive; `task` where nothing is said.')
const Priority = Type.Integer({ minimum: 0, maximum: 4, description: '0 is the most urgent; absent sorts as 2.' })
const Label = text(MAX_LABEL, 'Exact text.')
const Labels = Type.Array(Label, { maxItems: 500 })
const Person = Type.String({
  maxLength: MAX_PERSON,
  description: 'Who has it: any name; of a session or agent its identity.',
})
const DepType = text(
  64,
  '`blocks` (default), `waits-for`, `conditional-blocks` block; `parent-child` contains; any other word informs.',
)
const MetadataValue = Type.String({ maxLength: MAX_METADATA_VALUE })
const metadataKeys = { propertyNames: { minLength: 1, maxLength: MAX_METADATA_KEY } }
const Metadata = Type.Record(Type.String(), MetadataValue, {
  ...metadataKeys,
  maxProperties: 500,
  description: 'Text by key. `svc.*` and `gc.*` are the service’s.',
})

export const BeadDep = Type.Object(
  {
    issue_id: Type.String({ description: 'The bead that depends.' }),
    depends_on_id: Type.String({ description: 'What it depends on.' }),
    type: Type.String(),
  },
  { $id: 'BeadDep', additionalProperties: false },
)
export type BeadDep = Static<typeof BeadDep>

const beadFields = {
  id: Type.String({ description: '`<prefix>-<suffix>`; never used again.' }),
  title: Type.String(),
  status: BeadStatus,
  issue_type: Type.String(),
  priority: Type.Optional(Type.Integer({ description: '0 highest to 4 lowest; absent sorts as 2.' })),
  created_at: Timestamp,
  updated_at: Timestamp,
  closed_at: Type.Optional(Timestamp),
  close_reason: Type.Optional(Type.String()),
  assignee: Type.Optional(Type.String({ description: 'Who has it.' })),
  from: Type.Optional(Type.String({ description: 'Who sent it.' })),
  parent: Type.Optional(Type.String({ description: 'Id of the bead that contains it; also a `parent-child` edge.' })),
  ref: Type.Optional(Type.String({ description: 'Formula of a molecule’s root, step of a step.' })),
  rig: Type.Optional(Type.String({ description: 'Absent: it belongs to the city itself.' })),
  needs: Type.Optional(Type.Array(Type.String(), { description: 'As it was created with.' })),
  dependencies: Type.Optional(
    Type.Array(BeadDep, {
      description: `Its own edges, at most ${MAX_SHOWN_DEPENDENCIES} of them; all are at \`/deps\`.`,
    }),
  ),
  description: Type.Optional(Type.String()),
  labels: Type.Optional(Type.Array(Type.String(), { description: 'A set, sorted.' })),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'With what the service keeps in columns as `svc.*`.',
    }),
  ),
  ephemeral: Type.Optional(Type.Boolean({ description: 'Swept some time after it is closed.' })),
  no_history: Type.Optional(Type.Boolean({ description: 'Kept for the interchange only.' })),
  defer_until: Type.Optional(Timestamp),
  is_blocked: Type.Boolean({ description: 'Something that it depends on is not closed, or not there.' }),
  routed_to: Type.Optional(Type.String({ description: 'Pool or agent that may claim it.' })),
  root_bead_id: Type.Optional(Type.String({ description: 'Root of the molecule that it is part of.' })),
  outcome: Type.Optional(Type.String()),
  attempt: Type.Optional(Type.Integer()),
  session_id: Type.Optional(Type.String({ description: 'Session that claimed it.' })),
  lease_expires_at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'When a claim lapses that nobody renews; absent without a claim.',
    }),
  ),
  revision: Type.Integer({ minimum: 1, description: 'One more with every change; its ETag without the quotes.' }),
}

export const Bead = Type.Object(beadFields, { $id: 'Bead', additionalProperties: false })
export type Bead = Static<typeof Bead>

export const HookBead = Type.Object(
  {
    ...beadFields,
    tier: Type.Enum(HOOK_TIERS, {
      description: 'Why it is on the hook: under way, handed to it, or routed to its pool.',
    }),
  },
  { $id: 'HookBead', additionalProperties: false },
)
export type HookBead = Static<typeof HookBead>

export const RoutedBead = Type.Object(
  {
    ...beadFields,
    warnings: Type.Optional(Type.Array(Type.String(), { description: 'Such as a target that nobody knows yet.' })),
  },
  { $id: 'RoutedBead', additionalProperties: false },
)
export type RoutedBead = Static<typeof RoutedBead>

export const BeadDepView = Type.Object(
  {
    issue_id: Type.String(),
    depends_on_id: Type.String(),
    type: Type.String(),
    status: Type.Enum([...BEAD_STATUSES, 'unknown'], {
      description: 'Of the other end; `unknown` where there is no such bead, which blocks.',
    }),
    title: Type.Optional(Type.String({ description: 'Of the other end.' })),
  },
  { $id: 'BeadDepView', additionalProperties: false },
)
export type BeadDepView = Static<typeof BeadDepView>

export const BeadDepsResponse = Type.Object(
  {
    children: Type.Array(Bead, { description: 'Beads whose parent it is, oldest first.' }),
    dependencies: Type.Array(BeadDepView, { description: 'What it depends on.' }),
    dependents: Type.Array(BeadDepView, { description: 'What depends on it.' }),
    truncated: Type.Optional(
      Type.Boolean({ description: `True: a list had more than ${MAX_LISTED_DEPS}, or the children are too large.` }),
    ),
  },
  { $id: 'BeadDepsResponse', additionalProperties: false },
)
export type BeadDepsResponse = Static<typeof BeadDepsResponse>

export const BeadGraphEdge = Type.Object(
  {
    from: Type.String({ description: 'What blocks, or the parent.' }),
    to: Type.String({ description: 'What is blocked, or the child.' }),
    kind: Type.String(),
  },
  { $id: 'BeadGraphEdge', additionalProperties: false },
)
export type BeadGraphEdge = Static<typeof BeadGraphEdge>

export const BeadGraphResponse = Type.Object(
  {
    root: Bead,
    beads: Type.Array(Bead, { description: 'With the root; oldest first.' }),
    deps: Type.Array(BeadGraphEdge, { description: 'Edges with both ends in the set.' }),
    membership: Type.Enum(['direct-root-id+parent-closure', 'direct-root-id+parent-closure+convoy-members'], {
      description: 'The rule that says what belongs to it.',
    }),
    truncated: Type.Optional(
      Type.Boolean({ description: `True: there are more than ${MAX_GRAPH_BEADS} beads, or they are too large.` }),
    ),
  },
  { $id: 'BeadGraphResponse', additionalProperties: false },
)
export type BeadGraphResponse = Static<typeof BeadGraphResponse>

export const BeadComment = Type.Object(
  {
    id: Type.String(),
    bead_id: Type.String(),
    author: Type.Optional(Type.String()),
    text: Type.String(),
    created_at: Timestamp,
  },
  { $id: 'BeadComment', additionalProperties: false },
)
export type BeadComment = Static<typeof BeadComment>

const createFields = {
  title: Title,
  issue_type: Type.Optional(IssueType),
  type: Type.Optional(text(64, 'The same as `issue_type`.')),
  priority: Type.Optional(Priority),
  description: Type.Optional(Type.String({ maxLength: MAX_DESCRIPTION })),
  assignee: Type.Optional(Person),
  labels: Type.Optional(Labels),
  metadata: Type.Optional(Metadata),
  defer_until: Type.Optional(Timestamp),
  ephemeral: Type.Optional(Type.Boolean()),
  from: Type.Optional(Type.String({ maxLength: MAX_PERSON })),
  ref: Type.Optional(Type.String({ maxLength: 256 })),
}
const Needs = Type.Array(text(330, '`<id>` blocks; `<type>:<id>` is an edge of that type.'), { maxItems: 500 })
const Rig = text(64, 'Rig that it belongs to; the city itself where absent.')

export const BeadCreateRequest = Type.Object(
  { ...createFields, parent: Type.Optional(BeadId), rig: Type.Optional(Rig), needs: Type.Optional(Needs) },
  { $id: 'BeadCreateRequest', additionalProperties: false },
)
export type BeadCreateRequest = Static<typeof BeadCreateRequest>

export const BeadPatchRequest = Type.Object(
  {
    title: Type.Optional(Title),
    status: Type.Optional(BeadStatus),
    issue_type: Type.Optional(IssueType),
    type: Type.Optional(text(64, 'The same as `issue_type`.')),
    description: Type.Optional(orNull(Type.String({ maxLength: MAX_DESCRIPTION }), 'Null or empty clears it.')),
    priority: Type.Optional(orNull(Type.Integer({ minimum: 0, maximum: 4 }), 'Null clears it.')),
    assignee: Type.Optional(orNull(Type.String({ maxLength: MAX_PERSON }), 'Null or empty: nobody.')),
    parent: Type.Optional(orNull(Type.String({ maxLength: 256 }), 'Null or empty: none.')),
    labels: Type.Optional(orNull(Labels, 'Labels to add.')),
    remove_labels: Type.Optional(orNull(Labels, 'Labels to remove, after the adding.')),
    metadata: Type.Optional(
      orNull(
        Type.Record(Type.String(), Type.Union([MetadataValue, Type.Null()]), { ...metadataKeys, maxProperties: 500 }),
        'Merged key by key; null removes a key, empty text stays as empty text.',
      ),
    ),
    defer_until: Type.Optional(orNull(Timestamp, 'Null clears it.')),
  },
  { $id: 'BeadPatchRequest', additionalProperties: false, description: 'JSON Merge Patch; `{}` changes nothing.' },
)
export type BeadPatchRequest = Static<typeof BeadPatchRequest>

export const BeadBatchNode = Type.Object(
  {
    key: text(256, 'Names the node within the batch.'),
    ...createFields,
    rig: Type.Optional(Rig),
    parent_key: Type.Optional(text(256, 'Key of its parent in the batch.')),
    parent_id: Type.Optional(text(256, 'Id of its parent, a bead that exists.')),
    metadata_refs: Type.Optional(
      Type.Record(Type.String(), text(256, 'Key of a node.'), {
        ...metadataKeys,
        maxProperties: 100,
        description: 'Metadata whose values are the ids that nodes get.',
      }),
    ),
  },
  { $id: 'BeadBatchNode', additionalProperties: false },
)
export type BeadBatchNode = Static<typeof BeadBatchNode>

export const BeadBatchEdge = Type.Object(
  {
    from_key: Type.Optional(text(256, 'Key of the node that depends.')),
    from_id: Type.Optional(text(256, 'Id of the bead that depends.')),
    to_key: Type.Optional(text(256, 'Key of the node that it depends on.')),
    to_id: Type.Optional(text(256, 'Id of the bead that it depends on.')),
    type: Type.Optional(DepType),
  },
  { $id: 'BeadBatchEdge', additionalProperties: false, description: '`from` depends on `to`.' },
)
export type BeadBatchEdge = Static<typeof BeadBatchEdge>

export const BeadBatchRequest = Type.Object(
  {
    nodes: Type.Array(BeadBatchNode, { minItems: 1, maxItems: MAX_BATCH_NODES }),
    edges: Type.Optional(Type.Array(BeadBatchEdge, { maxItems: MAX_BATCH_EDGES })),
    rig: Type.Optional(text(64, 'Rig of the nodes that name none.')),
  },
  { $id: 'BeadBatchRequest', additionalProperties: false },
)
export type BeadBatchRequest = Static<typeof BeadBatchRequest>

export const BeadBatchResponse = Type.Object(
  { ids: Type.Record(Type.String(), Type.String(), { description: 'Ids by key.' }) },
  { $id: 'BeadBatchResponse', additionalProperties: false },
)

export const BeadCloseRequest = Type.Object(
  {
    reason: Type.Optional(Type.String({ maxLength: 2_000, description: 'Why it is done.' })),
    outcome: Type.Optional(Type.Enum(OUTCOMES)),
    output: Type.Optional(
      Type.Unknown({ description: `Any JSON of at most ${MAX_OUTPUT_CHARACTERS} characters: what came out of it.` }),
    ),
    failure_class: Type.Optional(Type.Enum(FAILURE_CLASSES)),
    failure_reason: Type.Optional(Type.String({ maxLength: 2_000 })),
    commit: Type.Optional(Type.String({ maxLength: 256, description: 'Commit that holds the work.' })),
  },
  { $id: 'BeadCloseRequest', additionalProperties: false },
)
export type BeadCloseRequest = Static<typeof BeadCloseRequest>

export const BeadAssignRequest = Type.Object(
  {
    assignee: orNull(Type.String({ maxLength: MAX_PERSON }), 'Null or empty: nobody.'),
    expected_assignee: Type.Optional(
      orNull(Type.String({ maxLength: MAX_PERSON }), 'Only if this is who has it now; null or empty: nobody.'),
    ),
  },
  { $id: 'BeadAssignRequest', additionalProperties: false },
)
export const BeadRouteRequest = Type.Object(
  { target: orNull(Type.String({ maxLength: MAX_PERSON }), 'Agent or pool that may claim it; null or empty: none.') },
  { $id: 'BeadRouteRequest', additionalProperties: false },
)
export const BeadClaimRequest = Type.Object(
  {
    assignee: text(MAX_PERSON, 'Who takes it.'),
    session_id: Type.Optional(text(256, 'Session that works on it.')),
    session_name: Type.Optional(text(256, 'Name of that session.')),
    branch: Type.Optional(text(512, 'Branch that the work is on.')),
  },
  { $id: 'BeadClaimRequest', additionalProperties: false },
)
export type BeadClaimRequest = Static<typeof BeadClaimRequest>
const holder = Type.Optional(text(MAX_PERSON, 'Only if this is who has it.'))
export const BeadHeartbeatRequest = Type.Object(
  { assignee: holder },
  { $id: 'BeadHeartbeatRequest', additionalProperties: false },
)
export const BeadReleaseRequest = Type.Object(
  { assignee: holder },
  { $id: 'BeadReleaseRequest', additionalProperties: false },
)
export const BeadClaimResponse = Type.Object(
  { claimed: Type.Literal(true), bead: Bead },
  { $id: 'BeadClaimResponse', additionalProperties: false },
)
export const BeadReleaseResponse = Type.Object(
  { released: Type.Literal(true), bead: Bead },
  { $id: 'BeadReleaseResponse', additionalProperties: false },
)
export const BeadDepRequest = Type.Object(
  { depends_on_id: BeadId, type: Type.Optional(DepType) },
  { $id: 'BeadDepRequest', additionalProperties: false },
)
export const BeadCommentRequest = Type.Object(
  { text: text(MAX_COMMENT, 'What is said.'), author: Type.Optional(text(MAX_PERSON, 'Who says it.')) },
  { $id: 'BeadCommentRequest', additionalProperties: false },
)
export const DeletedBead = Type.Object(
  {
    status: Type.Literal('deleted'),
    id: Type.String(),
    deleted: Type.Array(Type.String(), { description: 'Ids of everything that went, itself included.' }),
  },
  { $id: 'DeletedBead', additionalProperties: false },
)

export const HookClaimRequest = Type.Object(
  {
    agent: text(MAX_PERSON, 'Who asks: agent, pool or person.'),
    session_id: Type.Optional(text(256, 'Session that asks.')),
    session_name: Type.Optional(
      text(256, 'Its name; the assignee, unless the city knows the session and who it is. Without both the agent is.'),
    ),
    drain_ack: Type.Optional(Type.Boolean({ description: 'True: with nothing to do the session ends itself.' })),
  },
  { $id: 'HookClaimRequest', additionalProperties: false },
)
export type HookClaimRequest = Static<typeof HookClaimRequest>

export const HookClaimResponse = Type.Object(
  {
    action: Type.Enum(['work', 'drain']),
    reason: Type.Enum([
      'claimed',
      'existing_assignment',
      'ready_assignment',
      'no_work',
      'claims_errored',
      'stale_session',
    ]),
    bead_id: Type.Optional(Type.String()),
    assignee: Type.Optional(Type.String()),
    bead: Type.Optional(Bead),
    route: Type.Optional(Type.String()),
    root_bead_id: Type.Optional(Type.String()),
    continuation_group: Type.Optional(Type.String()),
    continuation_assigned: Type.Optional(
      Type.Array(Type.String(), { description: 'Beads of the same group that were handed over with it.' }),
    ),
    drain_acknowledged: Type.Optional(Type.Boolean()),
  },
  { $id: 'HookClaimResponse', additionalProperties: false },
)
export type HookClaimResponse = Static<typeof HookClaimResponse>

export const BeadImportIssue = Type.Object(
  {
    line: Type.Integer({ minimum: 1 }),
    id: Type.Optional(Type.String()),
    detail: Type.String(),
  },
  { $id: 'BeadImportIssue', additionalProperties: false },
)
export type BeadImportIssue = Static<typeof BeadImportIssue>

const count = (description: string) => Type.Integer({ minimum: 0, description })
export const BeadImportResponse = Type.Object(
  {
    created: count('Beads that are new.'),
    updated: count('Beads that the import has a newer version of.'),
    unchanged: count('Beads that were as in the import.'),
    skipped: count('Lines that are older than what is here, or of deleted beads.'),
    failed: count('Lines that were refused; their first thousand are in `errors`.'),
    dry_run: Type.Optional(Type.Boolean({ description: 'True: nothing was written.' })),
    warnings: Type.Array(BeadImportIssue, { description: 'At most a thousand.' }),
    errors: Type.Array(BeadImportIssue, { description: 'At most a thousand.' }),
  },
  { $id: 'BeadImportResponse', additionalProperties: false },
)
export type BeadImportResponse = Static<typeof BeadImportResponse>

/** A line of the interchange; whatever else it has is kept (docs/guide/interchange.md). */
export const BeadLine = Type.Object(
  {
    _type: Type.Optional(Type.String({ description: '`issue`; lines of another type are skipped.' })),
    id: Type.String({ minLength: 1, maxLength: 256 }),
    title: Type.String({ minLength: 1, maxLength: MAX_TITLE }),
    description: Type.Optional(Type.String()),
    status: Type.Optional(
      Type.String({ description: 'Any word; what is not `in_progress` or `closed` is open here.' }),
    ),
    priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 4 })),
    issue_type: Type.Optional(Type.String()),
    assignee: Type.Optional(Type.String()),
    created_at: Type.Optional(Timestamp),
    updated_at: Type.Optional(Timestamp),
    closed_at: Type.Optional(Timestamp),
    close_reason: Type.Optional(Type.String()),
    labels: Type.Optional(Type.Array(Type.String())),
    dependencies: Type.Optional(Type.Array(Type.Object({ depends_on_id: Type.String(), type: Type.String() }))),
    comments: Type.Optional(Type.Array(Type.Object({ text: Type.String() }))),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { $id: 'BeadLine', additionalProperties: true },
)

const base = '/v0/city/{cityName}/beads'
const item = `${base}/{id}`
const cityParams = Type.Object({ cityName: CityNameParam })
const id = Type.String({ minLength: 1, maxLength: 256, description: 'Id of the bead.', examples: ['al-x1y'] })
const params = Type.Object({ cityName: CityNameParam, id })

/** Filters of the list that also make sense where only ready beads are looked at. */
const sharedFilters = {
  type: Type.Optional(Type.Array(IssueType, { maxItems: 50, description: 'Any of these types.' })),
  label: Type.Optional(Type.Array(Label, { maxItems: 50, description: 'All of these labels.' })),
  assignee: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_PERSON, description: 'Who has it, under any of their names.' }),
  ),
  assignees: Type.Optional(Type.Array(Person, { maxItems: 50, description: 'Any of these; an empty one is nobody.' })),
  unassigned: Type.Optional(Type.Boolean({ description: 'True: nobody has it.' })),
  rig: Type.Optional(text(64, 'Name of a rig.')),
  parent: Type.Optional(text(256, 'Id of the parent.')),
  priority: Type.Optional(Priority),
  routed_to: Type.Optional(text(MAX_PERSON, 'Agent or pool that it is routed to.')),
  root_bead_id: Type.Optional(text(256, 'Root of a molecule.')),
  metadata: Type.Optional(
    Type.Array(text(MAX_METADATA_KEY + MAX_METADATA_VALUE + 1, '`key=value`, or `key` for any value but empty.'), {
      maxItems: 20,
      description: 'All of these.',
    }),
  ),
  created_before: Type.Optional(Timestamp),
  created_after: Type.Optional(Timestamp),
  updated_before: Type.Optional(Timestamp),
  updated_after: Type.Optional(Timestamp),
  ephemeral: Type.Optional(Type.Enum(['only', 'exclude'], { description: 'Both tiers where absent.' })),
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, description: 'Words of title and description.' })),
}
const listFilters = {
  status: Type.Optional(Type.Array(BeadStatus, { maxItems: 3, description: 'Any of these.' })),
  all: Type.Optional(Type.Boolean({ description: 'Closed beads too, which are left out where no status is given.' })),
  closed_before: Type.Optional(Timestamp),
  closed_after: Type.Optional(Timestamp),
  ...sharedFilters,
}

const ListBodyBead = listBody('ListBodyBead', Bead)
const ITEM_HEADERS = ['X-SVC-Index', 'ETag'] as const
const edited = ['bead-not-found'] as const
const UPDATED = ['bead.updated'] as const

export const listBeads = operation({
  id: 'list-beads',
  method: 'GET',
  path: base,
  family: 'Beads',
  summary: 'List beads',
  description:
    'Newest first. All filters must hold; closed beads are left out unless `all` or `status` says otherwise.',
  params: cityParams,
  query: Type.Object(
    { ...BlockingQuery, ...PageQuery, ...OrderQuery, ...listFilters },
    { additionalProperties: false },
  ),
  replies: { 200: ListBodyBead },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const createBead = operation({
  id: 'create-bead',
  method: 'POST',
  path: base,
  family: 'Beads',
  summary: 'Create a bead',
  description: 'Its id begins with the prefix of the city, or of its `rig`. `needs` and `parent` must be there.',
  params: cityParams,
  body: BeadCreateRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['rig-not-found', 'bead-not-found'],
  emits: ['bead.created'],
})

export const listReadyBeads = operation({
  id: 'list-ready-beads',
  method: 'GET',
  path: `${base}/ready`,
  family: 'Beads',
  summary: 'List ready beads',
  description:
    'Open work with nothing in its way: most urgent first, then oldest. `sort=oldest` leaves the priority out of it.',
  params: cityParams,
  query: Type.Object(
    {
      ...BlockingQuery,
      ...PageQuery,
      ...sharedFilters,
      exclude_type: Type.Optional(Type.Array(IssueType, { maxItems: 50, description: 'None of these types.' })),
      exclude_label: Type.Optional(Type.Array(Label, { maxItems: 50, description: 'None of these labels.' })),
      sort: Type.Optional(
        Type.Enum(['ready', 'oldest'], {
          description: '`ready` (the default): most urgent first; `oldest`: longest there first.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  replies: { 200: ListBodyBead },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const queryBeads = operation({
  id: 'query-beads',
  method: 'GET',
  path: `${base}/query`,
  family: 'Beads',
  summary: 'Query beads',
  description:
    'Beads that satisfy an expression such as `status=open AND priority<2 AND (label:ui OR "cache")`; newest first. Without a word about the status closed beads are left out unless `all`.',
  params: cityParams,
  query: Type.Object(
    {
      q: Type.String({ minLength: 1, maxLength: 4_096, description: 'The expression.' }),
      all: Type.Optional(Type.Boolean({ description: 'Closed beads too.' })),
      ...BlockingQuery,
      ...PageQuery,
      ...OrderQuery,
    },
    { additionalProperties: false },
  ),
  replies: { 200: ListBodyBead },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})

export const listHook = operation({
  id: 'list-hook',
  method: 'GET',
  path: `${base}/hook`,
  family: 'Beads',
  summary: 'List what is on a hook',
  description:
    'What an agent would be given, in that order: work under way, work handed to it, work of its pool. A session is known by its id: its own name and its pool need not be said.',
  params: cityParams,
  query: Type.Object(
    {
      agent: text(MAX_PERSON, 'Who asks: agent, pool or person.'),
      session_id: Type.Optional(text(256, 'Session that asks.')),
      session_name: Type.Optional(text(256, 'Its name.')),
    },
    { additionalProperties: false },
  ),
  replies: { 200: listBody('ListBodyHookBead', HookBead) },
  replyHeaders: ['X-SVC-Index'],
  problems: [],
})

export const claimHook = operation({
  id: 'claim-hook',
  method: 'POST',
  path: `${base}/hook/claim`,
  family: 'Beads',
  summary: 'Claim the next work on a hook',
  description: 'The first of the hook that can be claimed, claimed; or `drain` where there is nothing to do.',
  params: cityParams,
  body: HookClaimRequest,
  replies: { 200: HookClaimResponse },
  replyHeaders: ['X-SVC-Index'],
  problems: [],
  emits: ['bead.claimed', 'bead.updated', 'bead.claim_rejected'],
})

export const createBeadBatch = operation({
  id: 'create-bead-batch',
  method: 'POST',
  path: `${base}/batch`,
  family: 'Beads',
  summary: 'Create many beads and their edges',
  description: 'All or nothing. Nodes name each other by key.',
  params: cityParams,
  body: BeadBatchRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: BeadBatchResponse },
  replyHeaders: ['X-SVC-Index'],
  problems: ['rig-not-found', 'bead-not-found', 'dependency-cycle'],
  emits: ['bead.created', 'bead.updated'],
})

export const importBeads = operation({
  id: 'import-beads',
  method: 'POST',
  path: `${base}/import`,
  family: 'Beads',
  summary: 'Import beads',
  description:
    'One JSON object a line, as the bd tool writes them: `application/x-ndjson`, at most 1 MiB a line. A bad line does not poison the rest; the same file twice changes nothing. Lines are taken in as they come: where the upload breaks off, those before it are in.',
  params: cityParams,
  query: Type.Object(
    {
      rig: Type.Optional(text(64, 'Rig whose beads these are; by their prefixes where absent.')),
      mode: Type.Optional(
        Type.Enum(['upsert', 'create'], { description: '`create`: an id that exists is an error; default `upsert`.' }),
      ),
      dry_run: Type.Optional(Type.Boolean({ description: 'Only says what would happen.' })),
      remap: Type.Optional(Type.Boolean({ description: 'New ids where the prefix is not one of the city.' })),
    },
    { additionalProperties: false },
  ),
  body: BeadLine,
  bodyStream: 'ndjson',
  bodyLimit: MAX_IMPORT_BYTES,
  replies: { 200: BeadImportResponse },
  replyHeaders: ['X-SVC-Index'],
  problems: ['rig-not-found'],
  emits: ['bead.created', 'bead.updated', 'bead.closed'],
})

// Closed beads are part of it anyway.
const { all: _all, ...exportFilters } = listFilters

export const exportBeads = operation({
  id: 'export-beads',
  method: 'GET',
  path: `${base}/export`,
  family: 'Beads',
  summary: 'Export beads',
  description:
    'One JSON object a line, sorted by id, in the shape of the bd tool; closed beads too, ephemeral ones only where asked.',
  params: cityParams,
  query: Type.Object(
    {
      ...exportFilters,
      ephemeral: Type.Optional(Type.Enum(['only', 'include'], { description: 'Left out where absent.' })),
    },
    { additionalProperties: false },
  ),
  mediaType: LINES_TYPE,
  replies: { 200: BeadLine },
  replyHeaders: ['X-SVC-Index'],
  problems: ['rig-not-found'],
})

export const getBeadGraph = operation({
  id: 'get-bead-graph',
  method: 'GET',
  path: `${base}/graph/{rootID}`,
  family: 'Beads',
  summary: 'Get a graph of beads',
  description: 'A root, what belongs to it (see `membership`), and the edges between them.',
  params: Type.Object({
    cityName: CityNameParam,
    rootID: Type.String({ minLength: 1, maxLength: 256, description: 'Id of the root.', examples: ['al-x1y'] }),
  }),
  replies: { 200: BeadGraphResponse },
  replyHeaders: ['X-SVC-Index'],
  problems: ['bead-not-found'],
})

export const getBead = operation({
  id: 'get-bead',
  method: 'GET',
  path: item,
  family: 'Beads',
  summary: 'Get a bead',
  description: 'The ETag is its `revision`, for `If-Match`.',
  params,
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found'],
})

export const patchBead = operation({
  id: 'patch-bead',
  method: 'PATCH',
  path: item,
  family: 'Beads',
  summary: 'Change a bead',
  description: 'JSON Merge Patch. `status` follows the same rules as closing and reopening.',
  params,
  body: BeadPatchRequest,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-wrong-state', 'dependency-cycle'],
  emits: ['bead.updated', 'bead.closed', 'bead.reopened'],
})

export const deleteBead = operation({
  id: 'delete-bead',
  method: 'DELETE',
  path: item,
  family: 'Beads',
  summary: 'Delete a bead',
  description: 'For good, with its edges and comments. Refused while open beads, children or convoys refer to it.',
  params,
  query: Type.Object(
    { cascade: Type.Optional(Type.Boolean({ description: 'Delete its children too, and drop edges to them.' })) },
    { additionalProperties: false },
  ),
  headers: ['If-Match'],
  replies: { 200: DeletedBead },
  replyHeaders: ['X-SVC-Index'],
  problems: ['bead-not-found', 'still-referenced'],
  emits: ['bead.deleted', 'bead.updated'],
})

export const closeBead = operation({
  id: 'close-bead',
  method: 'POST',
  path: `${item}/close`,
  family: 'Beads',
  summary: 'Close a bead',
  description: 'A bead that is closed stays as it is.',
  params,
  body: BeadCloseRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: edited,
  emits: ['bead.closed', 'bead.updated'],
})

export const reopenBead = operation({
  id: 'reopen-bead',
  method: 'POST',
  path: `${item}/reopen`,
  family: 'Beads',
  summary: 'Reopen a bead',
  description: 'Open again and nobody’s; what depends on it is blocked again.',
  params,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-wrong-state'],
  emits: ['bead.updated', 'bead.reopened'],
})

export const assignBead = operation({
  id: 'assign-bead',
  method: 'POST',
  path: `${item}/assign`,
  family: 'Beads',
  summary: 'Assign a bead',
  description: 'Its status stays. With `expected_assignee` it is a hand-over, which fails where somebody else has it.',
  params,
  body: BeadAssignRequest,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-assignee'],
  emits: UPDATED,
})

export const routeBead = operation({
  id: 'route-bead',
  method: 'POST',
  path: `${item}/route`,
  family: 'Beads',
  summary: 'Route a bead to an agent or pool',
  description:
    'Sets `svc.routed_to`, which `hook` looks at; `null` takes it away. A target that is not configured is a warning, no refusal.',
  params,
  body: BeadRouteRequest,
  headers: ['If-Match'],
  replies: { 200: RoutedBead },
  replyHeaders: ITEM_HEADERS,
  problems: edited,
  emits: UPDATED,
})

export const claimBead = operation({
  id: 'claim-bead',
  method: 'POST',
  path: `${item}/claim`,
  family: 'Beads',
  summary: 'Claim a bead',
  description:
    'Takes it if nobody has it, for as long as the lease is renewed; for who has it already it renews the lease. Sessions that share a name, such as that of their pool, take nothing from each other.',
  params,
  body: BeadClaimRequest,
  headers: ['If-Match'],
  replies: { 200: BeadClaimResponse },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-claimed', 'conflict-wrong-state'],
  emits: ['bead.claimed', 'bead.updated', 'bead.claim_rejected'],
})

export const heartbeatBead = operation({
  id: 'heartbeat-bead',
  method: 'POST',
  path: `${item}/heartbeat`,
  family: 'Beads',
  summary: 'Renew the lease of a claim',
  description: 'Changes nothing but `lease_expires_at`, and tells nobody.',
  params,
  body: BeadHeartbeatRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-claimed', 'conflict-wrong-state'],
})

export const releaseBead = operation({
  id: 'release-bead',
  method: 'POST',
  path: `${item}/release`,
  family: 'Beads',
  summary: 'Give a claimed bead back',
  description: 'It is open and unassigned again. With `assignee`, only if that one holds it.',
  params,
  body: BeadReleaseRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: BeadReleaseResponse },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'conflict-claimed', 'conflict-wrong-state'],
  emits: ['bead.released', 'bead.updated'],
})

export const listBeadDeps = operation({
  id: 'list-bead-deps',
  method: 'GET',
  path: `${item}/deps`,
  family: 'Beads',
  summary: 'List the dependencies of a bead',
  description: 'Edges with the status of what is at their other end; `direction` says which ones.',
  params,
  query: Type.Object(
    {
      direction: Type.Optional(
        Type.Enum(['down', 'up', 'both'], { description: '`down`: what it depends on; `up`: what depends on it.' }),
      ),
      type: Type.Optional(DepType),
    },
    { additionalProperties: false },
  ),
  replies: { 200: BeadDepsResponse },
  replyHeaders: ['X-SVC-Index'],
  problems: ['bead-not-found'],
})

export const addBeadDep = operation({
  id: 'add-bead-dep',
  method: 'POST',
  path: `${item}/deps`,
  family: 'Beads',
  summary: 'Add a dependency',
  description:
    'The bead depends on another. Between two beads there is one edge, whose type this replaces, and a `parent-child` edge beside it.',
  params,
  body: BeadDepRequest,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found', 'dependency-cycle'],
  emits: UPDATED,
})

export const removeBeadDep = operation({
  id: 'remove-bead-dep',
  method: 'DELETE',
  path: `${item}/deps/{dependsOnId}`,
  family: 'Beads',
  summary: 'Remove a dependency',
  description: 'Of one type, or of all types. One that is not there is no failure.',
  params: Type.Object({
    cityName: CityNameParam,
    id,
    dependsOnId: Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'What it depends on.',
      examples: ['al-z9k'],
    }),
  }),
  query: Type.Object({ type: Type.Optional(DepType) }, { additionalProperties: false }),
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: ['bead-not-found'],
  emits: UPDATED,
})

const labelParams = Type.Object({
  cityName: CityNameParam,
  id,
  label: Type.String({ minLength: 1, maxLength: MAX_LABEL, description: 'Exact text.', examples: ['ui'] }),
})

export const addBeadLabel = operation({
  id: 'add-bead-label',
  method: 'PUT',
  path: `${item}/labels/{label}`,
  family: 'Beads',
  summary: 'Put a label on a bead',
  description: 'One that it has already is no change, and no event.',
  params: labelParams,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: edited,
  emits: UPDATED,
})

export const removeBeadLabel = operation({
  id: 'remove-bead-label',
  method: 'DELETE',
  path: `${item}/labels/{label}`,
  family: 'Beads',
  summary: 'Take a label off a bead',
  description: 'One that it does not have is no change, and no event.',
  params: labelParams,
  headers: ['If-Match'],
  replies: { 200: Bead },
  replyHeaders: ITEM_HEADERS,
  problems: edited,
  emits: UPDATED,
})

export const listBeadComments = operation({
  id: 'list-bead-comments',
  method: 'GET',
  path: `${item}/comments`,
  family: 'Beads',
  summary: 'List the comments of a bead',
  description: 'Oldest first.',
  params,
  query: Type.Object({ ...PageQuery }, { additionalProperties: false }),
  replies: { 200: listBody('ListBodyBeadComment', BeadComment) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['bead-not-found', 'invalid-cursor'],
})

export const addBeadComment = operation({
  id: 'add-bead-comment',
  method: 'POST',
  path: `${item}/comments`,
  family: 'Beads',
  summary: 'Comment on a bead',
  description: 'Emits `bead.updated` with `changed: ["comments"]`.',
  params,
  body: BeadCommentRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: BeadComment },
  replyHeaders: ['X-SVC-Index'],
  problems: edited,
  emits: UPDATED,
})

export const beadOperations = [
  listBeads,
  createBead,
  listReadyBeads,
  queryBeads,
  listHook,
  claimHook,
  createBeadBatch,
  importBeads,
  exportBeads,
  getBeadGraph,
  getBead,
  patchBead,
  deleteBead,
  closeBead,
  reopenBead,
  assignBead,
  routeBead,
  claimBead,
  heartbeatBead,
  releaseBead,
  listBeadDeps,
  addBeadDep,
  removeBeadDep,
  addBeadLabel,
  removeBeadLabel,
  listBeadComments,
  addBeadComment,
] as const
