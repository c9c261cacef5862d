/** Where the configuration family meets the cities family: files of a directory to what a city needs to start. */
import { join } from 'node:path'
import type { ErrorDetail } from '../contract/problems.ts'
import type { CitySettings } from '../modules/cities/city.ts'
import { StartFailure } from '../modules/cities/worker.ts'
import type { ConfigIssue } from '../modules/config/issues.ts'
import { loadCity } from '../modules/config/load.ts'
import { PRESETS } from '../modules/providers/presets.ts'

const BUILTIN_PACKS = new Map([['core', join(import.meta.dirname, '..', 'modules', 'packs', 'core')]])

export function createConfigLoader() {
  const open = (directory: string) => loadCity(directory, { builtinPacks: BUILTIN_PACKS, presets: PRESETS })
  return {
    load(directory: string): CitySettings {
      const loaded = open(directory)
      if (!loaded.ok) throw new StartFailure('city_config_failed', summary(loaded.issues), loaded.issues.map(toDetail))
      const { config } = loaded
      return {
        provider: config.workspace?.provider,
        sessionTemplate: config.workspace?.session_template,
        suspendedOnStart: config.workspace?.suspended_on_start ?? false,
        agentCount: config.agents.length,
        rigCount: config.rigs.length,
        retention: undefined,
      }
    },
    /** The name that the files of a directory give the city; undefined where they cannot be read. */
    name(directory: string): string | undefined {
      const loaded = open(directory)
      return loaded.ok ? loaded.config.name : undefined
    },
  }
}

const place = ({ file, line, column }: ConfigIssue): string => `${file}:${line}:${column}`

function summary(issues: readonly ConfigIssue[]): string {
  const first = issues[0]
  if (first === undefined) return 'the configuration is not valid'
  const more = issues.length === 1 ? '' : ` (and ${issues.length - 1} more)`
  return `${place(first)}: ${first.message}${more}`
}

const toDetail = (issue: ConfigIssue): ErrorDetail => ({
  location: place(issue),
  message: issue.hint === undefined ? issue.message : `${issue.message} (${issue.hint})`,
})
