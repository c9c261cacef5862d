/** OpenCode, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, models, OWN_DEFAULT, permissionModes } from './harness.ts'

/** It has no flags for its permissions; with none of these variables its own files decide. */
const openCodeAllows = (permission: Readonly<Record<string, 'allow' | 'ask'>>) => ({
  env: { OPENCODE_PERMISSION: JSON.stringify(permission) },
})
export const OPEN_CODE_MODES = permissionModes([
  // Its own default asks for nothing but what is outside of its directory.
  {
    ...choice('ask', []),
    ...openCodeAllows({ edit: 'ask', bash: 'ask', webfetch: 'ask', external_directory: 'ask' }),
  },
  OWN_DEFAULT,
  {
    ...choice('auto-edit', []),
    ...openCodeAllows({ edit: 'allow', bash: 'ask', webfetch: 'ask', external_directory: 'ask' }),
  },
  { ...choice('plan', ['--agent', 'plan']), acp_mode: 'plan' },
  { ...choice('unrestricted', []), ...openCodeAllows({ '*': 'allow' }) },
])

export const OPEN_CODE = {
  ...COMMON,
  command: 'opencode',
  ready_delay_ms: 8000,
  supports_acp: true,
  acp_args: ['acp'],
} as const

/**
 * On a terminal its usage is not read: 1.18.33 keeps conversations in a database (`opencode.db`), no log that only grows. Over
 * ACP it tells it.
 */
export const opencode: Harness = {
  preset: {
    ...OPEN_CODE,
    display_name: 'OpenCode',
    prompt_mode: 'flag',
    prompt_flag: '--prompt',
    resume_flag: '--session',
    resume_style: 'flag',
    options_schema: [OPEN_CODE_MODES, models('--model', ['anthropic/claude-sonnet-4-5', 'openai/gpt-5'])],
  },
  screen: GENERIC_SCREEN,
  interrupt: { key: 'escape', presses: 2 },
  sources: [
    { version: '1.18.33', where: 'npm opencode-ai: opencode --help, run, also over ACP' },
    { version: '1.18', where: 'https://opencode.ai/docs/permissions' },
  ],
}
