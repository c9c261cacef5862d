/** Crush, as a harness. */
import { COMMON, choice, GENERIC_SCREEN, type Harness, OWN_DEFAULT, permissionModes } from './harness.ts'

export const crush: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Crush',
    command: 'crush',
    prompt_mode: 'none',
    resume_flag: '--session',
    resume_style: 'flag',
    // Its model is one of its own files.
    options_schema: [permissionModes([OWN_DEFAULT, { ...choice('unrestricted', ['--yolo']), flag_aliases: [['-y']] }])],
  },
  screen: GENERIC_SCREEN,
  sources: [
    { version: '2026-09', where: 'https://man.freebsd.org/cgi/man.cgi?manpath=freebsd-ports&query=crush&sektion=1' },
  ],
}
