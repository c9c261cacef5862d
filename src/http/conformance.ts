/**
 * Holds a server of tests against its own contract: each reply, problem, frame and event that it makes. Off unless
 * `SVC_CONTRACT_FAULTS` names a file; then each difference is one line of the log and of that file, which the test reads.
 */
import { appendFileSync } from 'node:fs'
import type { SchemaValidateFunction, ValidateFunction } from 'ajv'
import type { EventTypes } from '../contract/base/event-type.ts'
import { RESPONSE_HEADERS } from '../contract/base/headers.ts'
import { LINES_TYPE, type Operation, problemsOf } from '../contract/base/operation.ts'
import { ErrorModel } from '../contract/base/problems.ts'
import { NULL, type Schema } from '../contract/base/schema.ts'
import { cut } from '../contract/base/text.ts'
import { EVENT_TYPES, isReservedType } from '../contract/event-types.ts'
import { RawBody, type Reply, StreamBody } from '../kernel/call.ts'
import type { StoredEvent } from '../kernel/event-log.ts'
import type { Logger } from '../kernel/log.ts'
import { type Problem, problemBody } from '../kernel/problem.ts'
import { newCompiler, withoutIds } from './input/validation.ts'
import { JSON_TYPE } from './replies.ts'

/** A request, as far as a fault names it. */
interface Asked {
  readonly operation: Operation | undefined
  readonly method: string
  readonly path: string
}

const CATALOGUE: EventTypes = EVENT_TYPES
const VARIABLE = 'SVC_CONTRACT_FAULTS'
/** A union with more members is compiled member by member, as values come: whole, it takes half a second. */
const MAX_COMPILED_MEMBERS = 12
const MAX_SHOWN = 300

/** Undefined where nobody asks for it. */
export function conformanceOf(env: Readonly<Record<string, string | undefined>>, log: Logger): Conformance | undefined {
  const file = env[VARIABLE]
  return file === undefined || file === '' ? undefined : new Conformance(file, log)
}

export class Conformance {
  readonly #file: string
  readonly #log: Logger
  readonly #schemas = new LazySchemas()
  /** Frames that several clients get are checked once. */
  readonly #checked = new WeakMap<Buffer, Operation>()

  constructor(file: string, log: Logger) {
    this.#file = file
    this.#log = log
  }

  /** Checks a reply before it is sent; a body that is made while it is sent is checked at its end. */
  reply(asked: Asked, reply: Reply): Reply {
    const { operation } = asked
    if (operation === undefined) return reply
    const { status, body, headers = {} } = reply
    const schema = operation.replies[status]
    if (schema === undefined) this.#fault(asked, `${status} is not declared`)
    this.#checkHeaders(asked, headers)
    if (schema === undefined || schema.type === NULL.type) return reply
    if (body instanceof StreamBody)
      return { ...reply, body: new StreamBody(this.#watched(asked, schema, body), body.type) }
    if (body instanceof RawBody) this.#checkText(asked, schema, body.type, String(body.bytes))
    else this.#checkText(asked, schema, JSON_TYPE, JSON.stringify(body))
    return reply
  }

  problem(asked: Asked, refused: Problem): void {
    const { operation } = asked
    if (operation !== undefined && !problemsOf(operation).includes(refused.code))
      this.#fault(asked, `the problem ${refused.code} is not declared (${refused.detail})`)
    this.#check(asked, ErrorModel, JSON.parse(JSON.stringify(problemBody(refused, 'x'))))
  }

  /** Checks what is written to the client of a stream. */
  frames(asked: Asked, batch: Buffer): void {
    const { operation } = asked
    if (operation === undefined || this.#checked.get(batch) === operation) return
    this.#checked.set(batch, operation)
    for (const text of textOf(batch).split('\n\n')) if (text !== '') this.#frame(asked, operation, text)
  }

  /** Checks events that were appended to a log of this kind. */
  events(log: 'city' | 'supervisor', events: readonly StoredEvent[]): void {
    for (const { type, subject, envelope } of events) {
      const asked = { operation: undefined, method: 'event', path: type }
      const known = CATALOGUE[type]
      if (known === undefined) {
        if (isReservedType(type)) this.#fault(asked, 'the type is reserved, and not in the catalogue')
        continue
      }
      if (known.log !== 'both' && known.log !== log) this.#fault(asked, `belongs into the log of the ${known.log}`)
      if (known.subject !== undefined && subject === undefined) this.#fault(asked, 'has no subject')
      this.#check(asked, known.payload, payloadOf(envelope))
    }
  }

  #frame(asked: Asked, { frames = [] }: Operation, text: string): void {
    const lines = new Map(text.split('\n').map((line) => [line.split(': ', 1)[0] ?? '', line.replace(/^\w+: /, '')]))
    const event = lines.get('event')
    const declared = frames.find((frame) => frame.event === event)
    if (declared === undefined) {
      this.#fault(asked, `a frame ${event} is not declared: ${shown(text)}`)
      return
    }
    if ((declared.id === undefined) === lines.has('id'))
      this.#fault(asked, `a frame ${event} ${lines.has('id') ? 'has an id' : 'has no id'}`)
    this.#checkText(asked, declared.data, JSON_TYPE, lines.get('data') ?? '')
  }

  async *#watched(asked: Asked, schema: Schema, { pieces, type }: StreamBody): AsyncIterable<string> {
    let whole = ''
    for await (const piece of pieces) {
      whole += piece
      yield piece
    }
    this.#checkText(asked, schema, type, whole)
  }

  #checkHeaders(asked: Asked, headers: Readonly<Record<string, string>>): void {
    const declared: readonly string[] = asked.operation?.replyHeaders ?? []
    for (const name of Object.keys(headers))
      if (name in RESPONSE_HEADERS && !declared.includes(name)) this.#fault(asked, `${name} is not declared`)
  }

  #checkText(asked: Asked, schema: Schema, type: string, text: string): void {
    const [essence = ''] = type.split(';')
    const declared = asked.operation?.mediaType ?? JSON_TYPE
    const mayDiffer = declared === '*/*' || asked.operation?.frames !== undefined
    if (!mayDiffer && essence !== declared) this.#fault(asked, `is ${type}, declared is ${declared}`)
    else if (essence === LINES_TYPE)
      for (const line of text.split('\n').filter((one) => one !== '')) this.#checkJson(asked, schema, line)
    else if (essence.endsWith('json')) this.#checkJson(asked, schema, text)
  }

  #checkJson(asked: Asked, schema: Schema, text: string): void {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      this.#fault(asked, `is no JSON: ${shown(text)}`)
      return
    }
    this.#check(asked, schema, value)
  }

  #check(asked: Asked, schema: Schema, value: unknown): void {
    const fault = this.#schemas.fault(schema, value)
    if (fault !== undefined) this.#fault(asked, `${fault}: ${shown(JSON.stringify(value))}`)
  }

  #fault({ operation, method, path }: Asked, what: string): void {
    this.#log.error({ operation: operation?.id, method, path, what }, 'differs from the contract')
    try {
      appendFileSync(this.#file, `${operation?.id ?? '(no operation)'} ${method} ${path}: ${what}\n`)
    } catch {
      // The disk of the test is full, or gone: the log has it.
    }
  }
}

/** Schemas that are compiled when a first value comes for them, and large unions member by member. */
class LazySchemas {
  readonly #compiler = newCompiler(false)
  readonly #compiled = new Map<object, ValidateFunction>()

  constructor() {
    const validate: SchemaValidateFunction = (members: Members, value: unknown) => {
      const member = members[String(Object(value).type)]
      const check = member === undefined ? undefined : this.#validatorOf(member)
      const holds = check?.(value) ?? false
      validate.errors = holds ? [] : (check?.errors ?? [{ message: 'is of no known type' }])
      return holds
    }
    this.#compiler.addKeyword({ keyword: 'x-members', errors: 'full', validate })
  }

  /** Says what is wrong with the value; undefined where nothing is. */
  fault(schema: Schema, value: unknown): string | undefined {
    const validate = this.#validatorOf(schema)
    if (validate(value)) return undefined
    const [first] = validate.errors ?? []
    const extra = first?.params?.['additionalProperty']
    return `${first?.instancePath} ${first?.message}${extra === undefined ? '' : ` (${String(extra)})`}`
  }

  #validatorOf(schema: object): ValidateFunction {
    const known = this.#compiled.get(schema)
    if (known !== undefined) return known
    const validate = this.#compiler.compile(withoutIds(byMembers(schema)))
    this.#compiled.set(schema, validate)
    return validate
  }
}

/** The schema with `x-members` in the place of each large union that is told apart by `type`. */
function byMembers(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(byMembers)
  if (typeof node !== 'object' || node === null) return node
  const { anyOf, ...rest } = Object.fromEntries(Object.entries(node))
  const members = Array.isArray(anyOf) && anyOf.length > MAX_COMPILED_MEMBERS ? membersOf(anyOf) : undefined
  if (members !== undefined) return { 'x-members': members }
  return Object.fromEntries(
    Object.entries(anyOf === undefined ? rest : { ...rest, anyOf }).map(([key, part]) => [key, byMembers(part)]),
  )
}

type Members = Readonly<Record<string, object>>

function membersOf(union: readonly unknown[]): Members | undefined {
  const members = union.flatMap((member): [string, object][] => {
    if (typeof member !== 'object' || member === null) return []
    const type: unknown = Object(Object(Object(member).properties).type).const
    return typeof type === 'string' ? [[type, member]] : []
  })
  return members.length === union.length ? Object.fromEntries(members) : undefined
}

/** The text of chunks of HTTP's chunked coding. */
function textOf(batch: Buffer): string {
  let text = ''
  for (let at = 0; at < batch.length; ) {
    const end = batch.indexOf('\r\n', at)
    const length = Number.parseInt(batch.toString('latin1', at, end), 16)
    text += batch.toString('utf8', end + 2, end + 2 + length)
    at = end + 2 + length + 2
  }
  return text
}

const shown = (text: string): string => cut(text, MAX_SHOWN, '…')

function payloadOf(envelope: string): unknown {
  const parsed: unknown = JSON.parse(envelope)
  return Object(parsed).payload
}
