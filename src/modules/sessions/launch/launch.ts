/**
 * From configuration to what is run: command line, prompt, environment, set-up commands (sheet 04 §§1.1, 1.2, 6;
 * decisions 51, 52, 65). Pure: it reads nothing and starts nothing.
 */

import { join } from 'node:path'
import type { AgentApi } from '../../../contract/access.ts'
import { cut } from '../../../contract/base/text.ts'
import type { RuntimeName } from '../../../contract/sessions/session-model.ts'
import { findHooks, usageLogOf } from '../../../harnesses/all.ts'
import { type HookPlace, type LaidHooks, usageLogEnv } from '../../../harnesses/hooks.ts'
import { isShellProgram } from '../../../harnesses/shell.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { type Environment, expanded } from '../../../kernel/processes.ts'
import { plainText } from '../../../messaging/hostile-text.ts'
import type { Identity, LaunchSpec, McpServerSpec } from '../../../runtimes/process/runtime.ts'
import { type AgentView, type ProviderView, rigOf, type SessionsView } from '../record/config-view.ts'
import type { Policy } from '../record/policy.ts'
import type { SessionWorktree } from '../record/ports.ts'
import type { LaunchFacts, SessionRecord } from '../record/record.ts'
import { inheritedEnvironment, terminalDefaults } from './inherited.ts'
import { effectiveOptions, optionsEnv, settingsOf, withOptions } from './options.ts'
import type { Overlay } from './overlay.ts'

const COLUMNS = 200
const ROWS = 50
/** Longer ones are typed: one argument takes at most 128 KiB. */
const MAX_ARGUMENT_BYTES = 100_000

export interface LaunchContext {
  readonly config: SessionsView
  readonly agent: AgentView | undefined
  readonly provider: ProviderView
  /** Which harness it is, for what is known of its screen. */
  readonly family: string
  readonly interruptKey: LaunchSpec['interruptKey']
  readonly policy: Policy
  /** Home of the supervisor, and the directory with `svcctl`. */
  readonly home: string
  readonly bin: string
  /** The supervisor's own environment. */
  readonly env: Environment
  readonly workDir: string
  readonly worktree?: SessionWorktree | undefined
  /** Rendered; empty without one. */
  readonly prompt: string
  /** A message that goes with the first prompt. */
  readonly message: string | undefined
  readonly render: (template: string, values: Readonly<Record<string, string>>) => string
  /** Its token for the API, where that asks for one. */
  readonly access: string | undefined
  /** What it is to use beside its own tools. */
  readonly mcpServers: readonly McpServerSpec[]
  /** For a conversation of our own naming. */
  readonly uuid: () => string
  readonly now: number
}

export interface LaunchPlan {
  readonly spec: LaunchSpec
  readonly facts: LaunchFacts
  /** Of the conversation that is resumed. */
  readonly conversationId: string | undefined
  readonly resumed: boolean
  /** The prompt went into the command line, the message of the creation with it. */
  readonly promptInLaunch: boolean
  /** To be typed when it is ready; undefined: nothing. */
  readonly typedPrompt: string | undefined
  readonly nudge: string | undefined
  /** What is copied into the work directory; the first one wins. */
  readonly overlays: readonly Overlay[]
  readonly preStart: readonly string[]
  readonly setup: readonly string[]
  /** What makes its worktree ready. */
  readonly worktreeSetup: readonly string[]
  readonly setupScript: string | undefined
  readonly live: readonly string[]
  /** What its token lets it do. */
  readonly api: AgentApi
  /** What lets its harness tell of itself: files to write, and variables that name them. */
  readonly hooks: Pick<LaidHooks, 'files' | 'env'>
}

const LOG_PLACES: ReadonlySet<string> = new Set([
  'HOME',
  'CLAUDE_CONFIG_DIR',
  'CODEX_HOME',
  'QWEN_HOME',
  'QWEN_RUNTIME_DIR',
  'GEMINI_CLI_HOME',
])

const runDirectory = (city: string, sessionId: string, generation: number): string =>
  join(city, '.svc', 'runtime', 'sessions', sessionId, String(generation))

export function planLaunch(session: SessionRecord, identity: Identity, context: LaunchContext): LaunchPlan {
  const { agent, provider, config, policy } = context
  const directory = runDirectory(config.dir, session.id, identity.generation)
  const mode = agent?.prompt_mode ?? provider.prompt_mode ?? 'none'
  const conversation = conversationOf(session, context)
  const first = conversation.resumed || mode === 'omit' ? '' : firstPrompt(session, context)
  const inLaunch = first !== '' && takesPrompt(session.runtime, mode, first)
  const env = environmentOf(session, identity, context)
  const plain = commandOf(session, context, conversation)
  const hooks = hooksOf(session, context, { directory, args: plain.args, env })
  const base = { ...plain, args: [...plain.args, ...hooks.args] }
  const args = inLaunch
    ? [...base.args, ...promptArgs(mode, agent?.prompt_flag ?? provider.prompt_flag, first)]
    : base.args
  const delivery = provider.delivery ?? 'line'
  const io = session.runtime === 'acp' ? 'pipes' : (provider.io ?? 'pty')
  // It asks no model.
  const shell = delivery === 'line' && isShell(base)
  const spec: LaunchSpec = {
    identity,
    name: session.session_name,
    directory,
    workDir: context.workDir,
    command: base.command,
    args,
    env,
    io,
    columns: COLUMNS,
    rows: ROWS,
    delivery,
    debounceMs: policy.debounceMs,
    interruptKey: context.interruptKey,
    ...(shell ? { shell } : {}),
    ...(session.runtime === 'acp' ? { acp: acpOf(session, conversation, context) } : {}),
  }
  const values = commandValues(session, context)
  const commands = (templates: readonly string[] = []) => templates.map((one) => context.render(one, values))
  const typed = mode === 'omit' || first === '' || inLaunch ? undefined : first
  return {
    spec,
    facts: {
      directory,
      io,
      delivery,
      debounceMs: spec.debounceMs,
      interruptKey: spec.interruptKey,
      ready: readyHints(context, base.command),
      columns: COLUMNS,
      rows: ROWS,
      oneShot: agent?.lifecycle === 'one_shot',
      shell,
      ...(hooks.asks ? { asksByHook: true } : {}),
      ...(shell || counts(session, context, hooks) ? {} : { uncounted: true }),
      ...(conversation.resumed || conversation.id === undefined ? {} : { conversation: conversation.id }),
      logPlaces: Object.fromEntries(Object.entries(spec.env).filter(([name]) => LOG_PLACES.has(name))),
    },
    conversationId: conversation.resumed ? conversation.id : undefined,
    resumed: conversation.resumed,
    promptInLaunch: inLaunch,
    typedPrompt: typed,
    nudge: mode === 'omit' ? undefined : agent?.nudge,
    overlays: agent === undefined ? [] : overlaysOf(agent, context),
    preStart: commands(agent?.pre_start),
    setup: commands(agent?.session_setup),
    worktreeSetup: commands(agent?.worktree_setup ?? config.worktrees.setup),
    setupScript: agent?.paths['session_setup_script'],
    live: [
      ...(agent?.global_live ?? []).map(({ command, config_dir }) =>
        context.render(command, { ...values, ConfigDir: config_dir }),
      ),
      ...commands(agent?.session_live),
    ],
    api: agent?.api ?? 'work',
    hooks,
  }
}

// ---- the command line -----------------------------------------------------------------------------------------------

interface Conversation {
  readonly id: string | undefined
  readonly resumed: boolean
  /** It begins with what was said in that one. */
  readonly forkOf?: string | undefined
}

/** A key that can be resumed by is resumed; else a new conversation begins, of our own naming where the harness lets us. */
function conversationOf(session: SessionRecord, { agent, provider, uuid }: LaunchContext): Conversation {
  const fresh = session.fresh || (agent?.wake_mode === 'fresh' && session.generation > 0)
  const resumable =
    session.runtime === 'acp' ||
    (agent?.resume_command ?? provider.resume_command) !== undefined ||
    provider.resume_flag !== undefined
  if (!fresh && resumable && session.conversation_id !== undefined)
    return { id: session.conversation_id, resumed: true }
  if (!fresh && session.runtime === 'acp' && session.fork_of !== undefined)
    return { id: undefined, resumed: false, forkOf: session.fork_of }
  const named =
    session.runtime !== 'acp' && provider.session_id_flag !== undefined && agent?.start_command === undefined
  return { id: named ? uuid() : undefined, resumed: false }
}

function acpOf(
  session: SessionRecord,
  { id, resumed, forkOf }: Conversation,
  { provider, agent, policy, mcpServers }: LaunchContext,
): NonNullable<LaunchSpec['acp']> {
  const settings = settingsOf(provider, effectiveOptions(provider, agent, session.options))
  return {
    handshakeTimeoutMs: policy.handshakeTimeoutMs,
    ...(resumed && id !== undefined ? { resumeSessionId: id } : {}),
    ...(forkOf === undefined ? {} : { forkSessionId: forkOf }),
    settings,
    mcpServers,
    ...(provider.acp_files === undefined ? {} : { files: provider.acp_files }),
  }
}

interface CommandLine {
  readonly command: string
  readonly args: readonly string[]
}

function commandOf(session: SessionRecord, context: LaunchContext, conversation: Conversation): CommandLine {
  const { agent, provider } = context
  const acp = session.runtime === 'acp'
  if (agent?.start_command !== undefined) {
    const line = splitCommand(agent.start_command)
    return { ...line, args: [...line.args, ...(agent.args ?? [])] }
  }
  const resume = agent?.resume_command ?? provider.resume_command
  if (!acp && conversation.resumed && resume !== undefined)
    return splitCommand(context.render(resume, { SessionKey: conversation.id ?? '' }))
  const given = (acp ? provider.acp_args : undefined) ?? agent?.args ?? provider.args ?? []
  const options = effectiveOptions(provider, agent, session.options)
  // Arguments for ACP are those of another interface, which may not know the flags.
  const args = withOptions(provider, given, acp && provider.acp_args !== undefined ? {} : options)
  return {
    command: programOf(session.runtime, undefined, provider, context.env),
    args: acp ? args : withConversation(args, conversation, provider),
  }
}

/** A shell that reads its lines from the terminal, and runs no script. */
function isShell({ command, args }: CommandLine): boolean {
  if (!isShellProgram(command)) return false
  const words = args.filter((_, index) => !SHELL_VALUES.has(args[index - 1] ?? ''))
  return words.every((word) => /^[-+]/.test(word) && !/^-[A-Za-z]*c/.test(word))
}

/** Flags of shells that a word follows. */
const SHELL_VALUES: ReadonlySet<string> = new Set(['--rcfile', '--init-file', '-O', '+O', '-o', '+o'])

/** Why it cannot be run so: a program that speaks no ACP only looks as if it hung. */
export function refusedTransport(
  runtime: RuntimeName,
  agent: AgentView | undefined,
  provider: ProviderView,
): string | undefined {
  if (runtime !== 'acp' || agent?.start_command !== undefined || provider.supports_acp === true) return undefined
  return 'the provider does not speak ACP: its `supports_acp` is not set'
}

/** The program that a session would start, for who wants to know whether it is there. */
export function programOf(
  runtime: RuntimeName,
  agent: AgentView | undefined,
  provider: ProviderView,
  env: Environment,
): string {
  if (agent?.start_command !== undefined) return splitCommand(agent.start_command).command
  const name = (runtime === 'acp' ? provider.acp_command : undefined) ?? provider.command ?? ''
  return expanded(name, env) || '/bin/sh'
}

function withConversation(args: readonly string[], { id, resumed }: Conversation, provider: ProviderView) {
  if (id === undefined) return args
  const { resume_flag: flag, resume_style: style, session_id_flag: own } = provider
  if (!resumed) return own === undefined ? args : [...args, own, id]
  if (flag === undefined) return args
  // A subcommand may be several words: `threads continue`.
  return style === 'subcommand' ? [...flag.split(' '), id, ...args] : [...args, flag, id]
}

/** A command as people write it: words and quotes; anything else is for a shell. */
export function splitCommand(text: string): CommandLine {
  const words: string[] = []
  const simple = /\s*(?:"([^"\\$`]*)"|'([^']*)'|([^\s"'\\$`|&;<>()*?[\]#~!{}]+))(?=\s|$)/y
  let at = 0
  const trimmed = text.trim()
  while (at < trimmed.length) {
    simple.lastIndex = at
    const match = simple.exec(trimmed)
    if (match === null) return { command: '/bin/sh', args: ['-c', trimmed] }
    words.push(match[1] ?? match[2] ?? match[3] ?? '')
    at = simple.lastIndex
  }
  const [command = '/bin/sh', ...args] = words
  // `NAME=value program` is a shell's business too.
  return /^\w+=/.test(command) ? { command: '/bin/sh', args: ['-c', trimmed] } : { command, args }
}

// ---- hooks ----------------------------------------------------------------------------------------------------------

const NO_HOOKS = { files: [], args: [], env: {}, asks: false }

/** With the log of its usage. A protocol says all of it by itself; a command of the configuration's own takes no flags of ours. */
function hooksOf(
  { runtime }: SessionRecord,
  { agent, provider, family, bin }: LaunchContext,
  place: Omit<HookPlace, 'command'>,
): LaidHooks & { readonly asks: boolean } {
  const hooks = findHooks(family)
  const own = agent?.start_command ?? agent?.resume_command ?? provider.resume_command
  const off = (agent?.hooks ?? provider.hooks) === false
  if (runtime === 'acp' || off || own !== undefined) return NO_HOOKS
  const command = `'${join(bin, 'svcctl').replaceAll("'", `'\\''`)}' session report --from ${family}`
  const laid = hooks?.lay?.({ ...place, command })
  const log = usageLogEnv(usageLogOf(family)?.told, place)
  if (laid === undefined) return { ...NO_HOOKS, env: log }
  return { ...laid, env: { ...laid.env, ...log }, asks: hooks?.permissionSec !== undefined }
}

/** Whether a protocol, or a log, tells what its turns use. */
function counts({ runtime }: SessionRecord, { family }: LaunchContext, { env }: Pick<LaidHooks, 'env'>): boolean {
  const log = usageLogOf(family)
  if (runtime === 'acp' || log?.told === undefined) return runtime === 'acp' || log !== undefined
  return Object.hasOwn(env, log.told.variable)
}

// ---- the prompt -----------------------------------------------------------------------------------------------------

/** Beacon, prompt and the message of the creation; empty where there is neither prompt nor message. */
function firstPrompt(session: SessionRecord, { agent, config, prompt, message, now }: LaunchContext): string {
  if (agent === undefined) return ''
  if (prompt === '' && message === undefined) return ''
  // So that a person finds the conversation again in the harness's own list.
  const beacon = `[${config.name}] ${session.agent} • ${cut(isoTime(now), 19)}`
  // It may go as an argument, where no runtime looks at it.
  return plainText([beacon, prompt, message].filter((part) => part !== undefined && part !== '').join('\n\n'))
}

const takesPrompt = (runtime: RuntimeName, mode: string, text: string): boolean =>
  runtime !== 'acp' && (mode === 'arg' || mode === 'flag') && Buffer.byteLength(text) <= MAX_ARGUMENT_BYTES

const promptArgs = (mode: string, flag: string | undefined, text: string): readonly string[] =>
  mode === 'flag' && flag !== undefined ? [flag, text] : [text]

function readyHints({ agent, provider, family }: LaunchContext, program: string): LaunchFacts['ready'] {
  const promptPrefix = agent?.ready_prompt_prefix ?? provider.ready_prompt_prefix
  const delayMs = agent?.ready_delay_ms ?? provider.ready_delay_ms
  return {
    family,
    program,
    ...(promptPrefix === undefined || promptPrefix === '' ? {} : { promptPrefix }),
    ...(delayMs === undefined ? {} : { delayMs }),
    confirm: provider.ready_confirmation === true,
    acceptDialogs: provider.accept_startup_dialogs === true,
  }
}

// ---- the environment ------------------------------------------------------------------------------------------------

function environmentOf(session: SessionRecord, identity: Identity, context: LaunchContext): Record<string, string> {
  const { config, agent, provider, env, home, bin, worktree } = context
  const passed = inheritedEnvironment(env, config.session, provider)
  const rig = rigOf(config, session.rig)
  const chosen = optionsEnv(provider, effectiveOptions(provider, agent, session.options))
  const configured = {
    ...chosen,
    ...config.workspace.env,
    ...provider.env,
    ...upstreamEnv(context),
    ...agent?.env,
    ...session.env,
  }
  return {
    ...passed,
    ...terminalDefaults(passed),
    ...Object.fromEntries(Object.entries(configured).map(([name, value]) => [name, expanded(value, env)])),
    PATH: [bin, passed['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'].join(':'),
    SVC_HOME: home,
    ...(context.access === undefined ? {} : { SVC_TOKEN: context.access }),
    SVC_SESSION_ID: session.id,
    SVC_SESSION_NAME: session.session_name,
    ...(session.alias === undefined ? {} : { SVC_ALIAS: session.alias }),
    SVC_TEMPLATE: session.template,
    SVC_AGENT: session.agent,
    SVC_SESSION_ORIGIN: session.origin,
    SVC_RUNTIME_EPOCH: String(identity.generation),
    SVC_CONTINUATION_EPOCH: String(session.continuation_epoch),
    SVC_INSTANCE_TOKEN: identity.token,
    SVC_PROVIDER: session.provider,
    SVC_DIR: context.workDir,
    SVC_CITY: config.name,
    SVC_CITY_PATH: config.dir,
    SVC_CITY_RUNTIME_DIR: join(config.dir, '.svc', 'runtime'),
    SVC_BIN: join(bin, 'svcctl'),
    ...(session.rig === undefined ? {} : { SVC_RIG: session.rig }),
    ...(rig?.path === undefined ? {} : { SVC_RIG_ROOT: rig.path }),
    ...(worktree === undefined ? {} : { SVC_WORKTREE: worktree.path, SVC_BRANCH: worktree.branch }),
  }
}

/** Endpoint and keys of the agent's upstream, under the names that its provider reads. */
function upstreamEnv({ config, agent, provider }: LaunchContext): Readonly<Record<string, string>> {
  const upstream = agent?.upstream === undefined ? undefined : config.upstreams[agent.upstream]
  if (upstream === undefined) return {}
  const names = provider.upstream_env ?? {}
  const pairs = [
    [upstream.base_url_env ?? names.base_url, upstream.base_url],
    [upstream.api_key_env ?? names.api_key, upstream.api_key],
    [upstream.auth_token_env ?? names.auth_token, upstream.auth_token],
  ] as const
  const known = pairs.filter(
    (pair): pair is readonly [string, string] => pair[0] !== undefined && pair[1] !== undefined,
  )
  return { ...Object.fromEntries(known), ...upstream.env }
}

// ---- commands of the agent ------------------------------------------------------------------------------------------

/** Variables of the agent's command templates. */
function commandValues(
  session: SessionRecord,
  { config, agent, workDir }: Pick<LaunchContext, 'config' | 'agent' | 'workDir'>,
) {
  return {
    ...pathValues(config, session.agent, agent),
    Session: session.session_name,
    WorkDir: workDir,
    ConfigDir: agent?.config_dir ?? config.dir,
  }
}

/** Its own directory, then what the packs of its scope have for everybody, as it was staged (packs/contents/materialise.ts). */
function overlaysOf(agent: AgentView, { config, family }: LaunchContext): readonly Overlay[] {
  const own = agent.paths['overlay_dir']
  const providers = [...new Set([agent.provider, family])]
  const scope = agent.dir === '' ? 'city' : join('rigs', agent.dir)
  const staged = join(config.dir, '.svc', 'runtime', 'packs', scope, 'overlay')
  return [
    ...(own === undefined ? [] : [{ directory: own, providers, needed: true }]),
    { directory: staged, providers, needed: false },
  ]
}

/** Variables of its paths and queries. */
export function pathValues(config: SessionsView, name: string, agent: AgentView | undefined) {
  return {
    Agent: name,
    AgentBase: agent?.base_name ?? name,
    Rig: agent?.dir ?? '',
    RigRoot: rigOf(config, agent?.dir)?.path ?? '',
    CityRoot: config.dir,
    CityName: config.name,
  }
}

/** Where it works: its own directory, else its rig's, else the city's. */
export function workDirOf(
  config: SessionsView,
  name: string,
  agent: AgentView | undefined,
  render: LaunchContext['render'],
): string {
  const root = rigOf(config, agent?.dir)?.path ?? config.dir
  if (agent?.work_dir === undefined || agent.work_dir === '') return root
  const rendered = render(agent.work_dir, pathValues(config, name, agent))
  return rendered.startsWith('/') ? rendered : join(root, rendered)
}
