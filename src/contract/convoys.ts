/** Convoys: beads that group work, and close when all of it is closed (sheet 03 §7; decisions 46, 49). */
import Type, { type Static, type TSchema } from 'typebox'
import { CityNameParam } from './base/names.ts'
import { operation } from './base/operation.ts'
import { BlockingQuery, listBody, OrderQuery, PageQuery } from './base/paging.ts'
import { Bead, BeadStatus, MAX_DESCRIPTION, MAX_PERSON, MAX_TITLE } from './beads.ts'

export const CONVOY_TYPE = 'convoy'
/** The label that keeps a convoy from closing by itself. */
export const OWNED_LABEL = 'owned'
export const MERGE_STRATEGIES = ['direct', 'mr', 'local'] as const
/** Members named in one request. */
export const MAX_CONVOY_ITEMS = 1_000
/** Ids that an answer names. */
export const MAX_NAMED_MEMBERS = 100
export const MAX_SWEPT_CONVOYS = 1_000

const count = (description: string) => Type.Integer({ minimum: 0, description })
const text = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()], { description: 'Null clears it.' })

const Owner = text(MAX_PERSON, 'Who looks after it.')
const Notify = text(MAX_PERSON, 'Who is told when it is closed.')
const Merge = Type.Enum(MERGE_STRATEGIES, { description: 'How the work of its members is merged.' })
const Target = text(512, 'Branch that the work of its members goes to.')
const Molecule = text(256, 'Molecule that works on it.')
const Owned = Type.Boolean({ description: 'True: it never closes by itself, and may be landed. The label `owned`.' })

export const ConvoyProgress = Type.Object(
  { total: count('Members.'), closed: count('Members that are closed; one that is not there does not count.') },
  { $id: 'ConvoyProgress', additionalProperties: false },
)
export type ConvoyProgress = Static<typeof ConvoyProgress>

/** Its edges are its members, which may be very many: those have pages. */
const { dependencies: _, ...convoyBead } = Bead.properties

export const Convoy = Type.Object(
  {
    ...convoyBead,
    owner: Type.Optional(Owner),
    notify: Type.Optional(Notify),
    merge: Type.Optional(Type.String({ description: '`direct`, `mr` or `local`: how members are merged.' })),
    target: Type.Optional(Target),
    molecule: Type.Optional(Type.String({ description: 'Molecule that works on it.' })),
    owned: Owned,
    progress: ConvoyProgress,
  },
  { $id: 'Convoy', additionalProperties: false },
)
export type Convoy = Static<typeof Convoy>

export const UnknownMember = Type.Object(
  {
    id: Type.String(),
    title: Type.String({ description: 'Its id: nothing else is known.' }),
    status: Type.Literal('unknown'),
    issue_type: Type.Literal('task'),
  },
  {
    $id: 'UnknownMember',
    additionalProperties: false,
    description: 'Stands for a member that is not there; it never counts as closed.',
  },
)
export type UnknownMember = Static<typeof UnknownMember>

const ConvoyMember = Type.Union([Bead, UnknownMember], { $id: 'ConvoyMember' })

export const ConvoyView = Type.Object(
  {
    convoy: Convoy,
    children: Type.Array(ConvoyMember, { description: 'Members, oldest first; those that are not there come last.' }),
    progress: ConvoyProgress,
    next_cursor: Type.Optional(Type.String({ description: 'Present if and only if there are more members.' })),
  },
  { $id: 'ConvoyView', additionalProperties: false },
)

export const ConvoyCheck = Type.Object(
  {
    convoy_id: Type.String(),
    total: count('Members.'),
    closed: count('Members that are closed.'),
    complete: Type.Boolean({ description: 'It has members, and all of them are closed.' }),
  },
  { $id: 'ConvoyCheck', additionalProperties: false },
)

export const StrandedBead = Type.Object(
  {
    ...Bead.properties,
    convoys: Type.Array(Type.String(), {
      description: `Open convoys that it is a member of; at most ${MAX_NAMED_MEMBERS}.`,
    }),
  },
  { $id: 'StrandedBead', additionalProperties: false },
)
export type StrandedBead = Static<typeof StrandedBead>

const Items = Type.Array(text(256, 'Id of a bead.'), { maxItems: MAX_CONVOY_ITEMS })
const settings = {
  owner: Type.Optional(Owner),
  notify: Type.Optional(Notify),
  merge: Type.Optional(Merge),
  target: Type.Optional(Target),
  molecule: Type.Optional(Molecule),
  owned: Type.Optional(Owned),
}

export const ConvoyCreateRequest = Type.Object(
  {
    title: text(MAX_TITLE, 'What it is about.'),
    description: Type.Optional(Type.String({ maxLength: MAX_DESCRIPTION })),
    items: Type.Optional(Items),
    rig: Type.Optional(text(64, 'Rig that it belongs to; the city itself where absent.')),
    ...settings,
  },
  { $id: 'ConvoyCreateRequest', additionalProperties: false },
)
export type ConvoyCreateRequest = Static<typeof ConvoyCreateRequest>

export const ConvoyPatchRequest = Type.Object(
  {
    title: Type.Optional(text(MAX_TITLE, 'What it is about.')),
    description: Type.Optional(orNull(Type.String({ maxLength: MAX_DESCRIPTION }))),
    owner: Type.Optional(orNull(Owner)),
    notify: Type.Optional(orNull(Notify)),
    merge: Type.Optional(orNull(Merge)),
    target: Type.Optional(orNull(Target)),
    molecule: Type.Optional(orNull(Molecule)),
    owned: Type.Optional(Owned),
  },
  { $id: 'ConvoyPatchRequest', additionalProperties: false, description: 'JSON Merge Patch; `{}` changes nothing.' },
)
export type ConvoyPatchRequest = Static<typeof ConvoyPatchRequest>

export const ConvoyItemsRequest = Type.Object(
  { items: Type.Array(text(256, 'Id of a bead.'), { minItems: 1, maxItems: MAX_CONVOY_ITEMS }) },
  { $id: 'ConvoyItemsRequest', additionalProperties: false },
)

export const ConvoyCloseRequest = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 2_000, description: 'Why it is done.' })) },
  { $id: 'ConvoyCloseRequest', additionalProperties: false },
)

export const ConvoyLandRequest = Type.Object(
  {
    force: Type.Optional(Type.Boolean({ description: 'Also with members that are not closed.' })),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only say what would happen.' })),
  },
  { $id: 'ConvoyLandRequest', additionalProperties: false },
)

export const ConvoyLanding = Type.Object(
  {
    landed: Type.Boolean({ description: 'It is closed; with `dry_run`: it would be.' }),
    dry_run: Type.Boolean(),
    open: Type.Array(Type.String(), {
      description: `Members that are not closed; at most ${MAX_NAMED_MEMBERS} of them, oldest first.`,
    }),
    convoy: Convoy,
  },
  { $id: 'ConvoyLanding', additionalProperties: false },
)

export const ConvoySweep = Type.Object(
  {
    checked: count('Open convoys that were looked at.'),
    closed: Type.Array(Type.String(), {
      description: `Convoys that were complete and are closed now; at most ${MAX_SWEPT_CONVOYS} in one go.`,
    }),
    truncated: Type.Optional(Type.Boolean({ description: 'True: there were more. Ask again.' })),
  },
  { $id: 'ConvoySweep', additionalProperties: false },
)

export const DeletedConvoy = Type.Object(
  { status: Type.Literal('deleted'), id: Type.String() },
  { $id: 'DeletedConvoy', additionalProperties: false },
)

const base = '/v0/city/{cityName}/convoys'
const item = `${base}/{id}`
const cityParams = Type.Object({ cityName: CityNameParam })
const params = Type.Object({
  cityName: CityNameParam,
  id: Type.String({ minLength: 1, maxLength: 256, description: 'Id of the convoy.', examples: ['al-c0n'] }),
})
const INDEX = ['X-SVC-Index'] as const
const ITEM_HEADERS = ['X-SVC-Index', 'ETag'] as const
const CLOSES = ['bead.closed', 'convoy.closed'] as const

export const listConvoys = operation({
  id: 'list-convoys',
  method: 'GET',
  path: base,
  family: 'Convoys',
  summary: 'List convoys',
  description:
    'Newest first, or with `order=asc` oldest first, with their progress; closed ones are left out unless `all` or `status` says otherwise.',
  params: cityParams,
  query: Type.Object(
    {
      status: Type.Optional(Type.Array(BeadStatus, { maxItems: 3, description: 'Any of these.' })),
      all: Type.Optional(Type.Boolean({ description: 'Closed convoys too.' })),
      ...BlockingQuery,
      ...PageQuery,
      ...OrderQuery,
    },
    { additionalProperties: false },
  ),
  replies: { 200: listBody('ListBodyConvoy', Convoy) },
  replyHeaders: INDEX,
  problems: ['invalid-cursor'],
})

export const createConvoy = operation({
  id: 'create-convoy',
  method: 'POST',
  path: base,
  family: 'Convoys',
  summary: 'Create a convoy',
  description: 'All items become members, or nothing happens. They keep their parent, status and routing.',
  params: cityParams,
  body: ConvoyCreateRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: Convoy },
  replyHeaders: ITEM_HEADERS,
  problems: ['rig-not-found', 'bead-not-found'],
  emits: ['bead.created', 'convoy.created'],
})

export const listStranded = operation({
  id: 'list-stranded',
  method: 'GET',
  path: `${base}/stranded`,
  family: 'Convoys',
  summary: 'List work in convoys that nobody has',
  description: 'Open, unassigned members of open convoys; oldest first.',
  params: cityParams,
  query: Type.Object({ ...BlockingQuery, ...PageQuery }, { additionalProperties: false }),
  replies: { 200: listBody('ListBodyStrandedBead', StrandedBead) },
  replyHeaders: INDEX,
  problems: ['invalid-cursor'],
})

export const checkConvoys = operation({
  id: 'check-convoys',
  method: 'POST',
  path: `${base}/check`,
  family: 'Convoys',
  summary: 'Close all convoys that are complete',
  description:
    'What happens by itself when the last member is closed or removed, for convoys that were complete already. Never one that is empty or `owned`.',
  params: cityParams,
  replies: { 200: ConvoySweep },
  replyHeaders: INDEX,
  problems: [],
  emits: CLOSES,
})

export const getConvoy = operation({
  id: 'get-convoy',
  method: 'GET',
  path: item,
  family: 'Convoys',
  summary: 'Get a convoy with its members',
  description: 'Its members are the beads that it tracks, and its children.',
  params,
  query: Type.Object({ ...PageQuery }, { additionalProperties: false }),
  replies: { 200: ConvoyView },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found', 'invalid-cursor'],
})

export const patchConvoy = operation({
  id: 'patch-convoy',
  method: 'PATCH',
  path: item,
  family: 'Convoys',
  summary: 'Change a convoy',
  description: 'JSON Merge Patch: `null` removes a field, an absent one stays.',
  params,
  body: ConvoyPatchRequest,
  headers: ['If-Match'],
  replies: { 200: Convoy },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found'],
  emits: ['bead.updated'],
})

export const deleteConvoy = operation({
  id: 'delete-convoy',
  method: 'DELETE',
  path: item,
  family: 'Convoys',
  summary: 'Delete a convoy',
  description: 'Only the convoy: its members stay. Refused with their names while others depend on it or track it.',
  params,
  headers: ['If-Match'],
  replies: { 200: DeletedConvoy },
  replyHeaders: INDEX,
  problems: ['convoy-not-found', 'still-referenced'],
  emits: ['bead.deleted'],
})

export const checkConvoy = operation({
  id: 'check-convoy',
  method: 'GET',
  path: `${item}/check`,
  family: 'Convoys',
  summary: 'Tell whether a convoy is complete',
  description: 'Says so and changes nothing; `POST /convoys/check` closes those that are.',
  params,
  replies: { 200: ConvoyCheck },
  replyHeaders: INDEX,
  problems: ['convoy-not-found'],
})

export const addToConvoy = operation({
  id: 'add-to-convoy',
  method: 'POST',
  path: `${item}/add`,
  family: 'Convoys',
  summary: 'Add members to a convoy',
  description: 'All of them or none. One that is a member already is no failure.',
  params,
  body: ConvoyItemsRequest,
  headers: ['If-Match'],
  replies: { 200: Convoy },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found', 'bead-not-found', 'conflict-wrong-state'],
  emits: ['bead.updated', 'convoy.updated'],
})

export const removeFromConvoy = operation({
  id: 'remove-from-convoy',
  method: 'POST',
  path: `${item}/remove`,
  family: 'Convoys',
  summary: 'Remove members from a convoy',
  description:
    'All of them or none; a child of the convoy is its child no more. Without its last open member the convoy is complete, and closes.',
  params,
  body: ConvoyItemsRequest,
  headers: ['If-Match'],
  replies: { 200: Convoy },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found', 'bead-not-found'],
  emits: ['bead.updated', 'convoy.updated', ...CLOSES],
})

export const closeConvoy = operation({
  id: 'close-convoy',
  method: 'POST',
  path: `${item}/close`,
  family: 'Convoys',
  summary: 'Close a convoy',
  description: 'Whatever the state of its members, which it leaves alone. Closed already: nothing happens.',
  params,
  body: ConvoyCloseRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: Convoy },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found'],
  emits: CLOSES,
})

export const landConvoy = operation({
  id: 'land-convoy',
  method: 'POST',
  path: `${item}/land`,
  family: 'Convoys',
  summary: 'Land an owned convoy',
  description: 'Closes a convoy that its owner keeps open. Refused with their names while members are not closed.',
  params,
  body: ConvoyLandRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: ConvoyLanding },
  replyHeaders: ITEM_HEADERS,
  problems: ['convoy-not-found', 'conflict-wrong-state'],
  emits: CLOSES,
})

export const convoyOperations = [
  listConvoys,
  createConvoy,
  listStranded,
  checkConvoys,
  getConvoy,
  patchConvoy,
  deleteConvoy,
  checkConvoy,
  addToConvoy,
  removeFromConvoy,
  closeConvoy,
  landConvoy,
] as const
