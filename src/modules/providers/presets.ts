/**
 * The built-in providers as data (decision 29; sheet 04 §6.2). Field names are those of `[providers.<name>]` in
 * `city.toml`, so a configured provider overrides a preset field by field. Nobody branches on a provider's name.
 */

export interface OptionChoice {
  readonly value: string
  readonly label: string
  /** Never leave the server: what the choice adds to the command line. */
  readonly flag_args: readonly string[]
  /** Other spellings to strip from `args` before `flag_args` are added. */
  readonly flag_aliases?: readonly (readonly string[])[]
  /** Variables that say it; those of the provider's `env` go before them. */
  readonly env?: Readonly<Record<string, string>>
  /** The mode of the agent protocol that says it. */
  readonly acp_mode?: string
}

export interface ProviderOption {
  readonly key: string
  readonly label: string
  readonly type: 'select'
  /** A choice's value; `''` passes no flag, so that the harness decides. */
  readonly default: string
  readonly choices: readonly OptionChoice[]
}

export interface ProviderPreset {
  readonly display_name: string
  /** A program name; `$NAME` stands for a variable of the environment (see `presetCommand`). */
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** `omit`: nothing but callers' messages is ever typed or passed (decision 51). */
  readonly prompt_mode: 'arg' | 'flag' | 'none' | 'omit'
  readonly prompt_flag?: string
  /** How a message is typed: `line` = text and newline; `tui` = paste, pause, Enter, look whether it became busy. */
  readonly delivery: 'line' | 'tui'
  readonly ready_prompt_prefix?: string
  readonly ready_delay_ms?: number
  /** The prompt shows before keys are accepted: the prefix proves nothing, an echo must confirm readiness. */
  readonly ready_confirmation?: true
  /** Names that prove liveness; empty = the process itself is the proof. */
  readonly process_names: readonly string[]
  readonly accept_startup_dialogs: boolean
  readonly emits_permission_warning: boolean
  readonly resume_flag?: string
  readonly resume_style?: 'flag' | 'subcommand'
  /** Passes a conversation id of ours on the first start; preferred to discovering the harness's own. */
  readonly session_id_flag?: string
  readonly fork_flag?: string
  readonly supports_acp: boolean
  /** Replaces `command` over ACP. */
  readonly acp_command?: string
  /** Replaces `args` over ACP. */
  readonly acp_args?: readonly string[]
  readonly supports_hooks: boolean
  readonly instructions_file: 'AGENTS.md' | 'CLAUDE.md'
  /** Permission modes are the option `permission_mode`. */
  readonly options_schema: readonly ProviderOption[]
  readonly print_args?: readonly string[]
  readonly title_model?: string
}

const harness = {
  args: [],
  env: {},
  delivery: 'tui',
  accept_startup_dialogs: true,
  emits_permission_warning: false,
  supports_acp: false,
  supports_hooks: true,
  instructions_file: 'AGENTS.md',
  options_schema: [],
} as const

const choice = (value: string, flag_args: readonly string[], label = titled(value)): OptionChoice => ({
  value,
  label,
  flag_args,
})
const unset = choice('', [], 'Default')
const flagged = (flag: string, values: readonly string[]) => values.map((value) => choice(value, [flag, value]))

function select(key: string, fallback: string, choices: readonly OptionChoice[]): ProviderOption {
  return { key, label: titled(key), type: 'select', default: fallback, choices }
}

const permissionModes = (modes: readonly OptionChoice[]) => select('permission_mode', 'unrestricted', modes)
const models = (flag: string, names: readonly string[]) => select('model', '', [unset, ...flagged(flag, names)])

/** It has no flags for its permissions; with none of these variables its own files decide. */
const openCodeAllows = (permission: Readonly<Record<string, 'allow' | 'ask'>>) => ({
  env: { OPENCODE_PERMISSION: JSON.stringify(permission) },
})
const OPEN_CODE_MODES = permissionModes([
  choice('default', []),
  {
    ...choice('ask', []),
    ...openCodeAllows({ edit: 'ask', bash: 'ask', webfetch: 'ask', external_directory: 'ask' }),
  },
  {
    ...choice('auto-edit', []),
    ...openCodeAllows({ edit: 'allow', bash: 'ask', webfetch: 'ask', external_directory: 'ask' }),
  },
  { ...choice('plan', ['--agent', 'plan']), acp_mode: 'plan' },
  { ...choice('unrestricted', []), ...openCodeAllows({ '*': 'allow' }) },
])

const OPEN_CODE = {
  ...harness,
  command: 'opencode',
  ready_delay_ms: 8000,
  process_names: ['opencode', 'node', 'bun'],
  supports_acp: true,
  acp_args: ['acp'],
} as const

/** In canonical order, which is the order of every list; `shell`, the embedded default, comes last. */
export const PRESETS = {
  claude: {
    ...harness,
    display_name: 'Claude Code',
    command: 'claude',
    prompt_mode: 'arg',
    ready_prompt_prefix: '❯ ',
    ready_delay_ms: 10_000,
    process_names: ['node', 'claude'],
    emits_permission_warning: true,
    resume_flag: '--resume',
    resume_style: 'flag',
    session_id_flag: '--session-id',
    fork_flag: '--fork-session',
    supports_acp: true,
    // The adapter is a package of its own: @agentclientprotocol/claude-agent-acp (decision 73).
    acp_command: 'claude-agent-acp',
    acp_args: [],
    instructions_file: 'CLAUDE.md',
    options_schema: [
      permissionModes([
        { ...choice('auto-edit', ['--permission-mode', 'acceptEdits']), acp_mode: 'acceptEdits' },
        { ...choice('full-auto', ['--permission-mode', 'dontAsk']), acp_mode: 'dontAsk' },
        { ...choice('plan', ['--permission-mode', 'plan']), acp_mode: 'plan' },
        {
          ...choice('unrestricted', ['--dangerously-skip-permissions']),
          flag_aliases: [['--permission-mode', 'bypassPermissions']],
          acp_mode: 'bypassPermissions',
        },
      ]),
      select('effort', 'max', [unset, ...flagged('--effort', ['low', 'medium', 'high', 'max'])]),
      models('--model', ['opus', 'sonnet', 'haiku']),
    ],
    print_args: ['-p'],
    title_model: 'haiku',
  },
  codex: {
    ...harness,
    display_name: 'Codex',
    command: 'codex',
    prompt_mode: 'arg',
    ready_prompt_prefix: '› ',
    ready_delay_ms: 3000,
    process_names: ['codex', 'codex-raw'],
    resume_flag: 'resume',
    resume_style: 'subcommand',
    options_schema: [
      permissionModes([
        choice('suggest', ['--ask-for-approval', 'untrusted', '--sandbox', 'read-only']),
        choice('auto-edit', ['--full-auto']),
        { ...choice('unrestricted', ['--dangerously-bypass-approvals-and-sandbox']), flag_aliases: [['--yolo']] },
      ]),
      models('--model', ['gpt-5-codex', 'gpt-5', 'o4-mini']),
      select('effort', '', [
        unset,
        ...['minimal', 'low', 'medium', 'high', 'xhigh'].map((level) =>
          choice(level, ['-c', `model_reasoning_effort=${level}`]),
        ),
      ]),
      select('sandbox', '', [unset, ...flagged('--sandbox', ['read-only', 'workspace-write', 'danger-full-access'])]),
    ],
    print_args: ['exec'],
    title_model: 'o4-mini',
  },
  gemini: {
    ...harness,
    display_name: 'Gemini CLI',
    command: 'gemini',
    prompt_mode: 'arg',
    ready_prompt_prefix: '> ',
    ready_delay_ms: 5000,
    process_names: ['gemini', 'node'],
    resume_flag: '--resume',
    resume_style: 'flag',
    options_schema: [
      permissionModes([
        choice('default', ['--approval-mode', 'default']),
        choice('auto-edit', ['--approval-mode', 'auto_edit']),
        choice('plan', ['--approval-mode', 'plan']),
        { ...choice('unrestricted', ['--approval-mode', 'yolo']), flag_aliases: [['--yolo'], ['-y']] },
      ]),
      models('--model', ['gemini-2.5-pro', 'gemini-2.5-flash']),
    ],
    print_args: ['-p'],
    title_model: 'gemini-2.5-flash',
  },
  grok: {
    ...harness,
    display_name: 'Grok',
    command: 'grok',
    prompt_mode: 'none',
    ready_delay_ms: 12_000,
    ready_confirmation: true,
    process_names: ['grok'],
    resume_flag: '--resume',
    resume_style: 'flag',
    supports_hooks: false,
    options_schema: [
      permissionModes([
        choice('default', []),
        choice('auto-edit', ['--permission-mode', 'acceptEdits']),
        choice('plan', ['--permission-mode', 'plan']),
        choice('full-auto', ['--permission-mode', 'auto']),
        choice('unrestricted', ['--always-approve']),
      ]),
      select('effort', '', [unset, ...flagged('--effort', ['low', 'medium', 'high'])]),
      models('--model', ['grok-code-fast-1', 'grok-4']),
    ],
    print_args: ['-p'],
  },
  kimi: {
    ...harness,
    display_name: 'Kimi',
    command: 'kimi',
    args: ['--yolo', '--no-thinking'],
    prompt_mode: 'none',
    ready_delay_ms: 5000,
    process_names: ['kimi', 'python'],
    resume_flag: '--session',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['--yolo', '--no-thinking', 'acp'],
    options_schema: [models('--model', ['kimi-k2-turbo-preview', 'kimi-for-coding'])],
    print_args: ['--quiet', '--prompt'],
  },
  kiro: {
    ...harness,
    display_name: 'Kiro',
    command: 'kiro-cli',
    // An `--agent` of ours is added where its definition is installed in the work directory, not here.
    args: ['chat', '--no-interactive', '--trust-all-tools'],
    prompt_mode: 'arg',
    ready_delay_ms: 5000,
    process_names: ['kiro-cli', 'kiro', 'node'],
    supports_acp: true,
    acp_args: ['acp'],
  },
  cursor: {
    ...harness,
    display_name: 'Cursor Agent',
    command: 'cursor-agent',
    args: ['-f'],
    prompt_mode: 'arg',
    ready_prompt_prefix: '→ ',
    ready_delay_ms: 10_000,
    process_names: ['cursor-agent'],
    resume_flag: '--resume',
    resume_style: 'flag',
    options_schema: [
      {
        ...select('mcp_approval', 'prompt', [choice('prompt', []), choice('approve', ['--approve-mcps'])]),
        label: 'MCP approval',
      },
    ],
  },
  copilot: {
    ...harness,
    display_name: 'GitHub Copilot',
    command: 'copilot',
    args: ['--yolo'],
    prompt_mode: 'none',
    ready_prompt_prefix: '❯ ',
    ready_delay_ms: 5000,
    process_names: ['copilot'],
    resume_flag: '--resume',
    resume_style: 'flag',
  },
  amp: {
    ...harness,
    display_name: 'Amp',
    command: 'amp',
    args: ['--dangerously-allow-all', '--no-ide'],
    prompt_mode: 'arg',
    process_names: ['amp'],
    resume_flag: 'threads continue',
    resume_style: 'subcommand',
    supports_hooks: false,
  },
  opencode: {
    ...OPEN_CODE,
    display_name: 'OpenCode',
    prompt_mode: 'flag',
    prompt_flag: '--prompt',
    resume_flag: '--session',
    resume_style: 'flag',
    options_schema: [OPEN_CODE_MODES, models('--model', ['anthropic/claude-sonnet-4-5', 'openai/gpt-5'])],
  },
  mimocode: {
    ...harness,
    display_name: 'MiMo Code',
    command: 'mimo',
    args: ['--never-ask'],
    prompt_mode: 'flag',
    prompt_flag: '--prompt',
    ready_delay_ms: 8000,
    process_names: ['mimo', 'node', 'bun'],
    resume_flag: '--session',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [models('--model', ['mimo-v2-flash'])],
  },
  groq: {
    ...OPEN_CODE,
    display_name: 'Groq (OpenCode)',
    prompt_mode: 'none',
    options_schema: [
      OPEN_CODE_MODES,
      select(
        'model',
        'groq/openai/gpt-oss-120b',
        flagged('--model', ['groq/openai/gpt-oss-120b', 'groq/llama-3.3-70b-versatile']),
      ),
    ],
  },
  cerebras: {
    ...OPEN_CODE,
    display_name: 'Cerebras (OpenCode)',
    prompt_mode: 'none',
    options_schema: [
      OPEN_CODE_MODES,
      select(
        'model',
        'cerebras/gpt-oss-120b',
        flagged('--model', ['cerebras/gpt-oss-120b', 'cerebras/qwen-3-coder-480b']),
      ),
    ],
  },
  auggie: {
    ...harness,
    display_name: 'Auggie',
    command: 'auggie',
    args: ['--allow-indexing'],
    prompt_mode: 'arg',
    process_names: ['auggie'],
    resume_flag: '--resume',
    resume_style: 'flag',
    supports_hooks: false,
  },
  // The extension (`-e`) of pi and the hook file (`--hook`) of omp are added where they are installed, not here.
  pi: {
    ...harness,
    display_name: 'Pi',
    command: 'pi',
    prompt_mode: 'arg',
    ready_delay_ms: 8000,
    process_names: ['pi', 'node', 'bun'],
    resume_flag: '--session',
    resume_style: 'flag',
    options_schema: [models('--model', ['sonnet', 'gpt-5'])],
  },
  omp: {
    ...harness,
    display_name: 'Oh My Pi',
    command: 'omp',
    prompt_mode: 'arg',
    process_names: ['omp', 'node', 'bun'],
    resume_flag: '--resume',
    resume_style: 'flag',
  },
  antigravity: {
    ...harness,
    display_name: 'Antigravity',
    command: 'agy',
    prompt_mode: 'flag',
    prompt_flag: '--prompt-interactive',
    ready_prompt_prefix: '> ',
    ready_delay_ms: 5000,
    process_names: ['agy'],
    resume_flag: '--conversation',
    resume_style: 'flag',
    options_schema: [
      permissionModes([
        choice('standard', []),
        choice('accept-edits', ['--mode', 'accept-edits']),
        choice('plan', ['--mode', 'plan']),
        choice('unrestricted', ['--dangerously-skip-permissions']),
      ]),
      select('effort', '', [unset, ...flagged('--effort', ['low', 'medium', 'high'])]),
      models('--model', ['gemini-3.1-pro', 'gemini-3.6-flash']),
      select('sandbox', '', [unset, choice('on', ['--sandbox'])]),
    ],
    print_args: ['--print'],
  },
  shell: {
    ...harness,
    display_name: 'Shell',
    command: '$SHELL',
    prompt_mode: 'omit',
    delivery: 'line',
    process_names: [],
    accept_startup_dialogs: false,
    supports_hooks: false,
  },
} as const satisfies Readonly<Record<string, ProviderPreset>>

export type PresetName = keyof typeof PRESETS
export const PRESET_NAMES = Object.keys(PRESETS).filter(isPreset)

export function isPreset(name: string): name is PresetName {
  return Object.hasOwn(PRESETS, name)
}

/** The preset of that name, or nothing. */
export function findPreset(name: string): ProviderPreset | undefined {
  return isPreset(name) ? PRESETS[name] : undefined
}

/** The program that a preset starts: a `$NAME` comes from the environment, and is `/bin/sh` where that has none. */
export function presetCommand(preset: ProviderPreset, env: Readonly<Record<string, string | undefined>>): string {
  if (!preset.command.startsWith('$')) return preset.command
  return env[preset.command.slice(1)] || '/bin/sh'
}

/** What a readiness probe needs to know of each preset. */
export interface ProbeTarget {
  readonly name: string
  readonly display_name: string
  readonly command: string
}

export function probeTargets(env: Readonly<Record<string, string | undefined>>): readonly ProbeTarget[] {
  return PRESET_NAMES.map((name) => {
    const preset = PRESETS[name]
    return { name, display_name: preset.display_name, command: presetCommand(preset, env) }
  })
}

function titled(key: string): string {
  const words = key.replaceAll(/[_-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
