import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { openWorkStore } from '../../../test/support/work-store.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { KeptCounts } from './counts.ts'
import { BEADS_LISTS_SCHEMA, BEADS_SCHEMA } from './schema.ts'
import { BeadStore } from './store.ts'

test('beads of the first schema keep their labels and are counted under the second', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const open = (migrations: readonly string[]) =>
    openStore({ path: join(directory.path, 'city.db'), migrations, owner: 'a test', clock })
  const old = open([STORE_SCHEMA, BEADS_SCHEMA])
  await old.db.write((tx) => {
    for (const [id, status] of Object.entries({ 'al-1': 'open', 'al-2': 'closed', 'al-3': 'closed' }))
      tx.run(
        "INSERT INTO beads (id, title, status, issue_type, priority, created_at, updated_at) VALUES (?, 't', ?, 'task', NULL, 1, 1)",
        id,
        status,
      )
    for (const label of ['ui', 'a "b"', ',']) tx.run("INSERT INTO bead_labels (label, bead) VALUES (?, 'al-2')", label)
  })
  old.db.close()
  const { db, log } = open([STORE_SCHEMA, BEADS_SCHEMA, BEADS_LISTS_SCHEMA])
  const beads = new BeadStore({ db, log, clock })
  assert.deepEqual(
    ['al-1', 'al-2'].map((id) => beads.need(id).labels),
    [[], [',', 'a "b"', 'ui']],
  )
  assert.deepEqual(db.rows('SELECT * FROM bead_counts ORDER BY status'), [
    ['closed', 'task', '', null, 2],
    ['open', 'task', '', null, 1],
  ])
  await db.write((tx) => beads.change(tx, 'al-2', { labels: ['ui'], priority: 1 }, 'test'))
  assert.deepEqual(db.rows('SELECT label FROM bead_labels'), [['ui']])
  assert.deepEqual(db.rows('SELECT priority, beads FROM bead_counts ORDER BY priority'), [
    [null, 1],
    [null, 1],
    [1, 1],
  ])
  db.close()
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
