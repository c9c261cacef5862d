/**
 * The contract boiled down to plain tables, committed and compared by a test (style R18). Loading the contract itself
 * costs a command 100 ms, because every schema is built at import; flags, paths and sentences of help do not need that.
 * A file per family, so that a command loads what it talks about. Run by `npm run generate`.
 */

import { writeFileSync } from 'node:fs'
import { DURATION_PATTERN } from '../contract/base/durations.ts'
import type { Operation } from '../contract/base/operation.ts'
import type { ObjectSchema, Schema } from '../contract/base/schema.ts'
import { EVENT_TYPE_NAMES } from '../contract/event-types.ts'
import { OPERATIONS } from '../contract/index.ts'
import type { FieldKind, FieldRow, OperationRow } from './framework/table.ts'

interface GeneratedFile {
  readonly url: URL
  readonly text: string
}

export function generatedTables(): readonly GeneratedFile[] {
  return [
    { url: new URL('../client/routes.ts', import.meta.url), text: routesText() },
    { url: tableUrl('event-types'), text: eventTypesText() },
    { url: new URL('./print/time-fields.ts', import.meta.url), text: timeFieldsText() },
    ...[...Map.groupBy(commandOperations(), tableName)].map(([name, operations]) => ({
      url: tableUrl(name),
      text: tableText(name, operations),
    })),
  ]
}

const tableUrl = (name: string) => new URL(`./tables/${name}.ts`, import.meta.url)
const NOTE = '// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit'

/** Files for programs: `svcctl schema` prints them without a server. */
const NO_COMMANDS = 'Documents'
/** A name of two parts is one word on the command line, so that the twin of an operation is never called. */
const commandOperations = (): readonly Operation[] =>
  OPERATIONS.filter(({ twin, family }) => twin === undefined && family.name !== NO_COMMANDS)

/** Patches repeat the fields of agents, rigs and providers: commands about other configuration need not load them. */
const tableName = ({ family, path }: Operation): string =>
  path.includes('/patches/') ? 'patches' : family.name.toLowerCase().replaceAll(' ', '-')

function routesText(): string {
  const rows = OPERATIONS.map((operation) => {
    const headers = operation.headers?.includes('Idempotency-Key') ? `, headers: ['Idempotency-Key']` : ''
    const mediaType = operation.mediaType === undefined ? '' : `, mediaType: '${operation.mediaType}'`
    const bodyType = operation.bodyType === undefined ? '' : `, bodyType: '${operation.bodyType}'`
    return `  '${operation.id}': { id: '${operation.id}', method: '${operation.method}', path: '${operation.path}'${headers}${bodyType}${mediaType} },`
  })
  return [
    NOTE,
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

function eventTypesText(): string {
  return [
    NOTE,
    '/** Known event types, for completion. */',
    `export const EVENT_TYPES: readonly string[] = ${JSON.stringify(EVENT_TYPE_NAMES)}`,
    '',
  ].join('\n')
}

/** One of a name that is a time is a time wherever it stands. */
function timeFieldsText(): string {
  const names = new Set(OPERATIONS.flatMap(({ replies }) => Object.values(replies).flatMap(timesIn)))
  return [
    NOTE,
    '/** Fields of answers that are times. */',
    `export const TIME_FIELDS: readonly string[] = ${JSON.stringify([...names].sort())}`,
    '',
  ].join('\n')
}

function timesIn(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const fields = 'properties' in schema && typeof schema.properties === 'object' ? (schema.properties ?? {}) : {}
  const times = Object.entries(fields).flatMap(([name, field]) => (isTime(field) ? [name] : []))
  return [...times, ...Object.values(schema).flatMap(timesIn)]
}

const isTime = (field: Schema): boolean => kindOf(withoutNull(field).schema) === 'time'

function tableText(name: string, operations: readonly Operation[]): string {
  const ids = operations.map(({ id }) => `'${id}'`).join(' | ')
  const constant = name.toUpperCase().replaceAll('-', '_')
  const rows = operations.map((operation) => [operation.id, rowOf(operation)] as const)
  const known = new Map(
    rows.flatMap(([, { fields }]) => Object.entries(fields)).filter(([, { at, says }]) => at === 'body' && says),
  )
  return [
    NOTE,
    "import type { Table } from '../framework/table.ts'", // allowed: the file that is written lies one folder deeper
    '',
    `export const ${constant}: Table<${ids}> = {`,
    ...rows.map(([id, row]) => `  '${id}': ${JSON.stringify(saidOnce(row, known))},`),
    '}',
    '',
  ].join('\n')
}

/** What a field is about is often said where a thing is made, and not again where it is changed. */
function saidOnce(row: OperationRow, known: ReadonlyMap<string, FieldRow>): OperationRow {
  const fields = Object.entries(row.fields).map(([name, field]): [string, FieldRow] => {
    const says = field.says ?? (field.at === 'body' ? known.get(name)?.says?.replace(/ ?\(default: .*/, '') : undefined)
    return [name, { ...field, ...(says === undefined ? {} : { says }) }]
  })
  return { ...row, fields: Object.fromEntries(fields) }
}

/** Fields that no command has as a flag or an argument of its own, and what says them instead. */
export const SAID_OTHERWISE: Readonly<Record<string, string>> = {
  cityName: '--city',
  cursor: '--paginate goes on by itself',
  index: '--watch waits by itself',
  wait: '--watch waits by itself',
  after_cursor: 'followers go on by themselves',
}

function rowOf(operation: Operation): OperationRow {
  const { method, summary, description, headers, accepts, replies, params, query } = operation
  const paged = query?.properties['cursor'] !== undefined
  const all = [...fieldsOf(operation)]
  const isFlag = (name: string) => !Object.hasOwn(SAID_OTHERWISE, name) && !(paged && name === 'limit')
  const fields = all.filter(([name]) => isFlag(name))
  const hasBody = all.some(([, { at }]) => at === 'body')
  const asks = all.filter(([name, { at }]) => hasBody && at === 'query' && !isFlag(name)).map(([name]) => name)
  return {
    method,
    summary,
    ...(description === undefined ? {} : { description }),
    fields: Object.fromEntries(fields),
    ...(params?.properties['cityName'] === undefined ? {} : { city: true }),
    ...(paged ? { paged } : {}),
    ...(asks.length === 0 ? {} : { asks }),
    ...(headers?.includes('Idempotency-Key') ? { keyed: true } : {}),
    ...(headers?.includes('If-Match') ? { matches: true } : {}),
    ...(accepts === undefined ? {} : { accepts }),
    ...(Object.values(replies).some(hasItems) ? { lists: true } : {}),
  }
}

const hasItems = (reply: Schema): boolean => isObject(reply) && reply.properties['items']?.['type'] === 'array'

/** Of the path, then the query, then the body; what the path says already, the body cannot say again. */
function fieldsOf({ params, query, body, bodyStream }: Operation): ReadonlyMap<string, FieldRow> {
  const rows = new Map<string, FieldRow>()
  const places = { params, query, body: bodyStream === undefined && isObject(body) ? body : undefined }
  for (const at of ['params', 'query', 'body'] as const) {
    const schema = places[at]
    for (const [name, field] of Object.entries(schema?.properties ?? {}))
      if (!rows.has(name)) rows.set(name, fieldRow(at, field, schema?.required?.includes(name) === true))
  }
  return rows
}

const isObject = (schema: Schema | undefined): schema is ObjectSchema =>
  schema !== undefined && 'properties' in schema && typeof schema['properties'] === 'object'

function fieldRow(at: FieldRow['at'], field: Schema, required: boolean): FieldRow {
  const { schema, nullable } = withoutNull(field)
  const isList = schema['type'] === 'array' && TEXTS.includes(kindOf(itemsOf(schema)))
  const value = isList ? itemsOf(schema) : schema
  const choices = valuesOf(value)
  const says = sentence(field['description'] ?? schema['description'], field['default'] ?? schema['default'])
  return {
    at,
    kind: isList ? 'text' : kindOf(value),
    ...(required ? { required } : {}),
    ...(isList ? { many: true } : {}),
    ...(nullable ? { nullable } : {}),
    ...(choices === undefined ? {} : { choices }),
    ...(says === undefined ? {} : { says }),
  }
}

/** What a field takes besides null; one that only describes another is that other. */
function withoutNull(field: Schema): { readonly schema: Schema; readonly nullable: boolean } {
  const [only] = listOf(field['allOf'])
  if (only !== undefined) return withoutNull(only)
  const all = listOf(field['anyOf'])
  const some = all.filter(({ type }) => type !== 'null')
  const nullable = some.length < all.length
  const [one] = some
  if (one === undefined) return { schema: field, nullable: false }
  // Texts of several shapes are one text.
  if (some.length === 1 || some.every((schema) => kindOf(schema) === 'text'))
    return { schema: withoutNull(one).schema, nullable }
  return { schema: {}, nullable }
}

const listOf = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value : [])
const itemsOf = (schema: Schema): Schema => withoutNull(listOf([schema['items'] ?? {}])[0] ?? {}).schema

const TEXTS: readonly FieldKind[] = ['text', 'words']
/** From here on, texts are written in files rather than in words. */
const LONG = 16_385

function kindOf(schema: Schema): FieldKind {
  const { type, format, pattern, maxLength, additionalProperties } = schema
  if (schema['enum'] !== undefined || typeof schema['const'] === 'string') return 'text'
  if (type === 'boolean') return 'bool'
  if (type === 'integer') return 'int'
  if (type === 'string') {
    if (format === 'date-time') return 'time'
    if (pattern === DURATION_PATTERN.source) return 'duration'
    return typeof maxLength === 'number' && maxLength >= LONG ? 'words' : 'text'
  }
  if (type !== 'object') return 'json'
  if (typeof additionalProperties !== 'object') return 'object'
  const [values] = listOf([additionalProperties])
  return values !== undefined && TEXTS.includes(kindOf(withoutNull(values).schema)) ? 'map' : 'values'
}

function valuesOf({ enum: values, const: one }: Schema): readonly string[] | undefined {
  if (Array.isArray(values)) return values.map(String)
  return typeof one === 'string' && one !== '' ? [one] : undefined
}

/** Within backticks any sign is part of a sentence. */
const ONLY_ABSENT = /^((?:`[^`]*`|[^;:.`])+?),? where absent\./
const ALSO_ABSENT = /[;,:] ((?:`[^`]*`|[^;,:.`])+) where absent(?=\.|$)\.?/

/** People read "(default: …)" more easily than a sentence about what is absent. */
function sentence(text: unknown, otherwise: unknown): string | undefined {
  const said = typeof text === 'string' ? text : ''
  const known = said
    .replace(ONLY_ABSENT, (_, what: string) => `(default: ${what.replace(/^[A-Z]/, (letter) => letter.toLowerCase())})`)
    .replace('RFC 3339, UTC.', '')
    .replace(ALSO_ABSENT, ' (default: $1).')
    .replace(/ ?Null (?:or empty )?clears it\./, '')
    .replace(/; 0 or absent: (\d+)\./, ' (default: $1).')
  const isSaid = known.includes('(default:') || typeof otherwise === 'object' || otherwise === undefined
  const whole = isSaid ? known : `${known.replace(/\.$/, '')} (default: ${otherwise}).`.trimStart()
  return whole === '' ? undefined : whole
}

if (import.meta.main) for (const { url, text } of generatedTables()) writeFileSync(url, text)
