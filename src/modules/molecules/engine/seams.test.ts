/** What happens at the seams of a molecule: what cannot be begun, what begins anew, and what two steps want at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { group, MoleculeWorld, planOf, step } from '../../../../test/support/molecule-world.ts'
import type { Value } from '../../../automation/plan.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const retry = { max_attempts: 3, backoff: 1_000, max_backoff: 1_000 }
const exec = { kind: 'exec', exec: 'npm test', timeout: 1_000, env: {}, inherit_env: [], file_dir: '/f' } as const
const eachBead = (list: string, said: object = {}) =>
  ({ kind: 'for_each', in: list, as: 'item', max_parallel: 5, stop_on_fail: false, exclusive: true, ...said }) as const

const failureAt = (
  world: MoleculeWorld,
  id: string,
  path: string,
): { readonly reason?: string; readonly message?: string } => JSON.parse(world.at(id, path).failure ?? '{}')

async function retried(world: MoleculeWorld, id: string): Promise<void> {
  await world.store.db.write((tx) => world.molecules.retry(tx, id, 'test'))
  await world.quiet()
}

test('a gate in a group that is tried again waits for an event of the new attempt', async () => {
  await using world = await MoleculeWorld.open()
  const gate = { kind: 'gate', gate: { kind: 'event', event: 'deploy.done', match: {} } } as const
  const { id } = await world.start(
    planOf([
      group(
        'deploy',
        [
          step('push'),
          group('wait', [step('live', { body: gate })], { needs: ['push'] }),
          step('test', { needs: ['wait'] }),
        ],
        { retry },
      ),
    ]),
  )
  await world.close(id, 'deploy.push')
  await world.emit('deploy.done')
  await world.close(id, 'deploy.test', { outcome: 'fail' })
  await world.advance(1_000)
  await world.close(id, 'deploy.push')
  assert.equal(world.at(id, 'deploy.wait.live').status, 'waiting')
  await world.emit('deploy.done')
  await world.close(id, 'deploy.test')
  assert.equal(world.molecule(id).status, 'completed')
})

test('a step whose rig is gone fails itself; the pass of the step before it stays', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a'), step('b', { needs: ['a'] })]), { rig: 'shop' })
  world.rigs = []
  await world.close(id, 'a', { output: { made: 1 } })
  assert.deepEqual(world.statuses(id), { a: 'completed', b: 'failed' })
  assert.equal(world.at(id, 'a').output, '{"made":1}')
  assert.equal(failureAt(world, id, 'b').reason, 'cannot_begin')
  assert.match(failureAt(world, id, 'b').message ?? '', /shop/)
  world.rigs = ['shop']
  await retried(world, id)
  await world.close(id, 'b')
  assert.equal(world.molecule(id).status, 'completed')
})

test('what nobody expects fails the step that it happens to, and no other', async () => {
  await using world = await MoleculeWorld.open()
  const broken = { needs: ['a'], assignee: MoleculeWorld.UNKNOWABLE }
  const { id } = await world.start(
    planOf([step('a'), step('b', broken), step('c', { needs: ['a'] }), step('d', broken), step('e', { needs: ['d'] })]),
  )
  await world.close(id, 'a')
  await world.advance(MINUTE)
  assert.deepEqual(world.statuses(id), { a: 'completed', b: 'failed', c: 'ready', d: 'failed', e: 'skipped' })
  assert.equal(failureAt(world, id, 'b').reason, 'engine_error')
  const later = await world.start(
    planOf([
      step('x', { body: { kind: 'gate', gate: { kind: 'timer', timer: '1m' } } }),
      step('y', { ...broken, needs: ['x'] }),
    ]),
  )
  await world.advance(MINUTE)
  assert.deepEqual(world.statuses(later.id), { x: 'completed', y: 'failed' })
})

test('a step behind a hundred others fails in the molecule that it is of', async () => {
  await using world = await MoleculeWorld.open()
  const other = await world.start(planOf(Array.from({ length: 150 }, (_, at) => step(`o${at}`))))
  const many = Array.from({ length: 120 }, (_, at) =>
    step(`s${at}`, { needs: ['first'], ...(at === 110 ? { assignee: MoleculeWorld.UNKNOWABLE } : {}) }),
  )
  const { id } = await world.start(planOf([step('first'), ...many]))
  await world.close(id, 'first')
  const failed = (of: string) => Object.entries(world.statuses(of)).filter(([, status]) => status === 'failed')
  assert.deepEqual(failed(id), [['s110', 'failed']])
  assert.deepEqual(failed(other.id), [])
})

test('a retry runs the clean-up again that ran because of the failure', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(
    planOf([
      step('make'),
      step('build', { needs: ['make'] }),
      step('cleanup', { needs: ['build'], always: true, repeat: { kind: 'loop', from: '1', to: '2', as: 'n' } }),
      step('tell', { needs: ['cleanup'], always: true }),
    ]),
  )
  await world.close(id, 'make')
  await world.close(id, 'build', { outcome: 'fail' })
  for (const path of ['cleanup.1', 'cleanup.2', 'tell']) await world.close(id, path)
  assert.equal(world.molecule(id).status, 'failed')
  await retried(world, id)
  assert.deepEqual(world.statuses(id), { make: 'completed', build: 'ready', cleanup: 'pending', tell: 'pending' })
  for (const path of ['build', 'cleanup.1', 'cleanup.2', 'tell']) await world.close(id, path)
  const { status, total, completed } = world.molecule(id)
  assert.deepEqual([status, total, completed], ['completed', 5, 5])
})

test('two lists of one molecule that have the same bead take it one after the other', async () => {
  await using world = await MoleculeWorld.open()
  const [one, two] = [await world.bead('one'), await world.bead('two')]
  const vars = { both: [one.id, two.id] as Value, first: [one.id] as Value }
  const { id } = await world.start(
    planOf([
      step('a', { repeat: eachBead('both') }),
      step('b', { repeat: eachBead('first') }),
      group('c', [step('in', { repeat: eachBead('first') })], { repeat: eachBead('first') }),
    ]),
    { vars },
  )
  assert.deepEqual(
    ['a.1', 'a.2', 'b.1', 'c.1'].map((path) => world.at(id, path).status),
    ['ready', 'ready', 'pending', 'pending'],
  )
  await world.close(id, 'a.1', { outcome: 'fail' })
  assert.equal(world.at(id, 'b.1').status, 'ready')
  await world.close(id, 'b.1', { outcome: 'fail' })
  await world.close(id, 'c.1.in.1')
  await world.close(id, 'a.2')
  assert.equal(world.molecule(id).status, 'failed')
  assert.deepEqual([world.at(id, 'c').status, world.beads.need(one.id).status], ['completed', 'closed'])
  const left = world.store.db.get('SELECT count(*) AS n FROM molecule_drives')
  assert.equal(Number(left?.n), 0)
})

test('an item that waited for a bead which is closed by then has nothing to do', async () => {
  await using world = await MoleculeWorld.open()
  const bead = await world.bead('one')
  const { id } = await world.start(planOf(['a', 'b', 'c'].map((name) => step(name, { repeat: eachBead('list') }))), {
    vars: { list: [bead.id] },
  })
  await world.close(id, 'a.1')
  assert.deepEqual([world.at(id, 'b.1').reason, world.at(id, 'c.1').reason], ['bead_closed', 'bead_closed'])
  assert.equal(world.molecule(id).status, 'completed')
})

test('`replace` about an item of a list does not cancel the molecule of the whole list', async () => {
  await using world = await MoleculeWorld.open()
  const bead = await world.bead('one')
  const { id } = await world.start(planOf([step('a', { repeat: eachBead('list') })]), { vars: { list: [bead.id] } })
  await assert.rejects(
    world.start(planOf([step('x')]), { bead: bead.id, replace: true }),
    new RegExp(`${id} works on ${bead.id} as one of several \\(a\\.1\\): .*svcctl molecule cancel ${id}`),
  )
  assert.equal(world.at(id, 'a.1').status, 'ready')
})

test('who claims work that was given back has all of its time, however late that is seen', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a', { timeout: HOUR })]))
  await world.claim(id, 'a', 'first')
  await world.advance(HOUR - MINUTE)
  const { bead } = world.at(id, 'a')
  assert.ok(bead)
  await world.store.db.write((tx) => {
    world.beads.change(tx, bead, { status: 'open', assignee: null }, 'first', {
      also: () => [
        { type: 'bead.released', actor: 'first', subject: bead, payload: { bead_id: bead, reason: 'released' } },
      ],
    })
    world.beads.change(tx, bead, { status: 'in_progress', assignee: 'second' }, 'second')
  })
  await world.quiet()
  await world.advance(HOUR - MINUTE)
  assert.deepEqual([world.at(id, 'a').status, world.at(id, 'a').assignee], ['active', 'second'])
  await world.advance(MINUTE)
  assert.equal(world.at(id, 'a').status, 'failed')
})

test('a check that hangs is given one more try, then the attempt has failed and the next one begins', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a', { check: exec, retry })]))
  for (const attempt of [1, 2]) {
    await world.close(id, 'a')
    await world.checked('a', 'timed_out')
    await world.advance(MINUTE)
    await world.checked('a', 'timed_out')
    assert.deepEqual([world.at(id, 'a').attempt, world.at(id, 'a').phase], [attempt, 'backoff'])
    assert.equal(failureAt(world, id, 'a').reason, 'check_timeout')
    await world.advance(1_000)
  }
  await world.close(id, 'a')
  await world.checked('a', 0)
  assert.equal(world.molecule(id).status, 'completed')
})

test('a check that waits for a slot is queued, and the time of its step stands still meanwhile', async () => {
  await using world = await MoleculeWorld.open()
  world.queues = true
  const { id } = await world.start(planOf([step('a', { check: exec, timeout: HOUR })]))
  await world.claim(id, 'a')
  await world.advance(HOUR - MINUTE)
  await world.close(id, 'a')
  const verdict = () => JSON.parse(world.at(id, 'a').verdict ?? '{}')
  assert.deepEqual([verdict().status, verdict().started_at], ['queued', undefined])
  await world.advance(5 * HOUR)
  assert.equal(world.at(id, 'a').phase, 'check')
  await world.free('a')
  assert.equal(verdict().status, 'running')
  assert.equal(Date.parse(verdict().started_at) - Date.parse(verdict().queued_at), 5 * HOUR)
  await world.advance(MINUTE)
  assert.deepEqual([world.at(id, 'a').status, failureAt(world, id, 'a').reason], ['failed', 'timeout'])
})

test('a write begins what fits into its slice, and the next ones begin the rest', async () => {
  await using world = await MoleculeWorld.open()
  const steps = Array.from({ length: 12 }, (_, at) => step(`s${at}`, { assignee: MoleculeWorld.SLOW }))
  const input = { plan: planOf(steps), formula_hash: 'hash', vars: {}, rig: '', actor: 'test' }
  const begun = (id: string) => world.rows(id).filter(({ phase }) => phase === 'work').length
  const [one, two] = await world.store.db.write((tx) => [
    world.molecules.start(tx, input),
    world.molecules.start(tx, input),
  ])
  // The second finds the time of the write used, and still begins something.
  assert.deepEqual([begun(one?.id ?? ''), begun(two?.id ?? '')], [1, 1])
  await world.quiet()
  assert.deepEqual([begun(one?.id ?? ''), begun(two?.id ?? '')], [12, 12])
})

test('all names that nobody has are warned of at the start, wherever they stand', async () => {
  await using world = await MoleculeWorld.open()
  const { warnings } = await world.start(
    planOf([
      step('a'),
      step('b', { needs: ['a'], target: 'nobody' }),
      group('c', [step('d', { assignee: 'nobody' })], { needs: ['b'] }),
      step('e', { needs: ['a'], target: '{{ molecule.id }}' }),
    ]),
  )
  const said: readonly { readonly message: string }[] = JSON.parse(warnings ?? '[]')
  assert.deepEqual(
    said.map(({ message }) => message),
    ['b', 'c.d'].map((path) => `nobody is called nobody: step ${path} waits until somebody is`),
  )
})

test('a check runs where the session worked that did the work; the review is told where that is', async () => {
  await using world = await MoleculeWorld.open()
  world.places.set('se-1', { path: '/work/trees/one', branch: 'svc/one' })
  const { id } = await world.start(
    planOf([
      step('build', { check: exec }),
      step('review', { needs: ['build'], title: '{{ steps.build.branch }} in {{ steps.build.work_dir }}' }),
    ]),
  )
  await world.claim(id, 'build')
  await world.store.db.write((tx) => {
    const { bead } = world.at(id, 'build')
    // What a worker writes there moves no check.
    world.beads.change(tx, bead ?? '', { metadata: { 'svc.work_dir': '/elsewhere' } }, 'worker')
  })
  await world.close(id, 'build')
  assert.equal(world.checks[0]?.work_dir, '/work/trees/one')
  await world.checked('build', 0)
  assert.equal(world.at(id, 'review').title, 'svc/one in /work/trees/one')
})
