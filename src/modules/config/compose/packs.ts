/** Packs: reading one from its directory, following imports, and what a pack brings once it stands under a binding. */
import { AgentFile, BINDING, PackFile } from '../../../contract/config-schema.ts'
import {
  type Asked,
  type ImportLink,
  ImportWalk,
  importEntries,
  type Located,
  type Obstacle,
} from '../../../files/imports.ts'
import { fileStart, type Layer, nearestHint, type Place } from '../../../files/issues.ts'
import type { BuiltinSource, PackSource, RemoteSource } from '../../../files/pack-source.ts'
import { unfitSvc } from '../../../files/pack-version.ts'
import {
  elementsOf,
  emptyTable,
  listOf,
  nodeOf,
  numberOf,
  placeOf,
  type TableNode,
  tableOf,
  tablesOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import { fileLabel, type Home, type LoadContext } from './context.ts'
import { type AgentDraft, draftIdentity } from './drafts.ts'
import { refuseDuplicates } from './duplicates.ts'
import { patchAgents } from './patches.ts'

/** A pack as read, before any binding. */
export type Pack = Home & {
  readonly bytes: number
  readonly name: string
  readonly kind: PackSource['kind']
  readonly manifest: TableNode
  readonly agents: readonly AgentDraft[]
  /** Grows while they are followed. */
  readonly imports: PackImport[]
  readonly version: string | undefined
  readonly commit: string | undefined
  readonly contentHash: string | undefined
}

export type PackImport = {
  readonly binding: string
  readonly source: string
  readonly version: string
  /** Its agents count as the importing pack's own: no binding in front of their names. */
  readonly exported: boolean
  readonly at: Place
  readonly pack: Pack
}

export type SessionDraft = { readonly binding: string; readonly rig: string; readonly fields: TableNode }
export type GlobalLive = {
  readonly pack: string
  readonly dir: string
  readonly root: string
  readonly commands: readonly string[]
}
export type Requirement = { readonly scope: string; readonly agent: string; readonly pack: string; readonly at: Place }
export type BoundPack = { readonly binding: string; readonly entry: PackImport }

/** Everything a pack brings, with bindings relative to it. */
export type Expansion = {
  readonly agents: readonly AgentDraft[]
  readonly sessions: readonly SessionDraft[]
  readonly providers: ReadonlyMap<string, TableNode>
  readonly upstreams: ReadonlyMap<string, TableNode>
  readonly services: readonly { readonly fields: TableNode; readonly home: Home; readonly binding: string }[]
  readonly pricing: readonly TableNode[]
  readonly globals: readonly GlobalLive[]
  readonly requires: readonly Requirement[]
  readonly packs: readonly BoundPack[]
}

/** Schema of `pack.toml` that this version reads. */
const PACK_SCHEMA = 2
/** Diamonds multiply when they are expanded; a set of packs that expands into more than this is a mistake. */
const MAX_BINDINGS = 2_000
const INSTALL_HINT = 'run `svcctl pack install`'
const RESERVED_BINDINGS = new Set(['install', 'upgrade', 'check'])

/** An import on its way to the list that it belongs to. */
type Entry = Asked & {
  readonly table: TableNode
  readonly key: string
  readonly home: Home
  readonly into: PackImport[]
}

/** Loads packs of one city; a directory is read once, however often it is imported. */
export class PackLoader {
  readonly #context: LoadContext
  readonly #walk: ImportWalk<Entry, Pack>
  readonly #expansions = new Map<Pack, Expansion>()
  #bindings = 0

  constructor(context: LoadContext) {
    this.#context = context
    this.#walk = new ImportWalk<Entry, Pack>(context.city, context.files, {
      locate: (source, version) => locate(context, source, version),
      read: (place, source) => readPack(context, place, source),
      importsOf: (pack) => this.#entries(pack.manifest, pack, '', pack.imports),
      linked: (link) => this.#linked(link),
    })
  }

  /** The packs of an `[imports]` table of the city, by binding; what cannot be loaded is reported and left out. */
  loadImports(table: TableNode, key: string): readonly PackImport[] {
    const loaded: PackImport[] = []
    this.#walk.follow(this.#entries(table, this.#context.city, key, loaded))
    return loaded
  }

  /** What a pack brings: its imports first, its own on top, its patches applied. */
  expand(pack: Pack): Expansion {
    const known = this.#expansions.get(pack)
    if (known !== undefined) return known
    const parts = pack.imports.map((entry) => this.bind(entry))
    const expansion = combine(this.#context, pack, parts)
    this.#expansions.set(pack, expansion)
    return expansion
  }

  /** What an import brings, with its binding in front of every name. */
  bind(entry: PackImport): Expansion {
    const inner = this.expand(entry.pack)
    this.#bindings += inner.packs.length + 1
    if (this.#bindings > MAX_BINDINGS) {
      if (this.#bindings - inner.packs.length - 1 <= MAX_BINDINGS) {
        this.#context.issues.error(
          entry.at,
          `imports.${entry.binding}`,
          `the imports expand into more than ${MAX_BINDINGS} packs`,
        )
      }
      return EMPTY
    }
    return bound(inner, entry)
  }

  #entries(table: TableNode, home: Home, key: string, into: PackImport[]): readonly Entry[] {
    return importEntries(table).flatMap((entry) => {
      const path = `${key}imports.${entry.name}`
      const reserved = RESERVED_BINDINGS.has(entry.name)
      if (!reserved && new RegExp(BINDING).test(entry.name)) return [{ ...entry, key: path, home, into }]
      this.#context.issues.error(
        entry.table.keyAt ?? entry.table.at,
        path,
        `\`${entry.name}\` ${reserved ? 'is a reserved name' : 'is not a binding name'}`,
        'write lower-case letters, digits, `_` and `-`',
      )
      return []
    })
  }

  #linked({ entry, source, to, obstacle }: ImportLink<Entry, Pack>): void {
    const { issues } = this.#context
    const { name: binding, table, key } = entry
    const at = table.entries.get('source')?.at ?? table.at
    if (source !== undefined && source.kind !== 'git' && entry.version !== '') {
      issues.error(
        table.entries.get('version')?.at ?? at,
        `${key}.version`,
        `a ${source.kind === 'local' ? 'local' : 'built-in'} pack has no version`,
      )
    }
    // What is wrong with the file of a broken pack was reported when it was read.
    if (obstacle !== undefined && obstacle.kind !== 'broken')
      issues.error(at, `${key}.source`, obstacle.message, obstacle.hint)
    if (obstacle !== undefined || to === undefined) return
    entry.into.push({
      binding,
      source: entry.source,
      version: entry.version,
      exported: isTrue(table, 'export'),
      at,
      pack: to,
    })
    this.#context.addImport(entry.home, binding, to)
  }
}

function locate(
  { options, untrusted }: LoadContext,
  source: RemoteSource | BuiltinSource,
  version: string,
): Located | Obstacle {
  if (source.kind === 'builtin') {
    const dir = options.builtinPacks.get(source.name)
    if (dir !== undefined) return { dir, root: dir, label: source.source }
    return {
      kind: 'absent',
      message: `there is no built-in pack \`${source.name}\``,
      hint: nearestHint(source.name, options.builtinPacks.keys()),
    }
  }
  const found = options.resolvePack?.({ remote: source, version })
  if (found === undefined) return { kind: 'absent', message: 'packs in git are not available here', hint: INSTALL_HINT }
  if (!found.ok) return { kind: 'absent', message: found.message, hint: found.hint ?? INSTALL_HINT }
  if (found.untrusted === true) untrusted.add(found.root)
  const { dir, root, commit, contentHash } = found
  return { dir, root, label: source.source, commit, version: found.version, contentHash }
}

function readPack(context: LoadContext, place: Located, source: PackSource): Pack | 'missing' | 'broken' {
  const { dir, root, label } = place
  const home = { dir, root, label }
  context.addHome(home)
  const before = context.issues.errors.length
  const manifest = context.readFile(home, 'pack.toml', PackFile, 'pack')
  // A file that is there but broken has been reported already.
  if (manifest === undefined) return context.issues.errors.length === before ? 'missing' : 'broken'
  checkManifest(context, manifest)
  refuseDuplicates(context, manifest, PackFile)
  const header = tableOf(manifest, 'pack') ?? emptyTable(manifest.at)
  const defaults = tableOf(manifest, 'agent_defaults') ?? emptyTable(manifest.at)
  return {
    ...home,
    bytes: context.sources.get(fileLabel(home, 'pack.toml'))?.length ?? 0,
    kind: source.kind,
    name: textOf(header, 'name') ?? '',
    manifest,
    version: place.version ?? textOf(header, 'version'),
    commit: place.commit,
    contentHash: place.contentHash,
    agents: discoverAgents(context, home, 'pack', defaults),
    imports: [],
  }
}

/** The `agents/<name>/` directories below `home`, each with its file and what the conventions add to it. */
export function discoverAgents(
  context: LoadContext,
  home: Home,
  layer: Layer,
  defaults: TableNode | undefined,
): AgentDraft[] {
  const drafts: AgentDraft[] = []
  for (const { name, directory } of context.list(home, 'agents')) {
    if (!directory || name.startsWith('.') || name.startsWith('_')) continue
    const dir = `agents/${name}`
    const at = fileStart(fileLabel(home, `${dir}/agent.toml`), layer)
    if (!/^[a-zA-Z0-9][a-zA-Z0-9_-]*$/.test(name)) {
      context.issues.error(
        fileStart(fileLabel(home, dir), layer),
        '',
        `\`${name}\` is not an agent name`,
        'write letters, digits, `_` and `-`',
      )
      continue
    }
    const found = context.readFile(home, `${dir}/agent.toml`, AgentFile, layer)
    const fields = withConventions(context, home, dir, found ?? emptyTable(at), layer)
    if (found === undefined && fields.entries.size === 0) {
      const broken = context.sources.has(at.file)
      if (!broken)
        context.issues.warn(
          fileStart(fileLabel(home, dir), layer),
          '',
          'has neither `agent.toml` nor a prompt: no agent',
        )
      continue
    }
    const origin = layer === 'pack' ? 'pack' : dir
    const declared = found ?? emptyTable(at)
    drafts.push({ name, binding: '', rig: '', fields, declared, home, defaults, origin, at: fields.at })
  }
  return drafts
}

// First that exists; an explicit key in `agent.toml` always wins.
const CONVENTIONS = [
  ['prompt_template', 'prompt.template.md', 'file'],
  ['prompt_template', 'prompt.md', 'file'],
  ['overlay_dir', 'overlay', 'directory'],
  ['namepool', 'namepool.txt', 'file'],
] as const

function withConventions(context: LoadContext, home: Home, dir: string, fields: TableNode, layer: Layer): TableNode {
  const names = new Set(
    context.list(home, dir).map((entry) => `${entry.name}:${entry.directory ? 'directory' : 'file'}`),
  )
  let table = fields
  for (const [key, file, kind] of CONVENTIONS) {
    if (table.entries.has(key) || !names.has(`${file}:${kind}`)) continue
    const at = fileStart(fileLabel(home, `${dir}/${file}`), layer)
    context.claim(at.file, home)
    table = withEntry(table, key, nodeOf(`${dir}/${file}`, at))
  }
  return table
}

/** Rules of `pack.toml` that are no matter of its shape; the root pack obeys them too. */
export function checkManifest({ issues, options }: LoadContext, manifest: TableNode): void {
  const header = tableOf(manifest, 'pack')
  if (header === undefined) return
  const schema = numberOf(header, 'schema')
  if (schema !== undefined && schema !== PACK_SCHEMA)
    issues.error(
      placeOf(header, 'schema'),
      'pack.schema',
      `pack schema ${schema} is not supported: this version reads schema ${PACK_SCHEMA}`,
    )
  const requires = textOf(header, 'requires_svc')
  const unfit = requires === undefined ? undefined : unfitSvc(requires, options.version)
  if (unfit !== undefined)
    issues.error(
      placeOf(header, 'requires_svc'),
      'pack.requires_svc',
      unfit,
      'upgrade svcctl, or import an older version',
    )
}

const EMPTY: Expansion = {
  agents: [],
  sessions: [],
  providers: new Map(),
  upstreams: new Map(),
  services: [],
  pricing: [],
  globals: [],
  requires: [],
  packs: [],
}

function combine(context: LoadContext, pack: Pack, parts: readonly Expansion[]): Expansion {
  const own = ownPart(context, pack)
  const all = [...parts, own]
  const agents = refuseTwins(
    context,
    all.flatMap((part) => part.agents),
  )
  return {
    agents: patchAgents(context, agents, packPatches(pack), 'pack_patch'),
    sessions: all.flatMap((part) => part.sessions),
    // First wins: the pack itself, then its imports in the order of their bindings.
    providers: firstOf([own, ...parts].map((part) => part.providers)),
    upstreams: firstOf([own, ...parts].map((part) => part.upstreams)),
    services: all.flatMap((part) => part.services),
    pricing: [own, ...parts].flatMap((part) => part.pricing),
    globals: all.flatMap((part) => part.globals),
    requires: all.flatMap((part) => part.requires),
    packs: parts.flatMap((part) => part.packs),
  }
}

function ownPart(context: LoadContext, pack: Pack): Expansion {
  const { manifest } = pack
  for (const draft of pack.agents) refuseDir(context, draft)
  const commands = listOf(tableOf(manifest, 'global') ?? emptyTable(), 'session_live').map((node) => String(node.value))
  return {
    ...EMPTY,
    agents: pack.agents,
    sessions: elementsOf(manifest, 'named_session').map((fields) => ({ binding: '', rig: '', fields })),
    providers: new Map(tablesOf(manifest, 'providers')),
    upstreams: new Map(tablesOf(manifest, 'upstreams')),
    services: elementsOf(manifest, 'service').map((fields) => ({ fields, home: pack, binding: '' })),
    pricing: elementsOf(manifest, 'pricing'),
    globals: commands.length === 0 ? [] : [{ pack: pack.name, dir: pack.dir, root: pack.root, commands }],
    requires: elementsOf(tableOf(manifest, 'pack') ?? emptyTable(), 'requires').map((entry) => ({
      scope: textOf(entry, 'scope') ?? 'city',
      agent: textOf(entry, 'agent') ?? '',
      pack: pack.name,
      at: entry.at,
    })),
  }
}

function bound(inner: Expansion, entry: PackImport): Expansion {
  const prefix = (binding: string): string => {
    if (entry.exported) return binding
    return binding === '' ? entry.binding : `${entry.binding}.${binding}`
  }
  // Which pack an agent is from stays visible even when its name no longer says so.
  const originOf = (origin: string): string => {
    const rest = origin === 'pack' ? '' : origin.slice('pack:'.length)
    return `pack:${rest === '' ? entry.binding : `${entry.binding}.${rest}`}`
  }
  return {
    ...inner,
    agents: inner.agents.map((draft) => ({ ...draft, binding: prefix(draft.binding), origin: originOf(draft.origin) })),
    sessions: inner.sessions.map((draft) => ({ ...draft, binding: prefix(draft.binding) })),
    services: inner.services.map((draft) => ({ ...draft, binding: prefix(draft.binding) })),
    // The weaker first: a pack stands behind those it imports.
    packs: [
      ...inner.packs.map((pack) => ({ ...pack, binding: `${entry.binding}.${pack.binding}` })),
      { binding: entry.binding, entry },
    ],
  }
}

/** Of agents with one name from two directories the first stays, and that is an error. */
export function refuseTwins(context: LoadContext, drafts: readonly AgentDraft[]): AgentDraft[] {
  const byName = new Map<string, AgentDraft>()
  for (const draft of drafts) {
    const name = draftIdentity(draft)
    const twin = byName.get(name)
    if (twin === undefined) byName.set(name, draft)
    else if (twin.home.dir !== draft.home.dir) {
      context.issues.error(
        draft.at,
        'name',
        `there are two agents \`${name}\`: the other is in ${twin.at.file}`,
        'import one of the packs without `export`',
      )
    }
  }
  return [...byName.values()]
}

function packPatches(pack: Pack): TableNode[] {
  return elementsOf(tableOf(pack.manifest, 'patches') ?? emptyTable(), 'agent')
}

function refuseDir(context: LoadContext, draft: AgentDraft): void {
  const dir = draft.fields.entries.get('dir')
  if (dir !== undefined)
    context.issues.error(dir.at, 'dir', 'an agent of a pack has no `dir`: the city decides where it is')
}

function firstOf(maps: readonly ReadonlyMap<string, TableNode>[]): Map<string, TableNode> {
  const first = new Map<string, TableNode>()
  for (const map of maps) for (const [name, node] of map) if (!first.has(name)) first.set(name, node)
  return first
}

function isTrue(table: TableNode, key: string): boolean {
  const node = table.entries.get(key)
  return node?.kind === 'scalar' && node.value === true
}
