/** A molecule as a whole: what it is about, its end, its second try, its deletion, its restart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { group, MoleculeWorld, planOf, step } from '../../../../test/support/molecule-world.ts'
import { sweepOfMolecules } from '../retention.ts'

const MINUTE = 60_000
const isConflict = (code: string) => (error: unknown) =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === code

test('a bead that a molecule is about waits for it, is nobody’s meanwhile, and closes with its pass', async () => {
  await using world = await MoleculeWorld.open()
  const about = (await world.bead('issue', { routed_to: 'fixers', priority: 1 })).id
  const plan = planOf([step('a', { title: 'Fix {{ bead.title }}' })])
  const { id } = await world.start(plan, { bead: about })
  const bead = world.beads.need(about)
  assert.deepEqual([bead.routed_to, bead.blockers, bead.dependencies[0]?.depends_on_id], [null, 1, id])
  assert.deepEqual([world.at(id, 'a').title, world.beads.need(world.at(id, 'a').bead ?? '').priority], ['Fix issue', 1])
  await assert.rejects(world.start(plan, { bead: about }), isConflict('molecule-live'))
  await assert.rejects(world.start(plan, { bead: id }), isConflict('conflict-wrong-state'))
  await assert.rejects(world.start(plan, { bead: world.at(id, 'a').bead ?? '' }), isConflict('conflict-wrong-state'))
  const second = await world.start(plan, { bead: about, replace: true })
  assert.equal(world.molecule(id).status, 'canceled')
  await world.close(second.id, 'a')
  assert.deepEqual([world.beads.need(about).status, world.beads.need(about).blockers], ['closed', 0])
  await assert.rejects(world.start(plan, { bead: about }), isConflict('conflict-wrong-state'))
})

test('a bead that somebody has is taken only where that is asked for, and a failure leaves it open', async () => {
  await using world = await MoleculeWorld.open()
  const about = (await world.bead('issue', { assignee: 'mia', status: 'in_progress' })).id
  const plan = planOf([step('a')])
  await assert.rejects(world.start(plan, { bead: about }), isConflict('conflict-claimed'))
  const { id } = await world.start(plan, { bead: about, reassign: true })
  assert.deepEqual([world.beads.need(about).assignee, world.beads.need(about).status], [null, 'open'])
  await world.close(id, 'a', { outcome: 'fail' })
  assert.deepEqual([world.beads.need(about).status, world.beads.need(about).blockers], ['open', 0])
})

test('members of a convoy are taken one by one, in their own order, and close with their items', async () => {
  await using world = await MoleculeWorld.open()
  const one = (await world.bead('one')).id
  const two = (await world.bead('two', { edges: [{ depends_on_id: one, type: 'blocks' }] })).id
  const closed = (await world.bead('closed', { status: 'closed' })).id
  const three = (await world.bead('three')).id
  const tracks = [two, one, closed, three].map((member) => ({ depends_on_id: member, type: 'tracks' }))
  const convoy = (await world.bead('all', { issue_type: 'convoy', edges: tracks })).id
  const repeat = {
    kind: 'for_each',
    in: 'bead.members',
    as: 'item',
    max_parallel: 5,
    stop_on_fail: false,
    exclusive: true,
  } as const
  const plan = planOf([step('fix', { title: 'Fix {{ item.title }}', repeat })])
  const { id } = await world.start(plan, { bead: convoy })
  const of = (title: string) => {
    const found = [...world.steps(id).values()].find(({ item }) => item !== null && JSON.parse(item).title === title)
    assert.ok(found, title)
    return found
  }
  assert.deepEqual(
    ['one', 'two', 'three'].map((title) => of(title).status),
    ['ready', 'pending', 'ready'],
  )
  await assert.rejects(world.start(planOf([step('a')]), { bead: one }), isConflict('molecule-live'))
  await world.close(id, of('one').path)
  assert.equal(world.beads.need(one).status, 'closed')
  assert.equal(of('two').status, 'ready')
  await world.close(id, of('three').path, { outcome: 'fail', reason: 'too hard' })
  assert.equal(world.beads.need(three).status, 'open')
  const said = world.store.db.all('SELECT text FROM bead_comments WHERE bead = ?', three)
  assert.match(String(said[0]?.text), /too hard/)
  await world.close(id, of('two').path)
  assert.equal(world.molecule(id).status, 'failed')
})

test('what waits for a member that failed is skipped', async () => {
  await using world = await MoleculeWorld.open()
  const one = (await world.bead('one')).id
  const two = (await world.bead('two', { edges: [{ depends_on_id: one, type: 'blocks' }] })).id
  const tracks = [one, two].map((member) => ({ depends_on_id: member, type: 'tracks' }))
  const convoy = (await world.bead('all', { issue_type: 'convoy', edges: tracks })).id
  const repeat = {
    kind: 'for_each',
    in: 'bead.members',
    as: 'item',
    max_parallel: 5,
    stop_on_fail: false,
    exclusive: true,
  } as const
  const { id } = await world.start(planOf([step('fix', { repeat })]), { bead: convoy })
  const first = [...world.steps(id).values()].find(({ status }) => status === 'ready')
  await world.close(id, first?.path ?? '', { outcome: 'fail' })
  const { fix, ...items } = world.statuses(id)
  assert.deepEqual([fix, Object.values(items).sort()], ['failed', ['failed', 'skipped']])
})

test('a cancel ends everything at once: beads, commands, holders, timers; and it is told once', async () => {
  await using world = await MoleculeWorld.open()
  const check = { kind: 'exec', exec: 'true', timeout: 1_000, env: {}, inherit_env: [], file_dir: '/' } as const
  const { id } = await world.start(
    planOf([
      step('a'),
      step('b', { check }),
      step('g', { body: { kind: 'gate', gate: { kind: 'human' } } }),
      group('in', [step('x'), step('y', { needs: ['x'] })]),
      step('z', { needs: ['a'], always: true }),
    ]),
    { order: { name: 'nightly', run_id: 'or-1' }, keep: MINUTE },
  )
  await world.claim(id, 'a')
  await world.close(id, 'b')
  assert.equal(world.checks.length, 1)
  await world.store.db.write((tx) => world.molecules.cancel(tx, id, 'enough', 'mia'))
  await world.quiet()
  assert.deepEqual(new Set(Object.values(world.statuses(id))), new Set(['canceled']))
  assert.equal(world.checks.length, 0)
  assert.equal(world.interrupted.length, 1)
  assert.deepEqual(world.ordersEnded, [['or-1', 'canceled']])
  assert.equal(world.events('molecule.resolved').length, 1)
  const { outcome, busy } = { ...world.beads.need(id), busy: world.molecule(id).busy }
  assert.deepEqual([outcome, busy], ['canceled', 0])
  await assert.rejects(
    world.store.db.write((tx) => world.molecules.cancel(tx, id, 'again', 'mia')),
    isConflict('conflict-wrong-state'),
  )
  await world.advance(MINUTE)
  assert.equal(world.store.db.get('SELECT 1 FROM molecules'), undefined)
  assert.equal(world.store.db.get('SELECT 1 FROM molecule_plans'), undefined)
  assert.equal(world.beads.find(id), undefined)
  for (const table of ['molecule_steps', 'molecule_timers', 'molecule_beads', 'molecule_counts'])
    assert.equal(world.store.db.get(`SELECT 1 FROM ${table}`), undefined, table)
})

test('delete: a bead that only says that it is of a molecule stays when the molecule is deleted', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a'), step('b', { needs: ['a'] })]))
  const { id: mine } = await world.bead('my own work', { root_bead_id: id })
  await world.close(id, 'a')
  await world.close(id, 'b')
  const parts = ['a', 'b'].map((path) => world.at(id, path).bead ?? '')
  assert.equal(await world.molecules.remove(id, 'mia', () => {}), parts.length + 1)
  assert.equal(world.beads.find(mine)?.title, 'my own work')
  assert.deepEqual(world.beads.load([id, ...parts]), [])
})

test('of a large one a cancel is short writes: what is left begins nothing, and ends also after a crash', async () => {
  await using world = await MoleculeWorld.open()
  const many = Array.from({ length: 700 }, (_, at) => step(`s${at}`))
  const { id } = await world.start(planOf([...many, group('in', [step('x'), step('y', { needs: ['x'] })])]))
  const x = world.at(id, 'in.x').bead ?? ''
  const stepsAre = () => Object.entries(Object.groupBy(Object.values(world.statuses(id)), (status) => status))
  await world.store.db.write((tx) => world.molecules.cancel(tx, id, 'enough', 'mia'))
  assert.equal(world.molecule(id).status, 'canceled')
  assert.deepEqual(new Set(stepsAre().map(([status]) => status)), new Set(['canceled', 'ready', 'active', 'pending']))
  await world.store.db.write((tx) => world.beads.change(tx, x, { status: 'closed', outcome: 'pass' }, 'worker'))
  await world.restart()
  await world.quiet()
  assert.deepEqual(
    stepsAre().map(([status, of]) => [status, of?.length]),
    [['canceled', 703]],
  )
  assert.equal(world.at(id, 'in.y').bead, null)
  const open = "SELECT count(*) AS beads FROM beads WHERE root_bead_id = ? AND status <> 'closed'"
  assert.equal(world.store.db.get(open, id)?.beads, 0)
  const { canceled, active, busy } = world.molecule(id)
  assert.deepEqual([canceled, active, busy], [702, 0, 0])
  assert.equal(world.events('molecule.resolved').length, 1)
})

test('who waits for the end of a large one sees all of it; one that ran out of time goes on from there', async () => {
  await using world = await MoleculeWorld.open()
  const many = Array.from({ length: 600 }, (_, at) => step(`s${at}`))
  const first = await world.start(planOf(many))
  await world.store.db.write((tx) => world.molecules.cancel(tx, first.id, 'enough', 'mia'))
  await world.molecules.stopped(first.id)
  assert.deepEqual(new Set(Object.values(world.statuses(first.id))), new Set(['canceled']))
  const { id } = await world.start(planOf(many, { timeout: MINUTE }))
  await world.advance(MINUTE)
  assert.equal(world.molecule(id).status, 'failed')
  await world.store.db.write((tx) => world.molecules.retry(tx, id, 'mia'))
  await world.quiet()
  assert.deepEqual(new Set(Object.values(world.statuses(id))), new Set(['ready']))
})

test('a molecule that failed goes on with what failed and what was left out because of it', async () => {
  await using world = await MoleculeWorld.open()
  const about = (await world.bead('issue')).id
  const repeat = { kind: 'loop', from: '1', to: '3', as: 'n' } as const
  const { id } = await world.start(
    planOf([
      step('a'),
      group('g', [step('x', { needs: [] }), step('y', { needs: ['x'] })], { needs: ['a'] }),
      step('loop', { repeat, needs: ['a'] }),
      step('no', { condition: 'false' }),
      step('last', { needs: ['g', 'loop'] }),
    ]),
    { bead: about },
  )
  await world.close(id, 'a')
  await world.close(id, 'g.x')
  await world.close(id, 'g.y', { outcome: 'fail' })
  await world.close(id, 'loop.1')
  await world.close(id, 'loop.2', { outcome: 'fail' })
  assert.equal(world.molecule(id).status, 'failed')
  assert.equal(world.beads.need(about).blockers, 0)
  const assign = (assignee: string | null) =>
    world.store.db.write((tx) => world.beads.change(tx, about, { assignee }, 'test'))
  await assign('mia')
  await assert.rejects(
    world.store.db.write((tx) => world.molecules.retry(tx, id, 'mia')),
    isConflict('conflict-wrong-state'),
  )
  await assign(null)
  await world.store.db.write((tx) => world.molecules.retry(tx, id, 'mia'))
  await world.quiet()
  assert.equal(world.beads.need(about).blockers, 1)
  assert.deepEqual(world.statuses(id), {
    a: 'completed',
    g: 'active',
    'g.x': 'completed',
    'g.y': 'ready',
    loop: 'active',
    'loop.1': 'completed',
    'loop.2': 'ready',
    'loop.3': 'pending',
    no: 'skipped',
    last: 'pending',
  })
  assert.deepEqual([world.at(id, 'g.y').attempt, world.at(id, 'loop.2').attempt], [2, 2])
  for (const path of ['g.y', 'loop.2', 'loop.3', 'last']) await world.close(id, path)
  const { status, completed, skipped, failed, total } = world.molecule(id)
  assert.deepEqual([status, completed, skipped, failed, total], ['completed', 7, 1, 0, 8])
  assert.equal(world.events('molecule.resolved').length, 2)
  assert.equal(world.beads.need(about).status, 'closed')
})

test('after a restart time-outs wait a minute, everything else that was due is done at once', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: MINUTE, max_backoff: MINUTE }
  const { id } = await world.start(
    planOf([
      step('late', { timeout: MINUTE }),
      step('again', { retry }),
      step('soon', { body: { kind: 'gate', gate: { kind: 'timer', timer: '1m' } } }),
    ]),
  )
  await world.claim(id, 'late')
  await world.close(id, 'again', { outcome: 'fail' })
  await world.restart(10 * MINUTE)
  assert.deepEqual(world.statuses(id), { late: 'active', again: 'ready', soon: 'completed' })
  await world.advance(MINUTE - 1)
  assert.equal(world.at(id, 'late').status, 'active')
  await world.advance(1)
  assert.equal(world.at(id, 'late').status, 'failed')
})

test('a thousand steps that may begin at once are begun in parts', async () => {
  await using world = await MoleculeWorld.open()
  const plan = planOf(Array.from({ length: 1_000 }, (_, at) => step(`s${at}`)))
  const { id } = await world.start(plan)
  assert.equal([...world.steps(id).values()].filter(({ status }) => status === 'ready').length, 1_000)
  assert.equal(world.events('execution.step_started').length, 1_000)
  assert.deepEqual(world.store.db.all('SELECT molecules FROM molecule_plans'), [{ molecules: 1 }])
})

test('a retry of 10 s waits 10 s also where the clock goes back a day, and a gate opens soon after a sleep', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: 10_000, max_backoff: 10_000 }
  const gate = { kind: 'gate', gate: { kind: 'timer', timer: '2h' } } as const
  const { id } = await world.start(planOf([step('again', { retry }), step('soon', { body: gate })]))
  await world.close(id, 'again', { outcome: 'fail' })
  world.clock.step(-86_400_000)
  await world.advance(45_000)
  assert.equal(world.at(id, 'again').status, 'ready')
  world.clock.step(3 * 3_600_000)
  await world.advance(32_000)
  assert.equal(world.at(id, 'soon').status, 'completed')
})

test('molecules that have ended and say nothing of it go after the time that the city sets', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a')]))
  const { id: live } = await world.start(planOf([step('a')]))
  await world.close(id, 'a')
  let keptMs: number | undefined
  const { store, clock, molecules } = world
  const sweep = sweepOfMolecules({ store, clock, molecules, keptMs: () => keptMs })
  const round = { agesCount: true, isOver: false }
  await world.advance(2 * MINUTE)
  assert.deepEqual(await sweep.run(round), { molecules: 0 }, 'nothing says that they may go')
  keptMs = MINUTE
  assert.deepEqual(await sweep.run({ ...round, agesCount: false }), { molecules: 0 }, 'the clock cannot say')
  assert.deepEqual(await sweep.run(round), { molecules: 1 })
  assert.deepEqual(world.store.db.all('SELECT id FROM molecules'), [{ id: live }])
  assert.equal(world.beads.find(id), undefined)
})
