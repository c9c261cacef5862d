/** Kimi, as a harness. */
import {
  BY_ESCAPE,
  COMMON,
  choice,
  GENERIC_SCREEN,
  type Harness,
  models,
  OWN_DEFAULT,
  permissionModes,
} from './harness.ts'

export const kimi: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Kimi',
    command: 'kimi',
    prompt_mode: 'none',
    ready_delay_ms: 5000,
    resume_flag: '--session',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        choice('plan', ['--plan']),
        // Risky actions, questions and plans are still asked for.
        { ...choice('full-auto', ['--yolo']), flag_aliases: [['-y']] },
        choice('unrestricted', ['--auto']),
      ]),
      // Names of the person's own `config.toml`.
      models('--model', ['kimi-code/kimi-for-coding']),
    ],
  },
  screen: GENERIC_SCREEN,
  interrupt: BY_ESCAPE,
  sources: [{ version: '2.1.0', where: 'npm @moonshot-ai/kimi-code: kimi --help' }],
}
