/** Stores written by the first schema open under every later one, complete (`test/fixtures/stores/make.ts` wrote them). */
import assert from 'node:assert/strict'
import { cpSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { type Migrations, migrationsOf } from '../../src/kernel/database.ts'
import { openStore, readMeta } from '../../src/kernel/store.ts'
import { CITY_MIGRATIONS, readSuspension } from '../../src/modules/cities/city-store.ts'
import { Registry } from '../../src/modules/cities/registry.ts'
import { SUPERVISOR_MIGRATIONS } from '../../src/supervisor/families.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const FIXTURES = resolve(import.meta.dirname, '..', 'fixtures', 'stores')
const SUPERVISOR_FIXTURES = readdirSync(FIXTURES).filter((file) => file.startsWith('supervisor-schema-'))
/** Two schemas that do not exist yet: a migrator that works today must go on working. */
const LATER = migrationsOf(
  'later',
  "ALTER TABLE requests ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'",
  'CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT',
)

function openFixture(from: string, to: string, migrations: Migrations) {
  cpSync(join(FIXTURES, from), to)
  return openStore({ path: to, migrations, owner: 'a fixture', clock: new ManualClock() })
}

for (const later of [[], LATER]) {
  test(`a city of schema 1 opens under ${later.length} later schemas, with its events, overrides and keys`, async () => {
    using directory = temporaryDirectory()
    const migrations = [...CITY_MIGRATIONS, ...later]
    const store = openFixture('city-schema-1/.svc/city.db', join(directory.path, 'city.db'), migrations)
    assert.equal(store.db.get('PRAGMA user_version')?.user_version, migrations.length)
    assert.equal(readMeta(store, 'uid'), '01KQGSN800FXTREFXTREFXTREF')
    assert.equal(readSuspension(store.db), true)
    const { events } = store.log.scan({}, { after: 0, upTo: store.log.head }, 'asc', 100)
    assert.deepEqual(
      events.map(({ seq, envelope }) => [seq, JSON.parse(envelope).payload.n]),
      Array.from({ length: 50 }, (_, n) => [n + 1, n + 1]),
    )
    assert.equal(store.log.count({ types: ['old.t1'], subject: 's1' }, { after: 0, upTo: 50 }, 100).total, 4)
    const next = await store.db.write((tx) =>
      store.log.appendCustom(tx, { type: 'new.type', actor: 'test', payload: {} }),
    )
    assert.equal(next, 51)
    store.db.close()
  })

  for (const fixture of SUPERVISOR_FIXTURES)
    test(`${fixture} opens under ${later.length} later schemas, with its cities, departures and requests`, () => {
      using directory = temporaryDirectory()
      const store = openFixture(fixture, join(directory.path, 'supervisor.db'), [...SUPERVISOR_MIGRATIONS, ...later])
      const registry = new Registry(store)
      assert.deepEqual(
        registry.cities().map(({ name, desired }) => [name, desired]),
        [['fixture', 'running']],
      )
      assert.deepEqual(
        registry.departures(0).map(({ name, finishedAt }) => [name, finishedAt]),
        [['left', undefined]],
      )
      assert.deepEqual(
        store.requests.unfinished().map(({ city }) => city),
        ['fixture'],
      )
      assert.equal(store.requests.count({ status: 'succeeded' }), 1)
      store.db.close()
    })
}

test('the newest schema has its fixture', () => {
  const files = readdirSync(FIXTURES)
  assert.ok(files.includes(`city-schema-${CITY_MIGRATIONS.length}`))
  assert.ok(files.includes(`supervisor-schema-${SUPERVISOR_MIGRATIONS.length}.db`))
})
