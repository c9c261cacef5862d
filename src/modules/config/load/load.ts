/** The way in: a city's directory to its effective configuration, or to everything that is wrong with its files. */
import { basename, resolve } from 'node:path'
import { type ConfigFiles, diskFiles } from '../../../files/files.ts'
import { type ConfigIssue, fileStart, sortIssues } from '../../../files/issues.ts'
import { emptyTable, tableOf, textOf } from '../../../files/toml.ts'
import { type Composed, composeCity } from '../compose/compose.ts'
import { LoadContext, type LoadOptions } from '../compose/context.ts'
import { buildConfig, type EffectiveConfig } from '../compose/effective.ts'
import { CONVENTION_DIRS, revisionOf } from '../compose/revision.ts'
import { untrustedIn, warnUntrusted } from '../compose/trust.ts'
import { validateCity } from '../compose/validate.ts'
import { checkPrompts, checkTemplateFields } from '../prompt/prompt.ts'

export type LoadedCity =
  | {
      readonly ok: true
      readonly config: EffectiveConfig
      readonly warnings: readonly ConfigIssue[]
      readonly files: CityFiles
    }
  | {
      readonly ok: false
      readonly issues: readonly ConfigIssue[]
      /** What the files come to without what is wrong with them, to show and never to run; undefined where one cannot be read. */
      readonly draft: EffectiveConfig | undefined
      readonly warnings: readonly ConfigIssue[]
      readonly files: CityFiles
    }

/** What a load has looked at: what to watch, and what to keep to load the same again. */
export type CityFiles = {
  /** Absolute paths of the city's own configuration files that exist. */
  readonly read: readonly string[]
  /** Directories whose content counts: conventions of the city, and packs on disk. */
  readonly directories: readonly string[]
  /** Bytes by the name that issues show; of packs too. */
  readonly bytes: ReadonlyMap<string, Buffer>
}

/**
 * Loads the city in `dir`. It never throws for what stands in files: all problems come back together, each with its
 * file, line and column. It uses no network and writes nothing.
 */
export function loadCity(dir: string, options: LoadOptions, files: ConfigFiles = diskFiles()): LoadedCity {
  const context = new LoadContext(resolve(dir), files, options)
  const composed = composeCity(context)
  if (composed === undefined) return failed(context, composed, undefined)
  const facts = validateCity(context, composed, cityName(context, composed))
  checkTemplateFields(context, composed)
  const untrusted = untrustedIn(context, composed)
  checkPrompts(context, composed, facts, untrusted)
  const revision = revisionOf(context, composed)
  const config = buildConfig(context, composed, { facts, revision, untrusted })
  if (context.issues.errors.length > 0) return failed(context, composed, config)
  warnUntrusted(context, composed, untrusted)
  return { ok: true, config, warnings: sortIssues(context.issues.warnings), files: filesOf(context, composed) }
}

function failed(context: LoadContext, composed: Composed | undefined, draft: EffectiveConfig | undefined): LoadedCity {
  const { errors, warnings } = context.issues
  return {
    ok: false,
    issues: sortIssues(errors),
    draft,
    warnings: sortIssues(warnings),
    files: filesOf(context, composed),
  }
}

function cityName(context: LoadContext, { root }: Composed): string {
  const declared = textOf(tableOf(root.merged, 'workspace') ?? emptyTable(), 'name')
  const name = textOf(root.site, 'workspace_name') ?? declared ?? basename(context.city.dir)
  if (!/^[a-zA-Z0-9][a-zA-Z0-9._-]*$/.test(name)) {
    context.issues.error(
      fileStart('city.toml'),
      'workspace.name',
      `the directory's name \`${name}\` cannot be a city's name`,
      'set `[workspace] name`',
    )
  }
  return name
}

function filesOf(context: LoadContext, composed: Composed | undefined): CityFiles {
  const packs = composed?.packs.map(({ entry }) => entry.pack.dir) ?? []
  const own = CONVENTION_DIRS.map((name) => resolve(context.city.dir, name))
  return {
    read: [...context.cityPaths],
    directories: [...new Set([...own, ...packs])],
    bytes: context.sources,
  }
}
