/** Grok, as a harness. */
import {
  COMMON,
  choice,
  flagged,
  GENERIC_SCREEN,
  type Harness,
  models,
  OWN_DEFAULT,
  permissionModes,
  select,
  unset,
} from './harness.ts'

export const grok: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Grok',
    command: 'grok',
    prompt_mode: 'none',
    ready_delay_ms: 12_000,
    ready_confirmation: true,
    resume_flag: '--resume',
    resume_style: 'flag',
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        choice('auto-edit', ['--permission-mode', 'acceptEdits']),
        choice('plan', ['--permission-mode', 'plan']),
        choice('full-auto', ['--permission-mode', 'auto']),
        choice('unrestricted', ['--always-approve']),
      ]),
      select('effort', '', [unset, ...flagged('--effort', ['low', 'medium', 'high'])]),
      models('--model', ['grok-code-fast-1', 'grok-4']),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [],
}
