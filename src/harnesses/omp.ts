/** Oh My Pi, as a harness. */
import { BY_ESCAPE, COMMON, choice, GENERIC_SCREEN, type Harness, OWN_DEFAULT, permissionModes } from './harness.ts'

export const omp: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Oh My Pi',
    command: 'omp',
    prompt_mode: 'arg',
    resume_flag: '--resume',
    resume_style: 'flag',
    options_schema: [
      permissionModes([
        choice('ask', ['--approval-mode', 'always-ask']),
        OWN_DEFAULT,
        choice('auto-edit', ['--approval-mode', 'write']),
        { ...choice('unrestricted', ['--approval-mode', 'yolo']), flag_aliases: [['--auto-approve'], ['--yolo']] },
      ]),
    ],
  },
  screen: GENERIC_SCREEN,
  interrupt: BY_ESCAPE,
  sources: [{ version: '18.3.4', where: 'npm @oh-my-pi/pi-coding-agent: src/cli/args.ts' }],
}
