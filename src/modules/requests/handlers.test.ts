import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { newestOf } from './handlers.ts'

test('a page of requests over many cities holds the newest of all, and quiet cities are not read for it', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const stores = Array.from({ length: 20 }, (_, index) =>
    openStore({
      path: join(directory.path, `c${index}.db`),
      migrations: migrationsOf('store', STORE_SCHEMA),
      owner: 'a test',
      clock,
    }),
  )
  let number = 0
  const accept = (index: number) =>
    stores[index]?.db.write((tx) =>
      stores[index]?.requests.accept(tx, {
        id: `req-${String(++number).padStart(4, '0')}`,
        operation: 'city.create',
        city: `c${index}`,
        eventCursor: '0',
        input: {},
      }),
    )
  for (let index = 0; index < 20; index++) await accept(index)
  for (let count = 0; count < 30; count++) {
    clock.step(1)
    await accept(count % 2)
  }
  let read = 0
  const ledgers = stores.map(({ requests }) => requests)
  for (const ledger of ledgers) {
    const page = ledger.page.bind(ledger)
    ledger.page = (...given) => {
      read++
      return page(...given)
    }
  }
  const ids = (limit: number) => newestOf(ledgers, {}, undefined, limit).map(({ request_id }) => request_id)
  assert.deepEqual(
    ids(10),
    Array.from({ length: 10 }, (_, index) => `req-${String(50 - index).padStart(4, '0')}`),
  )
  assert.equal(read, 2)
  assert.equal(ids(100).length, 50)
  for (const { db } of stores) db.close()
})
