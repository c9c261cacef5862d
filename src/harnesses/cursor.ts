/** Cursor Agent, as a harness. */
import { COMMON, choice, type Harness, MOVING_SIGNS, models, OWN_DEFAULT, permissionModes, select } from './harness.ts'

export const cursor: Harness = {
  preset: {
    ...COMMON,
    display_name: 'Cursor Agent',
    command: 'cursor-agent',
    prompt_mode: 'arg',
    ready_prompt_prefix: '→ ',
    ready_delay_ms: 10_000,
    resume_flag: '--resume',
    resume_style: 'flag',
    supports_acp: true,
    acp_args: ['acp'],
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        choice('plan', ['--mode=plan']),
        choice('ask', ['--mode=ask'], 'Ask: answers questions, changes nothing'),
        { ...choice('unrestricted', ['--force']), flag_aliases: [['-f'], ['--yolo']] },
      ]),
      models('--model', ['auto']),
      {
        ...select('mcp_approval', 'prompt', [choice('prompt', []), choice('approve', ['--approve-mcps'])]),
        label: 'MCP approval',
      },
    ],
  },
  screen: {
    busy: MOVING_SIGNS,
    startupDialogs: [
      {
        id: 'trust',
        match: ['do you trust the contents of this directory', '[a] trust this workspace'],
        choose: 'trust this workspace',
      },
    ],
  },
  sources: [
    { version: '2026-10', where: 'https://cursor.com/docs/cli/reference/parameters' },
    { version: '2026-10', where: 'https://cursor.com/docs/cli/acp' },
  ],
}
