/** The opencode harness, set up so that it knows one model (a server of ours) and nothing of the machine it runs on. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelReply, ModelRequest } from './model-server.ts'

/** The binary that `npm run test:agents` has installed; undefined in a run without it. */
export const OPENCODE = process.env['SVC_TEST_OPENCODE']

/** A model that writes `path` once it is asked to, and says what came of it. Requests without tools are for the title of the conversation. */
export const writer =
  (path: string) =>
  (request: ModelRequest): ModelReply => {
    if (request.tools.length === 0) return { say: 'A title' }
    const last = request.messages.at(-1)
    if (last?.role === 'tool') return { say: `The tool said: ${String(last.content).slice(0, 100)}` }
    return JSON.stringify(last?.content).includes('write')
      ? { call: 'write', arguments: { filePath: path, content: 'hello from the model\n' } }
      : { say: 'Nothing to do.' }
  }

/** Its environment: every directory that it writes to is below `root`. */
export function opencodeEnvironment(root: string, modelUrl: string): Readonly<Record<string, string>> {
  const home = join(root, 'home')
  mkdirSync(home, { recursive: true })
  const config = join(root, 'opencode.json')
  writeFileSync(config, JSON.stringify(configuration(modelUrl)))
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CACHE_HOME: join(home, 'cache'),
    XDG_STATE_HOME: join(home, 'state'),
    OPENCODE_CONFIG: config,
    // It would fetch its list of models, its own newer versions and language servers.
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
  }
}

const configuration = (modelUrl: string) => ({
  model: 'local/scripted',
  small_model: 'local/scripted',
  share: 'disabled',
  autoupdate: false,
  permission: { edit: 'ask' },
  provider: {
    local: {
      npm: '@ai-sdk/openai-compatible',
      name: 'local',
      options: { baseURL: modelUrl, apiKey: 'none' },
      models: { scripted: { name: 'scripted', tool_call: true, limit: { context: 100_000, output: 4096 } } },
    },
  },
})
