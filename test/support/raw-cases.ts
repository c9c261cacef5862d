/** Bytes that are no, or hardly, HTTP; and what is wrong with what came back. */

import { asFields, asList, breaches, openapi, problemFaults } from './contract-document.ts'
import { fc } from './random.ts'

const host = 'Host: localhost'
const long = 'a'.repeat(70_000)

/** Named, so that a failure says which. */
export const RAW_CASES: ReadonlyMap<string, string | Buffer> = new Map<string, string | Buffer>([
  ['nothing', ''],
  ['a line feed', '\n'],
  ['no request line', 'hello\r\n\r\n'],
  ['a TLS greeting', Buffer.from('16030100c5010000c10303', 'hex')],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an unknown version', `GET /health HTTP/9.9\r\n${host}\r\n\r\n`],
  ['version 0.9', 'GET /health\r\n'],
  ['version 1.0 without a host', 'GET /health HTTP/1.0\r\n\r\n'],
  ['no host', 'GET /health HTTP/1.1\r\n\r\n'],
  ['an empty host', 'GET /health HTTP/1.1\r\nHost:\r\n\r\n'],
  ['two hosts', `GET /health HTTP/1.1\r\n${host}\r\nHost: evil.example\r\n\r\n`],
  ['a foreign host', 'GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n'],
  ['a host with user info', 'GET /health HTTP/1.1\r\nHost: a@localhost\r\n\r\n'],
  ['an absolute target', `GET http://evil.example/health HTTP/1.1\r\n${host}\r\n\r\n`],
  ['an asterisk target', `GET * HTTP/1.1\r\n${host}\r\n\r\n`],
  ['OPTIONS of everything', `OPTIONS * HTTP/1.1\r\n${host}\r\n\r\n`],
  ['CONNECT', `CONNECT example.org:443 HTTP/1.1\r\n${host}\r\n\r\n`],
  ['TRACE', `TRACE /health HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a method of WebDAV', `PROPFIND /v0/cities HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a made-up method', `FETCH /v0/cities HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a lower-case method', `get /health HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a target without a slash', `GET health HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a target with a blank', `GET /he alth HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a target with a NUL', `GET /v0/\0 HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a target in UTF-8', `GET /v0/città HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a target that cannot be decoded', `GET /v0/city/%ff/status HTTP/1.1\r\n${host}\r\n\r\n`],
  ['half an escape', `GET /v0/city/%/status HTTP/1.1\r\n${host}\r\n\r\n`],
  ['an escaped slash', `GET /v0/city/a%2Fb/status HTTP/1.1\r\n${host}\r\n\r\n`],
  ['dots', `GET /v0/../../etc/passwd HTTP/1.1\r\n${host}\r\n\r\n`],
  ['escaped dots', `GET /docs/%2e%2e%2fpackage.json HTTP/1.1\r\n${host}\r\n\r\n`],
  ['many slashes', `GET //v0///cities HTTP/1.1\r\n${host}\r\n\r\n`],
  ['an empty segment', `GET /v0/city//status HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a fragment', `GET /health#top HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a semicolon for the query', `GET /v0/cities;limit=1 HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a query that cannot be decoded', `GET /v0/cities?cursor=%ff HTTP/1.1\r\n${host}\r\n\r\n`],
  ['two question marks', `GET /v0/cities??limit=1 HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a query of nothing but signs', `GET /v0/cities?&&=&=1& HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a parameter of the prototype', `GET /v0/cities?__proto__=1&constructor=2 HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a huge target', `GET /${long} HTTP/1.1\r\n${host}\r\n\r\n`],
  ['a huge header', `GET /health HTTP/1.1\r\n${host}\r\nX-A: ${long}\r\n\r\n`],
  ['a huge header name', `GET /health HTTP/1.1\r\n${host}\r\n${long}: 1\r\n\r\n`],
  ['very many headers', `GET /health HTTP/1.1\r\n${host}\r\n${'A: 1\r\n'.repeat(3000)}\r\n`],
  ['a header without a colon', `GET /health HTTP/1.1\r\n${host}\r\nnonsense\r\n\r\n`],
  ['a header without a name', `GET /health HTTP/1.1\r\n${host}\r\n: 1\r\n\r\n`],
  ['a blank before the colon', `GET /health HTTP/1.1\r\n${host}\r\nX-A : 1\r\n\r\n`],
  ['a folded header', `GET /health HTTP/1.1\r\n${host}\r\nX-A: 1\r\n 2\r\n\r\n`],
  ['a NUL in a header', `GET /health HTTP/1.1\r\n${host}\r\nX-A: a\0b\r\n\r\n`],
  ['a bare carriage return', `GET /health HTTP/1.1\r\n${host}\r\nX-A: a\rb\r\n\r\n`],
  ['bare line feeds', `GET /health HTTP/1.1\n${host}\n\n`],
  ['a header in Latin-1', Buffer.from(`GET /health HTTP/1.1\r\n${host}\r\nX-SVC-Request: \xe9\xff\r\n\r\n`, 'latin1')],
  [
    'the mutation header twice',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nX-SVC-Request: 2\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  ['the mutation header empty', `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request:\r\nContent-Length: 2\r\n\r\n{}`],
  ['a resume id that is no cursor', `GET /v0/events/stream HTTP/1.1\r\n${host}\r\nLast-Event-ID: \x7f:::\r\n\r\n`],
  ['two resume ids', `GET /v0/events/stream HTTP/1.1\r\n${host}\r\nLast-Event-ID: a\r\nLast-Event-ID: b\r\n\r\n`],
  [
    'two lengths',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  ],
  [
    'a length and chunks',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['a negative length', `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: -1\r\n\r\n`],
  [
    'a length that is no number',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: two\r\n\r\n{}`,
  ],
  [
    'an enormous length',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{}`,
  ],
  [
    'a length beyond all numbers',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: ${'9'.repeat(40)}\r\n\r\n{}`,
  ],
  [
    'a body cut short',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{`,
  ],
  [
    'a chunk that is no number',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n`,
  ],
  [
    'a chunk cut short',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{`,
  ],
  [
    'a huge chunk extension',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nTransfer-Encoding: chunked\r\n\r\n2;${long}\r\n{}\r\n0\r\n\r\n`,
  ],
  [
    'an unknown transfer coding',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nTransfer-Encoding: gzip\r\n\r\n{}`,
  ],
  [
    'a compressed body',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  ['a body after a GET', `GET /health HTTP/1.1\r\n${host}\r\nContent-Length: 2\r\n\r\n{}`],
  ['a body after a HEAD', `HEAD /health HTTP/1.1\r\n${host}\r\nContent-Length: 2\r\n\r\n{}`],
  [
    'an expectation that cannot be met',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  [
    'an upgrade to WebSocket',
    `GET /v0/events/stream HTTP/1.1\r\n${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n\r\n`,
  ],
  [
    'an upgrade to HTTP/2',
    `GET /health HTTP/1.1\r\n${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n`,
  ],
  ['pipelined requests, the last broken', `GET /health HTTP/1.1\r\n${host}\r\n\r\n`.repeat(3).concat('BROKEN\r\n\r\n')],
  [
    'a pipelined stream',
    `GET /health HTTP/1.1\r\n${host}\r\n\r\nGET /v0/events/stream HTTP/1.1\r\n${host}\r\n\r\nGET /health HTTP/1.1\r\n${host}\r\n\r\n`,
  ],
  [
    'a smuggled request',
    `POST /v0/city HTTP/1.1\r\n${host}\r\nX-SVC-Request: 1\r\nContent-Length: 6\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nG`,
  ],
  ['an origin of another scheme', `GET /health HTTP/1.1\r\n${host}\r\nOrigin: null\r\n\r\n`],
  [
    'an authorization of megabytes',
    `GET /health HTTP/1.1\r\n${host}\r\nAuthorization: Bearer ${long.slice(0, 60_000)}\r\n\r\n`,
  ],
])

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
  'PURGE',
  'M-SEARCH',
  'X',
  '',
  'GET\t',
]
const VERSIONS = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2', 'http/1.1', '']
const NAMES = [
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Content-Type',
  'Connection',
  'Expect',
  'Upgrade',
  'Origin',
  'Cookie',
  'Range',
  'Accept',
  'TE',
  'Last-Event-ID',
  'If-Match',
  'Idempotency-Key',
  'X-SVC-Request',
  'X-SVC-Request-Id',
  'Trailer',
  'Content-Encoding',
  'X-HTTP-Method-Override',
]
const VALUES = [
  '',
  'localhost',
  '0',
  '1',
  '-1',
  '5',
  'chunked',
  'identity',
  'close',
  'keep-alive',
  '100-continue',
  'application/json',
  'null',
  '*',
  'bytes=0-1',
  '\t',
  'a,b',
  '"',
]
const ENDS = ['\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r']

/** Requests put together from parts that each may be wrong. */
export const rawRequests: fc.Arbitrary<Buffer> = fc
  .record({
    method: fc.constantFrom(...METHODS),
    target: fc.oneof(
      fc.constantFrom(
        '/',
        '/health',
        '/v0/cities',
        '/v0/events',
        '/v0/city',
        '/v0/city/x/svc/y',
        '*',
        'http://localhost/health',
        '',
      ),
      fc.webPath({ size: 'small' }),
      junk(0, 20),
    ),
    version: fc.constantFrom(...VERSIONS),
    host: fc.oneof(
      { weight: 5, arbitrary: fc.constant([['Host', 'localhost']]) },
      { weight: 1, arbitrary: fc.constant([]) },
    ),
    headers: fc.array(
      fc.tuple(
        fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...NAMES) }, { weight: 1, arbitrary: junk(1, 8) }),
        fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...VALUES) }, { weight: 1, arbitrary: junk(0, 12) }),
      ),
      { maxLength: 5 },
    ),
    end: fc.constantFrom(...ENDS),
    body: fc.oneof(fc.constant(''), fc.constant('{}'), fc.constant('2\r\n{}\r\n0\r\n\r\n'), junk(0, 30)),
    cut: fc.oneof(
      { weight: 6, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
    ),
  })
  .map(({ method, target, version, host: first, headers, end, body, cut }) => {
    const lines = [
      `${method} ${target} ${version}`,
      ...[...first, ...headers].map(([name, value]) => `${name}: ${value}`),
    ]
    const bytes = Buffer.from(`${lines.join(end)}${end}${end}${body}`, 'latin1')
    return bytes.subarray(0, Math.ceil(bytes.length * cut))
  })

function junk(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.uint8Array({ minLength, maxLength }).map((bytes) => Buffer.from(bytes).toString('latin1'))
}

/** What is wrong with everything that came back on one connection; nothing at all is a closed connection and right. */
export function rawFaults(received: Buffer): string[] {
  if (received.length === 0) return []
  const text = received.toString('latin1')
  const starts = [...text.matchAll(/HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n/g)]
  if (!text.startsWith('HTTP/1.1 ')) return [`not an answer: ${text.slice(0, 80)}`]
  return starts.flatMap((start, index) => {
    const status = Number(start[1])
    const answer = text.slice(start.index, starts[index + 1]?.index)
    if (status === 100) return []
    if (status >= 500) return [`a failure of the server: ${answer.slice(0, 300)}`]
    // The root leads to the documents, and nothing else leads anywhere.
    if (status >= 300 && status < 400 && !/\r\nLocation: \/docs\r\n/.test(answer))
      return [`a redirect: ${answer.slice(0, 300)}`]
    const idMissing = /\r\nX-SVC-Request-Id: [^\r\n]+\r\n/i.test(answer)
      ? []
      : [`no X-SVC-Request-Id: ${answer.slice(0, 300)}`]
    return status < 400 ? idMissing : [...idMissing, ...refusalFaults(answer)]
  })
}

const CODES = asList(openapi['x-svc-problems']).map((entry) => asFields(entry).code)

function refusalFaults(answer: string): string[] {
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  if (!/\r\nContent-Type: application\/problem\+json/i.test(head)) return [`not Problem Details: ${head.slice(0, 300)}`]
  const length = Number(/\r\nContent-Length: (\d+)/i.exec(head)?.[1])
  const body = Buffer.from(rest.join('\r\n\r\n'), 'latin1')
  // The answer to HEAD has no body.
  if (body.length === 0) return []
  if (body.length !== length) return [`${body.length} bytes, declared ${length}: ${answer.slice(0, 300)}`]
  const value: unknown = JSON.parse(body.toString('utf8'))
  return [...breaches({ $ref: '#/components/schemas/ErrorModel' }, value), ...problemFaults(asFields(value), CODES)]
}
