import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutboxBench } from '../../../../test/support/outbox-bench.ts'
import type { AdapterRegistration } from '../../../contract/messaging/adapters.ts'
import { Problem } from '../../../kernel/problem.ts'
import { createSecret, sign } from '../../../messaging/signature.ts'
import { type Adapter, definitionOf, infoOf } from './adapter.ts'
import { Authenticator } from './credentials.ts'
import { InboundRate } from './rate.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

const register = (bench: OutboxBench, more: Partial<AdapterRegistration> = {}) => {
  const body = { provider: 'Chat', account_id: 'a', ...more }
  const wanted = { secret: body.secret, generate: body.generate_secret === true, actor: 'api' }
  return bench.write((tx) =>
    bench.adapters.register(
      tx,
      definitionOf(body, () => 'lcl-1'),
      wanted,
    ),
  )
}
const now = (bench: OutboxBench): Adapter => bench.adapters.need('chat', 'a')
const changes = (bench: OutboxBench) => bench.events().filter((type) => type.startsWith('extmsg.adapter'))

test('the same again renews, something else replaces, and only what is new or other is told of', async (t) => {
  const bench = new OutboxBench(t)
  assert.deepEqual((await register(bench)).created, true)
  assert.deepEqual((await register(bench, { provider: ' CHAT ' })).created, false)
  assert.deepEqual(changes(bench), ['extmsg.adapter_added'])
  const { adapter } = await register(bench, {
    callback_url: 'http://127.0.0.1:1',
    capabilities: { max_message_length: 9 },
  })
  assert.deepEqual([adapter.transport, adapter.callback_url], ['callback', 'http://127.0.0.1:1/'])
  assert.equal(changes(bench).length, 2)
})

test('two adapters cannot have one secret: it would show the one to be the other', async (t) => {
  const bench = new OutboxBench(t)
  const secret = createSecret()
  await register(bench, { secret })
  assert.equal((await register(bench, { secret })).created, false, 'the same adapter again')
  await assert.rejects(register(bench, { account_id: 'b', secret }), /body\.secret: is the secret of another adapter/)
  assert.equal(bench.adapters.find('chat', 'b'), undefined)
})

test('what cannot be registered is refused with its field', () => {
  const bad: readonly [Partial<AdapterRegistration>, RegExp][] = [
    [{ transport: 'callback' }, /body\.callback_url: is needed/],
    [{ transport: 'pull', callback_url: 'http://a' }, /body\.callback_url: is for the transport callback/],
    [{ callback_url: 'ftp://a' }, /neither http nor https/],
    [{ callback_url: 'http://me:pw@a' }, /has credentials/],
    [{ callback_url: 'nonsense' }, /is no URL/],
    [{ callback_url: 'http://169.254.169.254/latest' }, /nothing is posted there/],
    [{ callback_url: 'http://[fe80::1]:80' }, /nothing is posted there/],
    [{ provider: '  ' }, /body\.provider: is blank/],
    [{ account_id: 'a\u0007' }, /body\.account_id: has control characters/],
    [{ account_id: ' .. ' }, /body\.account_id: cannot be a part of a path/],
    [{ provider: '.' }, /body\.provider: cannot be a part of a path/],
  ]
  for (const [more, why] of bad)
    assert.throws(() => definitionOf({ provider: 'chat', account_id: 'a', ...more }, () => ''), why)
  assert.throws(() => definitionOf({ provider: 'chat' }, () => ''), /body\.account_id: is needed/)
  assert.equal(definitionOf({ provider: 'chat', transport: 'stream' }, () => 'lcl-9').account_id, 'lcl-9')
})

test('a lease that ends makes an adapter stale, a call brings it back, and a claim that waits is a call', async (t) => {
  const bench = new OutboxBench(t)
  await bench.adapters.start()
  await register(bench)
  await bench.clock.advance(89 * SECOND)
  assert.equal(now(bench).status, 'online')
  await bench.clock.advance(SECOND)
  assert.equal(now(bench).status, 'stale')
  bench.adapters.touch(now(bench))
  await bench.clock.advance(0)
  assert.equal(now(bench).status, 'online')
  {
    using _ = bench.adapters.waits(now(bench))
    await bench.clock.advance(HOUR)
    assert.equal(now(bench).status, 'online')
  }
  await bench.clock.advance(HOUR)
  assert.equal(now(bench).status, 'stale', 'it stays registered')
  assert.deepEqual(changes(bench), ['extmsg.adapter_added', ...Array(3).fill('extmsg.adapter_changed')])
})

test('three failures in a row make it failing, one success makes it good', async (t) => {
  const bench = new OutboxBench(t)
  await register(bench)
  const failed = (counts = true) =>
    bench.write((tx) => bench.adapters.failed(tx, now(bench), { error: 'no', counts, pauseMs: 0 }))
  for (const counts of [true, true, false]) await failed(counts)
  assert.equal(now(bench).status, 'online')
  await failed()
  assert.deepEqual([now(bench).status, now(bench).failures], ['failing', 3])
  await bench.write((tx) => bench.adapters.succeeded(tx, now(bench)))
  assert.deepEqual([now(bench).status, now(bench).failures], ['online', 0])
})

test('a secret is shown once, changed with a day of overlap, and is nowhere else', async (t) => {
  const bench = new OutboxBench(t)
  const authenticator = new Authenticator(bench.adapters, bench.clock)
  const bearer = (secret: string) => ({
    header: (name: string) => (name === 'authorization' ? `Bearer ${secret}` : undefined),
  })
  const { secret: first = '' } = await register(bench, { generate_secret: true })
  assert.match(first, /^whsec_/)
  assert.equal((await register(bench, { generate_secret: true })).secret, undefined, 'it has one')
  const second = await bench.write((tx) => bench.adapters.rotate(tx, now(bench), 'api'))
  for (const secret of [first, second])
    assert.deepEqual(authenticator.prove(now(bench), bearer(secret)), { by: 'secret' })
  await bench.clock.advance(24 * HOUR - 1)
  assert.deepEqual(authenticator.prove(now(bench), bearer(first)), { by: 'secret' })
  await bench.clock.advance(1)
  assert.throws(() => authenticator.prove(now(bench), bearer(first)), /not its secret/)
  assert.deepEqual(authenticator.prove(now(bench), bearer(second)), { by: 'secret' })
  const shown = infoOf(now(bench), bench.adapters.secrets(now(bench)), { pending: 0, dead: 0 }, bench.clock.now())
  const { log } = bench.store
  const logged = log.scan({}, { after: 0, upTo: log.head }, 'asc', 100).events.map(({ envelope }) => envelope)
  for (const text of [JSON.stringify(shown), ...logged]) assert.ok(!text.includes('whsec_'), text)
})

test('a signature proves whose request it is; that of another adapter, an old one or another body does not', async (t) => {
  const bench = new OutboxBench(t)
  const authenticator = new Authenticator(bench.adapters, bench.clock)
  const secret = createSecret()
  const other = createSecret()
  await register(bench, { secret })
  const { adapter: another } = await register(bench, { account_id: 'b', secret: other })
  const bytes = Buffer.from('{"message":{}}')
  const signed = (by: string, at = bench.clock.now(), body = bytes) => {
    const headers: Readonly<Record<string, string>> = sign([by], 'in-1', at, body)
    return { header: (name: string) => headers[name], bytes }
  }
  const refused = (credentials: Parameters<Authenticator['prove']>[1], why: RegExp) =>
    assert.throws(() => authenticator.prove(now(bench), credentials), why)
  assert.deepEqual(authenticator.prove(now(bench), signed(secret)), { by: 'signature', id: 'in-1' })
  refused(signed(other), /unauthorized|no signature/)
  refused(signed(secret, bench.clock.now() - 301 * SECOND), /five minutes/)
  refused(signed(secret, bench.clock.now() + 302 * SECOND), /five minutes/)
  refused(signed(secret, bench.clock.now(), Buffer.from('{}')), /no signature/)
  refused({ header: () => undefined }, /is needed/)
  refused({ header: () => `Bearer ${other}` }, /this is the secret of chat\/b/)
  refused({ header: () => `Bearer ${createSecret()}` }, /not its secret/)
  assert.deepEqual(authenticator.prove(another, signed(other)), { by: 'signature', id: 'in-1' })
})

test('an adapter brings 200 at once and 50 a second, whatever others do', async (t) => {
  const bench = new OutboxBench(t)
  const rate = new InboundRate(bench.clock)
  const admitted = (account: string, tries: number): number => {
    let count = 0
    for (let index = 0; index < tries; index++)
      try {
        rate.admit({ provider: 'chat', account_id: account })
        count++
      } catch (error) {
        assert.match(String(error), /more than 50 messages a second/)
      }
    return count
  }
  assert.equal(admitted('a', 300), 200)
  assert.equal(admitted('b', 10), 10)
  await bench.clock.advance(SECOND)
  assert.equal(admitted('a', 300), 50)
  await bench.clock.advance(HOUR)
  assert.equal(admitted('a', 300), 200)
  const many = { provider: 'chat', account_id: 'many' }
  rate.admit(many, 150)
  assert.throws(() => rate.admit(many, 151), /more than 50 messages a second/)
  rate.admit(many, 50)
  assert.throws(
    () => rate.admit(many, 500),
    (error) => error instanceof Problem && error.options.retryAfterSec === 4,
  )
  await bench.clock.advance(4 * SECOND)
  rate.admit(many, 500)
})
