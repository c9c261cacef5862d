/** What of a request reaches a service, over real sockets: any path, any verb, its headers as they were written. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { heard, proxied, rawUpstream, type Setting } from '../../support/proxied.ts'

const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const headEnd = (text: string) => text.includes('\r\n\r\n')

/** A service that keeps what it was sent, up to the end of the head, and answers `ok`. */
async function world(setting: Setting = {}) {
  const seen: string[] = []
  const upstream = rawUpstream((socket) => {
    void answerAll(socket, seen)
  })
  return { seen, proxy: await proxied(upstream, setting) }
}

async function answerAll(socket: Socket, seen: string[]): Promise<void> {
  for (;;) {
    const text = await heard(socket, headEnd).catch(() => undefined)
    if (text === undefined) return
    seen.push(text)
    socket.write(REPLY)
  }
}

const lines = (text: string | undefined) => (text ?? '').split('\r\n')
const ask = (line: string, headers = '') => `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}Connection: close\r\n\r\n`
const P = '/v0/city/alpha/svc/web'

test('paths and queries reach the service byte for byte', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  const rests = [
    ['', '/'],
    ['/', '/'],
    ['?a=1', '/?a=1'],
    ['/a%2Fb', '/a%2Fb'],
    ['//a//b/', '//a//b/'],
    ['/../x', '/../x'],
    ['/./x/..', '/./x/..'],
    ['/%zz', '/%zz'],
    ['/%', '/%'],
    ['/a%00b', '/a%00b'],
    ['/a?b=%zz&c=%2F&&=', '/a?b=%zz&c=%2F&&='],
    ['/a?b?c', '/a?b?c'],
    ['/a;b=1,2', '/a;b=1,2'],
    ['/%F0%9F%98%80', '/%F0%9F%98%80'],
    ['/a\\b|c^d`{}"<>', '/a\\b|c^d`{}"<>'],
    ['/svc/web', '/svc/web'],
    ['/v0/city/alpha/svc/web/x', '/v0/city/alpha/svc/web/x'],
    ['/http://evil.example/', '/http://evil.example/'],
  ] as const
  for (const [rest, expected] of rests) {
    const answer = await proxy.ask(Buffer.from(ask(`GET ${P}${rest}`), 'latin1'))
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/, `${rest}: ${answer}`)
    assert.equal(lines(seen.pop())[0], `GET ${expected} HTTP/1.1`)
  }
})

test('city and service are found however they are encoded, and the prefix says how they were', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  const path = '/v0/city/%61lph%61/svc/w%65b'
  await proxy.ask(ask(`GET ${path}/x`))
  const head = lines(seen.pop())
  assert.equal(head[0], 'GET /x HTTP/1.1')
  assert.ok(head.includes(`X-Forwarded-Prefix: ${path}`), head.join('\n'))
})

test('every verb that Node reads is passed on', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  const { METHODS } = process.getBuiltinModule('node:http')
  const others = METHODS.filter((method) => method !== 'CONNECT' && method !== 'OPTIONS')
  assert.ok(others.length > 30)
  for (const method of others) {
    const answer = await proxy.ask(ask(`${method} ${P}/x`, 'X-SVC-Request: 1\r\n'))
    assert.match(answer, /^HTTP\/1\.1 200 /, `${method}: ${answer}`)
    const head = lines(seen.pop())
    assert.equal(head[0], `${method} /x HTTP/1.1`)
    // A request without a body has none at the service either.
    assert.ok(!head.some((line) => /^(content-length|transfer-encoding):/i.test(line)), head.join('\n'))
  }
})

test('the whole address as a target is understood, and names the host', async () => {
  const { seen, proxy } = await world({
    security: { allowedHosts: ['svc.example.org'], allowedOrigins: [], token: undefined, readOnly: false },
  })
  await using _ = proxy
  await proxy.ask(ask(`GET http://svc.example.org:81${P}/a%2Fb?c`))
  const head = lines(seen.pop())
  assert.equal(head[0], 'GET /a%2Fb?c HTTP/1.1')
  assert.ok(head.includes('Host: svc.example.org:81'))
  assert.ok(head.includes('X-Forwarded-Host: svc.example.org:81'))
})

test('headers keep their order, their case and their repetitions; what is about the connection, or not for clients to say, goes', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  const sent = [
    'hOST: 127.0.0.1:99',
    'X-Many: one',
    'cookie: a=1',
    'x-many: two, three',
    'X-Empty:',
    'Cookie: b=2; c=3',
    'X-MANY: one',
    'x-latin: \u00e9\u00ff',
    'Accept-Encoding: gzip, br',
    'X-SVC-Request: yes',
    'Authorization: Bearer of-somebody-else',
    'Connection: close, X-Secret , x-other',
    'X-Secret: 1',
    'X-OTHER: 2',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic x',
    'TE: trailers, gzip;q=1',
    'Upgrade: foo',
    'Forwarded: for=1.2.3.4',
    'x-forwarded-FOR: 1.2.3.4',
    'X-Forwarded-Proto: https',
    'X-Forwarded-User: root',
    'X-Real-IP: 1.2.3.4',
    'User-Agent: test/1',
  ]
  await proxy.ask(Buffer.from(`GET ${P}/x HTTP/1.1\r\n${sent.join('\r\n')}\r\n\r\n`, 'latin1'))
  assert.deepEqual(lines(seen.pop()), [
    'GET /x HTTP/1.1',
    'hOST: 127.0.0.1:99',
    'X-Many: one',
    'cookie: a=1',
    'x-many: two, three',
    'X-Empty: ',
    'Cookie: b=2; c=3',
    'X-MANY: one',
    'x-latin: \u00e9\u00ff',
    'Accept-Encoding: gzip, br',
    'X-SVC-Request: yes',
    'Authorization: Bearer of-somebody-else',
    'User-Agent: test/1',
    'TE: trailers',
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Host: 127.0.0.1:99',
    'X-Forwarded-Proto: http',
    `X-Forwarded-Prefix: ${P}`,
    'Connection: keep-alive, TE',
    '',
    '',
  ])
})

test('Connection cannot take away what says where a request ends, or whom it is for', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  await proxy.ask(
    `POST ${P}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\nContent-Length: 0\r\nConnection: close, content-length, HOST, X-Forwarded-For\r\n\r\n`,
  )
  const head = lines(seen.pop())
  for (const line of ['Host: 127.0.0.1', 'Content-Length: 0', 'X-Forwarded-For: 127.0.0.1'])
    assert.ok(head.includes(line), `${line} is missing in ${head.join('\n')}`)
})

const TOKEN = 'ab'.repeat(32)
const OTHER = 'cd'.repeat(32)
const GUARDED: Setting['security'] = {
  allowedHosts: [],
  allowedOrigins: ['https://app.example.org'],
  token: TOKEN,
  holderOf: (token) => (token === OTHER ? { kind: 'token', name: 'ann', role: 'admin', city: undefined } : undefined),
  readOnly: false,
}

test('a token of ours never reaches a service, whoever sends it', async () => {
  for (const direct of [false, true]) {
    const { seen, proxy } = await world({ security: GUARDED, service: { direct } })
    await using _ = proxy
    for (const given of [`Bearer ${TOKEN}`, `Bearer ${OTHER}`]) {
      await proxy.ask(ask(`GET ${P}/x`, `Authorization: ${given}\r\n`))
      assert.ok(!/authorization/i.test(seen.pop() ?? 'authorization'), given)
    }
    if (!direct) continue
    for (const given of ['Basic dTpw', `Bearer ${'ef'.repeat(32)}`]) {
      await proxy.ask(ask(`GET ${P}/x`, `Authorization: ${given}\r\n`))
      assert.ok(lines(seen.pop()).includes(`Authorization: ${given}`))
    }
    await proxy.ask(
      ask(`GET ${P}/x`, `authorization: bearer ${TOKEN.toUpperCase()}x\r\nAuthorization: bearer  ${TOKEN}\r\n`),
    )
    assert.ok(!seen.pop()?.includes(TOKEN))
  }
})

for (const [what, text, answer] of [
  ['a length and chunks', 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
  ['two lengths', 'Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde', 400],
  ['the same length twice', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\nab', 400],
  ['a list of lengths', 'Content-Length: 2, 2\r\n\r\nab', 400],
  ['a length with a sign', 'Content-Length: +2\r\n\r\nab', 400],
  ['another coding', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 501],
  ['chunks twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
  ['a coding that only looks like it', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n', 501],
  ['a hidden coding', 'Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n', 400],
  ['a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n', 400],
  ['a folded header', 'X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
  ['a bare line feed', 'X-A: b\nContent-Length: 4\r\n\r\nabcd', 400],
  ['a second host', 'Host: other.example\r\n\r\n', 400],
] as const) {
  test(`${what} in the head is refused, and nothing of it reaches the service`, async () => {
    const { seen, proxy } = await world()
    await using _ = proxy
    using connection = await proxy
      .connect()
      .send(`POST ${P}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\n${text}`)
    const said = await connection.until((all) => /\r\n\r\n\{/.test(all))
    assert.match(said, new RegExp(`^HTTP/1\\.1 ${answer} `), said)
    assert.match(said, /application\/problem\+json/)
    assert.match(said, /Connection: close/)
    assert.match(said, /X-SVC-Request-Id: [0-9a-f]{16}/)
    assert.deepEqual(seen, [])
  })
}

test('headers of ten megabytes are refused', async () => {
  const { seen, proxy } = await world()
  await using _ = proxy
  using connection = await proxy.connect().send(`GET ${P}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: `)
  connection.socket.write(Buffer.alloc(10_000_000, 120))
  assert.match(await connection.until((text) => text.includes('}')), /^HTTP\/1\.1 431 /)
  assert.deepEqual(seen, [])
})

test('requests of one connection are answered in their order, those for services and others', async () => {
  const { proxy } = await world()
  await using _ = proxy
  const next = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  using connection = await proxy.connect().send(`${next(`${P}/1`)}${next('/nowhere')}${next(`${P}/2`)}`)
  const answers = await connection.answers(3)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 200],
  )
})

test('a client of HTTP/1.0 is served without chunks, and needs no host where none of our checks stands before the service', async () => {
  const { seen, proxy } = await world({ service: { direct: true } })
  await using _ = proxy
  const answer = await proxy.ask(`GET ${P}/x HTTP/1.0\r\n\r\n`)
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
  assert.ok(answer.endsWith('\r\n\r\nok'))
  assert.ok(lines(seen.pop()).includes('Host: localhost'))
})
