import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { fc } from '../../test/support/random.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { Database, type Migrations, migrationsOf, type Tx } from './database.ts'
import { Problem } from './problem.ts'

const ITEMS = 'CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;'
const MIGRATIONS = migrationsOf('items', ITEMS)
const open = (directory: string, migrations: Migrations = MIGRATIONS) =>
  Database.open({ path: join(directory, 'test.db'), migrations, owner: 'a test' })
const insert = (tx: Tx, text: string) => tx.run('INSERT INTO items (text) VALUES (?)', text)
const texts = (db: Database) => db.all('SELECT text FROM items ORDER BY id').map((row) => String(row.text))
const isUnavailable = (error: unknown) =>
  error instanceof Problem && error.code === 'unavailable' && error.status === 503

test('writes of one tick share one commit, and each gets its own result', async () => {
  using directory = temporaryDirectory()
  let commits = 0
  const db = Database.open({
    path: join(directory.path, 'test.db'),
    migrations: MIGRATIONS,
    owner: 'a test',
    watch: { committed: () => commits++, hookFailed: () => {}, due: () => {} },
  })
  const results = await Promise.all(['a', 'b', 'c'].map((text, index) => db.write((tx) => index + insert(tx, text))))
  assert.deepEqual(results, [1, 2, 3])
  assert.equal(commits, 1)
  assert.deepEqual(texts(db), ['a', 'b', 'c'])
  db.close()
})

test('whatever mixture of writes succeeds and throws, exactly the successful ones are there, in order (I1, I3)', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  let run = 0
  /** Memory that follows the transaction, as the head of an event log does. */
  let noted: string[] = []
  const kept: string[] = []
  db.join({
    mark: () => noted.length,
    undo: (mark) => {
      noted.length = mark
    },
    beforeCommit: () => {},
    committed: () => {
      kept.push(...noted)
      noted = []
    },
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('ok', 'reads', 'throws', 'notes, throws', 'throws late', 'returning', 'duplicate'), {
        minLength: 1,
        maxLength: 12,
      }),
      async (plan) => {
        run++
        const before = texts(db).length
        const hooks: string[] = []
        const outcomes = await Promise.allSettled(
          plan.map((kind, index) =>
            db.write((tx) => {
              const text = `${run}-${index}`
              if (kind === 'throws') throw new Error(text)
              if (kind === 'notes, throws') {
                tx.afterCommit(() => hooks.push(text))
                noted.push(text)
                throw new Error(text)
              }
              assert.equal(tx.get('SELECT text FROM items WHERE text = ?', text), undefined)
              if (kind === 'reads') return text
              noted.push(text)
              if (kind === 'returning') {
                // A read by its looks, and a change by what it does.
                tx.get('INSERT INTO items (text) VALUES (?) RETURNING id', text)
                throw new Error(text)
              }
              insert(tx, text)
              tx.afterCommit(() => hooks.push(text))
              if (kind === 'throws late') throw new Error(text)
              if (kind === 'duplicate') insert(tx, text)
              return text
            }),
          ),
        )
        const expected = plan.flatMap((kind, index) => (kind === 'ok' ? [`${run}-${index}`] : []))
        assert.deepEqual(
          outcomes.map(({ status }) => status === 'fulfilled'),
          plan.map((kind) => kind === 'ok' || kind === 'reads'),
        )
        assert.deepEqual(kept.splice(0), expected, 'and leaves nothing in memory')
        assert.deepEqual(texts(db).slice(before), expected)
        assert.deepEqual(hooks, expected, 'a write that was undone runs no hook, and one that was not runs it once')
      },
    ),
    { numRuns: 60 },
  )
  db.close()
})

test('what a change means in memory is done before its events are heard, and both before its promise resolves', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const order: string[] = []
  db.join({
    mark: () => 0,
    undo: () => {},
    beforeCommit: () => order.push('before'),
    committed: () => order.push('committed'),
  })
  await db.write((tx) => tx.afterCommit(() => order.push('hook'))).then(() => order.push('resolved'))
  assert.deepEqual(order, ['before', 'hook', 'committed', 'resolved'])
  db.close()
})

test('a hook that writes again is committed next, and its promise resolves', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const again = Promise.withResolvers<void>()
  await db.write((tx) =>
    tx.afterCommit(() => db.write((next) => void insert(next, 'second')).then(again.resolve, again.reject)),
  )
  await again.promise
  assert.deepEqual(texts(db), ['second'])
  db.close()
})

test('closing commits what is waiting; writes and reads after it are refused as unavailable', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const waiting = db.write((tx) => insert(tx, 'last'))
  db.close()
  db.close()
  assert.equal(await waiting, 1)
  await assert.rejects(
    db.write((tx) => insert(tx, 'late')),
    isUnavailable,
  )
  assert.throws(() => db.get('SELECT 1'), isUnavailable)
  assert.equal(db.inPlace, false)
  const again = open(directory.path)
  assert.deepEqual(texts(again), ['last'])
  again.close()
})

test('a write is refused once too many are waiting, and those that wait are not lost', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const waiting = Array.from({ length: 20_000 }, () => db.write(() => 1))
  await assert.rejects(
    db.write(() => 1),
    isUnavailable,
  )
  assert.equal((await Promise.all(waiting)).length, 20_000)
  assert.equal(await db.write(() => 2), 2)
  db.close()
})

for (const tenure of ['moving', 'fenced'] as const) {
  test(`a store that is ${tenure} takes no writes`, async () => {
    using directory = temporaryDirectory()
    const db = open(directory.path)
    db.tenure = tenure
    await assert.rejects(
      db.write((tx) => insert(tx, 'a')),
      isUnavailable,
    )
    db.tenure = 'owned'
    await db.write((tx) => insert(tx, 'a'))
    db.close()
  })
}

test('a file that was moved away, or replaced by another, takes no writes (I4); it does again when it is back', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'test.db')
  const db = open(directory.path)
  await db.write((tx) => insert(tx, 'a'))
  renameSync(path, `${path}.away`)
  assert.equal(db.inPlace, false)
  await assert.rejects(
    db.write((tx) => insert(tx, 'lost')),
    isUnavailable,
  )
  assert.match(db.failure ?? '', /removed or replaced/)
  copyFileSync(`${path}.away`, path)
  await assert.rejects(
    db.write((tx) => insert(tx, 'lost')),
    isUnavailable,
  )
  rmSync(path)
  renameSync(`${path}.away`, path)
  await db.write((tx) => insert(tx, 'b'))
  assert.equal(db.failure, undefined)
  assert.deepEqual(texts(db), ['a', 'b'])
  db.close()
})

test('a full disk refuses the whole group, undoes what participants noted, and the next write works when there is room', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  await db.write((tx) => insert(tx, 'a'))
  let noted = 0
  const undone: number[] = []
  db.join({ mark: () => noted, undo: (mark) => undone.push(mark), beforeCommit: () => {}, committed: () => {} })
  // PRAGMA through the one door there is: the driver's own limit stands in for the disk's.
  const pages = Number(db.get('PRAGMA page_count')?.page_count)
  db.get(`PRAGMA max_page_count = ${pages}`)
  const small = db.write((tx) => insert(tx, 'small'))
  const large = db.write((tx) => {
    noted = 7
    return insert(tx, 'x'.repeat(200_000))
  })
  await assert.rejects(small, isUnavailable)
  await assert.rejects(large, isUnavailable)
  assert.match(db.failure ?? '', /full/)
  assert.ok(undone.includes(0))
  db.get('PRAGMA max_page_count = 1000000')
  await db.write((tx) => insert(tx, 'b'))
  assert.deepEqual(texts(db), ['a', 'b'])
  assert.equal(db.failure, undefined)
  db.close()
})

test('a hook or listener that throws is reported; it skips no neighbour, costs no writer its answer and ends nothing (I6)', async () => {
  using directory = temporaryDirectory()
  const reported: unknown[] = []
  const db = Database.open({
    path: join(directory.path, 'test.db'),
    migrations: MIGRATIONS,
    owner: 'a test',
    watch: {
      committed: () => {
        throw new Error('a broken meter')
      },
      hookFailed: (error) => reported.push(error instanceof Error ? error.message : error),
      due: () => {},
    },
  })
  const done: string[] = []
  for (const name of ['first', 'second']) {
    db.join({
      mark: () => 0,
      undo: () => {},
      beforeCommit: () => {},
      committed: () => {
        done.push(name)
        throw new Error(`a broken listener, the ${name}`)
      },
    })
  }
  const results = await Promise.all(
    ['a', 'b'].map((text) =>
      db.write((tx) => {
        insert(tx, text)
        tx.afterCommit(() => {
          done.push(text)
          throw new Error(`a broken hook of ${text}`)
        })
        return text
      }),
    ),
  )
  assert.deepEqual(results, ['a', 'b'])
  assert.deepEqual(done, ['a', 'b', 'first', 'second'])
  assert.deepEqual(reported, [
    'a broken meter',
    'a broken hook of a',
    'a broken hook of b',
    'a broken listener, the first',
    'a broken listener, the second',
  ])
  db.close()
  assert.deepEqual(texts(open(directory.path)), ['a', 'b'])
})

test('a write that is refused before it writes costs the others of its group nothing: each of them runs once', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  let runs = 0
  const outcomes = await Promise.allSettled(
    Array.from({ length: 64 }, (_, index) =>
      db.write((tx) => {
        runs++
        // As a lost claim does: it reads, and throws.
        if (index === 40) throw new Error(`taken by ${String(tx.get('SELECT 1 AS one')?.one)}`)
        return insert(tx, `item ${index}`)
      }),
    ),
  )
  assert.equal(runs, 64)
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 63)
  assert.equal(texts(db).length, 63)
  db.close()
})

test('a write is refused while those that wait hold too many bytes, and taken again after their commit', async () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const large = 40 * 1024 * 1024
  const first = db.write((tx) => insert(tx, 'first'), large)
  await assert.rejects(
    db.write((tx) => insert(tx, 'second'), large),
    isUnavailable,
  )
  await first
  await db.write((tx) => insert(tx, 'third'), large)
  assert.deepEqual(texts(db), ['first', 'third'])
  db.close()
})

test('a second process is refused while the first has the store open', () => {
  using directory = temporaryDirectory()
  const db = open(directory.path)
  const script = `
    import { Database } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'database.ts')).href)}
    try { Database.open({ path: ${JSON.stringify(join(directory.path, 'test.db'))}, migrations: [{ name: 'test/1', sql: 'SELECT 1' }], owner: 'the second' }) }
    catch (error) { console.log(error.code, error.message) }`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.match(stdout, /^unavailable the store of the second is not available: another process has it open/)
  db.close()
})

test('migrations run once each, all or nothing, and an older file is brought up to date', async () => {
  using directory = temporaryDirectory()
  const first = open(directory.path)
  await first.write((tx) => insert(tx, 'old'))
  first.close()
  assert.throws(
    () => open(directory.path, migrationsOf('items', ITEMS, 'CREATE TABLE extra (a); INSERT INTO nowhere VALUES (1)')),
    isUnavailable,
  )
  const second = open(
    directory.path,
    migrationsOf(
      'items',
      ITEMS,
      "ALTER TABLE items ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'",
      'CREATE TABLE extra (a)',
    ),
  )
  assert.deepEqual(second.all('SELECT text, colour FROM items'), [{ text: 'old', colour: 'grey' }])
  assert.equal(second.get('PRAGMA user_version')?.user_version, 3)
  second.close()
})

test('a part that gets a table in the middle of the list disturbs no part after it', () => {
  using directory = temporaryDirectory()
  const notes = migrationsOf('notes', 'CREATE TABLE notes (text TEXT) STRICT')
  open(directory.path, [...MIGRATIONS, ...notes]).close()
  const colours = "ALTER TABLE items ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'"
  const later = open(directory.path, [
    ...migrationsOf('new', 'CREATE TABLE new (a)'),
    ...migrationsOf('items', ITEMS, colours),
    ...notes,
  ])
  const tables = later.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").map(({ name }) => name)
  assert.deepEqual(tables, ['items', 'migrations', 'new', 'notes'])
  assert.deepEqual(later.all('SELECT colour FROM items'), [])
  later.close()
})

test('a file of a newer version, and one that is no database, are refused with a sentence that says so', () => {
  using directory = temporaryDirectory()
  open(directory.path, migrationsOf('items', ITEMS, 'CREATE TABLE extra (a)')).close()
  const bytes = readFileSync(join(directory.path, 'test.db'))
  assert.throws(
    () => open(directory.path),
    /has items\/2: it was written by a newer version of svcctl\. It is left as it was\. Install that version again/,
  )
  assert.deepEqual(readFileSync(join(directory.path, 'test.db')), bytes)
  writeFileSync(join(directory.path, 'test.db'), 'no database'.repeat(1000))
  assert.throws(() => open(directory.path), isUnavailable)
})
