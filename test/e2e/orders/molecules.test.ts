/** Orders that start molecules: run and molecule begin together and end together. Real files, over HTTP. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { assertProblem } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { OrderedCity } from '../../support/ordered-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

const TIDY =
  'title = "Tidy {{ part }}"\n[vars]\npart = "docs"\nrounds = 1\n[[steps]]\nid = "work"\ntitle = "Tidy {{ part }}"\n'

let supervisor: RunningSupervisor
let molecules: MoleculeCity
let orders: OrderedCity
before(async () => {
  supervisor = await startSupervisor()
  molecules = await MoleculeCity.start(supervisor, 'alpha', { tidy: TIDY })
  orders = new OrderedCity(molecules.city)
})
after(async () => {
  molecules.city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const MANUAL = ['trigger = "manual"', 'formula = "tidy"'] as const

test('a run is under way until its molecule is done, and ends in the same write', { timeout: 60_000 }, async () => {
  await orders.save('tidy-up', ...MANUAL, '[order.vars]', 'part = "shelf"')
  const run = await orders.run('tidy-up')
  const id = run.molecule_id ?? ''
  const molecule = await molecules.molecule(id)
  assert.deepEqual([molecule.title, molecule.order_run_id], ['Tidy shelf', run.id])
  assertProblem(await orders.city.post('/orders/tidy-up/run', {}), 'conflict-wrong-state', /under way/)
  await molecules.finish(id, 'work', { outcome: 'pass' })
  const [ended] = await orders.ended('tidy-up', 1)
  assert.deepEqual([ended?.status, ended?.molecule_id], ['succeeded', id])
  const said = await orders.city.events('order.fired', 'order.completed', 'molecule.resolved')
  const types = said.filter(({ subject }) => subject === 'tidy-up' || subject === id).map(({ type }) => type)
  assert.deepEqual(types, ['order.fired', 'molecule.resolved', 'order.completed'])
  assert.equal(said.find(({ type }) => type === 'order.completed')?.payload['root_bead_id'], id)
  assert.ok((await molecules.molecule(id)).expires_at !== undefined, 'it is kept for a week')
})

test('a molecule that fails, is canceled or takes too long is a run that failed', { timeout: 90_000 }, async () => {
  await orders.save('failing', ...MANUAL)
  const failed = await orders.run('failing')
  await molecules.finish(failed.molecule_id ?? '', 'work', { outcome: 'fail', reason: 'no broom' })
  assert.equal((await orders.ended('failing', 1))[0]?.status, 'failed')
  const canceled = await orders.run('failing')
  await orders.city.post(`/molecules/${canceled.molecule_id}/cancel`)
  assert.equal((await orders.ended('failing', 2))[0]?.status, 'canceled')
  await orders.save('late', ...MANUAL, 'timeout = "1s"')
  await orders.run('late')
  assert.equal((await orders.ended('late', 1))[0]?.status, 'timed_out')
  const ends = (await orders.events('failing')).filter(({ type }) => type !== 'order.fired')
  assert.deepEqual(
    ends.map(({ type, payload }) => [type, payload['status']]),
    [
      ['order.failed', 'failed'],
      ['order.failed', 'canceled'],
    ],
  )
})

test('variables come from the event, by the type that the formula declares', { timeout: 60_000 }, async () => {
  await orders.save(
    'on-push',
    'trigger = "event"',
    'on = "repo.pushed"',
    'batch = false',
    'formula = "tidy"',
    'title = "After {{ event.payload.by }}"',
    '[order.vars]',
    'part = "{{ event.payload.path }}"',
    'rounds = "{{ event.payload.n }}"',
  )
  await orders.emit('repo.pushed', { by: 'ann', path: 'src/{{ x }}', n: 7 })
  const run = await orders.begun('on-push')
  const { title, vars } = await molecules.molecule(run.molecule_id ?? '')
  assert.equal(title, 'After ann')
  assert.deepEqual([vars.part, vars.rounds], ['src/{{ x }}', 7])
  await molecules.finish(run.molecule_id ?? '', 'work', { outcome: 'pass' })
  await orders.emit('repo.pushed', { by: 'bob' })
  const runs = await orders.ended('on-push', 2)
  assert.deepEqual([runs[0]?.status, runs[0]?.molecule_id], ['failed', undefined])
  assert.match(runs[0]?.error ?? '', /order\.vars/)
})

test('beads of its own molecules do not set an order off', { timeout: 60_000 }, async () => {
  await orders.save('after-work', 'trigger = "event"', 'on = "bead.closed"', 'formula = "tidy"', 'batch = false')
  const bead = await molecules.bead('work')
  await molecules.close(bead)
  const run = await orders.begun('after-work')
  await molecules.finish(run.molecule_id ?? '', 'work', { outcome: 'pass' })
  await orders.ended('after-work', 1)
  // An event behind all of its own tells that they have been looked at.
  const other = await molecules.bead('other')
  await molecules.close(other)
  const [second] = (await orders.runsOnce('after-work', 2)).filter(({ status }) => status === 'running')
  assert.equal((await orders.runs('after-work')).length, 2)
  await molecules.finish(second?.molecule_id ?? '', 'work', { outcome: 'pass' })
  await orders.city.post('/orders/after-work/disable')
})

test('what the formula refuses is refused by hand, and is a run that failed by itself', {
  timeout: 60_000,
}, async () => {
  await orders.save('picky', ...MANUAL)
  assertProblem(await orders.city.post('/orders/picky/run', { vars: { nope: 1 } }), 'validation-failed', /nope/)
  assertProblem(
    await orders.city.post('/orders/picky/run', { vars: { rounds: 'many' } }),
    'validation-failed',
    /rounds/,
  )
  assert.equal((await orders.runs('picky')).length, 0)
  const words = ['order', 'run', 'picky', '--var', 'rounds=3', '--var', 'part=42', '-o', 'json']
  const { out, err, code } = await cli(words, { env: { SVC_API: supervisor.url, SVC_CITY: 'alpha' } })
  assert.equal(code, 0, err)
  assert.deepEqual(JSON.parse(out).vars, { rounds: 3, part: '42' })
})
