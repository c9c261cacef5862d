import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { socketsHeldBy } from '../../../test/support/other-user.ts'
import { openListeners } from '../../kernel/peers/listeners.ts'
import { openSocketTable } from '../../kernel/peers/peer-users.ts'
import type { Upstream } from './ports.ts'
import { probe } from './probe.ts'

const NEVER = new AbortController().signal

const look = (upstream: Upstream, healthPath: string | undefined, listeners = openListeners(openSocketTable())) =>
  probe({ upstream, healthPath, listeners }, new ManualClock(), NEVER)

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
    assert.equal(await look(await answering(t, reply), '/health'), why)
  })

for (const healthPath of [undefined, '/health'])
  test(`another user who listens at the port of a service is no service (${healthPath ?? 'no health path'})`, async (t) => {
    const upstream = await answering(t, 'HTTP/1.1 204 No Content\r\n\r\n')
    const table = socketsHeldBy(1002)
    if (table === undefined) return t.skip('the system does not show who listens')
    const why = await look(upstream, healthPath, openListeners(table, 1001))
    assert.match(why ?? '', /^port \d+ belongs to another user \(uid 1002\)/)
  })
