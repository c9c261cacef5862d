/**
 * The event catalogue: every type that exists, its payload, who emits it (sheet 02 §2, decisions 12–14). A family adds
 * its own types here; everything else is a custom type, which clients may emit unless its prefix is reserved.
 */

import { RequestId, Timestamp } from './base/names.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  object,
  optional,
  type Schema,
  type Static,
  string,
} from './base/schema.ts'
import { BEAD_EVENT_TYPES } from './bead-events.ts'
import { CONVOY_EVENT_TYPES } from './convoy-events.ts'
import { RequestOperation } from './requests.ts'
import {
  SessionCreateSucceededPayload,
  SessionDeliveryPayload,
  SessionLifecyclePayload,
  SessionMessageSucceededPayload,
  SessionPendingClearedPayload,
  SessionPendingPayload,
  SessionStrandedPayload,
  SessionSubmitSucceededPayload,
  SessionUpdatedPayload,
  WaitPayload,
  WorkerOperationPayload,
} from './session-model.ts'
import { TokenPayload } from './tokens.ts'

/** Prefixes that only the service may emit, also for families still to come (decision 14). */
export const RESERVED_PREFIXES = [
  'request.',
  'city.',
  'supervisor.',
  'config.',
  'pack.',
  'rig.',
  'provider.',
  'agent.',
  'session.',
  'worker.',
  'bead.',
  'convoy.',
  'mail.',
  'molecule.',
  'formula.',
  'order.',
  'participant.',
  'transcript.',
  'adapter.',
  'extmsg.',
  'service.',
  'execution.',
  'nudge.',
  'wait.',
  'gate.',
  'work.',
  'need.',
  'usage.',
  'budget.',
  'token.',
] as const

export const EVENT_TYPE_PATTERN = '^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$'

export const NoPayload = component('NoPayload', {})

export const CityLifecyclePayload = component('CityLifecyclePayload', { name: string(), path: string() })

const cityResult = (id: string) => component(id, { request_id: RequestId, name: string(), path: string() })
export const CityCreateSucceededPayload = cityResult('CityCreateSucceededPayload')
export const CityUnregisterSucceededPayload = cityResult('CityUnregisterSucceededPayload')
export const CityStartSucceededPayload = cityResult('CityStartSucceededPayload')
export const CityRestartSucceededPayload = cityResult('CityRestartSucceededPayload')

export const RequestFailedPayload = component('RequestFailedPayload', {
  request_id: RequestId,
  operation: RequestOperation,
  error_code: string({ description: 'snake_case; `interrupted` where a crash made it impossible to go on.' }),
  error_message: string(),
  retrying: optional(boolean({ description: 'True: the city stays registered and is tried again.' })),
  retry_at: optional(Timestamp),
})
export type RequestFailedPayload = Static<typeof RequestFailedPayload>

export const CityStartFailedPayload = component('CityStartFailedPayload', {
  name: string(),
  error_code: string(),
  error_message: string(),
  attempt: integer({ minimum: 1 }),
  retry_at: optional(Timestamp),
})

export const CityStoppedPayload = component('CityStoppedPayload', {
  name: string(),
  path: string(),
  reason: choice(['stop', 'restart', 'unregister', 'directory_missing']),
})

export const SupervisorStartedPayload = component('SupervisorStartedPayload', {
  previous_exit: choice(['clean', 'crash', 'unknown']),
  version: string(),
  pid: integer(),
})

export const SupervisorShutdownPayload = component('SupervisorShutdownPayload', {
  source: choice(['signal']),
  signal: string(),
  mode: choice(['preserve_sessions']),
})

export const ConfigIssue = component('ConfigIssue', {
  file: string({ description: 'Relative to the city; `<pack>/<path>` in a pack.' }),
  line: integer({ minimum: 0, description: 'From 1; 0 for what stands in no file.' }),
  column: integer({ minimum: 0 }),
  key: string({ description: 'Dotted path of the key; empty for the file as a whole.' }),
  message: string(),
  hint: optional(string()),
})
export type ConfigIssue = Static<typeof ConfigIssue>

const CONFIG_SOURCES = ['start', 'watch', 'api', 'reload'] as const
const ConfigSource = choice(CONFIG_SOURCES, {
  description:
    'What led to it: the start of the city, a changed file, an edit over the API, or a reload that was asked for.',
})
const changedNames = array(string())

export const ConfigReloadedPayload = component('ConfigReloadedPayload', {
  revision: string(),
  previous_revision: string(),
  source: ConfigSource,
  changed: object(
    {
      agents: changedNames,
      rigs: changedNames,
      providers: changedNames,
      orders: changedNames,
      formulas: changedNames,
      packs: changedNames,
    },
    { description: 'Names of what was added, changed or removed.' },
  ),
  restarted: array(string(), {
    description: 'Sessions that run otherwise than it says now: they are drained and start anew (`config-drift`).',
  }),
  warnings: array(ConfigIssue, { maxItems: 100 }),
})

export const ConfigRejectedPayload = component('ConfigRejectedPayload', {
  attempted_revision: string({ description: 'Hash of the files that were refused.' }),
  active_revision: string({ description: 'What goes on being in force.' }),
  source: ConfigSource,
  issues: array(ConfigIssue, { maxItems: 100 }),
})

export const ConfigReloadSucceededPayload = component('ConfigReloadSucceededPayload', {
  request_id: RequestId,
  outcome: choice(['applied', 'no_change']),
  revision: string(),
  warnings: array(ConfigIssue, { maxItems: 100 }),
})

const packFields = {
  name: string({ description: 'Binding; from the outermost inwards, joined by dots.' }),
  scope: string({ description: '`city`, `rig:<name>` or `default-rig`.' }),
  source: string(),
  version: optional(string({ description: 'Tag, or `sha:<commit>`; absent where the pack is not from git.' })),
  commit: optional(string()),
} as const
const PackPayload = component('PackPayload', packFields)
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

const AgentPayload = component('AgentPayload', {
  agent: string({ description: 'Qualified name.' }),
  changed: array(string(), { description: 'Fields of its definition; empty where it came or went.' }),
})

interface EventTypeEntry {
  readonly payload: Schema
  /** Whose log it is in (decision 12). */
  readonly log: 'supervisor' | 'city'
  readonly emittedBy: string
  readonly when: string
}

export const EVENT_TYPES = {
  'supervisor.started': {
    payload: SupervisorStartedPayload,
    log: 'supervisor',
    emittedBy: 'supervisor',
    when: 'once per start, before anything else',
  },
  'supervisor.shutdown_requested': {
    payload: SupervisorShutdownPayload,
    log: 'supervisor',
    emittedBy: 'supervisor',
    when: 'on SIGINT, SIGTERM or SIGHUP, before cities end',
  },
  'city.created': {
    payload: CityLifecyclePayload,
    log: 'supervisor',
    emittedBy: 'create and adopt',
    when: 'with the registry row, before the 202',
  },
  'city.unregister_requested': {
    payload: CityLifecyclePayload,
    log: 'supervisor',
    emittedBy: 'unregister',
    when: 'before the registry row goes, before the 202',
  },
  'request.result.city.create': {
    payload: CityCreateSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running',
  },
  'request.result.city.unregister': {
    payload: CityUnregisterSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: "the city's controller has stopped",
  },
  'request.result.city.start': {
    payload: CityStartSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running',
  },
  'request.result.city.restart': {
    payload: CityRestartSucceededPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'the city is running again',
  },
  'request.failed': {
    payload: RequestFailedPayload,
    log: 'supervisor',
    emittedBy: 'reconciler',
    when: 'an accepted request failed; match payload.request_id',
  },
  'city.started': {
    payload: CityLifecyclePayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'the city became running',
  },
  'city.start_failed': {
    payload: CityStartFailedPayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'an attempt to start the city failed',
  },
  'city.stopped': {
    payload: CityStoppedPayload,
    log: 'city',
    emittedBy: 'reconciler',
    when: 'the city stopped running',
  },
  'config.reloaded': {
    payload: ConfigReloadedPayload,
    log: 'city',
    emittedBy: 'configuration',
    when: 'a changed configuration is in force',
  },
  'config.rejected': {
    payload: ConfigRejectedPayload,
    log: 'city',
    emittedBy: 'configuration',
    when: 'files that are not valid were refused; once per state',
  },
  'request.result.config.reload': {
    payload: ConfigReloadSucceededPayload,
    log: 'city',
    emittedBy: 'configuration',
    when: 'a reload that was asked for is done',
  },
  'pack.added': {
    payload: PackPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'an import was added; with the files that say so',
  },
  'pack.removed': {
    payload: PackPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'an import was removed; with the files that say so',
  },
  'pack.upgraded': {
    payload: PackUpgradedPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'an upgrade pinned another commit; once per source',
  },
  'request.result.pack.add': {
    payload: PackAddSucceededPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'the import is in the files and in force',
  },
  'request.result.pack.install': {
    payload: PackInstallSucceededPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'everything imported is pinned and in the cache',
  },
  'request.result.pack.upgrade': {
    payload: PackUpgradeSucceededPayload,
    log: 'city',
    emittedBy: 'packs',
    when: 'the lock has the versions chosen anew',
  },
  'rig.created': { payload: RigPayload, log: 'city', emittedBy: 'rigs', when: 'a rig was added' },
  'rig.updated': {
    payload: RigPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'settings of a rig were changed over the API',
  },
  'rig.deleted': {
    payload: RigPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'a rig was removed; its directory stays',
  },
  'rig.suspended': {
    payload: RigPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'the live override of a rig became suspended',
  },
  'rig.resumed': {
    payload: RigPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'a rig is no longer suspended by its override',
  },
  'rig.provision.progress': {
    payload: RigProvisionProgressPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'a step of an accepted rig.create begins or has something to say',
  },
  'request.result.rig.create': {
    payload: RigCreateSucceededPayload,
    log: 'city',
    emittedBy: 'rigs',
    when: 'the rig is cloned and configured',
  },
  'city.suspended': {
    payload: NoPayload,
    log: 'city',
    emittedBy: 'PATCH /v0/city/{cityName}',
    when: 'the city became suspended',
  },
  'city.resumed': {
    payload: NoPayload,
    log: 'city',
    emittedBy: 'PATCH /v0/city/{cityName}',
    when: 'the city is no longer suspended',
  },
  ...BEAD_EVENT_TYPES,
  ...CONVOY_EVENT_TYPES,
  'session.created': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a session was accepted',
  },
  'session.waking': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'something wants it to run: it waits for its turn to start',
  },
  'session.starting': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its process is being started',
  },
  'session.woke': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its process is ready',
  },
  'session.stopped': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its process ended in an orderly way',
  },
  'session.asleep': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it sleeps: nothing wants it to run',
  },
  'session.crashed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its process ended unexpectedly; `message` has its last screen',
  },
  'session.start_failed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a start did not succeed',
  },
  'session.killed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its processes were ended by force, on request',
  },
  'session.draining': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it was asked to finish',
  },
  'session.undrained': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a drain was taken back',
  },
  'session.quarantined': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it crashed too often; it is tried again later',
  },
  'session.suspended': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it was stopped until a person wakes it',
  },
  'session.idle_killed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it was idle too long and starts afresh',
  },
  'session.max_age_killed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it was too old and starts afresh',
  },
  'session.reset': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it starts again with a fresh conversation',
  },
  'session.closed': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it ended for good',
  },
  'session.deleted': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its record was deleted',
  },
  'session.unknown_state': {
    payload: SessionLifecyclePayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its process could not be observed for too long',
  },
  'session.updated': {
    payload: SessionUpdatedPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'its title, alias, options or other fields changed',
  },
  'session.pending': {
    payload: SessionPendingPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it waits for an answer',
  },
  'session.pending_cleared': {
    payload: SessionPendingClearedPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it no longer waits for an answer',
  },
  'session.delivery': {
    payload: SessionDeliveryPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a delivery changed its state',
  },
  'session.stranded': {
    payload: SessionStrandedPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'it ended while it held work',
  },
  'request.result.session.create': {
    payload: SessionCreateSucceededPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'the session can take commands',
  },
  'request.result.session.message': {
    payload: SessionMessageSucceededPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'the message was typed, or is queued',
  },
  'request.result.session.submit': {
    payload: SessionSubmitSucceededPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'the message was typed, or is queued',
  },
  'worker.operation': {
    payload: WorkerOperationPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a call of a runtime ended',
  },
  'wait.created': {
    payload: WaitPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'a session waits for beads',
  },
  'wait.ready': {
    payload: WaitPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'what it waited for is closed',
  },
  'wait.canceled': {
    payload: WaitPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'the wait was cancelled, or its session is gone',
  },
  'wait.expired': {
    payload: WaitPayload,
    log: 'city',
    emittedBy: 'sessions',
    when: 'the wait took too long',
  },
  'token.created': { payload: TokenPayload, log: 'supervisor', emittedBy: 'tokens', when: 'a token was made' },
  'token.deleted': { payload: TokenPayload, log: 'supervisor', emittedBy: 'tokens', when: 'a token was revoked' },
  'agent.created': { payload: AgentPayload, log: 'city', emittedBy: 'agents', when: 'an agent was defined' },
  'agent.updated': {
    payload: AgentPayload,
    log: 'city',
    emittedBy: 'agents',
    when: 'the definition of an agent changed',
  },
  'agent.deleted': {
    payload: AgentPayload,
    log: 'city',
    emittedBy: 'agents',
    when: 'the definition of an agent is gone',
  },
  'agent.suspended': { payload: AgentPayload, log: 'city', emittedBy: 'agents', when: 'an agent became suspended' },
  'agent.resumed': { payload: AgentPayload, log: 'city', emittedBy: 'agents', when: 'an agent is no longer suspended' },
} as const satisfies Record<string, EventTypeEntry>

export type EventType = keyof typeof EVENT_TYPES
export type PayloadOf<T extends EventType> = Static<(typeof EVENT_TYPES)[T]['payload']>
export const EVENT_TYPE_NAMES = Object.keys(EVENT_TYPES).filter((name): name is EventType => name in EVENT_TYPES)

/** True for a type that only the service may emit. */
export function isReservedType(type: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => type.startsWith(prefix) || type === prefix.slice(0, -1))
}
