/** For tests of this folder: cities in temporary directories, and the presets they use. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ProviderSpec } from '../../contract/config-schema.ts'
import type { LoadOptions } from './compose/context.ts'
import { type LoadedCity, loadCity } from './load/load.ts'

const CORE_DIR = join(import.meta.dirname, '..', 'packs', 'core')

/** Small presets in the shape of the real ones. */
const PRESETS: Readonly<Record<string, ProviderSpec>> = {
  claude: {
    command: 'claude',
    prompt_mode: 'arg',
    supports_acp: true,
    options_schema: [
      {
        key: 'permission_mode',
        default: 'unrestricted',
        choices: [{ value: 'plan', flag_args: ['--permission-mode', 'plan'] }, { value: 'unrestricted' }],
      },
      { key: 'model', choices: [{ value: 'opus' }, { value: 'haiku' }] },
    ],
    upstream_env: { base_url: 'ANTHROPIC_BASE_URL', api_key: 'ANTHROPIC_API_KEY' },
  },
  codex: { command: 'codex', prompt_mode: 'arg', args: ['--quiet'], env: { CODEX: '1' } },
  shell: { command: 'sh', prompt_mode: 'omit' },
}

export const OPTIONS: LoadOptions = { version: '0.2.0', builtinPacks: new Map([['core', CORE_DIR]]), presets: PRESETS }

/** A temporary directory with `files`; gone when disposed of. */
export function temporaryCity(files: Readonly<Record<string, string>>): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), 'svc-city-'))
  writeFiles(dir, files)
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

export function writeFiles(dir: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
}

/** Loads a city made of `files` alone. */
export function loadFiles(files: Readonly<Record<string, string>>, options: Partial<LoadOptions> = {}): LoadedCity {
  using city = temporaryCity(files)
  return loadCity(city.dir, { ...OPTIONS, ...options })
}
