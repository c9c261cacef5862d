/** Streamed bodies and answers at the surface, in this process, over real sockets. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { nodeTransport } from '../../src/cli/base/transport.ts'
import { Client } from '../../src/client/client.ts'
import { ApiProblem, Unreachable } from '../../src/client/problems.ts'
import { family } from '../../src/contract/base/family.ts'
import { LINES_TYPE } from '../../src/contract/base/operation.ts'
import { integer, object, optional } from '../../src/contract/base/schema.ts'
import { MAX_LINE_BYTES } from '../../src/http/input/lines.ts'
import { HttpServer } from '../../src/http/server.ts'
import { type BodyLine, type Handler, ok, StreamBody } from '../../src/kernel/call.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { problem } from '../../src/kernel/problem.ts'
import { eventually, RawConnection } from '../support/http.ts'
import { QUIET_METRICS } from '../support/http-server.ts'
import { ManualClock } from '../support/manual-clock.ts'

const LIMIT = 4 * 1024 * 1024
const things = family({ name: 'Things', about: 'For the tests.' }, '/things', {}, { replies: { 200: object({}) } })
const sendThings = things.post('send-things', '', {
  summary: 'Send',
  query: object({ stop: optional(integer()) }),
  body: object({}),
  bodyStream: 'ndjson',
  bodyLimit: LIMIT,
})
const getThings = things.get('get-things', '', {
  summary: 'Get',
  query: object({ count: integer(), fail: optional(integer()), bytes: optional(integer()) }),
  mediaType: LINES_TYPE,
})

/** What handlers saw, for tests whose client sees no answer. */
interface Seen {
  lines: BodyLine[]
  failure: unknown
  made: number
  ended: boolean
}

async function serve(clock: Clock = systemClock) {
  const seen: Seen = { lines: [], failure: undefined, made: 0, ended: false }
  const send: Handler<typeof sendThings> = async ({ body, query }) => {
    try {
      for await (const line of body) {
        seen.lines.push(line)
        if (seen.lines.length === query.stop) break
      }
    } catch (error) {
      seen.failure = error
      throw error
    }
    return ok({ lines: seen.lines.map((line) => ('text' in line ? [line.line, line.text] : [line.line, line.fault])) })
  }
  const get: Handler<typeof getThings> = ({ query }) => {
    async function* pieces() {
      try {
        for (; seen.made < query.count; seen.made++) {
          if (seen.made === query.fail) throw problem('conflict-config', 'no more')
          yield `${JSON.stringify({ n: seen.made, pad: 'x'.repeat(query.bytes ?? 0) })}\n`
        }
      } finally {
        seen.ended = true
      }
    }
    return ok(new StreamBody(pieces(), LINES_TYPE))
  }
  const silent = () => {}
  const http = new HttpServer({
    operations: [sendThings, getThings],
    handlers: { 'send-things': send, 'get-things': get },
    security: { allowedHosts: [], allowedOrigins: [], token: undefined, readOnly: false },
    cities: { resolve: () => undefined },
    clock,
    log: { info: silent, warn: silent, error: silent, debug: silent, isLevelEnabled: () => false },
    metrics: QUIET_METRICS,
    services: { inCity: () => undefined },
  })
  const url = await http.listen('127.0.0.1', 0)
  return { url, seen, [Symbol.asyncDispose]: () => http.close() }
}

async function post(url: string, body: string | Uint8Array<ArrayBuffer>, type = LINES_TYPE) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'x-svc-request': '1', 'content-type': type },
    body,
  })
  const answer: { code?: string; detail?: string; lines?: [number, string][] } = JSON.parse(await response.text())
  return { status: response.status, ...answer }
}

const HEAD = `POST /things HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: ${LINES_TYPE}\r\n`

test('lines arrive whatever ends them, without the mark at the start, without blank ones, with their numbers', async () => {
  await using server = await serve()
  const { status, lines } = await post(`${server.url}/things`, '\ufeff{"a":1}\r\n\n  \t\r\n{"b":"ü"}\n{"c":3}')
  assert.equal(status, 200)
  assert.deepEqual(lines, [
    [1, '{"a":1}'],
    [4, '{"b":"ü"}'],
    [5, '{"c":3}'],
  ])
})

test('a line that is too long or no UTF-8 is reported, and the lines after it are read', async () => {
  await using server = await serve()
  const bytes = Buffer.concat([
    Buffer.from('first\n'),
    Buffer.alloc(MAX_LINE_BYTES + 1, 0x61),
    Buffer.from('\n'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('\n'),
    Buffer.alloc(MAX_LINE_BYTES, 0x62),
    Buffer.from('\r\nlast'),
  ])
  const { lines = [] } = await post(`${server.url}/things`, bytes)
  assert.deepEqual(
    lines.map(([line, text]) => [line, text.slice(0, 40)]),
    [
      [1, 'first'],
      [2, 'the line is longer than 1048576 bytes'],
      [3, 'the line is not UTF-8'],
      [4, 'b'.repeat(40)],
      [5, 'last'],
    ],
  )
})

test('a line may come byte by byte, in chunks', async () => {
  await using server = await serve()
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`)
  for (const byte of Buffer.from('{"ä":1}\n{"b":2}')) {
    await connection.send(Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]))
  }
  await connection.send('0\r\n\r\n')
  const [answer] = await connection.answers(1)
  assert.deepEqual(JSON.parse(String(answer?.body)), {
    lines: [
      [1, '{"ä":1}'],
      [2, '{"b":2}'],
    ],
  })
})

test('no body is no lines', async () => {
  await using server = await serve()
  assert.deepEqual((await post(`${server.url}/things`, '')).lines, [])
})

test('more bytes than the limit are refused, said beforehand or found out on the way', async () => {
  await using server = await serve()
  const line = `${'x'.repeat(100_000)}\n`
  const declared = await post(`${server.url}/things`, line.repeat(50))
  assert.equal(declared.status, 413)
  assert.equal(server.seen.lines.length, 0)
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = `${line.length.toString(16)}\r\n${line}\r\n`
  for (let count = 0; count < 43; count++) await connection.send(chunk)
  const [found] = await connection.answers(1)
  assert.equal(found?.status, 413)
  assert.match(String(found?.body), /too_large: the body is larger than 4194304 bytes/)
})

test('another media type is refused, and so is an unknown parameter, before a byte of the body is looked at', async () => {
  await using server = await serve()
  assert.equal((await post(`${server.url}/things`, '{}', 'application/json')).code, 'unsupported-media-type')
  assert.equal((await post(`${server.url}/things?nope=1`, '{}\n{}')).code, 'validation-failed')
  assert.equal(server.seen.lines.length, 0)
})

test('a handler that has enough answers, and the connection serves the next request', async () => {
  await using server = await serve()
  using connection = new RawConnection(server.url)
  const body = `{"n":1}\n${'{"n":2}\n'.repeat(1000)}`
  await connection.send(
    `POST /things?stop=1 ${HEAD.slice('POST /things '.length)}Content-Length: ${body.length}\r\n\r\n${body}`,
  )
  const [first] = await connection.answers(1)
  assert.deepEqual(JSON.parse(String(first?.body)), { lines: [[1, '{"n":1}']] })
  await connection.send('GET /things?count=0 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await connection.until((text) => text.split('HTTP/1.1 200').length === 3)
})

test('an upload that breaks off ends the handler with a refusal that nobody has to see', async () => {
  await using server = await serve()
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Content-Length: 1000\r\n\r\n{"a":1}\n{"b"`)
  await eventually('the first line', () => (server.seen.lines.length === 1 ? true : undefined))
  connection.socket.destroy()
  await eventually('the refusal', () => (server.seen.failure === undefined ? undefined : true))
  assert.match(String(server.seen.failure), /the request ended before its body was complete/)
})

test('chunks that are none end the upload', async () => {
  await using server = await serve()
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Transfer-Encoding: chunked\r\n\r\n8\r\n{"a":1}\n\r\nnonsense\r\n`)
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 400)
  connection.socket.destroy()
  await eventually('the refusal', () => (server.seen.failure === undefined ? undefined : true))
})

test('a client that stops sending is refused after 15 s, not while bytes keep coming', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock)
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Content-Length: 1000\r\n\r\n`)
  for (let line = 1; line <= 3; line++) {
    await connection.send('{}\n')
    await eventually('a line', () => (server.seen.lines.length === line ? true : undefined))
    await clock.advance(14_000)
  }
  assert.equal(server.seen.failure, undefined)
  await clock.advance(1_000)
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 408)
  assert.match(String(answer?.body), /timeout: no byte of the body came for 15 s/)
})

test('a client that drips is refused after an hour', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock)
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Content-Length: 10000\r\n\r\n`)
  const HOUR_S = 3_600
  for (let line = 1; line <= HOUR_S / 12; line++) {
    assert.equal(server.seen.failure, undefined)
    await connection.send('{}\n')
    await eventually('a line', () => (server.seen.lines.length === line ? true : undefined))
    await clock.advance(12_000)
  }
  // And what 900 bytes may take.
  await clock.advance(1_000)
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 408)
  assert.match(String(answer?.body), /comes more slowly than 4000 bytes a second/)
})

test('bytes that came while the server was busy are read, however long that took', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock)
  using connection = new RawConnection(server.url)
  await connection.send(`${HEAD}Content-Length: 6\r\n\r\n{}\n`)
  await eventually('a line', () => (server.seen.lines.length === 1 ? true : undefined))
  // Both in one turn: the rest is there, and the time is over before anybody could look.
  connection.socket.write('{}\n')
  await clock.advance(15_000)
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 200)
})

test('what goes wrong before the first piece of an answer is a Problem, later it cuts the connection', async () => {
  await using server = await serve()
  const refused = await fetch(`${server.url}/things?count=3&fail=0`)
  assert.equal(refused.status, 409)
  assert.equal(refused.headers.get('content-type'), 'application/problem+json')
  const cut = await fetch(`${server.url}/things?count=2000000&fail=3000&bytes=100`)
  assert.equal(cut.status, 200)
  await assert.rejects(cut.text())
})

test('an answer in pieces is made no faster than the client takes it, and ends when the client goes', async () => {
  await using server = await serve()
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.pause()
  socket.write('GET /things?count=100000000&bytes=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  let last = -1
  // Until the buffers of both sides are full: then it stands still.
  await eventually('it stops', async () => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    const stopped = last === server.seen.made && last > 0
    last = server.seen.made
    return stopped ? true : undefined
  })
  assert.ok(server.seen.made < 20_000, String(server.seen.made))
  socket.destroy()
  await eventually('it ends', () => (server.seen.ended ? true : undefined))
})

test('a client that takes nothing of an answer for 30 s is cut off', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock)
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {})
  socket.pause()
  socket.write('GET /things?count=100000000&bytes=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually('it waits', () => (clock.pending > 0 ? true : undefined))
  // What the two ends of the kernel still hand on counts as taken: time goes on until nothing moves.
  await eventually('it ends', async () => {
    await clock.advance(15_000)
    return server.seen.ended ? true : undefined
  })
  socket.destroy()
})

for (const [name, transport] of [
  ['of the command line', nodeTransport],
  ['of browsers', undefined],
] as const) {
  const clientOf = (baseUrl: string) =>
    new Client({
      baseUrl,
      clock: systemClock,
      random: () => 0,
      newKey: () => 'k',
      ...(transport === undefined ? {} : { transport }),
    })

  test(`the transport ${name} sends pieces and reads lines`, async () => {
    await using server = await serve()
    const client = clientOf(server.url)
    async function* pieces() {
      for (let n = 0; n < 20_000; n++) yield n % 2 === 0 ? `{"n":${n}}\n` : new TextEncoder().encode(`{"n":${n}}\n`)
    }
    const sent = await client.send({
      method: 'POST',
      path: '/things',
      headers: { 'content-type': LINES_TYPE },
      body: pieces(),
    })
    const { lines }: { lines: [number, string][] } = JSON.parse(await sent.text())
    assert.equal(lines.length, 20_000)
    assert.deepEqual(lines.at(-1), [20_000, '{"n":19999}'])
    const route = { id: 'export-beads', method: 'GET', path: '/things' } as const
    const answer = await client.openLines({ ...route, path: '/things?count=30000' }, { params: { cityName: 'alpha' } })
    let count = 0
    for await (const line of answer.lines) assert.match(line, new RegExp(`^{"n":${count++},`))
    assert.equal(count, 30_000)
  })

  test(`the transport ${name} hands on refusals, and says when an answer broke off`, async () => {
    await using server = await serve()
    const client = clientOf(server.url)
    async function* endless() {
      for (;;) yield `{"pad":"${'x'.repeat(1000)}"}\n`
    }
    const refused = await client.send({
      method: 'POST',
      path: '/things?nope=1',
      headers: { 'content-type': LINES_TYPE },
      body: endless(),
    })
    assert.equal(refused.status, 422)
    await refused.text()
    const route = { id: 'export-beads', method: 'GET' } as const
    const input = { params: { cityName: 'alpha' }, retries: 0 }
    await assert.rejects(client.openLines({ ...route, path: '/things?count=3&fail=0' }, input), ApiProblem)
    const broken = await client.openLines({ ...route, path: '/things?count=200000&fail=100000' }, input)
    await assert.rejects(async () => {
      for await (const line of broken.lines) assert.ok(line)
    }, Unreachable)
  })
}
