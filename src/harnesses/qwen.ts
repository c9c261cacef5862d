/** Qwen Code, as a harness. */
import { BY_ESCAPE, COMMON, choice, type Harness, MOVING_SIGNS, models, permissionModes } from './harness.ts'
import { bySystemSettings, type HarnessHooks } from './hooks.ts'

/**
 * Qwen Code 0.24.4 and 0.15.10: hooks of its system settings run beside all others, and QWEN_CODE_SYSTEM_SETTINGS_PATH says where
 * those are (its bundle, and run here). Times are milliseconds. It gives a hook up after a minute, whatever its timeout.
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
  permissionSec: 50,
}
const SYSTEM = { variable: 'QWEN_CODE_SYSTEM_SETTINGS_PATH', path: '/etc/qwen-code/settings.json' } as const

export const qwen: Harness = {
  hooks: { ...hooks, lay: bySystemSettings(hooks, SYSTEM) },
  preset: {
    ...COMMON,
    display_name: 'Qwen Code',
    command: 'qwen',
    prompt_mode: 'flag',
    prompt_flag: '--prompt-interactive',
    ready_prompt_prefix: '> ',
    ready_delay_ms: 5000,
    resume_flag: '--resume',
    resume_style: 'flag',
    session_id_flag: '--session-id',
    supports_acp: true,
    acp_args: ['--acp'],
    options_schema: [
      permissionModes([
        { ...choice('default', ['--approval-mode', 'default']), acp_mode: 'default' },
        { ...choice('auto-edit', ['--approval-mode', 'auto-edit']), acp_mode: 'auto-edit' },
        { ...choice('plan', ['--approval-mode', 'plan']), acp_mode: 'plan' },
        // A classifier decides instead of a person.
        { ...choice('full-auto', ['--approval-mode', 'auto']), acp_mode: 'auto' },
        {
          ...choice('unrestricted', ['--approval-mode', 'yolo']),
          flag_aliases: [['--yolo'], ['-y']],
          acp_mode: 'yolo',
        },
      ]),
      models('--model', ['qwen3-coder-plus']),
    ],
  },
  screen: {
    busy: MOVING_SIGNS,
    placeholders: ['type your message'],
    startupDialogs: [],
    approval: { questions: ['apply this change', 'allow execution of', 'do you want to proceed'], tools: {} },
  },
  interrupt: BY_ESCAPE,
  sources: [{ version: '0.24.4', where: 'npm @qwen-code/qwen-code: qwen --help, run, also over ACP' }],
  // Chats of its home, run: each answer of a model is told there, also those about titles. Over the API of OpenAI, which it
  // speaks to most models, thoughts are counted in the output already.
  usage: {
    mark: '"qwen-code.api_response"',
    where: { subtype: 'ui_telemetry' },
    id: 'uuid',
    model: 'systemPayload.uiEvent.model',
    at: 'timestamp',
    input: ['systemPayload.uiEvent.input_token_count'],
    output: ['systemPayload.uiEvent.output_token_count'],
    cache_read: 'systemPayload.uiEvent.cached_content_token_count',
    inputHasCache: true,
  },
}
