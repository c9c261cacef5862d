/** `openapi.json` as a test reads it: operations, validators by pointer, and what is wrong with an answer. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export type Fields = { readonly [key: string]: unknown }

export interface DocumentedParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Fields
}

export interface DocumentedOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly family: string
  readonly parameters: readonly DocumentedParameter[]
  /** Undefined where the operation takes no body. */
  readonly body: { readonly schema: Fields; readonly required: boolean } | undefined
  /** The body is lines of JSON, each looked at by itself. */
  readonly takesLines: boolean
  /** Media type of a body that is text. */
  readonly textType: string | undefined
  readonly streams: boolean
  readonly responses: ReadonlyMap<number, DocumentedResponse>
}

interface DocumentedResponse {
  readonly pointer: string
  readonly content: Fields
  readonly headers: Fields
  readonly problems: readonly unknown[]
}

/** An answer as it came over the wire. */
export interface Answer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined }
  readonly body: Buffer
}

export const openapi = asFields(
  JSON.parse(readFileSync(join(resolve(import.meta.dirname, '..', '..'), 'openapi.json'), 'utf8')),
)

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addVocabulary(['discriminator', ...Object.keys(openapi)])
ajv.addSchema(openapi, 'openapi.json')
const validators = new Map<string, ValidateFunction>()

export const OPERATIONS: readonly DocumentedOperation[] = Object.entries(asFields(openapi.paths)).flatMap(
  ([path, item]) =>
    Object.entries(asFields(item)).map(([method, operation]) => documentedOperation(path, method, asFields(operation))),
)

function documentedOperation(path: string, method: string, operation: Fields): DocumentedOperation {
  const at = `#/paths/${escaped(path)}/${method}`
  const responses = Object.entries(asFields(operation.responses)).map(
    ([status, response]) => [Number(status), documentedResponse(`${at}/responses/${status}`, response)] as const,
  )
  const body = operation.requestBody === undefined ? undefined : resolved(operation.requestBody)
  const content = body === undefined ? {} : asFields(body.content)
  const json = content['application/json'] === undefined ? undefined : asFields(content['application/json'])
  return {
    id: String(operation.operationId),
    method: method.toUpperCase(),
    path,
    family: String(asList(operation.tags)[0]),
    parameters: asList(operation.parameters ?? []).map((parameter) => documentedParameter(resolved(parameter))),
    body: json === undefined ? undefined : { schema: asFields(json.schema), required: body?.required === true },
    takesLines: content['application/x-ndjson'] !== undefined,
    textType: Object.keys(content).find((type) => type === 'application/toml'),
    streams: operation['x-svc-frames'] !== undefined,
    responses: new Map(responses),
  }
}

function documentedParameter({ name, in: place, required, schema }: Fields): DocumentedParameter {
  if (place !== 'path' && place !== 'query' && place !== 'header') throw new Error(`a parameter in ${String(place)}`)
  return { name: String(name), in: place, required: required === true, schema: asFields(schema) }
}

function documentedResponse(at: string, response: unknown): DocumentedResponse {
  const reference = asFields(response).$ref
  const { content = {}, headers = {}, 'x-svc-problems': problems = [] } = resolved(response)
  return {
    pointer: typeof reference === 'string' ? reference : at,
    content: asFields(content),
    headers: asFields(headers),
    problems: asList(problems),
  }
}

/** What a reference stands for; anything else as it is. */
export function resolved(value: unknown): Fields {
  const fields = asFields(value)
  if (typeof fields.$ref !== 'string') return fields
  const steps = fields.$ref
    .slice(2)
    .split('/')
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  return resolved(steps.reduce<unknown>((at, step) => asFields(at)[step], openapi))
}

/** Sentences about what breaks `schema`, which may refer to the document's components; empty where nothing does. */
export function breaches(schema: Fields, value: unknown): string[] {
  const key = JSON.stringify(schema)
  const check = validators.get(key) ?? ajv.compile(absolute(schema))
  validators.set(key, check)
  return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** The same schema with its references leading into the document. */
function absolute(schema: Fields): Fields {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    if (!isFields(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, name === '$ref' ? `openapi.json${String(part)}` : walk(part)]),
    )
  }
  return asFields(walk(schema))
}

/** What is wrong with an answer to `operation`, as sentences; the body of a stream is not looked at here. */
export function faults(operation: DocumentedOperation, { status, headers, body }: Answer): string[] {
  const response = operation.responses.get(status) ?? unrouted.get(status)
  const found: string[] = []
  if (response === undefined) return [...found, `${status} is not declared`]
  for (const [name, header] of Object.entries(response.headers)) {
    const { required, schema } = resolved(header)
    const value = headers[name.toLowerCase()]
    if (value === undefined) {
      if (required === true) found.push(`${name} is missing`)
    } else {
      const read = asFields(schema).type === 'integer' ? Number(value) : value
      found.push(...breaches(asFields(schema), read).map((why) => `${name}: ${why}`))
    }
  }
  return [...found, ...bodyFaults(response, String(headers['content-type'] ?? ''), body)]
}

function bodyFaults({ content, pointer, problems }: DocumentedResponse, contentType: string, body: Buffer): string[] {
  const types = Object.keys(content)
  const type = types.find((one) => one === '*/*' || one === contentType.split(';')[0])
  if (type === undefined)
    return types.length === 0 && body.length === 0
      ? []
      : [`content type ${contentType || 'none'}, declared: ${types.join(', ')}`]
  if (type === LINES_TYPE) return linesFaults(asFields(content[type]), body)
  if (!type.endsWith('json')) return []
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return [`not JSON: ${body.toString('utf8').slice(0, 200)}`]
  }
  const found = breaches({ $ref: `${pointer}/content/${escaped(type)}/schema` }, value)
  return type === 'application/problem+json' ? [...found, ...problemFaults(asFields(value), problems)] : found
}

const LINES_TYPE = 'application/x-ndjson'

/** Each line is JSON by itself, and what the document says of a line. */
function linesFaults({ 'x-svc-line': line }: Fields, body: Buffer): string[] {
  const lines = body.toString('utf8').split('\n')
  const unfinished = lines.pop() === '' ? [] : ['the last line has no end']
  const wrong = lines.flatMap((text, at) => {
    try {
      return breaches(asFields(line), JSON.parse(text)).map((why) => `line ${at + 1}: ${why}`)
    } catch {
      return [`line ${at + 1} is not JSON: ${text.slice(0, 200)}`]
    }
  })
  return [...unfinished, ...wrong.slice(0, 20)]
}

const PREFIXES = new Map(
  asList(openapi['x-svc-problems'])
    .map(asFields)
    .map(({ code, prefix, status }) => [code, { prefix, status }]),
)

/** Problems carry their registered prefix and status, and only those that the response lists. */
export function problemFaults({ code, detail, type }: Fields, allowed: readonly unknown[]): string[] {
  const found: string[] = []
  if (!allowed.includes(code)) found.push(`problem ${String(code)} is not declared here`)
  if (type !== `urn:svc:error:${String(code)}`) found.push(`type ${String(type)} does not fit ${String(code)}`)
  const prefix = String(PREFIXES.get(code)?.prefix)
  if (!String(detail).startsWith(`${prefix}: `))
    found.push(`detail does not start with "${prefix}: ": ${String(detail)}`)
  return found
}

/** Answers where no operation was met: unknown paths, undeclared methods. */
const unrouted = new Map(
  Object.entries(asFields(openapi['x-svc-unrouted'])).map(([status, response]) => [
    Number(status),
    documentedResponse(`#/x-svc-unrouted/${status}`, response),
  ]),
)

function escaped(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asFields(value: unknown): Fields {
  if (isFields(value)) return value
  throw new TypeError(`not an object: ${JSON.stringify(value)?.slice(0, 200)}`)
}

export function asList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new TypeError(`not a list: ${JSON.stringify(value)?.slice(0, 200)}`)
}
