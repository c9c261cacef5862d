import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { probe } from './probe.ts'

const NEVER = new AbortController().signal

/** A service that answers every request with these bytes. */
async function answering(t: TestContext, reply: string) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(reply))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return { host: '127.0.0.1', port: address.port }
}

for (const [reply, why] of [
  ['HTTP/1.1 204 No Content\r\n\r\n', undefined],
  ['HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n', '/health answers 302'],
  ['HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', '/health answers 101'],
] as const)
  test(`a look at a service that answers ${reply.slice(9, 12)} comes to an end`, async (t) => {
    assert.equal(await probe(await answering(t, reply), '/health', new ManualClock(), NEVER), why)
  })
