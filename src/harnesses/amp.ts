/** Amp, as a harness. */
import {
  COMMON,
  choice,
  flagged,
  GENERIC_SCREEN,
  type Harness,
  OWN_DEFAULT,
  permissionModes,
  select,
  unset,
} from './harness.ts'

export const amp: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Amp',
    command: 'amp',
    args: ['--no-ide'],
    // An argument is no prompt to it, and a piped one ends its screen.
    prompt_mode: 'none',
    resume_flag: 'threads continue',
    resume_style: 'subcommand',
    options_schema: [
      // Its own rules ask before what is destructive, and not before edits.
      permissionModes([OWN_DEFAULT, choice('unrestricted', ['--dangerously-allow-all'])]),
      {
        ...select('mode', '', [unset, ...flagged('--mode', ['low', 'medium', 'high', 'ultra'])]),
        free_args: ['--mode', '{value}'],
      },
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [
    { version: '0.0.1790142911', where: 'npm @sourcegraph/amp: amp --help, amp permissions test' },
    { version: '2026-09', where: 'https://ampcode.com/manual' },
  ],
}
