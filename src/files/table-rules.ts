/** What the keys of one table say to each other, checked on what is written, also where a value of it is wrong. */
import type { TableRules } from '../contract/base/config-shape.ts'
import type { IssueList } from './issues.ts'
import type { ConfigNode, TableNode } from './toml.ts'
import { textOf } from './toml.ts'

type PathOf = (name: string) => string

export function checkRules(table: TableNode, rules: TableRules, pathOf: PathOf, issues: IssueList): void {
  const report = (name: string, node: ConfigNode, message: string, hint?: string): void =>
    issues.error(node.keyAt ?? node.at, pathOf(name), message, hint)
  checkOneOf(table, rules.oneOf ?? [], pathOf, issues)
  for (const [first, others] of Object.entries(rules.excludes ?? {})) {
    for (const other of table.entries.has(first) ? others : []) {
      const node = table.entries.get(other)
      if (node !== undefined) report(other, node, `\`${other}\` does not go with \`${first}\``)
    }
  }
  for (const [name, needed] of Object.entries(rules.needs ?? {})) {
    const node = table.entries.get(name)
    if (node !== undefined && !table.entries.has(needed)) report(name, node, `\`${name}\` needs \`${needed}\``)
  }
  if (rules.cases !== undefined) checkCases(table, rules.cases, pathOf, issues)
}

function checkOneOf(table: TableNode, names: readonly string[], pathOf: PathOf, issues: IssueList): void {
  if (names.length === 0) return
  const choices = names.map((name) => `\`${name}\``).join(' or ')
  const [said, ...more] = names.filter((name) => table.entries.has(name))
  if (said === undefined) issues.error(table.at, pathOf(''), `must say ${choices}`)
  for (const name of more) {
    const node = table.entries.get(name)
    if (node !== undefined) issues.error(node.keyAt ?? node.at, pathOf(name), `says ${choices}: one of them`)
  }
}

function checkCases(
  table: TableNode,
  { of, keys, required }: NonNullable<TableRules['cases']>,
  pathOf: PathOf,
  issues: IssueList,
): void {
  const value = textOf(table, of)
  if (value === undefined || !Object.hasOwn(keys, value)) return
  const where = `\`${of} = "${value}"\``
  for (const name of required[value] ?? []) {
    if (!table.entries.has(name)) issues.error(table.at, pathOf(name), `\`${name}\` is required where ${where}`)
  }
  for (const name of new Set(Object.values(keys).flat())) {
    const node = table.entries.get(name)
    if (node === undefined || keys[value]?.includes(name) === true) continue
    const owners = Object.keys(keys).filter((one) => keys[one]?.includes(name) === true)
    const hint = `it belongs to ${owners.map((one) => `"${one}"`).join(' and ')}`
    issues.error(node.keyAt ?? node.at, pathOf(name), `\`${name}\` does not go with ${where}`, hint)
  }
}
