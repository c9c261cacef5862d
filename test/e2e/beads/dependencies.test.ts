/** Dependencies, batches and graphs over HTTP. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MAX_BATCH_NODES } from '../../../src/contract/beads.ts'
import { BeadCity } from '../../support/bead-city.ts'
import { asMap, at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

let running: Running
let city: BeadCity
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'alpha')
  city = new BeadCity(running.api)
})
after(() => running[Symbol.asyncDispose]())

const list = (value: unknown): readonly unknown[] => {
  assert.ok(Array.isArray(value))
  return value
}
const total = async () => Number((await city.done('GET', '?all=true&limit=1').then(({ total }) => total)) ?? 0)

test('a dependency is added, shown from both ends, replaced and removed; each step is one event at most', async () => {
  const [one, other] = [await city.bead('one'), await city.bead('other')]
  const head = await city.head()
  const added = await city.done('POST', `/${one}/deps`, { depends_on_id: other })
  assert.deepEqual([added.is_blocked, added.revision], [true, 2])
  await city.done('POST', `/${one}/deps`, { depends_on_id: other })
  const deps = await city.done('GET', `/${one}/deps`)
  const edge = { issue_id: one, depends_on_id: other, type: 'blocks', status: 'open' }
  assert.deepEqual(deps, { children: [], dependencies: [{ ...edge, title: 'other' }], dependents: [] })
  const up = await city.done('GET', `/${other}/deps?direction=up&type=blocks`)
  assert.deepEqual(up, { children: [], dependencies: [], dependents: [{ ...edge, title: 'one' }] })
  assert.deepEqual((await city.done('GET', `/${other}/deps?direction=up&type=tracks`)).dependents, [])
  const replaced = await city.done('POST', `/${one}/deps`, { depends_on_id: other, type: 'relates-to' })
  assert.deepEqual([replaced.is_blocked, at(replaced.dependencies, 0, 'type')], [false, 'relates-to'])
  await city.done('DELETE', `/${one}/deps/${other}?type=blocks`)
  const removed = await city.done('DELETE', `/${one}/deps/${other}`)
  assert.equal(removed.dependencies, undefined)
  assert.deepEqual(
    (await city.events(head)).map(({ payload }) => payload.changed),
    [['dependencies', 'is_blocked'], ['dependencies', 'is_blocked'], ['dependencies']],
  )
})

test('a cycle is refused with all of it, wherever it would come from', async () => {
  const a = await city.bead('a')
  const b = await city.bead('b', { needs: [a] })
  const c = await city.bead('c', { needs: [`waits-for:${b}`] })
  const head = await city.head()
  const refused = assertProblem(
    await city.send('POST', `/${a}/deps`, { depends_on_id: c }),
    'dependency-cycle',
    `conflict: dependency cycle: ${a} -> ${c} -> ${b} -> ${a}`,
  )
  assert.deepEqual(refused.errors, [{ location: 'body.depends_on_id', message: 'closes a cycle', value: [a, c, b, a] }])
  assertProblem(
    await city.send('POST', `/${a}/deps`, { depends_on_id: a }),
    'dependency-cycle',
    `conflict: dependency cycle: ${a} -> ${a}`,
  )
  await city.done('PATCH', `/${b}`, { parent: a })
  assertProblem(
    await city.send('PATCH', `/${a}`, { parent: b }),
    'dependency-cycle',
    `conflict: dependency cycle: ${a} -> ${b} -> ${a}`,
  )
  const batch = {
    nodes: [{ key: 'x', title: 'x' }],
    edges: [
      { from_key: 'x', to_id: c },
      { from_id: a, to_key: 'x' },
    ],
  }
  const path = assertProblem(await city.send('POST', '/batch', batch), 'dependency-cycle').errors
  assert.equal(list(at(path, 0, 'value')).length, 5)
  assert.equal((await city.events(head)).length, 1, 'only the parent was set')
})

test('a bead in use is not deleted; with cascade its children go along, and its id is never seen again', async () => {
  const root = await city.bead('root')
  const child = await city.bead('child', { parent: root })
  const grandchild = await city.bead('grandchild', { parent: child })
  const waiting = await city.bead('waiting', { needs: [child] })
  const { errors } = assertProblem(await city.send('DELETE', `/${child}`), 'still-referenced')
  assert.deepEqual(new Set(list(errors).map((error) => at(error, 'value'))), new Set([grandchild, waiting]))
  const deleted = await city.done('DELETE', `/${root}?cascade=true`)
  assert.deepEqual(deleted, { status: 'deleted', id: root, deleted: [root, child, grandchild] })
  for (const id of [root, child, grandchild]) assertProblem(await city.send('GET', `/${id}`), 'bead-not-found')
  assert.equal((await city.get(waiting)).is_blocked, false)
})

test('a batch creates beads that name each other by key, in one step', async () => {
  const outside = await city.bead('outside')
  const head = await city.head()
  const { ids } = await city.done('POST', '/batch', {
    nodes: [
      { key: 'epic', title: 'Epic', type: 'epic' },
      { key: 'a', title: 'A', parent_key: 'epic', labels: ['x'], metadata: { k: 'v' }, priority: 1 },
      { key: 'b', title: 'B', parent_id: outside, metadata_refs: { after: 'a' } },
    ],
    edges: [
      { from_key: 'b', to_key: 'a' },
      { from_key: 'a', to_id: outside, type: 'relates-to' },
      { from_id: outside, to_key: 'a' },
    ],
  })
  const { epic, a, b } = asMap(ids)
  const second = await city.get(String(b))
  assert.deepEqual([second.parent, second.metadata, second.is_blocked], [outside, { after: a }, true])
  assert.equal((await city.get(String(a))).parent, epic)
  assert.equal((await city.get(outside)).is_blocked, true)
  const events = await city.events(head)
  assert.deepEqual(
    events.map(({ type, subject }) => [type, subject]),
    [
      ['bead.created', epic],
      ['bead.created', a],
      ['bead.created', b],
      ['bead.updated', outside],
    ],
  )
  assert.equal(at(events[2]?.payload, 'bead', 'is_blocked'), true)
})

const node = (key: string, more: object = {}) => ({ key, title: key, ...more })
const WRONG: readonly [name: string, body: object, location: string][] = [
  ['no node', { nodes: [] }, 'body.nodes'],
  ['a key twice', { nodes: [node('a'), node('a')] }, 'body.nodes[1].key'],
  ['a blank key', { nodes: [node('a'), { key: ' ', title: 'x' }] }, 'body.nodes[1].key'],
  ['a blank title', { nodes: [node('a'), { key: 'b', title: ' ' }] }, 'body.nodes[1].title'],
  [
    'an unknown key in an edge',
    { nodes: [node('a')], edges: [{ from_key: 'a', to_key: 'z' }] },
    'body.edges[0].to_key',
  ],
  ['an edge without an end', { nodes: [node('a')], edges: [{ from_key: 'a' }] }, 'body.edges[0].to_key'],
  [
    'an edge with two of one end',
    { nodes: [node('a')], edges: [{ from_key: 'a', from_id: 'x', to_key: 'a' }] },
    'body.edges[0].from_id',
  ],
  ['an unknown parent', { nodes: [node('a', { parent_key: 'z' })] }, 'body.nodes[0].parent_key'],
  ['two parents', { nodes: [node('a', { parent_key: 'a', parent_id: 'x' })] }, 'body.nodes[0].parent_id'],
  [
    'an unknown key in metadata',
    { nodes: [node('a', { metadata_refs: { m: 'z' } })] },
    'body.nodes[0].metadata_refs.m',
  ],
  ['reserved metadata', { nodes: [node('a', { metadata: { 'svc.kind': 'x' } })] }, 'body.nodes[0].metadata.svc.kind'],
  [
    'a reserved reference',
    { nodes: [node('a', { metadata_refs: { 'svc.kind': 'a' } })] },
    'body.nodes[0].metadata_refs.svc.kind',
  ],
  [
    'a parent and another one',
    {
      nodes: [node('a'), node('b', { parent_key: 'a' }), node('c')],
      edges: [{ from_key: 'b', to_key: 'c', type: 'parent-child' }],
    },
    'body.edges[0]',
  ],
]
for (const [name, body, location] of WRONG) {
  test(`a batch with ${name} creates nothing`, async () => {
    const before = await total()
    const { errors } = assertProblem(await city.send('POST', '/batch', body), 'validation-failed')
    assert.equal(at(errors, 0, 'location'), location)
    assert.equal(await total(), before)
  })
}

const missing = 'al-none'
for (const [name, body, status, location, value] of [
  [
    'an edge to nothing',
    { nodes: [node('a')], edges: [{ from_key: 'a', to_id: missing }] },
    404,
    'body.edges[0].to_id',
    missing,
  ],
  [
    'a parent that is not there',
    { nodes: [node('a', { parent_id: missing })] },
    404,
    'body.nodes[0].parent_id',
    missing,
  ],
  ['a rig that is not there', { nodes: [node('a'), node('b', { rig: 'none' })] }, 404, 'body.nodes[1].rig', 'none'],
  [
    'a cycle',
    {
      nodes: [node('a'), node('b')],
      edges: [
        { from_key: 'a', to_key: 'b', type: 'tracks' },
        { from_key: 'a', to_key: 'b' },
        { from_key: 'b', to_key: 'a' },
      ],
    },
    409,
    'body.edges[1]',
    ['a', 'b', 'a'],
  ],
  [
    'nodes inside each other',
    { nodes: [node('a', { parent_key: 'b' }), node('b', { parent_key: 'a' })] },
    409,
    'body.nodes[0].parent_key',
    ['a', 'b', 'a'],
  ],
] as const) {
  test(`a batch with ${name} says where, in its own words`, async () => {
    const answer = await city.send('POST', '/batch', body)
    assert.equal(answer.status, status)
    assert.equal(at(answer.body, 'errors', 0, 'location'), location)
    assert.deepEqual(at(answer.body, 'errors', 0, 'value'), value)
  })
}

test('a graph has what belongs to its root, and only that, also where it is large', async () => {
  // A tree of a thousand, each of which waits for the one before.
  const numbers = Array.from({ length: MAX_BATCH_NODES - 1 }, (_, n) => n + 1)
  const parents = numbers.map((n) => node(`n${n}`, { parent_key: n === 1 ? 'root' : `n${n >> 1}` }))
  const edges = numbers.slice(1).map((n) => ({ from_key: `n${n}`, to_key: `n${n - 1}` }))
  const { ids } = await city.done('POST', '/batch', { nodes: [node('root'), ...parents], edges })
  const root = String(asMap(ids).root)
  const outsider = await city.bead('outsider')
  await city.done('POST', `/${String(asMap(ids).n1)}/deps`, { depends_on_id: outsider })
  const graph = await city.done('GET', `/graph/${root}`)
  assert.equal(list(graph.beads).length, parents.length + 1)
  assert.equal(list(graph.deps).length, parents.length + edges.length)
  assert.equal(graph.truncated, undefined)
  const members = new Set(list(graph.beads).map((bead) => at(bead, 'id')))
  for (const edge of list(graph.deps)) assert.ok(members.has(at(edge, 'from')) && members.has(at(edge, 'to')))
  assert.ok(!members.has(outsider))
})

test('the graph of a convoy has its members and what is below them', async () => {
  const member = await city.bead('member')
  const below = await city.bead('below', { parent: member })
  const convoy = await city.bead('convoy', { type: 'convoy', needs: [`tracks:${member}`] })
  const graph = await city.done('GET', `/graph/${convoy}`)
  assert.equal(graph.membership, 'direct-root-id+parent-closure+convoy-members')
  assert.deepEqual(new Set(list(graph.beads).map((bead) => at(bead, 'id'))), new Set([convoy, member, below]))
  assert.deepEqual(
    new Set(
      list(graph.deps).map(
        (edge) => `${String(at(edge, 'from'))} ${String(at(edge, 'to'))} ${String(at(edge, 'kind'))}`,
      ),
    ),
    new Set([`${member} ${convoy} tracks`, `${member} ${below} parent-child`]),
  )
})
