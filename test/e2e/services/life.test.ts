/** Services as they live: started, looked at, tried again, restarted, suspended, declared otherwise and no more. */
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { request as begin } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { stopCity } from '../../../src/contract/cities.ts'
import { importCached } from '../../support/cached-pack.ts'
import { isRunning } from '../../support/city-processes.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { cityIs, newCity, outcome, type Running, run, runAgain, succeeds } from '../../support/running.ts'
import { declaration, newServiceCity, ServiceCity } from '../../support/service-city.ts'

/** Asks its process itself, where it listens. */
function ask(pid: number, path: string): Promise<string> {
  const environ = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  const of = (name: string) => environ.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1)
  const socketPath = of('SVC_SERVICE_SOCKET')
  return new Promise((resolve, reject) => {
    const where = socketPath === undefined ? { host: of('HOST'), port: of('PORT') } : { socketPath }
    const request = begin({ ...where, path, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.once('end', () => resolve(text)).once('error', reject)
    })
    request.once('error', reject).end()
  })
}

const pidOf = async (city: ServiceCity, name = 'page'): Promise<number> => {
  const { pid } = await city.is('ready', name)
  assert.ok(pid !== undefined)
  return pid
}

const statesIn = async (city: ServiceCity): Promise<readonly string[]> => {
  const { body } = await city.api.get(`${city.base}/events?type=service.state_changed&limit=1000&order=asc`)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  return items.map(
    (item) => `${at(item, 'payload', 'from')} → ${at(item, 'payload', 'to')}: ${at(item, 'payload', 'reason')}`,
  )
}

describe('services of a city', { concurrency: 4 }, () => {
  let running: Running
  before(async () => {
    running = await run()
  })
  after(() => running[Symbol.asyncDispose]())

  test('one that is declared runs, is ready, and has its places', async () => {
    const city = await newServiceCity(running, 'places', declaration())
    const status = await city.is('ready')
    const root = join(city.dir, '.svc', 'services', 'page')
    assert.equal(status.state_root, root)
    assert.equal(status.mount_path, '/svc/page')
    assert.equal(status.url, `${running.server.url}/v0/city/places/svc/page`)
    assert.equal(status.restarts, 0)
    const modes = ['data', 'run', 'logs', 'secrets'].map((part) =>
      (statSync(join(root, part)).mode & 0o777).toString(8),
    )
    assert.deepEqual(modes, ['750', '750', '750', '700'])
    assert.deepEqual(await statesIn(city), ['stopped → starting: first_start', 'starting → ready: healthy'])
  })

  test('it listens on a port where it wants one', async () => {
    const city = await newServiceCity(running, 'ports', declaration({ listen: 'port' }))
    const pid = await pidOf(city)
    assert.equal(await ask(pid, '/pid'), String(pid))
  })

  test('its environment is what it needs, what is declared, and nothing of ours', async () => {
    const city = await newServiceCity(running, 'env', declaration({ env: { COLOUR: 'green', FROM: '$HOME' } }))
    const { api } = city
    assert.equal(
      (await api.call('PUT', `${city.base}/services/page/secrets/password`, { body: { value: 'correct-horse' } }))
        .status,
      200,
    )
    const env: Record<string, string> = JSON.parse(await ask(await pidOf(city), '/env'))
    assert.equal(env['COLOUR'], 'green')
    assert.equal(env['FROM'], env['HOME'])
    const plain = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|LC_.*|XDG_.*|COLOUR|FROM)$/
    const ours = Object.keys(env).filter((name) => !plain.test(name))
    assert.deepEqual(ours.sort(), [
      'SVC_BIN',
      'SVC_CITY',
      'SVC_CITY_PATH',
      'SVC_HOME',
      'SVC_SERVICE_NAME',
      'SVC_SERVICE_RUN',
      'SVC_SERVICE_SECRETS_DIR',
      'SVC_SERVICE_SOCKET',
      'SVC_SERVICE_STATE_ROOT',
      'SVC_SERVICE_URL_PREFIX',
    ])
    assert.doesNotMatch(JSON.stringify(env), /correct-horse/)
    assert.equal(env['SVC_SERVICE_URL_PREFIX'], '/v0/city/env/svc/page')
    assert.equal(readFileSync(join(env['SVC_SERVICE_SECRETS_DIR'] ?? '', 'password'), 'utf8'), 'correct-horse')
  })

  test('one that ends is started again, and says why it was away', async () => {
    const city = await newServiceCity(running, 'ends', declaration())
    const pid = await pidOf(city)
    await ask(pid, '/exit?code=3').catch(() => undefined)
    const away = await eventually('it is seen', async () => {
      const status = await city.get()
      return status.state === 'degraded' || status.restarts > 0 ? status : undefined
    })
    if (away.state === 'degraded') assert.equal(away.message, 'it exited with status 3')
    const again = await city.is('ready')
    assert.notEqual(again.pid, pid)
    assert.deepEqual((await statesIn(city)).slice(2), ['ready → degraded: process_exited', 'degraded → ready: healthy'])
  })

  test('one that answers badly three times is started again', async () => {
    const city = await newServiceCity(running, 'sick', declaration())
    const pid = await pidOf(city)
    await ask(pid, '/sick')
    await eventually('it is another one', async () => {
      const status = await city.get()
      return status.state === 'ready' && status.pid !== pid ? true : undefined
    })
    assert.deepEqual((await statesIn(city)).slice(2), ['ready → degraded: unhealthy', 'degraded → ready: healthy'])
  })

  test('one that does not listen within half a minute is degraded, and tried again', async () => {
    const city = await newServiceCity(running, 'mute', declaration({ command: ['sleep', '100000'] }))
    const status = await eventually(
      'it is given up for now',
      async () => {
        const found = await city.get()
        return found.state === 'degraded' ? found : undefined
      },
      120_000,
    )
    assert.equal(status.reason, 'not_ready')
    assert.match(status.message ?? '', /^it was not ready within 30 s: connect ENOENT /)
    const answer = await city.api.get(`${city.base}/svc/page/`)
    assertProblem(answer, 'unavailable', 'unavailable: service page is degraded: not_ready')
    assert.ok(Number(answer.headers['retry-after']) <= 5)
  })

  test('one that cannot be started degrades alone, and nothing is told at each try', async () => {
    const bad = declaration({ name: 'bad', command: ['/no/such/program'] })
    const city = await newServiceCity(running, 'alone', bad, declaration())
    await city.is('ready')
    const status = await eventually('it was tried twice', async () => {
      const found = await city.get('bad')
      return found.restarts > 0 ? found : undefined
    })
    assert.equal(status.state, 'degraded')
    assert.equal(status.reason, 'start_failed')
    assert.match(status.message ?? '', /there is no program \/no\/such\/program/)
    const { body } = await city.api.get(`${city.base}/status`)
    assert.deepEqual(at(body, 'services'), { total: 2, ready: 1, degraded: 1 })
    const told = (await statesIn(city)).filter((line) => line.includes('start_failed'))
    assert.deepEqual(told, ['starting → degraded: start_failed'])
    await city.declare(declaration({ name: 'bad' }), declaration())
    await city.is('ready', 'bad')
  })

  test('a restart is another process, never two, and takes what it has begun along', async () => {
    const city = await newServiceCity(running, 'again', declaration({ env: { SERVICE_CHILD: '1' } }))
    const before = await pidOf(city)
    const answer = await city.api.post(`${city.base}/services/page/restart`)
    assert.equal(at(answer.body, 'state'), 'ready', answer.text)
    assert.notEqual(at(answer.body, 'pid'), before)
    assert.equal(city.doubled(), '')
    // Itself, and its child.
    assert.equal(city.processes().length, 2)
  })

  test('one that does not want to end is ended all the same', async () => {
    const city = await newServiceCity(running, 'stubborn', declaration({ env: { SERVICE_STUBBORN: '1' } }))
    await city.is('ready')
    const answer = await city.api.post(`${city.base}/services/page/suspend`)
    assert.equal(at(answer.body, 'state'), 'suspended', answer.text)
    await city.none()
  })

  test('another declaration restarts it; one that is not of its process does not, nor does a reload', async () => {
    const city = await newServiceCity(running, 'declared', declaration(), declaration({ name: 'other' }))
    const [pid, other] = [await pidOf(city), await pidOf(city, 'other')]
    await city.declare(declaration({ direct: true, more: 'first_byte_timeout = "5s"' }), declaration({ name: 'other' }))
    assert.equal((await city.get()).publish_mode, 'direct')
    assert.equal(await pidOf(city), pid)
    await city.declare(declaration({ env: { A: 'b' } }), declaration({ name: 'other' }))
    await eventually('it is another one', async () => ((await city.is('ready')).pid !== pid ? true : undefined))
    assert.equal(await pidOf(city, 'other'), other)
    assert.equal(city.doubled(), '')
  })

  test('one that is declared no more ends, and comes back as a new one', async () => {
    const city = await newServiceCity(running, 'gone', declaration({ env: { SERVICE_CHILD: '1' } }))
    await city.is('ready')
    await city.declare()
    assertProblem(
      await city.api.get(`${city.base}/services/page`),
      'service-not-found',
      'not_found: service not found: page',
    )
    await city.none()
    await city.declare(declaration())
    assert.equal((await city.is('ready')).restarts, 0)
    assert.equal(existsSync(city.stateFile('lives')), true)
  })

  test('one that comes back while the one before it still ends is there at once, and begins when that has ended', async () => {
    const city = await newServiceCity(running, 'back', declaration({ env: { SERVICE_CHILD: '1' } }))
    await city.is('ready')
    await city.declare()
    await city.declare(declaration())
    assert.equal((await city.get()).restarts, 0)
    await city.is('ready')
    assert.deepEqual((await statesIn(city)).slice(2), [
      'ready → stopping: removed',
      'stopping → stopped: removed',
      'stopped → starting: first_start',
      'starting → ready: healthy',
    ])
  })

  test('a suspended one stays so over a restart of its city, until it is resumed', async () => {
    const city = await newServiceCity(running, 'asleep', declaration())
    await city.is('ready')
    const { api, base } = city
    assert.equal(at((await api.post(`${base}/services/page/suspend`)).body, 'state'), 'suspended')
    await city.none()
    assertProblem(await api.post(`${base}/services/page/restart`), 'conflict-wrong-state')
    await succeeds(api, { request_id: String(at((await api.post(`${base}/restart`)).body, 'request_id')) })
    const after = await city.get()
    assert.deepEqual([after.state, after.reason], ['suspended', 'suspended'])
    assert.equal(at((await api.post(`${base}/services/page/resume`)).body, 'state'), 'ready')
    assert.equal(city.lives().length, 2)
  })

  test('the stop of a city ends its services, and its start begins them anew', async () => {
    const city = await newServiceCity(running, 'stops', declaration({ env: { SERVICE_CHILD: '1' } }))
    const pid = await pidOf(city)
    await city.api.ask(stopCity, `${city.base}/stop`)
    await city.none()
    await succeeds(city.api, { request_id: String(at((await city.api.post(`${city.base}/start`)).body, 'request_id')) })
    assert.notEqual(await pidOf(city), pid)
    assert.deepEqual((await statesIn(city)).slice(2), [
      'ready → stopping: city_stopped',
      'stopping → stopped: city_stopped',
      'stopped → starting: city_started',
      'starting → ready: healthy',
    ])
  })

  test('a service of a pack runs where the pack is, once the pack is trusted', async () => {
    const name = 'packed'
    const dir = await newCity(running.api, running.work, name)
    const city = new ServiceCity(running.api, name, dir)
    const commit = 'c'.repeat(40)
    const pack = {
      name: 'tools',
      commit,
      files: { 'pack.toml': `[pack]\nname = "tools"\nschema = 2\n${declaration()}` },
    }
    await importCached(running.server.home, dir, pack)
    await outcome(city.api, String(at((await city.api.post(`${city.base}/config/reload`)).body, 'request_id')))
    const held = await city.is('degraded')
    assert.equal(held.reason, 'untrusted_pack')
    assert.equal(held.pack, 'tools')
    assert.equal(existsSync(city.stateFile('lives')), false)
    const trusted = await city.api.post(`${city.base}/packs/tools/trust`, { commit })
    assert.equal(trusted.status, 200, trusted.text)
    await city.is('ready')
  })

  test('what it writes is read by offset, over its restarts, without its secrets', async () => {
    const city = await newServiceCity(running, 'logs', declaration())
    const { api, base } = city
    const first = await pidOf(city)
    await api.call('PUT', `${base}/services/page/secrets/password`, { body: { value: 'correct horse' } })
    await ask(first, '/say?text=the%20correct%20horse%20is%20here')
    await api.post(`${base}/services/page/restart`)
    const second = await pidOf(city)
    const all = `life ${first}\nthe ************* is here\nlife ${second}\n`
    await eventually('all of it is there', async () =>
      at((await api.get(`${base}/services/page/log`)).body, 'text') === all ? true : undefined,
    )
    for (let offset = 0; offset < all.length; offset++) {
      const { body } = await api.get(`${base}/services/page/log?offset=${offset}&limit=7`)
      assert.equal(at(body, 'text'), all.slice(offset, offset + 7))
    }
    const waiting = api.get(`${base}/services/page/log?offset=${all.length}&wait=30s`)
    await ask(second, '/say?text=more')
    assert.equal(at((await waiting).body, 'text'), 'more\n')
  })

  test('a secret is in its file, and in no answer, no event, no log and no error', async () => {
    const city = await newServiceCity(running, 'secrets', declaration())
    await city.is('ready')
    const { api, base } = city
    const path = `${base}/services/page/secrets`
    const value = 'correct-horse-battery'
    const answers = [
      await api.call('PUT', `${path}/password`, { body: { value } }),
      await api.get(path),
      await api.call('PUT', `${path}/password`, { body: { value: 7, other: value } }),
      await api.call('PUT', `${path}/password`, { body: { valeu: value } }),
      await api.call('PUT', `${path}/password`, {
        bytes: `{"value": ${value}}`,
        headers: { 'content-type': 'application/json' },
      }),
      await api.call('PUT', `${path}/password`, {
        bytes: `"${value}"`,
        headers: { 'content-type': 'application/json' },
      }),
      await api.call('PUT', `${path}/..`, { body: { value } }),
      await api.call('PUT', `${path}/.hidden`, { body: { value } }),
      await api.call('PUT', `${path}/a%2Fb`, { body: { value } }),
      await api.call('PUT', `${path}/big`, { body: { value: value.repeat(10_000) } }),
      await api.get(`${base}/events?limit=1000`),
      await api.get(`${base}/services/page`),
      await api.get(`${base}/config`),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 422, 422, 400, 422, 422, 422, 422, 422, 200, 200, 200],
    )
    for (const { text } of answers) assert.doesNotMatch(text, /correct-horse/)
    assert.doesNotMatch(readFileSync(join(running.server.home, 'supervisor.log'), 'utf8'), /correct-horse/)
    const file = join(city.dir, '.svc', 'services', 'page', 'secrets', 'password')
    assert.equal(readFileSync(file, 'utf8'), value)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.equal((await api.call('DELETE', `${path}/password`)).status, 200)
    assert.equal(existsSync(file), false)
  })
})

describe('services and their supervisor', { concurrency: 2 }, () => {
  test('a supervisor that ends in order leaves them running, and the next one has them again', async () => {
    await using first = await run()
    const city = await newServiceCity(first, 'alpha', declaration())
    const pid = await pidOf(city)
    assert.equal(await first.server.kill('SIGTERM'), 0)
    assert.equal(await ask(pid, '/pid'), String(pid))
    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const again = new ServiceCity(second.api, 'alpha', city.dir)
    await again.is('ready')
    assert.equal((await again.get()).pid, pid)
    assert.equal((await statesIn(again)).length, 2)
  })

  test('what is declared no more while no supervisor runs ends at its next start', async () => {
    await using first = await run()
    const city = await newServiceCity(first, 'alpha', declaration({ env: { SERVICE_CHILD: '1' } }))
    await city.is('ready')
    await first.server.kill('SIGKILL')
    city.save()
    await using second = await runAgain(first.server.home)
    await city.none()
    await cityIs(second.api, 'alpha', 'running')
    const again = new ServiceCity(second.api, 'alpha', city.dir)
    assertProblem(await again.api.get(`${again.base}/services/page`), 'service-not-found')
  })

  test('one that an older store of its city does not know is ended before another one is started', async () => {
    await using first = await run()
    const dir = await newCity(first.api, first.work, 'alpha')
    await first.server.kill('SIGTERM')
    const store = join(dir, '.svc', 'city.db')
    copyFileSync(store, `${store}.old`)
    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const city = new ServiceCity(second.api, 'alpha', dir)
    await city.declare(declaration({ env: { SERVICE_CHILD: '1' } }))
    const pid = await pidOf(city)
    await second.server.kill('SIGKILL')
    for (const end of ['', '-wal', '-shm']) rmSync(`${store}${end}`, { force: true })
    copyFileSync(`${store}.old`, store)
    await using third = await runAgain(first.server.home)
    await cityIs(third.api, 'alpha', 'running')
    const again = new ServiceCity(third.api, 'alpha', dir)
    assert.notEqual(await pidOf(again), pid)
    assert.equal(isRunning(pid), false)
    assert.equal(again.doubled(), '')
  })
})
