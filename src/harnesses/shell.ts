/** Shell, as a harness. */
import { basename } from 'node:path'
import { COMMON, GENERIC_SCREEN, type Harness } from './harness.ts'

/** In whose terminal a person types commands, whatever stands on its screen. */
const SHELLS: ReadonlySet<string> = new Set(
  'sh ash bash dash zsh fish ksh ksh93 mksh oksh yash csh tcsh nu elvish xonsh pwsh'.split(' '),
)
export const isShellProgram = (program: string): boolean => SHELLS.has(basename(program))

export const shell: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Shell',
    command: '$SHELL',
    prompt_mode: 'omit',
    delivery: 'line',
    accept_startup_dialogs: false,
  },
  screen: GENERIC_SCREEN,
  sources: [],
}
