/**
 * Requests and replies of any kind, as a service and a client see them without the proxy between them, and with it. What is
 * held against each other was read by Node's own parser on both ways; only the rules for headers are written down once more.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { httpUpstream, proxied } from '../../support/proxied.ts'
import { fc } from '../../support/random.ts'

const { request: send } = process.getBuiltinModule('node:http')
const P = '/v0/city/alpha/svc/web'
const RUNS = process.env['SVC_SOAK'] === '1' ? 5_000 : 400

const token = fc.string({ unit: fc.constantFrom(...'abcXYZ019!#$%&*+-.^_`|~'), minLength: 1, maxLength: 12 })
const value = fc
  .string({ unit: fc.constantFrom(...' abcXYZ019!#$%&*+-.^_`|~,;="\\()\t\u00e9\u00ff'), maxLength: 30 })
  .map((text) => text.trim())
const pathText = fc.string({ unit: fc.constantFrom(...'ab/%.:;=&?+,!~-_@$()*2Fz\\|^"<>{}`'), maxLength: 40 })
const odd = fc.constantFrom(
  'X-Forwarded-For',
  'forwarded',
  'Keep-Alive',
  'x-real-ip',
  'Cookie',
  'Accept',
  'X-SVC-Request',
)
const pair = fc.tuple(
  fc.oneof(
    token.map((name) => `x-${name}`),
    odd,
  ),
  value,
)
const bytes = fc.uint8Array({ maxLength: 3000 }).map((array) => Buffer.from(array))
const body = fc.oneof(
  fc.constant({ kind: 'none' as const, pieces: [] }),
  fc.record({
    kind: fc.constantFrom('length' as const, 'chunked' as const),
    pieces: fc.array(bytes, { maxLength: 5 }),
  }),
)
const trailers = fc.array(
  fc.tuple(
    token.map((name) => `t-${name}`),
    value,
  ),
  { maxLength: 3 },
)
const sentRequest = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'QUERY'),
  rest: pathText,
  headers: fc.array(pair, { maxLength: 8 }),
  listed: fc.array(
    token.map((name) => `x-${name}`),
    { maxLength: 2 },
  ),
  body,
  trailers,
})
const sentReply = fc.record({
  status: fc.constantFrom(200, 201, 204, 206, 299, 301, 304, 400, 404, 418, 500, 599, 700),
  message: value,
  headers: fc.array(
    fc.tuple(
      fc.oneof(
        token.map((name) => `x-${name}`),
        fc.constantFrom('Set-Cookie', 'Date', 'Vary', 'Server'),
      ),
      value,
    ),
    { maxLength: 8 },
  ),
  hints: fc.array(fc.constantFrom(102, 103), { maxLength: 2 }),
  body: fc.record({
    kind: fc.constantFrom('length' as const, 'chunked' as const, 'close' as const),
    pieces: fc.array(bytes, { maxLength: 5 }),
  }),
  trailers,
  /** Where it is cut, as a share of its bytes; 1 is not at all. */
  cut: fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
  ),
})
type SentRequest = typeof sentRequest extends fc.Arbitrary<infer T> ? T : never
type SentReply = typeof sentReply extends fc.Arbitrary<infer T> ? T : never

interface Heard {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}
interface Got {
  readonly status: number | undefined
  readonly message: string | undefined
  readonly headers: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  readonly hints: readonly number[]
  readonly isWhole: boolean
}

function replyBytes({ status, message, headers, hints, body, trailers, cut }: SentReply): Buffer {
  const hasBody = status !== 204 && status !== 304
  const whole = Buffer.concat(body.pieces)
  const lines = headers.map(([name, said]) => `${name}: ${said}`)
  if (hasBody && body.kind === 'length') lines.push(`Content-Length: ${whole.length}`)
  if (hasBody && body.kind === 'chunked') lines.push('Transfer-Encoding: chunked')
  const text = hints.map((hint) => `HTTP/1.1 ${hint} Hint\r\nX-Hint: 1\r\n\r\n`).join('')
  const head = Buffer.from(
    `${text}HTTP/1.1 ${status} ${message}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
    'latin1',
  )
  if (!hasBody) return head
  if (body.kind !== 'chunked') return cutAt(Buffer.concat([head, whole]), cut)
  const pieces = body.pieces
    .filter(({ length }) => length > 0)
    .flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
  const end = Buffer.from(`0\r\n${trailers.map(([name, said]) => `${name}: ${said}\r\n`).join('')}\r\n`, 'latin1')
  return cutAt(Buffer.concat([head, ...pieces, end]), cut)
}
const cutAt = (all: Buffer, share: number): Buffer => all.subarray(0, Math.floor(all.length * share))

async function collect(message: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of message) pieces.push(piece)
  return Buffer.concat(pieces).toString('base64')
}

/** What came back, as Node's client tells it; what was cut before its head is no status at all. */
function ask(
  to: { socketPath: string } | { host: string; port: number },
  path: string,
  asked: SentRequest,
): Promise<Got> {
  const headers = [['Host', '127.0.0.1'], ...asked.headers]
  if (asked.listed.length > 0) headers.push(['Connection', ['close', ...asked.listed].join(', ')])
  else headers.push(['Connection', 'close'])
  const { kind, pieces } = asked.body
  if (kind === 'length') headers.push(['Content-Length', String(Buffer.concat(pieces).length)])
  if (kind === 'chunked') headers.push(['Transfer-Encoding', 'chunked'])
  else if (kind === 'none' && !['GET', 'DELETE', 'OPTIONS'].includes(asked.method))
    headers.push(['Content-Length', '0'])
  return new Promise((resolve) => {
    const hints: number[] = []
    const lost = () =>
      resolve({ status: undefined, message: '', headers: [], body: '', trailers: [], hints, isWhole: false })
    const sent = send({ ...to, method: asked.method, path, headers: headers.flat(), agent: false })
    sent.on('information', ({ statusCode }) => hints.push(statusCode))
    sent.on('error', lost)
    sent.on('response', (response) => {
      const { statusCode: status, statusMessage: message, rawHeaders } = response
      const taken: Buffer[] = []
      response.on('data', (piece: Buffer) => taken.push(piece)).on('error', () => {})
      response.on('close', () =>
        resolve({
          status,
          message,
          headers: rawHeaders,
          body: Buffer.concat(taken).toString('base64'),
          trailers: response.rawTrailers,
          hints,
          isWhole: response.complete,
        }),
      )
    })
    if (kind === 'chunked') sent.addTrailers(asked.trailers)
    for (const piece of pieces) sent.write(piece)
    sent.end()
  })
}

const pairsOf = (fields: readonly string[]): [string, string][] =>
  fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? ''] as [string, string]] : []))

const GONE_REQUEST = /^(connection|keep-alive|te|transfer-encoding|upgrade|forwarded|x-forwarded-.*|x-real-ip)$/i
const GONE_REPLY = /^(connection|keep-alive|transfer-encoding|x-svc-request-id)$/i
const kept = (fields: readonly string[], gone: RegExp, listed: readonly string[] = []) =>
  pairsOf(fields).filter(
    ([name]) => !gone.test(name) && !listed.some((one) => one.toLowerCase() === name.toLowerCase()),
  )

test('a service and a client see the same of each other with the proxy between them as without it', async () => {
  let heard: Heard | undefined
  const last = () => heard ?? assert.fail('the service heard nothing')
  let reply: Buffer = Buffer.alloc(0)
  const upstream = httpUpstream((request) => {
    void collect(request).then((text) => {
      heard = {
        method: request.method,
        url: request.url,
        headers: request.rawHeaders,
        body: text,
        trailers: request.rawTrailers,
      }
      const socket: Socket = request.socket
      socket.end(reply)
    })
  })
  await using proxy = await proxied(upstream, { service: { direct: true } })
  const { hostname: host, port } = new URL(proxy.url)
  const property = fc.asyncProperty(sentRequest, sentReply, async (asked, answered) => {
    reply = replyBytes(answered)
    const plain = await ask({ socketPath: String(upstream.address()) }, `/${asked.rest}`, asked)
    const { headers: direct, ...rest } = last()
    heard = undefined
    const passed = await ask({ host, port: Number(port) }, `${P}/${asked.rest}`, asked)
    const { headers: through, ...others } = last()
    assert.deepEqual(others, rest)
    const added = /^(x-forwarded-(for|host|proto|prefix)|connection|transfer-encoding)$/i
    assert.deepEqual(
      pairsOf(through).filter(([name]) => !added.test(name)),
      kept(direct, GONE_REQUEST, asked.listed),
    )
    if (plain.status === undefined) {
      assert.equal(passed.status, 502)
      return
    }
    assert.equal(passed.isWhole, plain.isWhole)
    assert.deepEqual(
      [passed.status, passed.message, passed.trailers, passed.hints],
      [plain.status, plain.message, plain.trailers, plain.hints],
    )
    assert.deepEqual(kept(passed.headers, GONE_REPLY), kept(plain.headers, GONE_REPLY))
    assert.equal(passed.body, plain.body)
  })
  await fc.assert(property, { numRuns: RUNS })
  await proxy.quiet()
})
