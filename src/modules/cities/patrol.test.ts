import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { cityFromRow } from './city.ts'
import { CityPatrol } from './patrol.ts'
import { REGISTRY_SCHEMA, Registry } from './registry.ts'

const ROUND_MS = 10_000

/** A patrol of two stopped cities, of which the first one cannot be looked at. */
async function world() {
  const directory = temporaryDirectory()
  const clock = new ManualClock()
  const path = join(directory.path, 'supervisor.db')
  const migrations = migrationsOf('supervisor', `${STORE_SCHEMA}${REGISTRY_SCHEMA}`)
  const supervisor = openStore({ path, migrations, owner: 'test', clock })
  const registry = new Registry(supervisor)
  const rows = await supervisor.db.write((tx) =>
    ['alpha', 'beta'].map((name) =>
      registry.add(tx, { name, uid: name, path: join(directory.path, name), registeredAt: 1, startHead: 0 }, 1),
    ),
  )
  const poked: string[] = []
  const warned: string[] = []
  const workers = rows.map((row) => ({
    city: cityFromRow({ ...row, desired: 'stopped' }, 1),
    run: undefined,
    dropStore() {},
    directoryLost() {},
    retryNow() {},
    poke() {
      poked.push(row.name)
      if (row.name === 'alpha') throw new Error('EACCES: permission denied')
    },
    ensureStore: () => Promise.reject(new Error('it is not there')),
  }))
  const warn = (_: object, message: string) => void warned.push(message)
  const patrol = new CityPatrol({
    clock,
    log: { error: warn, warn, info() {}, debug() {}, isLevelEnabled: () => false },
    supervisor,
    retention: { maxAgeMs: 86_400_000, maxBytes: 1_000_000 },
    workers: () => workers,
    inspect: () => {},
  })
  patrol.start()
  return {
    clock,
    path,
    supervisor,
    poked,
    warned,
    [Symbol.dispose]() {
      patrol.close()
      supervisor.db.close()
      directory[Symbol.dispose]()
    },
  }
}

test('a city that cannot be looked at keeps no other one from its round, and no store from being tended', async () => {
  using patrol = await world()
  await patrol.clock.advance(ROUND_MS)
  assert.deepEqual(patrol.poked, ['alpha', 'beta'])
  assert.deepEqual(patrol.warned, ['city not looked at'])
  await eventually('the next round', async () => {
    await patrol.clock.advance(ROUND_MS)
    return patrol.poked.length >= 4 || undefined
  })
})

test('a home that is gone is noticed by the next round, before anybody writes, and so is its return', async () => {
  using patrol = await world()
  const { db } = patrol.supervisor
  renameSync(patrol.path, `${patrol.path}.away`)
  assert.equal(db.failure, undefined)
  await patrol.clock.advance(ROUND_MS)
  assert.match(String(db.failure), /its file was removed or replaced/)
  renameSync(`${patrol.path}.away`, patrol.path)
  await eventually('it is well again', async () => {
    await patrol.clock.advance(ROUND_MS)
    return db.failure === undefined || undefined
  })
})
