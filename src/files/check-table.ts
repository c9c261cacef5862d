/** Compares one file with the schema of its kind. What is wrong is reported and left out, so that later steps see typed values only. */

import { noEffect, type Shape, shapeOf } from '../contract/base/config-shape.ts'
import { parseDurationMs } from '../contract/base/durations.ts'
import type { Schema } from '../contract/base/schema.ts'
import { DROPPED_KEYS } from '../contract/config-schema.ts'
import { isTimeZone } from '../kernel/clock.ts'
import { type IssueList, nearestHint } from './issues.ts'
import { checkRules } from './table-rules.ts'
import type { ConfigNode, ScalarNode, TableNode } from './toml.ts'

/** Keys that earlier versions or other systems have, by name or by path, and what to write instead. */
export type DroppedKeys = ReadonlyMap<string, string>

/** `table` with everything left out that `schema` does not allow; each such thing is an error in `issues`. */
export function checkTable(
  table: TableNode,
  schema: Schema,
  list: IssueList,
  { key = '', dropped = DROPPED_KEYS, partial = false }: CheckOptions = {},
): TableNode {
  const checked = checkNode(table, schema, key, { list, dropped, partial })
  return checked?.kind === 'table' ? checked : { ...table, entries: new Map() }
}

interface CheckOptions {
  readonly key?: string
  readonly dropped?: DroppedKeys
  /** Whether tables that lack a key that they must have are kept, for checks that look at what is there. */
  readonly partial?: boolean
}

interface Report {
  readonly list: IssueList
  readonly dropped: DroppedKeys
  readonly partial: boolean
}

/** The dotted path of `name` below `key`. */
export function childKey(key: string, name: string): string {
  const part = /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name)
  return key === '' ? part : `${key}.${part}`
}

function checkNode(node: ConfigNode, schema: Schema, key: string, issues: Report): ConfigNode | undefined {
  const shape = shapeOf(schema)
  if (isAnything(shape)) return node
  if (shape.type === 'table' && shape.scalars.length > 1 && node.kind === 'scalar')
    return checkScalar(node, shape, key, issues)
  if (shape.type === 'scalar') return checkScalar(node, shape, key, issues)
  if (shape.type === 'list') return checkList(node, shape, key, issues)
  if (node.kind !== 'table') return wrongKind(node, shape.type === 'table' ? expected(shape) : 'a table', key, issues)
  return shape.type === 'map' ? checkMap(node, shape, key, issues) : checkFields(node, shape, key, issues)
}

const isAnything = ({ type, scalars, values }: Shape): boolean =>
  type === 'scalar' && scalars.length === 0 && values === undefined

function checkFields(node: TableNode, shape: Shape, key: string, issues: Report): TableNode | undefined {
  const entries = new Map<string, ConfigNode>()
  for (const [name, child] of node.entries) {
    const schema = Object.hasOwn(shape.properties, name) ? shape.properties[name] : undefined
    if (schema === undefined) {
      reportUnknown(name, child, shape, key, issues)
      continue
    }
    const { inert } = shapeOf(schema).annotation
    if (inert !== undefined && child.at.line > 0)
      issues.list.warn(child.keyAt ?? child.at, childKey(key, name), `\`${name}\` ${noEffect(inert)}`)
    const checked = checkNode(child, schema, childKey(key, name), issues)
    if (checked !== undefined && !isDefaultText(checked, schema)) entries.set(name, checked)
  }
  const { rules } = shape.annotation
  if (rules !== undefined) checkRules(node, rules, (name) => (name === '' ? key : childKey(key, name)), issues.list)
  const missing = shape.required.filter((name) => !node.entries.has(name))
  for (const name of missing) issues.list.error(node.at, childKey(key, name), `\`${name}\` is required`)
  // An element without its identity cannot be talked about any further.
  const usable = issues.partial || shape.required.every((name) => entries.has(name))
  return usable ? { ...node, entries } : undefined
}

function checkMap(node: TableNode, shape: Shape, key: string, issues: Report): TableNode {
  const entries = new Map<string, ConfigNode>()
  const { names } = shape.annotation
  for (const [name, child] of node.entries) {
    if (names !== undefined && !new RegExp(names.pattern, 's').test(name))
      issues.list.error(child.keyAt ?? child.at, childKey(key, name), `\`${name}\` is not allowed here: ${names.words}`)
    const checked = shape.item === undefined ? child : checkNode(child, shape.item, childKey(key, name), issues)
    if (checked !== undefined) entries.set(name, checked)
  }
  return { ...node, entries }
}

function checkList(node: ConfigNode, shape: Shape, key: string, issues: Report): ConfigNode | undefined {
  const orScalar = shape.scalars.length > 1
  if (orScalar && node.kind === 'scalar') return checkScalar(node, shape, key, issues)
  if (node.kind !== 'list') return wrongKind(node, orScalar ? expected(shape) : 'a list', key, issues)
  const { item } = shape
  if (item === undefined) return node
  const amount = amountProblem(node.items.length, shape)
  if (amount !== undefined) issues.list.error(node.at, key, amount)
  const items = node.items.map((child, index) => checkNode(child, item, `${key}[${index}]`, issues))
  return { ...node, items: items.filter((child) => child !== undefined) }
}

function checkScalar(node: ConfigNode, shape: Shape, key: string, issues: Report): ScalarNode | undefined {
  if (node.kind !== 'scalar' || node.dated === true || !hasType(node, shape)) {
    return wrongKind(node, expected(shape), key, issues)
  }
  const gone = typeof node.value === 'string' ? shape.annotation.gone?.[node.value] : undefined
  if (gone !== undefined && issues.list.kept) return { ...node, value: gone.now }
  const problem = scalarProblem(node, shape)
  if (problem === undefined) return node
  issues.list.error(node.at, key, problem.message, problem.hint)
  return undefined
}

function hasType(node: ScalarNode, shape: Shape): boolean {
  return shape.scalars.some((type) => {
    if (type === 'integer') return typeof node.value === 'number' && Number.isInteger(node.value)
    return typeof node.value === type
  })
}

type Problem = { message: string; hint?: string | undefined }

function scalarProblem({ value }: ScalarNode, shape: Shape): Problem | undefined {
  if (typeof value === 'number') return numberProblem(value, shape)
  if (typeof value !== 'string') return undefined
  if (shape.values !== undefined && !shape.values.includes(value)) {
    const choices = shape.values.map((choice) => `\`${choice}\``).join(', ')
    return {
      message: `\`${value}\` is not one of ${choices}`,
      hint: shape.annotation.gone?.[value]?.hint ?? nearestHint(value, shape.values),
    }
  }
  if (shape.minLength !== undefined && value.length < shape.minLength) return { message: 'must not be empty' }
  if (shape.maxLength !== undefined && value.length > shape.maxLength)
    return { message: `has ${value.length} characters: at most ${shape.maxLength}` }
  if (shape.pattern !== undefined && !shape.pattern.test(value)) {
    return { message: `\`${value}\` is not allowed here: ${shape.description ?? `must match ${shape.pattern.source}`}` }
  }
  return formProblem(value, shape)
}

function numberProblem(value: number, shape: Shape): Problem | undefined {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    return { message: `${value} is out of range` }
  }
  if (shape.minimum !== undefined && value < shape.minimum)
    return { message: `must be at least ${shape.minimum}, not ${value}` }
  if (shape.maximum !== undefined && value > shape.maximum)
    return { message: `must be at most ${shape.maximum}, not ${value}` }
  return undefined
}

function amountProblem(count: number, { minItems = 0, maxItems = count }: Shape): string | undefined {
  if (count < minItems) return minItems === 1 ? 'must not be empty' : `has ${count}: at least ${minItems}`
  return count > maxItems ? `has ${count}: at most ${maxItems}` : undefined
}

// An empty duration or time zone means the default, as everywhere in these files.
function formProblem(value: string, shape: Shape): Problem | undefined {
  const { kind } = shape.annotation
  if (value === '' || kind === undefined || kind === 'path') return undefined
  if (kind === 'timezone')
    return isTimeZone(value)
      ? undefined
      : { message: `\`${value}\` is not a time zone`, hint: 'write a name like `Europe/Lisbon`' }
  if (kind === 'duration_or_off' && value === 'off') return undefined
  return durationProblem(value, shape.minimumMs ?? 0, kind === 'duration_or_off')
}

function durationProblem(value: string, minimumMs: number, off: boolean): Problem | undefined {
  try {
    if (parseDurationMs(value) >= minimumMs) return undefined
    return { message: `must be at least ${minimumMs / 1000}s, not ${value}` }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { message, hint: off ? 'or write `off`' : undefined }
  }
}

// Written-out emptiness of a duration or time zone is the same as leaving the key out.
function isDefaultText(node: ConfigNode, schema: Schema): boolean {
  const { kind } = shapeOf(schema).annotation
  return node.kind === 'scalar' && node.value === '' && kind !== undefined && kind !== 'path'
}

function reportUnknown(name: string, child: ConfigNode, shape: Shape, key: string, issues: Report): void {
  const path = childKey(key, name)
  const dropped = issues.dropped.get(path) ?? issues.dropped.get(name)
  const hint = nearestHint(name, Object.keys(shape.properties)) ?? dropped
  issues.list.error(child.keyAt ?? child.at, path, `unknown key \`${name}\``, dropped ?? hint)
}

function wrongKind(node: ConfigNode, wanted: string, key: string, issues: Report): undefined {
  issues.list.error(node.at, key, `must be ${wanted}, not ${describe(node)}`)
  return undefined
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: 'a table',
  array: 'a list',
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: '`true` or `false`',
}

function expected(shape: Shape): string {
  return shape.scalars.map((type) => TYPE_NAMES[type] ?? type).join(' or ')
}

function describe(node: ConfigNode): string {
  if (node.kind === 'table') return 'a table'
  if (node.kind === 'list') return 'a list'
  if (node.dated === true) return 'a date'
  return typeof node.value === 'string' ? 'text' : String(node.value)
}
