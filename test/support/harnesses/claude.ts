import { join } from 'node:path'
import { homeOf, lay, type RealHarness } from './setup.ts'

export const claude: RealHarness = {
  name: 'claude',
  version: '2.1.330',
  prepare: (place) => {
    const home = homeOf(place)
    const key = 'sk-ant-test-0123456789abcdefghij'
    lay(join(home, '.claude.json'), {
      hasCompletedOnboarding: true,
      theme: 'dark',
      // On a busy machine its question of trust can take an arrow twice, and it ends.
      projects: { [place.work]: { hasTrustDialogAccepted: true } },
      customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    })
    return {
      ANTHROPIC_BASE_URL: place.model.origin,
      ANTHROPIC_API_KEY: key,
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
    }
  },
  mode: 'ask',
  resumes: true,
  counts: true,
  asks: (file) => ({ call: 'Write', arguments: { file_path: file, content: 'hello from the model\n' } }),
}
