/** Pi, as a harness. */
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

export const pi: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Pi',
    command: 'pi',
    prompt_mode: 'arg',
    ready_delay_ms: 8000,
    resume_flag: '--session',
    resume_style: 'flag',
    options_schema: [
      // It never asks; all it can be told is which tools it has.
      permissionModes([OWN_DEFAULT, choice('plan', ['--tools', 'read,grep,find,ls'])]),
      models('--model', ['sonnet', 'gpt-5']),
    ],
  },
  screen: GENERIC_SCREEN,
  interrupt: BY_ESCAPE,
  sources: [{ version: '0.74.2', where: 'npm @earendil-works/pi-coding-agent: README' }],
}
