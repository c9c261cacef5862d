import assert from 'node:assert/strict'
import { test } from 'node:test'
import { group, MoleculeWorld, planOf, step } from '../../../../test/support/molecule-world.ts'

test('a step begins when what it needs is done, and the molecule ends once with the last', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a'), step('b', { needs: ['a'] }), step('c', { needs: ['a', 'b'] })]))
  assert.deepEqual(world.statuses(id), { a: 'ready', b: 'pending', c: 'pending' })
  assert.equal(world.molecule(id).status, 'pending')
  await world.claim(id, 'a')
  assert.equal(world.molecule(id).status, 'active')
  await world.close(id, 'a')
  assert.deepEqual(world.statuses(id), { a: 'completed', b: 'ready', c: 'pending' })
  assert.equal(world.molecule(id).status, 'waiting')
  await world.close(id, 'b')
  await world.close(id, 'c')
  assert.equal(world.molecule(id).status, 'completed')
  assert.equal(world.beads.need(id).status, 'closed')
  assert.equal(world.beads.need(id).outcome, 'pass')
  assert.equal(world.events('molecule.resolved').length, 1)
  const { total, completed } = world.molecule(id)
  assert.deepEqual([total, completed], [3, 3])
})

test('what depends on a failure is skipped, the rest goes on, and then the molecule fails', async () => {
  await using world = await MoleculeWorld.open()
  const plan = planOf([
    step('a'),
    step('b', { needs: ['a'] }),
    step('c', { needs: ['b'] }),
    step('other'),
    step('cleanup', { needs: ['c', 'other'], always: true }),
  ])
  const { id } = await world.start(plan)
  await world.close(id, 'a', { outcome: 'fail', reason: 'no way' })
  assert.deepEqual(world.statuses(id), { a: 'failed', b: 'skipped', c: 'skipped', other: 'ready', cleanup: 'pending' })
  await world.close(id, 'other')
  await world.close(id, 'cleanup')
  const { status, failure } = world.molecule(id)
  assert.equal(status, 'failed')
  assert.deepEqual(JSON.parse(failure ?? ''), { step_id: 'a', class: 'transient', reason: 'failed', message: 'no way' })
  assert.equal(world.beads.need(id).outcome, 'fail')
})

test('a tolerated failure lets what depends on it run, and an abort cancels the rest of its list at once', async () => {
  await using world = await MoleculeWorld.open()
  const tolerant = await world.start(planOf([step('a', { on_fail: 'continue' }), step('b', { needs: ['a'] })]))
  await world.close(tolerant.id, 'a', { outcome: 'fail' })
  await world.close(tolerant.id, 'b')
  assert.equal(world.molecule(tolerant.id).status, 'completed')
  const strict = await world.start(
    planOf([
      step('a', { on_fail: 'abort' }),
      step('b'),
      step('c', { needs: ['b'] }),
      step('last', { needs: ['c'], always: true }),
    ]),
  )
  await world.claim(strict.id, 'b')
  await world.close(strict.id, 'a', { outcome: 'fail' })
  assert.deepEqual(world.statuses(strict.id), { a: 'failed', b: 'canceled', c: 'canceled', last: 'ready' })
  assert.equal(world.interrupted.length, 1)
  await world.close(strict.id, 'last')
  assert.equal(world.molecule(strict.id).status, 'failed')
})

test('a group is done when its children are, and its failure is that of the first of them', async () => {
  await using world = await MoleculeWorld.open()
  const plan = planOf([group('g', [step('x'), step('y', { needs: ['x'] })]), step('after', { needs: ['g'] })])
  const { id } = await world.start(plan)
  assert.deepEqual(world.statuses(id), { g: 'active', 'g.x': 'ready', 'g.y': 'pending', after: 'pending' })
  await world.close(id, 'g.x')
  await world.close(id, 'g.y', { outcome: 'fail' })
  assert.deepEqual(world.statuses(id), { g: 'failed', 'g.x': 'completed', 'g.y': 'failed', after: 'skipped' })
  assert.equal(JSON.parse(world.molecule(id).failure ?? '').step_id, 'g.y')
})
