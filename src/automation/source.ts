/** The files that formulas and orders are read from, and the values in them. */
import type { IssueList } from '../files/issues.ts'
import type { ConfigNode, ListNode, ScalarNode, TableNode } from '../files/toml.ts'
import type { Value } from './plan.ts'

/** The text of one file, and where it stands. */
export interface SourceFile {
  readonly text: string
  /** As issues name it. */
  readonly file: string
  /** Its directory, absolute: commands that it says are told. */
  readonly dir: string
}

/** A text with its place, for what reads it later. */
export interface PlacedText {
  readonly text: string
  readonly node: ScalarNode
  /** Dotted path of its key. */
  readonly key: string
  readonly source: SourceFile
}

/** The JSON of a value that may be anything; what JSON cannot hold is an issue. */
export function jsonOf(node: ConfigNode, key: string, issues: IssueList): Value {
  if (node.kind === 'list') return node.items.map((item, index) => jsonOf(item, `${key}[${index}]`, issues))
  if (node.kind === 'table') {
    return Object.fromEntries([...node.entries].map(([name, child]) => [name, jsonOf(child, `${key}.${name}`, issues)]))
  }
  if (node.dated === true) issues.error(node.at, key, 'must not be a date: write it in quotes')
  const isOut = typeof node.value === 'number' && !Number.isFinite(node.value)
  const isUnsafe = Number.isInteger(node.value) && !Number.isSafeInteger(node.value)
  if (isOut || isUnsafe) issues.error(node.at, key, `${node.value} is out of range`)
  return isOut ? null : node.value
}

export function scalarOf(node: TableNode, key: string): ScalarNode | undefined {
  const child = node.entries.get(key)
  return child?.kind === 'scalar' ? child : undefined
}

export function booleanOf(node: TableNode, key: string, preset: boolean): boolean {
  const value = scalarOf(node, key)?.value
  return typeof value === 'boolean' ? value : preset
}

export function listNodeOf(node: TableNode, key: string): ListNode | undefined {
  const child = node.entries.get(key)
  return child?.kind === 'list' ? child : undefined
}

/** The texts of a list. */
export function textsOf(node: TableNode, key: string): readonly string[] {
  return (listNodeOf(node, key)?.items ?? []).flatMap((item) =>
    item.kind === 'scalar' && typeof item.value === 'string' ? [item.value] : [],
  )
}

/** The texts of a table, by key. */
export function textMapOf(node: TableNode, key: string): Readonly<Record<string, string>> {
  const child = node.entries.get(key)
  if (child?.kind !== 'table') return {}
  return Object.fromEntries(
    [...child.entries].flatMap(([name, value]) =>
      value.kind === 'scalar' && typeof value.value === 'string' ? [[name, value.value]] : [],
    ),
  )
}
