/** Configuration of a city: read, explain, validate, reload, edit its files, preview prompts (sheet 07 §§6, 8; decisions 30–41). */
import Type, { type Static } from 'typebox'
import { CityNameParam, JsonObject, Revision } from './base/names.ts'
import { operation } from './base/operation.ts'
import { CityConfigStatus } from './cities.ts'
import { ConfigIssue } from './event-types.ts'
import { AsyncAcceptedResponse } from './requests.ts'

const texts = Type.Array(Type.String())
const params = Type.Object({ cityName: CityNameParam })

const ConfigWorkspace = Type.Object(
  {
    name: Type.String({ description: 'In force.' }),
    prefix: Type.String({ description: 'Of the ids of its work items.' }),
    declared_name: Type.Optional(Type.String({ description: '`[workspace] name`, where the files say one.' })),
    declared_prefix: Type.Optional(Type.String()),
    provider: Type.Optional(Type.String()),
    suspended: Type.Boolean(),
    session_template: Type.Optional(Type.String()),
    max_active_sessions: Type.Optional(Type.Integer({ minimum: -1 })),
  },
  { additionalProperties: false },
)

const ConfigAgent = Type.Object(
  {
    name: Type.String({ description: '`[<binding>.]<name>`.' }),
    dir: Type.String({ description: 'Its rig; empty for the city.' }),
    identity: Type.String({ description: '`[<rig>/][<binding>.]<name>`.' }),
    provider: Type.String(),
    is_pool: Type.Boolean({ description: 'May run more than one session.' }),
    scope: Type.Optional(Type.Enum(['city', 'rig'])),
    suspended: Type.Boolean(),
    origin: Type.String({ description: 'What declares it: a file of the city, or `pack:<binding>`.' }),
  },
  { additionalProperties: false },
)

const ConfigRig = Type.Object(
  {
    name: Type.String(),
    path: Type.Optional(Type.String({ description: 'Absent where this machine has no directory for it.' })),
    prefix: Type.String(),
    suspended: Type.Boolean(),
  },
  { additionalProperties: false },
)

const ConfigProvider = Type.Object(
  {
    display_name: Type.Optional(Type.String()),
    command: Type.Optional(Type.String()),
    acp_command: Type.Optional(Type.String()),
    args: Type.Optional(texts),
    acp_args: Type.Optional(texts),
    prompt_mode: Type.Optional(Type.String()),
    prompt_flag: Type.Optional(Type.String()),
    ready_delay_ms: Type.Optional(Type.Integer({ minimum: 0 })),
    env: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Values are masked.' })),
  },
  { additionalProperties: false },
)

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

export const EffectiveConfigBody = Type.Object(
  {
    view: Type.Literal('effective'),
    revision: Revision,
    ...StatusFields,
    pending_revision: Type.Optional(Type.String({ description: 'Hash of the files on disk that were refused.' })),
    workspace: ConfigWorkspace,
    effective_api_url: Type.String(),
    agents: Type.Array(ConfigAgent),
    rigs: Type.Array(ConfigRig),
    providers: Type.Record(Type.String(), ConfigProvider),
    patches: Type.Object(
      {
        agent_count: Type.Integer({ minimum: 0 }),
        rig_count: Type.Integer({ minimum: 0 }),
        provider_count: Type.Integer({ minimum: 0 }),
      },
      { additionalProperties: false },
    ),
    settings: Type.Unsafe<{ [key: string]: unknown }>({
      type: 'object',
      description: 'The plain tables (`daemon`, `session`, `events`, …) with their defaults; secrets masked.',
    }),
    warnings: Type.Array(ConfigIssue),
  },
  { $id: 'EffectiveConfigBody', additionalProperties: false },
)
export type EffectiveConfigBody = Static<typeof EffectiveConfigBody>

export const CONFIG_FILE_KINDS = ['city', 'pack', 'lock', 'site', 'agent', 'fragment'] as const
const ConfigFileKind = Type.Enum(CONFIG_FILE_KINDS)

export const RawConfigBody = Type.Object(
  {
    view: Type.Literal('raw'),
    revision: Revision,
    ...StatusFields,
    files: Type.Array(
      Type.Object(
        {
          path: Type.String(),
          kind: ConfigFileKind,
          revision: Revision,
          values: Type.Optional(JsonObject),
          error: Type.Optional(Type.String({ description: 'Why it cannot be read as TOML.' })),
        },
        { additionalProperties: false },
      ),
      { description: 'What each file on disk says by itself, before anything is merged; secrets masked.' },
    ),
  },
  { $id: 'RawConfigBody', additionalProperties: false },
)
export type RawConfigBody = Static<typeof RawConfigBody>

const origin = {
  value: Type.Unknown(),
  file: Type.Union([Type.String(), Type.Null()], { description: 'Null for what stands in no file.' }),
  line: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
  column: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  layer: Type.Enum(CONFIG_LAYERS, { description: 'Weakest first.' }),
}
const ExplainedItem = Type.Object(origin, { additionalProperties: false })
export const ExplainedValue = Type.Object(
  {
    ...origin,
    items: Type.Optional(Type.Array(ExplainedItem, { description: 'Of a list that several places add to.' })),
  },
  { $id: 'ExplainedValue', additionalProperties: false },
)
const ExplainedFields = Type.Record(Type.String(), ExplainedValue, {
  $id: 'ExplainedFields',
  description: 'By dotted key.',
})
const named = { name: Type.String(), fields: ExplainedFields }

export const ConfigExplanation = Type.Object(
  {
    revision: Revision,
    settings: ExplainedFields,
    agents: Type.Array(
      Type.Object(
        { identity: Type.String(), origin: Type.String(), fields: ExplainedFields },
        { additionalProperties: false },
      ),
    ),
    rigs: Type.Array(Type.Object(named, { additionalProperties: false })),
    named_sessions: Type.Array(
      Type.Object({ identity: Type.String(), fields: ExplainedFields }, { additionalProperties: false }),
    ),
    providers: Type.Array(
      Type.Object(
        { ...named, origin: Type.Enum(['builtin', 'city', 'builtin+city']), chain: texts },
        { additionalProperties: false },
      ),
    ),
    services: Type.Array(Type.Object(named, { additionalProperties: false })),
  },
  { $id: 'ConfigExplanation', additionalProperties: false },
)
export type ConfigExplanation = Static<typeof ConfigExplanation>

export const ConfigCheckIssue = Type.Object(
  {
    severity: Type.Enum(['error', 'warning']),
    code: Type.Enum(['invalid_config', 'config_warning']),
    ...ConfigIssue.properties,
  },
  { $id: 'ConfigCheckIssue', additionalProperties: false },
)

export const ConfigCheckResult = Type.Object(
  {
    valid: Type.Boolean(),
    revision: Type.Optional(Type.String({ description: 'What the configuration would have; where it is valid.' })),
    errors: texts,
    warnings: texts,
    issues: Type.Array(ConfigCheckIssue),
  },
  { $id: 'ConfigCheckResult', additionalProperties: false },
)
export type ConfigCheckResult = Static<typeof ConfigCheckResult>

const FileText = Type.String({ maxLength: 1_000_000, description: 'The whole file.' })
export const ConfigCheckRequest = Type.Object(
  {
    files: Type.Record(Type.String({ minLength: 1, maxLength: 1024 }), Type.Union([FileText, Type.Null()]), {
      description: 'Contents by path, in place of those on disk; null: as if the file were gone.',
      examples: [{ 'city.toml': '[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n' }],
    }),
  },
  { $id: 'ConfigCheckRequest', additionalProperties: false },
)

export const ConfigReloadRequest = Type.Object(
  {
    soft: Type.Optional(
      Type.Boolean({ description: 'Running sessions take the new configuration as theirs, without a restart.' }),
    ),
  },
  { $id: 'ConfigReloadRequest', additionalProperties: false },
)

export const ConfigFileInfo = Type.Object(
  { path: Type.String(), kind: ConfigFileKind, revision: Revision, bytes: Type.Integer({ minimum: 0 }) },
  { $id: 'ConfigFileInfo', additionalProperties: false },
)
export type ConfigFileInfo = Static<typeof ConfigFileInfo>

export const ConfigFile = Type.Object(
  {
    path: Type.String(),
    kind: ConfigFileKind,
    revision: Revision,
    text: Type.String({ description: 'As it is on disk, nothing masked: it is to be edited.' }),
    config_revision: Type.String({ description: 'Of the whole configuration, with this text.' }),
  },
  { $id: 'ConfigFile', additionalProperties: false },
)
export type ConfigFile = Static<typeof ConfigFile>

export const ConfigFilePutResult = Type.Object(
  {
    ...ConfigFile.properties,
    changed: Type.Boolean(),
    dry_run: Type.Boolean({ description: 'True: checked only, nothing was written.' }),
    warnings: Type.Array(ConfigIssue),
  },
  { $id: 'ConfigFilePutResult', additionalProperties: false },
)
export type ConfigFilePutResult = Static<typeof ConfigFilePutResult>

export const AgentPrompt = Type.Object(
  {
    agent: Type.String(),
    text: Type.String({
      description: 'Body and fragments, without the line that a session puts in front. Values of `env` are masked.',
    }),
    version: Type.Optional(Type.String({ description: 'From the front matter of the prompt.' })),
    sha256: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the text as a session gets it, nothing masked.',
    }),
    fragments: Type.Array(Type.String(), { description: 'Appended, in order.' }),
    warnings: texts,
  },
  { $id: 'AgentPrompt', additionalProperties: false },
)
export type AgentPrompt = Static<typeof AgentPrompt>

const family = 'Config'

export const getConfig = operation({
  id: 'get-config',
  method: 'GET',
  path: '/v0/city/{cityName}/config',
  family,
  summary: 'Configuration in force',
  description:
    'What the city runs on; `last_error` tells where the files on disk are not that. `view=raw` shows what each file says by itself.',
  params,
  query: Type.Object(
    { view: Type.Optional(Type.Enum(['effective', 'raw'], { description: '`effective` where absent.' })) },
    { additionalProperties: false },
  ),
  replies: { 200: Type.Union([EffectiveConfigBody, RawConfigBody]) },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
})

export const explainConfig = operation({
  id: 'explain-config',
  method: 'GET',
  path: '/v0/city/{cityName}/config/explain',
  family,
  summary: 'Where every value comes from',
  description: 'By field: value, file, line, layer. With a filter only what it names.',
  params,
  query: Type.Object(
    {
      agent: Type.Optional(Type.String({ minLength: 1, description: 'Identity of an agent.' })),
      rig: Type.Optional(Type.String({ minLength: 1, description: 'Of this rig.' })),
      provider: Type.Optional(Type.String({ minLength: 1, description: 'Of this provider.' })),
    },
    { additionalProperties: false },
  ),
  replies: { 200: ConfigExplanation },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['config-item-not-found'],
})

export const validateConfig = operation({
  id: 'validate-config',
  method: 'GET',
  path: '/v0/city/{cityName}/config/validate',
  family,
  summary: 'Check the files on disk',
  description: 'Reads them again; changes nothing, also not what is in force.',
  params,
  replies: { 200: ConfigCheckResult },
  replyHeaders: ['X-SVC-Index'],
  problems: [],
})

export const checkConfig = operation({
  id: 'check-config',
  method: 'POST',
  path: '/v0/city/{cityName}/config/validate',
  family,
  summary: 'Check given files',
  description: 'The files on disk with those of the body in their place. Writes nothing.',
  params,
  body: ConfigCheckRequest,
  replies: { 200: ConfigCheckResult },
  replyHeaders: ['X-SVC-Index'],
  problems: [],
})

export const reloadConfig = operation({
  id: 'reload-config',
  method: 'POST',
  path: '/v0/city/{cityName}/config/reload',
  family,
  summary: 'Load the files on disk',
  description:
    'Ends in `request.result.config.reload`, or in `request.failed` with `config_invalid` where the files are not valid.',
  params,
  body: ConfigReloadRequest,
  bodyOptional: true,
  headers: ['Idempotency-Key'],
  replies: { 202: AsyncAcceptedResponse },
  problems: [],
  emits: ['config.reloaded', 'config.rejected', 'request.result.config.reload', 'request.failed'],
})

export const getConfigDefaults = operation({
  id: 'get-config-defaults',
  method: 'GET',
  path: '/v0/city/{cityName}/config/defaults',
  family,
  summary: 'The configuration of a city whose files say nothing',
  description: 'Derived prefix, built-in providers, default settings; no agents and rigs.',
  params,
  replies: { 200: EffectiveConfigBody },
  problems: [],
})

export const listConfigFiles = operation({
  id: 'list-config-files',
  method: 'GET',
  path: '/v0/city/{cityName}/config/files',
  family,
  summary: "List the city's own configuration files",
  description:
    'By path: `city.toml`, `pack.toml`, `packs.lock`, `.svc/site.toml`, fragments, `agents/<name>/agent.toml`.',
  params,
  replies: {
    200: Type.Object(
      { items: Type.Array(ConfigFileInfo), total: Type.Integer({ minimum: 0 }) },
      { $id: 'ListBodyConfigFileInfo', additionalProperties: false },
    ),
  },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
})

const fileParams = Type.Object({
  cityName: CityNameParam,
  path: Type.String({
    minLength: 1,
    maxLength: 1024,
    description: 'Relative to the city, as one segment: its slashes are written `%2F`.',
    examples: ['city.toml', 'agents/mayor/agent.toml'],
  }),
})

export const getConfigFile = operation({
  id: 'get-config-file',
  method: 'GET',
  path: '/v0/city/{cityName}/config/files/{path}',
  family,
  summary: 'Read a configuration file',
  description: 'As it stands on disk, byte for byte, nothing masked.',
  params: fileParams,
  replies: { 200: ConfigFile },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['config-file-not-found', 'conflict-config'],
})

export const putConfigFile = operation({
  id: 'put-config-file',
  method: 'PUT',
  path: '/v0/city/{cityName}/config/files/{path}',
  family,
  summary: 'Create or replace a configuration file',
  description:
    'The whole configuration is checked with it before anything is written: 422 names every issue. It is in force when the answer comes. Answers 201 for a new file; with `If-Match` 412 for one that is not there. While the files on disk are not valid, or not loaded yet, every edit answers 409, but this one with the `If-Match` of the file as it is on disk: so it can be mended.',
  params: fileParams,
  query: Type.Object(
    { dry_run: Type.Optional(Type.Boolean({ description: 'Only check.' })) },
    { additionalProperties: false },
  ),
  body: Type.Object({ text: FileText }, { $id: 'ConfigFilePutRequest', additionalProperties: false }),
  headers: ['If-Match'],
  replies: { 200: ConfigFilePutResult, 201: ConfigFilePutResult },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['conflict-config', 'invalid-config'],
  emits: ['config.reloaded'],
})

const agentName = (description: string, examples: string[]) =>
  Type.String({ minLength: 1, maxLength: 256, description, examples })

const promptOf = {
  method: 'GET',
  family,
  replies: { 200: AgentPrompt },
  replyHeaders: ['X-SVC-Index'],
  problems: ['agent-not-found', 'invalid-config'],
} as const

export const getAgentPrompt = operation({
  ...promptOf,
  id: 'get-agent-prompt',
  path: '/v0/city/{cityName}/agents/{agent}/prompt',
  summary: "Preview an agent's prompt",
  description: 'Rendered as the next session would get it.',
  params: Type.Object({
    cityName: CityNameParam,
    agent: agentName('Identity of the agent; slashes are written `%2F`.', ['core.worker']),
  }),
})

export const getAgentPromptQualified = operation({
  ...promptOf,
  id: 'get-agent-prompt-qualified',
  path: '/v0/city/{cityName}/agents/{dir}/{base}/prompt',
  summary: "Preview the prompt of a rig's agent",
  description: 'As `/agents/{agent}/prompt`, with the rig and the name apart.',
  params: Type.Object({
    cityName: CityNameParam,
    dir: agentName('Its rig.', ['shop']),
    base: agentName('`[<binding>.]<name>`.', ['core.worker']),
  }),
})

export const configOperations = [
  getConfig,
  explainConfig,
  validateConfig,
  checkConfig,
  reloadConfig,
  getConfigDefaults,
  listConfigFiles,
  getConfigFile,
  putConfigFile,
  getAgentPrompt,
  getAgentPromptQualified,
] as const
