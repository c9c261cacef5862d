/** Sling: beads, texts, formulas and convoys for agents, over HTTP. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const ASKS =
  'title = "Asks"\n[vars]\nwhat = "it"\n[[steps]]\nid = "ask"\ntitle = "Go on with {{ what }}?"\ngate = { human = true }\n'

/** A city with an agent that does nothing by itself, another with a formula of its own, and a rig that gives to the first. */
async function slingCity(name: string): Promise<MoleculeCity> {
  const city = await MoleculeCity.start(supervisor, name, { asks: ASKS })
  city.city.write('shop/.keep', '')
  const { text } = await city.city.file('city.toml')
  const agent = (agentName: string, more = '') =>
    `[[agent]]\nname = "${agentName}"\nprovider = "shell"\nsuspended = true\n${more}`
  const written = await city.city.put(
    'city.toml',
    `${text}\n${agent('worker')}${agent('careful', 'default_sling_formula = "asks"\n')}[[rigs]]\nname = "shop"\npath = "shop"\nprefix = "sh"\ndefault_sling_target = "worker"\nformula_vars = { what = "the shop" }\n`,
  )
  assert.equal(written.status, 200, written.text)
  await eventually('it is in force', async () =>
    (await city.city.get('/rigs/shop')).status === 200 ? true : undefined,
  )
  return city
}

test('a bead is routed, once; a text becomes a task; a suspended agent is warned of', async () => {
  const city = await slingCity('routed')
  const bead = await city.bead('work')
  const sling = (body: object) => city.city.post('/sling', body)
  const first = await sling({ bead, target: 'worker' })
  assert.equal(first.status, 200, first.text)
  const { outcome, target, warnings } = asMap(first.body)
  assert.deepEqual([outcome, target], ['routed', 'worker'])
  assert.match(JSON.stringify(warnings), /target_suspended/)
  assert.equal((await city.readBead(bead)).routed_to, 'worker')
  const { revision } = await city.readBead(bead)
  assert.equal(at((await sling({ bead, target: 'worker' })).body, 'outcome'), 'unchanged')
  assert.equal((await city.readBead(bead)).revision, revision)
  const text = await sling({ text: 'Fix the login\nIt says 500.', rig: 'shop' })
  const made = await city.readBead(String(at(text.body, 'bead')))
  assert.deepEqual(
    [made.title, made.description, made.rig, made.routed_to],
    ['Fix the login', 'Fix the login\nIt says 500.', 'shop', 'worker'],
  )
  const dry = await sling({ text: 'not yet', target: 'worker', dry_run: true })
  assert.deepEqual(
    [at(dry.body, 'outcome'), at(dry.body, 'dry_run'), asMap(dry.body).bead],
    ['routed', true, undefined],
  )
})

test('what is held, closed, no work, or unknown is refused, and so is a request that says two things', async () => {
  const city = await slingCity('refused')
  const sling = (body: object) => city.city.post('/sling', body)
  const held = await city.bead('held')
  await city.city.post(`/beads/${held}/claim`, { assignee: 'ann', session_id: 's-1' })
  assertProblem(await sling({ bead: held, target: 'worker' }), 'conflict-claimed')
  assert.equal((await sling({ bead: held, target: 'worker', reassign: true })).status, 200)
  const taken = await city.readBead(held)
  assert.deepEqual([taken.status, taken.assignee, taken.routed_to], ['open', undefined, 'worker'])
  assertProblem(
    await sling({ bead: await city.bead('big', { issue_type: 'epic' }), target: 'worker' }),
    'invalid-request',
  )
  const unknown = await sling({ text: 'x', target: 'wroker' })
  assertProblem(unknown, 'target-not-found')
  assert.match(unknown.text, /did you mean worker/)
  for (const body of [
    { text: 'x' },
    { target: 'worker' },
    { bead: held, text: 'x', target: 'worker' },
    { bead: held, formula: 'asks', no_formula: true, target: 'worker' },
    { bead: held, vars: { what: 'x' }, target: 'worker' },
    { text: '  ', target: 'worker' },
  ])
    assertProblem(await sling(body), 'validation-failed')
})

test('with a formula, said or the agent’s own, a molecule is started about it; its rig says variables', async () => {
  const city = await slingCity('launched')
  const sling = (body: object) => city.city.post('/sling', body)
  const bead = await city.bead('work', { rig: 'shop' })
  const launched = await sling({ bead, formula: 'asks' })
  const molecule = await city.molecule(String(at(launched.body, 'molecule')))
  assert.deepEqual(
    [at(launched.body, 'outcome'), molecule.bead_id, molecule.rig, molecule.target, molecule.vars],
    ['launched', bead, 'shop', 'worker', { what: 'the shop' }],
  )
  assertProblem(await sling({ bead, target: 'worker' }), 'molecule-live')
  const replaced = await sling({ bead, formula: 'asks', replace: true })
  assert.equal(at(replaced.body, 'outcome'), 'launched', replaced.text)
  assert.equal((await city.molecule(molecule.id)).status, 'canceled')
  const own = await sling({ text: 'carefully', target: 'careful' })
  assert.equal(at(own.body, 'outcome'), 'launched', own.text)
  assert.equal(at((await sling({ text: 'quickly', target: 'careful', no_formula: true })).body, 'outcome'), 'routed')
  const alone = await sling({ formula: 'asks', target: 'worker', vars: { what: 'nothing' } })
  assert.deepEqual([at(alone.body, 'outcome'), asMap(alone.body).bead], ['launched', undefined])
})

test('of a convoy each open member is given away; what somebody has stays, and is told of', async () => {
  const city = await slingCity('convoy')
  const [free, held, closed] = [await city.bead('free'), await city.bead('held'), await city.bead('closed')]
  await city.city.post(`/beads/${held}/claim`, { assignee: 'ann' })
  await city.close(closed)
  const convoy = String(
    at((await city.city.post('/convoys', { title: 'batch', items: [free, held, closed] })).body, 'id'),
  )
  const slung = await city.city.post('/sling', { bead: convoy, target: 'worker' })
  assert.deepEqual(
    [at(slung.body, 'outcome'), at(slung.body, 'children')],
    ['routed', [{ bead: free, outcome: 'routed' }]],
    slung.text,
  )
  assert.match(JSON.stringify(at(slung.body, 'warnings')), /member_held/)
  const all = await city.city.post('/sling', { bead: convoy, formula: 'asks', target: 'worker' })
  const { bead_id } = await city.molecule(String(at(all.body, 'molecule')))
  assert.equal(bead_id, convoy)
})

test('where each member of a convoy would be a molecule, a convoy is the smaller: others wait for that write', async () => {
  const city = await slingCity('many')
  const titles = Array.from({ length: 101 }, (_, at) => ({ title: `one ${at}` }))
  const nodes = titles.map((one, n) => ({ key: String(n), ...one }))
  const [first = '', ...items] = Object.values(
    asMap(at((await city.city.post('/beads/batch', { nodes })).body, 'ids')),
  ).map(String)
  const convoy = String(at((await city.city.post('/convoys', { title: 'all', items: [first, ...items] })).body, 'id'))
  const refused = await city.city.post('/sling', { bead: convoy, target: 'careful' })
  assertProblem(refused, 'conflict-wrong-state')
  assert.match(refused.text, /more than 100 open members.*`no_formula`/)
  assert.equal(at((await city.city.get('/molecules?limit=1')).body, 'total'), 0)
  await city.close(first)
  const slung = await city.city.post('/sling', { bead: convoy, target: 'careful' })
  assert.equal(slung.status, 200, slung.text)
  assert.equal(at((await city.city.get('/molecules?limit=1')).body, 'total'), 100)
})
