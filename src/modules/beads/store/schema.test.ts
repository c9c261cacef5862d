import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openWorkStore } from '../../../../test/support/work-store.ts'
import { KeptCounts } from './counts.ts'

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
