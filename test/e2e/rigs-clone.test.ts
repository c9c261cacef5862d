import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { getRig } from '../../src/contract/rigs.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { asMap, at } from '../support/document.ts'
import { git } from '../support/git-repository.ts'
import { type GitServer, startGitServer } from '../support/git-server.ts'
import { assertProblem, type CallOptions, eventually } from '../support/http.ts'
import { type Running, run, runAgain } from '../support/running.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const scratch = temporaryDirectory()
let host: GitServer
let running: Running
let city: ConfigCity
before(async () => {
  host = await startGitServer(join(scratch.path, 'git'))
  running = await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${host.host}"]\n` })
  city = await createCity(running.server, 'alpha')
})
after(async () => {
  city.api.close()
  await running[Symbol.asyncDispose]()
  await host[Symbol.asyncDispose]()
  scratch[Symbol.dispose]()
})

const create = (body: unknown, options?: CallOptions, of: ConfigCity = city) => of.post('/rigs', body, options)
const get = (name: string) => city.api.ask(getRig, `${city.base}/rigs/${name}`)
/** What a failed or finished request may leave behind: nothing. */
const leftovers = (of: ConfigCity = city): readonly string[] => {
  const staging = join(of.dir, '.svc/runtime/rig-create')
  return existsSync(staging) ? readdirSync(staging) : []
}
const progress = async (requestId: unknown, of: ConfigCity = city) =>
  (await of.events('rig.provision.progress'))
    .filter(({ payload }) => payload.request_id === requestId)
    .map(({ payload }) => payload.step)

test('a repository is cloned into rigs/, becomes a rig, and tells the log about each step', async () => {
  const before = city.read('city.toml')
  const { source, head } = host.repository('shop', { 'README.md': '# Shop\n' })
  const accepted = await create({ name: 'shop', git_url: source, prefix: 'sh2' })
  const { payload, type } = await city.outcome(accepted)
  assert.equal(type, 'request.result.rig.create', JSON.stringify(payload))
  assert.deepEqual(payload, {
    request_id: at(accepted.body, 'request_id'),
    rig: 'shop',
    prefix: 'sh2',
    default_branch: 'main',
  })
  const rig = await get('shop')
  assert.deepEqual([rig.path, rig.prefix, rig.default_branch], [join(city.dir, 'rigs/shop'), 'sh2', 'main'])
  assert.match(city.read('city.toml'), /path = "rigs\/shop"/)
  assert.equal(city.read('rigs/shop/README.md'), '# Shop\n')
  const clone = join(city.dir, 'rigs/shop')
  assert.equal(git(clone, 'rev-parse', 'HEAD').trim(), head)
  assert.equal(git(clone, 'remote', 'get-url', 'origin').trim(), source)
  assert.equal(git(clone, 'status', '--porcelain').trim(), '')
  assert.ok(!existsSync(join(clone, '.git/svc-rig-create')), 'nothing of ours is left in it')
  assert.deepEqual(leftovers(), [])
  assert.deepEqual(await progress(payload.request_id), ['clone', 'config'])
  const events = (await city.events('rig.*', 'request.*')).map((event) => event.type)
  assert.ok(
    events.indexOf('rig.created') < events.indexOf('request.result.rig.create'),
    'the rig is there before the end is announced',
  )
  assert.equal((await city.api.call('DELETE', `${city.base}/rigs/shop`)).status, 200)
  assert.equal(city.read('city.toml'), before)
  assert.ok(existsSync(clone), 'files stay')
})

test('a clone that fails says why and leaves nothing', async (t) => {
  const before = [city.read('city.toml'), readdirSync(city.dir), readdirSync(join(city.dir, 'rigs'))]
  const fails = async (body: object, code: string, message: RegExp) => {
    const { type, payload } = await city.outcome(await create(body))
    assert.equal(type, 'request.failed')
    assert.deepEqual([payload.operation, payload.error_code], ['rig.create', code])
    assert.match(String(payload.error_message), message)
  }
  await t.test('no such repository', () =>
    fails({ name: 'absent', git_url: `${host.url}/absent.git` }, 'clone_failed', /no such repository/),
  )
  await t.test('a name that does not resolve', () =>
    fails({ name: 'lost', git_url: 'https://nowhere.invalid/x.git' }, 'clone_failed', /cannot be resolved/),
  )
  await t.test('a rig that the configuration refuses', async () => {
    const { source } = host.repository('clash', { a: 'b' })
    await create({ name: 'first', path: 'first', prefix: 'fi' })
    await fails({ name: 'clash', git_url: source, prefix: 'fi' }, 'provision_failed', /belongs to rig `first`/)
    await city.api.call('DELETE', `${city.base}/rigs/first`)
    city.remove('first')
  })
  await t.test('a redirect to somewhere else', async () => {
    host.redirect('/moved.git', `${host.url}/shop.git`)
    await fails({ name: 'moved', git_url: `${host.url}/moved.git` }, 'clone_failed', /./)
  })
  assert.deepEqual([city.read('city.toml'), readdirSync(city.dir), readdirSync(join(city.dir, 'rigs'))], before)
  assert.deepEqual(leftovers(), [])
})

test('sources that must not be used are refused before the 202, without repeating them', async () => {
  const before = (await city.events('request.*')).length
  for (const url of [
    'http://127.0.0.1:1/x.git',
    'https://localhost/x.git',
    'https://10.0.0.1/x.git',
    'https://169.254.169.254/x.git',
    'https://[::1]/x.git',
    'file:///etc',
    '/etc',
    'rigs/other',
    'builtin:core',
    'ext::sh -c true',
    'https://user:hunter2@example.org/x.git',
    'https://example.org/x.git?token=hunter2',
    'https://example.org/x.git//sub',
    '-oProxyCommand=x',
  ]) {
    const refused = await create({ name: 'bad', git_url: url })
    assert.equal(assertProblem(refused, 'validation-failed').errors?.[0]?.location, 'body.git_url', url)
    assert.ok(!refused.text.includes('hunter2'))
  }
  assertProblem(
    await create({ name: 'bad', git_url: 'https://example.org/x.git', path: 'x' }),
    'validation-failed',
    /body\.path/,
  )
  assert.equal((await city.events('request.*')).length, before)
})

test('a name in use, a directory in the way and a stale If-Match are refused before the 202', async () => {
  const { source } = host.repository('taken', { a: 'b' })
  await create({ name: 'taken', path: 'taken' })
  assertProblem(await create({ name: 'taken', git_url: source }), 'name-taken')
  mkdirSync(join(city.dir, 'rigs/inway'))
  assertProblem(await create({ name: 'inway', git_url: source }), 'name-taken', 'conflict: rigs/inway is there already')
  assertProblem(
    await create({ name: 'fresh', git_url: source }, { headers: { 'if-match': '"0123"' } }),
    'precondition-failed',
  )
  await city.api.call('DELETE', `${city.base}/rigs/taken`)
})

test('while a rig is being made a second request is told where to wait; the same key gets the same answer, also later', async () => {
  const { source } = host.repository('slow', { a: 'b' })
  const gate = host.hold()
  const options = { headers: { 'idempotency-key': 'clone-1' } }
  const accepted = await create({ name: 'slow', git_url: source }, options)
  await gate.held
  const refused = assertProblem(await create({ name: 'slow', git_url: source }), 'operation-in-progress')
  assert.deepEqual(
    [refused.request_id, refused.event_cursor],
    [at(accepted.body, 'request_id'), at(accepted.body, 'event_cursor')],
  )
  assert.deepEqual((await create({ name: 'slow', git_url: source }, options)).body, accepted.body)
  gate.release()
  assert.equal((await city.outcome(accepted)).type, 'request.result.rig.create')
  const replayed = await create({ name: 'slow', git_url: source }, options)
  assert.equal(replayed.status, 202)
  assert.deepEqual(replayed.body, accepted.body)
  await city.api.call('DELETE', `${city.base}/rigs/slow`)
})

test('a city that stops in the middle ends the request, and nothing is left', async () => {
  const beta = await createCity(running.server, 'beta')
  const { source } = host.repository('stopped', { a: 'b' })
  const gate = host.hold()
  const accepted = await create({ name: 'stopped', git_url: source }, {}, beta)
  await gate.held
  assert.equal((await beta.post('/stop')).status, 200)
  gate.release()
  await beta.post('/start')
  const again = await cityAgain(running.server, 'beta')
  const { type, payload } = await again.outcome(accepted)
  assert.deepEqual([type, payload.error_code], ['request.failed', 'city_stopped'])
  await eventually('nothing is left', () =>
    leftovers(again).length === 0 && !existsSync(join(again.dir, 'rigs/stopped')) ? true : undefined,
  )
  assertProblem(await again.get('/rigs/stopped'), 'rig-not-found')
})

test('a clone survives the end of the supervisor in the middle, with one end', async () => {
  await using slow = await startGitServer(join(scratch.path, 'slow'))
  const { source } = slow.repository('phoenix', { a: 'b' })
  const first = await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${slow.host}"]\n` })
  try {
    const omega = await createCity(first.server, 'omega')
    const gate = slow.hold()
    const accepted = await create({ name: 'phoenix', git_url: source }, {}, omega)
    await gate.held
    await first.server.kill('SIGKILL')
    gate.release()
    // As a request that has ended, with a crash before it could clean up.
    mkdirSync(join(omega.dir, '.svc/runtime/rig-create/req-000000000000000000000000'), { recursive: true })
    await using second = await runAgain(first.server.home)
    const again = await cityAgain(second.server, 'omega')
    const { type, payload } = await again.outcome(accepted)
    assert.equal(type, 'request.result.rig.create', JSON.stringify(payload))
    const ends = (await again.events('request.*')).filter((event) => event.payload.request_id === payload.request_id)
    assert.equal(ends.length, 1)
    assert.equal(asMap((await again.get('/rigs/phoenix')).body).path, join(omega.dir, 'rigs/phoenix'))
    assert.deepEqual(leftovers(again), [])
    assert.equal((await again.events('rig.created')).length, 1)
  } finally {
    await first[Symbol.asyncDispose]()
  }
})
