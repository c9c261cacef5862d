/** `openapi.json` and `events.json` as a client has them: what a response may be, and whether a value is one. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export type Fields = { readonly [key: string]: unknown }

const root = resolve(import.meta.dirname, '../..')
export const openapi = asMap(JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')))
const eventSchema = asMap(JSON.parse(readFileSync(join(root, 'events.json'), 'utf8')))

export function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asMap(value: unknown): Fields {
  if (!isMap(value)) assert.fail(`not an object: ${JSON.stringify(value)}`)
  return value
}

/** The value at these keys; fails where there is none. */
export function at(value: unknown, ...keys: readonly (string | number)[]): unknown {
  let found = value
  for (const key of keys) {
    assert.ok(typeof found === 'object' && found !== null && Object.hasOwn(found, key), `no ${keys.join('.')}`)
    found = Reflect.get(found, key)
  }
  return found
}

// Whether the documents are valid schemas themselves is what test/contract/openapi.test.ts asks.
const ajv = new Ajv2020({
  allErrors: true,
  strictRequired: false,
  strictTypes: false,
  allowUnionTypes: true,
  validateSchema: false,
  code: { optimize: false },
})
addFormats.default(ajv)
ajv.addVocabulary(['discriminator', 'x-svc-problem-types'])
// A union of all types of events is compiled type by type, as values come: whole, it takes most of a second.
ajv.addKeyword({
  keyword: 'x-by-type',
  validate: (mapping: Readonly<Record<string, string>>, value: unknown) => {
    const ref = mapping[String(isMap(value) ? value.type : undefined)]
    return ref !== undefined && ajv.getSchema(`openapi.json${ref}`)?.(value) === true
  },
})
// The documents are no schemas: their own keys are made known, so that their parts are found by JSON pointers.
ajv.addVocabulary(Object.keys(openapi).filter((key) => !key.startsWith('$')))
ajv.addSchema(byType(openapi), 'openapi.json')
ajv.addVocabulary(Object.keys(eventSchema).filter((key) => key.startsWith('x-') && !(key in openapi)))
ajv.addSchema(eventSchema)

/** The document with the mapping of each discriminator in the place of its union. */
function byType(document: Fields): Fields {
  const components = asMap(document.components)
  const schemas = Object.entries(asMap(components.schemas)).map(([name, schema]) => {
    const { discriminator } = asMap(schema)
    return [name, isMap(discriminator) ? { 'x-by-type': discriminator.mapping } : schema] as const
  })
  return { ...document, components: { ...components, schemas: Object.fromEntries(schemas) } }
}

/** Fails unless the value is valid against `openapi.json#…` or `events.json#…`. */
export function assertValid(ref: string, value: unknown): void {
  const validate = ajv.getSchema(ref)
  assert.ok(validate, `no schema ${ref}`)
  if (validate(value)) return
  assert.fail(`${ref}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)?.slice(0, 2000)}`)
}

/** As `assertValid`, for a type whose schema this is. */
export function isValid<T>(ref: string, value: unknown): value is T {
  assertValid(ref, value)
  return true
}

const escaped = (step: string) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))
export const pointer = (...steps: readonly string[]): string => `openapi.json#/${steps.map(escaped).join('/')}`

export interface Documented {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
}

const templates = Object.entries(asMap(openapi.paths)).flatMap(([path, methods]) =>
  Object.entries(asMap(methods)).map(([method, operation]): Documented => {
    const source = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    const pattern = new RegExp(`^${source.join('[^/]+')}$`)
    return { id: String(asMap(operation).operationId), method: method.toUpperCase(), path, pattern }
  }),
)
const parameters = ({ path }: Documented): number => path.split('{').length

/** The operation that a request is for; the one with the fewest path parameters where several fit. */
export function operationFor(method: string, target: string): Documented | undefined {
  const path = target.split('?')[0] ?? ''
  return templates
    .filter((one) => one.method === method && one.pattern.test(path))
    .sort((a, b) => parameters(a) - parameters(b))[0]
}

export interface DocumentedResponse {
  /** Where its schemas are, as steps for `pointer`. */
  readonly steps: readonly string[]
  readonly fields: Fields
}

/** What the document says of this answer of this operation; fails where it says nothing. */
export function responseOf({ id, method, path }: Documented, status: number): DocumentedResponse {
  const responses = asMap(at(openapi, 'paths', path, method.toLowerCase(), 'responses'))
  const found = responses[String(status)]
  assert.ok(found !== undefined, `${id} answers ${status}, which the document does not declare`)
  const fields = asMap(found)
  if (typeof fields.$ref !== 'string')
    return { steps: ['paths', path, method.toLowerCase(), 'responses', String(status)], fields }
  const steps = fields.$ref.slice(2).split('/')
  return { steps, fields: asMap(at(openapi, ...steps)) }
}

/** Schema of the data of each kind of frame of a stream, by its `event:` line. */
export function framesOf({
  method,
  path,
}: Documented): ReadonlyMap<string, { readonly ref: string; readonly hasId: boolean }> {
  const frames = at(openapi, 'paths', path, method.toLowerCase(), 'x-svc-frames')
  assert.ok(Array.isArray(frames))
  return new Map(
    frames.map((frame: unknown, index) => {
      const { event, id } = asMap(frame)
      const ref = pointer('paths', path, method.toLowerCase(), 'x-svc-frames', String(index), 'data')
      return [String(event), { ref, hasId: id !== undefined }]
    }),
  )
}

/** Fails unless the value is a line of `svcctl events`. */
export function assertLine(definition: string, value: unknown): void {
  const id = String(eventSchema.$id)
  assertValid(`${id}#/$defs/${definition}`, value)
}
