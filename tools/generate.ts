/**
 * Writes what derives from the contract: `openapi.json`, `events.json` and the tables of `docs/reference/`. With
 * `--check` it writes nothing, names the files that are stale and exits 1 (style R18).
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DescribedCommand, describedCommands } from '../src/cli/describe.ts'
import { generatedTables } from '../src/cli/generate-tables.ts'
import { emitsOf, type Operation, problemsOf } from '../src/contract/base/operation.ts'
import { PROBLEM_CODES, PROBLEMS, problemUrn } from '../src/contract/base/problems.ts'
import { agentSchema, citySchema, formulaSchema, orderSchema } from '../src/contract/config-fields.ts'
import { EVENT_TYPE_NAMES, EVENT_TYPES, RESERVED_PREFIXES } from '../src/contract/event-types.ts'
import { OPERATIONS } from '../src/contract/index.ts'
import { eventSchemaDocument, type Json, type JsonMap, openapiDocument } from '../src/contract/openapi.ts'
import { SESSION_SIGNALS, STATES } from '../src/modules/sessions/record/lifecycle.ts'
import { commandsPage, exitCodesPage } from './reference/commands.ts'
import { configurationPage } from './reference/configuration.ts'
import { formulasPage } from './reference/formulas.ts'
import { manuals } from './reference/manual.ts'
import { codeList, page, table } from './reference/markdown.ts'
import { promptsPage } from './reference/prompts.ts'

const root = resolve(import.meta.dirname, '..')

/** Every generated file by its path from the root. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const commands = await describedCommands()
  const manualFiles = manuals(commands, packageVersion())
  return new Map([
    ['package.json', manifestWith(manualFiles.keys())],
    ['openapi.json', documentText(openapiDocument(OPERATIONS, packageVersion()))],
    ['events.json', documentText(eventSchemaDocument())],
    ['city.schema.json', documentText(citySchema())],
    ['agent.schema.json', documentText(agentSchema())],
    ['formula.schema.json', documentText(formulaSchema())],
    ['order.schema.json', documentText(orderSchema())],
    ['commands.json', commandsText(commands)],
    ['docs/reference/commands.md', commandsPage(commands)],
    ['docs/reference/exit-codes.md', exitCodesPage()],
    ['docs/reference/configuration.md', configurationPage()],
    ['docs/reference/formulas.md', formulasPage()],
    ['docs/reference/prompts.md', promptsPage()],
    ['docs/reference/operations.md', operationsPage()],
    ['docs/reference/problems.md', problemsPage()],
    ['docs/reference/events.md', eventsPage()],
    ['docs/reference/sessions.md', sessionsPage()],
    ...manualFiles,
    ...generatedTables().map(({ url, text }): [string, string] => [relative(root, fileURLToPath(url)), text]),
  ])
}

/** Paths of the files that are not what the contract gives. */
export async function staleFiles(): Promise<readonly string[]> {
  const files = await generatedFiles()
  const stale = [...files].filter(([path, text]) => storedText(path) !== text).map(([path]) => path)
  return [...stale, ...leftOver(files)]
}

/** Manuals of commands and files that are gone. */
function leftOver(files: ReadonlyMap<string, string>): readonly string[] {
  return globSync('man/*', { cwd: root }).filter((path) => !files.has(path))
}

function storedText(path: string): string | undefined {
  const file = join(root, path)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** A line for each command. */
const commandsText = (commands: readonly DescribedCommand[]): string =>
  `[\n${commands.map((command) => JSON.stringify(command)).join(',\n')}\n]\n`

/** A line for each operation and each component, so that the files are small and a change shows where it is. */
function documentText(document: JsonMap): string {
  const parts = Object.entries(document).map(([key, value]) => {
    const levels = key === 'paths' || key === 'components' ? 2 : 1
    return `${JSON.stringify(key)}: ${spread(value, levels)}`
  })
  return `{\n${parts.join(',\n')}\n}\n`
}

/** JSON whose outer levels have a line for each of their parts. */
function spread(value: Json, levels: number): string {
  if (levels === 0 || typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const parts = Object.entries(value).map(
    ([key, part]) => `${isList ? '' : `${JSON.stringify(key)}: `}${spread(part, levels - 1)}`,
  )
  const [open, close] = isList ? '[]' : '{}'
  return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.join(',\n')}\n${close}`
}

function packageVersion(): string {
  const { version } = manifest()
  if (typeof version === 'string') return version
  throw new Error('package.json has no version')
}

const manifest = (): Readonly<Record<string, unknown>> => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** npm installs the manuals that are named one by one. */
const manifestWith = (paths: Iterable<string>): string =>
  `${JSON.stringify({ ...manifest(), man: [...paths] }, undefined, 2)}\n`

/** Problems that every operation can answer: said once, not in every row. */
const EVERYWHERE = PROBLEM_CODES.filter((code) => OPERATIONS.every((operation) => problemsOf(operation).includes(code)))

function operationsPage(): string {
  const families = Map.groupBy(OPERATIONS, ({ family }) => family.name)
  const sections = [...families].map(([family, operations]) => `## ${family}\n\n${operationsTable(operations)}`)
  const intro = `Every operation of the API. Fields and examples: \`openapi.json\`, or \`/docs\` of a running server. Besides the problems listed, every operation can answer ${codeList(EVERYWHERE)}.`
  return page('Operations', intro, sections)
}

function operationsTable(operations: readonly Operation[]): string {
  const rows = operations.map((operation) => [
    `\`${operation.id}\``,
    `\`${operation.method} ${operation.path}\``,
    operation.summary,
    operation.frames === undefined ? Object.keys(operation.replies).join(', ') : '200 (stream)',
    codeList(problemsOf(operation).filter((code) => !EVERYWHERE.includes(code))),
    codeList(emitsOf(operation)),
  ])
  return table(['Operation', 'Request', 'What it does', 'Success', 'Problems', 'Events'], rows)
}

/** The table that the reconciler and the API decide by. */
function sessionsPage(): string {
  const rows = Object.entries(STATES).map(([state, { means, process, counts, deadline, moves }]) => [
    `\`${state}\``,
    means,
    process,
    counts ? 'yes' : 'no',
    deadline === undefined ? '' : `\`${deadline}\``,
    SESSION_SIGNALS.flatMap((signal) => {
      const next = moves[signal]
      return next === undefined || next === state ? [] : [`${signal} → \`${next}\``]
    }).join('<br>'),
  ])
  const intro =
    'States of a session, and what each signal leads to. A signal that is not listed changes nothing, or is refused with 409 `illegal_transition:`. A state with a deadline is left by `expire`.'
  return page('Sessions', intro, [
    table(['State', 'It', 'Process', 'Counts towards limits', 'Deadline', 'Moves'], rows),
  ])
}

function problemsPage(): string {
  const rows = PROBLEM_CODES.map((code) => {
    const { status, prefix, title } = PROBLEMS[code]
    const operations = OPERATIONS.filter((operation) => problemsOf(operation).includes(code))
    return [`\`${code}\``, String(status), `\`${prefix}:\``, `\`${problemUrn(code)}\``, title, answeredBy(operations)]
  })
  const intro = 'Everything that the API refuses, as RFC 9457 Problem Details: `detail` starts with the prefix.'
  return page('Problems', intro, [table(['Code', 'Status', 'Prefix', '`type`', 'Title', 'Operations'], rows)])
}

function answeredBy(operations: readonly Operation[]): string {
  if (operations.length === 0) return 'paths outside the contract'
  if (operations.length === OPERATIONS.length) return 'all'
  return operations.length > 8 ? `${operations.length}` : codeList(operations.map((operation) => operation.id))
}

function eventsPage(): string {
  const rows = EVENT_TYPE_NAMES.map((type) => {
    const { payload, log, emittedBy, when } = EVENT_TYPES[type]
    return [`\`${type}\``, `\`${payloadName(payload)}\``, log, emittedBy, when]
  })
  const reserved = `Every other type is a custom one, which clients may emit unless it starts with a prefix of the service: ${codeList(RESERVED_PREFIXES)}.`
  const intro = 'Every event type of the service. The schema of each is in `openapi.json`.'
  return page('Events', intro, [table(['Type', 'Payload', 'Log', 'Emitted by', 'When'], rows), reserved])
}

const payloadName = (schema: object): string =>
  '$id' in schema && typeof schema.$id === 'string' ? schema.$id : 'object'

async function write(): Promise<void> {
  const files = await generatedFiles()
  for (const path of leftOver(files)) rmSync(join(root, path))
  for (const [path, text] of files) {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

async function main(args: readonly string[]): Promise<number> {
  if (!args.includes('--check')) {
    await write()
    return 0
  }
  const stale = await staleFiles()
  for (const path of stale) process.stderr.write(`stale: ${path} (run npm run generate)\n`)
  return stale.length === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
