/** The effective configuration: one flat, typed, deeply frozen object. Everything else in the service reads only this. */

import { shapeOf } from '../../../contract/base/config-shape.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import {
  type AgentSettings,
  type PermissionRule,
  type Pricing,
  type ProviderSpec,
  type RigSettings,
  SETTINGS,
  Service,
  type ServiceSettings,
  type Settings,
  type Upstream,
} from '../../../contract/config-schema.ts'
import { NOWHERE } from '../../../files/issues.ts'
import { contains } from '../../../files/read.ts'
import {
  elementsOf,
  emptyTable,
  nodeOf,
  type PlainTable,
  type PlainValue,
  plainOf,
  type TableNode,
  tableOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import type { Composed, FinishedAgent, FinishedSession, PlacedPack, ServiceDraft } from './compose.ts'
import { existingDir } from './compose.ts'
import type { LoadContext } from './context.ts'
import { draftIdentity, localName } from './drafts.ts'
import { stateRootOf } from './names.ts'
import type { ResolvedDraft } from './providers.ts'
import type { Untrusted } from './trust.ts'
import type { Facts } from './validate.ts'

/** Fields that always have a value in the effective configuration, by default if nowhere else. */
type Filled =
  | 'suspended'
  | 'attach'
  | 'restart_on_prompt_change'
  | 'min_active_sessions'
  | 'max_active_sessions'
  | 'drain_timeout'
  | 'idle_timeout'
  | 'max_session_age'
  | 'wake_mode'
  | 'provider'

/** One agent in its place. `max_active_sessions` is -1 for no limit. */
export type EffectiveAgent = DeepReadonly<
  Omit<AgentSettings, Filled | 'scope'> & Required<Pick<AgentSettings, Filled>>
> & {
  /** `[<binding>.]<name>`; `dir` is the rig, empty for the city. */
  readonly name: string
  readonly dir: string
  /** `[<rig>/][<binding>.]<name>`: what everything else calls it. */
  readonly identity: string
  readonly base_name: string
  readonly binding: string
  /** File of the city that declares it (`city.toml`, `agents/<name>`, a fragment), or `pack:<binding>`. */
  readonly origin: string
  /** Directory of the city or pack that it belongs to. */
  readonly config_dir: string
  /** Names of the fragments behind its prompt, in order. */
  readonly fragments: readonly string[]
  /** A pool: work that waits for it starts as many sessions as its limits allow, and not just one. */
  readonly scales: boolean
  /** Identities of the agents it depends on. */
  readonly dependencies: readonly string[]
  /** Live commands of packs, each with its pack's directory. */
  readonly global_live: readonly { readonly command: string; readonly config_dir: string }[]
  /** Absolute paths of its files, by the field that names them. */
  readonly paths: Readonly<Record<string, string>>
  /** The import that has a say in it and is not trusted yet: it is not started. */
  readonly untrusted_pack?: string
}

export type EffectiveRig = DeepReadonly<RigSettings> & {
  readonly name: string
  readonly prefix: string
  readonly suspended_on_start: boolean
  /** Absolute; absent for a rig that this machine has no directory for. */
  readonly path?: string
}

export type EffectiveProvider = {
  readonly name: string
  /** As written, before its base. */
  readonly raw: DeepReadonly<ProviderSpec>
  /** `provider:<name>` or `builtin:<name>`, from itself to the last base. */
  readonly chain: readonly string[]
  /** The whole chain as one definition; `args_append` is folded into `args`. */
  readonly resolved: DeepReadonly<ProviderSpec>
  /** As of an agent. */
  readonly untrusted_pack?: string
}

export type EffectiveSession = {
  readonly identity: string
  readonly rig: string
  readonly template: string
  readonly mode: 'on_demand' | 'always'
  /** Identity of its agent; absent when that does not exist, and the session is disabled. */
  readonly agent?: string
  readonly disabled: boolean
}

export type EffectivePack = {
  /** Bindings from the outermost inwards, joined by dots. */
  readonly binding: string
  /** The rig that imports it; empty for the city. */
  readonly rig: string
  readonly name: string
  readonly kind: 'local' | 'git' | 'builtin'
  readonly source: string
  readonly constraint: string
  readonly dir: string
  /** What its files must not lead out of: its checkout, or the city. */
  readonly root: string
  /** Imported by the root or a rig itself, not by another pack. */
  readonly direct: boolean
  /** False: nothing that it brings is started. */
  readonly trusted: boolean
  readonly version?: string
  readonly commit?: string
}

export type EffectiveService = DeepReadonly<ServiceSettings> & {
  /** Directory of the city or pack that it belongs to: where it runs. */
  readonly config_dir: string
  readonly binding: string
  /** Absolute. */
  readonly state_dir: string
  /** The import that brings it and is not trusted yet: it is not started. */
  readonly untrusted_pack?: string
}

export type EffectiveConfig = DeepReadonly<Settings> & {
  /** SHA-256 (hex) of everything the configuration was made from. */
  readonly revision: string
  readonly name: string
  readonly prefix: string
  readonly dir: string
  readonly agents: readonly EffectiveAgent[]
  readonly rigs: readonly EffectiveRig[]
  readonly named_sessions: readonly EffectiveSession[]
  readonly providers: Readonly<Record<string, EffectiveProvider>>
  readonly upstreams: Readonly<Record<string, DeepReadonly<Upstream>>>
  readonly services: readonly EffectiveService[]
  readonly pricing: readonly DeepReadonly<Pricing>[]
  /** The city's rules about tools (`[agents] permissions`), behind those of an agent. */
  readonly permissions: readonly DeepReadonly<PermissionRule>[]
  readonly packs: readonly EffectivePack[]
  /** Directories with formulas, weakest first: of the city, and of each rig behind those. */
  readonly formula_layers: {
    readonly city: readonly string[]
    readonly rigs: Readonly<Record<string, readonly string[]>>
  }
  /** Patches as the city's files say them, in the order they apply. */
  readonly patches: {
    readonly agents: readonly PlainTable[]
    readonly named_sessions: readonly PlainTable[]
    readonly rigs: readonly PlainTable[]
    readonly providers: readonly PlainTable[]
  }
  /** What the rigs of the future import (`[defaults.rig.imports]`). */
  readonly default_rig_imports: Readonly<Record<string, PlainValue>>
}

export type DeepReadonly<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }

/** The tree behind each effective configuration: where its values come from. */
export type Origins = {
  readonly composed: Composed
  readonly settings: TableNode
  readonly rigs: ReadonlyMap<string, TableNode>
}

const origins = new WeakMap<EffectiveConfig, Origins>()

/** Where the values of `config` come from; only for what this process has loaded. */
export function originsOf(config: EffectiveConfig): Origins {
  const found = origins.get(config)
  if (found === undefined) throw new Error('this configuration was not loaded here: its origins are unknown')
  return found
}

/** Imports of which nothing is started, as answers name them; nothing to name where there are none. */
export function untrustedPacks({ packs }: Pick<EffectiveConfig, 'packs'>): { untrusted_packs?: string[] } {
  const names = packs.filter(({ trusted }) => !trusted).map(({ binding }) => binding.split('.')[0] ?? binding)
  return names.length === 0 ? {} : { untrusted_packs: [...new Set(names)].sort() }
}

/** What the file at `path` must not lead out of: the city or the pack, by its checkout, that it is written in. */
export function rootOf(
  { dir, packs }: { readonly dir: string; readonly packs: readonly { readonly root: string }[] },
  path: string,
): string {
  const roots = packs.map(({ root }) => root).filter((root) => contains(root, path))
  return roots.sort((a, b) => b.length - a.length)[0] ?? dir
}

/** The effective configuration of a composed city without errors. */
export function buildConfig(
  context: LoadContext,
  composed: Composed,
  { facts, revision, untrusted }: { facts: Facts; revision: string; untrusted: Untrusted },
): EffectiveConfig {
  const settings = settingsWithDefaults(composed)
  const rigTables = new Map(composed.rigs.map((rig) => [rig.name, rigWithDefaults(rig.fields)]))
  const parts = {
    revision,
    name: facts.name,
    prefix: facts.prefix,
    dir: context.city.dir,
    agents: composed.agents.map((agent) => buildAgent(agent, facts, composed, untrusted)),
    rigs: composed.rigs.map((rig) => buildRig(rig.name, rigTables.get(rig.name) ?? rig.fields, facts)),
    named_sessions: composed.sessions.map((session) => buildSession(session, untrusted)),
    providers: Object.fromEntries(
      [...composed.providers].map(([name, draft]) => [name, buildProvider(draft, untrusted)]),
    ),
    upstreams: Object.fromEntries([...composed.upstreams].map(([name, node]) => [name, plainOf(node)])),
    services: composed.services.map((service) => buildService(context.city.dir, service, untrusted)),
    pricing: composed.pricing.map(plainOf),
    permissions: elementsOf(tableOf(composed.root.merged, 'agents') ?? emptyTable(), 'permissions').map(plainOf),
    packs: composed.packs.map((pack) => buildPack(pack, untrusted)),
    formula_layers: formulaLayers(context, composed, untrusted),
    patches: buildPatches(composed),
    default_rig_imports: asRecord(
      plainOf(
        tableOf(tableOf(tableOf(composed.root.merged, 'defaults') ?? emptyTable(), 'rig') ?? emptyTable(), 'imports') ??
          emptyTable(),
      ),
    ),
  }
  // The one cast from checked values to their types: the schema has been enforced on every file.
  const config = freeze({ ...asRecord(plainOf(settings)), ...parts }) as unknown as EffectiveConfig
  origins.set(config, { composed, settings, rigs: rigTables })
  return config
}

function buildService(city: string, { fields, home, binding }: ServiceDraft, untrusted: Untrusted) {
  const pack = untrusted.at(home.root) ?? untrusted.of(fields)
  return {
    ...asRecord(plainOf(withDefaults(fields, Service))),
    config_dir: home.dir,
    binding,
    state_dir: stateRootOf(city, textOf(fields, 'state_root') ?? textOf(fields, 'name') ?? ''),
    ...(pack === undefined ? {} : { untrusted_pack: pack }),
  }
}

/** `table` with the defaults of `schema` filled in, also in tables that no file mentions. */
function withDefaults(table: TableNode, schema: Schema): TableNode {
  let filled = table
  for (const [key, field] of Object.entries(shapeOf(schema).properties)) {
    const shape = shapeOf(field)
    const child = filled.entries.get(key)
    if (shape.type === 'table' && (child === undefined || child.kind === 'table')) {
      const inner = withDefaults(child ?? emptyTable(NOWHERE), field)
      if (child !== undefined || inner.entries.size > 0) filled = withEntry(filled, key, inner)
    }
    if (child === undefined && shape.preset !== undefined)
      filled = withEntry(filled, key, nodeOf(shape.preset as PlainValue, NOWHERE))
  }
  return filled
}

function settingsWithDefaults(composed: Composed): TableNode {
  const { merged } = composed.root
  let settings = emptyTable(merged.at)
  for (const [key, schema] of Object.entries(SETTINGS)) {
    settings = withEntry(settings, key, withDefaults(tableOf(merged, key) ?? emptyTable(NOWHERE), schema))
  }
  return settings
}

function rigWithDefaults(fields: TableNode): TableNode {
  const visible = withEntry(withEntry(fields, 'imports', undefined), 'patches', undefined)
  return visible.entries.has('suspended_on_start')
    ? visible
    : withEntry(visible, 'suspended_on_start', nodeOf(false, NOWHERE))
}

function buildAgent(agent: FinishedAgent, facts: Facts, composed: Composed, untrusted: Untrusted): EffectiveAgent {
  const { draft, fields, fragments, globals } = agent
  const provider = composed.providers.get(textOf(fields, 'provider') ?? '')
  const upstream = composed.upstreams.get(textOf(fields, 'upstream') ?? '')
  const identity = draftIdentity(draft)
  const paths = facts.paths.get(identity) ?? {}
  const pack =
    untrusted.at(draft.home.root) ??
    untrusted.of(fields, provider?.resolved, upstream) ??
    untrusted.holding(Object.values(paths))
  return {
    ...(plainOf(fields) as unknown as EffectiveAgent),
    name: localName(draft),
    dir: draft.rig,
    identity,
    base_name: draft.name,
    binding: draft.binding,
    origin: draft.origin,
    config_dir: draft.home.dir,
    fragments: fragments.map((fragment) => fragment.name),
    scales: isPool(draft.fields, fields),
    dependencies: facts.dependencies.get(identity) ?? [],
    global_live: globals
      .filter(({ root }) => untrusted.at(root) === undefined)
      .flatMap((live) => live.commands.map((command) => ({ command, config_dir: live.dir }))),
    paths,
    ...(pack === undefined ? {} : { untrusted_pack: pack }),
  }
}

/** By what it says of itself: a limit that it has from its rig or city only bounds it. */
export function isPool(own: TableNode, { entries }: TableNode): boolean {
  const limit = own.entries.get('max_active_sessions')
  const floor = entries.get('min_active_sessions')
  const several = limit?.kind === 'scalar' && limit.value !== 0 && limit.value !== 1
  const some = floor?.kind === 'scalar' && floor.value !== 0
  return several || some || entries.has('namepool') || entries.has('scale_check')
}

function buildRig(name: string, fields: TableNode, facts: Facts): EffectiveRig {
  const known = facts.rigs.get(name)
  const { path: _declared, ...rest } = plainOf(fields) as unknown as RigSettings
  return {
    ...rest,
    name,
    prefix: known?.prefix ?? '',
    suspended_on_start: rest.suspended_on_start ?? false,
    ...(known?.path === undefined ? {} : { path: known.path }),
  }
}

function buildSession(session: FinishedSession, untrusted: Untrusted): EffectiveSession {
  const agent = session.agent === undefined ? {} : { agent: draftIdentity(session.agent) }
  return {
    identity: session.identity,
    rig: session.rig,
    template: textOf(session.fields, 'template') ?? '',
    mode: textOf(session.fields, 'mode') === 'always' ? 'always' : 'on_demand',
    disabled: session.agent === undefined || untrusted.of(session.fields) !== undefined,
    ...agent,
  }
}

function buildProvider({ name, raw, chain, resolved }: ResolvedDraft, untrusted: Untrusted): unknown {
  const pack = untrusted.of(raw, resolved)
  const held = pack === undefined ? {} : { untrusted_pack: pack }
  return { name, raw: plainOf(raw), chain, resolved: plainOf(resolved), ...held }
}

function buildPack({ rig, binding, entry }: PlacedPack, untrusted: Untrusted): EffectivePack {
  const { pack } = entry
  return {
    binding,
    rig,
    name: pack.name,
    kind: pack.kind,
    source: entry.source,
    constraint: entry.version,
    dir: pack.dir,
    root: pack.root,
    direct: !binding.includes('.'),
    trusted: untrusted.at(pack.root) === undefined,
    ...(pack.version === undefined ? {} : { version: pack.version }),
    ...(pack.commit === undefined ? {} : { commit: pack.commit }),
  }
}

function buildPatches({ root }: Composed): EffectiveConfig['patches'] {
  const patches = tableOf(root.merged, 'patches') ?? emptyTable()
  const of = (kind: string) => elementsOf(patches, kind).map((patch) => asRecord(plainOf(patch)))
  return { agents: of('agent'), named_sessions: of('named_session'), rigs: of('rigs'), providers: of('providers') }
}

/** Those of packs that are not trusted are no formulas of the city yet. */
function formulaLayers(
  context: LoadContext,
  composed: Composed,
  untrusted: Untrusted,
): EffectiveConfig['formula_layers'] {
  const of = (rig: string): string[] => {
    const packs = composed.packs.filter((pack) => pack.rig === rig && untrusted.at(pack.entry.pack.root) === undefined)
    return packs.flatMap(({ entry }) => existingDir(context, entry.pack.dir, 'formulas') ?? [])
  }
  const own = existingDir(context, context.city.dir, 'formulas')
  const city = unique([...of(''), ...(own === undefined ? [] : [own])])
  const rigs = composed.rigs.map(({ name, fields }) => {
    const declared = textOf(fields, 'formulas_dir')
    const top = declared === undefined ? undefined : existingDir(context, context.city.dir, declared)
    return [name, unique([...of(name), ...(top === undefined ? [] : [top])])] as const
  })
  return { city, rigs: Object.fromEntries(rigs) }
}

function unique(dirs: readonly string[]): string[] {
  return [...new Set(dirs)]
}

function asRecord(value: PlainValue): PlainTable {
  return typeof value === 'object' && !Array.isArray(value) ? (value as PlainTable) : {}
}

function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const child of Object.values(value)) freeze(child)
  return Object.freeze(value)
}
