/** Durable tokens: made, used from elsewhere, kept over restarts, revoked (decision 212). */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createToken, listTokens } from '../../src/contract/tokens.ts'
import { cli } from '../support/cli.ts'
import { at } from '../support/document.ts'
import { Api, assertProblem } from '../support/http.ts'
import { cityIs, newCity, run, runAgain } from '../support/running.ts'
import { openStream } from '../support/sse.ts'

test('a token lets in who has it, to what its role and city say, until it is revoked', {
  timeout: 60_000,
}, async () => {
  const args = ['--auth']
  await using running = await run({ args })
  const { url, home } = running.server
  await newCity(running.api, running.work, 'alpha')
  await newCity(running.api, running.work, 'beta')
  const make = (name: string, role: 'admin' | 'viewer', city?: string) =>
    running.api.ask(createToken, '/v0/tokens', { body: { name, role, ...(city === undefined ? {} : { city }) } })
  const made = await Promise.all([
    make('all', 'admin'),
    make('see', 'viewer'),
    make('only', 'admin', 'alpha'),
    make('peek', 'viewer', 'alpha'),
  ])
  const [all, see, only, peek] = made.map(({ token }) => new Api(url, token))
  assert.ok(all && see && only && peek)
  using stack = new DisposableStack()
  for (const api of [all, see, only, peek]) stack.defer(() => api.close())

  const emit = (api: Api, city: string) => api.post(`/v0/city/${city}/events`, { type: 'a.b', actor: 'x' })
  assert.equal((await emit(all, 'beta')).status, 201)
  assert.equal((await emit(only, 'alpha')).status, 201)
  assertProblem(await emit(only, 'beta'), 'forbidden', 'forbidden: this token is for the city alpha and no other')
  // What is done with a token says whose it is, and so does what is said.
  const bead = await only.post('/v0/city/alpha/beads', { title: 'by a token' })
  const comment = await only.post(`/v0/city/alpha/beads/${String(at(bead.body, 'id'))}/comments`, { text: 'well' })
  assert.equal(at(comment.body, 'author'), 'only')
  const { body: told } = await only.get('/v0/city/alpha/events?type=bead.*&order=asc')
  assert.deepEqual([at(told, 'items', 0, 'actor'), at(told, 'items', 1, 'actor')], ['token:only', 'only'])
  for (const api of [see, peek])
    assertProblem(await emit(api, 'alpha'), 'forbidden', /^forbidden: a token of a viewer may only read: emit-event/)
  assert.equal((await see.get('/v0/events?limit=1')).status, 200)
  assert.equal((await see.get('/v0/city/beta/events')).status, 200)
  assertProblem(await peek.get('/v0/city/beta/events'), 'forbidden')
  assertProblem(await peek.get('/v0/events'), 'forbidden', /its events are at \/v0\/city\/alpha\/events$/)
  for (const api of [see, only, peek]) {
    assertProblem(await api.get('/v0/tokens'), 'forbidden')
    assertProblem(await api.post('/v0/tokens', { name: 'more', role: 'admin' }), 'forbidden')
    assertProblem(await api.post('/v0/city', { dir: '/nowhere' }), 'forbidden')
  }
  const { total } = await running.api.ask(listTokens, '/v0/tokens')
  assert.equal(total, 4)
  for (const [api, names] of [
    [see, ['alpha', 'beta']],
    [only, ['alpha']],
  ] as const) {
    const items = at((await api.get('/v0/cities')).body, 'items')
    assert.ok(Array.isArray(items))
    assert.deepEqual(items.map((item) => at(item, 'name')).sort(), names)
  }
  // What is wrong anywhere has names of cities in it.
  const checks = at((await only.get('/health')).body, 'checks')
  assert.ok(Array.isArray(checks) && checks.every((check) => Object.keys(check).join() === 'name,status'))

  // Kept over a restart, as what nobody can use: no secret is in any file, event or log.
  await running.server.kill('SIGTERM')
  for (const name of readdirSync(home))
    for (const { token } of made) assert.ok(!readFileSync(join(home, name)).includes(token), name)
  await using again = await runAgain(home, { args })
  await cityIs(again.api, 'alpha', 'running')
  const headers = { authorization: `Bearer ${made[1]?.token}` }
  assert.equal((await again.api.get('/v0/city/alpha/events', { headers })).status, 200)
  const { items } = await again.api.ask(listTokens, '/v0/tokens')
  assert.ok(items.find(({ name }) => name === 'see')?.last_used_at !== undefined)
  const follower = new Api(again.server.url, made[1]?.token)
  await using stream = await openStream(follower, '/v0/events/stream')
  assert.equal((await again.api.call('DELETE', '/v0/tokens/see')).status, 200)
  await stream.ended
  follower.close()
  assertProblem(await again.api.get('/v0/city/alpha/events', { headers }), 'unauthorized')
  const events = await again.api.get('/v0/events?type=token.*&order=asc&limit=1000')
  const said = at(events.body, 'items')
  assert.ok(Array.isArray(said))
  assert.equal(said.filter((event) => at(event, 'type') === 'token.created').length, 4)
  assert.equal(said.filter((event) => at(event, 'type') === 'token.deleted').length, 1)
  for (const { token } of made) assert.ok(!events.text.includes(token))
  assertProblem(
    await again.api.post('/v0/city/alpha/events', { type: 'token.created', actor: 'x' }),
    'validation-failed',
  )
})

test('svcctl makes a token that another machine can use, and takes it back', { timeout: 60_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const { url, home } = running.server
  await newCity(running.api, running.work, 'alpha')
  const here = { env: { SVC_HOME: home } }
  const made = await cli(['token', 'create', 'laptop', '--role', 'admin', '-o', 'name'], here)
  assert.equal(made.code, 0, made.err)
  assert.match(made.err, /the only time that the token is shown/)
  const token = made.out.trim()
  assert.match(token, /^[0-9a-f]{64}$/)
  for (const [words, env] of [
    [['--token', token], {}],
    [[], { SVC_TOKEN: token }],
  ] as const) {
    const listed = await cli(['city', 'list', '-o', 'name', '--api', url, ...words], { env })
    assert.deepEqual([listed.out, listed.code], ['alpha\n', 0], listed.err)
  }
  const board = await cli(['token', 'create', 'board', '--city', 'alpha', '--json'], here)
  assert.deepEqual(
    [at(JSON.parse(board.out), 'role'), at(JSON.parse(board.out), 'city')],
    ['viewer', 'alpha'],
    board.err,
  )
  const table = await cli(['token', 'list'], here)
  assert.match(table.out, /^board\tviewer\talpha\t.*\nlaptop\tadmin\t/)
  assert.ok(!table.out.includes(token))
  assert.equal((await cli(['token', 'delete', 'laptop'], here)).code, 0)
  const after = await cli(['city', 'list', '--api', url, '--token', token], {})
  assert.equal(after.code, 4, after.err)
})
