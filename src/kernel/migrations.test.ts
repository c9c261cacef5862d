import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { mounted } from '../../test/support/small-disk.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { Database, type Migrations, migrationsOf } from './database.ts'
import { openStore, STORE_SCHEMA, tidy } from './store.ts'

const ITEMS = 'CREATE TABLE items (text TEXT NOT NULL) STRICT'
const COLOUR = "ALTER TABLE items ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'"
const OLD = migrationsOf('items', ITEMS)
const NEW = migrationsOf('items', ITEMS, COLOUR, 'CREATE TABLE extra (a)')

const open = (path: string, migrations: Migrations) => Database.open({ path, migrations, owner: 'a test' })
const itemsIn = (db: Database) => db.all('SELECT text FROM items ORDER BY text').map(({ text }) => text)

async function oldStore(path: string, ...texts: readonly string[]): Promise<void> {
  const db = open(path, OLD)
  await db.write((tx) => {
    for (const text of texts) tx.run('INSERT INTO items VALUES (?)', text)
  })
  db.close()
}

test('upgrade: the store has the new schema and everything in it, and the old one stays beside it', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  await oldStore(path, 'one', 'two')
  const db = open(path, NEW)
  assert.deepEqual(db.all('SELECT text, colour FROM items ORDER BY text'), [
    { text: 'one', colour: 'grey' },
    { text: 'two', colour: 'grey' },
  ])
  assert.equal(db.inPlace, true)
  db.close()
  assert.equal(statSync(path).mode & 0o077, 0)
  const older = open(`${path}.before-upgrade`, OLD)
  assert.deepEqual(itemsIn(older), ['one', 'two'], 'the version that wrote it still opens it')
  older.close()
})

test('upgrade: a step that fails undoes all of them, and the old version goes on with its file', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  await oldStore(path, 'one')
  const bytes = readFileSync(path)
  const broken = migrationsOf('items', ITEMS, COLOUR, 'INSERT INTO nowhere VALUES (1)')
  assert.throws(() => open(path, broken), { code: 'unavailable', message: /nowhere/ })
  assert.deepEqual(readFileSync(path), bytes)
  assert.deepEqual(readdirSync(directory.path), ['test.db'], 'nothing is left of the try')
  const db = open(path, OLD)
  assert.deepEqual(itemsIn(db), ['one'])
  db.close()
})

test('upgrade: what a killed upgrade left does not disturb the next one', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  await oldStore(path, 'one')
  writeFileSync(`${path}.upgrading`, 'half a copy')
  writeFileSync(`${path}.upgrading-wal`, 'and its log')
  const db = open(path, NEW)
  assert.deepEqual(itemsIn(db), ['one'])
  db.close()
  assert.equal(existsSync(`${path}.upgrading`), false)
})

test('upgrade: what only the log of a killed server had is in the new store', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  await oldStore(path, 'one')
  const killed = new BetterSqlite3(path)
  killed.pragma('journal_mode = WAL')
  killed.prepare('INSERT INTO items VALUES (?)').run('late')
  const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)]
  killed.close()
  writeFileSync(path, file)
  writeFileSync(`${path}-wal`, log)
  const db = open(path, NEW)
  assert.deepEqual(itemsIn(db), ['late', 'one'])
  db.close()
})

test('upgrade: a full disk leaves the store as it was', async (t) => {
  using directory = temporaryDirectory()
  using disk = mounted(t, join(directory.path, 'small'), 2)
  if (disk === undefined) return
  const path = join(disk.path, 'test.db')
  await oldStore(path, ...Array.from({ length: 12 }, (_, n) => `${n}`.padEnd(100_000, 'x')))
  const bytes = readFileSync(path)
  assert.throws(() => open(path, NEW), { code: 'unavailable', message: /full/ })
  assert.deepEqual(readFileSync(path), bytes)
  assert.equal(existsSync(`${path}.upgrading`), false)
  const db = open(path, OLD)
  assert.equal(itemsIn(db).length, 12)
  db.close()
})

test('upgrade: a store from before 0.1.0 is refused untouched, with the way to export', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  const numbered = new BetterSqlite3(path)
  numbered.exec(`${ITEMS}; PRAGMA user_version = 1`)
  numbered.close()
  const bytes = readFileSync(path)
  assert.throws(() => open(path, NEW), {
    code: 'unavailable',
    message: /was written before version 0\.1\.0.*left as it was.*svcctl bead export/,
  })
  assert.deepEqual(readFileSync(path), bytes)
  assert.deepEqual(readdirSync(directory.path), ['test.db'])
})

test('a store gives disk back once most of its events are gone', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'log.db')
  const clock = new ManualClock()
  const store = openStore({ path, migrations: migrationsOf('test', STORE_SCHEMA), owner: 'a test', clock })
  for (let batch = 0; batch < 20; batch++)
    await store.db.write((tx) => {
      for (let n = 0; n < 500; n++)
        store.log.appendCustom(tx, { type: 'test.noted', actor: 'test', payload: { text: 'x'.repeat(1_000) } })
    })
  const pages = () => Number(store.db.get('PRAGMA page_count')?.page_count)
  const before = pages()
  await tidy(store, { maxAgeMs: 86_400_000, maxBytes: 200_000 })
  assert.ok(pages() < before / 4, `${pages()} of ${before} pages are left`)
  store.db.close()
})
