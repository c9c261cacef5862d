/** Claude Code, as a harness. */
import {
  COMMON,
  choice,
  flagged,
  type Harness,
  MOVING_SIGNS,
  models,
  OWN_DEFAULT,
  permissionModes,
  select,
  unset,
} from './harness.ts'
import { type HarnessHooks, hookGroups } from './hooks.ts'

/**
 * Claude Code 2.1.197: `--settings` takes a file whose hooks run beside those of a person's own settings (its help, and
 * run here). The key of a conversation that nobody has said anything in cannot be resumed, so `SessionStart` tells none.
 * A person's Escape is told by no event; `idle_prompt` comes a minute after.
 */
const hooks: Pick<HarnessHooks, 'events' | 'permissionSec'> = {
  events: {
    SessionStart: { activity: 'idle', only: { field: 'source', values: ['startup', 'resume'] } },
    UserPromptSubmit: { activity: 'in-turn', used: true },
    Notification: { activity: 'idle', only: { field: 'notification_type', values: ['idle_prompt'] } },
    PermissionRequest: { permission: true, used: true },
    Stop: { activity: 'idle', used: true },
    StopFailure: { activity: 'idle', used: true },
  },
  permissionSec: 600,
}

export const claude: Harness = {
  hooks: {
    ...hooks,
    lay: ({ directory, command, args }) => {
      // The flag counts once, and who gives it means it.
      if (args.some((word) => word === '--settings' || word.startsWith('--settings='))) return undefined
      const path = `${directory}/hooks-settings.json`
      return { files: [{ path, settings: { hooks: hookGroups(hooks, command) } }], args: ['--settings', path], env: {} }
    },
  },
  preset: {
    ...COMMON,
    display_name: 'Claude Code',
    command: 'claude',
    prompt_mode: 'arg',
    ready_prompt_prefix: '❯ ',
    ready_delay_ms: 10_000,
    resume_flag: '--resume',
    resume_style: 'flag',
    session_id_flag: '--session-id',
    supports_acp: true,
    // The adapter is a package of its own: @agentclientprotocol/claude-agent-acp (decision 73).
    acp_command: 'claude-agent-acp',
    acp_args: [],
    instructions_file: 'CLAUDE.md',
    options_schema: [
      // Its own default was `auto` where the account has it, else `default`, from 2.1.283 on.
      permissionModes([
        OWN_DEFAULT,
        { ...choice('ask', ['--permission-mode', 'default']), acp_mode: 'default' },
        { ...choice('auto-edit', ['--permission-mode', 'acceptEdits']), acp_mode: 'acceptEdits' },
        // A classifier decides instead of a person; `dontAsk` would deny all that is not allowed beforehand.
        { ...choice('full-auto', ['--permission-mode', 'auto']), acp_mode: 'auto' },
        { ...choice('plan', ['--permission-mode', 'plan']), acp_mode: 'plan' },
        {
          ...choice('unrestricted', ['--dangerously-skip-permissions']),
          flag_aliases: [['--permission-mode', 'bypassPermissions']],
          acp_mode: 'bypassPermissions',
        },
      ]),
      select('effort', '', [unset, ...flagged('--effort', ['low', 'medium', 'high', 'xhigh', 'max'])]),
      models('--model', ['opus', 'sonnet', 'haiku']),
    ],
  },
  screen: {
    // 2.1.330 draws the words below its input line, where they stand still while its spinner turns above.
    busy: [{ words: 'esc to interrupt', where: 'below', rows: 2, faint: true }, ...MOVING_SIGNS],
    placeholders: ['try "'],
    startupDialogs: [
      { id: 'trust', match: ['do you trust the files in this folder', 'yes, proceed'], choose: 'yes' },
      { id: 'trust', match: ['is this a project you created or one you trust', 'yes, i trust'], choose: 'yes' },
      { id: 'bypass-permissions', match: ['bypass permissions mode', 'yes, i accept'], choose: 'yes, i accept' },
      {
        id: 'custom-api-key',
        match: ['detected a custom api key', 'do you want to use this api key'],
        choose: 'no',
      },
    ],
    approval: {
      questions: ['do you want to', 'would you like to'],
      tools: {
        'bash command': 'Bash',
        'edit file': 'Edit',
        'create file': 'Write',
        'write file': 'Write',
        'overwrite file': 'Write',
        'read file': 'Read',
        'read files': 'Read',
        'edit notebook': 'NotebookEdit',
        fetch: 'WebFetch',
        'web search': 'WebSearch',
      },
    },
  },
  interrupt: { key: 'ctrl-c', restores: true },
  sources: [
    { version: '2.1.330', where: 'npm @anthropic-ai/claude-code: claude --help, run' },
    { version: '2.1.283', where: 'https://code.claude.com/docs/en/permission-modes' },
    { version: '0.101.0', where: 'npm @agentclientprotocol/claude-agent-acp: run over ACP' },
  ],
  // Session logs of 2.0: an answer of the model is a line per block of it, each with the usage so far.
  usage: {
    mark: '"usage"',
    limit: { mark: '"isApiErrorMessage":true', text: 'message.content.0.text' },
    where: { type: 'assistant' },
    id: 'message.id',
    model: 'message.model',
    at: 'timestamp',
    input: ['message.usage.input_tokens'],
    output: ['message.usage.output_tokens'],
    cache_read: 'message.usage.cache_read_input_tokens',
    cache_write: 'message.usage.cache_creation_input_tokens',
  },
}
