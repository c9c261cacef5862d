/** Packs of a city: what it imports, from where, pinned to what (sheet 07 §§5, 7; decisions 35, 36). */

import { AsyncAcceptedResponse } from './base/accepted.ts'
import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityNameParam, durationSchema, RequestId, Revision, Timestamp } from './base/names.ts'
import { listBody, listFields } from './base/paging.ts'
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

export const PACK_NAME_PATTERN = '^[a-z0-9][a-z0-9_-]{0,63}$'
/** What a commit is named by. */
const COMMIT_PATTERN = '^[0-9a-f]{40,64}$'
/** Paths of their own, so no import can have these names. */
export const RESERVED_PACK_NAMES = ['install', 'upgrade', 'check'] as const
const PACK_KINDS = ['builtin', 'local', 'git'] as const
const PACK_STATES = ['installed', 'missing', 'stale', 'drifted'] as const

const PackScope = string({
  pattern: '^(city|default-rig|rig:[A-Za-z0-9][A-Za-z0-9._-]{0,63})$',
  description: '`city`, `rig:<name>`, or `default-rig` for what every later rig imports.',
})

const PackPin = component(
  'PackPin',
  {
    version: string({ description: 'Tag, or `sha:<commit>`.' }),
    commit: string(),
    content_hash: string({ description: '`sha256:` over the whole checkout.' }),
    subpath: string({ description: 'Directory of the pack in its repository; empty for the whole.' }),
    fetched: Timestamp,
  },
  { description: 'Its entry in `packs.lock`.' },
)

const names = array(string())
const PackProvides = component(
  'PackProvides',
  {
    agents: names,
    formulas: names,
    orders: names,
    skills: names,
    mcp: names,
    commands: names,
    doctor: names,
    overlays: array(string(), { description: 'Files that are laid into work directories; at most 500.' }),
  },
  {
    description: 'Names of what it brings, by the conventions of its directories.',
  },
)

const PackRun = component(
  'PackRun',
  {
    file: string({ description: 'Relative to the pack.' }),
    key: string({ description: 'Dotted path in the file; empty for an executable file.' }),
    command: string({ description: 'At most 500 characters.' }),
  },
  { description: 'Something that a pack would have started: a command in its files, or an executable file.' },
)
export type PackRun = Static<typeof PackRun>

export const Pack = component('Pack', {
  name: string({ description: 'Binding: what the importer calls it.' }),
  scope: PackScope,
  kind: choice(PACK_KINDS),
  source: string(),
  version: optional(string({ description: 'Constraint, as declared.' })),
  file: string({ description: 'File of the city that declares it.' }),
  pin: optional(PackPin),
  state: choice(PACK_STATES, {
    description:
      '`missing`: not in the lock or the cache; `stale`: the lock does not fit the constraint; `drifted`: the cached content was changed, as a check, an install or the start of the city has found.',
  }),
  provides: PackProvides,
  trusted: boolean({
    description:
      'False: what it and its imports bring is shown and not started, until their commits are trusted. Packs of the city and built-in ones are.',
  }),
  runs: optional(array(PackRun, { description: 'What it and the packs it imports would run. Of single reads only.' })),
  revision: Revision,
})
export type Pack = Static<typeof Pack>

export const PackAddRequest = component('PackAddRequest', {
  source: string({
    minLength: 1,
    maxLength: 2048,
    examples: ['./packs/review'],
    description:
      '`https://`, `http://`, `ssh://` or `git@host:path` with the directory after `//`, `github.com/o/r`, a path inside the city, or `builtin:<name>`.',
  }),
  name: optional(
    string({
      pattern: PACK_NAME_PATTERN,
      description: 'Binding; from the source where absent. Not `install`, `upgrade` or `check`.',
    }),
  ),
  version: optional(
    string({
      minLength: 1,
      maxLength: 200,
      description: '`^1.4`, `~1.4`, `>=1,<2`, an exact one or `sha:<commit>`; the highest release where absent.',
    }),
  ),
  scope: optional(PackScope),
  trust: optional(
    boolean({
      description: 'What it brings, and what that imports, may be started: as `trust-pack` of what is fetched.',
    }),
  ),
})
export type PackAddRequest = Static<typeof PackAddRequest>

const PackUpgradeRequest = component('PackUpgradeRequest', {
  names: optional(
    array(string({ minLength: 1 }), {
      minItems: 1,
      maxItems: 1000,
      description: 'Imports to choose anew; all where absent.',
    }),
  ),
})

const PackTrustRequest = component('PackTrustRequest', {
  commit: string({
    pattern: COMMIT_PATTERN,
    description: 'The commit that was looked at: `pin.commit` of the pack.',
    examples: ['0123456789abcdef0123456789abcdef01234567'],
  }),
})

const DeletedPack = component('DeletedPack', {
  status: literal('deleted'),
  name: string(),
  scope: PackScope,
  source: string(),
  revision: string({ description: 'Of the configuration without it.' }),
})

const PACK_ISSUE_CODES = [
  'invalid-file',
  'invalid-source',
  'blocked-host',
  'invalid-lockfile',
  'missing-lockfile',
  'missing-lock-entry',
  'lock-constraint-mismatch',
  'stale-lock-entry',
  'conflicting-constraints',
  'missing-cache',
  'cache-drifted',
  'missing-cached-pack',
  'missing-local-pack',
  'needs-newer',
  'foreign-file',
] as const
export const PackIssue = component('PackIssue', {
  code: choice(PACK_ISSUE_CODES),
  severity: choice(['error', 'warning']),
  name: optional(string({ description: 'Bindings from the outermost inwards, joined by dots.' })),
  scope: optional(PackScope),
  message: string(),
  hint: optional(string()),
})
export type PackIssue = Static<typeof PackIssue>

const PackRelease = component('PackRelease', { version: string(), commit: string() })

/** Of an import: where in files it stands. */
const declared = {
  source: string(),
  version: optional(string({ description: 'Constraint, as declared.' })),
  file: string({
    description: 'File that says so: of the city, or of the pack whose path or source stands before it.',
  }),
  line: integer({ minimum: 0 }),
} as const

const PackStatus = component(
  'PackStatus',
  {
    name: string({ description: 'Bindings from the outermost inwards, joined by dots.' }),
    scope: PackScope,
    kind: choice(PACK_KINDS),
    ...declared,
    pin: optional(PackPin),
    state: choice(PACK_STATES),
    trusted: boolean(),
    bytes: optional(integer({ minimum: 0, description: 'Of its checkout in the cache, shared by all who import it.' })),
    upgrade: optional(described(PackRelease, 'The highest release that fits, where it is not what is pinned.')),
    newest: optional(described(PackRelease, 'The highest release of all, where it does not fit.')),
    remote_error: optional(string({ description: 'Why its repository could not be asked.' })),
  },
  { description: 'An import of the city, or of a pack that it imports.' },
)
export type PackStatus = Static<typeof PackStatus>

const PackCheckRequest = component('PackCheckRequest', {
  remote: optional(boolean({ description: 'Asks the repositories for newer releases; for 20 seconds at most.' })),
})

export const PackCheckResult = component('PackCheckResult', {
  ok: boolean({ description: 'True: no errors; there may be warnings.' }),
  issues: array(PackIssue),
  packs: array(PackStatus, { description: 'Every import, those of packs too.' }),
})

const PackReason = component(
  'PackReason',
  {
    label: string({ description: 'Its source, or its path in the city.' }),
    kind: choice(PACK_KINDS),
    title: optional(string({ description: 'What it calls itself.' })),
    pin: optional(PackPin),
    state: choice(PACK_STATES),
    trusted: boolean(),
    ways: array(
      object({
        scope: PackScope,
        steps: array(object({ name: string({ description: 'Binding.' }), ...declared })),
      }),
      { description: 'From the city down, one import after the other; at most 100.' },
    ),
    provides: PackProvides,
    runs: array(PackRun, { description: 'What it would run.' }),
  },
  { description: 'A pack, and what it is there for.' },
)
export type PackReason = Static<typeof PackReason>

const PackWhy = component('PackWhy', {
  name: string(),
  packs: array(PackReason, { description: 'Of several packs of the name each.' }),
})

const CachedPack = component(
  'CachedPack',
  {
    id: string({ description: 'Directory in the cache.' }),
    repository: optional(string({ description: 'Absent of what an earlier version has fetched.' })),
    commit: optional(string()),
    bytes: integer({ minimum: 0 }),
    last_used_at: { ...Timestamp, description: 'When a city was last loaded with it; to within an hour.' },
    cities: array(string(), { description: 'Cities whose lock or configuration in force needs it.' }),
  },
  { description: 'A checkout in the cache of this machine.' },
)
export type CachedPack = Static<typeof CachedPack>

const PackPruneRequest = component('PackPruneRequest', {
  dry_run: optional(boolean({ description: 'Says what would go, and removes nothing.' })),
  max_age: optional(
    durationSchema('What no city needs goes where it was last used longer ago than this; 7d where absent.'),
  ),
  max_bytes: optional(
    integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Younger ones go too, those first that were used longest ago, until the cache has no more than this.',
    }),
  ),
})
export type PackPruneRequest = Static<typeof PackPruneRequest>

const PackPruneResult = component('PackPruneResult', {
  dry_run: boolean(),
  removed: array(CachedPack),
  removed_bytes: integer({ minimum: 0 }),
  kept: integer({ minimum: 0 }),
  kept_bytes: integer({ minimum: 0 }),
})
export type PackCheckResult = Static<typeof PackCheckResult>

const FAMILY = { name: 'Packs', about: 'Bundles of agents, formulas and other configuration that a city imports.' }
const packs = family(
  FAMILY,
  '/v0/city/{cityName}/packs',
  {
    cityName: CityNameParam,
    name: string({ minLength: 1, description: 'Binding of the pack.', examples: ['core'] }),
  },
  { city: 'mendable' },
)
const request = packs.with({ headers: ['Idempotency-Key'], replies: { 202: AsyncAcceptedResponse } })
const pack = packs.at('/{name}', {
  query: object({
    scope: optional(
      string({
        minLength: 1,
        description: 'Where several import under one name; the city where absent, else the only one.',
      }),
    ),
  }),
  problems: ['pack-not-found', 'ambiguous-pack'],
})

const cache = family(FAMILY, '/v0/pack-cache', {}, {})

const packFields = {
  name: string({ description: 'Binding; from the outermost inwards, joined by dots.' }),
  scope: string({ description: '`city`, `rig:<name>` or `default-rig`.' }),
  source: string(),
  version: optional(string({ description: 'Tag, or `sha:<commit>`; absent where the pack is not from git.' })),
  commit: optional(string()),
} as const

const PackPayload = component('PackPayload', packFields)

const PackTrustedPayload = component('PackTrustedPayload', { ...packFields, commit: string() })

const PackUpgradedPayload = component('PackUpgradedPayload', {
  ...packFields,
  previous_version: string(),
  previous_commit: string(),
})

const PackAddSucceededPayload = component('PackAddSucceededPayload', {
  request_id: RequestId,
  ...packFields,
  revision: string({ description: 'Of the configuration with it.' }),
})

const pinned = array(object({ source: string(), version: string(), commit: string() }))

const PackInstallSucceededPayload = component('PackInstallSucceededPayload', {
  request_id: RequestId,
  installed: pinned,
  removed: array(string(), { description: 'Sources that nobody imports any more.' }),
  total: integer({ minimum: 0, description: 'Packs from git that the city is made of.' }),
  revision: string(),
})

const PackUpgradeSucceededPayload = component('PackUpgradeSucceededPayload', {
  request_id: RequestId,
  upgraded: array(
    object({
      source: string(),
      version: string(),
      commit: string(),
      previous_version: string(),
      previous_commit: string(),
    }),
  ),
  revision: string(),
})

const inLog = { log: 'city', emittedBy: 'packs' } as const

export const PACK_EVENT_TYPES = {
  'pack.added': { payload: PackPayload, ...inLog, when: 'an import was added; with the files that say so' },
  'pack.trusted': {
    payload: PackTrustedPayload,
    ...inLog,
    when: 'somebody let a pack start what it brings; also when it was added so',
  },
  'pack.removed': { payload: PackPayload, ...inLog, when: 'an import was removed; with the files that say so' },
  'pack.upgraded': {
    payload: PackUpgradedPayload,
    ...inLog,
    when: 'an upgrade pinned another commit; once per source',
  },
  'request.result.pack.add': {
    payload: PackAddSucceededPayload,
    subject: 'binding of the import',
    ...inLog,
    when: 'the import is in the files and in force',
  },
  'request.result.pack.install': {
    payload: PackInstallSucceededPayload,
    subject: 'name of the city',
    ...inLog,
    when: 'everything imported is pinned and in the cache',
  },
  'request.result.pack.upgrade': {
    payload: PackUpgradeSucceededPayload,
    subject: 'name of the city',
    ...inLog,
    when: 'the lock has the versions chosen anew',
  },
} as const satisfies EventTypes

export const packOperations = [
  packs.get('list-packs', '', {
    summary: 'List the imports of a city',
    description: 'What the files of the city and its rigs import themselves, by name; not what packs import in turn.',
    replies: { 200: listBody('ListBodyPack', Pack) },
    replyHeaders: ['X-SVC-Index', 'ETag'],
  }),
  pack.get('get-pack', '', {
    summary: 'Get an import',
    description: 'As it is in the list: what it is imported from, and whether what is installed fits the lock file.',
    replies: { 200: Pack },
    replyHeaders: ['X-SVC-Index', 'ETag'],
  }),
  request.post('add-pack', '', {
    summary: 'Import a pack',
    description:
      'Resolves and fetches the pack and all that it imports, then changes the files of the city at once or not at all. Ends in `request.result.pack.add` or `request.failed` on the city’s stream.',
    body: PackAddRequest,
    problems: ['pack-exists'],
    accepts: 'pack.add',
    emits: ['pack.added', 'config.reloaded'],
  }),
  pack.post('trust-pack', '/trust', {
    summary: 'Let a pack start what it brings',
    description:
      'Of a pack from git, and of those that it imports, at the commits that are pinned now: until then their agents, commands, hooks and services are off. Another commit is asked about again unless it would run the same. Kept by the supervisor, in no file of the city. What is not from git is trusted, and nothing changes.',
    body: PackTrustRequest,
    replies: { 200: Pack },
    replyHeaders: ['X-SVC-Index', 'ETag'],
    problems: ['pack-changed'],
    emits: ['pack.trusted', 'config.reloaded'],
  }),
  pack.delete('remove-pack', '', {
    summary: 'Remove an import',
    description:
      'Refused while something in the files of the city names what it brings. Of two files with the same import only the stronger one’s goes.',
    headers: ['If-Match'],
    replies: { 200: DeletedPack },
    problems: ['still-referenced', 'conflict-config', 'invalid-config'],
    emits: ['pack.removed', 'config.reloaded'],
  }),
  request.post('install-packs', '/install', {
    summary: 'Install what is imported',
    description:
      'Pins what is not pinned, fetches what is missing or changed, and writes the lock. Pins that fit stay. Also repairs a configuration that is refused for packs that are not there.',
    accepts: 'pack.install',
    emits: ['config.reloaded'],
  }),
  request.post('upgrade-packs', '/upgrade', {
    summary: 'Choose versions anew',
    description: 'Within the constraints, for all packs from git or for those that are named.',
    body: PackUpgradeRequest,
    bodyOptional: true,
    problems: ['pack-not-found'],
    accepts: 'pack.upgrade',
    emits: ['pack.upgraded', 'config.reloaded'],
  }),
  packs.post('check-packs', '/check', {
    summary: 'Compare imports, lock and cache',
    description:
      'Every import with its constraint, the commit it is pinned to and what has become of it, and what is wrong. Changes nothing, and uses the network only where `remote` is asked for.',
    body: PackCheckRequest,
    bodyOptional: true,
    replies: { 200: PackCheckResult },
  }),
  packs.get('explain-pack', '/{name}/why', {
    summary: 'Tell why a pack is there',
    description:
      'The imports that lead to it, from the city down: what each asks for, and in which file and line. The name is that of an import at any depth, whole or its last part, or what the pack calls itself.',
    replies: { 200: PackWhy },
    replyHeaders: ['X-SVC-Index'],
    problems: ['pack-not-found'],
  }),
  cache.get('list-pack-cache', '', {
    summary: 'List the cached packs',
    description: 'Checkouts of packs from git, which all cities of this machine share: largest first.',
    replies: { 200: component('ListBodyCachedPack', { ...listFields(CachedPack), bytes: integer({ minimum: 0 }) }) },
  }),
  cache.post('prune-pack-cache', '/prune', {
    summary: 'Remove cached packs that nobody needs',
    description:
      'What the lock or the configuration in force of a registered city needs stays, and what an install is at work on. A lock that cannot be read is refused: nobody can tell what it needs.',
    body: PackPruneRequest,
    bodyOptional: true,
    replies: { 200: PackPruneResult },
    problems: ['unreadable-lock'],
  }),
] as const
