/** Kiro, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, OWN_DEFAULT, permissionModes } from './harness.ts'

export const kiro: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Kiro',
    command: 'kiro-cli',
    // An `--agent` of ours is added where its definition is installed in the work directory, not here.
    args: ['chat'],
    prompt_mode: 'arg',
    ready_delay_ms: 5000,
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [permissionModes([OWN_DEFAULT, choice('unrestricted', ['--trust-all-tools'])])],
  },
  screen: GENERIC_SCREEN,
  sources: [
    { version: '1.25', where: 'https://kiro.dev/docs/cli/reference/cli-commands/' },
    { version: '1.25', where: 'https://kiro.dev/docs/cli/chat/permissions' },
  ],
}
