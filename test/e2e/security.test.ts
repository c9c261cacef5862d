/** Who is let in: tokens, other binds, read-only servers, extra hosts and origins (decision 25, sheet 01 §8). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OPERATIONS } from '../../src/contract/index.ts'
import { cli } from '../support/cli.ts'
import { at } from '../support/document.ts'
import { Api, assertProblem } from '../support/http.ts'
import { cityIs, newCity, run, runAgain, tokenOf } from '../support/running.ts'
import { openStream } from '../support/sse.ts'

test('on loopback nothing is asked for, and endpoint.json tells where the server is', async () => {
  await using running = await run()
  const path = join(running.server.home, 'endpoint.json')
  assert.equal((statSync(path).mode & 0o777).toString(8), '600')
  assert.equal((statSync(running.server.home).mode & 0o777).toString(8), '700')
  const { url, pid, token, started_at } = JSON.parse(readFileSync(path, 'utf8'))
  assert.equal(url, running.server.url)
  assert.equal(pid, running.server.pid)
  assert.equal(token, undefined)
  assert.ok(Math.abs(Date.parse(started_at) - Date.now()) < 60_000)
  assert.equal((await running.api.get('/v0/cities')).status, 200)
})

for (const args of [['--auth'], ['--bind', '0.0.0.0']]) {
  test(`with ${args.join(' ')} everything but /health and preflights needs the token of endpoint.json`, async () => {
    await using running = await run({ args })
    const { home } = running.server
    assert.equal((statSync(join(home, 'endpoint.json')).mode & 0o777).toString(8), '600')
    const token = tokenOf(home)
    assert.match(String(token), /^[0-9a-f]{64}$/)
    const nobody = new Api(running.server.url)
    assert.equal((await nobody.get('/health')).status, 200)
    assert.equal((await nobody.call('OPTIONS', '/v0/cities')).status, 204)
    for (const path of [
      '/v0/cities',
      '/openapi.json',
      '/docs',
      '/metrics',
      '/nowhere',
      '/v0/city/nowhere',
      '/v0/events/stream',
    ]) {
      assertProblem(await nobody.get(path), 'unauthorized')
    }
    // Who may not enter does not learn what else would be wrong.
    assertProblem(await nobody.call('POST', '/v0/city', { headers: { 'x-svc-request': undefined } }), 'unauthorized')
    assertProblem(await nobody.call('DELETE', '/v0/cities'), 'unauthorized')
    for (const authorization of [
      `bearer`,
      `Bearer ${token}x`,
      `Bearer ${String(token).slice(1)}`,
      `Basic ${token}`,
      String(token),
    ]) {
      assertProblem(await nobody.get('/v0/cities', { headers: { authorization } }), 'unauthorized')
    }
    await newCity(running.api, running.work, 'alpha')
    await using stream = await openStream(running.api, '/v0/events/stream?after_cursor=0')
    await stream.next(({ envelope }) => envelope.type === 'request.result.city.create')
    nobody.close()
    // Nobody who listens on the port in between can get a token that is worth anything later.
    await running.server.kill('SIGTERM')
    assert.equal(existsSync(join(home, 'endpoint.json')), false)
    await using again = await runAgain(home, { args })
    assert.notEqual(tokenOf(home), token)
    assert.equal((await again.api.get('/v0/cities')).status, 200)
    await cityIs(again.api, 'alpha', 'running')
    const headers = { authorization: `Bearer ${token}` }
    assertProblem(await again.api.get('/v0/cities', { headers }), 'unauthorized')
  })
}

/** Addresses of this machine by which it can be reached over IPv6, link-local ones aside. */
const ipv6 = Object.values(networkInterfaces())
  .flat()
  .flatMap((one) => (one?.family === 'IPv6' && one.scopeid === 0 ? [one.address] : []))

const BINDS = new Map<string, readonly string[]>([
  ...ipv6.map((address) => [address, [`[${address}]`]] as const),
  ...(ipv6.length === 0 ? [] : [['::', ['[::1]']] as const]),
  ['localhost', ['127.0.0.1', '[::1]']],
])
for (const [bind, names] of BINDS) {
  test(`bound to ${bind} it says an address that works, also for the command line`, async () => {
    await using running = await run({ args: ['--bind', bind] })
    const { hostname } = new URL(running.server.url)
    assert.ok(names.includes(hostname), running.server.url)
    assert.equal((await fetch(`${running.server.url}/health`)).status, 200)
    const listed = await cli(['city', 'list'], { env: { SVC_HOME: running.server.home } })
    assert.equal(listed.code, 0, listed.err)
  })
}

test('a server with allow_mutations = false answers reads and refuses every mutation', async () => {
  await using running = await run({ toml: '[supervisor]\nallow_mutations = false\n' })
  const detail = 'read_only: mutations disabled: allow_mutations is false in supervisor.toml'
  for (const { method, path } of OPERATIONS) {
    if (method === 'GET') continue
    assertProblem(await running.api.call(method, path.replaceAll(/\{\w+\}/g, 'x'), { body: {} }), 'read-only', detail)
  }
  assert.equal((await running.api.get('/v0/cities')).status, 200)
  assertProblem(await running.api.call('POST', '/nowhere', {}), 'read-only', detail)
  assertProblem(await running.api.post('/v0/city', {}, { headers: { 'x-svc-request': undefined } }), 'csrf-required')
})

test('hosts and origins of supervisor.toml are let in, beside those of this machine', async () => {
  const toml =
    '[supervisor]\nallowed_hosts = ["Svc.Example"]\nallowed_origins = ["https://board.example"]\nauth = true\n'
  await using running = await run({ toml })
  const host = 'svc.example:8372'
  const origin = 'https://board.example'
  const answer = await running.api.get('/v0/cities', { headers: { host, origin } })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['access-control-allow-origin'], origin)
  const other = await running.api.get('/v0/cities', { headers: { host, origin: 'https://board.example.evil' } })
  assert.equal(other.headers['access-control-allow-origin'], undefined)
  assertProblem(await running.api.get('/v0/cities', { headers: { host: 'www.svc.example' } }), 'host-not-allowed')
  assertProblem(await running.api.get('/v0/cities', { headers: { host, authorization: undefined } }), 'unauthorized')
})

test('who takes the port of a supervisor that was killed gets no token out of anybody', async () => {
  await using running = await run({ args: ['--auth'] })
  const { url, home } = running.server
  await running.server.kill('SIGKILL')
  assert.ok(existsSync(join(home, 'endpoint.json')))
  const heard: string[] = []
  const squatter = createServer((request, response) => {
    heard.push(`${request.url} ${request.headers.authorization}`)
    response.end('{}')
  }).listen(Number(new URL(url).port), '127.0.0.1')
  await once(squatter, 'listening')
  using _ = { [Symbol.dispose]: () => squatter.close() }
  const env = { SVC_HOME: home }
  const { code, err } = await cli(['city', 'list'], { env })
  assert.equal(code, 7)
  assert.match(err, /endpoint\.json: the supervisor that wrote it, process \d+, has ended/)
  // Who names the server gets there, without the token.
  await cli(['city', 'list', '--api', url], { env })
  assert.deepEqual(heard, ['/v0/cities?limit=1000 undefined'])
})

test('a page of another origin, port or scheme reads nothing and changes nothing', async () => {
  await using running = await run()
  const { api } = running
  await newCity(api, running.work, 'alpha')
  const { port } = new URL(api.url)
  const pages = [
    'https://evil.example',
    `https://127.0.0.1:${port}0`,
    'http://localhost:3000',
    `http://localhost:${port}`,
    'null',
  ]
  for (const origin of pages) {
    const body = { type: 'page.was-here', actor: 'page' }
    for (const site of ['cross-site', 'same-site', undefined]) {
      const headers = { origin, 'sec-fetch-site': site }
      const refused = await api.post('/v0/city/alpha/events', body, { headers })
      assertProblem(refused, 'forbidden', /^forbidden: pages of .* may not use this API/)
      assert.equal(refused.headers['access-control-allow-origin'], undefined)
    }
    for (const path of ['/v0/cities', '/v0/city/alpha/events', '/openapi.json'])
      assertProblem(await api.get(path, { headers: { origin, 'sec-fetch-site': 'same-site' } }), 'forbidden')
    const preflight = await api.call('OPTIONS', '/v0/city', {
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-svc-request' },
    })
    assert.equal(preflight.headers['access-control-allow-origin'], undefined)
  }
  // What a form can send, which needs no preflight.
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain']) {
    const bytes = '{"type":"page.was-here","actor":"page"}'
    const form = { 'content-type': type, 'x-svc-request': undefined }
    assertProblem(await api.call('POST', '/v0/city/alpha/events', { bytes, headers: form }), 'csrf-required')
    const scripted = { 'content-type': type }
    assertProblem(
      await api.call('POST', '/v0/city/alpha/events', { bytes, headers: scripted }),
      'unsupported-media-type',
    )
  }
  // An image, a script, a frame; and a link, which is followed.
  const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
  assertProblem(await api.get('/v0/city/alpha/events', { headers: image }), 'forbidden')
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  assert.equal((await api.get('/docs', { headers: link })).status, 200)
  const seen = at((await api.get('/v0/city/alpha/events?type=page.*')).body, 'items')
  assert.deepEqual(seen, [])
  // Our own page goes on.
  const own = { origin: api.url, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }
  assert.ok((await api.post('/v0/city/alpha/events', { type: 'a.b', actor: 'page' }, { headers: own })).status === 201)
  assert.equal((await api.get('/docs', { headers: own })).status, 200)
})

test('pages that somebody writes on this machine are let in where supervisor.toml says so', async () => {
  await using running = await run({ toml: '[supervisor]\nallowed_origins = ["http://localhost:*"]\n' })
  for (const origin of ['http://localhost:5173', 'http://localhost']) {
    const headers = { origin, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }
    const answer = await running.api.get('/v0/cities', { headers })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['access-control-allow-origin'], origin)
  }
  for (const origin of ['https://localhost:5173', 'http://127.0.0.1:5173', 'http://localhost:5173.evil.example'])
    assertProblem(await running.api.post('/v0/city', {}, { headers: { origin } }), 'forbidden')
})
