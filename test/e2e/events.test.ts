/** Lists, pages, blocking reads and idempotency keys against a real supervisor (decisions 5–7; sheet 01 §§1.6–1.8, sheet 02 §4). */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createCity, getCityStatus, listCities, stopCity } from '../../src/contract/cities.ts'
import { listCityEvents, listEvents } from '../../src/contract/events.ts'
import { listRequests } from '../../src/contract/requests.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { openStore } from '../../src/kernel/store.ts'
import { CITY_SCHEMA } from '../../src/supervisor/families.ts'
import { at } from '../support/document.ts'
import { HealthWatch } from '../support/health.ts'
import { type Api, assertProblem, RawConnection } from '../support/http.ts'
import { cityIs, emit, newCity, outcome, type Running, run, runAgain, succeeds } from '../support/running.ts'
import { openStream } from '../support/sse.ts'

interface Page<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly next_cursor?: string
}

const keyOf = ({ log, seq }: { readonly log: string; readonly seq: number }) => `${log} ${seq}`

/** Every page of a walk, in order. */
async function walk<T>(read: (cursor: string) => Promise<Page<T>>): Promise<Page<T>[]> {
  const pages: Page<T>[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page: Page<T> = await read(cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`)
    pages.push(page)
    cursor = page.next_cursor
    assert.ok(pages.length < 2_000, 'a walk ends')
  }
  return pages
}

describe('lists', { concurrency: 4 }, () => {
  let running: Running | undefined
  let names = 0
  const world = () => running ?? assert.fail('not started')
  const someCity = async () => {
    const name = `e${++names}`
    await newCity(world().api, world().work, name)
    return name
  }
  before(async () => {
    running = await run()
    await newCity(running.api, running.work, 'alpha')
  })
  after(() => running?.[Symbol.asyncDispose]())

  for (const order of ['asc', 'desc'] as const) {
    test(`a walk through a city's events, ${order}, sees each one that was there at its start exactly once while others come`, async () => {
      const { api } = world()
      const city = await someCity()
      for (let count = 0; count < 60; count++) await emit(api, city, count % 3 === 0 ? 'w.third' : 'w.other')
      const head = Number((await api.get(`/v0/city/${city}/status`)).headers['x-svc-index'])
      for (const [filter, expected] of [
        ['', head],
        ['&type=w.third', 20],
        ['&type=w.*&actor=test', 60],
      ] as const) {
        const pages = await walk(async (cursor) => {
          await emit(api, city, 'w.third')
          return api.ask(listCityEvents, `/v0/city/${city}/events?limit=7&order=${order}${filter}${cursor}`)
        })
        const seqs = pages.flatMap(({ items }) => items.map(({ seq }) => seq))
        assert.equal(new Set(seqs).size, seqs.length)
        assert.deepEqual(
          seqs,
          [...seqs].sort((a, b) => (order === 'asc' ? a - b : b - a)),
        )
        const there = seqs.filter((seq) => seq <= head).length
        assert.equal(there, expected, filter)
        for (const { items, next_cursor } of pages) assert.equal(items.length === 7 || next_cursor === undefined, true)
      }
    })

    test(`a walk through the events of all cities, ${order}, sees each one that was there at its start exactly once`, async () => {
      const { api } = world()
      const [one, two] = [await someCity(), await someCity()]
      const sent = new Set<string>()
      for (let count = 0; count < 40; count++) {
        const city = count % 2 === 0 ? one : two
        sent.add(`${city}:${await emit(api, city, 'm.step')}`)
      }
      const pages = await walk(async (cursor) => {
        await emit(api, one, 'm.step')
        return api.ask(listEvents, `/v0/events?type=m.step&limit=9&order=${order}${cursor}`)
      })
      const all = pages.flatMap(({ items }) => items.filter(({ city }) => city === one || city === two))
      const keys = all.map(({ city, seq }) => `${city}:${seq}`)
      assert.equal(new Set(keys).size, keys.length, 'nothing twice')
      for (const key of sent) assert.ok(keys.includes(key), `${key} is missing`)
      for (const city of [one, two]) {
        const seqs = all.filter((item) => item.city === city).map(({ seq }) => seq)
        assert.deepEqual(
          seqs,
          [...seqs].sort((a, b) => (order === 'asc' ? a - b : b - a)),
          'per log in order',
        )
      }
    })
  }

  test('cities and requests are paged too, completely and without doubles', async () => {
    const { api } = world()
    for (let count = 0; count < 4; count++) await someCity()
    const before = (await api.ask(listCities, '/v0/cities?limit=1000')).items.map(({ name }) => name)
    const cities = await walk((cursor) => api.ask(listCities, `/v0/cities?limit=2${cursor}`))
    const walked = cities.flatMap(({ items }) => items.map(({ name }) => name))
    assert.deepEqual(walked, [...new Set(walked)].sort())
    for (const name of before) assert.ok(walked.includes(name))
    const known = (await api.ask(listRequests, '/v0/requests?limit=1000')).items.map(({ request_id }) => request_id)
    const pages = await walk((cursor) => api.ask(listRequests, `/v0/requests?limit=2${cursor}`))
    const ids = pages.flatMap(({ items }) => items.map(({ request_id }) => request_id))
    assert.equal(new Set(ids).size, ids.length)
    for (const id of known) assert.ok(ids.includes(id))
    const times = pages.flatMap(({ items }) => items.map(({ created_at }) => created_at))
    assert.deepEqual(times, [...times].sort().reverse())
  })

  test('total is that of the filtered set, the same on every page; a cursor belongs to its list', async () => {
    const { api } = world()
    const city = await someCity()
    for (let count = 0; count < 12; count++)
      await emit(api, city, count % 2 === 0 ? 't.even' : 't.odd', { subject: `s${count % 3}` })
    const total = async (query: string) =>
      (await api.ask(listCityEvents, `/v0/city/${city}/events?${query}&limit=5`)).total
    assert.equal(await total(''), 13)
    assert.equal(await total('type=t.even'), 6)
    assert.equal(await total('type=t.even&type=t.odd'), 12)
    assert.equal(await total('type=t.*'), 12)
    assert.equal(await total('type=never'), 0)
    assert.equal(await total('subject=s0'), 4)
    assert.equal(await total('subject=s0&type=t.even'), 2)
    assert.equal(await total('since=1h&type=t.*'), 12)
    assert.equal(await total('until=1h'), 0)
    assert.equal(await total('after_seq=10'), 3)
    const pages = await walk((cursor) => api.ask(listCityEvents, `/v0/city/${city}/events?type=t.*&limit=5${cursor}`))
    assert.deepEqual(
      pages.map((page) => page.total),
      [12, 12, 12],
    )
    assert.equal((await api.ask(listEvents, `/v0/events?city=${city}&type=t.odd`)).total, 6)
    const { next_cursor } = await api.ask(listCityEvents, `/v0/city/${city}/events?limit=1`)
    assertProblem(await api.get(`/v0/events?cursor=${encodeURIComponent(next_cursor ?? '')}`), 'invalid-cursor')
    assertProblem(await api.get(`/v0/cities?cursor=${encodeURIComponent(next_cursor ?? '')}`), 'invalid-cursor')
  })

  test('filters of the list of all cities: city, types, times, and what comes after a cursor', async () => {
    const { api, work } = world()
    const city = await someCity()
    const { event_cursor: cursor } = await api.ask(listEvents, '/v0/events?limit=1')
    await emit(api, city, 'g.one')
    await emit(api, 'alpha', 'g.two')
    const after = await api.ask(listEvents, `/v0/events?after_cursor=${encodeURIComponent(cursor)}&type=g.*&order=asc`)
    assert.deepEqual(
      after.items.map(({ type, city: tag }) => [type, tag]),
      [
        ['g.one', city],
        ['g.two', 'alpha'],
      ],
    )
    const mine = await api.ask(listEvents, `/v0/events?city=${city}&order=asc`)
    assert.deepEqual(mine.items.map(({ type }) => type).sort(), [
      'city.created',
      'city.started',
      'g.one',
      'request.result.city.create',
    ])
    const own = await api.ask(listEvents, '/v0/events?city=__supervisor__')
    assert.ok(own.items.every((item) => item.type.startsWith('supervisor.') || item.city !== '__supervisor__'))
    assert.equal((await api.ask(listEvents, '/v0/events?city=nobody')).total, 0)
    // A stopped city's events stay in the list.
    await api.ask(stopCity, `/v0/city/${city}/stop`)
    assert.equal((await api.ask(listEvents, `/v0/events?city=${city}&type=g.one`)).total, 1)
    assert.ok(work)
  })

  test('log and seq name an event among those of all cities, which its city does not', async () => {
    const { api } = world()
    const city = await someCity()
    await emit(api, city, 'k.one')
    const pages = await walk((cursor) => api.ask(listEvents, `/v0/events?limit=200&order=asc${cursor}`))
    const all = pages.flatMap(({ items }) => items)
    const keys = all.map(keyOf)
    assert.equal(new Set(keys).size, keys.length)
    const about = all.filter((event) => event.city === city)
    assert.ok(about.some(({ log, type }) => log === '__supervisor__' && type === 'city.created'))
    assert.ok(about.some(({ log, type }) => log === city && type === 'k.one'))
    await using stream = await openStream(api, '/v0/events/stream?after_cursor=0')
    await stream.until(() => keys.every((key) => stream.events.some(({ envelope }) => key === keyOf(envelope))))
    const own = await api.ask(listCityEvents, `/v0/city/${city}/events?limit=1000`)
    for (const { seq, type } of own.items)
      assert.equal(stream.events.find(({ envelope }) => keyOf(envelope) === `${city} ${seq}`)?.envelope.type, type)
  })

  test('X-SVC-Index is the head before the read: no event of the page is beyond it', async () => {
    const { api } = world()
    const city = await someCity()
    let over = false
    const writer = (async () => {
      while (!over) await emit(api, city, 'x.tick')
    })()
    for (let count = 0; count < 30; count++) {
      const answer = await api.get(`/v0/city/${city}/events?limit=3`)
      const newest = Number(at(answer.body, 'items', 0, 'seq'))
      assert.ok(newest <= Number(answer.headers['x-svc-index']))
    }
    over = true
    await writer
  })

  test('a blocking read waits for an event that matters to it, and for nothing else', async () => {
    const { api } = world()
    const city = await someCity()
    const path = `/v0/city/${city}/events?type=b.wanted`
    const index = Number((await api.get(path)).headers['x-svc-index'])
    let answered = false
    const waiting = api.get(`${path}&index=${index}&wait=1m`).then((answer) => {
      answered = true
      return answer
    })
    await emit(api, city, 'b.other')
    await emit(api, city, 'b.other')
    assert.equal(answered, false, 'an event of another type does not wake it')
    const seq = await emit(api, city, 'b.wanted')
    const answer = await waiting
    assert.equal(at(answer.body, 'items', 0, 'seq'), seq)
    assert.ok(Number(answer.headers['x-svc-index']) >= seq)
    // What has happened already is answered at once.
    assert.equal((await api.get(`${path}&index=${index}&wait=1m`)).status, 200)
    const status = api.get(`/v0/city/${city}/status?index=${seq}&wait=1m`)
    await emit(api, city, 'b.any')
    assert.ok(Number((await status).headers['x-svc-index']) > seq)
  })

  test('a blocking read that nothing happens for is 200 when its time is up', async () => {
    const { api } = world()
    const city = await someCity()
    const index = Number((await api.get(`/v0/city/${city}/status`)).headers['x-svc-index'])
    const began = performance.now()
    const answer = await api.get(`/v0/city/${city}/events?index=${index}&wait=400ms`)
    assert.ok(performance.now() - began >= 390)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['x-svc-index'], String(index))
    assert.equal(
      (await api.get(`/v0/city/${city}/events?wait=1ms`)).status,
      200,
      'without an index, wait means nothing',
    )
    assertProblem(
      await api.get(`/v0/city/${city}/events?index=0&wait=2m1s`),
      'validation-failed',
      'validation_failed: query.wait: must be at most 2m',
    )
    assertProblem(
      await api.get(`/v0/city/${city}/events?index=0&wait=0s`),
      'validation-failed',
      'validation_failed: query.wait: must be more than 0',
    )
  })

  test('a client that gives up its blocking read leaves nothing behind, and a city that stops ends it', async () => {
    const { api } = world()
    const city = await someCity()
    const quiet = `/v0/city/${city}/events?index=99999&wait=2m`
    for (let count = 0; count < 50; count++) {
      using connection = new RawConnection(api.url)
      await connection.send(`GET ${quiet} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    }
    await emit(api, city, 'a.still')
    const { events } = await api.ask(getCityStatus, `/v0/city/${city}/status`)
    const waiting = api.get(`/v0/city/${city}/events?type=never&index=${events.head_seq}&wait=30s`)
    await api.ask(getCityStatus, `/v0/city/${city}/status`)
    const began = performance.now()
    await api.ask(stopCity, `/v0/city/${city}/stop`)
    const answer = await waiting
    assert.equal(answer.status, 404, answer.text)
    assertProblem(answer, 'city-not-found', `not_found: city not found or not running: ${city}`)
    assert.ok(performance.now() - began < 10_000, 'not after the whole wait')
  })

  test('an Idempotency-Key replays the first answer, per path; another body is refused; a failure frees it', async () => {
    const { api, work } = world()
    const [one, two] = [await someCity(), await someCity()]
    const headers = { 'idempotency-key': 'the same' }
    const body = { type: 'i.key', actor: 'test', payload: { a: 1, b: 2 } }
    const first = await api.post(`/v0/city/${one}/events`, body, { headers })
    for (let count = 0; count < 3; count++) {
      const again = await api.post(`/v0/city/${one}/events`, body, { headers })
      assert.equal(again.status, 201)
      assert.deepEqual(again.body, first.body)
      assert.notEqual(again.headers['x-svc-request-id'], first.headers['x-svc-request-id'])
    }
    assertProblem(
      await api.post(`/v0/city/${one}/events`, { ...body, actor: 'else' }, { headers }),
      'idempotency-mismatch',
    )
    assert.equal((await api.post(`/v0/city/${two}/events`, { ...body, actor: 'else' }, { headers })).status, 201)
    assert.equal((await api.ask(listCityEvents, `/v0/city/${one}/events?type=i.key`)).total, 1)
    // Keys of 1 to 255 characters.
    assertProblem(
      await api.post(`/v0/city/${one}/events`, body, { headers: { 'idempotency-key': '' } }),
      'validation-failed',
    )
    assertProblem(
      await api.post(`/v0/city/${one}/events`, body, { headers: { 'idempotency-key': 'k'.repeat(256) } }),
      'validation-failed',
    )
    for (const key of ['k', 'k'.repeat(255)])
      assert.equal(
        (await api.post(`/v0/city/${one}/events`, body, { headers: { 'idempotency-key': key } })).status,
        201,
      )
    // A refused create leaves its key free, also for another body.
    const create = { 'idempotency-key': 'create' }
    assertProblem(
      await api.post('/v0/city', { dir: join(work, 'fresh'), name: 'alpha' }, { headers: create }),
      'city-name-taken',
    )
    const accepted = await api.ask(createCity, '/v0/city', { body: { dir: join(work, 'fresh') }, headers: create })
    const replay = await api.ask(createCity, '/v0/city', { body: { dir: join(work, 'fresh') }, headers: create })
    assert.deepEqual(replay, accepted)
    await outcome(api, accepted.request_id)
    assert.equal((await api.ask(listRequests, '/v0/requests?city=fresh')).total, 1)
  })
})

test('an event nested thousands deep, stored long ago, is listed like any other and stops no pager', async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'deep')
  await running.server.kill('SIGTERM')
  const path = join(running.work, 'deep', '.svc', 'city.db')
  const nested = `{"x":${'['.repeat(6_000)}${']'.repeat(6_000)}}`
  const old = openStore({ path, migrations: CITY_SCHEMA, owner: 'the test', clock: systemClock })
  await old.db.write((tx) => {
    old.log.appendCustom(tx, { type: 'old.deep', actor: 'test', payload: JSON.parse(nested) })
    old.log.appendCustom(tx, { type: 'old.flat', actor: 'test', payload: {} })
  })
  old.db.close()
  await using again = await runAgain(running.server.home)
  await cityIs(again.api, 'deep', 'running')
  for (const list of ['/v0/city/deep/events?type=old.*', '/v0/events?type=old.*']) {
    const answer = await fetch(`${again.server.url}${list}`)
    assert.equal(answer.status, 200)
    assert.ok((await answer.text()).includes(`"payload":${nested}`))
    assert.equal((await fetch(`${again.server.url}${list}&payload_match=x%3D%5B%5D`)).status, 200)
  }
})

test('/health is quick while lists of 400 large events are read, and a page ends at 8 MiB', async () => {
  await using running = await run()
  const { api, work } = running
  await newCity(api, work, 'large')
  const payload = { padding: 'x'.repeat(250_000) }
  for (let count = 0; count < 400; count += 20)
    await Promise.all(Array.from({ length: 20 }, () => emit(api, 'large', 'l.event', { payload })))
  await using watch = new HealthWatch(running.server.url)
  for (const list of ['/v0/city/large/events', '/v0/events']) {
    const pages = await walk(async (cursor) => {
      // Not parsed here: this process would be slower than the one that it measures.
      const text = await (await fetch(`${running.server.url}${list}?type=l.event&limit=1000${cursor}`)).text()
      const next_cursor = /"next_cursor":"([^"]+)"\}$/.exec(text.slice(-300))?.[1]
      const items = text.split('"type":"l.event"').slice(1)
      return { items, total: 0, ...(next_cursor === undefined ? {} : { next_cursor }) }
    })
    assert.equal(pages.flatMap(({ items }) => items).length, 400)
    assert.ok(pages.length >= 12, 'no page holds more than 8 MiB')
  }
  // One list alone took 1,500 ms.
  await watch.answers(750)
})

test('payload_match finds an event behind 1,100 others, in a city and over all of them', async () => {
  await using running = await run()
  const { api, work } = running
  await newCity(api, work, 'match')
  const seq = await emit(api, 'match', 'm.found', { payload: { bead: { issue_type: 'bug' } } })
  for (let count = 0; count < 1_100; count += 100)
    await Promise.all(
      Array.from({ length: 100 }, () => emit(api, 'match', 'm.other', { payload: { bead: { issue_type: 'task' } } })),
    )
  const inCity = (query: string) => api.ask(listCityEvents, `/v0/city/match/events?${query}`)
  const overAll = (query: string) => api.ask(listEvents, `/v0/events?${query}`)
  for (const list of [inCity, overAll]) {
    const found = await walk<{ readonly seq: number }>((cursor) =>
      list(`limit=10&payload_match=bead.issue_type%3Dbug${cursor}`),
    )
    assert.deepEqual(
      found.flatMap(({ items }) => items.map((event) => event.seq)),
      [seq],
    )
    assert.deepEqual((await list('payload_match=bead.issue_type%3Dbug&payload_match=none%3D1')).items, [])
  }
  assertProblem(await api.get('/v0/events?payload_match=nothing'), 'validation-failed')
})

test('keys, requests and events are the same after a clean end and after kill -9', async () => {
  await using running = await run()
  const { home } = running.server
  const headers = { 'idempotency-key': 'over restarts' }
  const body = { dir: join(running.work, 'alpha') }
  const accepted = await running.api.ask(createCity, '/v0/city', { body, headers })
  await succeeds(running.api, accepted)
  const event = { type: 'i.key', actor: 'test' }
  const emitted = await running.api.post('/v0/city/alpha/events', event, { headers })
  const state = async (api: Api) => ({
    create: await api.ask(createCity, '/v0/city', { body, headers }),
    request: await api.get(`/v0/requests/${accepted.request_id}`).then((answer) => answer.body),
    created: (await api.ask(listEvents, '/v0/events?type=city.created')).items,
  })
  const before = await state(running.api)
  let server = running.server
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await server.kill(signal)
    const { api, server: next } = await runAgain(home)
    server = next
    try {
      assert.deepEqual(await state(api), before)
      await cityIs(api, 'alpha', 'running')
      assert.deepEqual((await api.post('/v0/city/alpha/events', event, { headers })).body, emitted.body)
      const other = await api.post('/v0/city/alpha/events', { ...event, actor: 'x' }, { headers })
      assertProblem(other, 'idempotency-mismatch')
    } catch (error) {
      await server.kill('SIGKILL')
      throw error
    }
    api.close()
  }
  await server.kill('SIGTERM')
})
