/**
 * The configuration as readers and editors see it: every table with its places, every key with its words, and the JSON
 * Schemas of `city.toml` and `agent.toml`. Made from the schemas that the loader checks by, so the two cannot differ.
 */
import { FormulaFile, Step } from './automation/formula-file.ts'
import { OrderFile } from './automation/order-file.ts'
import { isList, isMap, noEffect, shapeOf, type TableRules } from './base/config-shape.ts'
import { DURATION_PATTERN, parseDurationMs } from './base/durations.ts'
import type { Schema } from './base/schema.ts'
import { AgentFile, CityFile, PackFile, SiteFile } from './config-schema.ts'
import { CONFIG_WORDS } from './config-words.ts'
import type { Json, JsonMap } from './openapi.ts'

interface ConfigFile {
  readonly file: string
  readonly schema: Schema
  /** Words of the keys at the top. */
  readonly id: string
  /** What the ids of its tables begin with. */
  readonly prefix: string
}

const CITY: ConfigFile = { file: 'city.toml', schema: CityFile, id: 'city', prefix: '' }
const AGENT: ConfigFile = { file: 'agents/<name>/agent.toml', schema: AgentFile, id: 'agent', prefix: 'agent.' }
const FORMULA: ConfigFile = { file: 'formulas/<name>.toml', schema: FormulaFile, id: 'formula', prefix: 'formula.' }
const ORDER: ConfigFile = { file: 'orders/<name>.toml', schema: OrderFile, id: 'order.toml', prefix: '' }
const FILES: readonly ConfigFile[] = [
  CITY,
  { file: 'pack.toml', schema: PackFile, id: 'pack.toml', prefix: '' },
  AGENT,
  { file: '.svc/site.toml', schema: SiteFile, id: 'site', prefix: 'site.' },
  FORMULA,
  ORDER,
]

/** Tables whose keys are those of another one, to change it. */
const CHANGES: Readonly<Record<string, string>> = {
  'patches.agent': 'agent',
  'rigs.patches': 'agent',
  'patches.rigs': 'rigs',
  'patches.providers': 'providers',
}
const SAME: Readonly<Record<string, string>> = {
  'agents.permissions': 'agent.permissions',
  'rigs.imports': 'imports',
  'defaults.rig.imports': 'imports',
  'providers.mcp_servers': 'mcp_servers',
  'session.mcp_servers': 'mcp_servers',
  'agent.mcp_servers': 'mcp_servers',
  'rigs.session_sleep': 'session_sleep',
  'formula.steps.children': 'formula.steps',
}

export interface ConfigField {
  readonly name: string
  readonly schema: Schema
  readonly required: boolean
  readonly words: string
  /** Places of the table that the key may not stand in. */
  readonly missing: readonly string[]
  /** The table or tables that it holds. */
  readonly table: string | undefined
}

export interface ConfigTable {
  readonly id: string
  /** File and header: `city.toml` `[[agent]]`. */
  readonly places: readonly string[]
  readonly words: string
  readonly fields: readonly ConfigField[]
  /** The table that it changes: its keys are those of that one, and more. */
  readonly changes: string | undefined
}

/** Every table of every file, in the order in which it comes up first. Throws where words are missing or left over. */
export function configTables(): readonly ConfigTable[] {
  const found = new Map<string, Found[]>()
  for (const { file, schema, id, prefix } of FILES)
    visit({ id, schema, place: `\`${file}\``, header: '', prefix, inert: undefined }, found)
  const tables = [...found].map(([id, places]) => tableOf(id, places))
  refuseIdleWords(tables)
  return tables
}

/** A place where a table stands. */
interface Found {
  readonly id: string
  readonly schema: Schema
  readonly place: string
  /** Keys from the top of the file, with `<name>` for those that are free. */
  readonly header: string
  readonly prefix: string
  /** Why nothing acts on what stands there. */
  readonly inert: string | undefined
}

function visit(at: Found, found: Map<string, Found[]>): void {
  const before = found.get(at.id) ?? []
  found.set(at.id, [...before, at])
  // Steps have steps: what is in them is known by then.
  if (at.schema === Step && before.length > 0) return
  for (const [name, schema] of Object.entries(shapeOf(at.schema).properties)) {
    const inner = innermost(schema)
    // What a change appends to a list has the shape of that list, which is described already.
    if (inner === undefined || isDerived(at.id, name)) continue
    const header = `${at.header}${at.header === '' ? '' : '.'}${name}${isMap(schema) ? '.<name>' : ''}`
    const brackets = isList(schema) ? `[[${header}]]` : `[${header}]`
    const [file = ''] = at.place.split(' ')
    const inert = at.inert ?? shapeOf(schema).annotation.inert
    visit({ ...at, id: tableId(at, name), schema: inner, place: `${file} \`${brackets}\``, header, inert }, found)
  }
}

/** The table below lists and maps; undefined where there is none. */
function innermost(schema: Schema): Schema | undefined {
  const { type, item } = shapeOf(schema)
  if (type === 'table') return schema
  return item === undefined ? undefined : innermost(item)
}

function tableId({ id, prefix }: Pick<Found, 'id' | 'prefix'>, name: string): string {
  const isTop = FILES.some((file) => file.id === id && file.prefix === prefix && file.id !== 'agent')
  const key = isDerived(id, name) ? listOf(name) : name
  const full = isTop ? `${prefix}${key}` : `${CHANGES[id] ?? id}.${key}`
  return SAME[full] ?? full
}

function tableOf(id: string, places: readonly Found[]): ConfigTable {
  const names = new Set(places.flatMap(({ schema }) => Object.keys(shapeOf(schema).properties)))
  return {
    id,
    places: places.map(({ place }) => place),
    words: withEffect(
      ownWords(id, '') ?? '',
      places.every(({ inert }) => inert !== undefined) ? places[0]?.inert : undefined,
    ),
    changes: CHANGES[id],
    fields: [...names].map((name) => fieldOf(name, places)),
  }
}

function fieldOf(name: string, places: readonly Found[]): ConfigField {
  const having = places.filter(({ schema }) => Object.hasOwn(shapeOf(schema).properties, name))
  const [first] = having
  const schema = first === undefined ? undefined : shapeOf(first.schema).properties[name]
  if (first === undefined || schema === undefined) throw new Error(`no table has ${name}`)
  return {
    name,
    schema,
    required: having.every((place) => shapeOf(place.schema).required.includes(name)),
    words: wordsOf(first, name, schema),
    missing: places.filter((place) => !having.includes(place)).map(({ place }) => place),
    table: innermost(schema) === undefined ? undefined : tableId(first, name),
  }
}

const ownWords = (table: string, name: string): string | undefined => {
  const words = CONFIG_WORDS[table]
  return words !== undefined && Object.hasOwn(words, name) ? words[name] : undefined
}

const isDerived = (id: string, name: string): boolean => {
  const changed = CHANGES[id]
  return changed !== undefined && ownWords(changed, name) === undefined && listOf(name) !== name
}

/** What `<list>_append` and `<map>_remove` change. */
const listOf = (name: string): string => name.replace(/_(?:append|remove)$/, '')

/** Words of a key, or of the table that it holds, and whether it does anything. */
const wordsOf = (at: At, name: string, schema: Schema): string =>
  withEffect(meaningOf(at, name), shapeOf(schema).annotation.inert)

const withEffect = (words: string, inert: string | undefined): string =>
  inert === undefined ? words : `${words} It ${noEffect(inert)}.`.trimStart()

function meaningOf(at: At, name: string): string {
  const { id } = at
  const changed = CHANGES[id] ?? id
  if (isDerived(id, name)) {
    return name.endsWith('_append')
      ? `Put behind what \`${listOf(name)}\` has.`
      : `Keys to take out of \`${listOf(name)}\`.`
  }
  const words = ownWords(id, name) ?? ownWords(changed, name) ?? ownWords(tableId(at, name), '')
  if (words === undefined) throw new Error(`src/contract/config-words.ts has no words for ${id}: ${name}`)
  return words
}

function refuseIdleWords(tables: readonly ConfigTable[]): void {
  for (const [id, words] of Object.entries(CONFIG_WORDS)) {
    const table = tables.find((one) => one.id === id)
    const names = new Set(['', ...(table?.fields ?? []).map(({ name }) => name)])
    const idle = table === undefined ? 'the table' : Object.keys(words).find((name) => !names.has(name))
    if (idle !== undefined)
      throw new Error(`src/contract/config-words.ts speaks of ${id}: ${idle}, which does not exist`)
  }
}

// ---- JSON Schema ----------------------------------------------------------------------------------------------------

/** JSON Schema (2020-12) of `city.toml`, for editors. */
export const citySchema = (): JsonMap => editorSchema(CITY, 'city.toml', 'How a city is deployed.')

/** JSON Schema (2020-12) of `agents/<name>/agent.toml`, for editors. */
export const agentSchema = (): JsonMap =>
  editorSchema(AGENT, 'agent.toml', 'An agent; its name is that of its directory.')

/** JSON Schema (2020-12) of `formulas/<name>.toml`, for editors. */
export const formulaSchema = (): JsonMap => ({
  ...editorSchema(FORMULA, 'formula', 'A method of work: its steps, and what they wait for.'),
  $defs: { step: tableSchema({ id: 'formula.steps', prefix: FORMULA.prefix }, Step) },
})

/** JSON Schema (2020-12) of `orders/<name>.toml`, for editors. */
export const orderSchema = (): JsonMap =>
  editorSchema(ORDER, 'order', 'What is started, and when; its name is that of its file.')

function editorSchema(file: ConfigFile, title: string, description: string): JsonMap {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title,
    description,
    ...tableSchema(file, file.schema),
  }
}

type At = Pick<Found, 'id' | 'prefix'>

function tableSchema(at: At, schema: Schema): JsonMap {
  const { properties, required, scalars, annotation } = shapeOf(schema)
  const fields = Object.entries(properties).map(([name, field]): [string, Json] => [
    name,
    { description: wordsOf(at, name, field), ...valueSchema({ ...at, id: tableId(at, name) }, field) },
  ])
  return {
    type: scalars.length === 1 ? 'object' : scalars,
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(fields),
    additionalProperties: false,
    ...(annotation.rules === undefined ? {} : rulesSchema(annotation.rules)),
  }
}

/** What keys say to each other, as far as editors understand it. */
function rulesSchema({ oneOf, excludes = {}, needs = {}, cases }: TableRules): JsonMap {
  const without = (names: readonly string[]): JsonMap => ({
    properties: Object.fromEntries(names.map((name): [string, Json] => [name, false])),
  })
  const strangers = Object.entries(excludes).map(([key, names]): [string, Json] => [key, without(names)])
  const wanted = Object.entries(needs).map(([key, other]): [string, Json] => [key, [other]])
  return {
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map((key) => ({ required: [key] })) }),
    ...(strangers.length === 0 ? {} : { dependentSchemas: Object.fromEntries(strangers) }),
    ...(wanted.length === 0 ? {} : { dependentRequired: Object.fromEntries(wanted) }),
    ...(cases === undefined ? {} : { allOf: casesSchema(cases, without) }),
  }
}

function casesSchema(
  { of, keys, required }: NonNullable<TableRules['cases']>,
  without: (names: readonly string[]) => JsonMap,
): Json[] {
  const all = [...new Set(Object.values(keys).flat())]
  return Object.entries(keys).map(([value, own]) => ({
    if: { properties: { [of]: { const: value } }, required: [of] },
    // biome-ignore lint/suspicious/noThenProperty: it is the keyword of JSON Schema.
    then: { ...without(all.filter((key) => !own.includes(key))), required: [...(required[value] ?? [])] },
  }))
}

/** `at` is the table that the value holds, if it holds one. */
function valueSchema(at: At, schema: Schema): JsonMap {
  const { type, item, scalars, annotation } = shapeOf(schema)
  if (schema === Step) return { $ref: '#/$defs/step' }
  if (type === 'table') return tableSchema(at, schema)
  if (type === 'map' && item !== undefined) {
    const names = annotation.names === undefined ? {} : { propertyNames: { pattern: annotation.names.pattern } }
    return { type: 'object', ...names, additionalProperties: valueSchema(at, item) }
  }
  // Anything at all.
  if (isAnything(schema)) return {}
  if (type === 'list' && item !== undefined) {
    return { type: scalars.length === 1 ? 'array' : scalars, items: valueSchema(at, item), ...limits(schema) }
  }
  return { type: scalars.length === 1 ? (scalars[0] ?? 'string') : scalars, ...limits(schema) }
}

function limits(schema: Schema): JsonMap {
  const { values, pattern, minimum, maximum, minLength, maxLength, minItems, maxItems, preset, annotation } =
    shapeOf(schema)
  return {
    ...(values === undefined ? {} : { enum: values }),
    ...(pattern === undefined ? {} : { pattern: pattern.source }),
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...(minLength === undefined ? {} : { minLength }),
    ...(maxLength === undefined ? {} : { maxLength }),
    ...(minItems === undefined ? {} : { minItems }),
    ...(maxItems === undefined ? {} : { maxItems }),
    ...durationPattern(annotation.kind),
    ...(isJson(preset) ? { default: preset } : {}),
  }
}

/** An empty text is the default. */
function durationPattern(kind: string | undefined): JsonMap {
  const duration = DURATION_PATTERN.source.slice(1, -1)
  if (kind === 'duration') return { pattern: `^(?:|${duration})$` }
  return kind === 'duration_or_off' ? { pattern: `^(?:|off|${duration})$` } : {}
}

const isJson = (value: unknown): value is Json => value !== undefined

// ---- words for what a value may be ----------------------------------------------------------------------------------

/** Kind and limits of a value: `duration, at least 10s`. */
export function kindOf(schema: Schema): string {
  const { type, item, scalars, values, minimum, maximum, minimumMs, minLength, description, pattern } = shapeOf(schema)
  if (type === 'table') return scalars.length === 1 ? 'table' : 'table, or a default'
  if (type === 'map' && item !== undefined && isAnything(item)) return 'map of values'
  if (type === 'map') return item === undefined || innermost(item) !== undefined ? 'tables by name' : 'map of texts'
  if (type === 'list' && scalars.length === 1) return `list of ${item === undefined ? 'values' : manyOf(item)}`
  if (values !== undefined) return values.map((value) => `\`${value === '' ? '""' : value}\``).join(', ')
  return [
    scalarKind(schema),
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ...(minimumMs === undefined ? [] : [`at least ${shortest(minimumMs)}`]),
    ...(minLength === undefined ? [] : ['not empty']),
    ...(description === undefined ? (pattern === undefined ? [] : [`\`${pattern.source}\``]) : [description]),
  ].join('; ')
}

const isAnything = (schema: Schema): boolean => {
  const { type, scalars, values } = shapeOf(schema)
  return type === 'scalar' && scalars.length === 0 && values === undefined
}

function manyOf(item: Schema): string {
  if (innermost(item) !== undefined) return 'tables'
  if (isAnything(item)) return 'values'
  return isList(item) ? 'lists' : shapeOf(item).annotation.language === 'template' ? 'templates' : 'texts'
}

const KINDS: Readonly<Record<string, string>> = {
  duration: 'duration',
  duration_or_off: 'duration, or `off`',
  timezone: 'name of a time zone',
  path: 'path',
}
const SCALARS: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: '`true` or `false`',
  integer: 'whole number',
  number: 'number',
  array: 'list',
}

function scalarKind(schema: Schema): string {
  const { scalars, annotation } = shapeOf(schema)
  if (isAnything(schema)) return 'value'
  if (annotation.language !== undefined)
    return scalars.length === 1 ? annotation.language : 'whole number or expression'
  if (annotation.kind !== undefined) return KINDS[annotation.kind] ?? annotation.kind
  if (annotation.template !== undefined) return 'template'
  return scalars.map((scalar) => SCALARS[scalar] ?? scalar).join(' or ')
}

/** As one writes it. */
function shortest(ms: number): string {
  const text = ['h', 'm', 's', 'ms'].map((unit) => `${ms / parseDurationMs(`1${unit}`)}${unit}`)
  return text.find((one) => /^[1-9]\d*[a-z]+$/.test(one)) ?? `${ms}ms`
}
