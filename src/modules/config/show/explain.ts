/** Where every value of the effective configuration comes from: value, file, line, layer. */

import { shapeOf } from '../../../contract/base/config-shape.ts'
import { MASK } from '../../../contract/base/merge-patch.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import { AGENT_FIELDS, Provider, SETTINGS, Service } from '../../../contract/config-schema.ts'
import type { Layer, Place } from '../../../files/issues.ts'
import { masked } from '../../../files/mask.ts'
import { type ConfigNode, isPlainTable, type PlainValue, plainOf, type TableNode } from '../../../files/toml.ts'
import { draftIdentity } from '../compose/drafts.ts'
import { type EffectiveConfig, originsOf } from '../compose/effective.ts'

/** One value and its origin. `file` and `line` are null for what stands in no file. */
export type ExplainedValue = {
  readonly value: PlainValue
  readonly file: string | null
  readonly line: number | null
  readonly column: number | null
  readonly layer: Layer
  /** For a list put together from several places: where each element is from. */
  readonly items?: readonly ExplainedValue[]
}
/** By dotted key: a value of a table or map has a key of its own (`env.MODE`). */
export type ExplainedFields = Readonly<Record<string, ExplainedValue>>

export type Explanation = {
  readonly revision: string
  readonly settings: ExplainedFields
  readonly agents: readonly { readonly identity: string; readonly origin: string; readonly fields: ExplainedFields }[]
  readonly rigs: readonly { readonly name: string; readonly fields: ExplainedFields }[]
  readonly named_sessions: readonly { readonly identity: string; readonly fields: ExplainedFields }[]
  readonly providers: readonly {
    readonly name: string
    readonly chain: readonly string[]
    readonly fields: ExplainedFields
  }[]
  readonly services: readonly { readonly name: string; readonly fields: ExplainedFields }[]
}

/** Explains a configuration that this process has loaded. Environment values and credentials are masked unless `reveal`. */
export function explain(config: EffectiveConfig, options: { reveal?: boolean } = {}): Explanation {
  const { composed, settings, rigs } = originsOf(config)
  const reveal = options.reveal === true
  const fieldsOf = (table: TableNode, schemas: SchemaMap): ExplainedFields => {
    const fields: Record<string, ExplainedValue> = {}
    for (const [key, node] of table.entries) flatten(key, node, schemas[key], reveal, fields)
    return fields
  }
  return {
    revision: config.revision,
    settings: fieldsOf(settings, SETTINGS),
    agents: composed.agents.map(({ draft, fields }) => ({
      identity: draftIdentity(draft),
      origin: draft.origin,
      fields: fieldsOf(fields, AGENT_FIELDS),
    })),
    rigs: [...rigs].map(([name, table]) => ({ name, fields: fieldsOf(table, {}) })),
    named_sessions: composed.sessions.map(({ identity, fields }) => ({ identity, fields: fieldsOf(fields, {}) })),
    providers: [...composed.providers.values()].map(({ name, chain, resolved }) => ({
      name,
      chain,
      fields: fieldsOf(resolved, Provider.properties),
    })),
    services: composed.services.map(({ fields }) => ({
      name: String(plainOf(fields.entries.get('name') ?? fields)),
      fields: fieldsOf(fields, Service.properties),
    })),
  }
}

/** A table of environment values with every value masked, for the API. */
export function maskValues(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(values).map((key) => [key, MASK]))
}

type SchemaMap = Readonly<Record<string, Schema>>

function flatten(
  key: string,
  node: ConfigNode,
  schema: Schema | undefined,
  reveal: boolean,
  into: Record<string, ExplainedValue>,
): void {
  const shape = schema === undefined ? undefined : shapeOf(schema)
  const secret = shape?.annotation.secret === true
  if (node.kind !== 'table' || node.entries.size === 0) {
    into[key] = explained(node, schema, reveal, key)
    return
  }
  for (const [name, child] of node.entries) {
    // A table that is secret as a whole is so in each of its values.
    if (secret) into[`${key}.${name}`] = explained(child, schema, reveal, name)
    else flatten(`${key}.${name}`, child, shape?.properties[name] ?? shape?.item, reveal, into)
  }
}

/** By its own key too: what a command line hides, the key says. */
function maskedAs(key: string, value: PlainValue, schema: Schema | undefined): PlainValue {
  const name = key.slice(key.lastIndexOf('.') + 1)
  const known = masked({ [name]: masked(value, schema) }, undefined)
  return isPlainTable(known) ? (known[name] ?? value) : value
}

function explained(node: ConfigNode, schema: Schema | undefined, reveal: boolean, key = ''): ExplainedValue {
  const plain = plainOf(node)
  const base = { value: reveal ? plain : maskedAs(key, plain, schema), ...origin(node.at) }
  if (node.kind !== 'list' || !isMixed(node.items, node.at)) return base
  const item = schema === undefined ? undefined : shapeOf(schema).item
  return { ...base, items: node.items.map((child) => explained(child, item, reveal)) }
}

function isMixed(items: readonly ConfigNode[], at: Place): boolean {
  return items.some((item) => item.at.file !== at.file || item.at.layer !== at.layer)
}

function origin(at: Place): Pick<ExplainedValue, 'file' | 'line' | 'column' | 'layer'> {
  if (at.line === 0) return { file: at.file === '' ? null : at.file, line: null, column: null, layer: at.layer }
  return { file: at.file, line: at.line, column: at.column, layer: at.layer }
}
