/** Shell, as a harness. */
import { COMMON, GENERIC_SCREEN, type Harness } from './harness.ts'

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
