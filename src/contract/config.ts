/** Configuration of a city: read, explain, validate, reload, edit its files, preview prompts (sheet 07 §§6, 8; decisions 30–41). */

import { AsyncAcceptedResponse } from './base/accepted.ts'
import type { EventTypes } from './base/event-type.ts'
import { family, qualified } from './base/family.ts'
import { ConfigIssue } from './base/issue.ts'
import { CityNameParam, JsonObject, QualifiedName, RequestId, Revision } from './base/names.ts'
import { listBody } from './base/paging.ts'
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
  optional,
  raw,
  record,
  type Static,
  string,
  union,
} from './base/schema.ts'
import { CityConfigStatus } from './cities.ts'

const texts = array(string())

const ConfigWorkspace = object({
  name: string({ description: 'In force.' }),
  prefix: string({ description: 'Of the ids of its work items.' }),
  declared_name: optional(string({ description: '`[workspace] name`, where the files say one.' })),
  declared_prefix: optional(string()),
  provider: optional(string()),
  suspended: boolean(),
  session_template: optional(string()),
  max_active_sessions: optional(integer({ minimum: -1 })),
})

const ConfigAgent = object({
  name: string({ description: '`[<binding>.]<name>`.' }),
  dir: string({ description: 'Its rig; empty for the city.' }),
  identity: string({ description: '`[<rig>/][<binding>.]<name>`.' }),
  provider: string(),
  is_pool: boolean({ description: 'May run more than one session.' }),
  scope: optional(choice(['city', 'rig'])),
  suspended: boolean(),
  origin: string({ description: 'What declares it: a file of the city, or `pack:<binding>`.' }),
})

const ConfigRig = object({
  name: string(),
  path: optional(string({ description: 'Absent where this machine has no directory for it.' })),
  prefix: string(),
  suspended: boolean(),
})

const ConfigProvider = object({
  display_name: optional(string()),
  command: optional(string()),
  acp_command: optional(string()),
  args: optional(texts),
  acp_args: optional(texts),
  prompt_mode: optional(string()),
  prompt_flag: optional(string()),
  ready_delay_ms: optional(integer({ minimum: 0 })),
  env: optional(record(string(), { description: 'Values are masked.' })),
})

const { revision: _revision, ...StatusFields } = CityConfigStatus.properties

/** The origin of a value, weakest first. */
export const CONFIG_LAYERS = [
  'default',
  'builtin',
  'pack',
  'root_pack',
  'city',
  'fragment',
  'site',
  'pack_default',
  'city_default',
  'pack_patch',
  'city_patch',
  'rig_patch',
] as const

export const EffectiveConfigBody = component('EffectiveConfigBody', {
  view: literal('effective'),
  revision: Revision,
  ...StatusFields,
  pending_revision: optional(string({ description: 'Hash of the files on disk that were refused.' })),
  workspace: ConfigWorkspace,
  effective_api_url: string(),
  agents: array(ConfigAgent),
  rigs: array(ConfigRig),
  providers: record(ConfigProvider),
  patches: object({
    agent_count: integer({ minimum: 0 }),
    rig_count: integer({ minimum: 0 }),
    provider_count: integer({ minimum: 0 }),
  }),
  untrusted_packs: optional(
    array(string(), { description: 'Imports of which nothing is started until they are trusted.' }),
  ),
  settings: raw<{ [key: string]: unknown }>({
    type: 'object',
    description: 'The plain tables (`daemon`, `session`, `events`, …) with their defaults; secrets masked.',
  }),
  warnings: array(ConfigIssue),
})
export type EffectiveConfigBody = Static<typeof EffectiveConfigBody>

export const CONFIG_FILE_KINDS = ['city', 'pack', 'lock', 'site', 'agent', 'fragment'] as const
const ConfigFileKind = choice(CONFIG_FILE_KINDS)

export const RawConfigBody = component('RawConfigBody', {
  view: literal('raw'),
  revision: Revision,
  ...StatusFields,
  files: array(
    object({
      path: string(),
      kind: ConfigFileKind,
      revision: Revision,
      values: optional(JsonObject),
      error: optional(string({ description: 'Why it cannot be read as TOML.' })),
    }),
    { description: 'What each file on disk says by itself, before anything is merged; secrets masked.' },
  ),
})
export type RawConfigBody = Static<typeof RawConfigBody>

const origin = {
  value: anything(),
  file: nullable(string(), { description: 'Null for what stands in no file.' }),
  line: nullable(integer({ minimum: 1 })),
  column: nullable(integer({ minimum: 0 })),
  layer: choice(CONFIG_LAYERS, { description: 'Weakest first.' }),
}
const ExplainedItem = object(origin)
export const ExplainedValue = component('ExplainedValue', {
  ...origin,
  items: optional(array(ExplainedItem, { description: 'Of a list that several places add to.' })),
})
const ExplainedFields = record(ExplainedValue, {
  $id: 'ExplainedFields',
  description: 'By dotted key.',
})
const named = { name: string(), fields: ExplainedFields }

export const ConfigExplanation = component('ConfigExplanation', {
  revision: Revision,
  settings: ExplainedFields,
  agents: array(object({ identity: string(), origin: string(), fields: ExplainedFields })),
  rigs: array(object(named)),
  named_sessions: array(object({ identity: string(), fields: ExplainedFields })),
  providers: array(object({ ...named, origin: choice(['builtin', 'city', 'builtin+city']), chain: texts })),
  services: array(object(named)),
})
export type ConfigExplanation = Static<typeof ConfigExplanation>

export const ConfigCheckIssue = component('ConfigCheckIssue', {
  severity: choice(['error', 'warning']),
  code: choice(['invalid_config', 'config_warning']),
  ...ConfigIssue.properties,
})

export const ConfigCheckResult = component('ConfigCheckResult', {
  valid: boolean(),
  revision: optional(string({ description: 'What the configuration would have; where it is valid.' })),
  errors: texts,
  warnings: texts,
  issues: array(ConfigCheckIssue),
})
export type ConfigCheckResult = Static<typeof ConfigCheckResult>

const FileText = string({ maxLength: 1_000_000, description: 'The whole file.' })
export const ConfigCheckRequest = component('ConfigCheckRequest', {
  files: record(nullable(FileText), {
    description: 'Contents by path, in place of those on disk; null: as if the file were gone.',
    examples: [{ 'city.toml': '[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n' }],
  }),
})

export const ConfigReloadRequest = component('ConfigReloadRequest', {
  soft: optional(boolean({ description: 'Running sessions take the new configuration as theirs, without a restart.' })),
})

export const ConfigFileInfo = component('ConfigFileInfo', {
  path: string(),
  kind: ConfigFileKind,
  revision: Revision,
  bytes: integer({ minimum: 0 }),
})
export type ConfigFileInfo = Static<typeof ConfigFileInfo>

export const ConfigFile = component('ConfigFile', {
  path: string(),
  kind: ConfigFileKind,
  revision: Revision,
  text: string({ description: 'As it is on disk, nothing masked: it is to be edited.' }),
  config_revision: string({
    description: 'Of the whole configuration, with this text; of what is in force while that is `rejected`.',
  }),
})
export type ConfigFile = Static<typeof ConfigFile>

export const ConfigFilePutResult = component('ConfigFilePutResult', {
  ...ConfigFile.properties,
  changed: boolean(),
  dry_run: boolean({ description: 'True: checked only, nothing was written.' }),
  warnings: array(ConfigIssue),
  rejected: optional(
    array(ConfigIssue, {
      minItems: 1,
      description: 'What is still wrong with the files: the text is written, what was in force before stays so.',
    }),
  ),
})
export type ConfigFilePutResult = Static<typeof ConfigFilePutResult>

export const AgentPrompt = component('AgentPrompt', {
  agent: string(),
  text: string({
    description: 'Body and fragments, without the line that a session puts in front. Values of `env` are masked.',
  }),
  version: optional(string({ description: 'From the front matter of the prompt.' })),
  sha256: string({
    pattern: '^[0-9a-f]{64}$',
    description: 'Of the text as a session gets it, nothing masked.',
  }),
  fragments: array(string(), { description: 'Appended, in order.' }),
  warnings: texts,
})
export type AgentPrompt = Static<typeof AgentPrompt>

export const CONFIG = { name: 'Config', about: 'Configuration of a city: read, explain, edit, validate, reload.' }
const agentName = (description: string, examples: string[]) =>
  string({ minLength: 1, maxLength: 256, description, examples })
const config = family(
  CONFIG,
  '/v0/city/{cityName}',
  {
    cityName: CityNameParam,
    path: string({
      minLength: 1,
      maxLength: 1024,
      description: 'Relative to the city, as one segment: its slashes are written `%2F`.',
      examples: ['city.toml', 'agents/mayor/agent.toml'],
    }),
    agent: agentName('Identity of the agent; slashes are written `%2F`.', ['core.worker']),
  },
  { city: 'mendable' },
)

/** What shows how far the log of the city is. */
const seen = config.with({ replyHeaders: ['X-SVC-Index'] })

export const getConfigFile = seen.get('get-config-file', '/config/files/{path}', {
  summary: 'Read a configuration file',
  description: 'As it stands on disk, byte for byte, nothing masked.',
  replies: { 200: ConfigFile },
  replyHeaders: ['ETag'],
  problems: ['config-file-not-found', 'conflict-config'],
})

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

const configuration = { log: 'city', emittedBy: 'configuration' } as const

export const CONFIG_EVENT_TYPES = {
  'config.reloaded': { payload: ConfigReloadedPayload, ...configuration, when: 'a changed configuration is in force' },
  'config.rejected': {
    payload: ConfigRejectedPayload,
    ...configuration,
    when: 'files that are not valid were refused; once per state',
  },
  'request.result.config.reload': {
    payload: ConfigReloadSucceededPayload,
    ...configuration,
    when: 'a reload that was asked for is done',
  },
} as const satisfies EventTypes

export const configOperations = [
  seen.get('get-config', '/config', {
    summary: 'Configuration in force',
    description:
      'What the city runs on; `last_error` tells where the files on disk are not that. `view=raw` shows what each file says by itself.',
    query: object({ view: optional(choice(['effective', 'raw'], { description: '`effective` where absent.' })) }),
    replies: { 200: union([EffectiveConfigBody, RawConfigBody]) },
    replyHeaders: ['ETag'],
  }),
  seen.get('explain-config', '/config/explain', {
    summary: 'Where every value comes from',
    description: 'By field: value, file, line, layer. With a filter only what it names.',
    query: object({
      agent: optional(string({ minLength: 1, description: 'Identity of an agent.' })),
      rig: optional(string({ minLength: 1, description: 'Of this rig.' })),
      provider: optional(string({ minLength: 1, description: 'Of this provider.' })),
    }),
    replies: { 200: ConfigExplanation },
    replyHeaders: ['ETag'],
    problems: ['config-item-not-found'],
  }),
  seen.get('validate-config', '/config/validate', {
    summary: 'Check the files on disk',
    description:
      'Reads them again; changes nothing, also not what is in force. Formulas and orders are checked too, and what a rig that is not there yet would have: its agents, prompts and imports.',
    replies: { 200: ConfigCheckResult },
  }),
  seen.post('check-config', '/config/validate', {
    summary: 'Check given files',
    description: 'The files on disk with those of the body in their place, checked as `GET` does. Writes nothing.',
    body: ConfigCheckRequest,
    replies: { 200: ConfigCheckResult },
  }),
  config.post('reload-config', '/config/reload', {
    summary: 'Load the files on disk',
    description:
      'Ends in `request.result.config.reload`, or in `request.failed` with `config_invalid` where the files are not valid.',
    body: ConfigReloadRequest,
    bodyOptional: true,
    headers: ['Idempotency-Key'],
    replies: { 202: AsyncAcceptedResponse },
    accepts: 'config.reload',
    emits: ['config.reloaded', 'config.rejected'],
  }),
  config.get('get-config-defaults', '/config/defaults', {
    summary: 'The configuration of a city whose files say nothing',
    description: 'Derived prefix, built-in providers, default settings; no agents and rigs.',
    replies: { 200: EffectiveConfigBody },
  }),
  seen.get('list-config-files', '/config/files', {
    summary: "List the city's own configuration files",
    description:
      'By path: `city.toml`, `pack.toml`, `packs.lock`, `.svc/site.toml`, fragments, `agents/<name>/agent.toml`.',
    replies: { 200: listBody('ListBodyConfigFileInfo', ConfigFileInfo) },
    replyHeaders: ['ETag'],
  }),
  getConfigFile,
  seen.put('put-config-file', '/config/files/{path}', {
    summary: 'Create or replace a configuration file',
    description:
      'The whole configuration is checked with it before anything is written: 422 names every issue. It is in force when the answer comes. Answers 201 for a new file; with `If-Match` 412 for one that is not there. Files that are not valid already take an edit that adds no error to them: `rejected` says what is left, and 422 what is new. Files that somebody has changed just now are looked at first: 409, and the next try is for what is there; with the `If-Match` of the file as it is on disk there is none.',
    query: object({ dry_run: optional(boolean({ description: 'Only check.' })) }),
    body: component('ConfigFilePutRequest', { text: FileText }),
    headers: ['If-Match'],
    replies: { 200: ConfigFilePutResult, 201: ConfigFilePutResult },
    replyHeaders: ['ETag', 'X-SVC-Config-Rejected'],
    problems: ['conflict-config', 'invalid-config'],
    emits: ['config.reloaded'],
  }),
  ...qualified('agent', QualifiedName, [
    seen.get('get-agent-prompt', '/agents/{agent}/prompt', {
      summary: "Preview an agent's prompt",
      description: 'Rendered as the next session would get it.',
      replies: { 200: AgentPrompt },
      problems: ['agent-not-found', 'invalid-config'],
    }),
  ]),
] as const
