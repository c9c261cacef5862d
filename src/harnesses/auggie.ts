/** Auggie, as a harness. */
import {
  COMMON,
  choice,
  GENERIC_SCREEN,
  type Harness,
  models,
  OWN_DEFAULT,
  permissionModes,
  select,
  unset,
} from './harness.ts'

/** Tools that change something. */
const CHANGING = ['launch-process', 'save-file', 'str-replace-editor', 'remove-files', 'apply_patch']
const rules = (policy: 'allow' | 'ask-user') => CHANGING.flatMap((tool) => ['--permission', `${tool}:${policy}`])

export const auggie: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Auggie',
    command: 'auggie',
    prompt_mode: 'arg',
    resume_flag: '--resume',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['--acp'],
    options_schema: [
      // It says of no tool what happens without a rule.
      permissionModes([
        choice('ask', rules('ask-user')),
        OWN_DEFAULT,
        choice('plan', ['--ask']),
        choice('unrestricted', rules('allow')),
      ]),
      // It sends the code of the directory to be indexed, and asks first.
      select('indexing', '', [unset, choice('allow', ['--allow-indexing'])]),
      models('--model', []),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: [
    {
      version: '0.36.0',
      where: 'npm @augmentcode/auggie: auggie --help; over ACP as far as it goes without an account',
    },
    { version: '0.36', where: 'https://docs.augmentcode.com/cli/permissions' },
  ],
}
