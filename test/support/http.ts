/**
 * An HTTP client that believes nothing: every answer is checked against `openapi.json` before a test sees it (status,
 * media type, body, headers, Problem Details), so each test that talks to the server is a contract test too.
 */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Operation, ReplyOf } from '../../src/contract/base/operation.ts'
import { type ErrorModel, PROBLEMS, type ProblemCode } from '../../src/contract/base/problems.ts'
import { record } from './answers.ts'
import { assertValid, at, type Documented, isMap, isValid, operationFor, pointer, responseOf } from './document.ts'

export { eventually } from './eventually.ts'

// An import would load the client of `fetch` with it, which takes longer than everything else here.
const { Agent, request } = process.getBuiltinModule('node:http')

const ANSWER_DEADLINE_MS = 90_000
/** What the gates before the router can answer on any path. */
const UNROUTED = new Set([400, 401, 403, 404, 405, 408, 413, 421, 431, 503])

export interface CallOptions {
  /** Undefined takes away a header that would be sent by itself. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, instead of `body`. */
  readonly bytes?: Buffer | string
  readonly signal?: AbortSignal
  /** On a connection of its own: the server will close it. */
  readonly alone?: boolean
}

export interface Answer {
  readonly operation: Documented | undefined
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly bytes: Buffer
  /** Parsed where it is JSON. */
  readonly body: unknown
}

export class Api {
  readonly url: string
  readonly #token: string | undefined
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })

  constructor(url: string, token?: string) {
    this.url = url
    this.#token = token
  }

  get = (path: string, options: CallOptions = {}): Promise<Answer> => this.call('GET', path, options)
  post = (path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> =>
    this.call('POST', path, body === undefined ? options : { ...options, body })

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const response = await this.open(method, path, options)
    const chunks: Buffer[] = []
    assert.notEqual(response.headers['content-type'], 'text/event-stream', `${path} is a stream: use openStream`)
    for await (const chunk of response) chunks.push(Buffer.from(chunk))
    return checked(method, path, response.statusCode ?? 0, response.headers, Buffer.concat(chunks))
  }

  /** The success answer of an operation as its own type; fails for anything else. */
  async ask<O extends Operation>(operation: O, path: string, options: CallOptions = {}): Promise<ReplyOf<O>> {
    const answer = await this.call(operation.method, path, options)
    assert.ok(answer.status < 300, `${operation.method} ${path}: ${answer.status} ${answer.text}`)
    assert.equal(answer.operation?.id, operation.id)
    const { steps } = responseOf(answer.operation, answer.status)
    const ref = pointer(...steps, 'content', 'application/json', 'schema')
    if (isValid<ReplyOf<O>>(ref, answer.body)) return answer.body
    throw new Error('not valid')
  }

  /** Sends; resolves when the head of the answer is here. */
  open(method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    const { hostname, port } = new URL(this.url)
    const body = options.bytes ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
    const given = {
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
      ...(['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method) ? {} : { 'x-svc-request': '1' }),
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...options.headers,
    }
    const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    return new Promise((resolve, reject) => {
      const deadline = AbortSignal.timeout(ANSWER_DEADLINE_MS)
      const signal = options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal])
      const sent = request({
        hostname,
        port,
        method,
        path,
        headers,
        agent: options.alone === true ? false : this.#agent,
        signal,
        setHost: !('host' in given),
      })
      sent.on('response', resolve)
      sent.on('error', reject)
      sent.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** Fails where an answer is not what the document promises. */
export function checked(
  method: string,
  path: string,
  status: number,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
): Answer {
  const operation = operationFor(method, path)
  const text = bytes.toString('utf8')
  const where = `${method} ${path.slice(0, 120)}: ${status} ${text.slice(0, 500)}`
  assert.match(String(headers['x-svc-request-id']), /^[0-9a-f]{16}$/, where)
  assert.equal(headers['x-content-type-options'], 'nosniff', where)
  const answer = (body: unknown): Answer => {
    const seen = { operation, status, headers, text, bytes, body }
    record(method, seen)
    return seen
  }
  if (method === 'OPTIONS' && status === 204) return answer(undefined)
  if (status >= 400) {
    assert.equal(headers['content-type'], 'application/problem+json', where)
    if (method === 'HEAD') return answer(undefined)
    const body: unknown = JSON.parse(text)
    assertProblemDetails(body, status, String(headers['x-svc-request-id']))
    if (operation === undefined) assert.ok(UNROUTED.has(status), where)
    else assertDeclared(operation, status, body, headers, where)
    return answer(body)
  }
  assert.ok(operation, `${where}: no operation is declared there`)
  return answer(assertSuccess(operation, status, headers, text, where))
}

function assertProblemDetails(body: unknown, status: number, requestId: string): void {
  assertValid('openapi.json#/components/schemas/ErrorModel', body)
  const code = String(at(body, 'code'))
  assert.ok(isProblemCode(code), `${code} is not registered`)
  const { status: registered, prefix, title } = PROBLEMS[code]
  assert.equal(registered, status, code)
  assert.equal(at(body, 'status'), status)
  assert.equal(at(body, 'type'), `urn:svc:error:${code}`)
  assert.equal(at(body, 'title'), title)
  assert.ok(String(at(body, 'detail')).startsWith(`${prefix}: `), String(at(body, 'detail')))
  assert.equal(at(body, 'instance'), `urn:svc:request:${requestId}`)
}

const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(PROBLEMS, code)

function assertDeclared(
  operation: Documented,
  status: number,
  body: unknown,
  headers: IncomingHttpHeaders,
  where: string,
): void {
  const { fields } = responseOf(operation, status)
  const codes = fields['x-svc-problems']
  assert.ok(Array.isArray(codes) && codes.includes(at(body, 'code')), `${operation.id} does not declare this: ${where}`)
  assertHeaders(fields.headers, headers, where)
}

function assertSuccess(
  operation: Documented,
  status: number,
  headers: IncomingHttpHeaders,
  text: string,
  where: string,
): unknown {
  const { fields, steps } = responseOf(operation, status)
  assertHeaders(fields.headers, headers, where)
  const [declared = ''] = Object.keys(isMap(fields.content) ? fields.content : {})
  const type = String(headers['content-type'])
  if (declared === 'application/json') assert.equal(type, 'application/json', where)
  else if (declared !== '*/*') assert.equal(type.split(';')[0], declared, where)
  if (declared !== 'application/json') return undefined
  const body: unknown = JSON.parse(text)
  assertValid(pointer(...steps, 'content', declared, 'schema'), body)
  return body
}

/** Every header that the document declares for a success is there, and valid; those of a refusal where they are sent. */
function assertHeaders(declared: unknown, headers: IncomingHttpHeaders, where: string): void {
  for (const name of Object.keys(isMap(declared) ? declared : {})) {
    const value = headers[name.toLowerCase()]
    const optional = name === 'Retry-After' || name === 'X-SVC-Config-Rejected'
    assert.ok(value !== undefined || optional, `${where}: no ${name}`)
    if (value === undefined) continue
    const schema = pointer('components', 'headers', name, 'schema')
    assertValid(schema, name === 'Retry-After' ? Number(value) : value)
  }
}

/** Fails unless it is this problem, with exactly this detail where one is given. */
export function assertProblem(answer: Answer, code: ProblemCode, detail?: string | RegExp): ErrorModel {
  assert.equal(answer.status, PROBLEMS[code].status, answer.text)
  if (!isValid<ErrorModel>('openapi.json#/components/schemas/ErrorModel', answer.body)) throw new Error('not a problem')
  assert.equal(answer.body.code, code, answer.text)
  if (typeof detail === 'string') assert.equal(answer.body.detail, detail)
  else if (detail !== undefined) assert.match(answer.body.detail, detail)
  return answer.body
}

/** A bare connection, for requests that no client would send. */
export class RawConnection implements Disposable {
  readonly #socket: Socket
  readonly #chunks: Uint8Array[] = []
  readonly #opened: Promise<unknown>
  readonly closed: Promise<void>
  #wake: () => void = () => {}
  #over = false

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.#socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    this.#opened = new Promise((resolve, reject) => this.#socket.once('connect', resolve).once('error', reject))
    this.closed = new Promise((resolve) => {
      const end = () => {
        this.#over = true
        resolve()
        this.#wake()
      }
      this.#socket.once('end', end).once('close', end)
    })
    this.#socket.on('error', () => {})
    this.#socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#wake()
    })
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
  get text(): string {
    return this.bytes.toString('utf8')
  }
  get socket(): Socket {
    return this.#socket
  }

  async send(data: string | Buffer): Promise<this> {
    await this.#opened
    this.#socket.write(data)
    return this
  }

  /** Waits until what came so far satisfies `enough`; fails when the other side closes before. */
  async until(enough: (text: string) => boolean, deadlineMs = 40_000): Promise<string> {
    const end = performance.now() + deadlineMs
    while (!enough(this.text)) {
      assert.ok(!this.#over, `the connection ended after: ${this.text.slice(0, 2000)}`)
      assert.ok(performance.now() < end, `not within ${deadlineMs} ms; got: ${this.text.slice(0, 2000)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(end - performance.now(), 1))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return this.text
  }

  /** The first `count` whole answers, in order; each must have a Content-Length. */
  async answers(count: number, deadlineMs?: number): Promise<readonly RawAnswer[]> {
    await this.until(() => parseAnswers(this.bytes).length >= count, deadlineMs)
    return parseAnswers(this.bytes).slice(0, count)
  }

  /** One whole answer, checked like any other. */
  async answer(method: string, path: string, deadlineMs?: number): Promise<Answer> {
    const [first] = await this.answers(1, deadlineMs)
    assert.ok(first)
    return checked(method, path, first.status, first.headers, first.body)
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export function parseAnswers(bytes: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let from = 0; ; ) {
    const head = bytes.indexOf('\r\n\r\n', from)
    if (head < 0) return answers
    const [line = '', ...lines] = bytes.subarray(from, head).toString('latin1').split('\r\n')
    const headers = Object.fromEntries(
      lines.map((one) => [one.slice(0, one.indexOf(':')).toLowerCase(), one.slice(one.indexOf(':') + 1).trim()]),
    )
    const status = Number(line.split(' ')[1])
    const length = status === 100 || status === 204 ? 0 : Number(headers['content-length'] ?? 0)
    if (bytes.length < head + 4 + length) return answers
    answers.push({ status, headers, body: bytes.subarray(head + 4, head + 4 + length) })
    from = head + 4 + length
  }
}
