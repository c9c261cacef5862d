import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutboxBench } from '../../../../test/support/outbox-bench.ts'
import { sweepsOfRows } from '../sweeps.ts'
import { reported } from './answers.ts'
import type { Delivery } from './delivery.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const fail = (bench: OutboxBench, delivery: Delivery, more: Partial<Parameters<typeof reported>[0]> = {}) =>
  bench.write((tx) =>
    bench.outbox.failed(
      tx,
      bench.get(delivery.id),
      delivery.attempts,
      reported({ attempt: delivery.attempts, failure_kind: 'transient', ...more }),
    ),
  )
const ack = (bench: OutboxBench, id: string) =>
  bench.write((tx) => bench.outbox.delivered(tx, bench.get(id), { message_id: `m-${id}` }))

test('of a conversation one delivery is out at a time and in order; conversations do not wait for each other', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const [first, second, other] = [await bench.say('one'), await bench.say('one'), await bench.say('two')]
  const taken = await bench.take()
  assert.deepEqual(
    taken.map(({ id }) => id),
    [first.id, other.id],
  )
  assert.deepEqual(await bench.take(), [])
  await ack(bench, first.id)
  assert.deepEqual(
    (await bench.take()).map(({ id }) => id),
    [second.id],
  )
  assert.deepEqual(
    bench.settled.map(({ id, status }) => [id, status]),
    [[first.id, 'delivered']],
  )
})

test('attempts follow the schedule, with a fifth more or less, and the tenth answer is the last', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const { id } = await bench.say('one')
  const next = await bench.say('one')
  const waits: number[] = []
  for (let attempt = 1; attempt <= 10; attempt++) {
    const [taken] = await bench.take()
    assert.equal(taken?.attempts, attempt)
    assert.equal(taken?.id, id)
    const after = await fail(bench, bench.get(id))
    if (after?.state !== 'ready') break
    const wait = after.next_at - bench.clock.now()
    waits.push(wait)
    await bench.clock.advance(wait - 1)
    assert.deepEqual(await bench.take(), [], 'not a moment earlier')
    await bench.clock.advance(1)
  }
  assert.deepEqual(waits, [1_000, 5_000, 30_000, 2 * MINUTE, ...Array(5).fill(10 * MINUTE)])
  const dead = bench.get(id)
  assert.deepEqual([dead.state, dead.attempts, dead.answered], ['dead', 10, 10])
  assert.deepEqual(
    (await bench.take()).map(({ id: one }) => one),
    [next.id],
    'the next one goes on',
  )
  assert.deepEqual(
    bench.events().filter((type) => type.startsWith('extmsg.outbound')),
    ['extmsg.outbound_failed'],
  )
  bench.chance = 0
  assert.equal((await fail(bench, bench.get(next.id)))?.next_at, bench.clock.now() + 800)
  await bench.clock.advance(800)
  await bench.take()
  bench.chance = 1
  assert.equal((await fail(bench, bench.get(next.id)))?.next_at, bench.clock.now() + 6_000)
})

test('who asks for a pause gets one, for all conversations', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const limited = await bench.say('one')
  const [taken] = await bench.take()
  await bench.say('two')
  await fail(bench, taken ?? limited, { failure_kind: 'rate_limited', retry_after_ms: MINUTE })
  assert.deepEqual(await bench.take(), [])
  assert.equal(bench.outbox.dueAt(bench.adapters.need('chat', 'a')), bench.clock.now() + MINUTE)
  await bench.clock.advance(MINUTE)
  assert.equal((await bench.take()).length, 2)
  assert.equal(bench.adapters.need('chat', 'a').failures, 0, 'a pause is no fault')
})

test('what nobody takes for a day is dead, and what follows it as well', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  await bench.outbox.start()
  const first = await bench.say('one')
  await bench.clock.advance(HOUR)
  const second = await bench.say('one')
  await bench.clock.advance(23 * HOUR - 1)
  assert.equal(bench.get(first.id).state, 'ready')
  await bench.clock.advance(1)
  assert.deepEqual([bench.get(first.id).state, bench.get(first.id).attempts], ['dead', 0])
  assert.equal(bench.get(second.id).state, 'ready')
  await bench.clock.advance(HOUR)
  assert.equal(bench.get(second.id).state, 'dead')
})

test('a lease that ends is an answer; what comes later still counts, and a stale failure does not', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  await bench.outbox.start()
  const { id } = await bench.say('one')
  const [taken] = await bench.take('a', 10_000)
  assert.ok(taken)
  await bench.clock.advance(10_000)
  assert.deepEqual([bench.get(id).state, bench.get(id).answered, bench.get(id).failure_kind], ['ready', 1, 'transient'])
  assert.equal(await fail(bench, taken), undefined, 'its attempt is over')
  await bench.clock.advance(1_000)
  const [again] = await bench.take('a', 10_000)
  assert.deepEqual([again?.id, again?.attempts], [id, 2])
  assert.equal(await fail(bench, taken), undefined, 'so it is now')
  await bench.clock.advance(10_000)
  await ack(bench, id)
  await ack(bench, id)
  assert.equal(bench.get(id).state, 'delivered')
  assert.deepEqual(
    bench.events().filter((type) => type.startsWith('extmsg.outbound')),
    ['extmsg.outbound'],
  )
})

test('what was given up and is in the chat after all is delivered', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const { id } = await bench.say('one')
  const [taken] = await bench.take()
  assert.ok(taken)
  await fail(bench, taken, { failure_kind: 'permanent' })
  assert.equal(bench.get(id).state, 'dead')
  await ack(bench, id)
  assert.deepEqual(
    bench.settled.map(({ status }) => status),
    ['dead', 'delivered'],
  )
})

test('a dead letter that is retried has its place and ten new attempts; one that is deleted is gone', async (t) => {
  const bench = new OutboxBench(t)
  const adapter = await bench.register('pull')
  const [first, second] = [await bench.say('one'), await bench.say('one')]
  const [taken] = await bench.take()
  await fail(bench, taken ?? first, { failure_kind: 'unsupported' })
  assert.equal(bench.get(second.id).state, 'ready')
  await bench.write((tx) => bench.outbox.retry(tx, adapter, bench.get(first.id)))
  assert.deepEqual([bench.get(first.id).state, bench.get(second.id).state], ['ready', 'behind'])
  assert.deepEqual(
    bench.settled.map(({ status }) => status),
    ['dead', 'pending'],
  )
  const [again] = await bench.take()
  assert.deepEqual([again?.id, again?.attempts, again?.answered], [first.id, 2, 0])
  await fail(bench, again ?? first, { failure_kind: 'not_found' })
  await bench.write((tx) => bench.outbox.remove(tx, bench.get(first.id)))
  assert.equal(bench.outbox.find(first.id), undefined)
  await assert.rejects(
    bench.write((tx) => bench.outbox.remove(tx, bench.get(second.id))),
    /only what is dead/,
  )
})

test('dead letters are there for 30 days, what was delivered for 7', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  await bench.outbox.start()
  const [dead, delivered] = [await bench.say('one'), await bench.say('two')]
  for (const taken of await bench.take())
    if (taken.id === dead.id) await fail(bench, taken, { failure_kind: 'permanent' })
  await ack(bench, delivered.id)
  const days = async (count: number) => {
    await bench.clock.advance(count * 24 * HOUR)
    for (const sweep of sweepsOfRows(bench.store.db, bench.clock)) await sweep.run({ agesCount: true, isOver: false })
  }
  await days(6)
  assert.ok(bench.outbox.find(delivered.id))
  await days(2)
  assert.equal(bench.outbox.find(delivered.id), undefined)
  await days(21)
  assert.ok(bench.outbox.find(dead.id))
  await days(2)
  assert.equal(bench.outbox.find(dead.id), undefined)
})

test('where an adapter is removed what was pending is dead; where it reads a stream it has everything at once', async (t) => {
  const bench = new OutboxBench(t)
  const adapter = await bench.register('pull')
  await bench.say('one')
  await bench.say('one')
  assert.equal(await bench.write((tx) => bench.outbox.bury(tx, adapter, 1)), 1, 'as many as one write may')
  assert.equal(await bench.write((tx) => bench.outbox.bury(tx, adapter, 10)), 1)
  assert.deepEqual(
    bench.settled.map(({ status }) => status),
    ['dead', 'dead'],
  )
  await bench.register('stream', 'b')
  const read = await bench.say('one', 'hi', 'b')
  assert.deepEqual([read.state, read.attempts], ['delivered', 0])
  await assert.rejects(bench.say('one', 'hi', 'c'), { code: 'no-adapter' })
})

test('what is pending in a transcript that is deleted is dead, and told of; nothing of it is kept or sent', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const [first, second, other] = [await bench.say('one'), await bench.say('one'), await bench.say('two')]
  const [flying] = await bench.take('a', 60_000, 1)
  assert.equal(flying?.id, first.id)
  const told = bench.store.log.head
  const pending = () => bench.write((tx) => bench.outbox.pendingIn(tx, first.transcript_id))
  const forget = () => bench.write((tx) => bench.outbox.forget(tx, first.transcript_id, 1))
  assert.equal(await pending(), 2)
  assert.equal(await forget(), 1)
  assert.equal(await pending(), 1, 'one write handles a slice')
  const slices: number[] = []
  while (slices.at(-1) !== 0) slices.push(await forget())
  assert.deepEqual(slices, [1, 1, 1, 0], 'pending ones first, then the rows')
  assert.equal(await pending(), 0)
  assert.deepEqual(bench.events(told), ['extmsg.outbound_failed', 'extmsg.outbound_failed'])
  assert.deepEqual(
    bench.settled.map(({ id, status }) => [id, status]),
    [
      [second.id, 'dead'],
      [first.id, 'dead'],
    ],
  )
  assert.equal(bench.outbox.find(first.id), undefined)
  assert.deepEqual(
    (await bench.take()).map(({ id }) => id),
    [other.id],
  )
})

test('an adapter that reads the stream from now on has what was pending, oldest first, in slices', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('pull')
  const said = [await bench.say('one'), await bench.say('one'), await bench.say('one')].map(({ id }) => id)
  const adapter = await bench.register('stream')
  const slice = () => bench.write((tx) => bench.outbox.streamed(tx, adapter, 2))
  assert.equal(await slice(), 2)
  assert.deepEqual(
    said.map((id) => bench.get(id).state),
    ['delivered', 'delivered', 'ready'],
  )
  assert.equal(await slice(), 1)
  assert.equal(await slice(), 0)
})

test('attempts that died with the process are made again under the same id', async (t) => {
  const bench = new OutboxBench(t)
  await bench.register('callback')
  const { id } = await bench.say('one')
  const begun = await bench.write((tx) => bench.outbox.take(tx, bench.adapters.need('chat', 'a', tx), 8, undefined))
  assert.deepEqual(
    begun.map((one) => [one.id, one.attempts]),
    [[id, 1]],
  )
  await bench.outbox.start()
  const again = await bench.write((tx) => bench.outbox.take(tx, bench.adapters.need('chat', 'a', tx), 8, undefined))
  assert.deepEqual(
    again.map((one) => [one.id, one.attempts]),
    [[id, 2]],
  )
})
