/** Convoys: beads that group work, and close when all of it is closed (sheet 03 §7; decisions 46, 49). */

import { family } from './base/family.ts'
import { CityNameParam } from './base/names.ts'
import { BlockingQuery, listBody, OrderQuery, PageQuery } from './base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  nullable,
  object,
  optional,
  type Schema,
  type Static,
  string,
  union,
} from './base/schema.ts'
import { MAX_DESCRIPTION, MAX_PERSON, MAX_TITLE } from './base/work.ts'
import { Bead, BeadStatus } from './beads.ts'

export const CONVOY_TYPE = 'convoy'
/** The label that keeps a convoy from closing by itself. */
export const OWNED_LABEL = 'owned'
export const MERGE_STRATEGIES = ['direct', 'mr', 'local'] as const
/** Members named in one request. */
export const MAX_CONVOY_ITEMS = 1_000
/** Ids that an answer names. */
export const MAX_NAMED_MEMBERS = 100
export const MAX_SWEPT_CONVOYS = 1_000

const count = (description: string) => integer({ minimum: 0, description })
const text = (maxLength: number, description: string) => string({ minLength: 1, maxLength, description })
const orNull = <T extends Schema>(schema: T) => nullable(schema, { description: 'Null clears it.' })

const Owner = text(MAX_PERSON, 'Who looks after it.')
const Notify = text(MAX_PERSON, 'Who is told when it is closed.')
const Merge = choice(MERGE_STRATEGIES, { description: 'How the work of its members is merged.' })
const Target = text(512, 'Branch that the work of its members goes to.')
const Molecule = text(256, 'Molecule that works on it.')
const Owned = boolean({ description: 'True: it never closes by itself, and may be landed. The label `owned`.' })

export const ConvoyProgress = component('ConvoyProgress', {
  total: count('Members.'),
  closed: count('Members that are closed; one that is not there does not count.'),
})
export type ConvoyProgress = Static<typeof ConvoyProgress>

/** Its edges are its members, which may be very many: those have pages. */
const { dependencies: _, ...convoyBead } = Bead.properties

export const Convoy = component('Convoy', {
  ...convoyBead,
  owner: optional(Owner),
  notify: optional(Notify),
  merge: optional(string({ description: '`direct`, `mr` or `local`: how members are merged.' })),
  target: optional(Target),
  molecule: optional(string({ description: 'Molecule that works on it.' })),
  owned: Owned,
  progress: ConvoyProgress,
})
export type Convoy = Static<typeof Convoy>

export const UnknownMember = component(
  'UnknownMember',
  {
    id: string(),
    title: string({ description: 'Its id: nothing else is known.' }),
    status: literal('unknown'),
    issue_type: literal('task'),
  },
  {
    description: 'Stands for a member that is not there; it never counts as closed.',
  },
)
export type UnknownMember = Static<typeof UnknownMember>

const ConvoyMember = union([Bead, UnknownMember], { $id: 'ConvoyMember' })

export const ConvoyView = component('ConvoyView', {
  convoy: Convoy,
  children: array(ConvoyMember, { description: 'Members, oldest first; those that are not there come last.' }),
  progress: ConvoyProgress,
  next_cursor: optional(string({ description: 'Present if and only if there are more members.' })),
})

export const ConvoyCheck = component('ConvoyCheck', {
  convoy_id: string(),
  total: count('Members.'),
  closed: count('Members that are closed.'),
  complete: boolean({ description: 'It has members, and all of them are closed.' }),
})

export const StrandedBead = component('StrandedBead', {
  ...Bead.properties,
  convoys: array(string(), {
    description: `Open convoys that it is a member of; at most ${MAX_NAMED_MEMBERS}.`,
  }),
})
export type StrandedBead = Static<typeof StrandedBead>

const Items = array(text(256, 'Id of a bead.'), { maxItems: MAX_CONVOY_ITEMS })
const settings = {
  owner: optional(Owner),
  notify: optional(Notify),
  merge: optional(Merge),
  target: optional(Target),
  molecule: optional(Molecule),
  owned: optional(Owned),
}

export const ConvoyCreateRequest = component('ConvoyCreateRequest', {
  title: text(MAX_TITLE, 'What it is about.'),
  description: optional(string({ maxLength: MAX_DESCRIPTION })),
  items: optional(Items),
  rig: optional(text(64, 'Rig that it belongs to; the city itself where absent.')),
  ...settings,
})
export type ConvoyCreateRequest = Static<typeof ConvoyCreateRequest>

export const ConvoyPatchRequest = component(
  'ConvoyPatchRequest',
  {
    title: optional(text(MAX_TITLE, 'What it is about.')),
    description: optional(orNull(string({ maxLength: MAX_DESCRIPTION }))),
    owner: optional(orNull(Owner)),
    notify: optional(orNull(Notify)),
    merge: optional(orNull(Merge)),
    target: optional(orNull(Target)),
    molecule: optional(orNull(Molecule)),
    owned: optional(Owned),
  },
  { description: 'JSON Merge Patch; `{}` changes nothing.' },
)
export type ConvoyPatchRequest = Static<typeof ConvoyPatchRequest>

export const ConvoyItemsRequest = component('ConvoyItemsRequest', {
  items: array(text(256, 'Id of a bead.'), { minItems: 1, maxItems: MAX_CONVOY_ITEMS }),
})

const cancel = optional(
  boolean({ description: 'Cancel the live molecule that is about the convoy, and close it then.' }),
)

export const ConvoyCloseRequest = component('ConvoyCloseRequest', {
  reason: optional(string({ maxLength: 2_000, description: 'Why it is done.' })),
  cancel,
})

export const ConvoyLandRequest = component('ConvoyLandRequest', {
  force: optional(boolean({ description: 'Also with members that are not closed.' })),
  cancel,
  dry_run: optional(boolean({ description: 'Only say what would happen.' })),
})

export const ConvoyLanding = component('ConvoyLanding', {
  landed: boolean({ description: 'It is closed; with `dry_run`: it would be.' }),
  dry_run: boolean(),
  open: array(string(), {
    description: `Members that are not closed; at most ${MAX_NAMED_MEMBERS} of them, oldest first.`,
  }),
  convoy: Convoy,
})

export const ConvoySweep = component('ConvoySweep', {
  checked: count('Open convoys that were looked at.'),
  closed: array(string(), {
    description: `Convoys that were complete and are closed now; at most ${MAX_SWEPT_CONVOYS} in one go.`,
  }),
  truncated: optional(boolean({ description: 'True: there were more. Ask again.' })),
})

export const DeletedConvoy = component('DeletedConvoy', { status: literal('deleted'), id: string() })

const convoys = family(
  { name: 'Convoys', about: 'Groups of beads that are followed together.' },
  '/v0/city/{cityName}/convoys',
  {
    cityName: CityNameParam,
    id: string({ minLength: 1, maxLength: 256, description: 'Id of the convoy.', examples: ['al-c0n'] }),
  },
  { replyHeaders: ['X-SVC-Index'] },
)
const convoy = convoys.at('/{id}', { problems: ['convoy-not-found'] })
const change = convoy.with({ headers: ['If-Match'], replies: { 200: Convoy }, replyHeaders: ['ETag'] })
const CLOSES = ['bead.closed', 'convoy.closed'] as const

export const listConvoys = convoys.get('list-convoys', '', {
  summary: 'List convoys',
  description:
    'Newest first, or with `order=asc` oldest first, with their progress; closed ones are left out unless `all` or `status` says otherwise.',
  query: object({
    status: optional(array(BeadStatus, { maxItems: 3, description: 'Any of these.' })),
    all: optional(boolean({ description: 'Closed convoys too.' })),
    ...BlockingQuery,
    ...PageQuery,
    ...OrderQuery,
  }),
  replies: { 200: listBody('ListBodyConvoy', Convoy) },
  problems: ['invalid-cursor'],
})

export const createConvoy = convoys.post('create-convoy', '', {
  summary: 'Create a convoy',
  description: 'All items become members, or nothing happens. They keep their parent, status and routing.',
  body: ConvoyCreateRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: Convoy },
  replyHeaders: ['ETag'],
  problems: ['rig-not-found', 'bead-not-found'],
  emits: ['bead.created', 'convoy.created'],
})

export const listStranded = convoys.get('list-stranded', '/stranded', {
  summary: 'List work in convoys that nobody has',
  description: 'Open, unassigned members of open convoys; oldest first.',
  query: object({ ...BlockingQuery, ...PageQuery }),
  replies: { 200: listBody('ListBodyStrandedBead', StrandedBead) },
  problems: ['invalid-cursor'],
})

export const checkConvoys = convoys.post('check-convoys', '/check', {
  summary: 'Close all convoys that are complete',
  description:
    'What happens by itself when the last member is closed or removed, for convoys that were complete already. Never one that is empty or `owned`.',
  replies: { 200: ConvoySweep },
  emits: CLOSES,
})

export const getConvoy = convoy.get('get-convoy', '', {
  summary: 'Get a convoy with its members',
  description: 'Its members are the beads that it tracks, and its children.',
  query: object({ ...PageQuery }),
  replies: { 200: ConvoyView },
  replyHeaders: ['ETag'],
  problems: ['invalid-cursor'],
})

export const checkConvoy = convoy.get('check-convoy', '/check', {
  summary: 'Tell whether a convoy is complete',
  description: 'Says so and changes nothing; `POST /convoys/check` closes those that are.',
  replies: { 200: ConvoyCheck },
})

export const landConvoy = convoy.post('land-convoy', '/land', {
  summary: 'Land an owned convoy',
  description:
    'Closes a convoy that its owner keeps open. Refused with their names while members are not closed, and while a live molecule is about it, unless with `cancel`.',
  body: ConvoyLandRequest,
  bodyOptional: true,
  headers: ['If-Match'],
  replies: { 200: ConvoyLanding },
  replyHeaders: ['ETag'],
  problems: ['conflict-wrong-state', 'molecule-live'],
  emits: CLOSES,
})

export const convoyOperations = [
  listConvoys,
  createConvoy,
  listStranded,
  checkConvoys,
  getConvoy,
  change.patch('patch-convoy', '', {
    summary: 'Change a convoy',
    description: 'JSON Merge Patch: `null` removes a field, an absent one stays.',
    body: ConvoyPatchRequest,
    emits: ['bead.updated'],
  }),
  convoy.delete('delete-convoy', '', {
    summary: 'Delete a convoy',
    description: 'Only the convoy: its members stay. Refused with their names while others depend on it or track it.',
    headers: ['If-Match'],
    replies: { 200: DeletedConvoy },
    problems: ['still-referenced', 'conflict-wrong-state'],
    emits: ['bead.deleted'],
  }),
  checkConvoy,
  change.post('add-to-convoy', '/add', {
    summary: 'Add members to a convoy',
    description: 'All of them or none. One that is a member already is no failure.',
    body: ConvoyItemsRequest,
    problems: ['bead-not-found', 'conflict-wrong-state'],
    emits: ['bead.updated', 'convoy.updated'],
  }),
  change.post('remove-from-convoy', '/remove', {
    summary: 'Remove members from a convoy',
    description:
      'All of them or none; a child of the convoy is its child no more. Without its last open member the convoy is complete, and closes.',
    body: ConvoyItemsRequest,
    problems: ['bead-not-found'],
    emits: ['bead.updated', 'convoy.updated', ...CLOSES],
  }),
  change.post('close-convoy', '/close', {
    summary: 'Close a convoy',
    description:
      'Whatever the state of its members, which it leaves alone. Closed already: nothing happens. What a live molecule is about is closed by whoever works on one of its steps; others close it with `cancel`, which ends the molecule.',
    body: ConvoyCloseRequest,
    bodyOptional: true,
    problems: ['molecule-live'],
    emits: CLOSES,
  }),
  landConvoy,
] as const

// What the log of a city says about convoys (sheet 03 §§7, 12; decision 49).

const counted = {
  convoy_id: string(),
  title: string(),
  total: integer({ minimum: 0, description: 'Members.' }),
  closed: integer({ minimum: 0, description: 'Members that are closed.' }),
  owner: optional(string()),
  notify: optional(string({ description: 'Who is to be told when it is closed.' })),
}

export const ConvoyPayload = component('ConvoyPayload', counted)
export const ConvoyClosedPayload = component('ConvoyClosedPayload', { ...counted, reason: optional(string()) })
const ids = (description: string) => array(string(), { description })
export const ConvoyUpdatedPayload = component('ConvoyUpdatedPayload', {
  convoy_id: string(),
  added: ids('Members that came.'),
  removed: ids('Members that went.'),
})

const inLog = { log: 'city', emittedBy: 'convoys' } as const

export const CONVOY_EVENT_TYPES = {
  'convoy.created': { payload: ConvoyPayload, ...inLog, when: 'a convoy was created, whichever way' },
  'convoy.updated': { payload: ConvoyUpdatedPayload, ...inLog, when: 'members came or went, whichever way' },
  'convoy.closed': {
    payload: ConvoyClosedPayload,
    ...inLog,
    when: 'a convoy became closed: by itself, by a request, or landed',
  },
} as const
