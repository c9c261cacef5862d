import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { IS_READY } from './ready.ts'

const MANY = 1_200
const change = (city: WorkStore, id: string, what: object) =>
  city.store.db.write((tx) => city.beads.change(tx, id, what, 'ann'))
const shiftOn = (city: WorkStore) => city.store.db.write((tx) => city.beads.shiftOn(tx))
async function settle(city: WorkStore): Promise<number> {
  let slices = 1
  while (await shiftOn(city)) slices++
  return slices
}
const ready = (city: WorkStore): readonly string[] =>
  city.store.db.all(`SELECT b.id FROM beads b WHERE ${IS_READY}`, city.clock.now()).map(({ id }) => String(id))
/** What is ready by its edges alone. */
const free = (city: WorkStore): readonly string[] =>
  city.store.db
    .all(
      `SELECT b.id FROM beads b WHERE b.status = 'open' AND NOT EXISTS (SELECT 1 FROM bead_deps d LEFT JOIN beads t
        ON t.id = d.depends_on_id WHERE d.issue_id = b.id AND d.type = 'blocks' AND t.status IS NOT 'closed')`,
    )
    .map(({ id }) => String(id))
/** Beads whose count is another than that of their open blockers. */
const wrong = (city: WorkStore) =>
  city.store.db.all(
    `SELECT b.id FROM beads b WHERE b.blockers <> (SELECT count(*) FROM bead_deps d LEFT JOIN beads t
      ON t.id = d.depends_on_id WHERE d.issue_id = b.id AND d.type = 'blocks' AND t.status IS NOT 'closed')`,
  )

async function openBlocked(): Promise<WorkStore> {
  const city = openWorkStore()
  await city.bead('al-root')
  await city.store.db.write((tx) => {
    for (let n = 0; n < MANY; n++)
      city.beads.insert(
        tx,
        { id: `al-d${n}`, title: 'x', edges: [{ depends_on_id: 'al-root', type: 'blocks' }] },
        'test',
      )
  })
  return city
}

test('closing what 1,200 beads wait for frees a part of them in each write, and tells of each once', async () => {
  using city = await openBlocked()
  const { head } = city.store.log
  await change(city, 'al-root', { status: 'closed' })
  const first = city.events(head).length
  assert.ok(first > 200 && first < 300, `${first} events in the write that closes`)
  assert.ok(ready(city).length < 300)
  assert.ok((await settle(city)) >= 4)
  assert.equal(ready(city).length, MANY)
  assert.deepEqual(wrong(city), [])
  const told = city.events(head).filter(([type]) => type === 'bead.updated')
  assert.equal(new Set(told.map(([, id]) => id)).size, MANY)
  assert.equal(told.length, MANY)
  assert.equal(city.store.db.get('SELECT 1 FROM bead_shifts'), undefined)
})

test('opening it again hides all of them at once, those that do not know yet included', async () => {
  using city = await openBlocked()
  await change(city, 'al-root', { status: 'closed' })
  await settle(city)
  await change(city, 'al-root', { status: 'open' })
  assert.deepEqual(ready(city), ['al-root'])
  await settle(city)
  assert.deepEqual(ready(city), ['al-root'])
  assert.deepEqual(wrong(city), [])
})

test('whatever happens while they learn of it: nothing blocked is ready, and in the end all is as its edges say', async () => {
  const step = fc.oneof(
    fc.constant(['flip'] as const),
    fc.constant(['slice'] as const),
    fc.tuple(fc.constantFrom('link' as const, 'unlink' as const, 'delete' as const), fc.nat(MANY - 1)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      using city = await openBlocked()
      for (const [what, n = 0] of steps) {
        const id = `al-d${n}`
        const edge = { depends_on_id: 'al-root', type: 'blocks' }
        const { status } = city.beads.need('al-root')
        if (what === 'flip') await change(city, 'al-root', { status: status === 'closed' ? 'open' : 'closed' })
        else if (what === 'slice') await shiftOn(city)
        else if (city.beads.find(id) === undefined) continue
        else if (what === 'delete') await city.store.db.write((tx) => city.beads.remove(tx, id, 'test', true))
        else await change(city, id, what === 'link' ? { add_edges: [edge] } : { remove_edges: [edge] })
        const really = new Set(free(city))
        assert.deepEqual(
          ready(city).filter((one) => !really.has(one)),
          [],
        )
      }
      await settle(city)
      assert.deepEqual(wrong(city), [])
      assert.deepEqual([...ready(city)].sort(), [...free(city)].sort())
    }),
    { numRuns: 25 },
  )
})

test('what is deleted while its dependents learn of it leaves nothing behind', async () => {
  using city = await openBlocked()
  await change(city, 'al-root', { status: 'closed' })
  await city.store.db.write((tx) => city.beads.remove(tx, 'al-root', 'test', true))
  assert.deepEqual(wrong(city), [])
  assert.equal(ready(city).length, MANY)
  assert.equal(await shiftOn(city), false)
})
