/**
 * Every table and key that a city's files may have, declared once: type, default, how layers merge, and what a change
 * means for a running session (`drift`). The loader, `explain`, the defaults and the drift check all read it from here.
 *
 * Annotations stand under `x-svc`, so these schemas are also plain JSON Schema for the API and for editors.
 */

import { AGENT_APIS } from './access.ts'
import { type Annotation, type Drift, isList, isMap } from './base/config-shape.ts'
import { array, type ObjectSchema, optional, raw, type Schema, type Static, string } from './base/schema.ts'
import { amount, duration, flag, list, map, note, oneOf, table, text, texts, whole } from './base/settings.ts'
import { GONE_RUNTIMES, ISOLATIONS, RUNTIME_NAMES } from './sessions/session-model.ts'
import { BUDGET_ACTIONS } from './sessions/usage.ts'

const NAME = '^[a-zA-Z0-9][a-zA-Z0-9_-]*$'
const NAME_TEXT = 'letters, digits, `_` and `-`, starting with a letter or digit'
export const RIG_NAME = '^(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'
export const BINDING = '^[a-z0-9][a-z0-9_-]{0,63}$'
const PREFIX = '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'

/** Names of variables of the supervisor that agents may have; a pack's provider can only narrow what the city says. */
const VARIABLE_GLOB = '^[A-Za-z_*?][A-Za-z0-9_*?]*$'
const VARIABLE_GLOB_TEXT = 'the name of a variable; `*` stands for any characters, `?` for one'
const variables = (options: Annotation) =>
  list(text({ pattern: VARIABLE_GLOB, description: VARIABLE_GLOB_TEXT }), options)
const inheritEnv = raw<'all' | string[]>({
  type: ['array', 'string'],
  items: text({ pattern: VARIABLE_GLOB, description: VARIABLE_GLOB_TEXT }),
  pattern: '^all$',
  description: '`all`, or a list of names in which `*` stands for any characters',
  ...note({ drift: 'start', merge: 'replace' }),
})

const scalar = raw<string | number | boolean>({ type: ['string', 'number', 'boolean'] })
const env = (drift: Drift) => map(string(), { drift, secret: true })
const cap = (drift: Drift) => whole({ minimum: -1, drift })

/** A rule about tools: who may use which without being asked (modules/sessions/reports/policy.ts). */
const permissionRule = table({
  tool: text({ minLength: 1 }),
  match: optional(text({ minLength: 1 })),
  action: oneOf(['allow', 'deny', 'ask']),
})
export type PermissionRule = Static<typeof permissionRule>

/** A server of tools that agents behind the agent protocol are given: a program, or an address. */
const McpServer = table({
  command: optional(text({ minLength: 1 })),
  args: optional(texts()),
  env: optional(map(string(), { secret: true })),
  url: optional(text({ pattern: '^https?://', description: 'an address that begins with `http://` or `https://`' })),
  type: optional(oneOf(['http', 'sse'], { default: 'http' })),
  headers: optional(map(string(), { secret: true })),
})
export type McpServer = Static<typeof McpServer>
const mcpServers = map(McpServer, { drift: 'launch' })

// ---- agents ---------------------------------------------------------------------------------------------------------

/** The fields of `agents/<name>/agent.toml`; in `[[agent]]`, `name` and `dir` join them. */
export const AGENT_FIELDS = {
  description: optional(text({ drift: 'none' })),
  scope: optional(oneOf(['city', 'rig'], { drift: 'none' })),
  depends_on: optional(texts({ drift: 'live' })),
  suspended: optional(flag({ drift: 'live', default: false })),

  provider: optional(text({ drift: 'launch' })),
  upstream: optional(text({ drift: 'launch' })),
  start_command: optional(text({ drift: 'launch' })),
  args: optional(texts({ drift: 'launch' })),
  option_defaults: optional(map(string(), { drift: 'launch' })),
  env: optional(env('launch')),
  mcp_servers: optional(mcpServers),
  session: optional(oneOf(RUNTIME_NAMES, { drift: 'start', gone: GONE_RUNTIMES })),
  lifecycle: optional(oneOf(['one_shot'], { drift: 'launch' })),
  attach: optional(flag({ drift: 'live', default: true })),
  work_dir: optional(text({ drift: 'provision', template: 'path' })),
  isolation: optional(oneOf(ISOLATIONS, { drift: 'provision', default: 'none' })),
  base_ref: optional(text({ drift: 'live', minLength: 1 })),
  worktree_setup: optional(list(text({ template: 'command' }), { drift: 'live', merge: 'replace' })),
  session_alias: optional(text({ drift: 'start', template: 'session' })),

  prompt_template: optional(text({ drift: 'launch', kind: 'path' })),
  prompt_mode: optional(oneOf(['arg', 'flag', 'none', 'omit'], { drift: 'launch' })),
  prompt_flag: optional(text({ drift: 'launch' })),
  nudge: optional(text({ drift: 'live' })),
  append_fragments: optional(texts({ drift: 'launch' })),
  restart_on_prompt_change: optional(flag({ drift: 'none', default: true })),

  ready_delay_ms: optional(whole({ drift: 'start' })),
  ready_prompt_prefix: optional(text({ drift: 'start' })),

  pre_start: optional(list(text({ template: 'command' }), { drift: 'provision' })),
  session_setup: optional(list(text({ template: 'command' }), { drift: 'launch' })),
  session_setup_script: optional(text({ drift: 'launch', kind: 'path' })),
  session_live: optional(list(text({ template: 'command' }), { drift: 'reapply' })),
  overlay_dir: optional(text({ drift: 'provision', kind: 'path' })),

  min_active_sessions: optional(whole({ drift: 'live', default: 0 })),
  max_active_sessions: optional(cap('live')),
  scale_check: optional(text({ drift: 'live', template: 'path' })),
  namepool: optional(text({ drift: 'live', kind: 'path' })),
  drain_timeout: optional(duration({ drift: 'live', default: '5m' })),
  on_boot: optional(text({ drift: 'live', template: 'command' })),
  on_death: optional(text({ drift: 'live', template: 'command' })),

  work_query: optional(text({ drift: 'live', template: 'path' })),
  default_sling_formula: optional(text({ drift: 'live' })),

  idle_timeout: optional(duration({ drift: 'live', off: true, default: 'off' })),
  max_session_age: optional(duration({ drift: 'live', off: true, default: 'off' })),
  max_session_age_jitter: optional(duration({ drift: 'live' })),
  sleep_after_idle: optional(duration({ drift: 'live', off: true })),
  assigned_work_defer_limit: optional(duration({ drift: 'live', default: '15m' })),
  wake_mode: optional(oneOf(['resume', 'fresh'], { drift: 'live', default: 'resume' })),
  resume_command: optional(text({ drift: 'launch', template: 'resume' })),
  api: optional(oneOf(AGENT_APIS, { drift: 'launch', default: 'work' })),
  hooks: optional(flag({ drift: 'launch' })),
  permissions: optional(list(permissionRule, { drift: 'live', merge: 'replace' })),
} as const

const agentName = text({ pattern: NAME, description: NAME_TEXT })

export const AgentFile = table(AGENT_FIELDS)
export const InlineAgent = table({ name: agentName, dir: optional(text({ pattern: RIG_NAME })), ...AGENT_FIELDS })
/** The fields of an agent as composed: what `agent.toml` may say, with defaults filled in. */
export type AgentSettings = Static<typeof AgentFile>

// ---- providers and upstreams ----------------------------------------------------------------------------------------

const optionChoice = table({
  value: text(),
  label: optional(text()),
  flag_args: optional(texts()),
  flag_aliases: optional(list(array(string()))),
  env: optional(env('launch')),
  acp_mode: optional(text()),
})
const providerOption = table({
  key: text({ minLength: 1 }),
  label: optional(text()),
  type: optional(oneOf(['select'])),
  default: optional(text()),
  choices: optional(list(optionChoice, { merge: 'replace' })),
  live_command: optional(text()),
  free_args: optional(texts()),
  omit: optional(flag()),
})

/** The fields of `[providers.<name>]`, and of a built-in preset. */
export const Provider = table({
  base: optional(text()),
  display_name: optional(text()),
  command: optional(text({ drift: 'launch' })),
  args: optional(texts({ drift: 'launch' })),
  args_append: optional(texts({ drift: 'launch' })),
  acp_command: optional(text({ drift: 'launch' })),
  acp_args: optional(texts({ drift: 'launch' })),
  acp_files: optional(flag({ drift: 'launch' })),
  path_check: optional(text({ drift: 'none' })),
  instructions_file: optional(text({ drift: 'provision', default: 'AGENTS.md' })),
  prompt_mode: optional(oneOf(['arg', 'flag', 'none', 'omit'], { drift: 'launch' })),
  prompt_flag: optional(text({ drift: 'launch' })),
  ready_delay_ms: optional(whole({ drift: 'start' })),
  ready_prompt_prefix: optional(text({ drift: 'start' })),
  env: optional(env('launch')),
  inherit_env: optional(inheritEnv),
  mcp_servers: optional(mcpServers),
  io: optional(oneOf(['pty', 'pipes'], { drift: 'launch' })),
  ready_confirmation: optional(flag({ drift: 'start' })),
  delivery: optional(oneOf(['line', 'tui'], { drift: 'start' })),
  supports_acp: optional(flag({ drift: 'launch' })),
  accept_startup_dialogs: optional(flag({ drift: 'launch' })),
  hooks: optional(flag({ drift: 'launch' })),
  resume_flag: optional(text({ drift: 'launch' })),
  resume_style: optional(oneOf(['flag', 'subcommand'], { drift: 'launch' })),
  resume_command: optional(text({ drift: 'launch', template: 'resume' })),
  session_id_flag: optional(text({ drift: 'launch' })),
  option_defaults: optional(map(string(), { drift: 'launch' })),
  options_schema: optional(list(providerOption, { drift: 'launch', identity: ['key'] })),
  options_schema_merge: optional(oneOf(['replace', 'by_key'])),
  upstream_env: optional(
    table({ base_url: optional(text()), api_key: optional(text()), auth_token: optional(text()) }, { drift: 'launch' }),
  ),
})
/** A provider as written; the same shape as a built-in preset. */
export type ProviderSpec = Static<typeof Provider>

const upstream = table({
  description: optional(text()),
  base_url: optional(text({ drift: 'start' })),
  api_key: optional(text({ drift: 'start', secret: true })),
  auth_token: optional(text({ drift: 'start', secret: true })),
  base_url_env: optional(text({ drift: 'start' })),
  api_key_env: optional(text({ drift: 'start' })),
  auth_token_env: optional(text({ drift: 'start' })),
  env: optional(env('start')),
})
export type Upstream = Static<typeof upstream>

// ---- imports, patches, rigs -----------------------------------------------------------------------------------------

const importEntry = table(
  { source: text({ minLength: 1 }), version: optional(text()), export: optional(flag()) },
  { merge: 'replace' },
)
const imports = map(importEntry)

const agentDefaults = table({
  provider: optional(text()),
  upstream: optional(text()),
  default_sling_formula: optional(text()),
  isolation: optional(oneOf(ISOLATIONS)),
  append_fragments: optional(texts()),
})

/**
 * What a patch may say about objects with `fields`: each field itself (replaces; maps merge), `<list>_append`, and
 * `<map>_remove` with the keys to delete after the merge.
 */
function patchable(fields: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const patch: Record<string, Schema> = {}
  for (const [name, field] of Object.entries(fields)) {
    patch[name] = optional(field)
    // A field that is spelt like an appender (a provider's `args_append`) is that field.
    const appendable = isList(field) && !name.endsWith('_append') && fields[`${name}_append`] === undefined
    if (appendable) patch[`${name}_append`] = optional(field)
    if (isMap(field)) patch[`${name}_remove`] = optional(texts())
  }
  return patch
}

/** The patch form of an agent, without the keys that name its target. By then the agent has its place: no `scope`. */
const { scope: _scope, ...patchableAgentFields } = AGENT_FIELDS
export const AGENT_PATCH_FIELDS = patchable(patchableAgentFields)
export const AgentPatch = table({ name: text({ minLength: 1 }), dir: optional(text()), ...AGENT_PATCH_FIELDS })
export const RigAgentPatch = table({ agent: text({ minLength: 1 }), ...AGENT_PATCH_FIELDS })
export const NamedSessionPatch = table({
  name: optional(text()),
  dir: optional(text()),
  template: optional(text()),
  mode: optional(oneOf(['on_demand', 'always'])),
})
export const PROVIDER_PATCH_FIELDS = patchable(Provider.properties)
export const ProviderPatch = table({
  name: text({ minLength: 1 }),
  _replace: optional(flag()),
  ...PROVIDER_PATCH_FIELDS,
})

const sessionSleep = table({
  interactive_resume: optional(duration({ off: true, drift: 'live' })),
  interactive_fresh: optional(duration({ off: true, drift: 'live' })),
  noninteractive: optional(duration({ off: true, drift: 'live' })),
})

export const RIG_FIELDS = {
  path: optional(text({ drift: 'provision' })),
  prefix: optional(text({ pattern: PREFIX, description: 'lower-case letters, digits and `-`', drift: 'live' })),
  default_branch: optional(text({ drift: 'live' })),
  suspended_on_start: optional(flag({ drift: 'live', default: false })),
  max_active_sessions: optional(cap('live')),
  session_sleep: optional(sessionSleep),
  formulas_dir: optional(text({ drift: 'live' })),
  formula_vars: optional(map(scalar, { drift: 'live' })),
  default_sling_target: optional(text({ drift: 'live' })),
} as const
export const RigPatch = table({ name: text({ minLength: 1 }), ...patchable(RIG_FIELDS) })
const RIG_NAME_TEXT = 'letters, digits, `.`, `_` and `-`, at most 64, not only digits'
const rig = table({
  name: text({ pattern: RIG_NAME, description: RIG_NAME_TEXT }),
  ...RIG_FIELDS,
  imports: optional(imports),
  patches: optional(list(RigAgentPatch)),
})
/** A rig's fields as composed. */
export type RigSettings = Static<ObjectSchema<typeof RIG_FIELDS>>

const namedSession = table({
  template: text({ minLength: 1 }),
  name: optional(text({ pattern: NAME, description: NAME_TEXT })),
  scope: optional(oneOf(['city', 'rig'])),
  dir: optional(text()),
  mode: optional(oneOf(['on_demand', 'always'], { default: 'on_demand', drift: 'live' })),
})
const NAMED_SESSION_IDENTITY = ['dir', 'name|template'] as const

// ---- substrate and policy -------------------------------------------------------------------------------------------

const workspace = table({
  name: optional(text({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]*$' })),
  prefix: optional(text({ pattern: PREFIX, description: 'lower-case letters, digits and `-`' })),
  provider: optional(text({ drift: 'launch' })),
  start_command: optional(text({ drift: 'launch' })),
  timezone: optional(text({ kind: 'timezone', drift: 'live' })),
  suspended_on_start: optional(flag({ default: false, drift: 'live' })),
  max_active_sessions: optional(cap('live')),
  session_template: optional(text({ default: '{{ Agent }}', template: 'session', drift: 'start' })),
  global_fragments: optional(texts({ default: [], drift: 'launch' })),
  env: optional(env('launch')),
})

const beads = table({
  policies: optional(
    map(
      table({
        storage: optional(oneOf(['history', 'no_history', 'ephemeral'], { default: 'history' })),
        delete_after_close: optional(duration({ off: true, default: 'off' })),
      }),
    ),
  ),
})

const mail = table({ retention_ttl: optional(duration({ off: true, default: 'off', minimumMs: 60_000 })) })
const work = table({ lease_ttl: optional(duration({ default: '15m', minimumMs: 10_000 })) })
const events = table({
  retention: optional(
    table({
      max_age: optional(duration({ off: true })),
      max_bytes: optional(whole({ minimum: 0 })),
    }),
  ),
})

const session = table({
  provider: optional(oneOf(['', ...RUNTIME_NAMES], { default: '', drift: 'start', gone: GONE_RUNTIMES })),
  setup_timeout: optional(duration({ default: '10m' })),
  startup_timeout: optional(duration({ default: '60s' })),
  /** How long a busy agent's request waits before it ends as queued. */
  nudge_lock_timeout: optional(duration({ default: '30s', drift: 'live' })),
  /** How long a session may wait for its turn to start. */
  start_pending_timeout: optional(duration({ default: '10m', drift: 'live', minimumMs: 100 })),
  /** At most this long a line-oriented program is waited for that has not shown its first prompt. */
  line_ready_timeout: optional(duration({ default: '1s', drift: 'start' })),
  /** A message of a caller fails that could not be typed by then. */
  delivery_timeout: optional(duration({ default: '4m', drift: 'live', minimumMs: 100 })),
  /** What waits for a session is forgotten after this. */
  delivery_ttl: optional(duration({ default: '24h', drift: 'live', minimumMs: 100 })),
  /** A message that interrupts is typed by then, whether the turn has ended or not. */
  interrupt_timeout: optional(duration({ default: '15s', drift: 'live' })),
  /** A named session that exists on demand sleeps after this long without work. */
  on_demand_sleep: optional(duration({ off: true, default: '5m', drift: 'live' })),
  debounce_ms: optional(whole({ default: 500 })),
  progress_stall_timeout: optional(duration({ off: true, default: 'off', drift: 'live', minimumMs: 300_000 })),
  claim_holder_stall_timeout: optional(duration({ off: true, default: 'off', drift: 'live', minimumMs: 300_000 })),
  /** Of the supervisor's own variables, which agents have; `SVC_*` are always ours. */
  inherit_env: optional(inheritEnv),
  /** Those of them that no agent has, whatever `inherit_env` says. */
  env_deny: optional(variables({ drift: 'start' })),
  /** For every agent behind the protocol. */
  mcp_servers: optional(mcpServers),
  acp: optional(
    table({
      handshake_timeout: optional(duration({ default: '30s' })),
    }),
  ),
})

const worktrees = table({
  base_ref: optional(text({ drift: 'live', minLength: 1 })),
  setup: optional(list(text({ template: 'command' }), { drift: 'live' })),
  setup_timeout: optional(duration({ default: '10m', drift: 'live', minimumMs: 1_000 })),
  disposable: optional(list(text({ minLength: 1, maxLength: 256 }), { drift: 'live', maxItems: 100 })),
})

const retention = table({
  runs_age: optional(duration({ off: true, default: '7d', drift: 'live' })),
  runs_bytes: optional(whole({ default: 1024 ** 3, drift: 'live' })),
  closed_sessions: optional(duration({ off: true, default: '30d', drift: 'live' })),
  delivery_texts: optional(duration({ off: true, default: '1d', drift: 'live' })),
})

const daemon = table({
  patrol_interval: optional(duration({ default: '30s', drift: 'live', minimumMs: 100 })),
  tick_debounce: optional(duration({ default: '0' })),
  max_restarts: optional(whole({ default: 5, drift: 'live' })),
  restart_window: optional(duration({ default: '1h', drift: 'live' })),
  /** Dead this soon after its start is a rapid crash; so many in a row are held. */
  rapid_crash_window: optional(duration({ default: '30s', drift: 'live' })),
  rapid_crash_limit: optional(whole({ minimum: 1, default: 5, drift: 'live' })),
  /** Dead later than that, but within this, is churn; so many in a row are held. */
  churn_window: optional(duration({ default: '5m', drift: 'live' })),
  churn_limit: optional(whole({ minimum: 1, default: 3, drift: 'live' })),
  quarantine_hold: optional(duration({ default: '5m', drift: 'live', minimumMs: 100 })),
  rate_limit_hold: optional(duration({ default: '30m', drift: 'live', minimumMs: 100 })),
  /** First pause before a restart; doubles with every crash in a row, up to the other. */
  restart_backoff: optional(duration({ default: '250ms', drift: 'live', minimumMs: 10 })),
  restart_backoff_max: optional(duration({ default: '30s', drift: 'live', minimumMs: 10 })),
  /** Dead this soon after resuming a conversation: its key is stale, and the next start begins a new one. */
  stale_key_window: optional(duration({ default: '2s', drift: 'live' })),
  /** Not observable for this long is told as `session.unknown_state`. */
  unknown_state_timeout: optional(duration({ default: '30m', drift: 'live' })),
  shutdown_timeout: optional(duration({ default: '5s' })),
  drift_drain_timeout: optional(duration({ default: '2m' })),
  start_ready_timeout: optional(duration({ default: '5m' })),
  max_wakes_per_tick: optional(whole({ minimum: 1, default: 5, drift: 'live' })),
  probe_concurrency: optional(whole({ minimum: 1, default: 8 })),
  session_circuit_breaker: optional(flag({ default: false, drift: 'live' })),
  /** Restarts of a named session within the window that open its breaker; without them `max_restarts`, `restart_window`. */
  session_circuit_breaker_max_restarts: optional(whole({ minimum: 1, drift: 'live' })),
  session_circuit_breaker_window: optional(duration({ drift: 'live', minimumMs: 100 })),
  /** How long it stays open; two windows without it. */
  session_circuit_breaker_reset_after: optional(duration({ drift: 'live', minimumMs: 100 })),
})

const orderOverride = table({
  name: text({ minLength: 1 }),
  rig: optional(text()),
  enabled: optional(flag()),
  trigger: optional(oneOf(['cron', 'cooldown', 'condition', 'event', 'manual'])),
  interval: optional(duration()),
  schedule: optional(text()),
  tz: optional(text({ kind: 'timezone' })),
  catch_up: optional(duration()),
  check: optional(text()),
  check_timeout: optional(duration()),
  on: optional(text()),
  match: optional(map(string())),
  batch: optional(flag()),
  target: optional(text()),
  timeout: optional(duration()),
  overlap: optional(oneOf(['skip', 'allow'])),
  idempotent: optional(flag()),
  env: optional(map(string(), { secret: true })),
})
const orders = table({
  skip: optional(texts({ default: [] })),
  max_timeout: optional(duration()),
  overrides: optional(list(orderOverride, { identity: ['name', 'rig'], default: [] })),
})

const SERVICE_NAME = '^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$'
const SERVICE_NAME_TEXT = `${NAME_TEXT}, at most 64`

export const Service = table({
  name: text({ pattern: SERVICE_NAME, description: SERVICE_NAME_TEXT }),
  kind: optional(oneOf(['proxy_process'], { default: 'proxy_process' })),
  process: table({
    command: texts(),
    health_path: optional(text({ pattern: '^/' })),
    listen: optional(oneOf(['socket', 'port'], { default: 'socket' })),
    env: optional(env('none')),
  }),
  publication: optional(
    table({ allow_websockets: optional(flag({ default: true })), sandbox: optional(flag({ default: true })) }),
  ),
  publish_mode: optional(oneOf(['private', 'direct'], { default: 'private' })),
  state_root: optional(text()),
  first_byte_timeout: optional(duration({ default: '60s', minimumMs: 1_000 })),
  idle_timeout: optional(duration({ default: '10m', minimumMs: 1_000 })),
})
export type ServiceSettings = Static<typeof Service>

const chatSessions = table({
  idle_timeout: optional(duration({ off: true, default: 'off' })),
})
export const DEFAULT_CHAT_RETENTION = '180d'
const extmsg = table({
  retention_ttl: optional(duration({ default: DEFAULT_CHAT_RETENTION, off: true })),
  default_route: optional(
    list(table({ provider: text(), account_id: optional(text()), agent: text() }), {
      identity: ['provider', 'account_id'],
    }),
  ),
})
const doctor = table({
  check: optional(
    list(
      table({
        name: text(),
        script: text({ kind: 'path' }),
        description: optional(text()),
        fix: optional(text({ kind: 'path' })),
      }),
      {
        identity: ['name'],
        inert: 'no command runs it',
      },
    ),
  ),
})
const pricing = table({
  model: text({ minLength: 1 }),
  input: amount(),
  output: amount(),
  cache_read: optional(amount()),
  cache_write: optional(amount()),
})
export type Pricing = Static<typeof pricing>

const budget = table({
  per_day_usd: optional(amount()),
  per_session_usd: optional(amount()),
  action: optional(oneOf(BUDGET_ACTIONS, { default: 'warn' })),
})

/** The tables with plain settings, which the effective configuration carries under the same names. */
const formulas = table({ commands: optional(list(text({ minLength: 1 }), { maxItems: 100, drift: 'live' })) })

export const SETTINGS = {
  workspace,
  beads,
  mail,
  work,
  session,
  worktrees,
  retention,
  events,
  daemon,
  formulas,
  orders,
  chat_sessions: chatSessions,
  session_sleep: sessionSleep,
  budget,
  extmsg,
  doctor,
} as const
export type Settings = { readonly [Table in keyof typeof SETTINGS]: Static<(typeof SETTINGS)[Table]> }

// ---- whole files ----------------------------------------------------------------------------------------------------

const SHARED = {
  imports: optional(imports),
  agent_defaults: optional(agentDefaults),
  providers: optional(map(Provider)),
  upstreams: optional(map(upstream)),
  named_session: optional(list(namedSession, { identity: NAMED_SESSION_IDENTITY })),
  service: optional(list(Service, { identity: ['name'] })),
  pricing: optional(list(pricing, { identity: ['model'] })),
} as const

const CITY = {
  ...SHARED,
  workspace: optional(workspace),
  beads: optional(beads),
  mail: optional(mail),
  work: optional(work),
  session: optional(session),
  worktrees: optional(worktrees),
  retention: optional(retention),
  events: optional(events),
  daemon: optional(daemon),
  orders: optional(orders),
  chat_sessions: optional(chatSessions),
  session_sleep: optional(sessionSleep),
  budget: optional(budget),
  extmsg: optional(extmsg),
  doctor: optional(doctor),
  formulas: optional(formulas),
  agents: optional(table({ permissions: optional(list(permissionRule, { drift: 'live' })) })),
  agent: optional(list(InlineAgent, { identity: ['dir', 'name'] })),
  rigs: optional(list(rig, { identity: ['name'] })),
  defaults: optional(table({ rig: optional(table({ imports: optional(imports) })) })),
  patches: optional(
    table({
      agent: optional(list(AgentPatch)),
      named_session: optional(list(NamedSessionPatch)),
      rigs: optional(list(RigPatch)),
      providers: optional(list(ProviderPatch)),
    }),
  ),
} as const

/** A fragment: everything of `city.toml` but `include`. */
export const FragmentFile = table(CITY)
export const CityFile = table({ include: optional(texts()), ...CITY })

const packTable = table({
  name: text({ pattern: NAME, description: NAME_TEXT }),
  schema: whole(),
  version: optional(text()),
  requires_svc: optional(text()),
  description: optional(text()),
  requires: optional(list(table({ scope: oneOf(['city', 'rig']), agent: text({ minLength: 1 }) }))),
})
export const PackFile = table({
  pack: packTable,
  ...SHARED,
  patches: optional(table({ agent: optional(list(AgentPatch)) })),
  global: optional(table({ session_live: optional(list(text({ template: 'command' }))) })),
})

/** The merge of all root files: what any of them may say. */
export const RootFiles = table({ ...CITY, pack: optional(packTable), global: PackFile.properties.global })

export const SiteFile = table({
  workspace_name: optional(text({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9._-]*$' })),
  workspace_prefix: optional(text({ pattern: PREFIX, description: 'lower-case letters, digits and `-`' })),
  bootstrap_profile: optional(text()),
  rigs: optional(map(table({ path: text({ minLength: 1 }) }))),
})

/** Keys of the reference that are gone, with what to do instead; shown as the hint of the unknown key. */
export const DROPPED_KEYS: ReadonlyMap<string, string> = new Map([
  ['api', 'bind, port and permissions belong to the supervisor: `$SVC_HOME/supervisor.toml`'],
  ['beads.provider', 'work items are always kept in the city’s database'],
  ['mail.provider', 'mail is always kept in the city’s database'],
  ['events.provider', 'events are always kept in the city’s database'],
  ['events.rotation', 'write `[events.retention]` with `max_age` and `max_bytes`'],
  ['formulas.dir', 'the directory is always `formulas/`; a rig may add `formulas_dir`'],
  ['convergence', 'write a step with `retry` or `loop` in a formula'],
  ['webhook', 'run a service, or emit an event over the API'],
  ['webhooks', 'run a service, or emit an event over the API'],
  ['default_sling_targets', 'write `default_sling_target`'],
  ['inject_fragments', 'write `append_fragments`'],
  ['hooks_installed', 'write `hooks = true` or `false`'],
  ['install_agent_hooks', 'write `hooks = true` or `false`: hooks are laid for each run, and for no person'],
  ['supports_hooks', 'write `hooks = true` or `false`'],
  ['tmux_alias', 'write `session_alias`'],
  ['process_names', 'the process itself shows that it is alive'],
  ['fork_flag', 'nothing branches a conversation'],
  ['print_args', 'nothing asks a provider a single question'],
  ['title_model', 'titles come from the session: `svcctl session rename`'],
  ['runtimes', 'choose `subprocess` or `acp` in `[session] provider`'],
  ['include', 'only `city.toml` includes files, one level deep'],
  ['permission_modes', 'write an option `permission_mode` in `options_schema`'],
  [
    'emits_permission_warning',
    'a warning that stands in the way of a start is a startup dialog: `accept_startup_dialogs`',
  ],
  ['mouse_mode', 'whoever attaches has the mouse of their own terminal'],
  ['inject_assigned_skills', 'an agent has the skills of its city, its rig and its packs'],
  ['session.setup_max_timeout', '`setup_timeout` is the limit of each command'],
  ['session.nudge_ready_timeout', 'messages wait in the queue of the session: `delivery_timeout`'],
  ['session.nudge_retry_interval', 'messages wait in the queue of the session: `delivery_timeout`'],
  ['session.nudge_poll_interval', 'messages wait in the queue of the session: `delivery_timeout`'],
  ['session.socket', 'every agent runs on a terminal of its own host: there is no server of terminals'],
  ['session.display_ms', 'nothing is shown in the terminal of an agent but what the agent shows'],
  ['session.acp.nudge_busy_timeout', 'write `[session] nudge_lock_timeout`'],
  ['session.acp.output_buffer_lines', 'all of the output is kept: see `svcctl session transcript`'],
  ['daemon.observe_paths', 'the logs of harnesses are found where each harness keeps them'],
  ['chat_sessions.grace_period', 'write `[chat_sessions] idle_timeout`'],
])
