/** Molecules over HTTP: started, read, cancelled, retried, deleted; what may be done with their beads. */
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

const TWO = `title = "Two of {{ part }}"
[vars]
part = "it"
[[steps]]
id = "first"
title = "First {{ part }}"
output = ["verdict"]
[[steps]]
id = "second"
title = "Second"
needs = ["first"]
`
const GATED = `title = "Asks"
[[steps]]
id = "ask"
title = "Go on?"
gate = { human = true }
`

test('a molecule runs as its formula says, and each part of it can be read', async () => {
  const city = await MoleculeCity.start(supervisor, 'runs', { two: TWO })
  const started = await city.launch('two', { vars: { part: 'a' }, title: 'Mine' })
  assert.deepEqual(
    [started.title, started.status, started.formula, started.formula_changed, started.vars, started.progress.total],
    ['Mine', 'pending', 'two', false, { part: 'a' }, 2],
  )
  const first = await city.step(started.id, 'first')
  assert.deepEqual([first.title, first.status, first.attempt, first.max_attempts], ['First a', 'ready', 1, 1])
  assert.match(first.reason ?? '', /waits for somebody to claim/)
  const second = await city.step(started.id, 'second')
  assert.deepEqual([second.status, second.reason, second.needs], ['pending', 'waits for first', ['first']])

  await city.finish(started.id, 'first', { output: { verdict: 'clean' } })
  await city.finish(started.id, 'second')
  const done = await city.is(started.id, 'completed')
  assert.deepEqual([done.progress.completed, done.progress.total, done.failure], [2, 2, undefined])
  const after = await city.step(started.id, 'first')
  assert.deepEqual(
    [after.output, after.attempts.length, after.attempts[0]?.status],
    [{ verdict: 'clean' }, 1, 'completed'],
  )
  const events = await city.city.events('molecule.*', 'execution.*')
  assert.equal(events.filter(({ type }) => type === 'molecule.resolved').length, 1)
  assert.ok(events.every(({ subject }) => subject === started.id))
  const { body } = await city.city.get(`/molecules/${started.id}/graph`)
  assert.deepEqual(at(body, 'edges'), [{ from: 'first', to: 'second' }])
})

test('the list has exact counts, filters that may be said several times, and pages', async () => {
  const city = await MoleculeCity.start(supervisor, 'lists', { two: TWO, gated: GATED })
  const bead = await city.bead('about')
  const about = await city.launch('gated', { bead })
  const ids = [about.id]
  for (const formula of ['two', 'two', 'gated']) ids.push((await city.launch(formula)).id)
  await city.city.post(`/molecules/${ids[1]}/cancel`, {})
  const list = async (query: string) => {
    const { body } = await city.city.get(`/molecules${query}`)
    const items = at(body, 'items')
    assert.ok(Array.isArray(items), JSON.stringify(body))
    return {
      ids: items.map((item) => ids.indexOf(String(at(item, 'id')))),
      total: at(body, 'total'),
      counts: at(body, 'status_counts'),
      next: asMap(body).next_cursor,
    }
  }
  const all = await list('')
  assert.deepEqual([all.ids, all.total], [[3, 2, 1, 0], 4])
  assert.deepEqual(all.counts, { pending: 1, active: 0, waiting: 2, completed: 0, failed: 0, canceled: 1 })
  assert.deepEqual((await list('?formula=two&status=canceled&status=pending')).ids, [2, 1])
  const two = await list('?formula=two&status=canceled')
  assert.deepEqual(
    [two.ids, two.total, two.counts],
    [[1], 1, { pending: 1, active: 0, waiting: 0, completed: 0, failed: 0, canceled: 1 }],
  )
  assert.deepEqual((await list(`?bead=${bead}&bead=al-none`)).ids, [0])
  assert.deepEqual((await list('?order=none')).ids, [])
  const page = await list('?limit=3')
  assert.deepEqual(page.ids, [3, 2, 1])
  assert.deepEqual((await list(`?limit=3&cursor=${String(page.next)}`)).ids, [0])
  assertProblem(await city.city.get('/molecules?status=over'), 'validation-failed')
  assertProblem(await city.city.get('/molecules?cursor=nothing'), 'invalid-cursor')
})

test('a start names what is wrong with it: the formula, each variable, the rig, the bead', async () => {
  const city = await MoleculeCity.start(supervisor, 'wrong', {
    two: TWO,
    typed: `title = "T"\n[vars]\nrounds = 2\n[vars.tag]\nrequired = true\npattern = 'v\\d+'\n[[steps]]\nid = "a"\ntitle = "A"\n`,
    base: `title = "Nothing to do"\n`,
  })
  city.city.write('formulas/broken.toml', 'formula = "broken"\n[[steps]]\nid = "a"\nnedds = ["b"]\n')
  await eventually('the broken one is seen', async () =>
    (await city.city.get('/formulas/broken')).status === 200 ? true : undefined,
  )
  const start = (body: object) => city.city.post('/molecules', body)
  const unknown = await start({ formula: 'tow' })
  assertProblem(unknown, 'formula-not-found')
  assert.match(String(at(unknown.body, 'detail')), /did you mean two/)
  const invalid = await start({ formula: 'broken' })
  assertProblem(invalid, 'formula-invalid')
  assert.ok(Array.isArray(at(invalid.body, 'issues')), invalid.text)
  assertProblem(await start({ formula: 'base' }), 'validation-failed')
  const vars = await start({ formula: 'typed', vars: { rounds: 'two', tag: '1', more: true } })
  assertProblem(vars, 'validation-failed')
  const errors = at(vars.body, 'errors')
  assert.ok(Array.isArray(errors))
  assert.deepEqual(errors.map((error) => at(error, 'location')).sort(), [
    'body.vars.more',
    'body.vars.rounds',
    'body.vars.tag',
  ])
  assertProblem(await start({ formula: 'two', rig: 'nowhere' }), 'rig-not-found')
  assertProblem(await start({ formula: 'two', bead: 'al-none' }), 'bead-not-found')
  assertProblem(await start({ formula: 'two', keep: '99999999999d' }), 'validation-failed')
  assertProblem(await city.city.get('/molecules/al-none'), 'molecule-not-found')
  const { id } = await city.launch('two')
  for (const path of ['none', 'first.1', '1', 'first.'])
    assertProblem(await city.city.get(`/molecules/${id}/steps/${path}`), 'molecule-step-not-found')
  assertProblem(await city.city.get(`/molecules/${id}/graph?expand=none`), 'molecule-step-not-found')
})

test('a dry run checks everything and leaves nothing; a key starts one', async () => {
  const city = await MoleculeCity.start(supervisor, 'dry', { two: TWO })
  const bead = await city.bead('about')
  const before = await city.readBead(bead)
  const dry = await city.city.post('/molecules', { formula: 'two', bead, dry_run: true })
  assert.equal(dry.status, 200, dry.text)
  assert.deepEqual([at(dry.body, 'dry_run'), at(dry.body, 'title'), asMap(dry.body).id], [true, 'Two of it', undefined])
  // One that would end at once says no more than its schema has.
  await city.formula('nothing', '[[steps]]\nid = "none"\ntitle = "None"\ncondition = "false"\n')
  const none = await city.city.post('/molecules', { formula: 'nothing', keep: '1h', dry_run: true })
  assert.deepEqual([none.status, asMap(none.body).closed_at, asMap(none.body).expires_at], [200, undefined, undefined])
  assert.deepEqual(await city.readBead(bead), before)
  assert.equal(at((await city.city.get('/molecules')).body, 'total'), 0)
  const headers = { 'idempotency-key': 'once' }
  const one = await city.city.post('/molecules', { formula: 'two', bead }, { headers })
  const again = await city.city.post('/molecules', { formula: 'two', bead }, { headers })
  assert.deepEqual([one.status, again.status, at(again.body, 'id')], [201, 201, at(one.body, 'id')])
  assert.equal(at((await city.city.get('/molecules')).body, 'total'), 1)
})

test('a bead has one live molecule, waits for it, and cannot be taken away from it', async () => {
  const city = await MoleculeCity.start(supervisor, 'attached', { gated: GATED })
  const bead = await city.bead('about')
  await city.city.post(`/beads/${bead}/route`, { target: 'worker' })
  const { id } = await city.launch('gated', { bead })
  const held = await city.readBead(bead)
  assert.deepEqual([held.is_blocked, held.routed_to], [true, undefined])
  const second = await city.city.post('/molecules', { formula: 'gated', bead })
  assertProblem(second, 'molecule-live')
  assert.match(String(at(second.body, 'detail')), new RegExp(id))
  const { base, api } = city.city
  assertProblem(await api.call('DELETE', `${base}/beads/${bead}`), 'conflict-wrong-state')
  assertProblem(await api.call('DELETE', `${base}/beads/${bead}/deps/${id}`), 'conflict-wrong-state')
  const replaced = await city.launch('gated', { bead, replace: true })
  assert.equal((await city.molecule(id)).status, 'canceled')
  await city.city.post(`/beads/${(await city.step(replaced.id, 'ask')).bead_id}/close`, { outcome: 'pass' })
  await city.is(replaced.id, 'completed')
  assert.deepEqual([(await city.readBead(bead)).status, (await city.readBead(bead)).is_blocked], ['closed', false])
  assertProblem(await city.city.post('/molecules', { formula: 'gated', bead }), 'conflict-wrong-state')
})

test('closing the bead of a step: declared outputs, repeated, contradicted, lost', async () => {
  const city = await MoleculeCity.start(supervisor, 'closing', { two: TWO, gated: GATED })
  const { id } = await city.launch('two')
  const bead = await city.beadOf(id, 'first')
  const missing = await city.close(bead, { outcome: 'pass', output: { other: 1 } })
  assertProblem(missing, 'validation-failed')
  assert.match(missing.text, /body\.output\.verdict/)
  assert.equal((await city.readBead(bead)).status, 'open')
  await city.city.post(`/beads/${bead}/claim`, { assignee: 'ann', session_id: 's-1' })
  assertProblem(await city.close(bead, { output: { verdict: 1 }, session_id: 's-2' }), 'conflict-claimed')
  await city.city.post(`/beads/${bead}/release`, {})
  assertProblem(await city.close(bead, { output: { verdict: 1 }, session_id: 's-1' }), 'conflict-claimed')
  const big = { verdict: 'x'.repeat(200_000) }
  assert.equal((await city.close(bead, { output: big })).status, 200)
  assert.equal((await city.close(bead, { outcome: 'pass' })).status, 200)
  assert.equal((await city.close(bead)).status, 200)
  const contradicted = await city.close(bead, { outcome: 'fail' })
  assertProblem(contradicted, 'conflict-wrong-state')
  assert.doesNotMatch(contradicted.text, /reopen/, 'which a step cannot be')
  assert.deepEqual((await city.stepIs(id, 'first', 'completed')).output, big)
  assertProblem(await city.close(await city.beadOf(id, 'second'), { output: 'x'.repeat(262_144) }), 'validation-failed')

  const gated = await city.launch('gated')
  const gate = (await city.stepIs(gated.id, 'ask', 'waiting')).bead_id ?? ''
  assertProblem(await city.close(gate), 'validation-failed')
  assert.equal((await city.close(gate, { outcome: 'fail', reason: 'no' })).status, 200)
  await city.is(gated.id, 'failed')
})

test('beads of steps and roots are moved by their molecule alone, and refusals say how', async () => {
  const city = await MoleculeCity.start(supervisor, 'guards', { two: TWO })
  const subject = await city.bead('what it is about')
  const { id } = await city.launch('two', { bead: subject })
  const bead = await city.beadOf(id, 'first')
  const other = await city.bead('other')
  const { base, api } = city.city
  const refused = async (method: string, path: string, body: unknown, way: RegExp) => {
    const answer = await api.call(method, `${base}${path}`, body === undefined ? {} : { body })
    assertProblem(answer, 'conflict-wrong-state')
    assert.match(String(at(answer.body, 'detail')), way, `${method} ${path}`)
  }
  await refused('PATCH', `/beads/${bead}`, { status: 'closed' }, /beads\/.*\/close/)
  await refused('PATCH', `/beads/${bead}`, { status: 'in_progress' }, /claim/)
  await refused('PATCH', `/beads/${bead}`, { issue_type: 'bug' }, /type/)
  await refused('PATCH', `/beads/${bead}`, { parent: other }, /formula/)
  await refused('POST', `/beads/${bead}/deps`, { depends_on_id: other }, /formula/)
  await refused(
    'POST',
    '/beads/batch',
    { nodes: [{ key: 'a', title: 'A' }], edges: [{ from_id: bead, to_key: 'a' }] },
    /formula/,
  )
  await refused('DELETE', `/beads/${bead}`, undefined, new RegExp(`^conflict: ${bead} is a step .*DELETE /molecules`))
  await refused('DELETE', `/beads/${subject}`, undefined, new RegExp(`works on ${subject}: .*cancel`))
  await refused('DELETE', `/beads/${id}?cascade=true`, undefined, /DELETE \/molecules/)
  for (const path of ['close', 'reopen'])
    await refused('POST', `/beads/${id}/${path}`, path === 'close' ? {} : undefined, /molecules/)
  await refused('POST', `/beads/${id}/claim`, { assignee: 'ann' }, /steps/)
  await refused('POST', `/beads/${id}/release`, {}, /steps/)
  await refused('POST', `/beads/${id}/assign`, { assignee: 'ann' }, /steps/)
  await city.close(bead, { outcome: 'fail' })
  await city.is(id, 'failed')
  await refused('POST', `/beads/${bead}/reopen`, undefined, /retry/)
  await refused('PATCH', `/beads/${bead}`, { status: 'open' }, /retry/)

  const line = { id: bead, title: 'First', status: 'open', updated_at: '2099-01-01T00:00:00Z' }
  const bytes = `${JSON.stringify(line)}\n`
  const headers = { 'content-type': 'application/x-ndjson' }
  const imported = await api.call('POST', `${base}/beads/import`, { bytes, headers })
  assert.equal(at(imported.body, 'failed'), 1, imported.text)
  assert.match(imported.text, /is the step first of the molecule/)
  assert.equal((await city.readBead(bead)).status, 'closed')
})

test('close: a convoy that a live molecule is about is refused; with cancel the molecule ends first', async () => {
  const city = await MoleculeCity.start(supervisor, 'convoys', { two: TWO })
  const { body } = await city.city.post('/convoys', { title: 'batch' })
  const convoy = String(at(body, 'id'))
  const { id } = await city.launch('two', { bead: convoy })
  const refused = await city.city.post(`/convoys/${convoy}/close`, {})
  assertProblem(refused, 'molecule-live', new RegExp(`svcctl convoy close ${convoy} --cancel`))
  assert.equal((await city.readBead(convoy)).status, 'open')
  assert.equal((await city.city.post(`/convoys/${convoy}/close`, { cancel: true })).status, 200)
  await city.is(id, 'canceled')
  assert.equal((await city.readBead(convoy)).status, 'closed')
})

test('cancel ends it at once, a second one is refused; retry goes on with what failed; delete takes its beads', async () => {
  const city = await MoleculeCity.start(supervisor, 'ends', { two: TWO })
  const { base, api } = city.city
  const one = await city.launch('two')
  const bead = await city.beadOf(one.id, 'first')
  assertProblem(await api.call('DELETE', `${base}/molecules/${one.id}`), 'conflict-wrong-state')
  assertProblem(
    await api.call('POST', `${base}/molecules/${one.id}/cancel`, { body: {}, headers: { 'if-match': '"99"' } }),
    'precondition-failed',
  )
  const canceled = await city.city.post(`/molecules/${one.id}/cancel`, { reason: 'wrong tag' })
  assert.deepEqual([canceled.status, at(canceled.body, 'status')], [200, 'canceled'])
  assert.equal((await city.readBead(bead)).outcome, 'canceled')
  assertProblem(await city.city.post(`/molecules/${one.id}/cancel`, {}), 'conflict-wrong-state')
  assertProblem(await city.city.post(`/molecules/${one.id}/retry`), 'conflict-wrong-state')

  const two = await city.launch('two')
  await city.finish(two.id, 'first', { outcome: 'fail', failure_reason: 'no network' })
  const failed = await city.is(two.id, 'failed')
  assert.deepEqual([failed.failure?.step_id, failed.failure?.message], ['first', 'no network'])
  assert.deepEqual(await city.statuses(two.id), { first: 'failed', second: 'skipped' })
  assert.equal((await city.city.post(`/molecules/${two.id}/retry`)).status, 200)
  await city.finish(two.id, 'first', { output: { verdict: 1 } })
  await city.finish(two.id, 'second')
  await city.is(two.id, 'completed')
  const { attempts } = await city.step(two.id, 'first')
  assert.deepEqual(
    attempts.map(({ attempt, status }) => [attempt, status]),
    [
      [1, 'failed'],
      [2, 'completed'],
    ],
  )
  assert.equal((await city.city.events('molecule.resolved')).filter(({ subject }) => subject === two.id).length, 2)
  const deleted = await api.call('DELETE', `${base}/molecules/${two.id}`)
  assert.deepEqual([deleted.status, at(deleted.body, 'beads')], [200, 4], deleted.text)
  assertProblem(await city.city.get(`/molecules/${two.id}`), 'molecule-not-found')
  assertProblem(await city.city.get(`/beads/${two.id}`), 'bead-not-found')
})

test('steps come in the order of the formula, in pages, and what repeats folds in the graph', async () => {
  const city = await MoleculeCity.start(supervisor, 'many', {
    many: `title = "Many"\n[[steps]]\nid = "each"\ntitle = "Do {{ item }}"\nloop = { count = 3 }\n[[steps]]\nid = "last"\ntitle = "Last"\nneeds = ["each"]\n`,
  })
  const { id } = await city.launch('many')
  await city.finish(id, 'each.1')
  await city.stepIs(id, 'each.2', 'ready')
  assert.deepEqual(Object.keys(await city.statuses(id)), ['each', 'each.1', 'each.2', 'each.3', 'last'])
  assert.deepEqual(await city.statuses(id, '&status=completed'), { 'each.1': 'completed' })
  const first = await city.city.get(`/molecules/${id}/steps?limit=2`)
  const next = await city.city.get(`/molecules/${id}/steps?limit=9&cursor=${String(at(first.body, 'next_cursor'))}`)
  const items = at(next.body, 'items')
  assert.ok(Array.isArray(items))
  assert.deepEqual(
    items.map((item) => at(item, 'id')),
    ['each.2', 'each.3', 'last'],
  )
  assert.deepEqual((await city.step(id, 'each.2')).item, 2)
  const nodes = async (query = '') => {
    const found = at((await city.city.get(`/molecules/${id}/graph${query}`)).body, 'nodes')
    assert.ok(Array.isArray(found))
    return found.map((node) => [at(node, 'id'), at(node, 'kind'), asMap(node).repeat])
  }
  const statuses = { completed: 1, ready: 1, pending: 1 }
  assert.deepEqual(await nodes(), [
    ['each', 'loop', { count: 3, statuses }],
    ['last', 'work', undefined],
  ])
  assert.deepEqual(
    (await nodes('?expand=each')).map(([path]) => path),
    ['each', 'each.1', 'each.2', 'each.3', 'last'],
  )
})

test('pages of any size show each step once, in one order, of lists in lists and of attempts that are over', async () => {
  const deep = `title = "Deep"
[[steps]]
id = "each"
loop = { count = 2 }
retry = { max_attempts = 2, backoff = "1s" }
[[steps.children]]
id = "a"
title = "A"
[[steps.children]]
id = "b"
title = "B"
needs = ["a"]
[[steps]]
id = "all"
for_each = { in = "wide" }
title = "Wide"
[[steps]]
id = "last"
title = "Last"
needs = ["each"]
`
  const city = await MoleculeCity.start(supervisor, 'paged', {
    deep: deep.replace('[[steps]]', '[vars]\nwide = { type = "json", default = [] }\n[[steps]]'),
  })
  const { id } = await city.launch('deep', { vars: { wide: Array.from({ length: 250 }, (_, n) => n) } })
  await city.finish(id, 'each.1.a', { outcome: 'fail' })
  await eventually('the group begins anew', async () => {
    const { total } = asMap((await city.city.get(`/molecules/${id}/steps?superseded=true&limit=1`)).body)
    return Number(total) > 257 ? true : undefined
  })
  const paged = async (limit: number, query: string) => {
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await city.city.get(`/molecules/${id}/steps?limit=${limit}${query}${cursor}`)
      const { items, total, next_cursor: next } = asMap(body)
      assert.ok(Array.isArray(items) && items.length <= limit)
      seen.push(...items.map((item) => `${at(item, 'id')}${at(item, 'superseded') === true ? ' old' : ''}`))
      if (next === undefined) {
        assert.equal(seen.length, total)
        return seen
      }
      cursor = `&cursor=${String(next)}`
    }
  }
  for (const query of ['', '&superseded=true', '&status=ready', '&status=pending&status=active']) {
    const whole = await paged(1000, query)
    for (const limit of [1, 7, 100]) assert.deepEqual(await paged(limit, query), whole, `${limit} ${query}`)
  }
  const now = await paged(1000, '')
  assert.deepEqual(now.slice(0, 8), ['each', 'each.1', 'each.1.a', 'each.1.b', 'each.2', 'all', 'all.1', 'all.2'])
  assert.equal(now.at(-1), 'last')
})

const WAITING = `
[[steps]]
id = "first"
title = "First"
[[steps]]
id = "group"
needs = ["first"]
[[steps.children]]
id = "in"
title = "In"
[[steps]]
id = "rounds"
title = "Round {{ item }}"
loop = { count = 2 }
[[steps]]
id = "files"
title = "File {{ item }}"
for_each = { in = "list", max_parallel = 1 }
[[steps]]
id = "again"
title = "Again"
retry = { max_attempts = 2, backoff = "1h", max_backoff = "1h" }
[vars.list]
type = "json"
default = ["a", "b"]
`

test('a list of a rig that is not there is refused', async () => {
  const city = await MoleculeCity.start(supervisor, 'rigless')
  for (const list of ['/molecules', '/orders']) {
    const answer = await city.city.get(`${list}?rig=nope`)
    assertProblem(answer, 'rig-not-found', 'not_found: there is no rig nope')
  }
})

test('whatever waits says for what', async () => {
  const city = await MoleculeCity.start(supervisor, 'why', { why: WAITING })
  const { id } = await city.launch('why')
  await city.finish(id, 'again', { outcome: 'fail', reason: 'no luck\nat all' })
  await city.stepIs(id, 'again', 'waiting')
  const { body } = await city.city.get(`/molecules/${id}/steps?status=pending&status=waiting`)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  assert.deepEqual(Object.fromEntries(items.map((step) => [at(step, 'id'), at(step, 'reason')])), {
    group: 'waits for first',
    'group.in': 'waits for group to begin',
    'rounds.2': 'waits for rounds.1',
    'files.2': 'waits for its turn: at most 1 of files at once',
    again: 'waits for its next attempt: no luck',
  })
})

test('what a molecule warns of holds: until somebody is there, and while the step waits', async () => {
  const text = `target = "robot"\n[[steps]]\nid = "a"\ntitle = "A"\n`
  const city = await MoleculeCity.start(supervisor, 'warns', { lone: text })
  const { id, warnings } = await city.launch('lone')
  const codes = async () => (await city.molecule(id)).warnings.map(({ code }) => code)
  assert.deepEqual([warnings.map(({ code }) => code), await codes()], [['unknown_target'], ['unknown_target']])
  assert.match((await city.step(id, 'a')).reason ?? '', /^waits for robot to claim [a-z0-9-]+: nobody is called so$/)
  const other = await city.launch('lone')
  await city.finish(other.id, 'a')
  assert.deepEqual((await city.is(other.id, 'completed')).warnings, [])

  const agent = { name: 'robot', provider: 'claude', min_active_sessions: 0, max_active_sessions: 0 }
  assert.equal((await city.city.post('/agents', agent)).status, 201)
  assert.deepEqual(await codes(), [])
  assert.equal((await city.city.post('/agents/robot/suspend')).status, 200)
  await eventually('the step says that robot is suspended', async () => {
    const { reason = '' } = await city.step(id, 'a')
    return reason.endsWith(': the agent robot is suspended') ? reason : undefined
  })
})

const LARGE = `
title = "{{ text }}"
target = "robot"
[vars]
text = ""
none = ""
[[steps]]
id = "long"
title = "Long {{ text }}"
tags = ["{{ none }}", "kept"]
assignee = "{{ none }}"
[[steps]]
id = "blank"
title = "{{ none }}"
[[steps]]
id = "asked"
title = "{{ none }}"
gate = { human = true }
[[steps]]
id = "described"
title = "Described"
description = "{{ text }}{{ text }}{{ text }}"
[[steps]]
id = "tagged"
title = "Tagged"
tags = ["{{ text }}"]
`

test('what texts come to keeps the bounds of beads: titles are cut or are the id, what is too large fails its step', async () => {
  const city = await MoleculeCity.start(supervisor, 'large', { large: LARGE })
  const { id, title } = await city.launch('large', { vars: { text: '漢'.repeat(60_000) } })
  assert.equal(Array.from(title).length, 500)
  const long = await city.readBead(await city.beadOf(id, 'long'))
  assert.deepEqual(
    [Array.from(long.title).length, long.title.at(-1), long.labels, long.assignee, long.routed_to],
    [500, '…', ['kept'], undefined, 'robot'],
  )
  assert.equal((await city.readBead(await city.beadOf(id, 'blank'))).title, 'blank')
  assert.equal((await city.readBead(await city.beadOf(id, 'asked', 'waiting'))).title, 'asked')
  await city.stepIs(id, 'described', 'ready')
  const { failure } = await city.stepIs(id, 'tagged', 'failed')
  assert.deepEqual(
    [failure?.reason, failure?.message],
    ['template_error', 'it comes to 60000 characters: a tag has at most 256'],
  )
  const other = await city.launch('large', { vars: { text: 'x'.repeat(100_000) } })
  assert.match(
    (await city.stepIs(other.id, 'described', 'failed')).failure?.message ?? '',
    /^it comes to 300\d\d\d characters: a description has at most 262144$/,
  )
  const refused = await city.city.post('/molecules', { formula: 'large', vars: { text: 'x'.repeat(260_000) } })
  assertProblem(refused, 'payload-too-large', /^too_large: the variables take 260\d\d\d bytes as JSON: at most 253952$/)
})
