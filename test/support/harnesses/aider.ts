import { join } from 'node:path'
import { homeOf, lay, type RealHarness } from './setup.ts'

export const aider: RealHarness = {
  name: 'aider',
  version: '0.86.2',
  prepare: (place) => {
    lay(
      join(homeOf(place), '.aider.conf.yml'),
      `model: openai/scripted
edit-format: whole
show-model-warnings: false
analytics-disable: true
git: false
gitignore: false
`,
    )
    return {
      OPENAI_API_KEY: 'none',
      OPENAI_API_BASE: place.model.url,
      // Its list of prices stands in its package, and elsewhere.
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    }
  },
  mode: 'default',
  resumes: false,
  counts: true,
  // It has no tools: it writes what stands under the name of a file.
  asks: () => ({ say: 'Here it is.\n\nhello.txt\n```\nhello from the model\n```\n' }),
}
