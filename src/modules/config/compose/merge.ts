/**
 * The one merge of layers: tables and maps per key, arrays with an identity per element, other arrays by appending,
 * everything else by replacing. Every value keeps the place it came from.
 *
 * Promised, and property-tested: merging is associative, and the empty table is neutral on both sides.
 */

import { shapeOf } from '../../../contract/base/config-shape.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import { childKey } from '../../../files/check-table.ts'
import type { Layer, Place } from '../../../files/issues.ts'
import type { ConfigNode, ListNode, TableNode } from '../../../files/toml.ts'

/** Told of every value that a later layer redefines. */
export type OnOverride = (key: string, before: ConfigNode, after: ConfigNode) => void

/** `base` with `over` on top. */
export function mergeTables(
  schema: Schema,
  base: TableNode,
  over: TableNode,
  onOverride: OnOverride = ignore,
  key = '',
): TableNode {
  const shape = shapeOf(schema)
  const entries = new Map(base.entries)
  for (const [name, after] of over.entries) {
    const before = base.entries.get(name)
    const child = shape.type === 'map' ? shape.item : shape.properties[name]
    entries.set(
      name,
      before === undefined || child === undefined
        ? after
        : mergeNodes(child, before, after, onOverride, childKey(key, name)),
    )
  }
  return { ...base, entries }
}

/** The identity of an element: the text under its identity keys (`a|b`: the first that is there). */
export function identityOf(element: ConfigNode, keys: readonly string[]): string | undefined {
  if (element.kind !== 'table') return undefined
  const parts = keys.map((alternatives) => {
    for (const name of alternatives.split('|')) {
      const child = element.entries.get(name)
      if (child?.kind === 'scalar') return String(child.value)
    }
    return ''
  })
  return JSON.stringify(parts)
}

/** The node with every place of it marked as belonging to `layer`. */
export function relayer<Node extends ConfigNode>(node: Node, layer: Layer): Node {
  return relayerNode(node, layer) as Node
}

function relayerNode(node: ConfigNode, layer: Layer): ConfigNode {
  const at: Place = { ...node.at, layer }
  const keyed = node.keyAt === undefined ? {} : { keyAt: { ...node.keyAt, layer } }
  if (node.kind === 'scalar') return { ...node, at, ...keyed }
  if (node.kind === 'list') return { ...node, items: node.items.map((item) => relayerNode(item, layer)), at, ...keyed }
  const entries = new Map([...node.entries].map(([name, child]) => [name, relayerNode(child, layer)]))
  return { ...node, entries, at, ...keyed }
}

function mergeNodes(
  schema: Schema,
  before: ConfigNode,
  after: ConfigNode,
  onOverride: OnOverride,
  key: string,
): ConfigNode {
  const { annotation, item } = shapeOf(schema)
  if (annotation.merge !== 'replace') {
    if (before.kind === 'table' && after.kind === 'table') return mergeTables(schema, before, after, onOverride, key)
    if (before.kind === 'list' && after.kind === 'list') {
      if (annotation.identity === undefined || item === undefined) return append(before, after)
      return mergeElements(item, annotation.identity, before, after, onOverride, key)
    }
  }
  onOverride(key, before, after)
  return after
}

function append(before: ListNode, after: ListNode): ListNode {
  return { ...after, items: [...before.items, ...after.items] }
}

function mergeElements(
  schema: Schema,
  identity: readonly string[],
  before: ListNode,
  after: ListNode,
  onOverride: OnOverride,
  key: string,
): ListNode {
  const names = identity.flatMap((alternatives) => alternatives.split('|'))
  const items = new Map(before.items.map((element) => [identityOf(element, identity) ?? '', element]))
  for (const element of after.items) {
    const id = identityOf(element, identity) ?? ''
    const earlier = items.get(id)
    const elementKey = `${key}[${[...items.keys()].indexOf(id)}]`
    // The identity keys are equal by definition: naming them again redefines nothing.
    const silent = new Set(names.map((name) => childKey(elementKey, name)))
    const tell: OnOverride = (path, old, now) => {
      if (!silent.has(path)) onOverride(path, old, now)
    }
    items.set(id, earlier === undefined ? element : mergeNodes(schema, earlier, element, tell, elementKey))
  }
  return { ...after, items: [...items.values()] }
}

function ignore(): void {}
