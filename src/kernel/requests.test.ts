import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { fc } from '../../test/support/random.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { migrationsOf } from './database.ts'
import { openStore, STORE_SCHEMA, type Store, tidy } from './store.ts'

const open = (directory: string, clock = new ManualClock()): Store =>
  openStore({
    path: join(directory, 'ledger.db'),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: 'a test',
    clock,
  })
const idOf = (number: number) => `req-${String(number).padStart(24, '0')}`
const accept = (store: Store, number: number, city = 'alpha') =>
  store.db.write((tx) =>
    store.requests.accept(tx, {
      id: idOf(number),
      operation: 'city.create',
      city,
      eventCursor: '0',
      input: { number },
    }),
  )
const succeed = (store: Store, number: number) =>
  store.db.write((tx) =>
    store.requests.finish(tx, {
      type: 'request.result.city.create',
      actor: 'supervisor',
      payload: { request_id: idOf(number), name: 'alpha', path: '/alpha' },
    }),
  )
const fail = (store: Store, number: number) =>
  store.db.write((tx) =>
    store.requests.finish(tx, {
      type: 'request.failed',
      actor: 'supervisor',
      payload: { request_id: idOf(number), operation: 'city.create', error_code: 'interrupted', error_message: 'no' },
    }),
  )

test('however often and by whomever a request is ended, it has one terminal event, and the first end counts (R2)', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  let number = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }), async (ends) => {
      const mine = ++number
      await accept(store, mine)
      assert.equal(store.requests.pending, 1)
      const outcomes = await Promise.all(ends.map((success) => (success ? succeed(store, mine) : fail(store, mine))))
      assert.deepEqual(
        outcomes,
        ends.map((_, index) => index === 0),
      )
      const terminal = store.log
        .scan({ types: ['request.*'] }, { after: 0, upTo: store.log.head }, 'asc', 1_000)
        .events.filter(({ envelope }) => envelope.includes(idOf(mine)))
      assert.deepEqual(
        terminal.map(({ type }) => type),
        [ends[0] ? 'request.result.city.create' : 'request.failed'],
      )
      assert.equal(store.requests.get(idOf(mine))?.status, ends[0] ? 'succeeded' : 'failed')
      assert.equal(store.requests.pending, 0)
    }),
    { numRuns: 30 },
  )
  store.db.close()
})

test('a request that was accepted by nobody cannot be ended', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  assert.equal(await succeed(store, 1), false)
  assert.equal(store.log.head, 0)
  store.db.close()
})

test('an end that was undone is no end: neither row nor event, and the request is still pending', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await accept(store, 1)
  await assert.rejects(
    store.db.write((tx) => {
      store.requests.finish(tx, {
        type: 'request.failed',
        actor: 'supervisor',
        payload: { request_id: idOf(1), operation: 'city.create', error_code: 'x', error_message: 'x' },
      })
      throw new Error('undone')
    }),
  )
  assert.deepEqual([store.requests.pending, store.log.head, store.requests.get(idOf(1))?.status], [1, 0, 'accepted'])
  store.db.close()
})

test('what had not ended is known after a restart, with what it needs to go on (R3)', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  for (const number of [1, 2, 3]) await accept(store, number, number === 3 ? 'beta' : 'alpha')
  await succeed(store, 2)
  store.db.close()
  const again = open(directory.path)
  assert.equal(again.requests.pending, 2)
  assert.deepEqual(
    again.requests.unfinished().map(({ id, input }) => [id, input]),
    [
      [idOf(1), { number: 1 }],
      [idOf(3), { number: 3 }],
    ],
  )
  assert.deepEqual(
    again.requests.unfinished('beta').map(({ id }) => id),
    [idOf(3)],
  )
  again.db.close()
})

test('pages walk every request once, newest first, whatever is accepted meanwhile', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  for (let number = 1; number <= 20; number++) {
    if (number % 3 === 0) clock.step(1)
    await accept(store, number)
  }
  const walked: string[] = []
  for (let page = store.requests.page({}, undefined, 3); page.length > 0; ) {
    walked.push(...page.map(({ request_id }) => request_id))
    clock.step(1)
    await accept(store, 100 + walked.length)
    const last = page.at(-1)
    page = last === undefined ? [] : store.requests.page({}, [Date.parse(last.created_at), last.request_id], 3)
  }
  assert.deepEqual(
    walked,
    Array.from({ length: 20 }, (_, index) => idOf(20 - index)),
  )
  assert.equal(store.requests.count({ status: 'accepted' }), 27)
  assert.equal(store.requests.count({ city: 'beta' }), 0)
  store.db.close()
})

test('a ledger says how new its newest is and how many it has, without a look at the disk while nothing changes', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  assert.equal(store.requests.newestAt, 0)
  await accept(store, 1)
  const first = clock.now()
  assert.equal(store.requests.newestAt, first)
  assert.deepEqual([store.requests.count({}), store.requests.count({ status: 'succeeded' })], [1, 0])
  clock.step(5)
  await accept(store, 2)
  await succeed(store, 1)
  assert.equal(store.requests.newestAt, first + 5)
  assert.deepEqual([store.requests.count({}), store.requests.count({ status: 'succeeded' })], [2, 1])
  let asked = 0
  const get = store.db.get.bind(store.db)
  store.db.get = (...given) => {
    asked++
    return get(...given)
  }
  assert.deepEqual([store.requests.count({}), store.requests.count({ status: 'succeeded' })], [2, 1])
  assert.equal(asked, 0)
  store.db.close()
})

test('what ended a month ago is forgotten, what has not ended never', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  await accept(store, 1)
  await accept(store, 2)
  await succeed(store, 2)
  await clock.advance(31 * 86_400_000)
  await tidy(store, { maxAgeMs: 1e12, maxBytes: 1e9 })
  assert.equal(store.requests.get(idOf(2)), undefined)
  assert.equal(store.requests.get(idOf(1))?.status, 'accepted')
  store.db.close()
})
