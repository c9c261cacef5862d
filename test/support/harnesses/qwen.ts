import { join } from 'node:path'
import { homeOf, lay, type RealHarness } from './setup.ts'

export const qwen: RealHarness = {
  name: 'qwen',
  version: '0.24.4',
  prepare: (place) => {
    lay(join(homeOf(place), '.qwen', 'settings.json'), {
      security: { auth: { selectedType: 'openai' } },
      general: { enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
    })
    return { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: place.model.url, OPENAI_MODEL: 'scripted' }
  },
  mode: 'default',
  resumes: true,
  counts: true,
  asks: (file) => ({ call: 'write_file', arguments: { file_path: file, content: 'hello from the model\n' } }),
}
