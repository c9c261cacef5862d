/** HTTP conventions against a real supervisor (sheet 01 §1): order of the checks, headers, bodies, odd requests. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { ProblemCode } from '../../src/contract/base/problems.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import { asMap, at } from '../support/document.ts'
import {
  type Answer,
  assertProblem,
  type CallOptions,
  checked,
  eventually,
  parseAnswers,
  RawConnection,
} from '../support/http.ts'
import { newCity, type Running, run } from '../support/running.ts'

const EVENTS = '/v0/city/alpha/events'
const EMIT = { type: 'http.test', actor: 'test' }

describe('http', { concurrency: 4 }, () => {
  let running: Running | undefined
  const api = () => running?.api ?? assert.fail('not started')
  before(async () => {
    running = await run()
    await newCity(running.api, running.work, 'alpha')
  })
  after(() => running?.[Symbol.asyncDispose]())

  const raw = async (text: string | Buffer, method: string, path: string): Promise<Answer> => {
    using connection = await new RawConnection(api().url).send(text)
    return await connection.answer(method, path)
  }

  describe('the first check that fails answers', () => {
    const evil = { host: 'evil.example' }
    const noCsrf = { 'x-svc-request': undefined }
    const text = { 'content-type': 'text/plain' }
    /** Each request fails two neighbouring checks; the answer is that of the first. */
    const pairs: readonly (readonly [string, ProblemCode, string, string, CallOptions])[] = [
      ['host before CSRF header', 'host-not-allowed', 'POST', EVENTS, { headers: { ...evil, ...noCsrf } }],
      ['host before the path', 'host-not-allowed', 'GET', '/nowhere', { headers: evil }],
      ['CSRF header before the city', 'csrf-required', 'POST', '/v0/city/nowhere/events', { headers: noCsrf }],
      ['CSRF header before the path', 'csrf-required', 'POST', '/nowhere', { headers: noCsrf }],
      ['CSRF header before the method', 'csrf-required', 'DELETE', '/v0/cities', { headers: noCsrf }],
      ['CSRF header before the body', 'csrf-required', 'POST', '/v0/city', { headers: noCsrf, bytes: '{' }],
      ['city before the path', 'city-not-found', 'GET', '/v0/city/nowhere/no/such/path', {}],
      ['city before the method', 'city-not-found', 'DELETE', '/v0/city/nowhere/events', {}],
      ['city before the query', 'city-not-found', 'GET', '/v0/city/nowhere/events?nope=1', {}],
      [
        'city before the media type',
        'city-not-found',
        'POST',
        '/v0/city/nowhere/events',
        { bytes: 'x', headers: text },
      ],
      ['city before the body', 'city-not-found', 'POST', '/v0/city/nowhere/events', { body: {} }],
      ['path before the media type', 'route-not-found', 'POST', '/v0/nowhere', { bytes: 'x', headers: text }],
      ['method before the media type', 'method-not-allowed', 'PUT', '/v0/cities', { bytes: 'x', headers: text }],
      [
        'media type before the size',
        'unsupported-media-type',
        'POST',
        EVENTS,
        { bytes: Buffer.alloc(1_100_000), headers: text, alone: true },
      ],
      [
        'media type before the query',
        'unsupported-media-type',
        'POST',
        `${EVENTS}?nope=1`,
        { bytes: '{}', headers: text },
      ],
      [
        'size before the query',
        'payload-too-large',
        'POST',
        `${EVENTS}?nope=1`,
        { bytes: Buffer.alloc(1_100_000, 0x20), headers: { 'content-type': 'application/json' }, alone: true },
      ],
      [
        'query before the body',
        'validation-failed',
        'POST',
        `${EVENTS}?nope=1`,
        { bytes: '{', headers: { 'content-type': 'application/json' } },
      ],
      [
        'headers before the body',
        'validation-failed',
        'POST',
        EVENTS,
        { bytes: '{', headers: { 'content-type': 'application/json', 'idempotency-key': 'k'.repeat(256) } },
      ],
      [
        'JSON before its schema',
        'invalid-request',
        'POST',
        EVENTS,
        { bytes: '{"type":', headers: { 'content-type': 'application/json' } },
      ],
      ['schema before the handler', 'validation-failed', 'POST', '/v0/city', { body: { dir: 7 } }],
    ]
    for (const [name, code, method, path, options] of pairs) {
      test(name, async () => {
        assertProblem(await api().call(method, path, options), code)
      })
    }
  })

  test('every OPTIONS is 204 without a body, on any path, and tells allowed origins what they may do', async () => {
    const paths = [
      ...new Set(OPERATIONS.map(({ path }) => path.replaceAll(/\{\w+\}/g, 'nowhere'))),
      '/nowhere',
      '/v0/city/nowhere/svc/x',
    ]
    for (const path of paths) {
      const headers = {
        origin: api().url,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-svc-request',
      }
      const answer = await api().call('OPTIONS', path, { headers })
      assert.equal(answer.status, 204, path)
      assert.equal(answer.text, '')
      assert.equal(answer.headers['content-type'], undefined)
      assert.equal(answer.headers['access-control-allow-origin'], api().url)
      assert.equal(answer.headers['access-control-allow-methods'], 'GET, POST, PUT, PATCH, DELETE, OPTIONS')
      assert.equal(answer.headers.vary, 'Origin')
    }
    assertProblem(await api().call('OPTIONS', '/v0/cities', { headers: { host: 'evil.example' } }), 'host-not-allowed')
  })

  test('our own pages may read answers, others may not, also those of this machine; Vary is always there', async () => {
    for (const origin of [api().url, api().url.replace('http:', 'https:')]) {
      const { headers } = await api().get('/v0/cities', { headers: { origin } })
      assert.equal(headers['access-control-allow-origin'], origin)
      assert.equal(headers.vary, 'Origin')
      const exposed = String(headers['access-control-expose-headers']).split(', ')
      for (const name of [
        'ETag',
        'Location',
        'Retry-After',
        'X-SVC-Index',
        'X-SVC-Request-Id',
        'SVC-Session-State',
        'SVC-Session-Status',
        'SVC-Agent-Status',
      ]) {
        assert.ok(exposed.includes(name), name)
      }
      const allowed = String(headers['access-control-allow-headers']).split(', ')
      for (const name of [
        'Content-Type',
        'Idempotency-Key',
        'If-Match',
        'Last-Event-ID',
        'X-SVC-Request',
        'Authorization',
      ])
        assert.ok(allowed.includes(name), name)
      assert.equal(headers['access-control-allow-credentials'], undefined)
    }
    for (const origin of [
      'null',
      'http://localhost',
      'http://localhost:3000',
      'http://127.0.0.1:8080',
      'http://[::1]:3000',
      `${api().url}0`,
      'http://evil.example',
      'http://localhost.evil.example',
      'http://localhost:3000.evil.example',
      'file://',
      'http://127.0.0.1.evil.example',
      'http://localhost:123456',
      'ftp://localhost',
    ]) {
      const { headers, status } = await api().get('/v0/cities', { headers: { origin } })
      assert.equal(status, 200)
      for (const name of Object.keys(headers)) assert.ok(!name.startsWith('access-control-'), `${origin}: ${name}`)
      assert.equal(headers.vary, 'Origin')
    }
    // Refusals too, or the page could not tell what was wrong.
    const refused = await api().post('/v0/city', {}, { headers: { origin: api().url } })
    assert.equal(refused.status, 422)
    assert.equal(refused.headers['access-control-allow-origin'], api().url)
  })

  test('this machine’s names are served whatever the port and case; every other Host is 421, also none', async () => {
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1', '127.9.9.9:80', '[::1]', '[::1]:8372', 'localhost.']) {
      assert.equal((await api().get('/v0/cities', { headers: { host } })).status, 200, host)
    }
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      'city.localhost',
      'evil.example/.localhost',
      '127.0.0.1.evil.example',
      '127.0.0.1.nip.io',
      '0177.0.0.1',
      '127.1',
      '10.0.0.1',
      '[::2]',
      '0.0.0.0',
      '128.0.0.1',
      'localhost@evil.example',
      'localhost, evil.example',
    ]) {
      assertProblem(await api().get('/v0/cities', { headers: { host } }), 'host-not-allowed')
    }
    assertProblem(
      await raw('GET /v0/cities HTTP/1.1\r\n\r\n', 'GET', '/v0/cities'),
      'host-not-allowed',
      /^host_not_allowed: host "" /,
    )
    assertProblem(await raw('GET /v0/cities HTTP/1.1\r\nHost:\r\n\r\n', 'GET', '/v0/cities'), 'host-not-allowed')
    assertProblem(await raw('GET /v0/cities HTTP/1.0\r\n\r\n', 'GET', '/v0/cities'), 'host-not-allowed')
  })

  test('request ids are minted here, one per request, whatever the client sends', async () => {
    const seen = new Set<string>()
    for (const [method, path] of [
      ['GET', '/health'],
      ['GET', '/nowhere'],
      ['OPTIONS', '/v0/cities'],
      ['POST', '/v0/city'],
      ['GET', '/%zz'],
    ] as const) {
      const { headers } = await api().call(method, path, {
        headers: { 'x-svc-request-id': '0123456789abcdef', 'x-request-id': 'mine' },
      })
      seen.add(String(headers['x-svc-request-id']))
    }
    assert.equal(seen.size, 5)
    assert.ok(!seen.has('0123456789abcdef'))
  })

  test('the id of a refused request is in the log, and a flood of them is counted there and in the metrics', async () => {
    await using own = await run()
    const lines = () =>
      readFileSync(join(own.server.home, 'supervisor.log'), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => asMap(JSON.parse(line)))
    const { headers } = await own.api.get('/nowhere')
    const line = await eventually('the line', () =>
      lines().find((one) => one.request_id === headers['x-svc-request-id']),
    )
    assert.deepEqual([line.msg, line.code, line.path], ['request refused', 'route-not-found', '/nowhere'])
    const flood = 500
    for (let n = 0; n < flood; n++) await own.api.get('/flood')
    // What is counted in the last second is said when the server ends.
    const metrics = (await own.api.get('/metrics')).text
    await own.server.kill('SIGTERM')
    const written = lines().filter((one) => one.path === '/flood').length
    const counted = lines().filter((one) => one.msg === 'more requests refused')
    assert.ok(written < flood)
    assert.equal(written + counted.reduce((sum, one) => sum + Number(one.count), 0), flood)
    assert.match(metrics, new RegExp(`^svc_http_refusals_total\\{code="route-not-found"\\} ${flood + 1}$`, 'm'))
  })

  test('a body that is not JSON in UTF-8 is 400, 415 or 413, whichever it is', async () => {
    const json = { 'content-type': 'application/json' }
    const post = (bytes: Buffer | string, headers: Record<string, string | undefined> = json) =>
      api().post(EVENTS, undefined, { bytes, headers })
    for (const bytes of ['{', '{"type":"a",}', "{'type':'a'}", '[1', 'nul', '{"a":\u0001}']) {
      const { errors } = assertProblem(await post(bytes), 'invalid-request', /^invalid: the body is not JSON: /)
      assert.equal(errors?.[0]?.location, 'body')
    }
    assertProblem(
      await api().call('POST', '/v0/city/alpha/beads', { bytes: '{"title":"\\ud83d"}', headers: json }),
      'invalid-request',
      'invalid: the body is not JSON: a text has half of a surrogate pair',
    )
    const broken = Buffer.concat([Buffer.from('{"type":"a.b","actor":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
    assertProblem(await post(broken), 'invalid-request', 'invalid: the body is not JSON: not UTF-8')
    assertProblem(await post(''), 'invalid-request', 'invalid: a body of JSON is required')
    const good = JSON.stringify(EMIT)
    for (const type of [
      'text/plain',
      'application/xml',
      'multipart/form-data',
      'application/x-www-form-urlencoded',
      'application/json; charset=latin1',
      'application/merge-patch+json',
    ]) {
      assertProblem(await post(good, { 'content-type': type }), 'unsupported-media-type', /^unsupported_media_type: /)
    }
    assertProblem(await post(good, { ...json, 'content-encoding': 'gzip' }), 'unsupported-media-type')
    for (const type of [undefined, 'application/json; charset=utf-8', 'APPLICATION/JSON;charset="UTF-8"']) {
      assert.equal((await post(good, { 'content-type': type })).status, 201, String(type))
    }
    assertProblem(
      await api().call('POST', '/v0/city/alpha/start', { body: { x: 1 } }),
      'validation-failed',
      'validation_failed: body: this operation takes no body',
    )
  })

  test('JSON that lies in itself more than 64 times is 400 in every body, and one that does not is taken', async () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
    const bodies: readonly (readonly [string, string, (json: string) => string])[] = [
      ['POST', EVENTS, (json) => `{"type":"http.deep","actor":"test","payload":{"a":${json}}}`],
      ['POST', '/v0/city/alpha/beads', (json) => `{"title":"deep","metadata":{"a":${json}}}`],
      ['PATCH', '/v0/city/alpha', (json) => `{"a":${json}}`],
    ]
    for (const [method, path, body] of bodies) {
      for (const levels of [64, 6_000, 500_000]) {
        const answer = await api().call(method, path, {
          bytes: body(nested(levels)),
          headers: { 'content-type': 'application/json' },
        })
        assertProblem(answer, 'invalid-request', 'invalid: the body is nested deeper than 64 levels')
      }
    }
    const { status } = await api().post(EVENTS, undefined, {
      bytes: `{"type":"http.deep","actor":"test","payload":{"a":${nested(62)}}}`,
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(status, 201)
    assert.equal((await api().get(`${EVENTS}?type=http.deep`)).status, 200)
    const lines = await api().post('/v0/city/alpha/beads/import', undefined, {
      bytes: `{"id":"al-deep","title":"deep","x":${nested(64)}}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    })
    assert.match(lines.text, /nested deeper than 64 levels/)
  })

  test('who ends the connection with each request is not cut off while it sends a body that is too large', async () => {
    const head = `POST ${EVENTS} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\n`
    const piece = Buffer.alloc(64 * 1024, ' ')
    using client = await new RawConnection(api().url).send(
      `${head}Connection: close\r\nContent-Length: ${64 * piece.length}\r\n\r\n`,
    )
    assertProblem(await client.answer('POST', EVENTS), 'payload-too-large')
    for (let count = 0; count < 64; count++)
      await new Promise<void>((resolve, reject) => {
        client.socket.write(piece, (error) => (error ? reject(error) : resolve()))
      })
    await client.closed
  })

  test('a chunked body over 1 MiB is 413 while it is still coming, and one of exactly 1 MiB is read', async () => {
    const head = `POST ${EVENTS} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    using endless = await new RawConnection(api().url).send(head)
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
    for (let count = 0; count < 17; count++) await endless.send(chunk)
    assertProblem(
      await endless.answer('POST', EVENTS),
      'payload-too-large',
      'too_large: the body is larger than 1048576 bytes',
    )
    const text = JSON.stringify(EMIT)
    const exact = await api().post(EVENTS, undefined, {
      bytes: text + ' '.repeat(1024 * 1024 - text.length),
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(exact.status, 201)
    using whole = await new RawConnection(api().url).send(`${head}${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`)
    assert.equal((await whole.answer('POST', EVENTS)).status, 201)
  })

  test('paths that do not exist are 404 and methods that a path does not take 405 with Allow', async () => {
    for (const path of [
      '/v0',
      '/v0/',
      '/v0/cities/',
      '/V0/cities',
      '//v0/cities',
      '/v0//cities',
      '/v0/cities;x=1',
      '/v0%2Fcities',
      '/v0/city',
      '/v0/nowhere',
      '/v0/city/',
      '/v0/cities/alpha',
      '/favicon.ico',
      `/${'x'.repeat(20_000)}`,
      '/v0/requests/',
      '/v0/requests/a/b',
      '/../etc/passwd',
      '/docs/../openapi.json',
      '/docs/%2e%2e/%2e%2e/package.json',
    ]) {
      const answer = await api().get(path)
      if (path === '/v0/city')
        assertProblem(answer, 'method-not-allowed', 'method_not_allowed: GET is not allowed here; allowed: POST')
      else assertProblem(answer, 'route-not-found', /^not_found: /)
    }
    for (const path of [
      '/v0/city/alpha/nowhere',
      '/v0/city/alpha/',
      '/v0/city/alpha//events',
      '/v0/city/alpha/events/',
      '/v0/city/alpha/events;x',
    ]) {
      assertProblem(await api().get(path), 'route-not-found')
    }
    for (const path of ['/v0/city/%61lpha', '/v0/city/alpha/status'])
      assert.equal((await api().get(path)).status, 200, path)
    assertProblem(
      await api().get('/v0/city/al%2Fpha'),
      'city-not-found',
      'not_found: city not found or not running: al/pha',
    )
    assertProblem(
      await api().get('/v0/city/ALPHA'),
      'city-not-found',
      'not_found: city not found or not running: ALPHA',
    )
    // Overlong UTF-8 is no UTF-8: it would hide a slash or a dot from whoever looks at the bytes.
    for (const path of ['/v0/city/%c0%af', '/docs/%c0%ae%c0%ae/x', '/v0/city/%e0%80%af', '/v0/%ed%a0%80'])
      assertProblem(await api().get(path), 'invalid-request', /^invalid: the path cannot be decoded/)
    for (const path of ['/v0/city/%ff', '/%', '/v0/%zz', '/v0/cities?a=%ff', '/v0/city/%c3%28/events']) {
      assertProblem(await api().get(path), 'invalid-request', /^invalid: the (?:path|query string) cannot be decoded/)
    }
  })

  test('methods of every kind are answered: 405 with what the path takes', async () => {
    const allow = async (method: string, path: string) => {
      const answer = await api().call(method, path)
      assert.equal(answer.status, 405, `${method} ${path}`)
      return answer.headers.allow
    }
    assert.equal(await allow('DELETE', '/v0/cities'), 'GET, HEAD, POST')
    assert.equal(await allow('PUT', '/v0/city/alpha'), 'GET, HEAD, PATCH')
    assert.equal(await allow('HEAD', '/v0/city/alpha/start'), 'POST')
    assert.equal(await allow('TRACE', '/v0/cities'), 'GET, HEAD, POST')
    assert.equal(await allow('GET', '/v0/city/nowhere/start'), 'POST')
    for (const method of ['PROPFIND', 'SEARCH', 'QUERY', 'MKCOL'])
      assert.equal(await allow(method, '/v0/cities'), 'GET, HEAD, POST')
    assert.equal(await allow('PURGE', '/nowhere'), 'DELETE, GET, HEAD, PATCH, POST, PUT')
    assertProblem(
      await raw('FOO /v0/cities HTTP/1.1\r\nHost: localhost\r\n\r\n', 'FOO', '/v0/cities'),
      'invalid-request',
    )
    using tunnel = await new RawConnection(api().url).send(
      'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    )
    assertProblem(
      await tunnel.answer('CONNECT', '/x'),
      'method-not-allowed',
      'method_not_allowed: CONNECT is not a method of this API',
    )
    await tunnel.closed
  })

  test('what is not HTTP is 400 with a problem and an id, and the connection is closed', async () => {
    for (const text of [
      'nonsense\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'GET /\u0000 HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n folded\r\n\r\n',
      'GET / HTTP/1.1\nHost: localhost\n\n',
      'GET / HTTP/1.1\r\nHost: localhost\nX-A: 1\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nX-A: a\u0000b\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nX-A: a\rb\r\n\r\n',
    ]) {
      using connection = await new RawConnection(api().url).send(text)
      assertProblem(await connection.answer('GET', '/nowhere'), 'invalid-request', /^invalid: /)
      await connection.closed
    }
  })

  test('who asks for another protocol is answered in this one', async () => {
    for (const upgrade of ['websocket', 'h2c', 'TLS/1.0']) {
      const head = `HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`
      assert.equal((await raw(`GET /health ${head}`, 'GET', '/health')).status, 200, upgrade)
      assertProblem(await raw(`GET /nowhere ${head}`, 'GET', '/nowhere'), 'route-not-found')
    }
  })

  test('HTTP/1.0, pipelined requests and Expect: 100-continue are served', async () => {
    using old = await new RawConnection(api().url).send('GET /v0/cities HTTP/1.0\r\nHost: localhost\r\n\r\n')
    assert.equal((await old.answer('GET', '/v0/cities')).status, 200)
    await old.closed
    using oldStream = await new RawConnection(api().url).send(
      'GET /v0/city/alpha/events/stream?after_seq=0 HTTP/1.0\r\nHost: localhost\r\n\r\n',
    )
    const text = await oldStream.until((all) => all.includes('city.started'))
    assert.ok(!text.includes('chunked'))
    assert.match(text, /\r\n\r\nid: 1\nevent: event\ndata: \{/)
    const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    using pipe = await new RawConnection(api().url).send(
      [one('/v0/city/alpha/health'), one('/nowhere'), one('/v0/cities?nope'), one('/health')].join(''),
    )
    const answers = await pipe.answers(4)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 422, 200],
    )
    assert.equal(new Set(answers.map(({ headers }) => headers['x-svc-request-id'])).size, 4)
    const body = JSON.stringify(EMIT)
    using patient = await new RawConnection(api().url).send(
      `POST ${EVENTS} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    const [proceed] = await patient.answers(1)
    assert.equal(proceed?.status, 100)
    await patient.send(body)
    const [, created] = await patient.answers(2)
    assert.ok(created)
    assert.equal(checked('POST', EVENTS, created.status, created.headers, created.body).status, 201)
    using other = await new RawConnection(api().url).send(
      `POST ${EVENTS} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nExpect: something-else\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    assert.equal((await other.answer('POST', EVENTS)).status, 201)
  })

  test('a client that asks before it sends its body is not told to send one that is refused anyway', async () => {
    for (const [headers, code] of [
      ['Content-Length: 2000000', 'payload-too-large'],
      ['X-SVC-Request: \r\nContent-Length: 2', 'csrf-required'],
      ['Content-Type: text/plain\r\nContent-Length: 2', 'unsupported-media-type'],
    ] as const) {
      const csrf = code === 'csrf-required' ? '' : 'X-SVC-Request: 1\r\n'
      using asking = await new RawConnection(api().url).send(
        `POST ${EVENTS} HTTP/1.1\r\nHost: localhost\r\n${csrf}Expect: 100-continue\r\n${headers}\r\n\r\n`,
      )
      assertProblem(await asking.answer('POST', EVENTS), code)
      await asking.closed
    }
  })

  test('query parameters: unknown, repeated, empty and badly spelled ones are 422 that name them', async () => {
    const refuse = async (path: string, location: string) => {
      const { errors } = assertProblem(await api().get(path), 'validation-failed')
      assert.ok(
        errors?.some((error) => error.location.replace(/\[\d+\]$/, '') === location),
        `${path}: ${JSON.stringify(errors)}`,
      )
    }
    await refuse('/v0/cities?LIMIT=1', 'query.LIMIT')
    await refuse('/v0/cities?limit=1&limit=2', 'query.limit')
    for (const limit of ['', '-1', '1001', '1.5', '1e2', '0x1', 'ten', '+1', '%201', '01'])
      await refuse(`/v0/cities?limit=${limit}`, 'query.limit')
    for (const path of [
      'type=',
      'actor=',
      'subject=',
      'type=a..b',
      'type=*',
      'order=up',
      'order=',
      'index=-1',
      'index=x',
      'wait=',
      'wait=5',
      'wait=121s',
      'wait=0',
      'wait=-1s',
      'since=yesterday',
      'until=',
      '__proto__=1',
      'constructor=1',
    ]) {
      await refuse(`${EVENTS}?${path}`, `query.${path.split('=')[0]}`)
    }
    assert.equal((await api().get('/v0/cities?')).status, 200)
    assert.equal((await api().get('/v0/cities?limit=0')).status, 200)
    assert.equal((await api().get('/v0/cities?&&limit=1000&')).status, 200)
    const undecodable = assertProblem(await api().get('/v0/cities?cursor=%ff'), 'invalid-request')
    assert.equal(undecodable.errors?.[0]?.location, 'query')
    const several = assertProblem(await api().get('/v0/cities?a=1&b=2'), 'validation-failed')
    assert.deepEqual(
      several.errors?.map(({ location }) => location),
      ['query.a', 'query.b'],
    )
  })

  test('who types the address into a browser lands on /docs, and so does who ends it with a slash', async () => {
    for (const path of ['/', '/docs/']) {
      using connection = await new RawConnection(api().url).send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const [found] = await connection.answers(1)
      assert.equal(found?.status, 302)
      assert.equal(found.headers.location, '/docs')
      assert.match(String(found.headers['x-svc-request-id']), /^[0-9a-f]{16}$/)
      const post = await api().post(path)
      assertProblem(post, 'method-not-allowed')
      assert.equal(post.headers.allow, 'GET, HEAD')
    }
    assertProblem(await api().get('/', { headers: { host: 'evil.example' } }), 'host-not-allowed')
  })

  test('the page of the documents stands in no frame and loads from nowhere else, and no answer is taken for another type', async () => {
    const { headers, text } = await api().get('/docs')
    const policy = String(headers['content-security-policy']).split('; ')
    for (const rule of ["default-src 'self'", "script-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule)
    assert.equal(headers['x-frame-options'], 'DENY')
    for (const [, path] of text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)) {
      const file = await api().get(path ?? '')
      assert.ok(file.bytes.length > 100, String(path))
      assert.equal(file.headers['x-content-type-options'], 'nosniff')
    }
  })

  test('a target that is a whole address is served for the host that it names, whatever the Host header says', async () => {
    const ask = (target: string, path: string, host = 'localhost') =>
      raw(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 'GET', path)
    for (const target of ['http://localhost/health', 'HTTP://127.0.0.1:8372/health', 'https://[::1]/health?'])
      assert.equal((await ask(target, '/health')).status, 200, target)
    assert.equal((await ask('http://localhost/health', '/health', 'evil.example')).status, 200)
    const { errors } = assertProblem(await ask('http://localhost/v0/cities?nope=1', '/v0/cities'), 'validation-failed')
    assert.equal(errors?.[0]?.location, 'query.nope')
    for (const target of ['http://evil.example/health', 'http://localhost@evil.example/health', 'http:///health'])
      assertProblem(await ask(target, '/nowhere'), 'host-not-allowed')
    for (const target of ['ftp://localhost/health', '*'])
      assertProblem(await ask(target, '/nowhere'), 'route-not-found')
  })

  test('answers leave a connection in the order of its requests, also that to bytes which are no request', async () => {
    const head = 'HTTP/1.1\r\nHost: localhost\r\n'
    using garbage = await new RawConnection(api().url).send(
      `GET ${EVENTS}?wait=1s&index=1000000 ${head}\r\nGET /health ${head}\r\nnonsense\r\n\r\n`,
    )
    const answers = await garbage.answers(3)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 400],
    )
    await garbage.closed
    using body = await new RawConnection(api().url).send(
      `GET ${EVENTS}?wait=1s&index=1000000 ${head}\r\nPOST ${EVENTS} ${head}X-SVC-Request: 1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`,
    )
    assert.deepEqual(
      (await body.answers(2)).map(({ status }) => status),
      [200, 400],
    )
    await body.closed
    using tunnel = await new RawConnection(api().url).send(`GET /health ${head}\r\nCONNECT a:1 ${head}\r\n`)
    assert.deepEqual(
      (await tunnel.answers(2)).map(({ status }) => status),
      [200, 405],
    )
  })

  test('the frames of a stream that was asked for behind another request follow its head', async () => {
    const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    using pipe = await new RawConnection(api().url).send(
      one('/v0/city/alpha/health') + one('/v0/city/alpha/events/stream?after_seq=0'),
    )
    const text = await pipe.until((all) => all.includes('city.started'))
    const [health] = parseAnswers(pipe.bytes)
    const second = text.slice(text.indexOf('\r\n\r\n') + 4 + Number(health?.headers['content-length']))
    assert.match(second, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(second, /\r\n\r\n[0-9a-f]+\r\nid: 1\nevent: event\n/)
  })

  test('a client that asked for a stream behind a request that waits, and went, leaves none open', async () => {
    await using own = await run()
    await newCity(own.api, own.work, 'alpha')
    const streams = async () => /^svc_sse_streams (\d+)$/m.exec((await own.api.get('/metrics')).text)?.[1]
    {
      const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
      using _ = await new RawConnection(own.api.url).send(
        one(`${EVENTS}?wait=60s&index=1000000`) + one('/v0/city/alpha/events/stream?after_seq=0'),
      )
      await eventually('the stream is open', async () => ((await streams()) === '1' ? true : undefined))
    }
    await eventually('it is gone', async () => ((await streams()) === '0' ? true : undefined))
  })

  test('a connection that never asked is closed without an answer, a head that does not end is 408', async () => {
    using silent = new RawConnection(api().url)
    using half = await new RawConnection(api().url).send('GET /health HTTP/1.1\r\nHost: loc')
    assertProblem(await half.answer('GET', '/health', 20_000), 'request-timeout', /^timeout: the headers /)
    await half.closed
    await silent.closed
    assert.equal(silent.text, '')
  })

  test('a mutation needs no more than the presence of X-SVC-Request, and a GET not even that', async () => {
    for (const value of ['1', 'anything', '0', 'false'])
      assert.equal((await api().post(EVENTS, EMIT, { headers: { 'x-svc-request': value } })).status, 201)
    const { body } = await api().post(EVENTS, EMIT)
    assert.equal(at(body, 'status'), 'recorded')
  })

  test('HEAD is answered wherever GET is, with its headers and without its body', async () => {
    for (const path of ['/health', '/v0/cities', '/v0/city/alpha', '/openapi.json', '/docs', '/metrics', EVENTS]) {
      const [got, head] = await Promise.all([
        fetch(`${api().url}${path}`, { headers: { 'accept-encoding': 'identity' } }),
        fetch(`${api().url}${path}`, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } }),
      ])
      assert.equal(head.status, 200, path)
      assert.equal(head.headers.get('content-type'), got.headers.get('content-type'))
      assert.ok(Number(head.headers.get('content-length')) > 0)
      assert.equal(await head.text(), '')
      await got.body?.cancel()
    }
    const missing = await fetch(`${api().url}/v0/city/nowhere`, { method: 'HEAD' })
    assert.equal(missing.status, 404)
    const stream = await fetch(`${api().url}/v0/events/stream`, { method: 'HEAD' })
    assert.equal(stream.headers.get('content-type'), 'text/event-stream')
    assert.equal(await stream.text(), '')
    assert.match((await api().get('/metrics')).text, /^svc_sse_streams 0$/m)
  })

  test('whoever has this version already is told so, wherever an ETag is given', async () => {
    for (const path of ['/v0/city/alpha', '/openapi.json', '/docs', '/docs/start.js']) {
      const url = `${api().url}${path}`
      const first = await fetch(url)
      const etag = first.headers.get('etag') ?? assert.fail(`${path} has no ETag`)
      await first.body?.cancel()
      for (const method of ['GET', 'HEAD']) {
        const again = await fetch(url, { method, headers: { 'if-none-match': `"other", ${etag}` } })
        assert.equal(again.status, 304, path)
        assert.equal(again.headers.get('etag'), etag)
        assert.match(again.headers.get('x-svc-request-id') ?? '', /^[0-9a-f]{16}$/)
        assert.equal(await again.text(), '')
      }
      const other = await fetch(url, { headers: { 'if-none-match': '"other"' } })
      assert.equal(other.status, 200)
      await other.body?.cancel()
    }
  })

  test('documents and pages of events are packed for whoever can unpack them', async () => {
    for (let i = 0; i < 20; i++) await api().post(EVENTS, EMIT)
    for (const path of ['/openapi.json', '/metrics', `${EVENTS}?limit=100`]) {
      const length = async (encoding: string) => {
        using connection = await new RawConnection(api().url).send(
          `HEAD ${path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
        )
        await connection.closed
        assert.equal(connection.text.includes('Content-Encoding: gzip'), encoding === 'gzip', connection.text)
        assert.match(connection.text, /Vary: Accept-Encoding/)
        return Number(/Content-Length: (\d+)/.exec(connection.text)?.[1])
      }
      const [plain, packed] = [await length('identity'), await length('gzip')]
      assert.ok(packed < plain / 2, `${path}: ${packed} of ${plain}`)
    }
    const text = await (await fetch(`${api().url}/openapi.json`)).text()
    assert.equal(text, (await api().get('/openapi.json')).text)
  })

  test('a body without bytes is none, whatever type it is said to have', async () => {
    const bead = async () => {
      const { body } = await api().post('/v0/city/alpha/beads', { title: 'one' })
      return String(at(body, 'id'))
    }
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/octet-stream'])
      for (const length of ['Content-Length: 0', 'Transfer-Encoding: chunked']) {
        const path = `/v0/city/alpha/beads/${await bead()}/close`
        const end = length.startsWith('T') ? '0\r\n\r\n' : ''
        const answer = await raw(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: ${type}\r\n${length}\r\n\r\n${end}`,
          'POST',
          path,
        )
        assert.equal(answer.status, 200, answer.text)
      }
    const path = `/v0/city/alpha/beads/${await bead()}/close`
    const filled = await raw(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      'POST',
      path,
    )
    assertProblem(filled, 'unsupported-media-type')
  })

  test('who closes its side after the request still gets the answer, also where that takes some time', async () => {
    const dir = join(running?.work ?? '', 'half')
    const body = JSON.stringify({ dir, provider: 'shell' })
    using connection = await new RawConnection(api().url).send(
      `POST /v0/city HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    connection.socket.end()
    assert.equal((await connection.answer('POST', '/v0/city')).status, 202)
  })
})
