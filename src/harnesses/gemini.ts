/** Gemini CLI, as a harness. */
import { BY_ESCAPE, COMMON, choice, type Harness, MOVING_SIGNS, models, permissionModes } from './harness.ts'
import type { HarnessHooks } from './hooks.ts'

/**
 * Gemini CLI 0.61.0 reads hooks from a person's settings, a project's, and those of the machine, which must belong to root
 * wherever GEMINI_CLI_SYSTEM_SETTINGS_PATH points (docs/hooks/reference.md and bundle of the package, run here). So none
 * can be laid for one run; who writes `svcctl session report --from gemini` into settings of his own is heard. It has no
 * hook that may grant a tool: `Notification` only tells of its dialog, which its screen has.
 */
const hooks: HarnessHooks = {
  events: {
    SessionStart: {},
    BeforeAgent: { activity: 'in-turn', used: true },
    AfterAgent: { activity: 'idle', used: true },
    Notification: {
      asks: { kind: 'approval', prompt: 'message' },
      only: { field: 'notification_type', values: ['ToolPermission'] },
    },
  },
}

export const gemini: Harness = {
  hooks,
  preset: {
    ...COMMON,
    display_name: 'Gemini CLI',
    command: 'gemini',
    prompt_mode: 'flag',
    prompt_flag: '--prompt-interactive',
    ready_prompt_prefix: '> ',
    ready_delay_ms: 5000,
    resume_flag: '--resume',
    resume_style: 'flag',
    session_id_flag: '--session-id',
    supports_acp: true,
    acp_args: ['--acp'],
    // It takes an answer that a file is not there for a failure, and then writes no new file (0.61.0, run).
    acp_files: false,
    options_schema: [
      permissionModes([
        { ...choice('default', ['--approval-mode', 'default']), acp_mode: 'default' },
        { ...choice('auto-edit', ['--approval-mode', 'auto_edit']), acp_mode: 'autoEdit' },
        { ...choice('plan', ['--approval-mode', 'plan']), acp_mode: 'plan' },
        {
          ...choice('unrestricted', ['--approval-mode', 'yolo']),
          flag_aliases: [['--yolo'], ['-y']],
          acp_mode: 'yolo',
        },
      ]),
      models('--model', ['gemini-3.1-pro-preview', 'gemini-3.5-flash', 'gemini-2.5-pro', 'gemini-2.5-flash']),
    ],
  },
  screen: {
    busy: MOVING_SIGNS,
    placeholders: ['type your message'],
    startupDialogs: [
      { id: 'trust', match: ['do you trust the files in this folder', 'trust folder'], choose: 'trust folder' },
    ],
    approval: { questions: ['apply this change', 'allow execution of', 'do you want to proceed'], tools: {} },
  },
  interrupt: BY_ESCAPE,
  sources: [{ version: '0.61.0', where: 'npm @google/gemini-cli: gemini --help, bundle, run, also over ACP' }],
  // Chats of its home, run: an answer of the model is a line, told again with what came of its tool calls. `input` counts
  // what came from the cache, `output` nothing of the thoughts. Its sub-agents' chats are not read.
  usage: {
    mark: '"tokens"',
    where: { type: 'gemini' },
    id: 'id',
    model: 'model',
    at: 'timestamp',
    input: ['tokens.input', 'tokens.tool'],
    output: ['tokens.output', 'tokens.thoughts'],
    cache_read: 'tokens.cached',
    inputHasCache: true,
  },
}
