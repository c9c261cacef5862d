/** Formulas as files: seen, checked, written, deleted, over layers and by hand. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { at } from '../../support/document.ts'
import { formulaOf, putFormula, putOrder, simpleFormula, simpleOrder } from '../../support/document-city.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const changes = async (city: ConfigCity, type = 'formula.changed') =>
  (await city.events(type)).map(({ actor, payload }) => [actor, payload['change'], payload['name'], payload['rig']])

const source = (city: ConfigCity, name: string, query = '') => city.get(`/formulas/${name}/source${query}`)
const names = async (city: ConfigCity, query = '') => {
  const { body } = await city.get(`/formulas${query}`)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  return items.filter((item) => at(item, 'layer') !== 'pack').map((item) => String(at(item, 'name')))
}

test('a formula is written, read back byte for byte, replaced and deleted, and the log tells of each', async () => {
  const city = await createCity(supervisor, 'written')
  const text = `# Kept as it is.\n${simpleFormula('tidy', 'Tidy {{ part }}')}[vars]\npart = "the docs"\n`
  const created = await putFormula(city, 'tidy', text)
  assert.equal(created.status, 201, created.text)
  assert.equal(city.read('formulas/tidy.toml'), text)
  const read = await source(city, 'tidy')
  assert.equal(read.text, text)
  assert.equal(read.headers['content-type'], 'application/toml; charset=utf-8')
  assert.equal(read.headers.etag, created.headers.etag)

  const shown = await formulaOf(city, 'tidy')
  assert.deepEqual([shown.layer, shown.file, shown.valid, shown.startable], ['city', 'formulas/tidy.toml', true, true])
  assert.deepEqual(shown.vars, [{ name: 'part', type: 'string', default: 'the docs' }])
  assert.deepEqual(
    shown.graph.nodes.map(({ id, kind, title }) => [id, kind, title]),
    [['work', 'work', 'Tidy {{ part }}']],
  )
  assert.equal(at(shown.definition, 'formula'), 'tidy')
  const replaced = await putFormula(city, 'tidy', simpleFormula('tidy'))
  assert.equal(replaced.status, 200)
  assert.notEqual(replaced.headers.etag, created.headers.etag)
  assert.notEqual((await formulaOf(city, 'tidy')).hash, shown.hash)
  assert.equal((await putFormula(city, 'tidy', simpleFormula('tidy'))).status, 200, 'the same again changes nothing')

  const deleted = await city.api.call('DELETE', `${city.base}/formulas/tidy`)
  assert.deepEqual(deleted.body, { status: 'deleted', name: 'tidy', file: 'formulas/tidy.toml' })
  assertProblem(await city.get('/formulas/tidy'), 'formula-not-found')
  assert.deepEqual(await changes(city), [
    ['api', 'added', 'tidy', undefined],
    ['api', 'changed', 'tidy', undefined],
    ['api', 'removed', 'tidy', undefined],
  ])
  const reloaded = (await city.events('config.reloaded')).map(({ payload }) => at(payload['changed'], 'formulas'))
  assert.deepEqual(reloaded, [['tidy'], ['tidy'], ['tidy']])
})

test('values of variables of commands are in the file, and nowhere that readers look', async () => {
  const city = await createCity(supervisor, 'masked')
  const check = 'check = { exec = "true", env = { KEY = "hunter2", REF = "$ELSEWHERE" } }'
  const group = '[[steps]]\nid = "group"\n[[steps.children]]\nid = "inner"\ntitle = "In"'
  const text = `${simpleFormula('keyed')}${check}\n${group}\n${check}\n[vars]\nenv = "prod"\n`
  const created = await putFormula(city, 'keyed', text)
  assert.equal(created.status, 201, created.text)
  assert.match((await source(city, 'keyed')).text, /hunter2/)
  const shown = await formulaOf(city, 'keyed')
  assert.deepEqual(at(shown.definition, 'steps', 0, 'check', 'env'), { KEY: '***', REF: '$ELSEWHERE' })
  assert.equal(at(shown.definition, 'vars', 'env'), 'prod')
  city.write('formulas/broken.toml', `formula = "broken"\nwhat = 1\n[[steps]]\nid = "a"\ntitle = "A"\n${check}\n`)
  await eventually('the broken one is seen', async () =>
    (await city.get('/formulas/broken')).status === 200 ? true : undefined,
  )
  for (const told of [created, await city.get('/formulas/keyed'), await city.get('/formulas/broken')])
    assert.doesNotMatch(told.text, /hunter2/)
})

test('of two who write at once with the same tag one wins, and who expects a file that is not there is told', async () => {
  const city = await createCity(supervisor, 'races')
  const { headers } = await putFormula(city, 'race', simpleFormula('race'))
  const ifMatch = String(headers.etag)
  const both = await Promise.all(
    ['first', 'second'].map((title) => putFormula(city, 'race', simpleFormula('race', title), { ifMatch })),
  )
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 412])
  const winner = both.findIndex(({ status }) => status === 200) === 0 ? 'first' : 'second'
  assert.match(city.read('formulas/race.toml'), new RegExp(winner))
  assertProblem(await putFormula(city, 'none', simpleFormula('none'), { ifMatch }), 'precondition-failed')
  assertProblem(
    await city.api.call('DELETE', `${city.base}/formulas/race`, { headers: { 'if-match': ifMatch } }),
    'precondition-failed',
  )
  city.write('formulas/race.toml', simpleFormula('race', 'By hand'))
  const now = String(both.find(({ status }) => status === 200)?.headers.etag)
  assertProblem(await putFormula(city, 'race', simpleFormula('race', 'x'), { ifMatch: now }), 'precondition-failed')
})

test('a file that is not valid is refused with all that is wrong with it, as the check says it', async () => {
  const city = await createCity(supervisor, 'refused')
  const bad = 'formula = "bad"\ntitel = "x"\n[[steps]]\nid = "A B"\ntitle = "{{ nobody }}"\nneeds = ["none"]\n'
  const refused = await putFormula(city, 'bad', bad)
  const problem = assertProblem(refused, 'invalid-config')
  assert.match(problem.detail, /^invalid_config: formulas\/bad\.toml:\d+:\d+: /)
  const checked = await city.post('/formulas/validate', { source: bad, name: 'bad' })
  assert.equal(at(checked.body, 'valid'), false)
  assert.deepEqual(at(checked.body, 'issues'), problem.issues)
  assert.ok((problem.issues ?? []).length >= 4, JSON.stringify(problem.issues))
  assert.deepEqual(
    (problem.issues ?? []).filter(({ hint }) => hint?.includes('title') === true).map(({ line, key }) => [line, key]),
    [[2, 'titel']],
  )
  assertProblem(await city.get('/formulas/bad'), 'formula-not-found')
  assertProblem(await putFormula(city, 'other', simpleFormula('named')), 'invalid-config')
  const fine = await city.post('/formulas/validate', { source: simpleFormula('fine') })
  assert.deepEqual(fine.body, { valid: true, file: 'formulas/fine.toml', issues: [] })
  assertProblem(await putFormula(city, 'empty', ''), 'invalid-request')
  const binary = await city.api.call('PUT', `${city.base}/formulas/binary`, {
    bytes: Buffer.from([0xff, 0xfe, 0x00]),
    headers: { 'content-type': 'application/toml' },
  })
  assertProblem(binary, 'invalid-request')
  const json = await city.api.call('PUT', `${city.base}/formulas/json`, { body: { text: 'x' } })
  assertProblem(json, 'unsupported-media-type')
})

test('no name leads out of the directory, and what no file may be called is refused', async () => {
  const city = await createCity(supervisor, 'names')
  for (const name of [
    '..',
    '../city',
    '..\\city',
    'a/b',
    '.hidden',
    '-x',
    'x-',
    'validate',
    'ä',
    'x'.repeat(65),
    'a.b',
    'a\0b',
  ])
    assertProblem(await putFormula(city, name, simpleFormula('x')), 'validation-failed')
  for (const name of ['..%2Fcity', '%2e%2e', 'x%00', '%F0%9F%92%A9', '__proto__', 'constructor'])
    assert.equal((await city.get(`/formulas/${name}`)).status >= 400, true, name)
  assert.deepEqual(await names(city), [])
  city.write('agents/worker/agent.toml', 'description = "stays"\n')
  city.write('orders/kept.toml', simpleOrder())
  const elsewhere = [
    '../city',
    '../agents/worker/agent',
    '../orders/kept',
    'x/../../orders/kept',
    '../pack',
    '..',
    'a\0',
  ]
  for (const name of elsewhere.map(encodeURIComponent)) {
    assertProblem(await city.api.call('DELETE', `${city.base}/formulas/${name}`), 'formula-not-found')
    assertProblem(await city.api.call('DELETE', `${city.base}/orders/x${name}`), 'order-not-found')
  }
  for (const file of ['city.toml', 'agents/worker/agent.toml', 'orders/kept.toml']) assert.notEqual(city.read(file), '')
  mkdirSync(join(supervisor.work, 'elsewhere'))
  symlinkSync(join(supervisor.work, 'elsewhere'), join(city.dir, 'formulas-out'))
  symlinkSync(join(city.dir, 'city.toml'), join(city.dir, 'formulas', 'linked.toml'))
  await eventually('the link is seen', async () => (await names(city)).includes('linked') || undefined)
  assert.equal((await formulaOf(city, 'linked')).valid, false)
})

test('a file that is edited by hand is seen and told of, and one that is not valid stands in nobody’s way', async () => {
  const city = await createCity(supervisor, 'by-hand')
  city.write('formulas/a.toml', simpleFormula('a'))
  city.write('formulas/broken.toml', 'formula = "broken"\n[[steps\n')
  city.write('formulas/z.toml', simpleFormula('z'))
  await eventually('three formulas', async () => (await names(city)).length === 3 || undefined)
  const broken = await formulaOf(city, 'broken')
  assert.deepEqual([broken.valid, broken.startable, broken.graph.nodes.length], [false, false, 0])
  assert.equal(broken.issues[0]?.file, 'formulas/broken.toml')
  assert.deepEqual(await names(city, '?valid=true'), ['a', 'z'])
  assert.deepEqual(await names(city, '?valid=false'), ['broken'])
  assert.equal((await source(city, 'broken')).text, 'formula = "broken"\n[[steps\n', 'what is broken can be read')
  assertProblem(await city.post('/formulas/broken/preview', {}), 'formula-invalid')
  await eventually('told of', async () => (await changes(city)).length === 3 || undefined)
  city.write('formulas/a.toml', simpleFormula('a', 'Otherwise'))
  await eventually(
    'the edit is told of',
    async () =>
      (await changes(city)).some(([who, what, name]) => who === 'supervisor' && what === 'changed' && name === 'a') ||
      undefined,
  )
  assert.equal((await formulaOf(city, 'a')).graph.nodes[0]?.title, 'Otherwise')
  // While the configuration is refused, formulas are what their files say.
  city.write('city.toml', 'nonsense = \n')
  await eventually('refused', async () => (await city.config()).last_error)
  city.write('formulas/a.toml', simpleFormula('a', 'Anyway'))
  await eventually(
    'seen all the same',
    async () => (await formulaOf(city, 'a')).graph.nodes[0]?.title === 'Anyway' || undefined,
  )
  const put = await putFormula(city, 'a', simpleFormula('a', 'Over HTTP'))
  assert.equal(put.status, 200, put.text)
  assert.match(String(put.headers['x-svc-config-rejected']), /city\.toml/)
  assert.equal((await formulaOf(city, 'a')).graph.nodes[0]?.title, 'Over HTTP')
})

test('a rig has formulas of its own, which take the place of the city’s there, also in what extends them', async () => {
  const city = await createCity(supervisor, 'layers')
  mkdirSync(join(city.dir, 'rigs/web/formulas'), { recursive: true })
  await city.api.call('POST', `${city.base}/rigs`, {
    body: { name: 'web', path: 'rigs/web', formulas_dir: 'rigs/web/formulas' },
  })
  await city.api.call('POST', `${city.base}/rigs`, { body: { name: 'plain', path: 'rigs/plain' } })
  const base = `formula = "base"\ntarget = "builders"\n[[steps]]\nid = "work"\ntitle = "City’s"\n`
  assert.equal((await putFormula(city, 'base', base)).status, 201)
  assert.equal((await putFormula(city, 'child', 'formula = "child"\nextends = ["base"]\n')).status, 201)
  const own = await putFormula(city, 'base', base.replace('City’s', 'Rig’s'), { query: '?rig=web' })
  assert.equal(own.status, 201, own.text)
  assert.equal(city.read('rigs/web/formulas/base.toml').includes('Rig’s'), true)
  const title = async (name: string, query = '') => (await formulaOf(city, name, query)).graph.nodes[0]?.title
  assert.equal(await title('child'), 'City’s')
  assert.equal(await title('child', '?rig=web'), 'Rig’s')
  assert.equal(await title('child', '?rig=plain'), 'City’s')
  const inRig = await formulaOf(city, 'base', '?rig=web')
  assert.deepEqual([inRig.rig, inRig.layer, inRig.shadows], ['web', 'rig', ['formulas/base.toml']])
  assert.equal((await formulaOf(city, 'child', '?rig=plain')).rig, undefined)
  assert.deepEqual(
    (await changes(city)).map(([, change, name, rig]) => [change, name, rig]),
    [
      ['added', 'base', undefined],
      ['added', 'child', undefined],
      ['added', 'base', 'web'],
      ['added', 'child', 'web'],
    ],
  )
  assertProblem(await formulaOfUnknownRig(city), 'rig-not-found')
  assertProblem(await putFormula(city, 'base', base, { query: '?rig=plain' }), 'conflict-config')
  // A step that the child needs is gone: it is told, and the child says why it is not valid.
  const breaking = await putFormula(
    city,
    'child2',
    `formula = "child2"\nextends = ["base"]\n[[steps]]\nid = "more"\ntitle = "x"\nneeds = ["work"]\n`,
  )
  assert.equal(breaking.status, 201, breaking.text)
  const renamed = await putFormula(city, 'base', base.replace('"work"', '"job"'))
  assert.deepEqual(at(renamed.body, 'breaks'), [{ name: 'child2' }])
  assert.equal((await formulaOf(city, 'child2')).valid, false)
  assert.equal((await formulaOf(city, 'child2', '?rig=web')).valid, true, 'the rig has its own')
  const removed = await city.api.call('DELETE', `${city.base}/formulas/base?rig=web`)
  assert.equal(removed.status, 200, removed.text)
  assert.equal((await formulaOf(city, 'child2', '?rig=web')).valid, false)
})

const formulaOfUnknownRig = (city: ConfigCity) => city.get('/formulas/base?rig=nowhere')

test('what others name is not deleted: a formula, an order, an agent', async () => {
  const city = await createCity(supervisor, 'named')
  for (const name of ['base', 'expanded', 'ordered', 'slung', 'free'])
    assert.equal((await putFormula(city, name, simpleFormula(name))).status, 201)
  const user = `formula = "user"\nextends = ["base"]\n[[steps]]\nid = "group"\nexpand = "expanded"\n`
  assert.equal((await putFormula(city, 'user', user)).status, 201)
  assert.equal((await putOrder(city, 'nightly', '[order]\nformula = "ordered"\ntrigger = "manual"\n')).status, 201)
  city.write('agents/mayor/agent.toml', 'provider = "shell"\ndefault_sling_formula = "slung"\n')
  await eventually(
    'the agent is there',
    async () => (await city.config()).agents.some(({ identity }) => identity === 'mayor') || undefined,
  )
  for (const [name, who] of [
    ['base', 'formula user'],
    ['expanded', 'formula user'],
    ['ordered', 'order nightly'],
    ['slung', 'agent mayor'],
  ] as const) {
    const refused = assertProblem(await city.api.call('DELETE', `${city.base}/formulas/${name}`), 'still-referenced')
    assert.ok(refused.detail.includes(who), refused.detail)
    assert.equal((await formulaOf(city, name)).used_by.length, 1, name)
  }
  assert.equal((await city.api.call('DELETE', `${city.base}/formulas/free`)).status, 200)
  const unknown = '[order]\nformula = "ordred"\ntrigger = "manual"\n'
  const { issues = [] } = assertProblem(await putOrder(city, 'lost', unknown), 'invalid-config')
  assert.deepEqual(
    issues.map(({ file, line, key, hint }) => [file, line, key, hint]),
    [['orders/lost.toml', 2, 'order.formula', 'did you mean `ordered`?']],
  )
})

test('what a pack brings is not written over: only a file of the city, asked for, takes its place', async () => {
  const city = await createCity(supervisor, 'packs')
  city.write('review/pack.toml', '[pack]\nname = "review"\nschema = 2\n')
  city.write('review/formulas/look.toml', simpleFormula('look', 'Pack’s'))
  city.write('review/orders/often.toml', simpleOrder())
  const added = await city.post('/packs', { source: './review', name: 'review' })
  assert.equal(added.status, 202, added.text)
  await city.outcome(added)
  await eventually(
    'the pack’s formula is there',
    async () => (await city.get('/formulas/look')).status === 200 || undefined,
  )
  const packed = await formulaOf(city, 'look')
  assert.deepEqual([packed.layer, packed.pack], ['pack', 'review'])
  assertProblem(await putFormula(city, 'look', simpleFormula('look')), 'pack-derived')
  assertProblem(await city.api.call('DELETE', `${city.base}/formulas/look`), 'pack-derived')
  assertProblem(await putOrder(city, 'often', simpleOrder()), 'pack-derived')
  assertProblem(await city.api.call('DELETE', `${city.base}/orders/often`), 'pack-derived')
  const shadow = await putFormula(city, 'look', simpleFormula('look', 'City’s'), { query: '?shadow=true' })
  assert.equal(shadow.status, 201, shadow.text)
  const mine = await formulaOf(city, 'look')
  assert.deepEqual([mine.layer, mine.graph.nodes[0]?.title, mine.shadows.length], ['city', 'City’s', 1])
  assert.equal((await city.api.call('DELETE', `${city.base}/formulas/look`)).status, 200)
  assert.equal((await formulaOf(city, 'look')).graph.nodes[0]?.title, 'Pack’s')
  assert.equal(city.read('review/formulas/look.toml'), simpleFormula('look', 'Pack’s'))
})

test('files of orders are written, checked, read and deleted in the same way', async () => {
  const city = await createCity(supervisor, 'orders')
  const created = await putOrder(city, 'nightly', simpleOrder())
  assert.equal(created.status, 201, created.text)
  assert.deepEqual([at(created.body, 'file'), at(created.body, 'valid')], ['orders/nightly.toml', true])
  const read = await city.get('/orders/nightly/source')
  assert.equal(read.text, simpleOrder())
  assert.equal(read.headers.etag, created.headers.etag)
  const bad = '[order]\nexec = "true"\nformula = "x"\ntriger = "cron"\n'
  const problem = assertProblem(await putOrder(city, 'bad', bad), 'invalid-config')
  const checked = await city.post('/orders/validate', { source: bad, name: 'bad' })
  assert.deepEqual(at(checked.body, 'issues'), problem.issues)
  for (const name of ['validate', 'history', '..%2fx', 'a.b'])
    assertProblem(await putOrder(city, name, simpleOrder()), 'validation-failed')
  assert.equal((await city.api.call('DELETE', `${city.base}/orders/nightly`)).status, 200)
  assertProblem(await city.get('/orders/nightly/source'), 'order-not-found')
  assertProblem(await city.get('/orders/triage-stal'), 'order-not-found', /: did you mean triage-stale\?$/)
  assertProblem(await city.get('/formulas/verified-tsk'), 'formula-not-found', /: did you mean verified-task\?$/)
  assertProblem(await city.get('/orders/nightly:rig:web/source'), 'rig-not-found')
  assertProblem(await city.api.call('DELETE', `${city.base}/orders/nightly`), 'order-not-found')
  city.write('orders/hand.toml', simpleOrder())
  await eventually('told of', async () => (await changes(city, 'order.changed')).length === 3 || undefined)
  assert.deepEqual(await changes(city, 'order.changed'), [
    ['api', 'added', 'nightly', undefined],
    ['api', 'removed', 'nightly', undefined],
    ['supervisor', 'added', 'hand', undefined],
  ])
})

test('lists are paged, filtered, and wait for news', async () => {
  const city = await createCity(supervisor, 'lists')
  for (const name of ['a', 'b', 'c']) await putFormula(city, name, simpleFormula(name))
  await putFormula(city, 'parent', 'formula = "parent"\n[vars]\nx = 1\n')
  assert.deepEqual(await names(city, '?startable=false'), ['parent'])
  const first = await city.get('/formulas?layer=city&limit=2')
  assert.deepEqual(
    [at(first.body, 'total'), at(first.body, 'items', 0, 'name'), at(first.body, 'items', 1, 'name')],
    [4, 'a', 'b'],
  )
  const second = await city.get(`/formulas?layer=city&limit=2&cursor=${at(first.body, 'next_cursor')}`)
  assert.deepEqual(
    [at(second.body, 'items', 0, 'name'), JSON.stringify(second.body).includes('next_cursor')],
    ['c', false],
  )
  assertProblem(await city.get('/formulas?cursor=v1:xyz'), 'invalid-cursor')
  const waiting = city.get(`/formulas?index=${first.headers['x-svc-index']}&wait=20s`)
  await putFormula(city, 'd', simpleFormula('d'))
  assert.ok(JSON.stringify((await waiting).body).includes('"d"'))
})
