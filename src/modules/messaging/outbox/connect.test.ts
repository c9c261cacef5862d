import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { createServer } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { refusalOfAddress } from '../adapters/addresses.ts'
import { guardedLookup } from './connect.ts'
import { post } from './post.ts'

test('link-local addresses and those of metadata services are refused, however they are written', () => {
  const refused = [
    '169.254.169.254',
    '169.254.0.1',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '224.0.0.1',
    '255.255.255.255',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'ff02::1',
    'fd00:ec2::254',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '2002:a9fe:a9fe::1',
    'no address',
  ]
  for (const address of refused) assert.notEqual(refusalOfAddress(address), undefined, address)
  const allowed = [
    '127.0.0.1',
    '::1',
    '10.0.0.1',
    '192.168.1.1',
    '93.184.216.34',
    '2001:db8::1',
    'fd00::1',
    '::ffff:127.0.0.1',
  ]
  for (const address of allowed) assert.equal(refusalOfAddress(address), undefined, address)
})

/** What a connection to the name would be made to. */
const lookedUp = (lookup: LookupFunction, all: boolean): Promise<unknown> =>
  new Promise((resolve, reject) =>
    lookup('chat.example', { all }, (error, address) => (error === null ? resolve(address) : reject(error))),
  )

test('a name is refused by the address that it means at the moment of the connection', async () => {
  const answers: LookupAddress[][] = [
    [{ address: '93.184.216.34', family: 4 }],
    [{ address: '169.254.169.254', family: 4 }],
    [
      { address: '169.254.169.254', family: 4 },
      { address: '10.0.0.1', family: 4 },
    ],
    [],
  ]
  const lookup = guardedLookup((_, done) => done(null, answers.shift() ?? []))
  assert.equal(await lookedUp(lookup, false), '93.184.216.34')
  await assert.rejects(lookedUp(lookup, false), /169\.254\.169\.254 is link-local/)
  assert.deepEqual(await lookedUp(lookup, true), [{ address: '10.0.0.1', family: 4 }], 'only those that are allowed')
  await assert.rejects(lookedUp(lookup, false), /chat\.example has no address/)
})

type Answer = Parameters<typeof createServer>[1]

async function served(t: TestContext, answer: NonNullable<Answer>): Promise<URL> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return new URL(`http://127.0.0.1:${port}/chat/publish`)
}

const body = Buffer.from('{"text":"hello"}')
const posted = (url: URL, clock = systemClock) =>
  post({ url, headers: { 'x-a': 'b' }, body }, clock, AbortSignal.timeout(20_000))

test('a body goes out as it is, the answer comes back, and no redirect is followed', async (t) => {
  const seen: string[] = []
  const url = await served(t, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    seen.push(`${request.method} ${request.url} ${request.headers['x-a']} ${Buffer.concat(chunks)}`)
    response.writeHead(302, { location: '/elsewhere', 'retry-after': '7' }).end('moved')
  })
  const { status, retryAfter, body: reply } = await posted(url)
  assert.deepEqual([status, retryAfter, String(reply)], [302, '7', 'moved'])
  assert.deepEqual(seen, ['POST /chat/publish b {"text":"hello"}'])
})

test('an address that is refused is not connected to, also where the URL has it as a number', async () => {
  for (const host of ['169.254.169.254', '2852039166', '0xa9fea9fe', '[::ffff:169.254.169.254]', '[fe80::1]'])
    await assert.rejects(posted(new URL(`http://${host}/publish`)), /nothing is posted there/, host)
})

test('of an answer that is too long nothing is kept; one that is cut is none', async (t) => {
  const long = await served(t, (_, response) => void response.writeHead(200).end(Buffer.alloc(1024 * 1024 + 1)))
  assert.deepEqual(await posted(long), { status: 200, retryAfter: undefined, body: undefined })
  const exact = await served(t, (_, response) => void response.writeHead(200).end(Buffer.alloc(1024 * 1024)))
  assert.equal((await posted(exact)).body?.length, 1024 * 1024)
  const cut = await served(t, (_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"deliv')
    setImmediate(() => response.destroy())
  })
  await assert.rejects(posted(cut))
  const silent = await served(t, (request) => request.socket.destroy())
  await assert.rejects(posted(silent))
  const closed = await served(t, () => {})
  await assert.rejects(post({ url: closed, headers: {}, body }, systemClock, AbortSignal.abort()))
})

test('who does not answer within 30 s has not answered', async (t) => {
  const clock = new ManualClock()
  const arrived = Promise.withResolvers<void>()
  const url = await served(t, () => arrived.resolve())
  const answer = posted(url, clock)
  const refused = assert.rejects(answer, /no answer within 30 s/)
  await arrived.promise
  await clock.advance(29_999)
  await clock.advance(1)
  await refused
})
