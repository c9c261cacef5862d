/** The city's own files: `city.toml`, the root `pack.toml`, the fragments, and this machine's `site.toml`, as one table. */
import { dirname, isAbsolute, join } from 'node:path'
import { CityFile, FragmentFile, PackFile, RootFiles, SiteFile } from '../../../contract/config-schema.ts'
import { fileStart, nearestHint, placeText } from '../../../files/issues.ts'
import {
  elementsOf,
  emptyTable,
  listOf,
  type TableNode,
  tableOf,
  tablesOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import type { LoadContext } from './context.ts'
import { refuseDuplicates } from './duplicates.ts'
import { mergeTables, type OnOverride } from './merge.ts'
import { checkManifest } from './packs.ts'

export type Root = {
  /** `pack.toml` under `city.toml` under the fragments in order. */
  readonly merged: TableNode
  readonly site: TableNode
  /** The included files, in order. */
  readonly fragments: readonly string[]
}

/** Reads and merges the city's own files; undefined when there is no `city.toml`. */
export function readRoot(context: LoadContext): Root | undefined {
  const { city, issues } = context
  const before = issues.errors.length
  const read = context.readFile(city, 'city.toml', CityFile, 'city')
  if (read === undefined && issues.errors.length === before) {
    issues.error(fileStart('city.toml'), '', 'is missing: this directory is no city')
    return undefined
  }
  const file = read ?? emptyTable(fileStart('city.toml'))
  warnInside(context)
  const pack = context.readFile(city, 'pack.toml', PackFile, 'root_pack')
  if (pack !== undefined) checkManifest(context, pack)
  const fragments = readFragments(context, file)
  for (const table of [pack, file, ...fragments.map((fragment) => fragment.table)]) {
    if (table !== undefined) refuseDuplicates(context, table, RootFiles)
  }
  if (pack !== undefined && file.entries.has('imports')) {
    const imports = file.entries.get('imports')
    issues.warn(
      imports?.keyAt ?? file.at,
      'imports',
      '`[imports]` belongs in `pack.toml`; entries here replace those of the same name there',
    )
  }
  let merged = mergeTables(
    RootFiles,
    pack ?? emptyTable(fileStart('pack.toml', 'root_pack')),
    withEntry(file, 'include', undefined),
  )
  for (const { table } of fragments) merged = mergeTables(RootFiles, merged, table, warnOverride(context))
  const site =
    context.readFile(city, '.svc/site.toml', SiteFile, 'site') ?? emptyTable(fileStart('.svc/site.toml', 'site'))
  return { merged: bindRigs(context, merged, site), site, fragments: fragments.map((fragment) => fragment.path) }
}

/** Two cities would watch, stage and edit the same files. */
function warnInside({ files, issues, city }: LoadContext): void {
  for (let dir = dirname(city.dir); dir !== dirname(dir); dir = dirname(dir)) {
    if (files.kind(join(dir, 'city.toml')) === undefined) continue
    issues.warn(
      fileStart('city.toml'),
      '',
      `this city lies inside another one, at ${dir}`,
      'move one of them elsewhere',
    )
    return
  }
}

function readFragments(context: LoadContext, file: TableNode): { path: string; table: TableNode }[] {
  const seen = new Set<string>()
  return listOf(file, 'include').flatMap((entry, index) => {
    const written = String(entry.value)
    const key = `include[${index}]`
    const path = context.resolvePath(written, entry.at, key)
    if (path === undefined) return []
    const name = context.display(path)
    if (seen.has(name)) {
      context.issues.error(entry.at, key, `\`${written}\` is included twice`)
      return []
    }
    seen.add(name)
    const before = context.issues.errors.length
    const table = context.readFile(context.city, name, FragmentFile, 'fragment')
    if (table !== undefined) return [{ path: name, table }]
    if (context.issues.errors.length === before) context.issues.error(entry.at, key, `\`${written}\` does not exist`)
    return []
  })
}

function warnOverride(context: LoadContext): OnOverride {
  return (key, before, after) => {
    context.issues.warn(after.at, key, `replaces the value from ${placeText(before.at)}`)
  }
}

/** The rigs with this machine's paths: `site.toml` says where a rig is, `city.toml` only when that is inside the city. */
function bindRigs(context: LoadContext, merged: TableNode, site: TableNode): TableNode {
  const rigs = merged.entries.get('rigs')
  const names = elementsOf(merged, 'rigs').map((rig) => textOf(rig, 'name') ?? '')
  for (const [name, entry] of tablesOf(site, 'rigs')) {
    if (!names.includes(name))
      context.issues.warn(
        entry.keyAt ?? entry.at,
        `rigs.${name}`,
        `there is no rig \`${name}\``,
        nearestHint(name, names),
      )
  }
  if (rigs?.kind !== 'list') return merged
  const items = rigs.items.map((rig) => (rig.kind === 'table' ? bindRig(context, rig, site) : rig))
  return withEntry(merged, 'rigs', { ...rigs, items })
}

function bindRig(context: LoadContext, rig: TableNode, site: TableNode): TableNode {
  const declared = rig.entries.get('path')
  if (declared?.kind === 'scalar' && isAbsolute(String(declared.value))) {
    const name = textOf(rig, 'name') ?? ''
    const hint = `write it to \`.svc/site.toml\`: [rigs.${name}] path = …`
    context.issues.error(declared.at, 'rigs.path', 'an absolute path belongs to this machine, not to the city', hint)
  }
  const bound = tableOf(tableOf(site, 'rigs') ?? emptyTable(), textOf(rig, 'name') ?? '')
  const path = bound?.entries.get('path')
  return path === undefined ? rig : withEntry(rig, 'path', path)
}
