/** Stores of earlier schemas: those since 0.1.0 open under every later one, complete; older ones are refused untouched. */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { type Migrations, migrationsOf } from '../../src/kernel/database.ts'
import { openStore } from '../../src/kernel/store.ts'
import { CITY_MIGRATIONS } from '../../src/modules/cities/city-store.ts'
import { Registry } from '../../src/modules/cities/registry.ts'
import { SUPERVISOR_MIGRATIONS } from '../../src/supervisor/families.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const FIXTURES = resolve(import.meta.dirname, '..', 'fixtures', 'stores')
const SUPERVISOR_FIXTURES = readdirSync(FIXTURES).filter((file) => file === 'supervisor-schema-3.db')
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

for (const fixture of ['city-schema-1/.svc/city.db', 'supervisor-schema-1.db'])
  test(`${fixture}, from before 0.1.0, is refused with the way to export, and not a byte of it is changed`, () => {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'store.db')
    const migrations = fixture.startsWith('city') ? CITY_MIGRATIONS : SUPERVISOR_MIGRATIONS
    assert.throws(() => openFixture(fixture, path, migrations), /before version 0\.1\.0.*svcctl bead export/)
    assert.deepEqual(readFileSync(path), readFileSync(join(FIXTURES, fixture)))
    assert.deepEqual(readdirSync(directory.path), ['store.db'])
  })
