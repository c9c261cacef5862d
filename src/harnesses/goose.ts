/** goose, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, OWN_DEFAULT, permissionModes } from './harness.ts'

const mode = (value: string, said: string) => ({ ...choice(value, []), env: { GOOSE_MODE: said } })

export const goose: Harness = {
  preset: {
    ...COMMON,
    display_name: 'goose',
    command: 'goose',
    // Without a command of its own it starts a session. Its model is `GOOSE_PROVIDER` and `GOOSE_MODEL`, or its own file's.
    prompt_mode: 'none',
    resume_flag: 'session --resume --session-id',
    resume_style: 'subcommand',
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [
      // Its own default is `auto`, which asks for nothing.
      permissionModes([
        mode('ask', 'approve'),
        mode('auto-edit', 'smart_approve'),
        mode('plan', 'chat'),
        mode('unrestricted', 'auto'),
        OWN_DEFAULT,
      ]),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [
    { version: '1.x, 2026-10', where: 'https://block.github.io/goose/docs/guides/goose-permissions/' },
    { version: '1.x, 2026-10', where: 'https://block.github.io/goose/docs/guides/goose-cli-commands' },
  ],
}
