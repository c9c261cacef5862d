/** Which fields the answer of an operation can have, read from the document of the API. Pure. */
import { isRecord } from '../../client/problems.ts'
import type { KnownFields } from './arrange.ts'

/** `git.branch`, and no deeper. */
const DEEPEST = 2

/** Of lists those of their items; empty where the document does not know. `text` is that of `openapi.json`. */
export function knownFields(operations: readonly string[], text: string): KnownFields {
  const document: unknown = JSON.parse(text)
  const found = operations.map((id) => operationOf(document, id))
  const answers = found.flatMap((one) => [...answersOf(document, one), ...outcomesOf(document, one)])
  const fields = answers.flatMap((answer) => {
    const items = resolve(document, propertiesOf(document, answer).get('items'))
    return fieldsOf(document, at(items, 'items') ?? answer, DEEPEST)
  })
  return [...new Set(fields)]
}

function operationOf(document: unknown, operation: string): unknown {
  const paths = Object.values(recordOf(at(document, 'paths')))
  return paths.flatMap((path) => Object.values(recordOf(path))).find((one) => at(one, 'operationId') === operation)
}

const answersOf = (document: unknown, operation: unknown): readonly unknown[] =>
  Object.entries(recordOf(at(operation, 'responses'))).flatMap(([status, response]) =>
    status.startsWith('2') ? [at(at(at(resolve(document, response), 'content'), 'application/json'), 'schema')] : [],
  )

/** What is shown once somebody has waited for what was accepted. */
function outcomesOf(document: unknown, operation: unknown): readonly unknown[] {
  const events = at(at(at(document, 'components'), 'schemas'), 'KnownEvent')
  const references = recordOf(at(at(events, 'discriminator'), 'mapping'))
  return listOf(at(operation, 'x-svc-emits')).flatMap((type) =>
    String(type).startsWith('request.result.')
      ? [propertiesOf(document, { $ref: references[String(type)] }).get('payload')]
      : [],
  )
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
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((kind) => listOf(at(found, kind)))
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
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
