/** Replies of a service with bytes changed at random, over real sockets: whatever comes, the supervisor lives and answers. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { heard, proxied, rawUpstream } from '../../support/proxied.ts'
import { fc } from '../../support/random.ts'

const P = '/v0/city/alpha/svc/web/x'
const GET = `GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`
const UPGRADE = `GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`
const GOOD = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const REPLIES = [
  GOOD,
  'HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\nX: y\r\n\r\n',
  'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhello',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello',
]

/** What happens to one byte of a reply. */
const mutation = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  how: fc.constantFrom('set', 'insert', 'delete', 'double'),
  byte: fc.integer({ min: 0, max: 255 }),
})
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never

function mutated(reply: string, mutations: readonly Mutation[]): Buffer {
  const bytes = [...Buffer.from(reply, 'latin1')]
  for (const { at, how, byte } of mutations) {
    const index = Math.floor(at * bytes.length)
    if (how === 'delete') bytes.splice(index, 1)
    else if (how === 'double') bytes.splice(index, 0, bytes[index] ?? byte)
    else bytes.splice(index, how === 'set' ? 1 : 0, byte)
  }
  return Buffer.from(bytes)
}

/** A service that answers with `reply()` and closes its side. */
const answering = (reply: () => Buffer) =>
  rawUpstream((socket: Socket) => {
    socket.on('error', () => {})
    heard(socket, (text) => text.includes('\r\n\r\n')).then(
      () => socket.end(reply()),
      () => {},
    )
  })

test('replies of a service mutated by byte: the client gets an answer or an end, and the next one its own', async () => {
  let reply: Buffer = Buffer.from(GOOD)
  await using proxy = await proxied(answering(() => reply))
  const changed = fc.tuple(
    fc.constantFrom(...REPLIES),
    fc.array(mutation, { minLength: 1, maxLength: 3 }),
    fc.constantFrom(GET, UPGRADE),
  )
  await fc.assert(
    fc.asyncProperty(changed, async ([original, mutations, request]) => {
      reply = mutated(original, mutations)
      const text = await proxy.ask(request)
      assert.ok(text === '' || text.startsWith('HTTP/1.1 '), JSON.stringify(text))
      await proxy.quiet()
      reply = Buffer.from(GOOD)
      assert.match(await proxy.ask(GET), /^HTTP\/1\.1 200 OK\r\n/)
    }),
    { numRuns: 400 },
  )
})

for (const [what, status] of [
  ['an answer', '200 O\x01K'],
  ['an answer to a visitor, with a NUL', '404 no\x00such'],
  ['a change of protocol', '101 Swi\x0btching'],
  ['hints before the answer', '103 Early\x7fHints'],
] as const)
  test(`a control character in the reason phrase of ${what} is a bad gateway`, async () => {
    await using proxy = await proxied(
      answering(() => Buffer.from(`HTTP/1.1 ${status}\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n`, 'latin1')),
    )
    assert.match(await proxy.ask(status.startsWith('101') ? UPGRADE : GET), /^HTTP\/1\.1 502 /)
    await proxy.quiet()
  })

test('an exception in the events of one exchange cuts that one, is logged, and ends nothing else', async () => {
  const logged: unknown[] = []
  const silent = () => {}
  const log = {
    info: silent,
    warn: silent,
    debug: silent,
    isLevelEnabled: () => false,
    error: (...what: unknown[]) => logged.push(...what),
  }
  let isBroken = true
  const service = {
    direct: true,
    // Asked by the timer that looks for those that take too long, where no request is there to be answered.
    get firstByteMs(): number {
      if (isBroken) throw new TypeError('a fault of ours')
      return 60_000
    },
  }
  let answers = false
  const upstream = rawUpstream((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => answers && socket.end(GOOD))
  })
  await using proxy = await proxied(upstream, { service, log })
  assert.equal(await proxy.ask(GET), '')
  await proxy.quiet()
  assert.equal(logged.length, 2, 'the error and its sentence')
  isBroken = false
  answers = true
  assert.match(await proxy.ask(GET), /^HTTP\/1\.1 200 OK\r\n/)
})
