/** Other users of the machine on a loopback address: a real second user against a real supervisor (decision 210). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { at } from '../support/document.ts'
import { Api } from '../support/http.ts'
import { asRoot, NOBODY, spawnAsNobody } from '../support/other-user.ts'
import { emit, newCity, run } from '../support/running.ts'

/** Runs a program as nobody; answers with what it wrote. */
async function asNobody(program: string, ...args: readonly string[]): Promise<string> {
  const child = spawnAsNobody(program, args, ['ignore', 'pipe', 'inherit'])
  let text = ''
  for await (const chunk of child.stdout?.setEncoding('utf8') ?? []) text += chunk
  return text
}

const REQUEST = `
const [url, method, path] = process.argv.slice(1)
const http = require('node:http')
const headers = { 'x-svc-request': '1', 'content-type': 'application/json' }
const request = http.request(url + path, { method, headers }, async (response) => {
  let text = ''
  for await (const chunk of response) text += chunk
  console.log(JSON.stringify({ status: response.statusCode, type: response.headers['content-type'], text }))
})
request.end(method === 'POST' ? JSON.stringify({ type: 'a.b', actor: 'owner' }) : undefined)
`

/** Sends whole requests and leaves at once, in every way there is, many times. */
const LEAVE = `
const { connect } = require('node:net')
const [port, type, rounds] = process.argv.slice(1)
const body = JSON.stringify({ type, actor: 'owner' })
const text = 'POST /v0/city/alpha/events HTTP/1.1\\r\\nHost: localhost\\r\\nX-SVC-Request: 1\\r\\nContent-Type: application/json\\r\\nContent-Length: ' + body.length + '\\r\\n\\r\\n' + body
const leave = [(s) => s.end(text), (s) => s.write(text, () => s.destroy()), (s) => s.write(text, () => s.resetAndDestroy()), (s) => { s.write(text); s.destroySoon() }]
const one = (how) => new Promise((done) => {
  const socket = connect(Number(port), '127.0.0.1', () => how(socket))
  socket.on('error', () => {}).on('close', done).resume()
})
void (async () => { for (let round = 0; round < Number(rounds); round++) await Promise.all(leave.map(one)); console.log('done') })()
`

test(
  'another user of the machine can neither read nor write nor follow, and the owner notices nothing',
  asRoot,
  async () => {
    await using running = await run()
    await newCity(running.api, running.work, 'alpha')
    for (const [method, path] of [
      ['GET', '/v0/cities'],
      ['GET', '/health'],
      ['GET', '/docs'],
      ['GET', '/v0/events/stream?after_cursor=0'],
      ['POST', '/v0/city/alpha/events'],
      ['OPTIONS', '/v0/cities'],
      ['GET', '/nowhere'],
    ] as const) {
      const { status, type, text } = JSON.parse(await asNobody(REQUEST, running.server.url, method, path))
      assert.equal(status, 403, `${method} ${path}`)
      assert.equal(type, 'application/problem+json')
      assert.match(
        text,
        /forbidden: this API is for uid 0, who runs it, and not for uid 65534; \[supervisor\] allowed_uids/,
      )
    }
    const readiness = await running.api.get('/v0/readiness')
    assert.equal(at(readiness.body, 'callers'), 'owner')
    assert.ok((await emit(running.api, 'alpha', 'owner.here')) > 0)
    assert.equal(running.server.stderr(), '')
  },
)

test('who leaves before he can be looked at is not taken for root', asRoot, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  assert.equal(await asNobody(LEAVE, new URL(running.server.url).port, 'stranger.was-here', '100'), 'done\n')
  // Behind everything that he sent: the server takes connections in their order.
  await emit(running.api, 'alpha', 'owner.here')
  const found = await running.api.get('/v0/city/alpha/events?type=stranger.*')
  assert.deepEqual(at(found.body, 'items'), [])
})

test('a user who is let in by supervisor.toml is', asRoot, async () => {
  await using running = await run({ toml: `[supervisor]\nallowed_uids = [${NOBODY}]\n` })
  const { status } = JSON.parse(await asNobody(REQUEST, running.server.url, 'GET', '/v0/cities'))
  assert.equal(status, 200)
})

test('with a token it does not matter which user has it', asRoot, async () => {
  await using running = await run({ args: ['--auth'] })
  const { status, text } = JSON.parse(await asNobody(REQUEST, running.server.url, 'GET', '/v0/cities'))
  assert.equal(status, 401, text)
  // Who has none learns that all is well, and nothing of what there is.
  const health = JSON.parse(await asNobody(REQUEST, running.server.url, 'GET', '/health'))
  assert.equal(health.status, 200)
  for (const check of JSON.parse(health.text).checks) assert.deepEqual(Object.keys(check), ['name', 'status'])
  const known: unknown = at((await running.api.get('/health')).body, 'checks')
  assert.ok(Array.isArray(known) && known.some((check) => 'value' in check))
})

test('a forward of the owner, as ssh makes one, goes on', { timeout: 30_000 }, async () => {
  await using running = await run()
  const { port } = new URL(running.server.url)
  const forward = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1')
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.pipe(far).pipe(near)
  }).listen(0, '127.0.0.1')
  await once(forward, 'listening')
  using _ = { [Symbol.dispose]: () => forward.close() }
  const address = forward.address()
  assert.ok(typeof address === 'object' && address !== null)
  const there = new Api(`http://127.0.0.1:${address.port}`)
  for (let round = 0; round < 20; round++) assert.equal((await there.get('/v0/cities', { alone: true })).status, 200)
  there.close()
})
