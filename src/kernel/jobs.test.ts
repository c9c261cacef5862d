import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { REQUEST_OPERATIONS } from '../contract/event-types.ts'
import { migrationsOf } from './database.ts'
import { createIds } from './ids.ts'
import { allJobs, type Job, Jobs } from './jobs.ts'
import type { Logger } from './log.ts'
import { openStore, STORE_SCHEMA } from './store.ts'

test('a request whose store was closed under it is not tried to be ended again and again', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const path = join(directory.path, 'city.db')
  const store = openStore({ path, migrations: migrationsOf('store', STORE_SCHEMA), owner: 'a test', clock })
  const errors: string[] = []
  const log: Logger = {
    error: (_, message) => errors.push(message),
    warn() {},
    info() {},
    debug() {},
    isLevelEnabled: () => false,
  }
  const begun = Promise.withResolvers<void>()
  const run = (_: unknown, signal: AbortSignal) => {
    begun.resolve()
    return new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const job = { operation: 'config.reload', deadlineMs: 60_000, resumable: false, run } as const
  const jobs = new Jobs({ city: 'alpha', ids: createIds('0'), store, clock, log, jobs: [job] })
  const request = { id: `req-${'0'.repeat(24)}`, operation: 'config.reload', city: 'alpha', input: {} } as const
  await store.db.write((tx) => jobs.accept(tx, { ...request, eventCursor: '0' }))
  await begun.promise
  store.db.close()
  await jobs.stop('city_stopped', 'its directory is gone')
  assert.equal(clock.pending, 0)
  assert.deepEqual(errors, [])
})

test('what a request kept until its end is removed after it, and a removal that fails leaves the good end', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const path = join(directory.path, 'city.db')
  const store = openStore({ path, migrations: migrationsOf('store', STORE_SCHEMA), owner: 'a test', clock })
  const warned: string[] = []
  const removed = Promise.withResolvers<number>()
  const log: Logger = {
    error: (_, message) => warned.push(message),
    warn: (_, message) => {
      warned.push(message)
      removed.resolve(left)
    },
    info() {},
    debug() {},
    isLevelEnabled: () => false,
  }
  let left = -1
  const job: Job<'config.reload'> = {
    operation: 'config.reload',
    deadlineMs: 60_000,
    resumable: false,
    run:
      async ({ id }) =>
      () => ({
        type: 'request.result.config.reload',
        actor: 'supervisor',
        payload: { request_id: id, outcome: 'no_change', revision: 'a', warnings: [] },
      }),
    ended: () => {
      left = store.requests.unfinished().length
      throw new Error('EROFS: read-only file system')
    },
  }
  const jobs = new Jobs({ city: 'alpha', ids: createIds('0'), store, clock, log, jobs: [job] })
  const request = { id: `req-${'0'.repeat(24)}`, operation: 'config.reload', city: 'alpha', input: {} } as const
  await store.db.write((tx) => jobs.accept(tx, { ...request, eventCursor: '0' }))
  assert.equal(await removed.promise, 0, 'it had ended before')
  await jobs.close()
  assert.deepEqual(warned, ['what a request kept until its end not removed'])
  store.db.close()
})

test('a city does not start where something that it accepts has no job, or two', () => {
  const jobs = REQUEST_OPERATIONS.filter((name) => !name.startsWith('city.')).map(
    (operation): Job => ({ operation, deadlineMs: 1, resumable: false, run: async () => () => undefined }),
  )
  assert.equal(allJobs(jobs), jobs)
  assert.throws(() => allJobs(jobs.slice(1)), /config\.reload has 0 jobs, not 1/)
  assert.throws(() => allJobs([...jobs, ...jobs.slice(0, 1)]), /config\.reload has 2 jobs, not 1/)
})
