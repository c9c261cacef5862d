/** Disks that are full, read-only or gone: refused with 503, nothing acknowledged lost, nobody else affected, back by itself. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { call, eventually, listAll } from '../support/crash-client.ts'
import { fill, mounted } from '../support/small-disk.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const RECOVERY_MS = 60_000

async function createCity(server: RunningSupervisor, name: string, dir: string): Promise<void> {
  const { status, body } = await call(server.url, 'POST', '/v0/city', { body: { dir, name } })
  assert.equal(status, 202, JSON.stringify(body))
  await running(server, name)
}

const running = (server: RunningSupervisor, name: string, deadlineMs = RECOVERY_MS) =>
  eventually(
    `${name} runs`,
    async () => ((await call(server.url, 'GET', `/v0/city/${name}`)).status === 200 ? true : undefined),
    deadlineMs,
  )

const emit = (server: RunningSupervisor, city: string, marker: string) =>
  call(server.url, 'POST', `/v0/city/${city}/events`, {
    body: { type: 'load.a', actor: 'test', payload: { marker, padding: 'x'.repeat(2_000) } },
  })

/** Emits until the city refuses; the markers that were acknowledged. */
async function emitUntilRefused(server: RunningSupervisor, city: string, prefix: string) {
  for (let i = 0, acknowledged: string[] = []; ; i++) {
    const marker = `${prefix}-${i}`
    const { status, body } = await emit(server, city, marker)
    if (status !== 201) return { acknowledged, status, body }
    acknowledged.push(marker)
    assert.ok(i < 5_000, 'the disk never got full')
  }
}

async function markers(server: RunningSupervisor, city: string): Promise<readonly string[]> {
  const events = await listAll(server.url, `/v0/city/${city}/events?order=asc&type=load.a`)
  return events.map(({ payload }) => String(Object(payload).marker))
}

const health = async (server: RunningSupervisor, path = '/health') =>
  String((await call(server.url, 'GET', path)).body['status'])

const whenWell = (server: RunningSupervisor) =>
  eventually('health is ok again', async () => ((await storageCheck(server)) === 'ok' ? true : undefined), RECOVERY_MS)

async function storageCheck(server: RunningSupervisor): Promise<unknown> {
  const { checks } = (await call(server.url, 'GET', '/health')).body
  const all: unknown[] = Array.isArray(checks) ? checks : []
  return Object(all.find((one) => Object(one).name === 'storage')).status
}

/** Takes away what a disk with a little room let through. */
async function unregisterAll(server: RunningSupervisor, work: string): Promise<void> {
  for (const { name } of await listAll(server.url, '/v0/cities')) {
    if (String(name).startsWith('more')) await call(server.url, 'POST', `/v0/city/${String(name)}/unregister`)
  }
  await eventually('the unregistered city is gone', async () =>
    (await listAll(server.url, '/v0/cities')).every(({ name }) => !String(name).startsWith('more')) ? true : undefined,
  )
  rmSync(join(work, 'more'), { recursive: true, force: true })
}

// Each has a supervisor and a disk of its own.
suite('disks', { concurrency: 2 }, () => {
  test('a city on a full disk refuses writes, keeps what it acknowledged, and recovers when there is room', {
    timeout: 180_000,
  }, async (t) => {
    await using server = await startSupervisor()
    using disk = mounted(t, join(server.work, 'small'), 4)
    if (disk === undefined) return
    await createCity(server, 'tight', join(disk.path, 'tight'))
    await createCity(server, 'roomy', join(server.work, 'roomy'))
    const first = await emit(server, 'tight', 'before')
    assert.equal(first.status, 201)

    const release = fill(disk.path)
    const { acknowledged, status, body } = await emitUntilRefused(server, 'tight', 'full')
    assert.equal(status, 503, JSON.stringify(body))
    assert.match(String(body['detail']), /^unavailable: /)
    assert.equal(body['code'], 'unavailable')
    assert.equal(await health(server), 'degraded')
    assert.equal(await health(server, '/v0/city/tight/health'), 'degraded', 'and the city says so itself')
    assert.equal(await health(server, '/v0/city/roomy/health'), 'ok')
    assert.equal((await emit(server, 'roomy', 'other')).status, 201, 'another city is not affected')
    assert.deepEqual(await markers(server, 'tight'), ['before', ...acknowledged], 'reads go on')
    const patched = await call(server.url, 'PATCH', '/v0/city/tight', { body: { suspended: true } })
    assert.equal(patched.status, 503, JSON.stringify(patched.body))

    release()
    await whenWell(server)
    assert.equal(await health(server, '/v0/city/tight/health'), 'ok')
    assert.equal((await emit(server, 'tight', 'after')).status, 201)

    await server.kill('SIGKILL')
    await using again = await startSupervisor({ home: server.home })
    await running(again, 'tight')
    assert.deepEqual(await markers(again, 'tight'), ['before', ...acknowledged, 'after'])
    const seqs = (await listAll(again.url, '/v0/city/tight/events?order=asc')).map(({ seq }) => seq)
    assert.deepEqual(
      seqs,
      seqs.map((_, index) => index + 1),
      'no gap where writes were refused',
    )
  })

  test('a create on a full disk is refused and leaves nothing behind; the same create works once there is room', {
    timeout: 120_000,
  }, async (t) => {
    await using server = await startSupervisor()
    using disk = mounted(t, join(server.work, 'small'), 4)
    if (disk === undefined) return
    const release = fill(disk.path)
    const dir = join(disk.path, 'late')
    const { status, body } = await call(server.url, 'POST', '/v0/city', { body: { dir } })
    assert.equal(status, 503, JSON.stringify(body))
    assert.match(String(body['detail']), /^unavailable: /)
    assert.equal(existsSync(dir), false, existsSync(dir) ? readdirSync(dir).join() : '')
    assert.equal((await call(server.url, 'GET', '/v0/cities')).body['total'], 0)
    release()
    await createCity(server, 'late', dir)
  })

  test('a city whose directory becomes immutable refuses writes and recovers when that ends', {
    timeout: 180_000,
  }, async (t) => {
    await using server = await startSupervisor()
    const dir = join(server.work, 'frozen')
    await createCity(server, 'frozen', dir)
    await createCity(server, 'free', join(server.work, 'free'))
    assert.equal((await emit(server, 'frozen', 'before')).status, 201)
    const chattr = (flag: string) => spawnSync('chattr', ['-R', flag, join(dir, '.svc')])
    if (chattr('+i').status !== 0) return t.skip('chattr +i does not work on this file system')
    try {
      const { acknowledged, status, body } = await emitUntilRefused(server, 'frozen', 'immutable')
      assert.equal(status, 503, JSON.stringify(body))
      assert.match(String(body['detail']), /^unavailable: /)
      assert.deepEqual(acknowledged, [])
      assert.equal(await health(server), 'degraded')
      assert.equal((await emit(server, 'free', 'other')).status, 201)
    } finally {
      chattr('-i')
    }
    await whenWell(server)
    assert.equal((await emit(server, 'frozen', 'after')).status, 201)
    assert.deepEqual(await markers(server, 'frozen'), ['before', 'after'])
  })

  test('a city whose directory is moved away stops, keeps its registration, and is back when the directory is', {
    timeout: 180_000,
  }, async () => {
    await using server = await startSupervisor()
    const dir = join(server.work, 'nomad')
    await createCity(server, 'nomad', dir)
    await createCity(server, 'settled', join(server.work, 'settled'))
    assert.equal((await emit(server, 'nomad', 'before')).status, 201)
    renameSync(dir, `${dir}-elsewhere`)
    const refused = await emit(server, 'nomad', 'lost')
    assert.equal(refused.status, 503, JSON.stringify(refused.body))
    assert.match(String(refused.body['detail']), /^unavailable: /)
    assert.equal(await health(server), 'degraded')
    const failed = await eventually(
      'the city says that its directory is missing',
      async () => {
        const cities = await listAll(server.url, '/v0/cities')
        return cities.find(({ name, status }) => name === 'nomad' && status === 'init_failed')
      },
      RECOVERY_MS,
    )
    assert.match(String(failed['error']), /directory is missing/)
    assert.equal(await health(server), 'degraded', 'still, while it is failed')
    assert.equal((await emit(server, 'nomad', 'lost')).status, 404)
    assert.equal((await emit(server, 'settled', 'other')).status, 201)
    const { body } = await call(server.url, 'GET', '/v0/events?limit=1')
    assert.match(String(body['event_cursor']), /nomad:[1-9]/, 'its position is not forgotten')

    renameSync(`${dir}-elsewhere`, dir)
    await running(server, 'nomad')
    await whenWell(server)
    assert.equal((await emit(server, 'nomad', 'after')).status, 201)
    assert.deepEqual(await markers(server, 'nomad'), ['before', 'after'])
    const stops = await listAll(server.url, '/v0/city/nomad/events?type=city.stopped')
    assert.deepEqual(
      stops.map(({ payload }) => Object(payload).reason),
      ['directory_missing'],
    )
  })

  test('a supervisor whose own home is full refuses what it must record; cities go on, and it recovers', {
    timeout: 180_000,
  }, async (t) => {
    await using server = await startSupervisor()
    using disk = mounted(t, join(server.work, 'small'), 32)
    if (disk === undefined) return
    await using cramped = await startSupervisor({ home: join(disk.path, 'home') })
    // The home's parent is the small disk: the cities go elsewhere.
    await createCity(cramped, 'steady', join(server.work, 'steady'))
    const release = fill(disk.path)
    let tries = 0
    const refused = await eventually(
      'a create is refused',
      async () => {
        const answer = await call(cramped.url, 'POST', '/v0/city', {
          body: { dir: join(server.work, 'more'), name: `more${tries++}` },
        })
        if (answer.status === 202) await unregisterAll(cramped, server.work)
        return answer.status === 202 ? undefined : answer
      },
      RECOVERY_MS,
    )
    assert.equal(refused.status, 503, JSON.stringify(refused.body))
    assert.match(String(refused.body['detail']), /^unavailable: /)
    assert.equal(await health(cramped), 'degraded')
    assert.equal((await emit(cramped, 'steady', 'still')).status, 201)
    release()
    await whenWell(cramped)
    await createCity(cramped, 'finally', join(server.work, 'finally'))
  })

  test('a supervisor can be stopped while its disk is full, says so at its next start, and starts once there is room', {
    timeout: 180_000,
  }, async (t) => {
    await using server = await startSupervisor()
    using disk = mounted(t, join(server.work, 'small'), 3)
    if (disk === undefined) return
    const home = join(disk.path, 'home')
    await using cramped = await startSupervisor({ home })
    const release = fill(disk.path)
    // Each of them is a line for the log, which has no room either.
    for (let count = 0; count < 20; count++) await call(cramped.url, 'POST', '/v0/city', { body: { dir: '' } })
    assert.equal(await cramped.kill('SIGTERM'), 0)
    await assert.rejects(startSupervisor({ home }), /error: .*the disk of .*supervisor\.db is full\nhint: make room/)
    release()
    await using again = await startSupervisor({ home })
    assert.equal(await health(again), 'ok')
  })

  test('a supervisor.db that was emptied or lost its tables is refused by name, not taken for a new one', {
    timeout: 180_000,
  }, async () => {
    await using server = await startSupervisor()
    await createCity(server, 'kept', join(server.work, 'kept'))
    assert.equal(await server.kill('SIGTERM'), 0)
    const path = join(server.home, 'supervisor.db')
    const whole = readFileSync(path)
    writeFileSync(path, '')
    await assert.rejects(
      startSupervisor({ home: server.home }),
      /error: .*supervisor\.db is empty, though this home was in use/,
    )
    assert.equal(readFileSync(path).length, 0, 'it is left as it is')
    writeFileSync(path, whole)
    const { default: BetterSqlite3 } = await import('better-sqlite3')
    const db = new BetterSqlite3(path)
    db.exec('DROP TABLE cities')
    db.close()
    await assert.rejects(
      startSupervisor({ home: server.home }),
      /error: .*supervisor\.db is damaged: it has no table cities/,
    )
    writeFileSync(path, whole)
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
    await using again = await startSupervisor({ home: server.home })
    await running(again, 'kept')
  })

  test('a city.db that was emptied or removed is refused by name, not begun anew, and its backup brings the city back', {
    timeout: 120_000,
  }, async () => {
    await using server = await startSupervisor()
    for (const name of ['emptied', 'removed']) await createCity(server, name, join(server.work, name))
    await emit(server, 'emptied', 'kept')
    assert.equal(await server.kill('SIGTERM'), 0)
    const fileOf = (name: string) => join(server.work, name, '.svc', 'city.db')
    const whole = readFileSync(fileOf('emptied'))
    writeFileSync(fileOf('emptied'), '')
    rmSync(fileOf('removed'))
    await using again = await startSupervisor({ home: server.home })
    for (const [name, what] of [
      ['emptied', 'empty'],
      ['removed', 'missing'],
    ] as const) {
      const city = await eventually(`${name} has failed`, async () =>
        (await listAll(again.url, '/v0/cities')).find((one) => one['name'] === name && one['status'] === 'init_failed'),
      )
      assert.match(String(city['error']), new RegExp(`city\\.db is ${what}, though the city was in use: put a backup`))
    }
    assert.equal(readFileSync(fileOf('emptied')).length, 0, 'it is left as it is')
    assert.ok(!existsSync(fileOf('removed')), 'none is made in its place')
    writeFileSync(fileOf('emptied'), whole)
    await call(again.url, 'POST', '/v0/city/emptied/restart')
    await running(again, 'emptied')
    assert.deepEqual(await markers(again, 'emptied'), ['kept'])
  })

  test('a damaged city.db, and one of a newer version, stop their own city only', { timeout: 120_000 }, async () => {
    await using server = await startSupervisor()
    for (const name of ['sound', 'damaged', 'newer']) await createCity(server, name, join(server.work, name))
    assert.equal(await server.kill('SIGTERM'), 0)
    writeFileSync(
      join(server.work, 'damaged', '.svc', 'city.db'),
      'not a database at all, whatever its name says'.repeat(200),
    )
    const { default: BetterSqlite3 } = await import('better-sqlite3')
    const db = new BetterSqlite3(join(server.work, 'newer', '.svc', 'city.db'))
    db.pragma('user_version = 999')
    db.close()
    await using again = await startSupervisor({ home: server.home })
    await running(again, 'sound')
    assert.equal((await emit(again, 'sound', 'well')).status, 201)
    for (const [name, why] of [
      ['damaged', /not a database|malformed/],
      ['newer', /schema 999.*newer version/],
    ] as const) {
      const city = await eventually(`${name} has failed`, async () =>
        (await listAll(again.url, '/v0/cities')).find((one) => one['name'] === name && one['status'] === 'init_failed'),
      )
      assert.match(String(city['error']), why)
    }
    assert.equal(await health(again), 'degraded')
    const events = await call(again.url, 'GET', '/v0/events')
    assert.equal(events.status, 200)
    assert.equal(events.body['partial'], true, 'the logs that cannot be read are named')
  })
})
