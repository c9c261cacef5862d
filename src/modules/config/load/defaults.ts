/** The configuration of a city whose files say nothing: every built-in provider, every default, no agents and rigs. */
import { join } from 'node:path'
import { type ConfigFiles, overlayFiles } from '../../../files/files.ts'
import type { LoadOptions } from '../compose/context.ts'
import type { EffectiveConfig } from '../compose/effective.ts'
import { loadCity } from './load.ts'

const NO_FILES: ConfigFiles = {
  read: () => undefined,
  list: () => undefined,
  kind: () => undefined,
  isExecutable: () => false,
  real: (path) => path,
}

export function defaultConfig(dir: string, name: string, options: LoadOptions): EffectiveConfig {
  const providers = Object.keys(options.presets).map(
    (preset) => `[providers.${JSON.stringify(preset)}]\nbase = ${JSON.stringify(`builtin:${preset}`)}\n`,
  )
  const files = new Map([
    [join(dir, 'city.toml'), providers.join('')],
    [join(dir, 'pack.toml'), `[pack]\nname = "defaults"\nschema = 2\n`],
    [join(dir, '.svc', 'site.toml'), `workspace_name = ${JSON.stringify(name)}\n`],
  ])
  const loaded = loadCity(dir, options, overlayFiles(NO_FILES, files))
  if (loaded.ok) return loaded.config
  throw new Error(`the defaults are not valid: ${loaded.issues.map(({ message }) => message).join('; ')}`)
}
