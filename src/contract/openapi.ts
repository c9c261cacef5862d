/**
 * The contract as documents: OpenAPI 3.1 (`openapi.json`) and the schema of one line of `svcctl events`
 * (`events.json`). Pure and deterministic: the same operations give the same text, so that a stale file shows as a diff.
 *
 * O1  A schema with a `$id` is one component of that name, and a `$ref` wherever it is used.
 * O2  No `$id` is left in `openapi.json` (decision 9): a validator would resolve references against it.
 * O3  Every response, success or problem, declares X-SVC-Request-Id; every mutation declares X-SVC-Request.
 */

import { ACCESS, accessOf } from './access.ts'
import { pathParameters } from './base/family.ts'
import { REQUEST_HEADERS, RESPONSE_HEADERS, type RequestHeader, type ResponseHeader } from './base/headers.ts'
import { emitsOf, type Frame, isMutation, LINES_TYPE, type Operation, problemsOf } from './base/operation.ts'
import { ErrorModel, PROBLEM_CODES, PROBLEMS, type ProblemCode, problemUrn } from './base/problems.ts'
import { EVENT_TYPE_NAMES, EVENT_TYPES, RESERVED_PREFIXES } from './event-types.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonMap
export interface JsonMap {
  readonly [key: string]: Json
}

const DESCRIPTION = `The control plane of a supervisor that manages cities: workspaces with agents, work, sessions and one event stream.

**Mutations.** Every POST, PUT, PATCH and DELETE needs the header \`X-SVC-Request\` with any non-empty value; without it the answer is 403 \`csrf:\`.

**Refusals** are RFC 9457 Problem Details (\`application/problem+json\`, schema \`ErrorModel\`). \`detail\` starts with a short prefix and a colon, \`code\` and \`type\` say which problem it is, \`errors\` names the fields that failed. \`x-svc-problems\` lists all of them; each operation lists the ones that it can answer.

**Every response**, whatever its status, carries \`X-SVC-Request-Id\`. The server's log has it for refused requests (at most ten a second of a code) and for mutations that no record of their own tells of; at level \`debug\` for every request.

**Anything unknown is refused**: a path is 404 \`not_found:\`, a method 405 \`method_not_allowed:\` with \`Allow\`, a query parameter or body field 422 \`validation_failed:\`. Bodies are at most 1 MiB where an operation does not say otherwise, and lists and objects in them lie in each other at most 64 times (400 \`invalid:\`).

**Cities.** Paths below \`/v0/city/{cityName}/\` exist while the city is running (\`running\` in \`GET /v0/cities\`); before that, they answer 404 \`not_found: city not found or not running: <cityName>\`. Configuration and packs are the exception: their operations work on a city that is stopped or could not start (\`init_failed\`), so that its files can be mended. A city that could not start is started again once its files are valid.

**Long operations** answer 202 with \`request_id\` and \`event_cursor\`. Open \`GET /v0/events/stream?after_cursor=<event_cursor>\` and read until a frame has that \`payload.request_id\`: exactly one terminal event follows, \`request.result.*\` or \`request.failed\`.

**Lists** page with \`limit\` and \`cursor\`: \`next_cursor\` is present if and only if there may be more. A page ends before it has more than 8 MiB too, so it may have fewer items than \`limit\`; one that is larger stands alone.

**Streams** are server-sent events: the \`event:\` line is the envelope (\`event\`, \`tagged_event\`, \`heartbeat\`), the kind of event is \`type\` in the JSON. Resume with \`Last-Event-ID\` or the query parameter of the stream; without either a stream starts at the head. Whatever can be refused is refused before the 200. \`x-svc-events\` lists every event type; \`/events.json\` is the schema of one line of \`svcctl events\`.

**Outside this contract** is the raw proxy \`/v0/city/{cityName}/svc/*\`: it passes any method, path and body on to a workspace service of the city, byte for byte, and WebSockets too; the service gets \`X-Forwarded-For\`, \`-Host\`, \`-Proto\` and \`-Prefix\`, and no token of this API. Its answers are the service's own, with \`X-SVC-Request-Id\`, but for these: 404 \`not_found: city not found or not running\` while the city is not running, 404 where there is no such service, 502 where it cannot be reached or does not speak HTTP, 503 with \`Retry-After\` while it is down, 504 where it takes too long. A private service asks for what the API asks for, and for \`X-SVC-Request\` with every method but GET, HEAD and OPTIONS; its pages are sandboxed. Before a \`direct\` one stands nothing of that.`

/** What `detail` says after its prefix, where the specification gives the words. */
const EXAMPLE_SENTENCES: Readonly<Partial<Record<ProblemCode, string>>> = {
  'csrf-required': 'X-SVC-Request header required on mutation endpoints',
  'city-not-found': 'city not found or not running: alpha',
  'city-already-initialized': 'city already initialized at /srv/alpha',
}

/** Answers of paths and methods that are no operation. */
const UNROUTED = ['route-not-found', 'method-not-allowed'] as const satisfies readonly ProblemCode[]

const REPLY_TEXT: Readonly<Record<string, string>> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted. Exactly one terminal event with this `request_id` follows; wait for it from `event_cursor` on.',
  204: 'Done; nothing to say.',
}

/** OpenAPI 3.1.0 document of `operations`, in their order. */
export function openapiDocument(operations: readonly Operation[], version: string): JsonMap {
  const components = new Components()
  const paths = pathItems(operations, components)
  const events = eventCatalogue(components)
  const unrouted = UNROUTED.map((code) => [
    PROBLEMS[code].status,
    components.problemResponse(PROBLEMS[code].status, [code]),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Supervisor control plane',
      summary: 'Cities, work, sessions and one event stream, over a typed HTTP API.',
      description: DESCRIPTION,
      version,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The server that this document comes from.' }],
    // Open on a loopback bind; everywhere else, or with --auth, the token is needed (decision 25).
    security: [{}, { bearer: [] }],
    tags: tagsOf(operations),
    paths,
    components: components.document(),
    'x-svc-access': ACCESS,
    'x-svc-problems': PROBLEM_CODES.map(problemEntry),
    'x-svc-unrouted': Object.fromEntries(unrouted),
    'x-svc-events': events,
    'x-svc-reserved-event-prefixes': RESERVED_PREFIXES,
  }
}

/**
 * JSON Schema of one line of list, watch or follow output of `svcctl events`. Framing only: every field is defined in
 * `openapi.json`. `$id` and references are relative, so that the two files work as siblings wherever they are.
 */
export function eventSchemaDocument(): JsonMap {
  const lines = {
    cityListLine: 'TypedEventStreamEnvelope',
    supervisorListLine: 'TypedTaggedEventStreamEnvelope',
    cityStreamLine: 'EventStreamEnvelope',
    supervisorStreamLine: 'TaggedEventStreamEnvelope',
  }
  const refs = Object.entries(lines).map(
    ([key, name]) => [key, { $ref: `openapi.json#/components/schemas/${name}` }] as const,
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'events.json',
    title: 'One line of svcctl events',
    description:
      'Validates one JSON line that `svcctl events` writes in list, watch or follow mode. The schemas are those of openapi.json, which must be a sibling of this file. Does not cover `--seq`, which writes a plain-text cursor.',
    anyOf: refs.map(([, ref]) => ref),
    $defs: Object.fromEntries(refs),
    'x-svc-events': {
      sourceOfTruth: 'openapi.json',
      listMode: [lines.cityListLine, lines.supervisorListLine],
      streamMode: [lines.cityStreamLine, lines.supervisorStreamLine],
      heartbeatSuppression: 'Frames with `event: heartbeat` are consumed by the client and never written.',
      cursorMode: {
        city: '`--seq` writes the X-SVC-Index head of the city as plain text.',
        supervisor: '`--seq` writes the composite cursor as plain text; pass it to `--after-cursor`.',
      },
    },
  }
}

/** Collects what operations refer to. Names are unique: two different schemas of one name are a mistake in the contract. */
class Components {
  readonly #schemas = new Map<string, JsonMap>()
  readonly #sources = new Map<string, string>()
  readonly #responses = new Map<string, JsonMap>()

  /** The schema itself, or a reference where it has a name (O1). */
  schema(source: object): JsonMap {
    const name = '$id' in source && typeof source.$id === 'string' ? source.$id : undefined
    if (name === undefined) return this.#keywords(source)
    this.#register(name, source)
    return { $ref: `#/components/schemas/${name}` }
  }

  /** A reference to the response of one status with exactly these problems. */
  problemResponse(status: number, codes: readonly ProblemCode[]): JsonMap {
    const name = `Problem${status}-${codes.join('-')}`
    if (!this.#responses.has(name)) this.#responses.set(name, problemResponse(status, codes, this.schema(ErrorModel)))
    return { $ref: `#/components/responses/${name}` }
  }

  document(): JsonMap {
    return {
      schemas: sorted(this.#schemas),
      responses: sorted(this.#responses),
      parameters: Object.fromEntries(headerNames(REQUEST_HEADERS).map((name) => [name, headerParameter(name)])),
      headers: Object.fromEntries(headerNames(RESPONSE_HEADERS).map((name) => [name, responseHeader(name)])),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Needed where the server is not bound to loopback, or was started with `--auth`. The token of the owner is in `endpoint.json`; `POST /v0/tokens` makes others. `x-svc-access` says what an operation needs.',
        },
      },
    }
  }

  #register(name: string, source: object): void {
    const text = JSON.stringify(source)
    const known = this.#sources.get(name)
    if (known !== undefined && known !== text) throw new Error(`two different schemas are named ${name}`)
    if (known !== undefined) return
    // Before its parts are walked: a recursive schema refers to itself.
    this.#sources.set(name, text)
    const schema = this.#keywords(source)
    this.#schemas.set(name, name === 'ErrorModel' ? withProblemTypes(schema) : schema)
    const discriminator = this.#discriminator(schema)
    if (discriminator !== undefined) this.#schemas.set(name, { ...schema, discriminator })
  }

  #keywords(source: object): JsonMap {
    const out: Record<string, Json> = {}
    for (const [keyword, value] of Object.entries(source)) {
      if (keyword === '$id' || OURS.has(keyword) || value === undefined) continue
      if (keyword === '$defs') this.#hoist(value)
      else out[keyword] = this.#keyword(keyword, value)
    }
    return withoutTypeList(withTextType(withoutSinglePart(out)))
  }

  #keyword(keyword: string, value: unknown): Json {
    if (keyword === '$ref' && typeof value === 'string' && !value.includes('#')) return `#/components/schemas/${value}`
    if (SCHEMA_MAPS.has(keyword) && isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, this.#part(part)]))
    }
    if (SCHEMA_LISTS.has(keyword) && Array.isArray(value)) return value.map((part) => this.#part(part))
    if (SCHEMA_KEYWORDS.has(keyword)) return this.#part(value)
    return plainJson(value)
  }

  #part(value: unknown): Json {
    return isObject(value) ? this.schema(value) : plainJson(value)
  }

  /** Members of a recursive schema are components like any other. */
  #hoist(definitions: unknown): void {
    if (!isObject(definitions)) return
    for (const [name, part] of Object.entries(definitions)) if (isObject(part)) this.#register(name, part)
  }

  /** Where all parts are components told apart by a constant `type`; parts without a constant are left out. */
  #discriminator(schema: JsonMap): JsonMap | undefined {
    const mapping: Record<string, Json> = {}
    const parts = Array.isArray(schema.anyOf) ? schema.anyOf : []
    for (const part of parts) {
      const ref = isMap(part) && typeof part.$ref === 'string' ? part.$ref : undefined
      const type = ref === undefined ? undefined : this.#typeProperty(ref)
      if (ref === undefined || type === undefined) return undefined
      if (typeof type.const === 'string') mapping[type.const] = ref
    }
    return Object.keys(mapping).length < 2 ? undefined : { propertyName: 'type', mapping }
  }

  /** Schema of the required property `type` of a component, if it has one. */
  #typeProperty(ref: string): JsonMap | undefined {
    const schema = this.#schemas.get(ref.slice('#/components/schemas/'.length))
    const required = Array.isArray(schema?.required) && schema.required.includes('type')
    const properties = schema?.properties
    return required && isMap(properties) && isMap(properties.type) ? properties.type : undefined
  }
}

/** An alias, or a schema with words of its own, is written as a union or an intersection of one: as a plain reference every tool understands it. */
function withoutSinglePart(schema: JsonMap): JsonMap {
  const { anyOf, allOf, ...rest } = schema
  const parts = anyOf === undefined ? allOf : anyOf
  const only =
    Array.isArray(parts) && parts.length === 1 && (anyOf === undefined || allOf === undefined) ? parts[0] : undefined
  return isMap(only) ? { ...only, ...rest } : schema
}

/** Several types in one list are a union: code generators for languages with types take no list. */
function withoutTypeList(schema: JsonMap): JsonMap {
  const { type: types } = schema
  if (!Array.isArray(types)) return schema
  const parts = types.map((type): JsonMap => ({ type, ...partOf(schema, (keyword) => OF_TYPE.get(keyword) === type) }))
  const common = partOf(schema, (keyword) => keyword !== 'type' && !OF_TYPE.has(keyword))
  return { ...common, anyOf: parts }
}

/** Keywords that say something of values of one type alone. */
const OF_TYPE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    array: ['items', 'minItems', 'maxItems', 'uniqueItems'],
    string: ['minLength', 'maxLength', 'pattern', 'format'],
    object: ['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties', 'propertyNames'],
    number: ['minimum', 'maximum'],
  }).flatMap(([type, keywords]) => keywords.map((keyword) => [keyword, type] as const)),
)

const partOf = (schema: JsonMap, holds: (keyword: string) => boolean): JsonMap =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => holds(keyword)))

/** Enumerations come without a type, which code generators ask for. */
function withTextType(schema: JsonMap): JsonMap {
  const values = schema.enum
  const texts = Array.isArray(values) && values.every((value) => typeof value === 'string')
  return texts && schema.type === undefined ? { type: 'string', ...schema } : schema
}

/** Annotations that only the loader of configuration reads. */
const OURS = new Set(['x-svc', 'minimumMs'])
const SCHEMA_MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const SCHEMA_LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const SCHEMA_KEYWORDS = new Set([
  'items',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'propertyNames',
  'contains',
  'not',
  'if',
  'then',
  'else',
])

function pathItems(operations: readonly Operation[], components: Components): JsonMap {
  const paths: Record<string, Record<string, Json>> = {}
  for (const operation of operations) {
    const methods = paths[operation.path] ?? {}
    paths[operation.path] = methods
    const method = operation.method.toLowerCase()
    if (methods[method] !== undefined) throw new Error(`two operations are ${operation.method} ${operation.path}`)
    methods[method] = operationObject(operation, components)
  }
  return paths
}

function operationObject(operation: Operation, components: Components): JsonMap {
  const parameters = parametersOf(operation, components)
  const { body, frames, description } = operation
  const emits = emitsOf(operation)
  return {
    operationId: operation.id,
    tags: [operation.family.name],
    summary: operation.summary,
    ...(description === undefined ? {} : { description }),
    ...(operation.open === true ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestBody(operation, body, components) }),
    responses: { ...successes(operation, components), ...refusals(operation, components) },
    ...(emits.length === 0 ? {} : { 'x-svc-emits': emits }),
    ...(frames === undefined ? {} : { 'x-svc-frames': frames.map((frame) => frameEntry(frame, components)) }),
    'x-svc-access': accessOf(operation),
    'x-svc-problems': problemsOf(operation),
  }
}

function parametersOf(operation: Operation, components: Components): JsonMap[] {
  const { params, query, headers = [] } = operation
  const path = pathParameters(operation.path).map((name) => {
    const schema = params?.properties[name]
    if (schema === undefined) throw new Error(`${operation.id}: no schema for {${name}} in the path`)
    return { name, in: 'path', required: true, ...described(schema, components) }
  })
  const { properties = {}, required = [] } = query ?? {}
  const search = Object.entries(properties).map(([name, source]) => {
    const { schema, ...rest } = described(source, components)
    const repeatable = isMap(schema) && schema.type === 'array' ? { style: 'form', explode: true } : {}
    return { name, in: 'query', required: required.includes(name), ...rest, ...repeatable, schema }
  })
  const sent: readonly RequestHeader[] = [
    ...(isMutation(operation.method) ? (['X-SVC-Request'] as const) : []),
    ...headers,
    ...(mayBeUnchanged(operation) ? (['If-None-Match'] as const) : []),
  ]
  return [...path, ...search, ...[...new Set(sent)].map((name) => ({ $ref: `#/components/parameters/${name}` }))]
}

/** A parameter's description and example stand beside its schema, where pages and generators look for them. */
/** A parameter says what its schema says, also where that is a component. */
function described(source: object, components: Components): { description?: Json; example?: Json; schema: JsonMap } {
  const { description = descriptionOf(source), examples, ...rest } = components.schema(source)
  const example = Array.isArray(examples) ? examples[0] : undefined
  return {
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
    schema: rest,
  }
}

const descriptionOf = (source: object): string | undefined =>
  'description' in source && typeof source.description === 'string' ? source.description : undefined

function headerParameter(name: RequestHeader): JsonMap {
  const { required, schema, description } = REQUEST_HEADERS[name]
  return {
    name,
    in: 'header',
    required,
    description,
    ...(name === 'X-SVC-Request' ? { example: '1' } : {}),
    schema: plainJson(schema),
  }
}

function responseHeader(name: ResponseHeader): JsonMap {
  const { schema, description } = RESPONSE_HEADERS[name]
  return { description, ...(name === 'X-SVC-Request-Id' ? { required: true } : {}), schema: plainJson(schema) }
}

function requestBody(operation: Operation, body: object, components: Components): JsonMap {
  const limit = operation.bodyLimit === undefined ? {} : { 'x-svc-body-limit': operation.bodyLimit }
  if (operation.bodyStream === 'bytes')
    return { required: false, content: { '*/*': { schema: components.schema(body) } }, ...limit }
  if (operation.bodyStream !== undefined) {
    return { required: false, content: { [LINES_TYPE]: linesOf(body, components) }, ...limit }
  }
  const { bodyType } = operation
  if (bodyType !== undefined)
    return { required: true, content: { [bodyType]: { schema: components.schema(body) } }, ...limit }
  const example = exampleOf(body)
  const content = { schema: components.schema(body), ...(example === undefined ? {} : { example }) }
  const types =
    operation.method === 'PATCH' ? ['application/json', 'application/merge-patch+json'] : ['application/json']
  return {
    required: operation.bodyOptional !== true,
    content: Object.fromEntries(types.map((type) => [type, content])),
    ...limit,
  }
}

/** Lines are text to whoever reads OpenAPI 3.1; what one of them is, stands beside. */
function linesOf(line: object, components: Components): JsonMap {
  const schema = { type: 'string', description: 'One JSON object on each line, in UTF-8; blank lines are ignored.' }
  return { schema, 'x-svc-line': components.schema(line) }
}

/** The examples of an object's properties, put together; undefined where a required one has none. */
function exampleOf(schema: object): JsonMap | undefined {
  if (!('properties' in schema) || !isObject(schema.properties)) return undefined
  const example: Record<string, Json> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    if (isObject(property) && Array.isArray(property.examples)) example[name] = plainJson(property.examples[0])
  }
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : []
  const whole = required.every((name) => typeof name === 'string' && name in example)
  return whole && Object.keys(example).length > 0 ? example : undefined
}

function successes(operation: Operation, components: Components): JsonMap {
  const { frames, replies, replyHeaders = [], mediaType = 'application/json' } = operation
  const headers = headerRefs(['X-SVC-Request-Id', ...replyHeaders])
  if (frames !== undefined) return { 200: { ...streamReply(frames, components), headers } }
  const entries = Object.entries(replies).map(([status, reply]) => {
    const schema = components.schema(reply)
    const media = mediaType === LINES_TYPE ? linesOf(reply, components) : { schema }
    const content = schema.type === 'null' ? {} : { content: { [mediaType]: media } }
    return [status, { description: REPLY_TEXT[status] ?? 'Done.', headers, ...content }] as const
  })
  const unchanged = { description: 'The client has this version already.', headers }
  return { ...Object.fromEntries(entries), ...(mayBeUnchanged(operation) ? { 304: unchanged } : {}) }
}

/** Wherever a read gives an ETag, `If-None-Match` is heeded. */
const mayBeUnchanged = ({ method, replyHeaders = [] }: Operation): boolean =>
  method === 'GET' && replyHeaders.includes('ETag')

/** The body of a stream is a sequence of frames; the schema is that of one frame, field by field. */
function streamReply(frames: readonly Frame[], components: Components): JsonMap {
  const lines = frames.map((frame) => {
    const id = frame.id === undefined ? 'no `id:`' : `\`id:\` ${frame.id}`
    return `- \`event: ${frame.event}\`, ${id}, \`data:\` ${dataName(frame)} as one line of JSON. ${frame.description}`
  })
  return {
    description: ['Server-sent events, a sequence of these frames:', '', ...lines].join('\n'),
    content: {
      'text/event-stream': {
        schema: {
          description: 'One frame; each property is the line of that name, `data` parsed as JSON.',
          anyOf: frames.map((frame) => frameSchema(frame, components)),
        },
      },
    },
  }
}

const dataName = ({ data }: Frame): string =>
  '$id' in data && typeof data.$id === 'string' ? `\`${data.$id}\`` : 'an object'

function frameSchema(frame: Frame, components: Components): JsonMap {
  const { event, data, id, description } = frame
  return {
    title: event,
    description,
    type: 'object',
    required: [...(id === undefined ? [] : ['id']), 'event', 'data'],
    properties: {
      ...(id === undefined ? {} : { id: { type: 'string', description: id } }),
      event: { type: 'string', const: event },
      data: components.schema(data),
    },
    additionalProperties: false,
  }
}

function frameEntry(frame: Frame, components: Components): JsonMap {
  const { event, id, description } = frame
  return { event, ...(id === undefined ? {} : { id }), data: components.schema(frame.data), description }
}

function refusals(operation: Operation, components: Components): JsonMap {
  const byStatus = Map.groupBy(problemsOf(operation), (code) => PROBLEMS[code].status)
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, components.problemResponse(status, codes)]))
}

function problemResponse(status: number, codes: readonly ProblemCode[], schema: JsonMap): JsonMap {
  const extra: readonly ResponseHeader[] =
    status === 429 || status === 503
      ? ['Retry-After']
      : status === 405
        ? ['Allow']
        : status === 401
          ? ['WWW-Authenticate']
          : []
  return {
    description: codes
      .map((code) => `- \`${code}\` (\`${PROBLEMS[code].prefix}:\`): ${PROBLEMS[code].title}.`)
      .join('\n'),
    headers: headerRefs(['X-SVC-Request-Id', ...extra]),
    content: {
      'application/problem+json': {
        schema,
        examples: Object.fromEntries(codes.map((code) => [code, { value: problemExample(code) }])),
      },
    },
    'x-svc-problems': codes,
  }
}

function problemExample(code: ProblemCode): JsonMap {
  const { status, prefix, title } = PROBLEMS[code]
  const sentence = EXAMPLE_SENTENCES[code] ?? `${title.charAt(0).toLowerCase()}${title.slice(1)}`
  return { type: problemUrn(code), title, status, detail: `${prefix}: ${sentence}`, code }
}

function problemEntry(code: ProblemCode): JsonMap {
  return { code, type: problemUrn(code), ...PROBLEMS[code] }
}

function withProblemTypes(schema: JsonMap): JsonMap {
  const { properties } = schema
  if (!isMap(properties) || !isMap(properties.type)) return schema
  const type = { ...properties.type, 'x-svc-problem-types': PROBLEM_CODES.map(problemUrn) }
  return { ...schema, properties: { ...properties, type } }
}

function eventCatalogue(components: Components): JsonMap[] {
  return EVENT_TYPE_NAMES.map((type) => {
    const { payload, ...about } = EVENT_TYPES[type]
    return { type, payload: components.schema(payload), ...about }
  })
}

function tagsOf(operations: readonly Operation[]): JsonMap[] {
  const families = new Map(operations.map(({ family }) => [family.name, family.about]))
  return [...families].map(([name, description]) => ({ name, description }))
}

function headerRefs(names: readonly ResponseHeader[]): JsonMap {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function headerNames<T extends object>(table: T): (keyof T & string)[] {
  return Object.keys(table).filter((name): name is keyof T & string => name in table)
}

function sorted(map: ReadonlyMap<string, JsonMap>): JsonMap {
  return Object.fromEntries([...map].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Values that are data, not schemas: enumerations, constants, examples, limits. */
function plainJson(value: unknown): Json {
  if (value === null || typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string')
    return value
  if (Array.isArray(value)) return value.map(plainJson)
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plainJson(part)]))
  throw new TypeError(`not JSON: ${typeof value}`)
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const isMap = (value: Json | undefined): value is JsonMap => isObject(value)
