/** Who in the city's files names an object: what an API answers when something is still in use. */

import type { Referrer } from '../../../files/configuration.ts'
import type { Place } from '../../../files/issues.ts'
import {
  type ConfigNode,
  elementsOf,
  emptyTable,
  listOf,
  type TableNode,
  tableOf,
  textOf,
} from '../../../files/toml.ts'
import { draftIdentity, localName } from './drafts.ts'
import type { EffectiveConfig } from './effective.ts'
import { originsOf } from './effective.ts'

export type { Referrer }

/** Everything in files that names the provider. */
export function referrersOfProvider(config: EffectiveConfig, name: string): Referrer[] {
  const { composed } = originsOf(config)
  const { merged } = composed.root
  const found = new Collector((node) => node.kind === 'scalar' && String(node.value).replace(/^provider:/, '') === name)
  for (const table of ['workspace', 'agent_defaults'] as const)
    found.look(table, table, 'provider', tableOf(merged, table))
  for (const { draft } of composed.agents) found.look('agent', draftIdentity(draft), 'provider', draft.fields)
  for (const other of composed.providers.values()) {
    const own = other.name === name || textOf(other.raw, 'base')?.startsWith('builtin:') === true
    if (!own) found.look('provider', other.name, 'base', other.raw)
  }
  for (const patch of patchesOf(merged, 'providers')) found.look('patch', name, 'name', patch)
  return found.referrers
}

/** Everything in files that names the rig, besides its own entry. */
export function referrersOfRig(config: EffectiveConfig, name: string): Referrer[] {
  const { composed } = originsOf(config)
  const { merged } = composed.root
  const found = new Collector((node) => node.kind === 'scalar' && node.value === name)
  for (const agent of elementsOf(merged, 'agent')) found.look('agent', textOf(agent, 'name') ?? '', 'dir', agent)
  for (const patch of patchesOf(merged, 'agent')) found.look('patch', textOf(patch, 'name') ?? '', 'dir', patch)
  for (const patch of patchesOf(merged, 'rigs')) found.look('patch', name, 'name', patch)
  for (const patch of patchesOf(merged, 'named_session')) found.look('patch', textOf(patch, 'name') ?? '', 'dir', patch)
  for (const session of elementsOf(merged, 'named_session')) {
    found.look('named_session', textOf(session, 'name') ?? textOf(session, 'template') ?? '', 'dir', session)
  }
  for (const override of elementsOf(tableOf(merged, 'orders') ?? emptyTable(), 'overrides')) {
    found.look('order_override', textOf(override, 'name') ?? '', 'rig', override)
  }
  return found.referrers
}

/** Everything in files that names the agent by `identity` (`[<rig>/][<binding>.]<name>`). */
export function referrersOfAgent(config: EffectiveConfig, identity: string): Referrer[] {
  return referrersOfAgents(config, new Set([identity]))
}

/** Everything in files that names an agent which the import `binding` (of the city, or of `rig`) brings. */
export function referrersOfImport(config: EffectiveConfig, binding: string, rig = ''): Referrer[] {
  const brought = config.agents.filter((agent) => {
    const inScope = rig === '' || agent.dir === rig
    return inScope && (agent.origin === `pack:${binding}` || agent.origin.startsWith(`pack:${binding}.`))
  })
  return referrersOfAgents(config, new Set(brought.map((agent) => agent.identity)))
}

function referrersOfAgents(config: EffectiveConfig, identities: ReadonlySet<string>): Referrer[] {
  const { composed } = originsOf(config)
  const { merged } = composed.root
  const found = new Collector((node) => node.kind === 'scalar' && identities.has(String(node.value)))
  for (const { draft } of composed.agents) {
    if (identities.has(draftIdentity(draft))) continue
    const meant = config.agents.find((agent) => agent.identity === draftIdentity(draft))?.dependencies ?? []
    for (const [index, node] of listOf(draft.fields, 'depends_on').entries()) {
      if (identities.has(meant[index] ?? '')) found.add('agent', draftIdentity(draft), 'depends_on', node.at)
    }
  }
  for (const session of composed.sessions) {
    if (session.agent === undefined || !identities.has(draftIdentity(session.agent))) continue
    // A pack's own session goes with the pack.
    if (session.fields.at.layer !== 'pack') found.add('named_session', session.identity, 'template', session.fields.at)
  }
  for (const patch of patchesOf(merged, 'agent')) {
    const rig = textOf(patch, 'dir') ?? ''
    const named = composed.agents.filter(
      ({ draft }) => draft.rig === rig && matches(localName(draft), textOf(patch, 'name')),
    )
    if (named.some(({ draft }) => identities.has(draftIdentity(draft))))
      found.add('patch', textOf(patch, 'name') ?? '', 'name', patch.at)
  }
  for (const { name, fields } of composed.rigs) {
    found.look('rig', name, 'default_sling_target', fields)
    for (const patch of elementsOf(fields, 'patches')) {
      const written = (textOf(patch, 'agent') ?? '').replace(`${name}/`, '')
      if (identities.has(`${name}/${written}`)) found.add('patch', `${name}/${written}`, 'agent', patch.at)
    }
  }
  return found.referrers
}

function matches(local: string, written: string | undefined): boolean {
  return written !== undefined && (local === written || local.endsWith(`.${written}`))
}

function patchesOf(merged: TableNode, kind: string): TableNode[] {
  return elementsOf(tableOf(merged, 'patches') ?? emptyTable(), kind)
}

class Collector {
  readonly referrers: Referrer[] = []
  readonly #matches: (node: ConfigNode) => boolean

  constructor(matchesNode: (node: ConfigNode) => boolean) {
    this.#matches = matchesNode
  }

  look(kind: Referrer['kind'], name: string, key: string, table: TableNode | undefined): void {
    const node = table?.entries.get(key)
    if (node !== undefined && this.#matches(node)) this.add(kind, name, key, node.at)
  }

  add(kind: Referrer['kind'], name: string, key: string, at: Place): void {
    const known = this.referrers.some((other) => other.file === at.file && other.line === at.line && other.key === key)
    if (!known) this.referrers.push({ kind, name, key, file: at.file, line: at.line })
  }
}
