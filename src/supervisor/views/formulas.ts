/** Where formulas and orders, as files, meet the configuration and the work of a city. */
import { isAbsolute, relative } from 'node:path'
import type { Value } from '../../automation/plan.ts'
import { resolveTarget } from '../../automation/target.ts'
import { type ConfigFiles, diskFiles } from '../../files/files.ts'
import type { ConfigIssue } from '../../files/issues.ts'
import { contains } from '../../files/read.ts'
import { elementsOf, emptyTable, type TableNode, tableOf, textOf } from '../../files/toml.ts'
import { beads } from '../../modules/beads/family.ts'
import { documentHomes } from '../../modules/config/compose/documents.ts'
import { draftIdentity } from '../../modules/config/compose/drafts.ts'
import { type EffectiveConfig, originsOf } from '../../modules/config/compose/effective.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { briefMembers } from '../../modules/convoys/members.ts'
import { issuesOfDocuments } from '../../modules/formulas/catalog/issues.ts'
import { Snapshot } from '../../modules/formulas/catalog/snapshot.ts'
import type { DocumentLayout } from '../../modules/formulas/catalog/sources.ts'
import type { SettingReferrer } from '../../modules/formulas/edit.ts'
import { type FormulaContext, formulaFamily } from '../../modules/formulas/family.ts'
import type { Running } from './running.ts'

/** `formulas.find(city)?.catalog` is the port of others. */
export const formulas = formulaFamily<EffectiveConfig>()

/** Of `bead.members` in a preview. */
const MOST_MEMBERS = 1_000

export function formulaContext(city: Running): FormulaContext<EffectiveConfig> {
  const { name, path, store, host } = city
  const { config } = configuration.of(city)
  const rigOf = (rig: string) => config.current().rigs.find((one) => one.name === rig)
  return {
    name,
    dir: path,
    store,
    clock: host.clock,
    log: host.log,
    config,
    layout: layoutOf,
    settings: settingsNaming,
    rigNames: () => config.current().rigs.map(({ name: rig }) => rig),
    files: () => (config.lastError === undefined ? config.files : diskFiles()),
    onChange: (listener) => config.onChange(listener),
    onLooked: (listener) => config.onLooked(listener),
    rigVars: (rig) => rigOf(rig)?.formula_vars ?? {},
    city: () => ({ name, path }),
    rig: (rig) => ({ name: rig, path: rigOf(rig)?.path ?? null }),
    bead: (id) => beadValue(city, id),
    resolveTarget: (target, rig) => resolveTarget(config.current(), target, rig),
  }
}

/** Everything that is wrong with the formulas and orders that go with a configuration, each once. */
export function documentIssues(config: EffectiveConfig, files: ConfigFiles): Promise<readonly ConfigIssue[]> {
  return issuesOfDocuments(new Snapshot(layoutOf(config), files))
}

function layoutOf(config: EffectiveConfig): DocumentLayout {
  const packs = originsOf(config).composed.packs.map(({ entry }) => entry.pack)
  return {
    homes: documentHomes(config),
    rigs: config.rigs.map(({ name }) => name),
    display: (path) => {
      const local = relative(config.dir, path)
      if (!local.startsWith('..') && !isAbsolute(local)) return local
      const pack = packs.find(({ dir }) => contains(dir, path))
      return pack === undefined ? path : `${pack.label}/${relative(pack.dir, path)}`
    },
  }
}

/** Agents whose work begins with it, and what says so for all of them. */
function settingsNaming(config: EffectiveConfig, formula: string): readonly SettingReferrer[] {
  const { composed } = originsOf(config)
  const naming = (table: TableNode | undefined) => {
    const node = table?.entries.get('default_sling_formula')
    return node?.kind === 'scalar' && node.value === formula
      ? [{ key: 'default_sling_formula', file: node.at.file }]
      : []
  }
  const agents = composed.agents.flatMap(({ draft }) =>
    naming(draft.fields).map(
      (at): SettingReferrer => ({
        kind: 'agent',
        name: draftIdentity(draft),
        ...(draft.rig === '' ? {} : { rig: draft.rig }),
        ...at,
      }),
    ),
  )
  const defaults = naming(tableOf(composed.root.merged, 'agent_defaults')).map(
    (at): SettingReferrer => ({ kind: 'agent_defaults', name: 'agent_defaults', ...at }),
  )
  const patches = elementsOf(tableOf(composed.root.merged, 'patches') ?? emptyTable(), 'agent').flatMap((patch) => {
    const rig = textOf(patch, 'dir') ?? ''
    const name = `${rig === '' ? '' : `${rig}/`}${textOf(patch, 'name') ?? ''}`
    return naming(patch).map((at): SettingReferrer => ({ kind: 'agent', name, ...(rig === '' ? {} : { rig }), ...at }))
  })
  return [...agents, ...defaults, ...patches]
}

/** As molecules see the bead that they are about. */
function beadValue(city: Running, id: string): Value | undefined {
  const work = beads.of(city)
  const [bead] = work.beads.load([id])
  if (bead === undefined) return undefined
  const { title, description, priority, metadata } = bead
  const members = briefMembers(city.store.db, id, MOST_MEMBERS)
  return { id, title, description, priority, metadata: { ...metadata }, members }
}
