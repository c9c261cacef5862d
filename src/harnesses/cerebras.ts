/** Cerebras (OpenCode), as a harness. */
import { GENERIC_SCREEN, type Harness, models } from './harness.ts'
import { OPEN_CODE, OPEN_CODE_MODES, opencode } from './opencode.ts'

export const cerebras: Harness = {
  preset: {
    ...OPEN_CODE,
    display_name: 'Cerebras (OpenCode)',
    prompt_mode: 'none',
    options_schema: [
      OPEN_CODE_MODES,
      models('--model', ['cerebras/gpt-oss-120b', 'cerebras/qwen-3-coder-480b'], 'cerebras/gpt-oss-120b'),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: opencode.sources,
}
