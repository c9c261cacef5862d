import { join } from 'node:path'
import { homeOf, lay, type RealHarness } from './setup.ts'

export const gemini: RealHarness = {
  name: 'gemini',
  version: '0.61.0',
  prepare: (place) => {
    lay(join(homeOf(place), '.gemini', 'settings.json'), {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
    })
    // Its question of trust comes after its prompt, when it counts as ready.
    lay(join(homeOf(place), '.gemini', 'trustedFolders.json'), { [place.work]: 'TRUST_FOLDER' })
    return { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: place.model.origin, GEMINI_MODEL: 'gemini-2.5-flash' }
  },
  mode: 'default',
  resumes: true,
  counts: true,
  asks: (file) => ({ call: 'write_file', arguments: { file_path: file, content: 'hello from the model\n' } }),
}
