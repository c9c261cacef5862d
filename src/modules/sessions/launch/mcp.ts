/**
 * Servers of tools (MCP) that an agent is given: those of the packs of its scope, of the city, of its provider and its own.
 * A later one of the same name replaces an earlier one.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { McpServer } from '../../../contract/config-schema.ts'
import { FileRefused, readInside, withoutMark } from '../../../files/read.ts'
import { isPlainTable, type PlainTable, type PlainValue, readPlainToml } from '../../../files/toml.ts'
import type { McpServerSpec } from '../../../runtimes/process/runtime.ts'

/** As a configuration has it: nothing of it is ours to change. */
type Settings = { readonly [Field in keyof McpServer]: Readonly<McpServer[Field]> | undefined }
type Servers = Readonly<Record<string, Settings>>

const SUFFIX = '.toml'
const TEMPLATE_SUFFIX = '.template.toml'

/** Weakest first; `expand` fills in variables of the supervisor. Throws for one that is neither a program nor an address. */
export function mcpServersOf(
  sources: readonly (Servers | undefined)[],
  expand: (value: string) => string,
): McpServerSpec[] {
  const merged: Servers = Object.assign({}, ...sources)
  return Object.entries(merged).map(([name, server]) => specOf(name, server, expand))
}

function specOf(
  name: string,
  { command, args = [], env, url, type, headers }: Settings,
  expand: (value: string) => string,
) {
  if ((command === undefined) === (url === undefined))
    throw new Error(`the MCP server ${name} needs either \`command\` or \`url\``)
  const expanded = (values: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, expand(value)]))
  return url === undefined
    ? { name, command: expand(command ?? ''), args: [...args], env: expanded(env) }
    : { name, type: type ?? 'http', url: expand(url), headers: expanded(headers) }
}

/** What the packs of a scope bring, as it was staged (packs/contents/materialise.ts). Throws for a file that says nonsense. */
export function stagedServers(directory: string, render: (template: string) => string): Servers {
  const found = new Map<string, Settings>()
  for (const file of filesOf(directory)) {
    const text = textOf(join(directory, file), directory)
    if (text === undefined) continue
    const template = file.endsWith(TEMPLATE_SUFFIX)
    const stem = file.slice(0, -(template ? TEMPLATE_SUFFIX : SUFFIX).length)
    const table = readPlainToml(template ? render(text) : text)
    const { name = stem } = table
    found.set(String(name), settingsOf(String(name), table))
  }
  return Object.fromEntries(found)
}

const FIELDS: ReadonlySet<string> = new Set(['name', 'description', 'command', 'args', 'env', 'url', 'type', 'headers'])

function settingsOf(name: string, table: PlainTable): Settings {
  const unknown = Object.keys(table).find((key) => !FIELDS.has(key))
  if (unknown !== undefined) throw new Error(`the MCP server ${name} has an unknown key: ${unknown}`)
  const { command, args, env, url, type, headers } = table
  return {
    command: wordOf(command),
    args: Array.isArray(args) ? args.map(String) : undefined,
    env: wordsOf(env),
    url: wordOf(url),
    type: type === 'sse' ? 'sse' : undefined,
    headers: wordsOf(headers),
  }
}

const wordOf = (value: PlainValue | undefined): string | undefined => (typeof value === 'string' ? value : undefined)
const wordsOf = (value: PlainValue | undefined): Record<string, string> | undefined =>
  isPlainTable(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)])) : undefined

function filesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith(SUFFIX))
      .sort()
  } catch {
    return []
  }
}

function textOf(path: string, root: string): string | undefined {
  try {
    const bytes = readInside(path, root)
    return bytes === undefined ? undefined : withoutMark(bytes.toString('utf8'))
  } catch (error) {
    if (error instanceof FileRefused) return undefined
    throw error
  }
}
