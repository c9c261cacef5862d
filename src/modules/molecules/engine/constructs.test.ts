/** Each construct by itself: what it does, and what it leaves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { group, MoleculeWorld, planOf, step } from '../../../../test/support/molecule-world.ts'
import type { PlanGate, PlanStep, Value } from '../../../automation/plan.ts'

const MINUTE = 60_000
const exec = (said: object = {}) =>
  ({ kind: 'exec', exec: 'npm test', timeout: 1_000, env: {}, inherit_env: [], file_dir: '/f', ...said }) as const
const forEach = (said: object = {}) =>
  ({
    kind: 'for_each',
    in: 'list',
    as: 'item',
    max_parallel: 10,
    stop_on_fail: false,
    exclusive: false,
    ...said,
  }) as const

test('a failure is tried again after a while, with another bead that tells why, and a hard one is not', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 3, backoff: 10_000, max_backoff: 15_000 }
  const { id } = await world.start(planOf([step('a', { retry, output: ['made'] }), step('b', { retry })]))
  const first = world.at(id, 'a').bead
  await world.close(id, 'a', { outcome: 'fail', reason: 'the tests are red' })
  assert.deepEqual(
    [world.at(id, 'a').status, world.at(id, 'a').next_attempt_at],
    ['waiting', world.clock.now() + 10_000],
  )
  await world.advance(9_999)
  assert.equal(world.at(id, 'a').attempt, 1)
  await world.advance(1)
  const { bead, attempt, status } = world.at(id, 'a')
  assert.deepEqual([attempt, status], [2, 'ready'])
  assert.notEqual(bead, first)
  const { description, attempt: told } = world.beads.need(bead ?? '')
  assert.equal(told, 2)
  assert.match(
    description ?? '',
    /--result made=….*\n.*--outcome fail[\s\S]*This is attempt 2\. The last one failed: the tests are red$/,
  )
  await world.close(id, 'a', { outcome: 'fail' })
  assert.equal(world.at(id, 'a').next_attempt_at, world.clock.now() + 15_000)
  await world.close(id, 'b', { outcome: 'fail', failure_class: 'hard' })
  assert.equal(world.at(id, 'b').status, 'failed')
})

test('delays of attempts differ by a fifth at most', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: 10_000, max_backoff: 600_000 }
  for (const [random, expected] of [
    [0, 8_000],
    [0.999_999, 12_000],
  ] as const) {
    world.random = random
    const { id } = await world.start(planOf([step('a', { retry })]))
    await world.close(id, 'a', { outcome: 'fail' })
    assert.equal(world.at(id, 'a').next_attempt_at, world.clock.now() + expected)
  }
})

test('the third lost worker of one attempt fails it', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a')]))
  for (const status of ['ready', 'ready', 'failed']) {
    await world.claim(id, 'a')
    await world.loseLease(id, 'a')
    assert.equal(world.at(id, 'a').status, status)
  }
  assert.equal(JSON.parse(world.molecule(id).failure ?? '').reason, 'worker_lost')
})

test('a command judges the work: 0 passes, 1 to 125 fail, anything else is repeated five times and then is hard', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: 1_000, max_backoff: 1_000 }
  const { id } = await world.start(
    planOf([step('a', { check: exec({ env: { X: '{{ item }}{{ attempt }}' } }), condition: 'true' })], { vars: {} }),
    {
      vars: { item: 7 },
    },
  )
  await world.close(id, 'a', { output: { made: 1 } })
  const [check] = world.checks
  assert.deepEqual([check?.command, check?.env, check?.attempt], ['npm test', { X: '71' }, 1])
  assert.equal(world.molecule(id).status, 'active')
  await world.checked('a', 0)
  assert.equal(world.molecule(id).status, 'completed')

  const failing = await world.start(planOf([step('a', { check: exec(), retry })]))
  await world.close(failing.id, 'a')
  await world.checked('a', 3)
  assert.equal(world.at(failing.id, 'a').status, 'waiting')
  await world.advance(1_000)
  await world.close(failing.id, 'a')
  for (const end of [127, 'signal', 'timed_out', 'interrupted', 'not_started'] as const) {
    await world.checked('a', end)
    assert.equal(world.at(failing.id, 'a').status, 'waiting')
    assert.equal(world.molecule(failing.id).status, 'waiting')
    assert.ok(world.at(failing.id, 'a').last_error)
    await world.advance(MINUTE)
  }
  await world.checked('a', 126)
  const { failure, attempt } = world.at(failing.id, 'a')
  assert.equal(attempt, 2)
  assert.deepEqual([JSON.parse(failure ?? '').class, JSON.parse(failure ?? '').reason], ['hard', 'check_error'])
})

test('a question after the work is a gate for a human, whose no begins the next attempt with its reason', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: 1_000, max_backoff: 1_000 }
  const { id } = await world.start(planOf([step('a', { check: { kind: 'manual', question: 'Good?' }, retry })]))
  await world.close(id, 'a')
  const { asked } = world.at(id, 'a')
  const gate = world.beads.need(asked ?? '')
  assert.deepEqual([gate.issue_type, gate.assignee, gate.title], ['gate', 'human', 'Good?'])
  await world.closeBead(gate.id, { outcome: 'fail', failure_class: 'hard', reason: 'too slow' })
  await world.advance(1_000)
  assert.match(world.beads.need(world.at(id, 'a').bead ?? '').description ?? '', /failed: too slow$/)
  await world.close(id, 'a')
  await world.closeBead(world.at(id, 'a').asked ?? '')
  assert.equal(world.molecule(id).status, 'completed')
  assert.deepEqual(
    world.events('gate.*').map(({ type }) => type),
    ['gate.opened', 'gate.closed', 'gate.opened', 'gate.closed'],
  )
})

test('gates wait for a human, a duration, a time, an event', async () => {
  await using world = await MoleculeWorld.open()
  const at = new Date(world.clock.now() + 2 * MINUTE).toISOString()
  const gate = (said: PlanGate) => ({ body: { kind: 'gate', gate: said } as const })
  const { id } = await world.start(
    planOf([
      step('human', gate({ kind: 'human' })),
      step('soon', gate({ kind: 'timer', timer: '1m' })),
      step('then', gate({ kind: 'timer', timer: '{{ at }}' })),
      step('never', { ...gate({ kind: 'timer', timer: 'soonish' }), on_fail: 'continue' }),
      step('published', gate({ kind: 'event', event: 'registry.published', match: { tag: '{{ tag }}' } })),
      step('any', gate({ kind: 'event', event: 'registry.*', match: {} })),
    ]),
    { vars: { at, tag: 'v1' } },
  )
  assert.equal(world.molecule(id).status, 'waiting')
  assert.equal(world.at(id, 'never').status, 'failed')
  await world.advance(MINUTE)
  assert.deepEqual([world.at(id, 'soon').status, world.at(id, 'then').status], ['completed', 'waiting'])
  await world.advance(MINUTE)
  assert.equal(world.at(id, 'then').status, 'completed')
  await world.emit('registry.published', { tag: 'v2' })
  assert.deepEqual([world.at(id, 'any').status, world.at(id, 'published').status], ['completed', 'waiting'])
  await world.emit('registry.published', { tag: 'v1' })
  assert.equal(world.at(id, 'published').status, 'completed')
  await world.close(id, 'human', { outcome: 'fail', reason: 'no' })
  assert.equal(world.molecule(id).status, 'failed')
})

test('an event that came before its gate opened, but after the item began, is not lost; an older one does not count', async () => {
  await using world = await MoleculeWorld.open()
  await world.emit('registry.published', { tag: 'old' })
  const gate = { kind: 'gate', gate: { kind: 'event', event: 'registry.published', match: {} } } as const
  const { id } = await world.start(
    planOf([
      step('work'),
      step('published', { needs: ['work'], body: gate }),
      group('each', [step('w'), step('p', { needs: ['w'], body: gate })], {
        needs: ['published'],
        repeat: { kind: 'loop', from: '1', to: '2', as: 'n' },
      }),
    ]),
  )
  await world.emit('registry.published', { tag: 'early' })
  await world.close(id, 'work')
  assert.equal(world.at(id, 'published').status, 'completed')
  await world.close(id, 'each.1.w')
  assert.equal(world.at(id, 'each.1.p').status, 'waiting')
  await world.emit('registry.published', { tag: 'for the first' })
  await world.emit('registry.published', { tag: 'too early for the second item' })
  assert.equal(world.at(id, 'each.2.w').status, 'ready')
})

test('one event opens very many gates', async () => {
  await using world = await MoleculeWorld.open()
  const gate = { kind: 'gate', gate: { kind: 'event', event: 'go.now', match: {} } } as const
  const { id } = await world.start(planOf(Array.from({ length: 180 }, (_, at) => step(`g${at}`, { body: gate }))))
  assert.equal(world.molecule(id).waiting, 180)
  await world.emit('go.now')
  assert.equal(world.molecule(id).status, 'completed')
})

test('items run as many at once as they may, in order, and what they report is a list', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(
    planOf([
      step('plan', { output: ['modules'] }),
      step('port', {
        title: 'Port {{ item }} ({{ index }})',
        needs: ['plan'],
        repeat: forEach({ in: 'steps.plan.output.modules', max_parallel: 2 }),
      }),
      step('sum', { needs: ['port'], title: '{{ steps.port.output | size }} of {{ steps.port.output[1].n }}' }),
    ]),
  )
  await world.close(id, 'plan', { output: { modules: ['a', 'b', 'c'] } })
  assert.deepEqual(
    ['port.1', 'port.2', 'port.3'].map((path) => world.at(id, path).status),
    ['ready', 'ready', 'pending'],
  )
  assert.equal(world.beads.need(world.at(id, 'port.2').bead ?? '').title, 'Port b (2)')
  await world.close(id, 'port.2', { output: { n: 22 } })
  assert.equal(world.at(id, 'port.3').status, 'ready')
  await world.close(id, 'port.1', { output: { n: 11 } })
  await world.close(id, 'port.3', { output: { n: 33 } })
  assert.equal(world.at(id, 'sum').title, '3 of 22')
})

test('what is no list, or too long, fails the step; an empty one passes', async () => {
  await using world = await MoleculeWorld.open()
  const one = async (list: Value, body: Partial<PlanStep> = {}) => {
    const { id } = await world.start(planOf([step('a', { repeat: forEach(), ...body })]), {
      vars: { list: list as never },
    })
    const { status, failure } = world.at(id, 'a')
    return [status, failure === null ? undefined : JSON.parse(failure).reason]
  }
  assert.deepEqual(await one([]), ['completed', undefined])
  assert.deepEqual(await one('three'), ['failed', 'not_a_list'])
  assert.deepEqual(await one(Array.from({ length: 1_001 }, (_, at) => at)), ['failed', 'too_many_items'])
  const steps = Array.from({ length: 20 }, (_, at) => step(`s${at}`))
  assert.deepEqual(
    await one(
      Array.from({ length: 600 }, (_, at) => at),
      { body: { kind: 'group', steps } },
    ),
    ['failed', 'too_many_rows'],
  )
})

test('a loop goes round one at a time and stops at the first failure', async () => {
  await using world = await MoleculeWorld.open()
  const repeat = { kind: 'loop', from: '1', to: 'rounds', as: 'round' } as const
  const { id } = await world.start(planOf([step('a', { title: 'Round {{ round }}', repeat, on_fail: 'continue' })]), {
    vars: { rounds: 3 },
  })
  await world.close(id, 'a.1')
  await world.close(id, 'a.2', { outcome: 'fail' })
  assert.deepEqual(world.statuses(id), { a: 'failed', 'a.1': 'completed', 'a.2': 'failed', 'a.3': 'skipped' })
  assert.equal(world.molecule(id).status, 'completed')
})

test('a step of another formula sees what it is given, and nothing of its caller', async () => {
  await using world = await MoleculeWorld.open()
  const scope = {
    formula: 'one',
    vars: { issue: { type: 'string' }, n: { type: 'int', default: 4 } },
    with: { issue: '{{ item }}' },
  } as const
  const steps = [step('do', { title: 'Do {{ issue }} {{ n }} in {{ molecule.id }}', target: 'fixers' })]
  const { id } = await world.start(
    planOf([{ ...group('each', []), body: { kind: 'group', steps, scope }, repeat: forEach() }]),
    { vars: { list: ['x'] } },
  )
  assert.equal(world.at(id, 'each.1.do').title, `Do x 4 in ${id}`)
  assert.equal(world.beads.need(world.at(id, 'each.1.do').bead ?? '').routed_to, 'fixers')
})

test('a template that cannot be rendered fails its step for good, and a condition that is none too', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 3, backoff: 1_000, max_backoff: 1_000 }
  const { id } = await world.start(
    planOf([
      step('first'),
      step('bad', { needs: ['first'], title: '{{ steps.first.output.nothing }}', retry }),
      step('odd', { needs: ['first'], condition: 'steps.first.output.made' }),
      step('fine', { needs: ['first'], condition: 'steps.first.output.nothing' }),
    ]),
  )
  await world.close(id, 'first', { output: { made: 1 } })
  assert.deepEqual(world.statuses(id), { first: 'completed', bad: 'failed', odd: 'failed', fine: 'skipped' })
  assert.equal(world.at(id, 'bad').attempt, 1)
  assert.equal(world.at(id, 'fine').reason, 'condition')
})

test('a group that failed begins anew: its rows of before stay, and tell no more', async () => {
  await using world = await MoleculeWorld.open()
  const retry = { max_attempts: 2, backoff: 1_000, max_backoff: 1_000 }
  const { id } = await world.start(
    planOf([
      group(
        'g',
        [
          step('build', { title: 'Build {{ attempt }} {{ previous.failure_reason }}' }),
          step('review', { needs: ['build'] }),
        ],
        { retry },
      ),
    ]),
  )
  assert.equal(world.at(id, 'g.build').title, 'Build 1 ')
  await world.close(id, 'g.build')
  await world.close(id, 'g.review', { outcome: 'fail', reason: 'not pretty' })
  await world.advance(1_000)
  assert.deepEqual(world.statuses(id), { g: 'active', 'g.build': 'ready', 'g.review': 'pending' })
  assert.equal(world.rows(id).filter(({ superseded }) => superseded).length, 2)
  assert.equal(world.at(id, 'g.build').title, 'Build 1 not pretty')
  assert.match(
    world.beads.need(world.at(id, 'g.build').bead ?? '').description ?? '',
    /attempt 2 of g\. The last one failed: not pretty/,
  )
  assert.equal(world.molecule(id).total, 2)
  await world.close(id, 'g.build')
  await world.close(id, 'g.review')
  assert.equal(world.molecule(id).status, 'completed')
})

test('work has its time from its claim, a group from its start; holders are interrupted when it is over', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(
    planOf([
      step('a', { timeout: MINUTE }),
      group('g', [step('x'), step('y', { needs: ['x'] })], { timeout: 2 * MINUTE }),
    ]),
  )
  await world.claim(id, 'g.x')
  await world.advance(MINUTE + 1)
  assert.equal(world.at(id, 'a').status, 'ready')
  await world.claim(id, 'a')
  await world.advance(MINUTE)
  assert.deepEqual(world.statuses(id), { a: 'failed', g: 'failed', 'g.x': 'failed', 'g.y': 'canceled' })
  const bead = world.beads.need(world.at(id, 'a').bead ?? '')
  assert.deepEqual([bead.status, bead.outcome, bead.failure_reason], ['closed', 'fail', 'timeout'])
  assert.equal(world.interrupted.length, 2)
})

test('a molecule that is out of time ends, without what was to run in any case', async () => {
  await using world = await MoleculeWorld.open()
  const { id } = await world.start(planOf([step('a'), step('z', { needs: ['a'], always: true })], { timeout: MINUTE }))
  await world.claim(id, 'a')
  await world.advance(MINUTE)
  assert.deepEqual(world.statuses(id), { a: 'canceled', z: 'canceled' })
  const { status, failure } = world.molecule(id)
  assert.deepEqual([status, JSON.parse(failure ?? '').reason], ['failed', 'timeout'])
})
