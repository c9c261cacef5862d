/** Antigravity, as a harness. */
import {
  COMMON,
  choice,
  flagged,
  GENERIC_SCREEN,
  type Harness,
  models,
  permissionModes,
  select,
  unset,
} from './harness.ts'

export const antigravity: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Antigravity',
    command: 'agy',
    prompt_mode: 'flag',
    prompt_flag: '--prompt-interactive',
    ready_prompt_prefix: '> ',
    ready_delay_ms: 5000,
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
  },
  screen: GENERIC_SCREEN,
  sources: [],
}
