/** Input against its schema: query strings become typed values, every violation becomes a 422 that names the field. */
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import type { ErrorDetail } from '../../contract/base/problems.ts'
import type { Schema } from '../../contract/base/schema.ts'
import { cut } from '../../contract/base/text.ts'
import { lazily } from '../../kernel/lazy.ts'
import { type Problem, problem } from '../../kernel/problem.ts'

const MAX_ERRORS = 20
const MAX_QUOTED = 200
/** More than the lists of any operation together take. */
const MAX_PARAMETERS = 1_000
/** Of a value with more parts only the first violation is told: one for each part would keep everybody else waiting. */
const MAX_EXPLAINED_PARTS = 2_000

/** One that stops at the first violation, and one that finds all. */
const brief = validators(false)
const thorough = validators(true)

/**
 * Throws `validation-failed` with every violation, located under `root` (`body`, `query`, `path`, `header`). Of what has a
 * secret in it nothing is quoted: it may stand anywhere where something is wrong.
 */
export function validate(schema: Schema, value: unknown, root: string): void {
  const check = brief(schema)
  if (check(value)) return
  const errors = isSmall(value) ? violations(thorough(schema), value) : (check.errors ?? [])
  throw invalid(
    tellable(errors)
      .slice(0, MAX_ERRORS)
      .map((error) => toDetail(inWords(error, schema, value), root, value))
      .map((detail) => (hasSecret(schema) ? { location: detail.location, message: detail.message } : detail)),
  )
}

/** A field of it is a secret. */
export function hasSecret(schema: Schema | undefined): boolean {
  const fields: unknown = schema === undefined ? undefined : Reflect.get(schema, 'properties')
  if (typeof fields !== 'object' || fields === null) return false
  return Object.values(fields).some((field: unknown) => valueAt(field, ['writeOnly']) === true)
}

/** Compiles each schema when the first value comes for it. */
function validators(allErrors: boolean): (schema: Schema) => ValidateFunction {
  const compiler = lazily(() => newCompiler(allErrors))
  const compiled = new WeakMap<Schema, ValidateFunction>()
  return (schema) => {
    const known = compiled.get(schema)
    if (known !== undefined) return known
    const check = compiler().compile(withoutIds(schema))
    compiled.set(schema, check)
    return check
  }
}

/** Our schemas are not checked themselves, and their code is left as it is made: both cost more than all compiling. */
export function newCompiler(allErrors: boolean) {
  const load = createRequire(import.meta.url)
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = load('ajv/dist/2020.js')
  const { default: addFormats }: typeof import('ajv-formats') = load('ajv-formats')
  const options = { strict: false, ownProperties: true, validateSchema: false, meta: false, code: { optimize: false } }
  const compiler = new Ajv2020({ ...options, allErrors })
  addFormats(compiler)
  return compiler
}

function violations(check: ValidateFunction, value: unknown): readonly ErrorObject[] {
  check(value)
  return check.errors ?? []
}

function isSmall(value: unknown): boolean {
  const rest = [value]
  for (let seen = 1; rest.length > 0; seen++) {
    const one = rest.pop()
    if (typeof one !== 'object' || one === null) continue
    const parts: readonly unknown[] = Object.values(one)
    if (seen + rest.length + parts.length > MAX_EXPLAINED_PARTS) return false
    rest.push(...parts)
  }
  return true
}

function invalid(errors: readonly ErrorDetail[]): Problem {
  const first = errors[0]
  const sentence = first === undefined ? 'the request breaks its schema' : `${first.location}: ${first.message}`
  return problem('validation-failed', sentence, { errors: [...errors] })
}

/** Named schemas occur in many places; validators must not see a name twice. */
export function withoutIds(schema: unknown): object | boolean {
  const strip = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(strip)
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(
      Object.entries(node)
        .filter(([key, value]) => !(key === '$id' && typeof value === 'string'))
        .map(([key, value]) => [key, strip(value)]),
    )
  }
  const stripped = strip(schema)
  return typeof stripped === 'object' && stripped !== null ? stripped : true
}

/** Of what may be one of several nothing is said about those that it does not even have the type of. */
function tellable(all: readonly ErrorObject[]): readonly ErrorObject[] {
  const errors = withoutUnlikely(all)
  const unions = new Set(errors.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath))
  const isOfType = ({ keyword, instancePath }: ErrorObject) => keyword === 'type' && unions.has(instancePath)
  const plain = errors.filter((error) => !UMBRELLAS.has(error.keyword) && !isOfType(error))
  const isExplained = (path: string) =>
    plain.some(({ instancePath }) => instancePath === path) ||
    errors.some(({ instancePath }) => instancePath.startsWith(`${path}/`))
  const bare = errors.filter(({ keyword, instancePath }) => keyword === 'anyOf' && !isExplained(instancePath))
  return [...plain, ...bare.map((error) => ofTypes(error, errors))]
}

/** Each is compared with all errors. */
const MAX_SORTED_UNIONS = 20

/** Of what may be one of several, nothing of those whose fields are missing where another has all of its own. */
function withoutUnlikely(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const lacks = new Set(errors.filter(({ keyword }) => keyword === 'required').map(({ instancePath }) => instancePath))
  const unlikely = errors
    .filter(({ keyword, instancePath }) => keyword === 'anyOf' && lacks.has(instancePath))
    .slice(0, MAX_SORTED_UNIONS)
    .flatMap(({ schemaPath, instancePath }) => {
      const branchOf = (error: ErrorObject) =>
        error.schemaPath.startsWith(`${schemaPath}/`)
          ? `${schemaPath}/${error.schemaPath.slice(schemaPath.length + 1).split('/')[0]}/`
          : undefined
      const isHere = (error: ErrorObject, keyword: string) =>
        error.keyword === keyword && error.instancePath === instancePath
      const branches = (some: readonly ErrorObject[]) => new Set(some.flatMap((error) => branchOf(error) ?? []))
      const lacking = branches(errors.filter((error) => isHere(error, 'required')))
      const others = branches(errors.filter((error) => !isHere(error, 'type'))).difference(lacking)
      return others.size === 0 ? [] : [...lacking]
    })
  return errors.filter(({ schemaPath }) => !unlikely.some((branch) => schemaPath.startsWith(branch)))
}

/** They say that something in them is wrong, which is told too. */
const UMBRELLAS: ReadonlySet<string> = new Set(['anyOf', 'propertyNames'])

function ofTypes(union: ErrorObject, errors: readonly ErrorObject[]): ErrorObject {
  const types = errors
    .filter(({ keyword, instancePath }) => keyword === 'type' && instancePath === union.instancePath)
    .map(({ params }) => String(params.type))
  return types.length === 0 ? union : { ...union, message: `must be ${[...new Set(types)].join(' or ')}` }
}

/** The validator does not say which values a `not` refuses, nor what became of one that is gone; the schema does. */
function inWords(error: ErrorObject, schema: Schema, value: unknown): ErrorObject {
  const at = pathOf(error.schemaPath)
  if (error.keyword === 'enum') {
    const given = String(valueAt(value, pathOf(error.instancePath)))
    const hint = valueAt(schema, [...at.slice(0, -1), 'x-svc', 'gone', given, 'hint'])
    return { ...error, params: { ...error.params, hint: hint === undefined ? '' : `: ${String(hint)}` } }
  }
  if (error.keyword !== 'not') return error
  const refused = valueAt(schema, at)
  const words = valueAt(refused, ['enum']) ?? [valueAt(refused, ['const'])]
  return { ...error, message: `must not be one of ${JSON.stringify(words)}: they are reserved` }
}

function toDetail(error: ErrorObject, root: string, value: unknown): ErrorDetail {
  const path = [...pathOf(error.instancePath)]
  if (error.keyword === 'required') path.push(String(error.params.missingProperty))
  if (error.keyword === 'additionalProperties') path.push(String(error.params.additionalProperty))
  if (error.propertyName !== undefined) path.push(error.propertyName)
  const found = error.propertyName ?? valueAt(value, path)
  return {
    location: locate(root, path),
    message: error.propertyName === undefined ? messageOf(error) : `its name ${messageOf(error)}`,
    ...(found === undefined ? {} : { value: quotable(found) }),
  }
}

function messageOf(error: ErrorObject): string {
  if (error.keyword === 'required') return 'is required'
  if (error.keyword === 'additionalProperties') return 'is not a known field'
  if (error.keyword === 'enum')
    return `must be one of ${JSON.stringify(error.params.allowedValues)}${error.params.hint}`
  return error.message ?? error.keyword
}

const pathOf = (pointer: string): readonly string[] => pointer.split('/').slice(1).map(unescapePointer)
const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~')

function locate(root: string, path: readonly string[]): string {
  return path.reduce((at, part) => (/^\d+$/.test(part) ? `${at}[${part}]` : `${at}.${shortened(part)}`), root)
}

/** Long names and values are cut: an error must not be larger than what caused it. */
const shortened = (text: string): string => (text.length > MAX_QUOTED ? `${cut(text, MAX_QUOTED)}…` : text)

function valueAt(value: unknown, path: readonly string[]): unknown {
  let at: unknown = value
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined
    at = Reflect.get(at, part)
  }
  return at
}

function quotable(value: unknown): unknown {
  const text = JSON.stringify(value)
  return text !== undefined && text.length > MAX_QUOTED ? shortened(text) : value
}

interface QuerySchema {
  readonly properties: Readonly<Record<string, Schema>>
}

/**
 * The query string as the schema's types: integers and booleans from their one spelling, repeated keys only where an
 * array is declared. Unknown keys are 422 (decision 2): a misspelt filter must not list everything.
 */
export function parseQuery(search: string, schema: QuerySchema | undefined): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  const errors: ErrorDetail[] = []
  for (const [name, text] of queryPairs(search)) {
    const declared =
      schema !== undefined && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (declared === undefined) {
      errors.push({
        location: `query.${shortened(name)}`,
        message: 'is not a known query parameter',
        value: text.slice(0, MAX_QUOTED),
      })
    } else if (typeOf(declared) === 'array') {
      const list = query[name]
      if (Array.isArray(list)) list.push(text)
      else query[name] = [text]
    } else if (Object.hasOwn(query, name)) {
      errors.push({ location: `query.${name}`, message: 'is given more than once', value: text.slice(0, MAX_QUOTED) })
    } else {
      query[name] = coerce(text, typeOf(declared))
    }
  }
  if (errors.length > 0) throw invalid(errors.slice(0, MAX_ERRORS))
  return query
}

function queryPairs(search: string): readonly (readonly [string, string])[] {
  const parts = search.split('&', MAX_PARAMETERS + 1)
  if (parts.length > MAX_PARAMETERS)
    throw invalid([{ location: 'query', message: `has more than ${MAX_PARAMETERS} parameters` }])
  return parts
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=')
      return equals < 0
        ? [decodeQuery(pair), '']
        : [decodeQuery(pair.slice(0, equals)), decodeQuery(pair.slice(equals + 1))]
    })
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    const sentence = `the query string cannot be decoded: "${cut(text, 80)}"`
    throw problem('invalid-request', sentence, { errors: [{ location: 'query', message: 'cannot be decoded' }] })
  }
}

function typeOf(schema: Schema): string {
  const type: unknown = Reflect.get(schema, 'type')
  return typeof type === 'string' ? type : 'string'
}

function coerce(text: string, type: string): unknown {
  if (type === 'integer' && /^-?(?:0|[1-9][0-9]*)$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
