/** Bodies that come slowly, and those of callers who may not come in, in this process, over real sockets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { family } from '../../src/contract/base/family.ts'
import { object, string } from '../../src/contract/base/schema.ts'
import { type HttpDeps, HttpServer } from '../../src/http/server.ts'
import { type Handler, ok } from '../../src/kernel/call.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { eventually, RawConnection } from '../support/http.ts'
import { QUIET_METRICS } from '../support/http-server.ts'
import { ManualClock } from '../support/manual-clock.ts'

const things = family({ name: 'Things', about: 'For the tests.' }, '/things', {}, { replies: { 200: object({}) } })
const sendThings = things.post('send-things', '', { summary: 'Send', body: object({ text: string() }) })
const TOKEN = 'b'.repeat(64)

async function serve(clock: Clock, more: Partial<HttpDeps['security']> = {}) {
  const silent = () => {}
  const send: Handler<typeof sendThings> = ({ body }) => ok({ length: body.text.length })
  const http = new HttpServer({
    operations: [sendThings],
    handlers: { 'send-things': send },
    security: { allowedHosts: [], allowedOrigins: [], token: undefined, readOnly: false, ...more },
    cities: { resolve: () => undefined },
    clock,
    log: { info: silent, warn: silent, error: silent, debug: silent, isLevelEnabled: () => false },
    metrics: QUIET_METRICS,
    services: { inCity: () => undefined },
  })
  const url = await http.listen('127.0.0.1', 0)
  return { http, url, [Symbol.asyncDispose]: () => http.close() }
}

const head = (length: number, more = '') =>
  `POST /things HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\n${more}Content-Length: ${length}\r\n\r\n`

/** The server has read what was sent before: it answers a request of another connection. */
async function seen(url: string): Promise<void> {
  await (await fetch(`${url}/nowhere`)).body?.cancel()
}

test('a large body on a slow line may take as long as it moves', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock)
  const body = JSON.stringify({ text: 'x'.repeat(900_000) })
  using connection = await new RawConnection(server.url).send(head(body.length))
  // 45 kB every 2 s: 40 s in all.
  for (let at = 0; at < body.length; at += 45_000) {
    await connection.send(body.slice(at, at + 45_000))
    await seen(server.url)
    await clock.advance(2_000)
  }
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 200, String(answer?.body))
})

for (const [what, step, waitMs, sentence] of [
  ['stops', 0, 2_600, /no byte of the body came for 5 s/],
  ['drips', 10, 1_000, /comes more slowly than 4000 bytes a second/],
] as const)
  test(`a body that ${what} is 408`, async () => {
    const clock = new ManualClock()
    await using server = await serve(clock)
    using connection = await new RawConnection(server.url).send(`${head(10_000)}{"text":"`)
    for (let i = 0; i < 8; i++) {
      if (step > 0) await connection.send('x'.repeat(step))
      await seen(server.url)
      await clock.advance(waitMs)
    }
    const [answer] = await connection.answers(1)
    assert.equal(answer?.status, 408)
    assert.match(String(answer?.body), sentence)
    await clock.advance(2_000)
    await connection.closed
  })

test('a refusal of a stranger ends the connection, and a body that trickles behind it keeps it two seconds', async () => {
  const clock = new ManualClock()
  await using server = await serve(clock, { token: TOKEN })
  using quick = await new RawConnection(server.url).send('GET /things HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await quick.closed
  assert.match(quick.text, /^HTTP\/1\.1 401 [\s\S]*\r\nConnection: close\r\n/)
  using evil = await new RawConnection(server.url).send('GET /things HTTP/1.1\r\nHost: evil.example\r\n\r\n')
  await evil.closed
  assert.match(evil.text, /^HTTP\/1\.1 421 /)
  using slow = await new RawConnection(server.url).send(`${head(10_000)}{"text":"`)
  await eventually('it is refused', () => (slow.text.startsWith('HTTP/1.1 401 ') ? true : undefined))
  for (let i = 0; i < 3; i++) {
    slow.socket.write('x')
    await seen(server.url)
    await clock.advance(1_000)
  }
  await slow.closed
})

test('a caller with a token that may not do something keeps its connection, in whatever case the scheme is', async () => {
  await using server = await serve(systemClock, { token: TOKEN })
  const body = '{"text":"a"}'
  using connection = new RawConnection(server.url)
  for (const scheme of ['Bearer', 'bearer', 'BEARER  '])
    await connection.send(`${head(body.length, `Authorization: ${scheme} ${TOKEN}\r\n`)}${body}`)
  const answers = await connection.answers(3)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
})
