/** Streams at the surface, in this process: what takes 10,000 clients or half a minute over a real supervisor. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { family } from '../../src/contract/base/family.ts'
import { object } from '../../src/contract/base/schema.ts'
import { type HttpDeps, HttpServer } from '../../src/http/server.ts'
import { cityFraming } from '../../src/http/sse.ts'
import type { TokenHolder } from '../../src/kernel/caller.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import type { StoredEvent } from '../../src/kernel/event-log.ts'
import { Channel, type ScopedEvent } from '../../src/kernel/streams/hub.ts'
import { eventually } from '../support/http.ts'
import { QUIET_METRICS } from '../support/http-server.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { parseFrame } from '../support/sse.ts'

const things = family({ name: 'Things', about: 'For the tests.' }, '/things', {}, {})
const streamThings = things.get('stream-things', '', {
  summary: 'Stream',
  replies: {},
  frames: [{ event: 'event', data: object({}), id: 'n', description: 'One.' }],
})

async function serve(clock: Clock, { channel }: { readonly channel: Channel }, more: Partial<HttpDeps> = {}) {
  const silent = () => {}
  const http = new HttpServer({
    operations: [streamThings],
    handlers: { 'stream-things': () => channel.subscribe({}, '0', undefined) },
    security: { allowedHosts: [], allowedOrigins: [], token: undefined, readOnly: false },
    cities: { resolve: () => undefined },
    clock,
    log: { info: silent, warn: silent, error: silent, debug: silent, isLevelEnabled: () => false },
    metrics: QUIET_METRICS,
    services: { inCity: () => undefined },
    ...more,
  })
  const url = await http.listen('127.0.0.1', 0)
  return { http, url, [Symbol.asyncDispose]: () => http.close() }
}

/** A channel whose log is everything that was published. */
function newChannel() {
  const log: ScopedEvent<StoredEvent>[] = []
  const channel: Channel = new Channel(
    cityFraming,
    0,
    {
      headId: () => log.at(-1)?.id ?? '0',
      openBacklog: (afterId) => ({
        place: afterId,
        read: () => ({
          events: log.filter(({ id }) => Number(id) > Number(afterId)),
          resume: { at: channel.head + 1, id: log.at(-1)?.id ?? afterId },
          fence: channel.head + 1,
          positions: [],
          parts: [],
        }),
        follow: () => false,
      }),
    },
    systemClock,
  )
  const publish = (event: ScopedEvent<StoredEvent>) => {
    log.push(event)
    channel.publish([event])
  }
  return { channel, publish }
}

let seq = 0
function thing(bytes = 10) {
  seq++
  const envelope = JSON.stringify({ seq, text: 'x'.repeat(bytes) })
  const event = { seq, at: 0, type: 'a.b', actor: 'test', subject: undefined, city: undefined, envelope }
  return { id: String(seq), event, city: '', log: '' }
}

/** A client that reads only what it is told to. */
async function listener(url: string) {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
  const state = { text: '', closed: false }
  socket.on('data', (chunk: Buffer) => (state.text += chunk.toString()))
  socket.on('close', () => (state.closed = true))
  socket.on('error', () => {})
  socket.write('GET /things HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually('the head', () => (state.text.includes('\r\n\r\n') ? true : undefined))
  return { socket, state, [Symbol.dispose]: () => socket.destroy() }
}

test('one stream too many is 429 with Retry-After, and there is room again when one ends', async () => {
  await using server = await serve(systemClock, newChannel(), { maxStreams: 2 })
  using first = await listener(server.url)
  using second = await listener(server.url)
  assert.match(first.state.text, /^HTTP\/1\.1 200 /)
  assert.match(second.state.text, /^HTTP\/1\.1 200 /)
  const refused = await fetch(`${server.url}/things`)
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), '5')
  assert.equal(refused.headers.get('content-type'), 'application/problem+json')
  const problem: unknown = await refused.json()
  assert.deepEqual(
    { ...Object(problem), instance: '' },
    {
      type: 'urn:svc:error:too-many-streams',
      title: 'Too many open streams',
      status: 429,
      detail: 'too_many: 2 streams are open',
      code: 'too-many-streams',
      instance: '',
    },
  )
  first.socket.destroy()
  await eventually('one stream less', () => (server.http.streams === 1 ? true : undefined))
  using third = await listener(server.url)
  assert.match(third.state.text, /^HTTP\/1\.1 200 /)
})

test('a stream whose token is revoked while it is being opened is refused, and leaves nothing behind', async () => {
  const { channel } = newChannel()
  const holder: TokenHolder = { kind: 'token', name: 'ann', role: 'admin', city: undefined }
  const secret = 'a'.repeat(64)
  let holds = true
  let goOn = () => {}
  const handler = async () => {
    await new Promise<void>((resolve) => {
      goOn = resolve
    })
    return channel.subscribe({}, '0', undefined)
  }
  await using server = await serve(systemClock, newChannel(), {
    handlers: { 'stream-things': handler },
    security: {
      allowedHosts: [],
      allowedOrigins: [],
      token: 'b'.repeat(64),
      holderOf: (given) => (holds && given === secret ? holder : undefined),
      readOnly: false,
    },
  })
  const answer = fetch(`${server.url}/things`, { headers: { authorization: `Bearer ${secret}` } })
  await eventually('it is being opened', () => (server.http.streams === 1 ? true : undefined))
  holds = false
  server.http.endStreamsOf((caller) => caller === holder)
  goOn()
  assert.equal((await answer).status, 401)
  assert.equal(server.http.streams, 0)
  assert.equal(channel.subscribers, 0)
})

test('a heartbeat comes every 15 s, with the head as id, also where no event matches', async () => {
  const clock = new ManualClock()
  const channel = newChannel()
  const quiet = () => channel.channel.subscribe({ types: ['rare.one'] }, '0', undefined)
  await using server = await serve(clock, channel, { handlers: { 'stream-things': quiet } })
  using client = await listener(server.url)
  const frames = () =>
    client.state.text.split(/\r\n(?:[0-9a-f]+\r\n)?/).filter((part) => part.includes('event: heartbeat'))
  await clock.advance(14_999)
  const { id: first } = thing()
  channel.publish({ ...thing(), id: first })
  assert.equal(frames().length, 0)
  await clock.advance(1)
  await eventually('the first', () => (frames().length === 1 ? true : undefined))
  const last = thing()
  channel.publish(last)
  await clock.advance(15_000)
  await eventually('the second', () => (frames().length === 2 ? true : undefined))
  assert.deepEqual(
    frames().map((frame) => parseFrame(frame).id),
    [first, last.id],
  )
  for (const frame of frames())
    assert.match(parseFrame(frame).data, /^\{"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"\}$/)
})

test('a client that says Connection: close has its connection closed when its stream ends', async () => {
  const channel = newChannel()
  await using server = await serve(systemClock, channel)
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write('GET /things HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await eventually('the head', () => (text.includes('\r\n\r\n') ? true : undefined))
  assert.match(text, /\r\nConnection: close\r\n/i)
  channel.channel.end()
  await closed
})

test('a client that reads slowly but always is never cut off', async () => {
  const clock = new ManualClock()
  const channel = newChannel()
  await using server = await serve(clock, channel)
  using slow = await listener(server.url)
  slow.socket.pause()
  for (let i = 0; i < 60; i++) channel.publish(thing(1_000_000))
  const last = `"seq":${seq},`
  while (!slow.state.text.includes(last)) {
    const wanted = slow.state.text.length + 4_000_000
    slow.socket.resume()
    await eventually('it takes some more', () =>
      slow.state.text.length >= wanted || slow.state.text.includes(last) ? true : undefined,
    )
    slow.socket.pause()
    // The server has seen by then that its socket takes more.
    await fetch(`${server.url}/nowhere`)
    await clock.advance(29_000)
    assert.equal(server.http.streams, 1, 'it goes on')
  }
})

test('a reader that takes nothing for 30 s is cut off, and one that takes something is not', async () => {
  const clock = new ManualClock()
  const channel = newChannel()
  await using server = await serve(clock, channel)
  using stuck = await listener(server.url)
  using slow = await listener(server.url)
  using quick = await listener(server.url)
  for (const { socket } of [stuck, slow]) socket.pause()
  // More than the kernel takes on behalf of the readers.
  const sizes = Array.from({ length: 100 }, () => thing(100_000))
  for (const one of sizes) channel.publish(one)
  const last = `"seq":${seq},`
  await eventually('the quick reader has all', () => (quick.state.text.includes(last) ? true : undefined))
  await clock.advance(29_999)
  slow.socket.resume()
  await eventually('the slow reader has all', () => (slow.state.text.includes(last) ? true : undefined))
  assert.equal(server.http.streams, 3)
  await clock.advance(1)
  // What the two ends of the kernel still hand on counts as taken: time goes on until nothing moves.
  await eventually('one stream less', async () => {
    if (server.http.streams === 2) return true
    await clock.advance(15_000)
    return undefined
  })
  stuck.socket.resume()
  await eventually('the stuck reader is cut off', () => (stuck.state.closed ? true : undefined))
  assert.equal(stuck.state.text.includes(last), false)
  await clock.advance(60_000)
  assert.equal(server.http.streams, 2)
})
