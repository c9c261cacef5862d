/** Which fields the answer of an operation can have, read from the document of the API. Pure. */
import { isRecord } from '../../client/problems.ts'
import type { KnownFields } from './arrange.ts'

/** `git.branch`, and no deeper. */
const DEEPEST = 2

/** Of a list those of its items; empty where the document does not know. `text` is that of `openapi.json`. */
export function knownFields(operation: string | undefined, text: string): KnownFields {
  if (operation === undefined) return []
  const document: unknown = JSON.parse(text)
  const answer = answerOf(document, operation)
  const whole = propertiesOf(document, answer)
  const items = resolve(document, whole.get('items'))
  return fieldsOf(document, at(items, 'items') ?? answer, DEEPEST)
}

function answerOf(document: unknown, operation: string): unknown {
  const paths = Object.values(recordOf(at(document, 'paths')))
  const found = paths
    .flatMap((path) => Object.values(recordOf(path)))
    .find((one) => at(one, 'operationId') === operation)
  const [answer] = Object.entries(recordOf(at(found, 'responses'))).flatMap(([status, response]) =>
    status.startsWith('2') ? [response] : [],
  )
  return at(at(at(resolve(document, answer), 'content'), 'application/json'), 'schema')
}

function fieldsOf(document: unknown, schema: unknown, depth: number): readonly string[] {
  return [...propertiesOf(document, schema)].flatMap(([name, property]) => {
    const below = depth > 1 ? fieldsOf(document, property, depth - 1) : []
    const open = at(resolve(document, property), 'additionalProperties')
    return [name, ...(open === undefined || open === false ? [] : ['*']).concat(below).map((one) => `${name}.${one}`)]
  })
}

function propertiesOf(document: unknown, schema: unknown): ReadonlyMap<string, unknown> {
  const found = resolve(document, schema)
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((kind) => {
    const list = at(found, kind)
    return Array.isArray(list) ? list : []
  })
  return new Map([
    ...Object.entries(recordOf(at(found, 'properties'))),
    ...parts.flatMap((part) => [...propertiesOf(document, part)]),
  ])
}

/** What a `$ref` leads to. */
function resolve(document: unknown, schema: unknown): unknown {
  const reference = at(schema, '$ref')
  if (typeof reference !== 'string') return schema
  return reference.replace(/^#\//, '').split('/').reduce(at, document)
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {})
const at = (value: unknown, name: string): unknown => recordOf(value)[name]
