import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { Problem } from '../../../kernel/problem.ts'
import type { SessionRecord } from '../record/record.ts'
import { endingOf, outcomeAfterCrash } from './deliveries.ts'

/** A city with one session that nothing wakes. */
async function quietCity() {
  const city = new SessionCity()
  const { id } = await city.create({ state: 'asleep' })
  const retry_at = Date.now() + 29_000
  await city.store.db.write((tx) =>
    city.sessions.store.change(tx, id, { desired: 'asleep', retry_at }, { actor: 'api' }),
  )
  return { city, id, [Symbol.asyncDispose]: () => city[Symbol.asyncDispose]() }
}

const texts = (city: SessionCity, id: string) =>
  city.sessions.deliveries.waiting(id).map((one) => city.sessions.deliveries.text(one.id))

test('messages wait in the order in which they came; the prompt of a new conversation goes first', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  for (const text of ['one', 'two']) await city.say(id, text)
  await city.store.db.write((tx) =>
    city.sessions.deliveries.addFirst(tx, city.sessions.store.need(tx, id), {
      source: 'prompt',
      intent: 'default',
      text: 'prompt',
      ttlMs: 60_000,
    }),
  )
  await city.say(id, 'three')
  assert.deepEqual(texts(city, id), ['prompt', 'one', 'two', 'three'])
  const seqs = city.sessions.deliveries.waiting(id).map(({ seq }) => seq)
  assert.equal(new Set(seqs).size, 4)
  assert.equal(city.record(id).queued, 4)
})

test('an urgent message waits in front of others, behind earlier urgent ones and the prompt', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  await city.store.db.write((tx) =>
    city.sessions.deliveries.addFirst(tx, city.sessions.store.need(tx, id), {
      source: 'prompt',
      intent: 'default',
      text: 'prompt',
      ttlMs: 60_000,
    }),
  )
  await city.say(id, 'one')
  await city.say(id, 'two', { intent: 'follow_up' })
  await city.say(id, 'urgent', { intent: 'interrupt_now' })
  await city.say(id, 'three')
  await city.say(id, 'urgent too', { intent: 'interrupt_now' })
  assert.deepEqual(texts(city, id), ['prompt', 'urgent', 'urgent too', 'one', 'two', 'three'])
})

test('more than 1,000 do not wait', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  await city.store.db.write((tx) => {
    let session: SessionRecord = city.sessions.store.need(tx, id)
    for (let n = 0; n < 1_000; n++) {
      city.sessions.deliveries.add(tx, session, { source: 'nudge', intent: 'default', text: 'x', ttlMs: 60_000 }, 'api')
      session = city.sessions.store.need(tx, id)
    }
  })
  await assert.rejects(city.say(id, 'one more'), (error) => error instanceof Problem && error.code === 'queue-full')
})

test('a delivery ends once, and its request with it in the same write', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  const { requests, log } = city.store
  const requestId = `req-${'0'.repeat(24)}`
  const delivery = await city.store.db.write((tx) => {
    requests.accept(tx, { id: requestId, operation: 'session.message', city: 'alpha', eventCursor: '0', input: {} })
    const session = city.sessions.store.need(tx, id)
    const draft = { source: 'message', intent: 'default', text: 'x', requestId, ttlMs: 60_000 } as const
    return city.sessions.deliveries.add(tx, session, draft, 'api')
  })
  const end = () =>
    city.store.db.write((tx) => city.sessions.deliveries.end(tx, delivery.id, { state: 'delivered' }, 'supervisor'))
  const before = log.head
  assert.equal(await end(), true)
  assert.equal(log.head - before, 2, 'session.delivery and the terminal event')
  assert.equal(requests.get(requestId)?.status, 'succeeded')
  assert.deepEqual(requests.get(requestId)?.result, {
    request_id: requestId,
    session_id: id,
    delivery_id: delivery.id,
    queued: false,
  })
  assert.equal(await end(), false)
  assert.equal(log.head - before, 2)
  assert.equal(city.record(id).queued, 0)
})

test('a request that succeeds as queued leaves its delivery in the queue', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  const requestId = `req-${'1'.repeat(24)}`
  const delivery = await city.store.db.write((tx) => {
    city.store.requests.accept(tx, {
      id: requestId,
      operation: 'session.submit',
      city: 'alpha',
      eventCursor: '0',
      input: {},
    })
    const session = city.sessions.store.need(tx, id)
    const draft = { source: 'submit', intent: 'follow_up', text: 'x', requestId, ttlMs: 60_000 } as const
    return city.sessions.deliveries.add(tx, session, draft, 'api')
  })
  await city.store.db.write((tx) => city.sessions.deliveries.reportQueued(tx, delivery.id, 'turn'))
  assert.equal(city.store.requests.get(requestId)?.status, 'succeeded')
  assert.equal(city.delivery(id, delivery.id).state, 'queued')
  await city.store.db.write((tx) => city.sessions.deliveries.failOpenRequests(tx, 'city_stopped', 'stopped'))
  assert.equal(city.delivery(id, delivery.id).state, 'queued', 'nobody waits for it with a 202 in hand')
})

test('closing a session ends what waits, and says what may have been typed', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  const first = await city.say(id, 'one')
  const second = await city.say(id, 'two')
  await city.store.db.write((tx) => {
    city.sessions.deliveries.begin(tx, first.id, 1)
    city.sessions.close(tx, id, 'api', 'requested')
  })
  assert.equal(city.delivery(id, first.id).error_code, 'delivery_uncertain')
  assert.equal(city.delivery(id, second.id).error_code, 'session_closed')
})

test('only a queued delivery can be cancelled', async () => {
  await using stage = await quietCity()
  const { city, id } = stage
  const one = await city.say(id, 'one')
  await city.store.db.write((tx) => city.sessions.deliveries.begin(tx, one.id, 1))
  const cancel = () => city.store.db.write((tx) => city.sessions.deliveries.cancel(tx, id, one.id, 'api'))
  await assert.rejects(cancel(), (error) => error instanceof Problem && error.code === 'conflict-wrong-state')
  await city.store.db.write((tx) => city.sessions.deliveries.requeue(tx, one.id))
  await cancel()
  assert.equal(city.delivery(id, one.id).state, 'cancelled')
})

test('what may have been typed is never typed again; what certainly was not is tried three times', () => {
  assert.equal(endingOf({ state: 'uncertain', message: '' }, 1, 0)?.code, 'delivery_uncertain')
  assert.equal(endingOf({ state: 'delivered' }, 1, 7)?.endOffset, 7)
  const closed = { state: 'failed', code: 'closed', message: '' } as const
  assert.equal(endingOf(closed, 1, 0), undefined)
  assert.equal(endingOf(closed, 3, 0)?.code, 'closed')
  assert.equal(endingOf({ state: 'failed', code: 'too_long', message: '' }, 1, 0)?.code, 'too_long')
  assert.deepEqual(
    (['yes', 'no', 'unknown'] as const).map((known) => outcomeAfterCrash(known).state),
    ['delivered', 'failed', 'uncertain'],
  )
})
