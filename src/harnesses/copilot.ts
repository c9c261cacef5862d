/** GitHub Copilot, as a harness. */
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

export const copilot: Harness = {
  preset: {
    ...COMMON,
    display_name: 'GitHub Copilot',
    command: 'copilot',
    prompt_mode: 'flag',
    prompt_flag: '--interactive',
    ready_prompt_prefix: '❯ ',
    ready_delay_ms: 5000,
    resume_flag: '--resume',
    resume_style: 'flag',
    session_id_flag: '--session-id',
    supports_acp: true,
    acp_args: ['--acp'],
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        choice('auto-edit', ['--allow-tool=write']),
        choice('plan', ['--plan']),
        // Paths outside of its directories and unknown addresses are still asked for.
        choice('full-auto', ['--allow-all-tools']),
        { ...choice('unrestricted', ['--allow-all']), flag_aliases: [['--yolo']] },
      ]),
      models('--model', ['auto']),
      select('effort', '', [
        unset,
        ...flagged('--reasoning-effort', ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']),
      ]),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [
    {
      version: '1.0.102',
      where:
        'npm @github/copilot: copilot --help, copilot help permissions; over ACP as far as it goes without an account',
    },
  ],
}
