/** MiMo Code, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, models, OWN_DEFAULT, permissionModes } from './harness.ts'

export const mimocode: Harness = {
  preset: {
    ...COMMON,
    display_name: 'MiMo Code',
    command: 'mimo',
    prompt_mode: 'flag',
    prompt_flag: '--prompt',
    ready_delay_ms: 8000,
    resume_flag: '--session',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [
      permissionModes([OWN_DEFAULT, choice('unrestricted', ['--never-ask'])]),
      models('--model', ['mimo-v2-flash']),
    ],
  },
  screen: GENERIC_SCREEN,
  interrupt: { key: 'escape', presses: 2 },
  sources: [],
}
