import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore } from '../../../../test/support/work-store.ts'
import type { WorkCity } from './city.ts'
import { type Asker, candidates, claimNext } from './hook.ts'

/** Two instances of the pool `hand`, known by their ids and names. */
const INSTANCES: Readonly<Record<string, string>> = { 's-1': 'hand-1', 's-2': 'hand-2' }
const instanceOf = (handle: string): string | undefined =>
  INSTANCES[handle] ?? Object.values(INSTANCES).find((name) => name === handle)
const people: WorkCity['people'] = {
  canonical: (handle) => instanceOf(handle) ?? handle,
  identities: (handle) => [instanceOf(handle) ?? handle],
  routes: (handle) => [handle, ...(instanceOf(handle) === undefined ? [] : ['hand'])],
}

function openPool() {
  const city = openWorkStore()
  return {
    city: { ...city, people },
    bead: city.bead,
    take: (asker: Asker) => city.store.db.write((tx) => claimNext(tx, { ...city, people }, asker, city.clock.now())),
    see: (asker: Asker) =>
      candidates({ ...city, people }, asker, city.clock.now()).map(({ tier, id }) => `${tier} ${id}`),
    [Symbol.dispose]: () => city[Symbol.dispose](),
  }
}

test('two sessions of a pool that the city does not know never get the same bead', async () => {
  using pool = openPool()
  await pool.bead('al-1', { routed_to: 'guild' })
  const first = await pool.take({ agent: 'guild', session_id: 'a' })
  assert.deepEqual([first.reason, first.bead_id, first.assignee], ['claimed', 'al-1', 'guild'])
  assert.deepEqual(pool.see({ agent: 'guild', session_id: 'b' }), [])
  assert.deepEqual(await pool.take({ agent: 'guild', session_id: 'b' }), { action: 'drain', reason: 'no_work' })
  const again = await pool.take({ agent: 'guild', session_id: 'a' })
  assert.deepEqual([again.reason, again.bead_id], ['existing_assignment', 'al-1'])
})

test('an instance of a pool gets the work of its pool, by whichever of its names it asks, and has it as itself', async () => {
  const askers: readonly Asker[] = [
    { agent: 'hand-1', session_id: 's-1', session_name: 'hand-1' },
    { agent: 'hand-1' },
    { agent: 'hand', session_id: 's-1' },
  ]
  for (const asker of askers) {
    using pool = openPool()
    await pool.bead('al-1', { routed_to: 'hand' })
    const { assignee, reason } = await pool.take(asker)
    assert.deepEqual([assignee, reason], ['hand-1', 'claimed'], JSON.stringify(asker))
    assert.deepEqual(pool.see({ agent: 'hand', session_id: 's-2' }), [])
    assert.deepEqual(pool.see(asker), ['in_progress al-1'])
  }
})

test('work for the instance and work for its pool are offered by age', async () => {
  using pool = openPool()
  for (const [id, routed_to, created_at] of [
    ['al-1', 'hand', 3],
    ['al-2', 'hand-1', 2],
    ['al-3', 'hand', 1],
  ] as const)
    await pool.bead(id, { routed_to, created_at })
  assert.deepEqual(pool.see({ agent: 'hand-1', session_id: 's-1' }), ['routed al-3', 'routed al-2', 'routed al-1'])
  assert.deepEqual(pool.see({ agent: 'hand', session_id: 'unknown' }), ['routed al-3', 'routed al-1'])
})
