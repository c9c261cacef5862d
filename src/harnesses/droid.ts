/** Factory's Droid, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, OWN_DEFAULT, permissionModes } from './harness.ts'

export const droid: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Droid',
    command: 'droid',
    prompt_mode: 'arg',
    resume_flag: '--resume',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['exec', '--output-format', 'acp'],
    // Its model is one of its own files, or of `/model`.
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        choice('auto-edit', ['--auto', 'low']),
        choice('plan', ['--use-spec']),
        choice('full-auto', ['--auto', 'medium']),
        choice('unrestricted', ['--auto', 'high']),
      ]),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [
    { version: '0.225.2', where: 'npm @factory/cli-linux-x64: droid --help, droid exec --help' },
    { version: '2026-10', where: 'https://docs.factory.ai/reference/cli-reference' },
  ],
}
