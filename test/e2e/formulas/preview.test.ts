/** Previews: what is known before anything runs, and on the command line as lists, graphs and charts. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli as run } from '../../support/cli.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { at } from '../../support/document.ts'
import { putFormula, simpleFormula, simpleOrder } from '../../support/document-city.ts'
import { assertProblem } from '../../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
let city: ConfigCity
before(async () => {
  supervisor = await startSupervisor()
  city = await createCity(supervisor, 'previews')
})
after(() => supervisor[Symbol.asyncDispose]())

const RELEASE = `formula = "release"
title = "Release {{ tag }}"
description = "Of {{ city.name }}, for {{ bead.title }}"
target = "builders"
timeout = "2d"
[vars]
rounds = 2
urgent = false
notes = ""
[vars.tag]
required = true
pattern = 'v\\d+\\.\\d+\\.\\d+'
[vars.parts]
type = "json"
default = ["a", "b"]
[[steps]]
id = "plan"
title = "Plan {{ tag }}"
output = ["modules"]
[[steps]]
id = "each"
needs = ["plan"]
for_each = { in = "parts" }
expand = "part"
with = { name = "{{ item }}", tag = "{{ tag }}" }
[[steps]]
id = "port"
title = "Port {{ item }}"
needs = ["plan"]
for_each = { in = "steps.plan.output.modules" }
[[steps]]
id = "polish"
needs = ["each", "port"]
loop = { count = "rounds" }
[[steps.children]]
id = "review"
title = "Review {{ tag }}"
target = "reviewers"
output = ["verdict"]
[[steps.children]]
id = "apply"
title = "Apply"
needs = ["review"]
condition = 'steps.review.output.verdict != "clean"'
[[steps]]
id = "hurry"
title = "Hurry"
condition = "urgent"
needs = ["polish"]
[[steps]]
id = "hurried"
needs = ["hurry"]
condition = "urgent"
[[steps.children]]
id = "inside"
title = "Inside"
[[steps]]
id = "members"
title = "See {{ item.title }}"
for_each = { in = "bead.members" }
[[steps]]
id = "approve"
title = "Ship {{ tag }}?"
needs = ["hurry"]
gate = { human = true }
`
const PART = `formula = "part"
[vars]
tag = ""
[vars.name]
required = true
[[steps]]
id = "do"
title = "Do {{ name }} of {{ tag }}"
`

const preview = (body: unknown, name = 'release') => city.post(`/formulas/${name}/preview`, body)
const steps = (body: unknown) => {
  const found = at(body, 'steps')
  assert.ok(Array.isArray(found))
  return new Map(found.map((step) => [String(at(step, 'id')), step]))
}

test('a preview renders what is known, says what is included, and shows no templates in titles', async () => {
  assert.equal((await putFormula(city, 'part', PART)).status, 201)
  assert.equal((await putFormula(city, 'release', RELEASE)).status, 201)
  const { status, body, text } = await preview({ vars: { tag: 'v1.2.3' } })
  assert.equal(status, 200, text)
  assert.equal(at(body, 'title'), 'Release v1.2.3')
  assert.equal(at(body, 'description'), 'Of previews, for ', 'it is about no bead')
  assert.deepEqual(at(body, 'vars'), { tag: 'v1.2.3', rounds: 2, urgent: false, notes: '', parts: ['a', 'b'] })
  const found = steps(body)
  const see = (id: string, ...fields: readonly string[]) =>
    fields.map((field) => (found.get(id) as Record<string, unknown> | undefined)?.[field])
  assert.deepEqual(see('plan', 'title', 'target', 'included', 'rendered'), ['Plan v1.2.3', 'builders', 'yes', true])
  assert.deepEqual(see('port', 'title', 'rendered'), ['Port …', false])
  assert.deepEqual(see('each.do', 'title', 'rendered'), ['Do … of …', false], 'the item is open')
  assert.deepEqual(see('polish.review', 'title', 'target'), ['Review v1.2.3', 'reviewers'])
  assert.deepEqual(see('polish.apply', 'included'), ['unknown'])
  assert.deepEqual(see('hurry', 'included'), ['no'])
  assert.deepEqual(see('hurried.inside', 'included'), ['no'], 'what is in a group that is left out')
  const nodes = at(body, 'graph', 'nodes')
  assert.ok(Array.isArray(nodes))
  const repeats = new Map(nodes.map((node) => [String(at(node, 'id')), (node as Record<string, unknown>)['repeat']]))
  assert.deepEqual(
    ['each', 'port', 'polish', 'members', 'plan'].map((id) => repeats.get(id)),
    [{ count: 2 }, {}, { count: 2 }, {}, undefined],
  )
  const edges = at(body, 'graph', 'edges')
  assert.ok(Array.isArray(edges))
  assert.ok(edges.some((edge) => at(edge, 'from') === 'polish.review' && at(edge, 'to') === 'polish.apply'))
  const urgent = await preview({ vars: { tag: 'v1.2.3', urgent: true } })
  assert.equal(at(steps(urgent.body).get('hurried.inside'), 'included'), 'yes')
})

test('a preview knows the bead, its members, the rig and what the rig says of variables', async () => {
  mkdirSync(join(city.dir, 'shop'), { recursive: true })
  const made = await city.api.call('POST', `${city.base}/rigs`, {
    body: { name: 'shop', path: 'shop', formula_vars: { rounds: 0, elsewhere: 'x' } },
  })
  assert.equal(made.status, 201, made.text)
  const bead = await city.post('/beads', { title: 'The release' })
  const id = String(at(bead.body, 'id'))
  for (const title of ['one', 'two']) await city.post('/beads', { title, parent: id })
  const { body, text } = await preview({ vars: { tag: 'v1.2.3' }, bead: id, rig: 'shop', target: 'people' })
  assert.equal(at(body, 'description'), `Of previews, for The release`, text)
  assert.equal(at(body, 'target'), 'people')
  assert.equal(at(body, 'vars', 'rounds'), 0)
  const found = steps(body)
  assert.equal(at(found.get('plan'), 'target'), 'people')
  assert.match(JSON.stringify(at(body, 'warnings')), /"unknown_target","message":"nobody is called people: step plan/)
  assert.equal(at(found.get('polish.review'), 'included'), 'no', 'no round, no review')
  const nodes = at(body, 'graph', 'nodes')
  assert.ok(Array.isArray(nodes))
  assert.deepEqual(
    at(
      nodes.find((node) => at(node, 'id') === 'members'),
      'repeat',
    ),
    { count: 2 },
  )
})

test('wrong values are refused where they stand, all of them', async () => {
  const problem = assertProblem(
    await preview({ vars: { tag: 'now', rounds: 'two', tga: 1, urgent: 'yes' } }),
    'validation-failed',
  )
  assert.deepEqual((problem.errors ?? []).map(({ location }) => location).toSorted(), [
    'body.vars.rounds',
    'body.vars.tag',
    'body.vars.tga',
    'body.vars.urgent',
  ])
  const { errors } = assertProblem(await preview({}), 'validation-failed')
  assert.deepEqual(
    (errors ?? []).map(({ location }) => location),
    ['body.vars.tag'],
  )
  assertProblem(await preview({ vars: { tag: 'v1.2.3' }, bead: 'no-such' }), 'bead-not-found')
  assertProblem(await preview({ vars: { tag: 'v1.2.3' }, rig: 'none' }), 'rig-not-found')
  for (const vars of [{ __proto__x: 1 }, { constructor: 'x' }, { tag: '{{ 7 }}' }])
    assertProblem(await preview({ vars }), 'validation-failed')
})

test('values are data: what looks like a template in them is shown as it is', async () => {
  const text = 'formula = "echo"\n[vars]\nsaid = ""\n[[steps]]\nid = "say"\ntitle = "Say: {{ said }}"\n'
  assert.equal((await putFormula(city, 'echo', text)).status, 201)
  for (const said of [
    '{{ city.path }}',
    '{% render "x" %}',
    '\u202e\u0007',
    '"]; DROP',
    '{{',
    '<b>&amp;',
    'x'.repeat(2_000),
  ]) {
    const { body } = await preview({ vars: { said } }, 'echo')
    assert.equal(at(steps(body).get('say'), 'title'), `Say: ${said}`)
  }
})

test('the command line lists, writes, checks and draws', async () => {
  const cli = (...words: readonly string[]) =>
    run([...words, '--city', 'previews', '--api', supervisor.url], { cwd: supervisor.work })
  const graph = await cli('formula', 'preview', 'release', '--var', 'tag=v1.2.3', '--graph')
  assert.equal(graph.code, 0, graph.err)
  assert.deepEqual(graph.out.trimEnd().split('\n').slice(0, 7), [
    '● plan  Plan v1.2.3',
    '● each [for_each, 2 items]  ← plan',
    '└─ ● do  Do … of …',
    '● port [for_each]  Port …  ← plan',
    '● polish [loop, 2 items]  ← each, port',
    '├─ ● review  Review v1.2.3',
    '└─ ? apply  Apply  ← review',
  ])
  const chart = await cli('formula', 'preview', 'release', '--var', 'tag=v1.2.3', '--graph', 'mermaid')
  assert.match(chart.out, /^flowchart TD\n {2}n0\["plan: Plan v1\.2\.3"\]\n/)
  assert.match(chart.out, /subgraph n\d+\["polish #91;loop, 2 items#93;"\]/)
  assert.match(chart.out, /n\d+\{\{"approve #91;gate#93;: Ship v1\.2\.3\?"\}\}/)
  const typed = await cli('formula', 'preview', 'release', '--var', 'tag=v1.2.3', '--var', 'rounds=x')
  assert.equal(typed.code, 2)
  assert.match(typed.err, /`x` is not a whole number/)

  const drafts = join(supervisor.work, 'drafts')
  mkdirSync(drafts)
  writeFileSync(join(drafts, 'good.toml'), simpleFormula('mine'))
  writeFileSync(join(drafts, 'bad.toml'), 'formula = "bad"\n[[steps]]\nid = "x"\nneed = ["y"]\n')
  writeFileSync(join(drafts, 'order.toml'), simpleOrder())
  const good = await cli('formula', 'validate', join(drafts, 'good.toml'))
  assert.deepEqual([good.code, good.err.trim()], [0, 'valid'])
  const bad = await cli('formula', 'validate', join(drafts, 'good.toml'), join(drafts, 'bad.toml'))
  assert.equal(bad.code, 1)
  assert.match(bad.out, /bad\.toml:4:1.*unknown key `need`.*did you mean `needs`\?/)
  const refused = await cli('formula', 'put', 'bad', join(drafts, 'bad.toml'))
  assert.equal(refused.code, 6)
  assert.match(refused.err, /formulas\/bad\.toml:4:1: unknown key `need`/)
  assert.equal((await cli('formula', 'put', 'mine', join(drafts, 'good.toml'))).code, 0)
  assert.equal((await cli('formula', 'source', 'mine')).out, simpleFormula('mine'))
  const listed = await cli('formula', 'list', '-o', 'json')
  assert.ok(listed.out.includes('"mine"'))
  assert.equal((await cli('formula', 'get', 'mine')).code, 0)
  assert.equal((await cli('formula', 'delete', 'mine', '--yes')).code, 0)
  assert.equal((await cli('formula', 'get', 'mine')).code, 3)
  assert.equal((await cli('order', 'validate', join(drafts, 'order.toml'))).code, 0)
  assert.equal((await cli('order', 'put', 'often', join(drafts, 'order.toml'))).code, 0)
  assert.equal((await cli('order', 'source', 'often')).out, simpleOrder())
  assert.equal((await cli('order', 'delete', 'often', '--yes')).code, 0)
})
