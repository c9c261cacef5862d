import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { fc } from '../../../../test/support/random.ts'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { openWorkStore } from '../../../../test/support/work-store.ts'
import { migrationsOf } from '../../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../../kernel/store.ts'
import { type ListFilters, listQuery } from '../query/filters.ts'
import { READY, readPage } from '../query/pages.ts'
import type { Query } from '../query/query.ts'
import { KeptCounts } from './counts.ts'
import { BEADS_SCHEMA } from './schema.ts'
import { BeadStore } from './store.ts'

test('labels come back as a sorted set whatever their letters', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  await city.bead('al-2', { labels: ['ui', 'a "b"', ','] })
  assert.deepEqual(
    ['al-1', 'al-2'].map((id) => city.beads.need(id).labels),
    [[], [',', 'a "b"', 'ui']],
  )
  await city.store.db.write((tx) => city.beads.change(tx, 'al-2', { labels: ['ui'] }, 'test'))
  assert.deepEqual(city.beads.need('al-2').labels, ['ui'])
})

const step = fc.record({
  id: fc.constantFrom('al-1', 'al-2', 'al-3'),
  what: fc.oneof(
    fc.record({ status: fc.constantFrom('open' as const, 'in_progress' as const, 'closed' as const) }),
    fc.record({ priority: fc.constantFrom(null, 1) }),
    fc.record({ issue_type: fc.constantFrom('bug', 'task') }),
    fc.constant('gone' as const),
  ),
})

test('whatever becomes of beads, they are counted as they are', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      using city = openWorkStore()
      const { db } = city.store
      for (const { id, what } of steps) {
        await db
          .write((tx) => {
            if (city.beads.find(id) === undefined) city.beads.insert(tx, { id, title: id, rig: 'shop' }, 'test')
            if (what === 'gone') city.beads.remove(tx, id, 'test', false)
            else city.beads.change(tx, id, what, 'test')
          })
          .catch(() => {})
      }
      const counted =
        'SELECT status, issue_type, rig, priority, count(*) FROM beads GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4'
      assert.deepEqual(db.rows('SELECT * FROM bead_counts ORDER BY 1, 2, 3, 4'), db.rows(counted))
    }),
    { numRuns: 30 },
  )
})

test('the counts of a city follow its work, and the dates that it waits for', async () => {
  using city = openWorkStore()
  const counts = new KeptCounts(city.store)
  const read = () => counts.read(city.clock.now())
  assert.deepEqual(read(), { open: 0, in_progress: 0, ready: 0 })
  await city.bead('al-1')
  await city.bead('al-2', { defer_until: city.clock.now() + 1_000 })
  assert.deepEqual(read(), { open: 2, in_progress: 0, ready: 1 })
  city.clock.step(999)
  assert.equal(read().ready, 1)
  city.clock.step(1)
  assert.equal(read().ready, 2)
  await city.store.db.write((tx) => city.claims.claim(tx, 'al-1', { assignee: 'ann' }))
  assert.deepEqual(read(), { open: 1, in_progress: 1, ready: 1 })
})

/** A store of the first form, with what its triggers and its code kept beside the beads. */
async function firstStore(path: string): Promise<void> {
  const migrations = [...migrationsOf('store', STORE_SCHEMA), ...migrationsOf('beads', BEADS_SCHEMA[0])]
  const { db } = openStore({ path, migrations, owner: 'an old city', clock: new ManualClock() })
  const beads = [
    ['al-1', '東京の天気', 'open', '["天気","ui"]', null],
    ['al-2', 'pears', 'open', '[]', 4_000_000_000_000],
    ['al-3', 'plums', 'open', '["ui"]', 1],
    ['al-4', 'pears', 'closed', '["ui"]', null],
  ] as const
  await db.write((tx) => {
    for (const [n, [id, title, status, labels, defer_until]] of beads.entries()) {
      tx.run(
        `INSERT INTO beads (n, id, title, status, issue_type, created_at, updated_at, labels, defer_until)
          VALUES (?, ?, ?, ?, 'task', ?, ?, ?, ?)`,
        n + 1,
        id,
        title,
        status,
        n + 1,
        n + 1,
        labels,
        defer_until,
      )
      tx.run('INSERT INTO bead_words (rowid, title) VALUES (?, ?)', n + 1, title)
      tx.run('INSERT INTO bead_labels (label, n) SELECT value, ? FROM json_each(?)', n + 1, labels)
    }
  })
  db.close()
}

test('a store of the first form keeps every bead, and is searched like a new one', async () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'city.db')
  await firstStore(path)
  const migrations = [...migrationsOf('store', STORE_SCHEMA), ...migrationsOf('beads', ...BEADS_SCHEMA)]
  const clock = new ManualClock()
  const { db, log } = openStore({ path, migrations, owner: 'a city', clock })
  const beads = new BeadStore({ db, log, clock })
  await beads.words.settle()
  const meaning = { now: clock.now(), identities: (name: string) => [name] }
  const found = (query: Query) => readPage(db, query, 'oldest', {}, meaning).ids.join()
  const listed = (filters: ListFilters) => found(listQuery(filters, () => false))
  assert.equal(listed({ all: true }), 'al-1,al-2,al-3,al-4')
  assert.equal(listed({ q: 'pears' }), 'al-2')
  assert.equal(listed({ q: '天気' }), 'al-1')
  assert.equal(listed({ label: ['ui'] }), 'al-1,al-3')
  assert.equal(listed({ label: ['天気'], all: true }), 'al-1')
  assert.equal(found(READY), 'al-1,al-3')
  assert.deepEqual(db.rows('SELECT id FROM beads WHERE deferred = 1'), [['al-2']])
  await db.write((tx) => beads.change(tx, 'al-1', { status: 'closed' }, 'test'))
  assert.deepEqual(db.rows('SELECT status, beads FROM bead_counts ORDER BY status'), [
    ['closed', 2],
    ['open', 2],
  ])
  db.close()
})
