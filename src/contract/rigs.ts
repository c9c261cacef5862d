/** Rigs: project directories that agents of a city work in (sheet 07 §§2.5, 8.5; decision 32). */

import { AsyncAcceptedResponse } from './base/accepted.ts'
import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, RequestId, Revision, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody } from './base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  object,
  optional,
  type Static,
  string,
} from './base/schema.ts'
import { RIG_FIELDS, RIG_NAME } from './config-schema.ts'

const RIG_ACTIONS = ['suspend', 'resume', 'restart'] as const

const count = (description: string) => integer({ minimum: 0, description })
const { path: _path, prefix: _prefix, ...settings } = RIG_FIELDS

export const RigGit = component('RigGit', {
  branch: string({ description: 'Empty where no branch is checked out.' }),
  clean: boolean(),
  changed_files: count('Changed, added, removed and untracked.'),
  ahead: count('Commits that the upstream branch lacks; 0 without one.'),
  behind: count('Commits that only the upstream branch has, as last fetched; 0 without one.'),
  observed_at: Timestamp,
})
export type RigGit = Static<typeof RigGit>

export const RigInfo = component('RigInfo', {
  name: string(),
  path: optional(
    string({
      description: 'Absolute. Absent: this machine has no directory for it, and its agents do not start.',
    }),
  ),
  suspended: boolean({
    description:
      'The live override, else `suspended_on_start`, else true where it has agents and all of them are suspended.',
  }),
  prefix: string({ description: 'Of the ids of its beads.' }),
  ...settings,
  suspended_on_start: boolean(),
  agent_count: count('Agents of the rig.'),
  running_count: count('Sessions of its agents that run.'),
  last_activity: optional(Timestamp),
  git: optional(RigGit),
  file: optional(string({ description: 'File that declares it.' })),
  line: optional(integer({ minimum: 1 })),
  revision: Revision,
})
export type RigInfo = Static<typeof RigInfo>

const PATH =
  'Relative: inside the city, made where it is missing. Absolute: any directory that exists; outside the city it is kept in `.svc/site.toml`.'

export const RigCreateRequest = component('RigCreateRequest', {
  name: string({
    pattern: RIG_NAME,
    maxLength: 64,
    description: 'Letters, digits, `.`, `_` and `-`, at most 64, not only digits.',
    examples: ['shop'],
  }),
  path: optional(
    string({
      minLength: 1,
      maxLength: 4096,
      description: `${PATH} Required without \`git_url\`.`,
      examples: ['rigs/shop'],
    }),
  ),
  git_url: optional(
    string({
      minLength: 1,
      maxLength: 2048,
      description: 'Repository to clone into `rigs/<name>`; the answer is then a 202.',
    }),
  ),
  prefix: RIG_FIELDS.prefix,
  ...settings,
})
export type RigCreateRequest = Static<typeof RigCreateRequest>

export const RigPatchRequest = mergePatchBody(
  'RigPatchRequest',
  {
    ...RIG_FIELDS,
    path: optional(string({ minLength: 1, maxLength: 4096, description: PATH })),
    suspended: optional(boolean({ description: 'The live override, as the actions set it; null: as the files say.' })),
  },
  'JSON Merge Patch: null unsets a field, lists replace, maps merge.',
)

export const DeletedRig = component('DeletedRig', {
  status: literal('deleted'),
  name: string(),
  removed: array(string(), { description: 'What went with it, with `cascade`: `<kind> <name>`.' }),
  revision: string({ description: 'Of the configuration without it.' }),
})

const rigs = family(
  { name: 'Rigs', about: 'Project directories inside a city.' },
  '/v0/city/{cityName}/rigs',
  {
    cityName: CityNameParam,
    name: string({ minLength: 1, description: 'Name of the rig.', examples: ['shop'] }),
    action: choice(RIG_ACTIONS, { description: 'What to do.', examples: ['suspend'] }),
  },
  { replyHeaders: ['X-SVC-Index', 'ETag'] },
)
const rig = rigs.at('/{name}', { problems: ['rig-not-found'] })
const change = rig.with({ headers: ['If-Match'] })
const git = optional(
  boolean({
    description: 'With facts about the repository, as last observed; they are looked at again in the background.',
  }),
)

export const listRigs = rigs.get('list-rigs', '', {
  summary: 'List rigs',
  description: 'By name. With `index` it waits for a change of the configuration or of a suspension.',
  query: object({ ...BlockingQuery, git }),
  replies: { 200: listBody('ListBodyRigInfo', RigInfo) },
})

export const getRig = rig.get('get-rig', '', {
  summary: 'Get a rig',
  description: 'Its definition, patches included, and facts about its directory with `observed_at`.',
  query: object({ git }),
  replies: { 200: RigInfo },
})

export const patchRig = change.patch('patch-rig', '', {
  summary: 'Change a rig',
  description:
    'JSON Merge Patch: `null` removes a field, an absent one stays. Written to the files of the city and applied at once. A rig that has beads keeps its prefix.',
  body: RigPatchRequest,
  replies: { 200: RigInfo },
  problems: ['still-referenced', 'conflict-config', 'invalid-config'],
  emits: ['rig.updated', 'rig.suspended', 'rig.resumed', 'config.reloaded'],
})

export const RigPayload = component('RigPayload', {
  rig: string(),
  changed: array(string(), { description: 'Fields that differ; empty where the rig came or went.' }),
})

export const RIG_PROVISION_STEPS = ['clone', 'packs', 'config'] as const

export const RigProvisionProgressPayload = component('RigProvisionProgressPayload', {
  request_id: RequestId,
  rig: string(),
  step: choice(RIG_PROVISION_STEPS),
  detail: optional(string()),
  warn: optional(boolean({ description: 'True: something to look at, but it goes on.' })),
})

export const RigCreateSucceededPayload = component('RigCreateSucceededPayload', {
  request_id: RequestId,
  rig: string(),
  prefix: string(),
  default_branch: optional(string()),
})

const inLog = { log: 'city', emittedBy: 'rigs' } as const

export const RIG_EVENT_TYPES = {
  'rig.created': { payload: RigPayload, ...inLog, when: 'a rig was added' },
  'rig.updated': { payload: RigPayload, ...inLog, when: 'settings of a rig were changed over the API' },
  'rig.deleted': { payload: RigPayload, ...inLog, when: 'a rig was removed; its directory stays' },
  'rig.suspended': { payload: RigPayload, ...inLog, when: 'the live override of a rig became suspended' },
  'rig.resumed': { payload: RigPayload, ...inLog, when: 'a rig is no longer suspended by its override' },
  'rig.provision.progress': {
    payload: RigProvisionProgressPayload,
    ...inLog,
    when: 'a step of an accepted rig.create begins or has something to say',
  },
  'request.result.rig.create': {
    payload: RigCreateSucceededPayload,
    ...inLog,
    when: 'the rig is cloned and configured',
  },
} as const satisfies EventTypes

export const rigOperations = [
  listRigs,
  rigs.post('create-rig', '', {
    summary: 'Add a rig',
    description:
      'Adds `[[rigs]]` with the imports of `[defaults.rig.imports]`. With `git_url` the repository is cloned first: 202, then exactly one of `request.result.rig.create` and `request.failed` in the log of the city.',
    body: RigCreateRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    replies: { 201: RigInfo, 202: AsyncAcceptedResponse },
    problems: ['name-taken', 'operation-in-progress', 'conflict-config', 'invalid-config'],
    accepts: 'rig.create',
    emits: ['rig.created', 'config.reloaded', 'rig.provision.progress'],
  }),
  getRig,
  patchRig,
  change.delete('delete-rig', '', {
    summary: 'Remove a rig',
    description:
      'Its directory stays, and so do its beads. Refused with their names while agents, patches or others refer to it, or beads of it are not closed.',
    query: object({
      cascade: optional(
        boolean({
          description: 'Remove what refers to it too: its agents, patches, named sessions and overrides of orders.',
        }),
      ),
    }),
    replies: { 200: DeletedRig },
    problems: ['still-referenced', 'conflict-config', 'invalid-config'],
    emits: ['rig.deleted', 'config.reloaded'],
  }),
  change.post('act-on-rig', '/{action}', {
    summary: 'Suspend, resume or restart a rig',
    description:
      '`suspend` and `resume` override what the files say, until the other one or until `PATCH` with `suspended: null`. `restart` ends the sessions of its agents, which start again. Answers the rig; 504 names the sessions that could not be ended.',
    replies: { 200: RigInfo },
    problems: ['gateway-timeout'],
    emits: ['rig.suspended', 'rig.resumed'],
  }),
] as const
