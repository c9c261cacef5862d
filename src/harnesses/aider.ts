/** aider, as a harness. */
import { COMMON, choice, type Harness, models, moving, OWN_DEFAULT, permissionModes } from './harness.ts'

export const aider: Harness = {
  preset: {
    ...COMMON,
    display_name: 'aider',
    command: 'aider',
    // What asks or opens a browser before the first prompt, and has nothing to do with the work.
    args: ['--no-check-update', '--no-show-release-notes'],
    // `--message` answers once and ends. Its conversations have no keys: it only knows the last one of a directory.
    prompt_mode: 'none',
    ready_prompt_prefix: '> ',
    options_schema: [
      permissionModes([OWN_DEFAULT, choice('unrestricted', ['--yes-always'])]),
      models('--model', ['sonnet', 'gpt-5', 'gemini', 'deepseek']),
    ],
  },
  screen: { busy: moving('waiting for ', 3), startupDialogs: [] },
  // Its analytics log stays here, whatever is sent or not. One line for each answer, counted by itself where the provider
  // does not: without what its weak model does beside.
  usage: {
    told: { variable: 'AIDER_ANALYTICS_LOG', flag: '--analytics-log' },
    mark: '"message_send"',
    where: { event: 'message_send' },
    model: 'properties.main_model',
    unnamed: ['/REDACTED', 'None'],
    at: 'time',
    input: ['properties.prompt_tokens'],
    output: ['properties.completion_tokens'],
    cost: 'properties.cost',
  },
  sources: [{ version: '0.86.2', where: 'PyPI aider-chat: aider --help, analytics.py, base_coder.py, run' }],
}
