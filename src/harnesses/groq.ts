/** Groq (OpenCode), as a harness. */
import { GENERIC_SCREEN, type Harness, models } from './harness.ts'
import { OPEN_CODE, OPEN_CODE_MODES, opencode } from './opencode.ts'

export const groq: Harness = {
  preset: {
    ...OPEN_CODE,
    display_name: 'Groq (OpenCode)',
    prompt_mode: 'none',
    options_schema: [
      OPEN_CODE_MODES,
      models('--model', ['groq/openai/gpt-oss-120b', 'groq/llama-3.3-70b-versatile'], 'groq/openai/gpt-oss-120b'),
    ],
  },
  screen: GENERIC_SCREEN,
  sources: opencode.sources,
}
