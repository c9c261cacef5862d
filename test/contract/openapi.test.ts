import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { isMutation, type Operation, problemsOf } from '../../src/contract/base/operation.ts'
import { PROBLEM_CODES, PROBLEMS, problemUrn } from '../../src/contract/base/problems.ts'
import { EVENT_TYPE_NAMES, EVENT_TYPES } from '../../src/contract/event-types.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import { eventSchemaDocument, openapiDocument } from '../../src/contract/openapi.ts'
import { staleFiles } from '../../tools/generate.ts'
import { fc } from '../support/random.ts'

type Fields = { readonly [key: string]: unknown }

const root = resolve(import.meta.dirname, '../..')
// As clients get it: only what survives JSON counts.
const openapi = asMap(JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')))
const eventSchema = asMap(JSON.parse(readFileSync(join(root, 'events.json'), 'utf8')))
const schemas = asMap(at('#/components/schemas'))

const CITY_ENVELOPES = ['WireEvent', 'EventStreamEnvelope', 'TypedEventStreamEnvelope']
const TAGGED_ENVELOPES = ['WireTaggedEvent', 'TaggedEventStreamEnvelope', 'TypedTaggedEventStreamEnvelope']

function asMap(value: unknown): Fields {
  assert.ok(isMap(value), `not an object: ${JSON.stringify(value)}`)
  return value
}

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a reference inside `openapi.json` points at; fails where there is nothing. */
function at(ref: string): unknown {
  assert.match(ref, /^#\//)
  const steps = ref
    .slice(2)
    .split('/')
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  return steps.reduce<unknown>((value, step) => {
    assert.ok(isMap(value) && Object.hasOwn(value, step), `${ref}: no ${step}`)
    return value[step]
  }, openapi)
}

const resolved = (value: unknown): Fields => {
  const map = asMap(value)
  return typeof map.$ref === 'string' ? resolved(at(map.$ref)) : map
}

/** Every object in a document. */
function* objects(value: unknown): Generator<Fields> {
  if (Array.isArray(value)) for (const part of value) yield* objects(part)
  if (!isMap(value)) return
  yield value
  for (const part of Object.values(value)) yield* objects(part)
}

const documented = (operation: Operation): Fields =>
  asMap(asMap(asMap(openapi.paths)[operation.path])[operation.method.toLowerCase()])

const responsesOf = (operation: Operation): [string, Fields][] =>
  Object.entries(asMap(documented(operation).responses)).map(([status, response]) => [status, resolved(response)])

function newAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strictRequired: false, strictTypes: false, allowUnionTypes: true })
  addFormats.default(ajv)
  ajv.addVocabulary(['discriminator', 'x-svc-problem-types'])
  // The document is no schema: its own keys are made known, so that its parts are found by their JSON pointers.
  ajv.addVocabulary(Object.keys(openapi))
  return ajv.addSchema(openapi, 'openapi.json')
}
const ajv = newAjv()

function assertValid(ref: string, line: unknown): void {
  const validate = ajv.getSchema(ref)
  assert.ok(validate, `no schema ${ref}`)
  assert.ok(validate(line), `${ref}: ${JSON.stringify(line)}: ${ajv.errorsText(validate.errors)}`)
}

const component = (name: string): string => `openapi.json#/components/schemas/${name}`

/** One value that satisfies a schema, with every optional property (`full`) or with none. */
function sample(schema: unknown, full: boolean): unknown {
  const {
    const: constant,
    enum: values,
    examples,
    type,
    pattern,
    format,
    anyOf,
    properties,
    required,
    items,
    minimum,
  } = resolved(schema)
  if (constant !== undefined) return constant
  if (Array.isArray(values)) return values[0]
  if (Array.isArray(examples)) return examples[0]
  if (Array.isArray(anyOf)) return sample(anyOf[0], full)
  if (type === 'string') return sampleText(pattern, format)
  if (type === 'integer' || type === 'number') return minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'array') return [sample(items, full)]
  assert.equal(type, 'object')
  const wanted = Object.entries(isMap(properties) ? properties : {}).filter(
    ([name]) => full || (Array.isArray(required) && required.includes(name)),
  )
  return Object.fromEntries(wanted.map(([name, part]) => [name, sample(part, full)]))
}

function sampleText(pattern: unknown, format: unknown): string {
  if (format === 'date-time') return '2026-01-02T03:04:05.678Z'
  if (format === 'uri') return 'urn:svc:error:internal'
  if (typeof pattern !== 'string') return 'text'
  return fc.sample(fc.stringMatching(new RegExp(pattern)), { numRuns: 1, seed: 1 })[0] ?? ''
}

const envelope = (type: string, payload: unknown): Fields => ({
  seq: 7,
  type,
  ts: '2026-01-02T03:04:05.678Z',
  actor: 'supervisor',
  payload,
})

/** Lines of every known type, with full and with least payloads, and of custom types. */
function lines(): Fields[] {
  const known = EVENT_TYPE_NAMES.flatMap((type) => {
    const { payload } = EVENT_TYPES[type]
    return [true, false].map((full) => envelope(type, sample(schemas[String(asMap(payload).$id)], full)))
  })
  return [...known, envelope('deploy.done', {}), envelope('deploy', { nested: { any: [1, null] } })]
}

const tagged = (line: Fields): Fields => ({ ...line, city: 'alpha', log: 'alpha' })

test('what is checked in is what the contract gives', async () => {
  assert.deepEqual(await staleFiles(), [], 'run npm run generate')
})

test('the documents are the same every time', () => {
  assert.equal(JSON.stringify(openapiDocument(OPERATIONS, '1')), JSON.stringify(openapiDocument(OPERATIONS, '1')))
  assert.equal(JSON.stringify(eventSchemaDocument()), JSON.stringify(eventSchemaDocument()))
})

test('a linter that knows OpenAPI 3.1 has nothing to say', async () => {
  const redocly = join(dirname(fileURLToPath(import.meta.resolve('@redocly/cli/package.json'))), 'bin', 'cli.js')
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const args = [redocly, 'lint', 'openapi.json', '--config', 'redocly.yaml', '--format', 'json']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env, maxBuffer: 1 << 26 }).catch(
    (error) => error,
  )
  const report = asMap(JSON.parse(stdout))
  assert.deepEqual(report.problems, [])
})

test('every reference resolves, and no $id is left', () => {
  for (const value of objects(openapi)) {
    if (typeof value.$ref === 'string') at(value.$ref)
    assert.notEqual(typeof value.$id, 'string', JSON.stringify(value).slice(0, 200))
  }
})

test('every schema of a component is referred to', () => {
  const used = new Set([...objects(openapi)].map((value) => value.$ref))
  for (const name of Object.keys(schemas)) assert.ok(used.has(`#/components/schemas/${name}`), name)
})

test('a JSON Schema 2020-12 validator compiles every component', () => {
  for (const name of Object.keys(schemas)) assert.ok(ajv.getSchema(component(name)), name)
})

test('a client that knows only the document can check a problem', () => {
  for (const code of PROBLEM_CODES) {
    const { status, prefix, title } = PROBLEMS[code]
    assertValid(component('ErrorModel'), { type: problemUrn(code), title, status, detail: `${prefix}: text`, code })
  }
  assert.ok(!ajv.getSchema(component('ErrorModel'))?.({ status: 404 }))
})

for (const name of [...CITY_ENVELOPES, ...TAGGED_ENVELOPES]) {
  test(`${name} takes every event there is, and no event with a payload of another type`, () => {
    const shape = TAGGED_ENVELOPES.includes(name) ? tagged : (line: Fields) => line
    for (const line of lines()) assertValid(component(name), shape(line))
    const validate = ajv.getSchema(component(name))
    assert.ok(validate)
    for (const wrong of [
      envelope('request.failed', {}),
      envelope('Not A Type', {}),
      { ...envelope('deploy.done', {}), extra: 1 },
    ]) {
      assert.ok(!validate(shape(wrong)), JSON.stringify(wrong))
    }
  })
}

test('a line of svcctl events is checked by events.json with openapi.json beside it', () => {
  const own = newAjv().addSchema(eventSchema)
  const whole = own.getSchema('events.json')
  assert.ok(whole)
  const shapes: Record<string, (line: Fields) => Fields> = {
    cityListLine: (line) => line,
    cityStreamLine: (line) => line,
    supervisorListLine: tagged,
    supervisorStreamLine: tagged,
  }
  assert.deepEqual(Object.keys(asMap(eventSchema.$defs)).sort(), Object.keys(shapes).sort())
  for (const [key, shape] of Object.entries(shapes)) {
    const validate = own.getSchema(`events.json#/$defs/${key}`)
    assert.ok(validate, key)
    for (const line of lines()) {
      assert.ok(validate(shape(line)), `${key}: ${JSON.stringify(line)}: ${own.errorsText(validate.errors)}`)
      assert.ok(whole(shape(line)))
    }
  }
  assert.ok(!whole({ timestamp: '2026-01-02T03:04:05Z' }), 'a heartbeat is no line')
})

test('the discriminator of the known events leads from each type to its own kind, and custom events have none', () => {
  for (const name of ['TypedEventStreamEnvelope', 'TypedTaggedEventStreamEnvelope'])
    assert.equal(asMap(schemas[name]).discriminator, undefined)
  for (const name of ['KnownEvent', 'TaggedKnownEvent']) {
    const { propertyName, mapping } = asMap(asMap(schemas[name]).discriminator)
    assert.equal(propertyName, 'type')
    assert.deepEqual(Object.keys(asMap(mapping)), [...EVENT_TYPE_NAMES])
    for (const [type, ref] of Object.entries(asMap(mapping))) {
      const { properties } = asMap(at(String(ref)))
      assert.equal(asMap(asMap(properties).type).const, type)
    }
  }
})

test('every operation is in the document, under its own name and family', () => {
  const all = Object.values(asMap(openapi.paths)).flatMap((item) => Object.values(asMap(item)))
  assert.equal(all.length, OPERATIONS.length)
  const tags = Array.isArray(openapi.tags) ? openapi.tags.map((tag) => asMap(tag).name) : []
  for (const operation of OPERATIONS) {
    const { operationId, tags: own } = documented(operation)
    assert.equal(operationId, operation.id)
    assert.deepEqual(own, [operation.family.name])
    assert.ok(tags.includes(operation.family.name))
  }
})

test('every operation and every parameter says what it is for', () => {
  for (const operation of OPERATIONS) {
    const { summary, description, parameters = [] } = documented(operation)
    assert.ok(typeof summary === 'string' && summary !== '', operation.id)
    assert.ok(typeof description === 'string' && description !== '' && description !== summary, operation.id)
    assert.ok(Array.isArray(parameters))
    for (const parameter of parameters.map(resolved))
      assert.ok(parameter.description, `${operation.id}: ${String(parameter.name)}`)
  }
})

test('generators: no schema has a list of types, parts to merge, or a name that a wrapper of an operation has', () => {
  for (const value of objects(asMap(openapi.components))) {
    assert.ok(!Array.isArray(value.type), `a list of types: ${JSON.stringify(value).slice(0, 200)}`)
    assert.equal(value.allOf, undefined, `parts to merge: ${JSON.stringify(value).slice(0, 200)}`)
    assert.equal(value.unevaluatedProperties, undefined)
  }
  const names = Object.keys(schemas)
  const lower = Map.groupBy(names, (name) => name.toLowerCase())
  assert.deepEqual(
    [...lower.values()].filter((alike) => alike.length > 1),
    [],
    'names that differ in case alone',
  )
  const camel = (id: string) => id.replaceAll(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase())
  // What oapi-codegen, hey-api and openapi-python-client call what they make of an operation.
  const made = ['', 'Response', 'Responses', 'Params', 'Data', 'Error', 'Errors', 'JSONRequestBody', 'JSONBody']
  const taken = new Set(OPERATIONS.flatMap(({ id }) => made.map((suffix) => `${camel(id)}${suffix}`)))
  assert.deepEqual(
    names.filter((name) => taken.has(name)),
    [],
  )
})

test('a block of a transcript is told by its type', () => {
  const { anyOf, discriminator } = asMap(schemas['TranscriptBlock'])
  assert.ok(Array.isArray(anyOf))
  const { propertyName, mapping } = asMap(discriminator)
  assert.equal(propertyName, 'type')
  assert.deepEqual(
    Object.values(asMap(mapping)),
    anyOf.map((part) => asMap(part).$ref),
  )
})

test('every problem that an operation can answer stands at its status, as Problem Details', () => {
  for (const operation of OPERATIONS) {
    const responses = new Map(responsesOf(operation))
    for (const code of problemsOf(operation)) {
      const response = responses.get(String(PROBLEMS[code].status))
      assert.ok(response, `${operation.id}: ${code}`)
      const codes: unknown = response['x-svc-problems']
      assert.ok(Array.isArray(codes) && codes.includes(code), `${operation.id}: ${code}`)
      assert.match(String(response.description), new RegExp(`\`${code}\``))
      assert.deepEqual(Object.keys(asMap(response.content)), ['application/problem+json'])
    }
  }
})

test('every response declares X-SVC-Request-Id, and those that ask to wait declare Retry-After', () => {
  const all = [
    ...OPERATIONS.flatMap(responsesOf),
    ...Object.entries(asMap(openapi['x-svc-unrouted'])).map(([s, r]) => [s, resolved(r)] as const),
  ]
  for (const [status, response] of all) {
    const headers = asMap(response.headers)
    assert.equal(resolved(headers['X-SVC-Request-Id']).required, true)
    if (status === '429' || status === '503') assert.ok(headers['Retry-After'])
    if (status === '405') assert.ok(headers.Allow)
  }
})

test('every mutation, and nothing else, requires X-SVC-Request', () => {
  for (const operation of OPERATIONS) {
    const { parameters = [] } = documented(operation)
    assert.ok(Array.isArray(parameters))
    const header = parameters.map(resolved).find((parameter) => parameter.name === 'X-SVC-Request')
    assert.equal(header !== undefined, isMutation(operation.method), operation.id)
    if (header === undefined) continue
    assert.equal(header.required, true)
    assert.equal(asMap(header.schema).minLength, 1)
  }
})

test('a stream is described frame by frame', () => {
  for (const operation of OPERATIONS) {
    if (operation.frames === undefined) continue
    const [, response] = responsesOf(operation).find(([status]) => status === '200') ?? []
    assert.deepEqual(Object.keys(asMap(response?.content)), ['text/event-stream'])
    const { schema } = asMap(asMap(response?.content)['text/event-stream'])
    const { anyOf } = asMap(schema)
    assert.ok(Array.isArray(anyOf))
    const events = anyOf.map((frame) => asMap(asMap(asMap(frame).properties).event).const)
    assert.deepEqual(
      events,
      operation.frames.map((frame) => frame.event),
    )
  }
})

test('every example of a body and of a parameter is valid', () => {
  let checked = 0
  for (const value of objects(openapi)) {
    if (!('example' in value) || !isMap(value.schema)) continue
    const validate =
      typeof value.schema.$ref === 'string'
        ? ajv.getSchema(`openapi.json${value.schema.$ref}`)
        : ajv.compile(value.schema)
    assert.ok(validate?.(value.example), JSON.stringify(value))
    checked += 1
  }
  assert.ok(checked > 0)
})
