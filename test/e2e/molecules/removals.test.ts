/** What a molecule works on, or consists of, is not deleted under its hands, by whatever way. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { OrderedCity } from '../../support/ordered-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const ASKS = 'title = "Asks"\n[[steps]]\nid = "ask"\ntitle = "Go on?"\ngate = { human = true }\n'
const MANY = 1_500

const remove = (city: MoleculeCity, path: string) => city.city.api.call('DELETE', `${city.city.base}${path}`)

test('a tree is not deleted with a bead in it that a live molecule works on, at once or behind a 202', async () => {
  const city = await MoleculeCity.start(supervisor, 'trees', { asks: ASKS })
  const parent = await city.bead('parent')
  const child = await city.bead('child', { parent })
  const { id } = await city.launch('asks', { bead: child })
  assertProblem(await remove(city, `/beads/${parent}?cascade=true`), 'conflict-wrong-state')
  for (let n = 0; n < MANY; n += 500) {
    const nodes = Array.from({ length: 500 }, (_, at) => ({ key: `k${at}`, title: 'leaf', parent_id: parent }))
    const made = await city.city.post('/beads/batch', { nodes })
    assert.equal(made.status, 201, made.text)
  }
  const accepted = await remove(city, `/beads/${parent}?cascade=true`)
  assert.equal(accepted.status, 202, accepted.text)
  const request = String(at(accepted.body, 'request_id'))
  const ended = await eventually('the removal has ended', async () => {
    const events = await city.city.events('request.result.bead.delete', 'request.failed')
    return events.find(({ payload }) => payload['request_id'] === request)
  })
  assert.equal(ended.type, 'request.failed', JSON.stringify(ended))
  assert.match(JSON.stringify(ended.payload), new RegExp(id))
  assert.equal((await city.readBead(child)).id, child)
  assert.equal((await city.readBead(parent)).id, parent)
  assert.equal((await city.molecule(id)).status, 'waiting')
})

test('a convoy is not deleted while a molecule works on it', async () => {
  const city = await MoleculeCity.start(supervisor, 'groups', { asks: ASKS })
  const member = await city.bead('one')
  const convoy = String(at((await city.city.post('/convoys', { title: 'all', items: [member] })).body, 'id'))
  const { id } = await city.launch('asks', { bead: convoy })
  const refused = await remove(city, `/convoys/${convoy}`)
  assertProblem(refused, 'conflict-wrong-state')
  assert.match(refused.text, new RegExp(id))
  await city.city.post(`/molecules/${id}/cancel`)
  assert.equal((await remove(city, `/convoys/${convoy}`)).status, 200)
})

test('what is kept for a while only is kept as long as its molecule lives, and the root as long as there is one', async () => {
  const two =
    'title = "Two"\n[[steps]]\nid = "do"\ntitle = "Do"\n[[steps]]\nid = "ask"\nneeds = ["do"]\ntitle = "Go on?"\ngate = { human = true }\n'
  const city = await MoleculeCity.start(supervisor, 'kept', { two })
  const { text } = await city.city.file('city.toml')
  const policies = ['task', 'gate', 'molecule'].map((type) => `[beads.policies.${type}]\ndelete_after_close = "10ms"\n`)
  const written = await city.city.put('city.toml', `${text}\n${policies.join('')}`)
  assert.equal(written.status, 200, written.text)
  const { id } = await city.launch('two')
  const done = await city.beadOf(id, 'do')
  await city.close(done)
  const gate = (await city.stepIs(id, 'ask', 'waiting')).bead_id ?? ''
  const old = await city.bead('of nobody')
  await city.close(old)
  const gone = (bead: string) =>
    eventually(`${bead} goes`, async () => ((await city.city.get(`/beads/${bead}`)).status === 404 ? true : undefined))
  await gone(old)
  assert.equal((await city.readBead(done)).status, 'closed')
  await city.close(gate, { outcome: 'pass' })
  await city.is(id, 'completed')
  await gone(done)
  assert.equal((await city.readBead(id)).status, 'closed')
  assert.equal((await remove(city, `/molecules/${id}`)).status, 200)
})

test('molecules of an order are listed by its name', async () => {
  const city = await MoleculeCity.start(supervisor, 'ordered', { asks: ASKS })
  const orders = new OrderedCity(city.city)
  await orders.save('nightly', 'trigger = "manual"', 'formula = "asks"')
  await city.launch('asks')
  const { molecule_id, id } = await orders.run('nightly')
  const { body } = await city.city.get('/molecules?order=nightly')
  const { items, total, status_counts } = asMap(body)
  assert.ok(Array.isArray(items))
  assert.deepEqual([items.map((one) => [at(one, 'id'), at(one, 'order_run_id')]), total], [[[molecule_id, id]], 1])
  assert.equal(at(status_counts, 'waiting'), 1)
  assert.equal(at((await city.city.get('/molecules?order=nobody')).body, 'total'), 0)
})
