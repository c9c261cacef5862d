/** Checks across objects: references, cycles, limits, declared files. Everything wrong is reported, nothing is repaired. */
import { isAbsolute, join } from 'node:path'
import { shapeOf } from '../../../contract/base/config-shape.ts'
import { AGENT_FIELDS } from '../../../contract/config-schema.ts'
import { nearestHint, type Place, placeText } from '../../../files/issues.ts'
import { contains } from '../../../files/read.ts'
import {
  elementsOf,
  emptyTable,
  listOf,
  numberOf,
  placeOf,
  type ScalarNode,
  type TableNode,
  tableOf,
  textOf,
} from '../../../files/toml.ts'
import type { Composed, FinishedAgent, FinishedSession, ServiceDraft } from './compose.ts'
import type { LoadContext } from './context.ts'
import { draftIdentity, draftsNamed, localName } from './drafts.ts'
import { isPool } from './effective.ts'
import { derivePrefix, stateRootOf } from './names.ts'
import { checkOptionChoices } from './providers.ts'
import { checkToolServers } from './tool-servers.ts'

/** What validation finds out about a rig besides its problems. */
export type RigFacts = { readonly path: string | undefined; readonly prefix: string }
export type Facts = {
  readonly name: string
  readonly prefix: string
  readonly rigs: ReadonlyMap<string, RigFacts>
  /** Qualified identities of what each agent depends on. */
  readonly dependencies: ReadonlyMap<string, readonly string[]>
  /** Absolute paths of declared files by agent identity and field. */
  readonly paths: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** Runs every check and answers what it worked out on the way. */
export function validateCity(context: LoadContext, composed: Composed, name: string): Facts {
  const prefix = cityPrefix(composed, name)
  const rigs = checkRigs(context, composed, prefix)
  checkReferences(context, composed)
  checkServersOfAll(context, composed)
  const paths = new Map<string, Readonly<Record<string, string>>>()
  for (const agent of composed.agents) {
    checkAgent(context, agent, composed)
    paths.set(draftIdentity(agent.draft), checkFiles(context, agent))
  }
  checkSessions(context, composed)
  for (const service of composed.services) checkService(context, service)
  checkStateRoots(context, composed.services)
  checkDoctor(context, composed)
  return { name, prefix, rigs, dependencies: checkDependencies(context, composed), paths }
}

/** Agent names that would collide with paths of the API (decision 69). */
const RESERVED_AGENTS = new Set(['output', 'suspend', 'resume', 'prompt'])

function cityPrefix({ root }: Composed, name: string): string {
  const declared = textOf(tableOf(root.merged, 'workspace') ?? emptyTable(), 'prefix')
  return textOf(root.site, 'workspace_prefix') ?? declared ?? derivePrefix(name)
}

// ---- rigs -----------------------------------------------------------------------------------------------------------

function checkRigs(context: LoadContext, composed: Composed, cityPrefixText: string): Map<string, RigFacts> {
  const facts = new Map<string, RigFacts>()
  const owners = new Map([[cityPrefixText.toLowerCase(), 'the city']])
  const names = new Map<string, string>()
  for (const { name, fields } of composed.rigs) {
    const prefix = textOf(fields, 'prefix') ?? derivePrefix(name)
    const owner = owners.get(prefix.toLowerCase())
    if (owner !== undefined) {
      context.issues.error(
        placeOf(fields, 'prefix'),
        'rigs.prefix',
        `the prefix \`${prefix}\` of rig \`${name}\` belongs to ${owner} already`,
        'set another `prefix`',
      )
    }
    owners.set(prefix.toLowerCase(), `rig \`${name}\``)
    const twin = names.get(name.toLowerCase())
    if (twin !== undefined)
      context.issues.error(
        placeOf(fields, 'name'),
        'rigs.name',
        `rig \`${name}\` differs from \`${twin}\` only in case`,
      )
    names.set(name.toLowerCase(), name)
    facts.set(name, { path: rigPath(context, name, fields), prefix })
    checkRigFields(context, composed, name, fields)
  }
  return facts
}

function rigPath(context: LoadContext, name: string, fields: TableNode): string | undefined {
  const declared = fields.entries.get('path')
  if (declared?.kind !== 'scalar' || declared.value === '') {
    context.issues.warn(
      placeOf(fields, 'name'),
      'rigs.path',
      `rig \`${name}\` has no path here: its agents do not start`,
      `write it to \`.svc/site.toml\`: [rigs.${name}] path = …`,
    )
    return undefined
  }
  const path = String(declared.value)
  if (isAbsolute(path)) {
    if (context.files.kind(path) !== 'directory')
      context.issues.error(declared.at, 'rigs.path', `the directory \`${path}\` does not exist`)
    return path
  }
  if (declared.at.layer === 'site') {
    context.issues.error(declared.at, 'rigs.path', 'a path in `site.toml` is absolute')
    return undefined
  }
  const inside = context.resolvePath(path, declared.at, 'rigs.path')
  if (inside !== undefined && context.files.kind(inside) === undefined) {
    context.issues.warn(declared.at, 'rigs.path', `the directory \`${path}\` does not exist yet`)
  }
  return inside
}

function checkRigFields(context: LoadContext, composed: Composed, rig: string, fields: TableNode): void {
  const target = fields.entries.get('default_sling_target')
  if (target?.kind === 'scalar') checkTarget(context, composed, rig, target)
  const formulas = fields.entries.get('formulas_dir')
  if (formulas?.kind !== 'scalar') return
  const path = context.resolvePath(String(formulas.value), formulas.at, 'rigs.formulas_dir')
  if (path !== undefined && context.files.kind(path) !== 'directory') {
    context.issues.error(formulas.at, 'rigs.formulas_dir', `the directory \`${String(formulas.value)}\` does not exist`)
  }
}

// A target with `/` is meant as it stands; otherwise the rig's agent, else the city's (decision 109).
function checkTarget(context: LoadContext, composed: Composed, rig: string, node: ScalarNode): void {
  const target = String(node.value)
  const known = new Set(composed.agents.map((agent) => draftIdentity(agent.draft)))
  if (known.has(target) || (!target.includes('/') && known.has(`${rig}/${target}`))) return
  context.issues.error(
    node.at,
    'rigs.default_sling_target',
    `there is no agent \`${target}\``,
    nearestHint(target, known),
  )
}

// ---- servers of tools -----------------------------------------------------------------------------------------------

/** What several of them inherit is told of once. */
function checkServersOfAll({ issues }: LoadContext, { root, providers, agents }: Composed): void {
  checkToolServers(issues, tableOf(root.merged, 'session'))
  for (const { resolved } of providers.values()) checkToolServers(issues, resolved)
  for (const { fields } of agents) checkToolServers(issues, fields)
}

// ---- references of tables -------------------------------------------------------------------------------------------

function checkReferences(context: LoadContext, composed: Composed): void {
  const { merged } = composed.root
  const providers = [...composed.providers.keys()]
  const workspace = tableOf(merged, 'workspace') ?? emptyTable()
  const defaults = tableOf(merged, 'agent_defaults') ?? emptyTable()
  checkProviderName(context, workspace.entries.get('provider'), 'workspace.provider', providers)
  checkProviderName(context, defaults.entries.get('provider'), 'agent_defaults.provider', providers)
  const upstreamNode = defaults.entries.get('upstream')
  if (upstreamNode?.kind === 'scalar')
    reportMissing(context, upstreamNode, 'agent_defaults.upstream', 'upstream', [...composed.upstreams.keys()])
  const rigs = composed.rigs.map((rig) => rig.name)
  for (const [index, override] of elementsOf(tableOf(merged, 'orders') ?? emptyTable(), 'overrides').entries()) {
    const rig = override.entries.get('rig')
    if (rig?.kind === 'scalar' && rig.value !== '*')
      reportMissing(context, rig, `orders.overrides[${index}].rig`, 'rig', rigs)
  }
  const named = composed.sessions.map((session) => session.identity)
  const lone = composed.agents.filter(({ draft, fields }) => !isPool(draft.fields, fields))
  const known = [...named, ...lone.map(({ draft }) => draftIdentity(draft))]
  for (const [index, route] of elementsOf(tableOf(merged, 'extmsg') ?? emptyTable(), 'default_route').entries()) {
    const agent = route.entries.get('agent')
    if (agent?.kind !== 'scalar') continue
    const key = `extmsg.default_route[${index}].agent`
    reportMissing(context, agent, key, 'named session or single agent', known)
    if (!known.includes(String(agent.value)) || isTold(composed, String(agent.value))) continue
    const message = `\`${String(agent.value)}\` takes no messages (prompt mode \`omit\`): a chat must not become a shell`
    context.issues.error(agent.at, key, message)
  }
}

/** Whether what is configured under this identity may be told anything; of what there is not, that is said elsewhere. */
function isTold({ agents, sessions, providers }: Composed, identity: string): boolean {
  const named = sessions.find((session) => session.identity === identity)?.agent
  const wanted = named === undefined ? identity : draftIdentity(named)
  const fields = agents.find(({ draft }) => draftIdentity(draft) === wanted)?.fields
  if (fields === undefined) return true
  const provider = providers.get(textOf(fields, 'provider') ?? '')?.resolved
  const mode = textOf(fields, 'prompt_mode') ?? (provider === undefined ? undefined : textOf(provider, 'prompt_mode'))
  return mode !== 'omit'
}

function reportMissing(
  context: LoadContext,
  node: ScalarNode,
  key: string,
  noun: string,
  known: readonly string[],
): void {
  const name = String(node.value)
  if (!known.includes(name))
    context.issues.error(node.at, key, `there is no ${noun} \`${name}\``, nearestHint(name, known))
}

function checkProviderName(
  context: LoadContext,
  node: ScalarNode | unknown,
  key: string,
  known: readonly string[],
): void {
  if (!isScalar(node)) return
  reportMissing(context, node, key, 'provider', [...known, ...Object.keys(context.options.presets)])
}

function isScalar(node: unknown): node is ScalarNode {
  return typeof node === 'object' && node !== null && 'kind' in node && node.kind === 'scalar'
}

// ---- agents ---------------------------------------------------------------------------------------------------------

function checkAgent(context: LoadContext, agent: FinishedAgent, composed: Composed): void {
  const { draft, fields } = agent
  const { issues } = context
  if (RESERVED_AGENTS.has(draft.name)) issues.error(draft.at, 'agent.name', `\`${draft.name}\` is a reserved name`)
  const max = numberOf(fields, 'max_active_sessions') ?? -1
  const min = numberOf(fields, 'min_active_sessions') ?? 0
  if (max >= 0 && min > max) {
    const at = placeOf(fields, 'min_active_sessions')
    issues.error(
      at,
      'min_active_sessions',
      `agent \`${draftIdentity(draft)}\`: min_active_sessions ${min} is more than max_active_sessions ${max} (${placeText(placeOf(fields, 'max_active_sessions'))})`,
    )
  }
  checkAgentProvider(context, agent, composed)
  if (fields.entries.has('upstream')) checkUpstream(context, agent, composed)
}

function checkAgentProvider(context: LoadContext, { draft, fields }: FinishedAgent, composed: Composed): void {
  const node = fields.entries.get('provider')
  // What comes from a table of defaults is reported there, once.
  const own =
    node !== undefined &&
    node.at.layer !== 'city_default' &&
    node !== tableOf(composed.root.merged, 'workspace')?.entries.get('provider')
  if (own && node.at.line > 0) checkProviderName(context, node, 'provider', [...composed.providers.keys()])
  const provider = composed.providers.get(textOf(fields, 'provider') ?? '')?.resolved
  if (provider === undefined) return
  const mode = textOf(fields, 'prompt_mode') ?? textOf(provider, 'prompt_mode')
  if (
    fields.entries.has('prompt_mode') &&
    mode === 'flag' &&
    !fields.entries.has('prompt_flag') &&
    !provider.entries.has('prompt_flag')
  ) {
    context.issues.error(placeOf(fields, 'prompt_mode'), 'prompt_flag', '`prompt_mode = "flag"` needs `prompt_flag`')
  }
  const acp = provider.entries.get('supports_acp')
  if (textOf(fields, 'session') === 'acp' && !(acp?.kind === 'scalar' && acp.value === true)) {
    context.issues.error(
      placeOf(fields, 'session'),
      'session',
      `agent \`${draftIdentity(draft)}\`: its provider \`${textOf(fields, 'provider')}\` does not support ACP`,
    )
  }
  checkOptionChoices(tableOf(fields, 'option_defaults'), provider, 'option_defaults', context.issues)
}

const UPSTREAM_VALUES = ['base_url', 'api_key', 'auth_token'] as const

function checkUpstream(context: LoadContext, { fields }: FinishedAgent, composed: Composed): void {
  const node = fields.entries.get('upstream')
  if (node?.kind !== 'scalar' || node.value === '') return
  const upstream = composed.upstreams.get(String(node.value))
  if (upstream === undefined) {
    if (node.at.layer !== 'city_default')
      reportMissing(context, node, 'upstream', 'upstream', [...composed.upstreams.keys()])
    return
  }
  const provider = textOf(fields, 'provider') ?? ''
  const names = tableOf(composed.providers.get(provider)?.resolved ?? emptyTable(), 'upstream_env') ?? emptyTable()
  for (const value of UPSTREAM_VALUES) {
    if (!upstream.entries.has(value) || upstream.entries.has(`${value}_env`) || names.entries.has(value)) continue
    const message = `provider \`${provider}\` names no environment variable for \`${value}\``
    context.issues.error(
      placeOf(upstream, value),
      `upstreams.${String(node.value)}.${value}`,
      message,
      `set \`${value}_env\` here, or \`upstream_env\` of the provider`,
    )
  }
}

const PATH_FIELDS = Object.entries(AGENT_FIELDS)
  .filter(([, schema]) => shapeOf(schema).annotation.kind === 'path')
  .map(([key]) => key)

function checkFiles(context: LoadContext, { fields }: FinishedAgent): Record<string, string> {
  const paths: Record<string, string> = {}
  for (const key of PATH_FIELDS) {
    const node = fields.entries.get(key)
    if (node?.kind !== 'scalar' || node.value === '') continue
    const path = context.resolvePath(String(node.value), node.at, key)
    if (path === undefined) continue
    const kind = context.files.kind(path)
    const wanted = key === 'overlay_dir' ? 'directory' : 'file'
    if (kind === wanted) paths[key] = path
    else if (kind === undefined) context.issues.error(node.at, key, `\`${String(node.value)}\` does not exist`)
    else context.issues.error(node.at, key, `\`${String(node.value)}\` is not a ${wanted}`)
  }
  return paths
}

function checkDependencies(context: LoadContext, composed: Composed): Map<string, string[]> {
  const drafts = composed.agents.map((agent) => agent.draft)
  const edges = new Map<string, string[]>()
  const places = new Map<string, Place>()
  for (const { draft, fields } of composed.agents) {
    const from = draftIdentity(draft)
    const to: string[] = []
    for (const node of listOf(fields, 'depends_on')) {
      const target = dependency(String(node.value), draft, drafts)
      if (target !== undefined) {
        to.push(target)
        places.set(`${from}>${target}`, node.at)
        continue
      }
      context.issues.error(
        node.at,
        'depends_on',
        `agent \`${from}\` depends on \`${String(node.value)}\`, which does not exist`,
        nearestHint(
          String(node.value),
          drafts.flatMap((each) => [draftIdentity(each), each.name]),
        ),
      )
    }
    edges.set(from, to)
  }
  reportCircles(context, edges, places)
  return edges
}

// A name is meant from where it is written: in the same pack, else as the city says it; in the same rig, else in the city.
function dependency(
  name: string,
  draft: FinishedAgent['draft'],
  drafts: readonly FinishedAgent['draft'][],
): string | undefined {
  const slash = name.indexOf('/')
  const local = name.slice(slash + 1)
  const names = draft.binding === '' || slash >= 0 ? [local] : [`${draft.binding}.${local}`, local]
  const rigs = slash >= 0 ? [name.slice(0, slash)] : [draft.rig, '']
  for (const rig of rigs) {
    const inScope = drafts.filter((other) => other.rig === rig)
    for (const wanted of names) {
      const found = inScope.find((other) => localName(other) === wanted)
      if (found !== undefined) return draftIdentity(found)
    }
    const [only, ...others] = draftsNamed(inScope, local)
    if (only !== undefined && others.length === 0) return draftIdentity(only)
  }
  return undefined
}

function reportCircles(
  context: LoadContext,
  edges: ReadonlyMap<string, readonly string[]>,
  places: ReadonlyMap<string, Place>,
): void {
  const done = new Set<string>()
  const visit = (name: string, path: readonly string[]): void => {
    if (path.includes(name)) {
      const circle = [...path.slice(path.indexOf(name)), name]
      const at = places.get(`${path.at(-1) ?? ''}>${name}`)
      if (at !== undefined)
        context.issues.error(at, 'depends_on', `the dependencies form a circle: ${circle.join(' → ')}`)
      return
    }
    if (done.has(name)) return
    for (const next of edges.get(name) ?? []) visit(next, [...path, name])
    done.add(name)
  }
  for (const name of edges.keys()) visit(name, [])
}

// ---- named sessions -------------------------------------------------------------------------------------------------

function checkSessions(context: LoadContext, composed: Composed): void {
  const byIdentity = new Map(composed.agents.map((agent) => [draftIdentity(agent.draft), agent]))
  const always = new Map<string, number>()
  for (const session of composed.sessions) {
    if (textOf(session.fields, 'mode') !== 'always' || session.agent === undefined) continue
    const agent = byIdentity.get(draftIdentity(session.agent))
    if (agent === undefined) continue
    const count = (always.get(draftIdentity(agent.draft)) ?? 0) + 1
    always.set(draftIdentity(agent.draft), count)
    checkAlways(context, session, agent, count)
  }
}

function checkAlways(context: LoadContext, session: FinishedSession, agent: FinishedAgent, count: number): void {
  const at = placeOf(session.fields, 'mode')
  const max = numberOf(agent.fields, 'max_active_sessions') ?? -1
  const name = draftIdentity(agent.draft)
  if (max >= 0 && count > max) {
    context.issues.error(
      at,
      'named_session.mode',
      `\`${session.identity}\` is always on, but agent \`${name}\` has room for ${max} (${placeText(placeOf(agent.fields, 'max_active_sessions'))})`,
    )
  }
  const sleep = textOf(agent.fields, 'sleep_after_idle')
  if (sleep !== undefined && sleep !== 'off') {
    context.issues.error(
      at,
      'named_session.mode',
      `\`${session.identity}\` is always on, but agent \`${name}\` sleeps when idle (${placeText(placeOf(agent.fields, 'sleep_after_idle'))})`,
    )
  }
}

// ---- services and checks --------------------------------------------------------------------------------------------

function checkService(context: LoadContext, { fields }: ServiceDraft): void {
  const process = tableOf(fields, 'process') ?? emptyTable(fields.at)
  const command = process.entries.get('command')
  if (command?.kind === 'list' && command.items.length === 0)
    context.issues.error(command.at, 'service.process.command', '`command` must not be empty')
  const mode = fields.entries.get('publish_mode')
  if (textOf(fields, 'publish_mode') === 'direct' && mode !== undefined && mode.at.file !== 'city.toml') {
    context.issues.error(
      mode.at,
      'service.publish_mode',
      '`direct` is allowed in `city.toml` only: it opens the service to everyone who reaches the port',
    )
  }
}

function checkStateRoots(context: LoadContext, services: readonly ServiceDraft[]): void {
  const owners = new Map<string, ServiceDraft>()
  const base = join(context.city.dir, '.svc', 'services')
  for (const service of services) {
    const node = service.fields.entries.get('state_root')
    const written = node?.kind === 'scalar' ? String(node.value) : (textOf(service.fields, 'name') ?? '')
    const path = stateRootOf(context.city.dir, written)
    const at = node?.at ?? service.fields.at
    if (isAbsolute(written) || !path.startsWith(`${base}/`)) {
      context.issues.error(at, 'service.state_root', `\`${written}\` is not below \`.svc/services/\``)
      continue
    }
    const [, owner] =
      [...owners].find(([other, { home }]) => overlap(other, path) && home.dir !== service.home.dir) ?? []
    if (owner !== undefined) {
      context.issues.error(
        at,
        'service.state_root',
        `\`${written}\` belongs to the service at ${placeText(owner.fields.at)}, of another pack`,
      )
    }
    if (!owners.has(path)) owners.set(path, service)
  }
}

/** One of them is inside the other, or the other. */
const overlap = (a: string, b: string): boolean => contains(a, b) || contains(b, a)

function checkDoctor(context: LoadContext, composed: Composed): void {
  for (const [index, check] of elementsOf(tableOf(composed.root.merged, 'doctor') ?? emptyTable(), 'check').entries()) {
    for (const key of ['script', 'fix']) {
      const node = check.entries.get(key)
      if (node?.kind !== 'scalar') continue
      const path = context.resolvePath(String(node.value), node.at, `doctor.check[${index}].${key}`)
      if (path === undefined || context.files.kind(path) === 'file') continue
      context.issues.error(node.at, `doctor.check[${index}].${key}`, `\`${String(node.value)}\` does not exist`)
    }
  }
}
