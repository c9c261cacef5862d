/**
 * Composition: the city's own files and its packs become one flat set of agents, named sessions, providers and so on.
 * Order (sheet 07 §1 and §5.4): imports by binding, the root on top, patches of the city, patches of each rig, defaults.
 */
import { join } from 'node:path'
import { shapeOf } from '../../../contract/base/config-shape.ts'
import { AGENT_FIELDS } from '../../../contract/config-schema.ts'
import { NOWHERE, nearestHint, placeText } from '../../../files/issues.ts'
import {
  type ConfigNode,
  elementsOf,
  emptyTable,
  listOf,
  nodeOf,
  type PlainValue,
  type TableNode,
  tableOf,
  tablesOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import type { LoadContext } from './context.ts'
import { type AgentDraft, draftIdentity, draftsNamed, localName } from './drafts.ts'
import { relayer } from './merge.ts'
import {
  discoverAgents,
  type Expansion,
  type GlobalLive,
  type PackImport,
  PackLoader,
  refuseTwins,
  type SessionDraft,
} from './packs.ts'
import { patchAgents, patchNamed, patchRigAgents } from './patches.ts'
import { builtinProvider, presetNodes, type ResolvedDraft, resolveProviders } from './providers.ts'
import { type Root, readRoot } from './root.ts'

/** A city put together, every value still with its place. */
export type Composed = {
  readonly root: Root
  readonly rigs: readonly RigDraft[]
  readonly agents: readonly FinishedAgent[]
  readonly sessions: readonly FinishedSession[]
  readonly providers: ReadonlyMap<string, ResolvedDraft>
  readonly upstreams: ReadonlyMap<string, TableNode>
  readonly services: readonly ServiceDraft[]
  readonly pricing: readonly TableNode[]
  /** Imports of the city first, then of each rig in turn; weaker ones first: a pack stands behind those it imports. */
  readonly packs: readonly PlacedPack[]
}

export type RigDraft = {
  readonly name: string
  readonly fields: TableNode
  readonly imports: readonly PackImport[]
  readonly brought: readonly Expansion[]
}
export type PlacedPack = { readonly rig: string; readonly binding: string; readonly entry: PackImport }
export type ServiceDraft = Expansion['services'][number]
export type FinishedAgent = {
  readonly draft: AgentDraft
  /** Every field with defaults filled in. */
  readonly fields: TableNode
  /** Names of the prompt fragments behind the body, in order, each once. */
  readonly fragments: readonly { readonly name: string; readonly node: ConfigNode }[]
  readonly globals: readonly GlobalLive[]
}
export type FinishedSession = {
  readonly identity: string
  readonly rig: string
  readonly fields: TableNode
  readonly agent: AgentDraft | undefined
}

/** The provider of agents that name none, in a city that names none (decision 29). */
const DEFAULT_PROVIDER = 'shell'

/** Composes the city; undefined when its own files cannot be read at all. */
export function composeCity(context: LoadContext): Composed | undefined {
  const root = readRoot(context)
  if (root === undefined) return undefined
  const loader = new PackLoader(context)
  const imports = loader.loadImports(root.merged, '')
  checkDefaultImports(loader, root)
  const brought = imports.map((entry) => loader.bind(entry))
  const rigs = readRigs(context, loader, root)
  const own = rootAgents(context, root)
  if (context.broken) return undefined
  const placed = placeAgents(context, own, brought, rigs)
  const patched = patchEverywhere(context, root, placed, rigs)
  const all = [...brought, ...rigs.flatMap((rig) => rig.brought)]
  const agents = patched.map((draft) => finishAgent(draft, root, rigs, brought))
  const composed: Composed = {
    root,
    rigs,
    agents,
    sessions: placeSessions(context, root, brought, rigs, patched),
    providers: placeProviders(context, root, all, agents),
    upstreams: firstWins([tablesOf(root.merged, 'upstreams'), ...all.map((part) => [...part.upstreams])]),
    services: placeServices(context, root, brought, rigs),
    pricing: placePricing(root, all),
    packs: placePacks(brought, rigs),
  }
  checkRequirements(context, composed, brought)
  return composed
}

// ---- agents ---------------------------------------------------------------------------------------------------------

function rootAgents(context: LoadContext, root: Root): AgentDraft[] {
  const found = new Map(
    discoverAgents(context, context.city, 'root_pack', undefined).map((draft) => [draftIdentity(draft), draft]),
  )
  for (const element of elementsOf(root.merged, 'agent')) {
    const name = textOf(element, 'name') ?? ''
    const rig = textOf(element, 'dir') ?? ''
    const fields = withEntry(withEntry(element, 'name', undefined), 'dir', undefined)
    const at = element.entries.get('name')?.at ?? element.at
    const draft: AgentDraft = {
      name,
      binding: '',
      rig,
      fields,
      declared: fields,
      home: context.city,
      defaults: undefined,
      origin: element.at.file,
      at,
    }
    const earlier = found.get(draftIdentity(draft))
    if (earlier !== undefined)
      context.issues.warn(at, 'agent.name', `replaces the agent \`${name}\` of ${earlier.at.file}`)
    found.set(draftIdentity(draft), draft)
  }
  return [...found.values()]
}

/** Puts every agent where its scope says: in the city, or in each rig that has no import of the same binding. */
function placeAgents(
  context: LoadContext,
  own: readonly AgentDraft[],
  brought: readonly Expansion[],
  rigs: readonly RigDraft[],
): AgentDraft[] {
  const imported = brought.flatMap((part) => part.agents)
  warnShadows(context, own, imported)
  const placed = [...imported, ...own].flatMap((draft) => placeOfCity(context, draft, rigs))
  for (const rig of rigs) {
    for (const draft of rig.brought.flatMap((part) => part.agents)) {
      const city = textOf(draft.fields, 'scope') === 'city'
      const here = { ...draft, rig: city ? '' : rig.name }
      // A city-scoped agent that several rigs bring exists once.
      if (city && placed.some((other) => draftIdentity(other) === draftIdentity(here))) continue
      placed.push(here)
    }
  }
  return refuseTwins(context, placed)
}

function placeOfCity(context: LoadContext, draft: AgentDraft, rigs: readonly RigDraft[]): AgentDraft[] {
  if (draft.rig !== '') {
    if (rigs.some((rig) => rig.name === draft.rig)) return [draft]
    const hint = nearestHint(
      draft.rig,
      rigs.map((rig) => rig.name),
    )
    context.issues.error(draft.at, 'agent.dir', `there is no rig \`${draft.rig}\``, hint)
    return []
  }
  if (textOf(draft.fields, 'scope') !== 'rig') return [draft]
  const outermost = draft.binding.split('.')[0] ?? ''
  return rigs
    .filter((rig) => outermost === '' || !rig.imports.some((entry) => entry.binding === outermost))
    .map((rig) => ({ ...draft, rig: rig.name }))
}

function warnShadows(context: LoadContext, own: readonly AgentDraft[], imported: readonly AgentDraft[]): void {
  for (const draft of own) {
    const hidden = imported.find((other) => other.name === draft.name && other.binding !== '')
    if (hidden === undefined) continue
    const message = `\`${draft.name}\` hides \`${localName(hidden)}\` of ${placeText(hidden.at)}: the bare name now means this agent`
    context.issues.warn(draft.at, 'agent.name', message)
  }
}

function patchEverywhere(
  context: LoadContext,
  root: Root,
  placed: readonly AgentDraft[],
  rigs: readonly RigDraft[],
): AgentDraft[] {
  const patches = elementsOf(tableOf(root.merged, 'patches') ?? emptyTable(), 'agent')
  let patched = patchAgents(context, placed, patches, 'city_patch')
  for (const rig of rigs) patched = patchRigAgents(context, patched, rig.fields, rig.name)
  return patched
}

const FILLED = ['provider', 'upstream', 'default_sling_formula', 'isolation'] as const

function finishAgent(
  draft: AgentDraft,
  root: Root,
  rigs: readonly RigDraft[],
  brought: readonly Expansion[],
): FinishedAgent {
  const rig = rigs.find((candidate) => candidate.name === draft.rig)
  const workspace = tableOf(root.merged, 'workspace') ?? emptyTable()
  const cityDefaults = relayer(tableOf(root.merged, 'agent_defaults') ?? emptyTable(), 'city_default')
  const packDefaults = draft.defaults === undefined ? undefined : relayer(draft.defaults, 'pack_default')
  let fields = withEntry(draft.fields, 'scope', undefined)
  const fill = (key: string, value: ConfigNode | undefined): void => {
    if (value !== undefined && !fields.entries.has(key)) fields = withEntry(fields, key, value)
  }
  for (const key of FILLED) {
    fill(key, packDefaults?.entries.get(key))
    fill(key, cityDefaults.entries.get(key))
  }
  fill('provider', workspace.entries.get('provider') ?? nodeOf(DEFAULT_PROVIDER, NOWHERE))
  fill('start_command', workspace.entries.get('start_command'))
  fill('max_active_sessions', rig?.fields.entries.get('max_active_sessions'))
  fill('max_active_sessions', workspace.entries.get('max_active_sessions') ?? nodeOf(-1, NOWHERE))
  for (const [key, schema] of Object.entries(AGENT_FIELDS)) fill(key, presetNode(shapeOf(schema).preset))
  const inScope = [...brought, ...(rig?.brought ?? [])].flatMap((part) => part.globals)
  return {
    draft,
    fields,
    fragments: appended([
      listOf(workspace, 'global_fragments'),
      listOf(draft.fields, 'append_fragments'),
      listOf(packDefaults ?? emptyTable(), 'append_fragments'),
      listOf(cityDefaults, 'append_fragments'),
    ]),
    globals: [...new Map(inScope.map((live) => [live.pack, live])).values()],
  }
}

function presetNode(preset: unknown): ConfigNode | undefined {
  return preset === undefined ? undefined : nodeOf(preset as PlainValue, NOWHERE)
}

function appended(lists: readonly (readonly ConfigNode[])[]): { name: string; node: ConfigNode }[] {
  const byName = new Map<string, ConfigNode>()
  for (const node of lists.flat()) {
    if (node.kind === 'scalar' && !byName.has(String(node.value))) byName.set(String(node.value), node)
  }
  return [...byName].map(([name, node]) => ({ name, node }))
}

// ---- rigs -----------------------------------------------------------------------------------------------------------

function readRigs(context: LoadContext, loader: PackLoader, root: Root): RigDraft[] {
  const tables = new Map(elementsOf(root.merged, 'rigs').map((rig) => [textOf(rig, 'name') ?? '', rig]))
  const patches = elementsOf(tableOf(root.merged, 'patches') ?? emptyTable(), 'rigs')
  return [...patchNamed(context, tables, patches, 'rigs')].map(([name, fields]) => {
    const imports = loader.loadImports(fields, `rigs.${name}.`)
    return { name, fields, imports, brought: imports.map((entry) => loader.bind(entry)) }
  })
}

// The imports for rigs to come must be right today: creating a rig is no time to find out.
function checkDefaultImports(loader: PackLoader, root: Root): void {
  const defaults = tableOf(tableOf(root.merged, 'defaults') ?? emptyTable(), 'rig')
  if (defaults !== undefined) loader.loadImports(defaults, 'defaults.rig.')
}

// ---- named sessions -------------------------------------------------------------------------------------------------

function placeSessions(
  context: LoadContext,
  root: Root,
  brought: readonly Expansion[],
  rigs: readonly RigDraft[],
  agents: readonly AgentDraft[],
): FinishedSession[] {
  const own: SessionDraft[] = elementsOf(root.merged, 'named_session').map((fields) => ({
    binding: '',
    rig: textOf(fields, 'dir') ?? '',
    fields,
  }))
  const drafts = [...brought.flatMap((part) => part.sessions), ...own].flatMap((draft) =>
    spreadSession(context, draft, rigs),
  )
  for (const rig of rigs) {
    for (const draft of rig.brought.flatMap((part) => part.sessions)) {
      drafts.push({ ...draft, rig: textOf(draft.fields, 'scope') === 'city' ? '' : rig.name })
    }
  }
  const finished = drafts.map((draft) => finishSession(context, draft, agents))
  return patchSessions(context, root, refuseSessionTwins(context, finished))
}

function spreadSession(context: LoadContext, draft: SessionDraft, rigs: readonly RigDraft[]): SessionDraft[] {
  if (draft.rig === '') {
    if (textOf(draft.fields, 'scope') !== 'rig') return [draft]
    return rigs.map((rig) => ({ ...draft, rig: rig.name }))
  }
  if (rigs.some((rig) => rig.name === draft.rig)) return [draft]
  const at = draft.fields.entries.get('dir')?.at ?? draft.fields.at
  context.issues.error(
    at,
    'named_session.dir',
    `there is no rig \`${draft.rig}\``,
    nearestHint(
      draft.rig,
      rigs.map((rig) => rig.name),
    ),
  )
  return []
}

function finishSession(context: LoadContext, draft: SessionDraft, agents: readonly AgentDraft[]): FinishedSession {
  const template = textOf(draft.fields, 'template') ?? ''
  const inScope = agents.filter((agent) => agent.rig === draft.rig)
  const wanted = draft.binding === '' ? template : `${draft.binding}.${template}`
  const found = draftsNamed(inScope, wanted)
  const at = draft.fields.entries.get('template')?.at ?? draft.fields.at
  if (found.length === 0) {
    const hint = nearestHint(wanted, inScope.map(localName))
    context.issues.warn(
      at,
      'named_session.template',
      `there is no agent \`${wanted}\`${draft.rig === '' ? '' : ` in rig \`${draft.rig}\``}: the session is disabled`,
      hint,
    )
  }
  if (found.length > 1) {
    const names = found.map((agent) => `\`${localName(agent)}\``).join(', ')
    context.issues.error(at, 'named_session.template', `\`${template}\` means more than one agent: ${names}`)
  }
  const local = textOf(draft.fields, 'name') ?? template
  const name = draft.binding === '' ? local : `${draft.binding}.${local}`
  return {
    identity: draft.rig === '' ? name : `${draft.rig}/${name}`,
    rig: draft.rig,
    fields: draft.fields,
    agent: found[0],
  }
}

function refuseSessionTwins(context: LoadContext, sessions: readonly FinishedSession[]): FinishedSession[] {
  const byIdentity = new Map<string, FinishedSession>()
  for (const session of sessions) {
    const twin = byIdentity.get(session.identity)
    if (twin === undefined) byIdentity.set(session.identity, session)
    // Two of one file have been reported with that file.
    else if (twin.fields.at.file !== session.fields.at.file) {
      const message = `there is a second named session \`${session.identity}\`: the first is at ${placeText(twin.fields.at)}`
      context.issues.error(session.fields.at, 'named_session', message)
    }
  }
  return [...byIdentity.values()]
}

function patchSessions(context: LoadContext, root: Root, sessions: readonly FinishedSession[]): FinishedSession[] {
  let patched = [...sessions]
  for (const patch of elementsOf(tableOf(root.merged, 'patches') ?? emptyTable(), 'named_session')) {
    const rig = textOf(patch, 'dir') ?? ''
    const name = textOf(patch, 'name')
    const template = textOf(patch, 'template')
    const identity = rig === '' ? name : `${rig}/${name}`
    const hits = patched.filter((session) =>
      name === undefined
        ? session.rig === rig && textOf(session.fields, 'template') === template
        : session.identity === identity,
    )
    const mode = relayer(patch, 'city_patch').entries.get('mode')
    if (hits.length === 1) {
      patched = patched.map((session) =>
        session === hits[0] ? { ...session, fields: withEntry(session.fields, 'mode', mode) } : session,
      )
      continue
    }
    const wanted = name ?? template ?? ''
    const problem =
      hits.length === 0
        ? `there is no named session \`${wanted}\` to patch`
        : `\`${wanted}\` means more than one named session`
    context.issues.error(
      patch.at,
      'patches.named_session',
      problem,
      nearestHint(
        wanted,
        patched.map((session) => session.identity),
      ),
    )
  }
  return patched
}

// ---- providers, services, packs -------------------------------------------------------------------------------------

/** Those that files declare, and of the built-in ones those that somebody names: they need no declaration (decision 242). */
function placeProviders(
  context: LoadContext,
  root: Root,
  parts: readonly Expansion[],
  agents: readonly FinishedAgent[],
): Map<string, ResolvedDraft> {
  const { issues, options } = context
  const presets = presetNodes(options.presets, issues)
  const declared = firstWins([tablesOf(root.merged, 'providers'), ...parts.map((part) => [...part.providers])])
  const patches = elementsOf(tableOf(root.merged, 'patches') ?? emptyTable(), 'providers')
  for (const name of patches.map((patch) => textOf(patch, 'name') ?? ''))
    if (presets.has(name) && !declared.has(name)) declared.set(name, derivedFrom(name))
  const providers = resolveProviders(patchNamed(context, declared, patches, 'providers'), presets, issues)
  for (const name of namedProviders(root, agents)) {
    const preset = presets.get(name)
    if (preset !== undefined && !providers.has(name)) providers.set(name, builtinProvider(name, preset))
  }
  return providers
}

/** What a patch of a built-in provider changes. */
const derivedFrom = (name: string): TableNode => ({
  ...emptyTable(NOWHERE),
  entries: new Map([['base', nodeOf(`builtin:${name}`, NOWHERE)]]),
})

function namedProviders(root: Root, agents: readonly FinishedAgent[]): Set<string> {
  const defaults = ['workspace', 'agent_defaults'].map((key) => tableOf(root.merged, key) ?? emptyTable())
  const names = [...defaults, ...agents.map(({ fields }) => fields)].map((table) => textOf(table, 'provider'))
  return new Set(names.filter((name) => name !== undefined))
}

function placeServices(
  context: LoadContext,
  root: Root,
  brought: readonly Expansion[],
  rigs: readonly RigDraft[],
): ServiceDraft[] {
  for (const rig of rigs) {
    for (const [index, part] of rig.brought.entries()) {
      const entry = rig.imports[index]
      if (part.services.length === 0 || entry === undefined) continue
      context.issues.error(
        entry.at,
        `rigs.${rig.name}.imports.${entry.binding}`,
        'the pack has services: import it for the city, not for a rig',
      )
    }
  }
  const own = elementsOf(root.merged, 'service').map((fields) => ({ fields, home: context.city, binding: '' }))
  const byName = new Map<string, ServiceDraft>()
  for (const service of [...own, ...brought.flatMap((part) => part.services)]) {
    const name = textOf(service.fields, 'name') ?? ''
    const twin = byName.get(name)
    if (twin === undefined) byName.set(name, service)
    // Two of one file have been reported with that file.
    else if (twin.fields.at.file !== service.fields.at.file)
      context.issues.error(
        service.fields.at,
        'service.name',
        `there is a second service \`${name}\`: the first is at ${placeText(twin.fields.at)}`,
      )
  }
  return [...byName.values()]
}

function placePricing(root: Root, parts: readonly Expansion[]): TableNode[] {
  const byModel = new Map<string, TableNode>()
  for (const entry of [...elementsOf(root.merged, 'pricing'), ...parts.flatMap((part) => part.pricing)]) {
    const key = textOf(entry, 'model') ?? ''
    if (!byModel.has(key)) byModel.set(key, entry)
  }
  return [...byModel.values()]
}

function placePacks(brought: readonly Expansion[], rigs: readonly RigDraft[]): PlacedPack[] {
  const city = brought.flatMap((part) => part.packs).map((pack) => ({ rig: '', ...pack }))
  const inRigs = rigs.flatMap((rig) =>
    rig.brought.flatMap((part) => part.packs).map((pack) => ({ rig: rig.name, ...pack })),
  )
  return [...city, ...inRigs]
}

function checkRequirements(context: LoadContext, composed: Composed, brought: readonly Expansion[]): void {
  const missing = (agent: string, rig: string): boolean =>
    draftsNamed(
      composed.agents.map((each) => each.draft).filter((draft) => draft.rig === rig),
      agent,
    ).length === 0
  const names = composed.agents.map((each) => localName(each.draft))
  const check = (part: Expansion, rigNames: readonly string[]): void => {
    for (const need of part.requires) {
      const scopes = need.scope === 'city' ? [''] : rigNames
      for (const rig of scopes.filter((scope) => missing(need.agent, scope))) {
        const where = rig === '' ? 'in the city' : `in rig \`${rig}\``
        context.issues.error(
          need.at,
          'pack.requires',
          `pack \`${need.pack}\` requires an agent \`${need.agent}\` ${where}`,
          nearestHint(need.agent, names),
        )
      }
    }
  }
  for (const part of brought)
    check(
      part,
      composed.rigs.map((rig) => rig.name),
    )
  for (const rig of composed.rigs) for (const part of rig.brought) check(part, [rig.name])
}

function firstWins(lists: readonly (readonly (readonly [string, TableNode])[])[]): Map<string, TableNode> {
  const first = new Map<string, TableNode>()
  for (const [name, node] of lists.flat()) if (!first.has(name)) first.set(name, node)
  return first
}

/** The directory below `dir`, when it is there. */
export function existingDir(context: LoadContext, dir: string, name: string): string | undefined {
  const path = join(dir, name)
  return context.files.kind(path) === 'directory' ? path : undefined
}
