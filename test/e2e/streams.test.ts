/** Server-sent events against a real supervisor: bytes, resume points, membership, order of subscription. */
import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { adoptCity, createCity, stopCity, unregisterCity } from '../../src/contract/cities.ts'
import { listCityEvents, listEvents } from '../../src/contract/events.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { asMap, at } from '../support/document.ts'
import { type Api, assertProblem, eventually, RawConnection } from '../support/http.ts'
import { cityIs, emit, newCity, type Running, run, runAgain, runHere, succeeds } from '../support/running.ts'
import { type EventFrame, openStream, type SseReader } from '../support/sse.ts'

const HOSTILE = [
  'line\nbreak',
  'carriage\rreturn',
  'both\r\n\r\nof them',
  'data: {}\n\nid: 99\nevent: event',
  '\u2028\u2029',
  '\u0000\u0001\u001f\u007f',
  'lone \ud800 high',
  'lone \udc00 low',
  '😀',
  ':comment',
  ' leading',
  '\ufeffbom',
  '</script>',
  '"\\',
]
const headOf = async (api: Api): Promise<string> => (await api.ask(listEvents, '/v0/events?limit=1')).event_cursor
const typesOf = (frames: readonly EventFrame[]) => frames.map(({ envelope }) => envelope.type)
const positions = (id: string) =>
  new Map(
    id
      .split(',')
      .map((entry) => [entry.slice(0, entry.lastIndexOf(':')), Number(entry.slice(entry.lastIndexOf(':') + 1))]),
  )

describe('streams', { concurrency: 4 }, () => {
  let running: Running | undefined
  let names = 0
  const world = () => running ?? assert.fail('not started')
  const unique = () => `s${++names}`
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

  test('a heartbeat comes after 15 s of a real clock', { timeout: 30_000 }, async () => {
    await using stream = await openStream(world().api, '/v0/city/alpha/events/stream?type=nothing.at.all')
    const opened = performance.now()
    await stream.until(() => stream.heartbeats.length > 0, 20_000)
    const waited = performance.now() - opened
    assert.ok(waited > 14_000, `after ${waited} ms`)
    assert.match(
      stream.heartbeats[0]?.text ?? '',
      /^id: \d+\nevent: heartbeat\ndata: \{"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"\}\n\n$/,
    )
    assert.deepEqual(stream.events, [])
  })

  test('frames are the same bytes live, replayed and on a bare socket', async () => {
    const { api } = world()
    const city = await someCity()
    const bare = `GET /v0/city/${city}/events/stream?type=bytes.* HTTP/1.1\r\nHost: localhost\r\n\r\n`
    using socket = await new RawConnection(api.url).send(bare)
    const head = await socket.until((text) => text.includes('\r\n\r\n'))
    assert.match(head, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(head, /\r\nContent-Type: text\/event-stream\r\n/)
    assert.match(head, /\r\nTransfer-Encoding: chunked\r\n/)
    await using live = await openStream(api, `/v0/city/${city}/events/stream?type=bytes.*`)
    await using tagged = await openStream(api, '/v0/events/stream?type=bytes.*')
    const seq = await emit(api, city, 'bytes.one', { subject: 'm-9', payload: { rig: '' } })
    const frame = await live.next()
    const { ts } = frame.envelope
    const expected = `id: ${seq}\nevent: event\ndata: {"seq":${seq},"type":"bytes.one","ts":"${ts}","actor":"test","subject":"m-9","payload":{"rig":""}}\n\n`
    assert.equal(frame.text, expected)
    assert.match(ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const chunk = `${Buffer.byteLength(expected).toString(16)}\r\n${expected}\r\n`
    assert.ok((await socket.until((text) => text.includes('bytes.one'))).endsWith(`\r\n\r\n${chunk}`), socket.text)
    await using replay = await openStream(api, `/v0/city/${city}/events/stream?type=bytes.*&after_seq=0`)
    assert.equal((await replay.next()).text, expected)
    const merged = await tagged.next(({ envelope }) => envelope.city === city)
    assert.equal(
      merged.text,
      `id: ${merged.id}\nevent: tagged_event\n${expected.split('\n')[2]?.slice(0, -1)},"city":"${city}","log":"${city}"}\n\n`,
    )
    assert.equal(positions(merged.id).get(city), seq)
    assert.ok(positions(merged.id).has('__supervisor__'))
    assert.deepEqual([...positions(merged.id).keys()], [...positions(merged.id).keys()].sort())
  })

  test('hostile text arrives as it was sent, in one frame each', async () => {
    const { api } = world()
    const city = await someCity()
    await using live = await openStream(api, `/v0/city/${city}/events/stream?type=hostile`)
    await using merged = await openStream(api, `/v0/events/stream?type=hostile`)
    for (const text of HOSTILE)
      await emit(api, city, 'hostile', { actor: text, subject: text, message: text, payload: { [text]: text } })
    await live.until(() => live.events.length === HOSTILE.length)
    await merged.until(() => merged.events.length === HOSTILE.length)
    await using replay = await openStream(api, `/v0/city/${city}/events/stream?type=hostile&after_seq=0`)
    await replay.until(() => replay.events.length === HOSTILE.length)
    const { items } = await api.ask(listCityEvents, `/v0/city/${city}/events?type=hostile&order=asc`)
    for (const [index, sent] of HOSTILE.entries()) {
      // Half of a surrogate pair is no text that every reader takes.
      const text = sent.toWellFormed()
      for (const envelope of [
        live.events[index]?.envelope,
        replay.events[index]?.envelope,
        merged.events[index]?.envelope,
        items[index],
      ]) {
        assert.equal(envelope?.message, text)
        assert.equal(envelope?.actor, text)
        assert.deepEqual(envelope?.payload, { [text]: text })
      }
      assert.equal(live.events[index]?.text, replay.events[index]?.text)
    }
  })

  test('events of 200 KiB pass, also to a reader that stops reading for a while, and nobody waits for it', async () => {
    const { api } = world()
    const city = await someCity()
    const message = 'é'.repeat(8_000)
    const payload = { text: 'x'.repeat(190 * 1024) }
    await using quick = await openStream(api, `/v0/city/${city}/events/stream?type=big`)
    await using paused = await openStream(api, `/v0/city/${city}/events/stream?type=big`)
    paused.response.pause()
    const count = 60
    for (let index = 0; index < count; index++) await emit(api, city, 'big', { message, payload })
    await quick.until(() => quick.events.length === count)
    paused.response.resume()
    await paused.until(() => paused.events.length === count)
    assert.deepEqual(
      paused.events.map(({ text }) => text),
      quick.events.map(({ text }) => text),
    )
    assert.ok(Buffer.byteLength(quick.events[0]?.text ?? '') > 200 * 1024)
  })

  test('without a cursor a stream starts at the head; with one after it; with 0 at the beginning', async () => {
    const { api } = world()
    const city = await someCity()
    for (const type of ['r.one', 'r.two', 'r.three']) await emit(api, city, type)
    const head = Number((await api.get(`/v0/city/${city}/status`)).headers['x-svc-index'])
    const path = `/v0/city/${city}/events/stream`
    const expectFrom = async (query: string, headers: Record<string, string>, expected: readonly string[]) => {
      await using stream = await openStream(api, `${path}?type=r.*${query}`, { headers })
      const mark = `r.mark${unique()}`
      await emit(api, city, mark)
      await stream.next(({ envelope }) => envelope.type === mark)
      const got = typesOf(stream.events).filter((type) => !type.startsWith('r.mark'))
      assert.deepEqual(got, expected, `${query} ${JSON.stringify(headers)}`)
    }
    await expectFrom('', {}, [])
    await expectFrom('&after_seq=0', {}, ['r.one', 'r.two', 'r.three'])
    await expectFrom(`&after_seq=${head - 1}`, {}, ['r.three'])
    await expectFrom('', { 'last-event-id': '0' }, ['r.one', 'r.two', 'r.three'])
    await expectFrom('&after_seq=0', { 'last-event-id': String(head - 2) }, ['r.two', 'r.three'])
    await expectFrom('&after_seq=nonsense', { 'last-event-id': String(head - 2) }, ['r.two', 'r.three'])
    await expectFrom(`&after_seq=${head + 1_000}`, {}, [])
    await expectFrom(`&after_seq=${Number.MAX_SAFE_INTEGER}`, {}, [])
  })

  test('the stream of all cities resumes at its composite cursor, per log, without loss or double', async () => {
    const { api } = world()
    const [one, two] = [await someCity(), await someCity()]
    const start = await headOf(api)
    const sent: string[] = []
    for (let index = 0; index < 40; index++) {
      const city = index % 3 === 0 ? one : two
      sent.push(`${city}:${await emit(api, city, 'c.step')}`)
    }
    const key = ({ envelope }: EventFrame) => `${envelope.city}:${envelope.seq}`
    const mine = (frame: EventFrame) => frame.envelope.city === one || frame.envelope.city === two
    let cursor = start
    const seen: string[] = []
    // Nine frames a connection, then away; in turns by header and by query.
    for (let turn = 0; seen.length < sent.length; turn++) {
      const byHeader = turn % 2 === 0
      const path = `/v0/events/stream?type=c.step${byHeader ? '' : `&after_cursor=${encodeURIComponent(cursor)}`}`
      await using stream = await openStream(api, path, byHeader ? { headers: { 'last-event-id': cursor } } : {})
      await stream.until(() => stream.events.filter(mine).length >= Math.min(9, sent.length - seen.length))
      for (const frame of stream.events.filter(mine).slice(0, 9)) {
        seen.push(key(frame))
        cursor = frame.id
      }
    }
    assert.deepEqual([...seen].sort(), [...sent].sort())
    for (const city of [one, two]) {
      assert.deepEqual(
        seen.filter((each) => each.startsWith(`${city}:`)),
        sent.filter((each) => each.startsWith(`${city}:`)),
      )
    }
    // Names that nobody has are ignored, a position ahead of the head is the head.
    await using ahead = await openStream(api, `/v0/events/stream?type=c.*&after_cursor=${one}:999999,nobody:7`)
    const mark = await emit(api, one, 'c.mark')
    assert.equal(key(await ahead.next(mine)), `${one}:${mark}`)
    assert.ok(!positions(ahead.events[0]?.id ?? '').has('nobody'))
    assert.equal(positions(ahead.events[0]?.id ?? '').get(one), mark)
  })

  test('filters select the same events on streams and lists', async () => {
    const { api } = world()
    const city = await someCity()
    const cases = [
      '?type=f.a',
      '?type=f.a&type=f.b.c',
      '?type=f.*',
      '?actor=ann&type=f.*',
      '?subject=s1',
      '?type=f.*&subject=s1&actor=bob',
    ]
    const streams = await Promise.all(
      cases.flatMap((query) => [
        openStream(api, `/v0/city/${city}/events/stream${query}`),
        openStream(api, `/v0/events/stream${query}`),
      ]),
    )
    const stack = new AsyncDisposableStack()
    for (const stream of streams) stack.use(stream)
    await using _ = stack
    for (const [type, actor, subject] of [
      ['f.a', 'ann', 's1'],
      ['f.b', 'bob', 's2'],
      ['f.b.c', 'ann', 's3'],
      ['f.d', 'bob', 's1'],
      ['fx', 'ann', 's9'],
      ['f', 'ann', 's8'],
    ] as const) {
      await emit(api, city, type, { actor, subject })
    }
    for (const [index, query] of cases.entries()) {
      const { items, total } = await api.ask(listCityEvents, `/v0/city/${city}/events${query}&order=asc`)
      assert.equal(total, items.length)
      assert.ok(items.length > 0, query)
      for (const stream of streams.slice(index * 2, index * 2 + 2)) {
        const mine = () => stream.events.filter(({ envelope }) => envelope.city === '' || envelope.city === city)
        await stream.until(() => mine().length >= items.length)
        assert.deepEqual(
          mine().map(({ envelope }) => envelope.seq),
          items.map(({ seq }) => seq),
          query,
        )
      }
    }
    assertProblem(await api.get(`/v0/events/stream?type=F`), 'validation-failed')
    assertProblem(await api.get(`/v0/events/stream?type=`), 'validation-failed')
    assertProblem(
      await api.get(`/v0/city/${city}/events/stream?since=1h`),
      'validation-failed',
      'validation_failed: query.since: is not a known query parameter',
    )
  })

  for (const early of [true, false]) {
    test(`a client that subscribes ${early ? 'before the POST' : 'with the event_cursor of the 202'} sees a create whole`, async () => {
      const { api, work } = world()
      const name = unique()
      const before = early ? await openStream(api, '/v0/events/stream') : undefined
      const accepted = await api.ask(createCity, '/v0/city', { body: { dir: join(work, name) } })
      if (!early) await succeeds(api, accepted)
      await using stream = before ?? (await openStream(api, `/v0/events/stream?after_cursor=${accepted.event_cursor}`))
      const created = await stream.next(({ envelope }) => envelope.city === name)
      assert.equal(created.envelope.type, 'city.created')
      assert.equal(created.envelope.subject, name)
      assert.deepEqual(created.envelope.payload, { name, path: join(work, name) })
      await terminal(stream, accepted.request_id, 'request.result.city.create')
      await emit(api, name, 'after.create')
      await stream.next(({ envelope }) => envelope.type === 'after.create')
      const mine = stream.events.filter(({ envelope }) => envelope.city === name)
      assert.deepEqual(typesOf(mine).sort(), [
        'after.create',
        'city.created',
        'city.started',
        'request.result.city.create',
      ])
      assert.ok(positions(mine.at(-1)?.id ?? '').has(name))
    })

    test(`a client that subscribes ${early ? 'before the POST' : 'with the event_cursor of the 202'} sees an unregister whole`, async () => {
      const { api } = world()
      const name = await someCity()
      const before = early ? await openStream(api, '/v0/events/stream') : undefined
      const accepted = await api.ask(unregisterCity, `/v0/city/${name}/unregister`)
      if (!early) await succeeds(api, accepted)
      await using stream = before ?? (await openStream(api, `/v0/events/stream?after_cursor=${accepted.event_cursor}`))
      const result = await terminal(stream, accepted.request_id, 'request.result.city.unregister')
      assert.equal(result.envelope.payload['name'], name)
      const mine = typesOf(stream.events.filter(({ envelope }) => envelope.city === name))
      assert.deepEqual([...mine].sort(), [
        'city.stopped',
        'city.unregister_requested',
        'request.result.city.unregister',
      ])
      assert.ok(mine.indexOf('city.unregister_requested') < mine.indexOf('request.result.city.unregister'))
    })
  }

  test('a city registered again under its name goes on in open streams and for old cursors', async () => {
    const { api, work } = world()
    const name = unique()
    await newCity(api, work, name)
    await emit(api, name, 'life.first')
    const old = await headOf(api)
    await using open = await openStream(api, '/v0/events/stream?type=life.*')
    await succeeds(api, await api.ask(unregisterCity, `/v0/city/${name}/unregister`))
    renameSync(join(work, name), join(work, `${name}-old`))
    await newCity(api, work, name)
    const seq = await emit(api, name, 'life.second')
    const live = await open.next(({ envelope }) => envelope.city === name)
    assert.equal(live.envelope.seq, seq)
    await using resumed = await openStream(api, `/v0/events/stream?type=life.*&after_cursor=${old}`)
    const second = await resumed.next(({ envelope }) => envelope.city === name)
    assert.equal(second.envelope.type, 'life.second')
    // And the old log, adopted under another name, starts where it was.
    const adopted = await api.ask(adoptCity, '/v0/cities', {
      body: { path: join(work, `${name}-old`), name: `${name}-old` },
    })
    assert.ok('request_id' in adopted)
    await succeeds(api, adopted)
    await emit(api, `${name}-old`, 'life.third')
    assert.equal((await open.next(({ envelope }) => envelope.type === 'life.third')).envelope.city, `${name}-old`)
  })

  test("a city's stream ends when the city stops, after everything in its log; the stream of all cities goes on", async () => {
    const { api } = world()
    const name = await someCity()
    await using own = await openStream(api, `/v0/city/${name}/events/stream`)
    await using all = await openStream(api, '/v0/events/stream')
    await emit(api, name, 'last.word')
    await api.ask(stopCity, `/v0/city/${name}/stop`)
    await own.ended
    assert.ok(own.complete, 'ended in order')
    assert.deepEqual(typesOf(own.events), ['last.word', 'city.stopped'])
    await all.next(({ envelope }) => envelope.type === 'city.stopped' && envelope.city === name)
    const refused = await api.get(`/v0/city/${name}/events/stream`)
    assertProblem(refused, 'city-not-found', `not_found: city not found or not running: ${name}`)
    await emit(api, 'alpha', 'goes.on')
    await all.next(({ envelope }) => envelope.type === 'goes.on')
  })
})

async function terminal(stream: SseReader, requestId: string, type: string): Promise<EventFrame> {
  const frame = await stream.next(({ envelope }) => envelope.payload['request_id'] === requestId)
  assert.equal(frame.envelope.type, type)
  return frame
}

test('no_providers only as long as no city was ever there; a stopped one counts, and one that left counts for two minutes', async () => {
  await using running = await run()
  const { api, work } = running
  assertProblem(await api.get('/v0/events/stream'), 'no-event-providers', 'no_providers: no event providers available')
  assert.equal((await api.get('/v0/events')).status, 200)
  await api.ask(createCity, '/v0/city', { body: { dir: join(work, 'alpha') } })
  // From the 202 on, whatever state the city is in.
  await using stream = await openStream(api, '/v0/events/stream')
  await cityIs(api, 'alpha', 'running')
  await api.ask(stopCity, '/v0/city/alpha/stop')
  await using second = await openStream(api, '/v0/events/stream')
  await succeeds(api, await api.ask(unregisterCity, '/v0/city/alpha/unregister'))
  await using third = await openStream(api, '/v0/events/stream')
  assert.ok(
    stream.response.complete === false && second.response.complete === false && third.response.complete === false,
  )
  const { home } = running.server
  await running.server.kill('SIGTERM')
  await using again = await runAgain(home)
  await using fourth = await openStream(again.api, '/v0/events/stream?after_cursor=0')
  const last = await fourth.next(({ envelope }) => envelope.type === 'request.result.city.unregister')
  assert.equal(last.envelope.city, 'alpha')
})

test('the two minutes of a city that left are over when they are over', async () => {
  const graces: { readonly ms: number; readonly end: () => void }[] = []
  const after: typeof systemClock.after = (ms, end) => {
    if (ms < 115_000 || ms > 120_000) return systemClock.after(ms, end)
    graces.push({ ms, end })
    return () => {}
  }
  await using running = await runHere({ clock: { ...systemClock, after } })
  const { api, work } = running
  await newCity(api, work, 'alpha')
  await succeeds(api, await api.ask(unregisterCity, '/v0/city/alpha/unregister'))
  const left = graces.splice(0)
  assert.equal(left.length, 1)
  await using stream = await openStream(api, '/v0/events/stream')
  assert.equal(stream.response.complete, false)
  left[0]?.end()
  assertProblem(await api.get('/v0/events/stream'), 'no-event-providers', 'no_providers: no event providers available')
})

test('streams resume over kill -9: every acknowledged event once, in order, and no sequence number twice', async () => {
  await using running = await run()
  const { home } = running.server
  await newCity(running.api, running.work, 'alpha')
  const start = await headOf(running.api)
  const stream = await openStream(running.api, `/v0/events/stream?type=k.*&after_cursor=${start}`)
  const acknowledged: number[] = []
  const writers = Array.from({ length: 4 }, async () => {
    for (;;) {
      const seq = await emit(running.api, 'alpha', 'k.tick').catch(() => undefined)
      if (seq === undefined) return
      acknowledged.push(seq)
    }
  })
  await stream.until(() => stream.events.length >= 50)
  await running.server.kill('SIGKILL')
  await Promise.all(writers)
  await stream.ended
  const seen = stream.events.map(({ envelope }) => envelope.seq)
  const lastId = stream.events.at(-1)?.id ?? ''
  await using again = await runAgain(home)
  await cityIs(again.api, 'alpha', 'running')
  await using resumed = await openStream(again.api, '/v0/events/stream?type=k.*', {
    headers: { 'last-event-id': lastId },
  })
  await emit(again.api, 'alpha', 'k.end')
  await resumed.next(({ envelope }) => envelope.type === 'k.end')
  const all = [...seen, ...resumed.events.map(({ envelope }) => envelope.seq)]
  assert.deepEqual(
    all,
    [...new Set(all)].sort((a, b) => a - b),
  )
  for (const seq of acknowledged) assert.ok(all.includes(seq), `acknowledged event ${seq} is gone`)
  const { body } = await eventually('the list', () => again.api.get('/v0/city/alpha/status'))
  assert.equal(asMap(at(body, 'events'))['head_seq'], all.at(-1))
})
