/** The life of cities against a real supervisor (spec §3, §4; decisions 17–21). */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  adoptCity,
  createCity,
  getCity,
  getCityStatus,
  listCities,
  patchCity,
  restartCity,
  startCity,
  stopCity,
  unregisterCity,
} from '../../src/contract/cities.ts'
import { listCityEvents, listEvents } from '../../src/contract/events.ts'
import { type Api, assertProblem, eventually } from '../support/http.ts'
import { cityIs, cityItem, emit, newCity, outcome, type Running, run, runAgain, succeeds } from '../support/running.ts'
import { openStream } from '../support/sse.ts'
import { snapshot } from '../support/tree.ts'

const allEvents = async (api: Api, city: string) =>
  (await api.ask(listEvents, `/v0/events?city=${city}&order=asc&limit=1000`)).items
const ownTypes = async (api: Api, city: string) =>
  (await api.ask(listCityEvents, `/v0/city/${city}/events?order=asc&limit=1000`)).items.map(({ type }) => type)

/** Adopts; fails where it is registered already. */
async function adopt(api: Api, body: { readonly path: string; readonly name?: string }) {
  const accepted = await api.ask(adoptCity, '/v0/cities', { body })
  assert.ok('request_id' in accepted, JSON.stringify(accepted))
  return accepted
}

describe('cities', { concurrency: 4 }, () => {
  let running: Running | undefined
  let names = 0
  const world = () => running ?? assert.fail('not started')
  const unique = () => `c${++names}`
  const someCity = async () => {
    const name = unique()
    await newCity(world().api, world().work, name)
    return name
  }
  before(async () => {
    running = await run()
    await newCity(running.api, running.work, 'alpha')
  })
  after(() => running?.[Symbol.asyncDispose]())

  test('the home of the user is no city, and one inside another city says so when it is made', async () => {
    const { api, work, server } = world()
    const home = join(server.home, '..')
    const created = assertProblem(await api.post('/v0/city', { dir: home }), 'validation-failed', /home/)
    assert.equal(created.errors?.[0]?.location, 'body.dir')
    assertProblem(await api.post('/v0/cities', { path: home }), 'validation-failed', /home/)
    const outer = await someCity()
    const name = unique()
    const accepted = await api.ask(createCity, '/v0/city', {
      body: { dir: join(work, outer, name), provider: 'shell' },
    })
    await succeeds(api, accepted)
    const made = (await allEvents(api, name)).find(({ type }) => type === 'request.result.city.create')
    assert.equal(made?.payload['inside'], join(work, outer))
  })

  test('a city whose directory is deleted while it runs says so at once', async () => {
    const { api, work } = world()
    const name = await someCity()
    rmSync(join(work, name), { recursive: true, force: true, maxRetries: 5 })
    const gone = `city directory is missing: ${join(work, name)}`
    assert.equal((await cityItem(api, name))?.error, gone)
  })

  test('a city that is registered and cannot start is not taken for one that is being made', async () => {
    const { api, work } = world()
    const name = await someCity()
    await api.ask(stopCity, `/v0/city/${name}/stop`)
    rmSync(join(work, name), { recursive: true })
    await outcome(api, (await api.ask(startCity, `/v0/city/${name}/start`)).request_id)
    await cityIs(api, name, 'init_failed')
    assertProblem(
      await api.post('/v0/city', { dir: join(work, name) }),
      'city-already-initialized',
      `conflict: ${join(work, name)} is registered already, as the city ${name}, which is init_failed`,
    )
  })

  test('a new city is scaffolded and registered before the 202, and usable when its terminal event is seen', async () => {
    const { api, work } = world()
    const name = unique()
    const dir = join(work, 'deep', 'er', name)
    const accepted = await api.ask(createCity, '/v0/city', { body: { dir, provider: 'shell' } })
    assert.ok(existsSync(join(dir, 'city.toml')))
    assert.ok(existsSync(join(dir, '.svc', 'city.db')))
    assert.ok(await cityItem(api, name), 'listed from the 202 on')
    assert.match(accepted.request_id, /^req-[0-9a-f]{24}$/)
    await using stream = await openStream(api, `/v0/events/stream?after_cursor=${accepted.event_cursor}`)
    const done = await stream.next(({ envelope }) => envelope.payload['request_id'] === accepted.request_id)
    assert.equal(done.envelope.type, 'request.result.city.create')
    assert.deepEqual(done.envelope.payload, { request_id: accepted.request_id, name, path: dir })
    const item = await cityItem(api, name)
    assert.equal(item?.running, true)
    assert.equal(item?.status, 'running')
    const detail = await api.ask(getCity, `/v0/city/${name}`)
    assert.equal(detail.provider, 'shell')
    assert.equal(detail.path, dir)
    const text = readFileSync(join(dir, 'city.toml'), 'utf8')
    assert.doesNotMatch(text, /\[session\]/)
    assert.match(readFileSync(join(dir, '.svc', 'site.toml'), 'utf8'), new RegExp(`workspace_name = "${name}"`))
    const request = await outcome(api, accepted.request_id)
    assert.equal(request.event_cursor, accepted.event_cursor)
    const terminals = (await allEvents(api, name)).filter(
      ({ payload }) => payload['request_id'] === accepted.request_id,
    )
    assert.equal(terminals.length, 1)
  })

  test('a directory relative to the home of the user, a start command and a bootstrap profile are kept', async () => {
    const { api, work } = world()
    const name = unique()
    const body = { dir: `relative/${name}`, start_command: 'sleep 1000', bootstrap_profile: 'k8s-cell' }
    await succeeds(api, await api.ask(createCity, '/v0/city', { body }))
    assert.match(readFileSync(join(work, 'relative', name, 'city.toml'), 'utf8'), /start_command = "sleep 1000"/)
    assert.match(
      readFileSync(join(work, 'relative', name, '.svc', 'site.toml'), 'utf8'),
      /bootstrap_profile = "k8s-cell"/,
    )
  })

  test('a directory that holds other files becomes a city without any of them changing', async () => {
    const { api, work } = world()
    const name = unique()
    const dir = join(work, name)
    mkdirSync(join(dir, 'agents'), { recursive: true })
    writeFileSync(join(dir, '.gitignore'), 'node_modules\n')
    writeFileSync(join(dir, 'agents', 'mine.txt'), 'mine')
    const before = snapshot(dir)
    await succeeds(api, await api.ask(createCity, '/v0/city', { body: { dir } }))
    const after = snapshot(dir)
    for (const [path, was] of Object.entries(before)) assert.equal(after[path], was, path)
  })

  test('a scaffold that fails half-way leaves a directory exactly as it was, and the name free', async () => {
    const { api, work } = world()
    const name = unique()
    const dir = join(work, name)
    mkdirSync(join(dir, 'docs'), { recursive: true })
    writeFileSync(join(dir, 'docs', 'kept.md'), 'kept')
    writeFileSync(join(dir, '.svc'), 'a file where a directory is needed')
    const before = snapshot(dir)
    const refused = await api.post('/v0/city', { dir })
    assertProblem(refused, 'validation-failed', /^validation_failed: body\.dir: /)
    assert.deepEqual(snapshot(dir), before)
    assert.equal(await cityItem(api, name), undefined)
    rmSync(join(dir, '.svc'))
    await succeeds(api, await api.ask(createCity, '/v0/city', { body: { dir } }))
  })

  test('nothing of a refused create is left, neither on disk nor in the log', async () => {
    const { api, work } = world()
    const head = (await api.ask(listEvents, '/v0/events?limit=1&type=city.created')).total
    const dir = join(work, 'never')
    assertProblem(await api.post('/v0/city', { dir, provider: 'claude-nobody' }), 'validation-failed')
    assertProblem(await api.post('/v0/city', { dir, name: 'alpha' }), 'city-name-taken')
    assert.equal(existsSync(dir), false)
    assert.ok((await api.ask(listEvents, '/v0/events?limit=1&type=city.created')).total >= head)
    assert.deepEqual(await allEvents(api, 'never'), [])
  })

  test('a link to a directory and the directory are one place', async () => {
    const { api, work } = world()
    const name = await someCity()
    symlinkSync(join(work, name), join(work, `${name}-link`))
    const refused = await api.post('/v0/city', { dir: join(work, `${name}-link`) })
    assertProblem(refused, 'city-already-initialized', `conflict: city already initialized at ${join(work, name)}`)
    const same = await api.ask(adoptCity, '/v0/cities', { body: { path: join(work, `${name}-link`) } })
    assert.ok('name' in same && same.name === name)
  })

  test('an unregistered city leaves its directory as it is and can be adopted again, with its log', async () => {
    const { api, work } = world()
    const name = await someCity()
    const dir = join(work, name)
    const seq = await emit(api, name, 'kept.event')
    const before = Object.keys(snapshot(dir)).filter((path) => !path.startsWith('.svc/city.db'))
    const accepted = await api.ask(unregisterCity, `/v0/city/${name}/unregister`)
    const gone = await api.post(`/v0/city/${name}/unregister`)
    assertProblem(gone, 'city-not-found', `not_found: city not registered with supervisor: ${name}`)
    await succeeds(api, accepted)
    assert.equal(await cityItem(api, name), undefined)
    assert.deepEqual(
      Object.keys(snapshot(dir)).filter((path) => !path.startsWith('.svc/city.db')),
      before,
    )
    assertProblem(
      await api.get(`/v0/city/${name}`),
      'city-not-found',
      `not_found: city not found or not running: ${name}`,
    )
    assertProblem(
      await api.post('/v0/city', { dir }),
      'city-already-initialized',
      `conflict: city already initialized at ${dir}`,
    )
    await succeeds(api, await adopt(api, { path: dir }))
    const { items } = await api.ask(listCityEvents, `/v0/city/${name}/events?type=kept.event`)
    assert.deepEqual(
      items.map((item) => item.seq),
      [seq],
    )
    const created = (await allEvents(api, name)).filter(({ type }) => type === 'city.created')
    assert.equal(created.length, 2)
  })

  test('a city that is adopted while it is being unregistered is asked for again in a moment, not refused for good', async () => {
    const { api, work } = world()
    const name = unique()
    const dir = join(work, name)
    const release = join(work, `${name}-may-end`)
    const stubborn = `trap 'until [ -e ${release} ]; do sleep 0.05; done; exit' TERM HUP; touch ${release}-up; while :; do sleep 0.05; done`
    mkdirSync(dir)
    writeFileSync(
      join(dir, 'city.toml'),
      `[daemon]
shutdown_timeout = "1h"
[session]
provider = "subprocess"
[providers.stubborn]
command = "sh"
args = ["-c", ${JSON.stringify(stubborn)}]
io = "pipes"
prompt_mode = "omit"
[[agent]]
name = "last"
provider = "stubborn"
min_active_sessions = 1
`,
    )
    await succeeds(api, await adopt(api, { path: dir }))
    await eventually('its agent runs', () => (existsSync(`${release}-up`) ? true : undefined))
    const leaving = await api.ask(unregisterCity, `/v0/city/${name}/unregister`)
    const other = join(work, `${name}-other`)
    mkdirSync(other)
    writeFileSync(join(other, 'city.toml'), '')
    for (const body of [{ path: dir }, { path: dir, name: `${name}-new` }, { path: other, name }]) {
      const refused = assertProblem(
        await api.post('/v0/cities', body),
        'operation-in-progress',
        `conflict: the city ${name} at ${dir} is being unregistered`,
      )
      assert.equal(refused.request_id, leaving.request_id)
    }
    writeFileSync(release, '')
    await succeeds(api, leaving)
    await succeeds(api, await adopt(api, { path: dir }))
  })

  test('an adopted city has the name of the request, else of its files; a copy is refused until it is its own', async () => {
    const { api, work } = world()
    const name = await someCity()
    const copy = join(work, `${name}-copy`)
    cpSync(join(work, name), copy, { recursive: true })
    assertProblem(
      await api.post('/v0/cities', { path: copy }),
      'city-name-taken',
      `conflict: a city named ${name} is registered at ${join(work, name)}`,
    )
    const refused = await api.post('/v0/cities', { path: copy, name: `${name}-copy` })
    assertProblem(refused, 'city-name-taken', /is a copy of the city .* remove \.svc\/city\.db from the copy/)
    for (const file of ['city.db', 'city.db-wal', 'city.db-shm']) rmSync(join(copy, '.svc', file), { force: true })
    await succeeds(api, await adopt(api, { path: copy, name: `${name}-copy` }))
    assert.equal((await cityItem(api, `${name}-copy`))?.path, copy)
    assertProblem(
      await api.post('/v0/cities', { path: copy, name: 'third' }),
      'city-name-taken',
      `conflict: ${copy} is registered as ${name}-copy; unregister it to give it another name`,
    )
    // The name in the files beats the name of the directory.
    await succeeds(api, await api.ask(unregisterCity, `/v0/city/${name}/unregister`))
    renameSync(join(work, name), join(work, `${name}-moved`))
    await succeeds(api, await adopt(api, { path: join(work, `${name}-moved`) }))
    assert.equal((await cityItem(api, name))?.path, join(work, `${name}-moved`))
  })

  test('a stopped city stays listed, its routes are gone, and start brings it back', async () => {
    const { api } = world()
    const name = await someCity()
    const stopped = await api.ask(stopCity, `/v0/city/${name}/stop`, { body: { timeout: '10s' } })
    assert.deepEqual(stopped, {
      status: 'stopped',
      city: name,
      already_stopped: false,
      sessions_stopped: 0,
      forced: false,
    })
    const item = await cityItem(api, name)
    assert.equal(item?.running, false)
    assert.equal(item?.status, 'stopped')
    for (const path of [
      '',
      '/status',
      '/health',
      '/events',
      '/events/stream',
      '/readiness',
      '/nothing/here',
      '/events/',
    ]) {
      assertProblem(
        await api.get(`/v0/city/${name}${path}`),
        'city-not-found',
        `not_found: city not found or not running: ${name}`,
      )
    }
    for (const path of ['/svc', '/svc/', '/svc/web/x?y=1']) {
      assertProblem(
        await api.get(`/v0/city/${name}${path}`),
        'city-not-found',
        'not_found: city not found or not running',
      )
    }
    const again = await api.ask(stopCity, `/v0/city/${name}/stop`, { body: { force: true } })
    assert.equal(again.already_stopped, true)
    const accepted = await api.ask(startCity, `/v0/city/${name}/start`)
    const request = await succeeds(api, accepted)
    assert.equal(request.operation, 'city.start')
    assert.deepEqual(await ownTypes(api, name), ['city.started', 'city.stopped', 'city.started'])
    for (const path of ['/svc/web/x', '/svc/web']) {
      assertProblem(await api.get(`/v0/city/${name}${path}`), 'service-not-found', 'not_found: service not found: web')
    }
  })

  test('starting a running city succeeds at once and starts nothing again; restart stops and starts it', async () => {
    const { api } = world()
    const name = await someCity()
    await succeeds(api, await api.ask(startCity, `/v0/city/${name}/start`))
    assert.deepEqual(await ownTypes(api, name), ['city.started'])
    const restarted = await succeeds(api, await api.ask(restartCity, `/v0/city/${name}/restart`))
    assert.equal(restarted.operation, 'city.restart')
    const { items } = await api.ask(listCityEvents, `/v0/city/${name}/events?order=asc`)
    assert.deepEqual(
      items.map(({ type }) => type),
      ['city.started', 'city.stopped', 'city.started'],
    )
    assert.equal(items[1]?.payload['reason'], 'restart')
    // Restarting a stopped city is starting it.
    await api.ask(stopCity, `/v0/city/${name}/stop`)
    await succeeds(api, await api.ask(restartCity, `/v0/city/${name}/restart`))
    assert.equal((await cityItem(api, name))?.running, true)
  })

  test('whatever comes in between, every accepted request ends exactly once and the last wish wins', async () => {
    const { api } = world()
    const name = await someCity()
    const accepted: string[] = []
    for (let round = 0; round < 6; round++) {
      const answers = await Promise.all([
        api.post(`/v0/city/${name}/restart`),
        api.post(`/v0/city/${name}/start`),
        api.post(`/v0/city/${name}/stop`),
        api.post(`/v0/city/${name}/restart`),
      ])
      for (const { status, body } of answers) {
        if (status === 202 && typeof body === 'object' && body !== null && 'request_id' in body)
          accepted.push(String(body.request_id))
      }
    }
    await api.ask(stopCity, `/v0/city/${name}/stop`)
    for (const id of accepted) await outcome(api, id)
    assert.equal((await cityItem(api, name))?.status, 'stopped')
    const events = await allEvents(api, name)
    for (const id of accepted) {
      const ends = events.filter(({ payload }) => payload['request_id'] === id)
      assert.equal(ends.length, 1, `${id}: ${JSON.stringify(ends)}`)
    }
    const own = events.map(({ type }) => type).filter((type) => type === 'city.started' || type === 'city.stopped')
    for (const [index, type] of own.entries())
      assert.equal(type, index % 2 === 0 ? 'city.started' : 'city.stopped', own.join(' '))
  })

  test('a create that is unregistered at once ends once: in success where it was up already, else as unregistered', async () => {
    const { api, work } = world()
    for (let round = 0; round < 5; round++) {
      const name = unique()
      const created = await api.ask(createCity, '/v0/city', { body: { dir: join(work, name) } })
      const left = await api.ask(unregisterCity, `/v0/city/${name}/unregister`)
      await succeeds(api, left)
      const request = await outcome(api, created.request_id)
      if (request.status === 'failed') assert.equal(request.error_code, 'unregistered')
      assert.equal(await cityItem(api, name), undefined)
      const events = await api.ask(listEvents, `/v0/events?city=${name}&order=asc&limit=1000`)
      for (const { request_id: id } of [created, left]) {
        assert.equal(events.items.filter(({ payload }) => payload['request_id'] === id).length, 1)
      }
      assert.equal(
        events.items.findLast(({ type }) => type.startsWith('request.'))?.payload['request_id'],
        left.request_id,
      )
    }
  })

  test('PATCH suspends and resumes, under the ETag that the caller has seen, and emits only changes', async () => {
    const { api } = world()
    const name = await someCity()
    const path = `/v0/city/${name}`
    const first = await api.get(path)
    const etag = String(first.headers.etag)
    const suspended = await api.call('PATCH', path, { body: { suspended: true }, headers: { 'if-match': etag } })
    assert.equal(suspended.status, 200)
    assert.notEqual(suspended.headers.etag, etag)
    assert.equal((await api.ask(getCity, path)).suspended, true)
    assert.equal((await api.ask(getCityStatus, `${path}/status`)).suspended, true)
    assertProblem(
      await api.call('PATCH', path, { body: { suspended: false }, headers: { 'if-match': etag } }),
      'precondition-failed',
    )
    await api.ask(patchCity, path, { body: { suspended: true }, headers: { 'if-match': '*' } })
    await api.ask(patchCity, path, { body: {} })
    const merge = { bytes: '{"suspended":false}', headers: { 'content-type': 'application/merge-patch+json' } }
    assert.equal((await api.ask(patchCity, path, merge)).suspended, false)
    assert.equal((await api.get(path)).headers.etag, etag)
    assert.deepEqual(await ownTypes(api, name), ['city.started', 'city.suspended', 'city.resumed'])
    const { items } = await api.ask(listCityEvents, `${path}/events?type=city.suspended`)
    assert.deepEqual(items[0]?.payload, {})
    assert.equal((await cityItem(api, name))?.running, true)
    assertProblem(await api.call('PATCH', path, { body: { suspended: 'no' } }), 'validation-failed')
  })

  test('a file that is not valid makes a city init_failed with the place of the mistake, and a fixed one is tried at once', {
    timeout: 60_000,
  }, async () => {
    const { api, work } = world()
    const name = await someCity()
    const file = join(work, name, 'city.toml')
    const good = readFileSync(file, 'utf8')
    await succeeds(api, await api.ask(unregisterCity, `/v0/city/${name}/unregister`))
    // Nothing to fall back on: a city that never had a valid configuration here.
    for (const one of ['city.db', 'city.db-wal', 'city.db-shm']) rmSync(join(work, name, '.svc', one), { force: true })
    writeFileSync(file, `${good}\n[workspace\nprovider = 3\n`)
    const accepted = await adopt(api, { path: join(work, name), name })
    const request = await outcome(api, accepted.request_id)
    assert.equal(request.status, 'failed')
    assert.equal(request.error_code, 'city_config_failed')
    const failed = await cityIs(api, name, 'init_failed')
    assert.equal(failed.running, false)
    assert.ok(Number(failed.attempts) >= 1)
    assert.ok(Date.parse(failed.retry_at ?? '') > 0)
    assert.match(failed.issues?.[0]?.location ?? '', /^city\.toml:\d+:\d+$/)
    assert.match(failed.error ?? '', /^city\.toml:\d+:\d+: /)
    const failure = (await allEvents(api, name)).find(({ payload }) => payload['request_id'] === accepted.request_id)
    assert.equal(failure?.type, 'request.failed')
    assert.equal(failure?.payload['retrying'], true)
    writeFileSync(file, good)
    const item = await cityIs(api, name, 'running')
    assert.equal(item.issues, undefined)
    assert.equal(item.error, undefined)
    const started = (await allEvents(api, name)).map(({ type }) => type)
    assert.ok(started.includes('city.start_failed') || started.includes('city.started'))
  })

  test('a city that cannot start can be stopped, started and unregistered', { timeout: 60_000 }, async () => {
    const { api, work } = world()
    const name = await someCity()
    await succeeds(api, await api.ask(unregisterCity, `/v0/city/${name}/unregister`))
    for (const one of ['city.db', 'city.db-wal', 'city.db-shm']) rmSync(join(work, name, '.svc', one), { force: true })
    writeFileSync(join(work, name, 'city.toml'), 'nonsense = [')
    await outcome(api, (await adopt(api, { path: join(work, name), name })).request_id)
    await cityIs(api, name, 'init_failed')
    const start = await outcome(api, (await api.ask(startCity, `/v0/city/${name}/start`)).request_id)
    assert.equal(start.status, 'failed')
    assert.equal(start.error_code, 'city_config_failed')
    assert.equal((await api.ask(stopCity, `/v0/city/${name}/stop`)).already_stopped, false)
    assert.equal((await cityItem(api, name))?.status, 'stopped')
    await outcome(api, (await api.ask(startCity, `/v0/city/${name}/start`)).request_id)
    await succeeds(api, await api.ask(unregisterCity, `/v0/city/${name}/unregister`))
    assert.equal(await cityItem(api, name), undefined)
  })

  test('a directory that disappears makes the city init_failed, and running again when it is back', {
    timeout: 90_000,
  }, async () => {
    const { api, work } = world()
    const name = await someCity()
    const seq = await emit(api, name, 'before.move')
    await using stream = await openStream(api, `/v0/city/${name}/events/stream`)
    renameSync(join(work, name), join(work, `${name}-away`))
    const refused = await api.post(`/v0/city/${name}/events`, { type: 'while.away', actor: 'test' })
    assert.ok(refused.status === 503 || refused.status === 404, refused.text)
    if (refused.status === 503) assertProblem(refused, 'unavailable', /^unavailable: the store of city "/)
    const failed = await cityIs(api, name, 'init_failed')
    assert.equal(failed.error, `city directory is missing: ${join(work, name)}`)
    await stream.ended
    const list = await api.ask(listEvents, '/v0/events?limit=1000')
    assert.equal(list.partial, true)
    assert.ok(
      list.partial_errors?.some((text) => text.startsWith(`${name}: `)),
      JSON.stringify(list.partial_errors),
    )
    assert.equal(existsSync(join(work, name)), false, 'nothing is written where it was')
    renameSync(join(work, `${name}-away`), join(work, name))
    await succeeds(api, await api.ask(startCity, `/v0/city/${name}/start`))
    const { items } = await api.ask(listCityEvents, `/v0/city/${name}/events?type=before.move`)
    assert.deepEqual(
      items.map((item) => item.seq),
      [seq],
    )
    assert.equal((await api.ask(listEvents, `/v0/events?city=${name}`)).partial, undefined)
  })

  test('many creates at once for one directory and one name make one city', async () => {
    const { api, work } = world()
    const [dir, name] = [join(work, unique()), unique()]
    const sameDir = await Promise.all(Array.from({ length: 10 }, () => api.post('/v0/city', { dir })))
    assert.equal(sameDir.filter(({ status }) => status === 202).length, 1)
    for (const { status } of sameDir) assert.ok(status === 202 || status === 409, String(status))
    const sameName = await Promise.all(
      Array.from({ length: 10 }, (_, at) => api.post('/v0/city', { dir: join(work, `${name}-${at}`), name })),
    )
    assert.equal(sameName.filter(({ status }) => status === 202).length, 1)
    for (const answer of sameName) if (answer.status !== 202) assertProblem(answer, 'city-name-taken')
    assert.equal(sameName.filter((_, at) => existsSync(join(work, `${name}-${at}`))).length, 1)
  })

  test('the list is by name, and shows every city whatever its state', async () => {
    const { api } = world()
    const name = await someCity()
    await api.ask(stopCity, `/v0/city/${name}/stop`)
    const { items, total } = await api.ask(listCities, '/v0/cities?limit=1000')
    const listed = items.map((item) => item.name)
    assert.deepEqual(listed, [...listed].sort())
    assert.equal(total, items.length)
    assert.ok(listed.includes(name))
  })
})

test('what was asked of cities holds over a clean end and over a crash, and the next start says which it was', async () => {
  await using first = await run()
  const { home } = first.server
  for (const name of ['awake', 'asleep', 'calm']) await newCity(first.api, first.work, name)
  await first.api.ask(stopCity, '/v0/city/asleep/stop')
  await first.api.ask(patchCity, '/v0/city/calm', { body: { suspended: true } })
  let { server } = first
  for (const [signal, exit] of [
    ['SIGTERM', 'clean'],
    ['SIGKILL', 'crash'],
  ] as const) {
    await server.kill(signal)
    const { api, server: next } = await runAgain(home)
    server = next
    try {
      await cityIs(api, 'awake', 'running')
      await cityIs(api, 'calm', 'running')
      assert.equal((await cityItem(api, 'asleep'))?.status, 'stopped')
      assert.equal((await api.ask(getCity, '/v0/city/calm')).suspended, true)
      const { items } = await api.ask(listEvents, '/v0/events?type=supervisor.started&limit=1')
      assert.equal(items[0]?.payload['previous_exit'], exit)
    } catch (error) {
      await server.kill('SIGKILL')
      throw error
    }
    api.close()
  }
  await server.kill('SIGTERM')
})

test('a host whose shell is not there refuses a city before anything is written', async () => {
  await using running = await run({ env: { SHELL: '/nonexistent/shell' } })
  const { api, work } = running
  const dir = join(work, 'alpha')
  assertProblem(
    await api.post('/v0/city', { dir }),
    'provider-not-ready',
    /^provider_not_ready: provider shell is not ready: not_installed/,
  )
  assert.equal(existsSync(dir), false)
  assert.equal((await api.ask(listCities, '/v0/cities')).total, 0)
  // A command of one's own needs no provider.
  await succeeds(api, await api.ask(createCity, '/v0/city', { body: { dir, start_command: 'cat' } }))
  await eventually('it runs', async () => ((await cityItem(api, 'alpha'))?.running ? true : undefined))
})
