/** Providers and their `base` chains, down to one flat definition each. */

import { Provider, type ProviderSpec } from '../../../contract/config-schema.ts'
import { checkTable } from '../../../files/check-table.ts'
import { compareText, type IssueList, NOWHERE, nearestHint, placeText } from '../../../files/issues.ts'
import {
  type ConfigNode,
  elementsOf,
  type ListNode,
  nodeOf,
  type PlainValue,
  placeOf,
  type ScalarNode,
  type TableNode,
  tableOf,
  textOf,
  withEntry,
} from '../../../files/toml.ts'
import type { DeepReadonly } from './effective.ts'

/** A declared provider: as written, its chain from itself to the last base, and what that comes to. */
export type ResolvedDraft = {
  readonly name: string
  readonly raw: TableNode
  readonly chain: readonly string[]
  readonly resolved: TableNode
}

/** Presets as nodes; a preset that does not fit the schema is a mistake of ours, reported like any other. */
export function presetNodes(
  presets: Readonly<Record<string, DeepReadonly<ProviderSpec>>>,
  issues: IssueList,
): Map<string, TableNode> {
  const nodes = new Map<string, TableNode>()
  for (const [name, spec] of Object.entries(presets)) {
    const node = nodeOf(spec as PlainValue, { ...NOWHERE, file: `builtin:${name}`, layer: 'builtin' })
    if (node.kind === 'table') nodes.set(name, checkTable(node, Provider, issues, { key: `builtin:${name}` }))
  }
  return nodes
}

/** Every declared provider with its chain resolved; broken chains are reported and end where they break. */
export function resolveProviders(
  declared: ReadonlyMap<string, TableNode>,
  presets: ReadonlyMap<string, TableNode>,
  issues: IssueList,
): Map<string, ResolvedDraft> {
  const resolved = new Map<string, ResolvedDraft>()
  for (const [name, raw] of declared) {
    checkProviderName(name, raw, issues)
    const chain = followChain(name, declared, presets, issues)
    const flat = flatten(chain.map((link) => link.node))
    checkProvider(name, raw, flat, issues)
    resolved.set(name, { name, raw, chain: chain.map((link) => link.name), resolved: flat })
  }
  return resolved
}

/** A built-in provider that no file declares or changes. */
export const builtinProvider = (name: string, preset: TableNode): ResolvedDraft => ({
  name,
  raw: preset,
  chain: [`builtin:${name}`],
  resolved: flatten([preset]),
})

/** `option` as chosen under `key`, if the provider has such an option with such a choice; else the problem. */
export function checkOptionChoices(
  chosen: TableNode | undefined,
  provider: TableNode,
  key: string,
  issues: IssueList,
): void {
  if (chosen === undefined) return
  const options = new Map(elementsOf(provider, 'options_schema').map((option) => [textOf(option, 'key') ?? '', option]))
  for (const [name, value] of chosen.entries) {
    const option = options.get(name)
    const path = `${key}.${name}`
    if (option === undefined) {
      issues.error(
        value.keyAt ?? value.at,
        path,
        `the provider has no option \`${name}\``,
        nearestHint(name, options.keys()),
      )
    } else {
      checkChoice(value, option, path, issues)
    }
  }
}

function checkProviderName(name: string, raw: TableNode, issues: IssueList): void {
  const at = raw.keyAt ?? raw.at
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
    issues.error(
      at,
      `providers.${name}`,
      `\`${name}\` is not a provider name`,
      'write letters, digits, `.`, `_` and `-`',
    )
  }
  if (name === 'public') issues.error(at, 'providers.public', '`public` is a reserved name')
}

type Link = { name: string; node: TableNode }

function followChain(
  start: string,
  declared: ReadonlyMap<string, TableNode>,
  presets: ReadonlyMap<string, TableNode>,
  issues: IssueList,
): Link[] {
  const links: Link[] = []
  let next: Link | undefined = { name: `provider:${start}`, node: declared.get(start) ?? nodeTable() }
  while (next !== undefined) {
    const current: Link = next
    if (links.some((link) => link.name === current.name)) {
      reportCircle(links.slice(links.findIndex((link) => link.name === current.name)), start, issues)
      return links
    }
    links.push(current)
    next = baseOf(current, declared, presets, start, issues)
  }
  return links
}

// Every provider of a circle runs into it: the first by name reports it, for all of them.
function reportCircle(circle: readonly Link[], start: string, issues: IssueList): void {
  const names = circle.map((link) => link.name)
  const [first] = [...names].sort(compareText)
  if (first !== `provider:${start}`) return
  const message = `the chain of bases is a circle: ${[...names, first].join(' → ')}`
  issues.error(placeOf(circle[0]?.node ?? nodeTable(), 'base'), `providers.${start}.base`, message)
}

function baseOf(
  link: Link,
  declared: ReadonlyMap<string, TableNode>,
  presets: ReadonlyMap<string, TableNode>,
  start: string,
  issues: IssueList,
): Link | undefined {
  const base = textOf(link.node, 'base')
  if (base === undefined || base === '') return undefined
  const [kind, name] = splitBase(base)
  const own = link.name.slice('provider:'.length)
  const custom = kind !== 'builtin' && !(kind === 'any' && name === own) ? declared.get(name) : undefined
  if (custom !== undefined) return { name: `provider:${name}`, node: custom }
  const preset = kind !== 'provider' ? presets.get(name) : undefined
  if (preset !== undefined) return { name: `builtin:${name}`, node: preset }
  // Reported once, where the chain of the provider that says so begins.
  if (link.name === `provider:${start}`) {
    const known = [...declared.keys()]
      .filter((other) => other !== own)
      .concat([...presets.keys()].map((other) => `builtin:${other}`))
    const hint = nearestHint(base, known) ?? nearestHint(name, presets.keys())
    issues.error(placeOf(link.node, 'base'), `providers.${start}.base`, `there is no provider \`${base}\``, hint)
  }
  return undefined
}

function splitBase(base: string): ['builtin' | 'provider' | 'any', string] {
  if (base.startsWith('builtin:')) return ['builtin', base.slice('builtin:'.length)]
  if (base.startsWith('provider:')) return ['provider', base.slice('provider:'.length)]
  return ['any', base]
}

/** The chain as one definition, the last base first. `args_append` of every link ends up behind `args`. */
function flatten(chain: readonly TableNode[]): TableNode {
  let flat: TableNode = { ...(chain[0] ?? nodeTable()), entries: new Map() }
  for (const link of [...chain].reverse()) {
    for (const [key, value] of link.entries) {
      if (key === 'base' || key === 'options_schema_merge') continue
      flat = withEntry(flat, key, inherit(key, flat.entries.get(key), value, link))
    }
  }
  return foldArguments(dropOmitted(flat))
}

function inherit(key: string, before: ConfigNode | undefined, after: ConfigNode, link: TableNode): ConfigNode {
  if (before?.kind === 'table' && after.kind === 'table') {
    return { ...after, entries: new Map([...before.entries, ...after.entries]) }
  }
  if (before?.kind !== 'list' || after.kind !== 'list') return after
  if (key === 'args_append') return { ...after, items: [...before.items, ...after.items] }
  if (key === 'options_schema' && textOf(link, 'options_schema_merge') === 'by_key') return mergeOptions(before, after)
  return after
}

function mergeOptions(before: ListNode, after: ListNode): ListNode {
  const byKey = new Map<string, ConfigNode>()
  for (const option of [...before.items, ...after.items]) {
    const key = option.kind === 'table' ? (textOf(option, 'key') ?? '') : ''
    const earlier = byKey.get(key)
    const both = earlier?.kind === 'table' && option.kind === 'table'
    byKey.set(key, both ? { ...option, entries: new Map([...earlier.entries, ...option.entries]) } : option)
  }
  return { ...after, items: [...byKey.values()] }
}

function dropOmitted(flat: TableNode): TableNode {
  const options = flat.entries.get('options_schema')
  if (options?.kind !== 'list') return flat
  const omitted = (option: ConfigNode): boolean => {
    const omit = option.kind === 'table' ? option.entries.get('omit') : undefined
    return omit?.kind === 'scalar' && omit.value === true
  }
  return withEntry(flat, 'options_schema', { ...options, items: options.items.filter((option) => !omitted(option)) })
}

function foldArguments(flat: TableNode): TableNode {
  const extra = flat.entries.get('args_append')
  if (extra?.kind !== 'list') return flat
  const args = flat.entries.get('args')
  const items = args?.kind === 'list' ? [...args.items, ...extra.items] : extra.items
  return withEntry(withEntry(flat, 'args', { ...extra, items }), 'args_append', undefined)
}

function checkProvider(name: string, raw: TableNode, flat: TableNode, issues: IssueList): void {
  const key = `providers.${name}`
  if (textOf(raw, 'command') === undefined && textOf(raw, 'base') === undefined) {
    issues.error(
      raw.keyAt ?? raw.at,
      key,
      '`command` or `base` is required',
      `for a built-in one write \`base = "builtin:${name}"\``,
    )
  }
  if (textOf(flat, 'prompt_mode') === 'flag' && (textOf(flat, 'prompt_flag') ?? '') === '') {
    issues.error(placeOf(flat, 'prompt_mode'), `${key}.prompt_flag`, '`prompt_mode = "flag"` needs `prompt_flag`')
  }
  for (const [index, option] of elementsOf(flat, 'options_schema').entries()) {
    const preset = option.entries.get('default')
    if (preset !== undefined) checkChoice(preset, option, `${key}.options_schema[${index}].default`, issues)
  }
  checkOptionChoices(tableOf(flat, 'option_defaults'), flat, `${key}.option_defaults`, issues)
}

function checkChoice(value: ConfigNode, option: TableNode, key: string, issues: IssueList): void {
  const choices = elementsOf(option, 'choices').map((choice) => textOf(choice, 'value') ?? '')
  const chosen = value.kind === 'scalar' ? String((value satisfies ScalarNode).value) : ''
  // A session that gets such a text is told if no argument can be made of it.
  if (chosen === '' || choices.includes(chosen) || option.entries.has('free_args')) return
  const list = choices.map((choice) => `\`${choice}\``).join(', ')
  const where = option.at.line > 0 ? ` (${placeText(option.at)})` : ''
  issues.error(
    value.at,
    key,
    `\`${chosen}\` is no choice of this option${where}: ${list}`,
    nearestHint(chosen, choices),
  )
}

function nodeTable(): TableNode {
  return { kind: 'table', entries: new Map(), at: NOWHERE }
}
