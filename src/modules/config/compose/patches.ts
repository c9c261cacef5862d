/** Patches: edits of objects that another layer made. A target that does not exist is an error, never ignored. */

import { type Layer, nearestHint, type Place } from '../../../files/issues.ts'
import {
  type ConfigNode,
  elementsOf,
  type ListNode,
  listOf,
  placeOf,
  type TableNode,
  tableOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import type { LoadContext } from './context.ts'
import { type AgentDraft, draftIdentity, draftsNamed, localName } from './drafts.ts'
import { relayer } from './merge.ts'

/** Keys of a patch that name its target. */
const TARGET_KEYS = new Set(['name', 'dir', 'agent', 'template', '_replace'])

/**
 * `target` with `patch` on top: a value or list replaces, a map merges, `<list>_append` appends after that,
 * `<map>_remove` deletes keys last. Fields in `plain` end in `_append` by their own name.
 */
function applyPatch(target: TableNode, patch: TableNode, layer: Layer, plain: ReadonlySet<string> = NONE): TableNode {
  let table = target
  const later: [string, ConfigNode][] = []
  for (const [key, value] of relayer(patch, layer).entries) {
    if (TARGET_KEYS.has(key)) continue
    const derived = !plain.has(key) && (key.endsWith('_append') || key.endsWith('_remove'))
    if (derived) later.push([key, value])
    else table = withEntry(table, key, mergedValue(table.entries.get(key), value))
  }
  for (const [key, value] of later) table = applyDerived(table, key, value)
  return table
}

/** Agents with the patches of a pack or of the city applied, in order. A patch names its target by `dir` and `name`. */
export function patchAgents(
  context: LoadContext,
  drafts: readonly AgentDraft[],
  patches: readonly TableNode[],
  layer: Layer,
): AgentDraft[] {
  let patched = [...drafts]
  for (const patch of patches) {
    const name = textOf(patch, 'name') ?? ''
    const rig = textOf(patch, 'dir') ?? ''
    const scope = patched.filter((draft) => draft.rig === rig)
    const target = findTarget(context, scope, patched, name, placeOf(patch, 'name'), 'patches.agent')
    patched = patchOne(patched, target, patch, layer)
  }
  return patched
}

/** Agents of one rig with its own `[[rigs.patches]]` applied. */
export function patchRigAgents(
  context: LoadContext,
  drafts: readonly AgentDraft[],
  rig: TableNode,
  rigName: string,
): AgentDraft[] {
  let patched = [...drafts]
  for (const patch of elementsOf(rig, 'patches')) {
    const written = textOf(patch, 'agent') ?? ''
    const name = written.startsWith(`${rigName}/`) ? written.slice(rigName.length + 1) : written
    const scope = patched.filter((draft) => draft.rig === rigName)
    const target = findTarget(context, scope, patched, name, placeOf(patch, 'agent'), 'rigs.patches')
    patched = patchOne(patched, target, patch, 'rig_patch')
  }
  return patched
}

/** Objects by name with the patches of their kind applied; each patch names its target by `name`. */
export function patchNamed(
  context: LoadContext,
  targets: ReadonlyMap<string, TableNode>,
  patches: readonly TableNode[],
  kind: 'providers' | 'rigs',
): Map<string, TableNode> {
  const patched = new Map(targets)
  const noun = kind === 'rigs' ? 'rig' : 'provider'
  for (const patch of patches) {
    const name = textOf(patch, 'name') ?? ''
    const target = patched.get(name)
    if (target === undefined) {
      const known = [...patched.keys(), ...(kind === 'providers' ? Object.keys(context.options.presets) : [])]
      const declare = kind === 'providers' ? `declare it: [providers.${name}]` : undefined
      context.issues.error(
        placeOf(patch, 'name'),
        `patches.${kind}`,
        `there is no ${noun} \`${name}\` to patch`,
        nearestHint(name, known) ?? declare,
      )
      continue
    }
    const base = isTrue(patch, '_replace') ? { ...target, entries: new Map<string, ConfigNode>() } : target
    patched.set(name, applyPatch(base, patch, 'city_patch', kind === 'providers' ? PROVIDER_FIELDS : NONE))
  }
  return patched
}

const NONE: ReadonlySet<string> = new Set()
/** A provider's own field is spelt like an appender. */
const PROVIDER_FIELDS: ReadonlySet<string> = new Set(['args_append'])

function patchOne(
  drafts: readonly AgentDraft[],
  target: AgentDraft | undefined,
  patch: TableNode,
  layer: Layer,
): AgentDraft[] {
  if (target === undefined) return [...drafts]
  return drafts.map((draft) =>
    draft === target ? { ...draft, fields: applyPatch(draft.fields, patch, layer) } : draft,
  )
}

function findTarget(
  context: LoadContext,
  scope: readonly AgentDraft[],
  all: readonly AgentDraft[],
  name: string,
  at: Place,
  key: string,
): AgentDraft | undefined {
  const found = draftsNamed(scope, name)
  if (found.length === 1) return found[0]
  if (found.length > 1) {
    const names = found.map((draft) => `\`${localName(draft)}\``).join(', ')
    context.issues.error(at, key, `\`${name}\` means more than one agent: ${names}`)
    return undefined
  }
  context.issues.error(at, key, `there is no agent \`${name}\` to patch`, targetHint(name, scope, all))
  return undefined
}

function targetHint(name: string, scope: readonly AgentDraft[], all: readonly AgentDraft[]): string | undefined {
  const elsewhere = draftsNamed(all, name)[0]
  if (elsewhere !== undefined) {
    return elsewhere.rig === ''
      ? `\`${draftIdentity(elsewhere)}\` is an agent of the city`
      : `write \`dir = "${elsewhere.rig}"\``
  }
  return nearestHint(name, [...scope.map(localName), ...scope.map((draft) => draft.name)])
}

function mergedValue(before: ConfigNode | undefined, after: ConfigNode): ConfigNode {
  if (before?.kind !== 'table' || after.kind !== 'table') return after
  return { ...before, entries: new Map([...before.entries, ...after.entries]) }
}

function applyDerived(table: TableNode, key: string, value: ConfigNode): TableNode {
  const field = key.slice(0, key.lastIndexOf('_'))
  if (key.endsWith('_append') && value.kind === 'list') {
    const before = table.entries.get(field)
    const items = before?.kind === 'list' ? [...before.items, ...value.items] : value.items
    return withEntry(table, field, { ...value, items } satisfies ListNode)
  }
  const map = tableOf(table, field)
  if (map === undefined || value.kind !== 'list') return table
  const entries = new Map(map.entries)
  for (const removed of listOf({ ...table, entries: new Map([[key, value]]) }, key))
    entries.delete(String(removed.value))
  return withEntry(table, field, { ...map, entries })
}

function isTrue(table: TableNode, key: string): boolean {
  const node = table.entries.get(key)
  return node?.kind === 'scalar' && node.value === true
}
