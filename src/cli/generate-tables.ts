/**
 * The contract boiled down to plain tables, committed and compared by a test (style R18). Loading the contract itself
 * costs a command 100 ms, because every schema is built at import; a path and a sentence of help do not need that.
 * Run by `npm run generate`; by hand: `node src/cli/generate-tables.ts`.
 */
import { writeFileSync } from 'node:fs'
import type { Operation } from '../contract/base/operation.ts'
import type { ObjectSchema, Schema } from '../contract/base/schema.ts'
import { EVENT_TYPE_NAMES } from '../contract/event-types.ts'
import { OPERATIONS } from '../contract/index.ts'
import type { OperationHelp } from './base/command.ts'

interface GeneratedFile {
  readonly url: URL
  readonly text: string
}

export function generatedTables(): readonly GeneratedFile[] {
  return [
    { url: new URL('../client/routes.ts', import.meta.url), text: routesText() },
    { url: new URL('./operation-help.ts', import.meta.url), text: helpText() },
  ]
}

function routesText(): string {
  const rows = OPERATIONS.map((operation) => {
    const headers = operation.headers?.includes('Idempotency-Key') ? `, headers: ['Idempotency-Key']` : ''
    const mediaType = operation.mediaType === undefined ? '' : `, mediaType: '${operation.mediaType}'`
    return `  '${operation.id}': { id: '${operation.id}', method: '${operation.method}', path: '${operation.path}'${headers}${mediaType} },`
  })
  return [
    '// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit',
    "import type { OperationId } from '../contract/index.ts'",
    "import type { Route } from './client.ts'",
    '',
    '/** Where each operation lives, without the weight of its schemas. */',
    'export const ROUTES: Readonly<Record<OperationId, Route>> = {',
    ...rows,
    '}',
    '',
  ].join('\n')
}

function helpText(): string {
  const rows = OPERATIONS.map((operation) => `  '${operation.id}': ${JSON.stringify(helpOf(operation))},`)
  return [
    '// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit',
    "import type { OperationId } from '../contract/index.ts'",
    "import type { OperationHelp } from './base/command.ts'",
    '',
    '/** What the help says about each operation and its fields. */',
    'export const OPERATION_HELP: Readonly<Record<OperationId, OperationHelp>> = {',
    ...rows,
    '}',
    '',
    '/** Known event types, for completion. */',
    `export const EVENT_TYPES: readonly string[] = ${JSON.stringify(EVENT_TYPE_NAMES)}`,
    '',
  ].join('\n')
}

function helpOf(operation: Operation): OperationHelp {
  const { summary, description } = operation
  const fields = [operation.params, operation.query, asObject(operation.body)].flatMap(fieldsOf)
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    ...(fields.length === 0 ? {} : { fields: Object.fromEntries(fields) }),
  }
}

function asObject(schema: Schema | undefined): ObjectSchema | undefined {
  const isObject = (candidate: Schema | undefined): candidate is ObjectSchema =>
    candidate !== undefined && 'properties' in candidate
  return isObject(schema) ? schema : undefined
}

function fieldsOf(schema: ObjectSchema | undefined): [string, NonNullable<OperationHelp['fields']>[string]][] {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, property]) => {
    const { description, enum: choices } = readProperty(property)
    if (description === undefined && choices === undefined) return []
    return [
      [name, { ...(description === undefined ? {} : { description }), ...(choices === undefined ? {} : { choices }) }],
    ]
  })
}

function readProperty(property: Schema): { description?: string; enum?: string[] } {
  const description =
    'description' in property && typeof property.description === 'string' ? property.description : undefined
  const choices = 'enum' in property && Array.isArray(property.enum) ? property.enum.map(String) : undefined
  return { ...(description === undefined ? {} : { description }), ...(choices === undefined ? {} : { enum: choices }) }
}

if (import.meta.main) for (const { url, text } of generatedTables()) writeFileSync(url, text)
