import { join } from 'node:path'
import { homeOf, lay, type RealHarness } from './setup.ts'

export const codex: RealHarness = {
  name: 'codex',
  version: '0.169.0',
  prepare: (place) => {
    const home = join(homeOf(place), '.codex')
    lay(
      join(home, 'config.toml'),
      `model = "scripted"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "${place.model.url}"
wire_api = "responses"
env_key = "LOCAL_KEY"
[analytics]
enabled = false
`,
    )
    return { CODEX_HOME: home, LOCAL_KEY: 'none' }
  },
  mode: 'suggest',
  resumes: true,
  counts: true,
  asks: (file) => ({
    call: 'exec_command',
    arguments: {
      cmd: `echo hello from the model > ${file}`,
      sandbox_permissions: 'require_escalated',
      justification: 'write the file',
    },
  }),
}
