import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { migrationsOf } from './database.ts'
import { fingerprintOf } from './idempotency.ts'
import { openStore, STORE_SCHEMA, type Store } from './store.ts'

const claim = (body: unknown, key = 'k', scope = 'POST /v0/city') => ({ scope, key, fingerprint: fingerprintOf(body) })
const open = (directory: string, clock = new ManualClock()): Store =>
  openStore({
    path: join(directory, 'keys.db'),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: 'a test',
    clock,
  })

/** Creates something, and says how many there are. */
function creator(store: Store) {
  let made = 0
  return (one: ReturnType<typeof claim> | undefined) =>
    store.keys.once(one, () =>
      store.db.write((tx) => store.keys.remember(tx, one, { status: 201, body: { made: ++made } })),
    )
}

test('a key answers as it did the first time, also after a restart (K1)', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const create = creator(store)
  const first = await create(claim({ a: 1 }))
  assert.deepEqual(await create(claim({ a: 1 })), first)
  store.db.close()
  const again = open(directory.path)
  assert.deepEqual(await creator(again)(claim({ a: 1 })), first)
  again.db.close()
})

test('without a key, and under another key or path, each call is its own', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const create = creator(store)
  const made = [undefined, undefined, claim({}, 'a'), claim({}, 'b'), claim({}, 'a', 'POST /v0/cities')]
  const answers = []
  for (const one of made) answers.push((await create(one)).body.made)
  assert.deepEqual(answers, [1, 2, 3, 4, 5])
  store.db.close()
})

test('the same key with another body is a mismatch, before and after the first has ended', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const create = creator(store)
  const running = create(claim({ a: 1 }))
  await assert.rejects(create(claim({ a: 2 })), { code: 'idempotency-mismatch' })
  await assert.rejects(create(claim({ a: 1 })), { code: 'idempotency-in-flight' })
  await running
  await assert.rejects(create(claim({ a: 2 })), { code: 'idempotency-mismatch' })
  store.db.close()
})

test('a request that failed frees its key (K2)', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const one = claim({ a: 1 })
  await assert.rejects(
    store.keys.once(one, () =>
      store.db.write((tx) => {
        store.keys.remember(tx, one, { status: 201, body: {} })
        throw new Error('undone')
      }),
    ),
    /undone/,
  )
  await assert.rejects(
    async () =>
      store.keys.once(one, () => {
        throw new Error('at once')
      }),
    /at once/,
  )
  assert.deepEqual((await creator(store)(one)).body, { made: 1 })
  store.db.close()
})

test('a key is kept for a day', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  const create = creator(store)
  await create(claim({}))
  clock.pause(86_400_000)
  assert.deepEqual((await create(claim({}))).body, { made: 1 })
  clock.pause(1)
  assert.deepEqual((await create(claim({}))).body, { made: 2 })
  store.db.close()
})

test('stored answers are bounded by bytes: the oldest go, the newest always answers', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  const bytes = () => Number(store.db.get('SELECT total(octet_length(body)) AS n FROM idempotency_keys')?.n)
  const answer = 'x'.repeat(1024 * 1024)
  for (let count = 0; count < 100; count++) {
    await clock.advance(1)
    const one = claim({}, `key ${count}`)
    await store.keys.once(one, () =>
      store.db.write((tx) => store.keys.remember(tx, one, { status: 200, body: { count, answer } })),
    )
    assert.ok(bytes() <= 65 * 1024 * 1024)
    const again = await store.keys.once(one, () => assert.fail('its answer is stored'))
    assert.deepEqual(again.body, { count, answer })
  }
  let made = 0
  const oldest = claim({}, 'key 0')
  await store.keys.once(oldest, () => Promise.resolve({ status: 200, body: { made: ++made } }))
  assert.equal(made, 1, 'its answer had to make room')
  store.db.close()
})

test('a clock that is a day ahead for a moment makes no key free again', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  const create = creator(store)
  const first = await create(claim({ a: 1 }))
  clock.step(25 * 3_600_000)
  assert.deepEqual(await create(claim({ a: 1 })), first)
  await create(claim({ b: 1 }, 'other'))
  clock.step(-25 * 3_600_000)
  assert.deepEqual(await create(claim({ a: 1 })), first)
  store.db.close()
})
