/** Beads: each success and each refusal of its own. Lists and hooks: `beads-reading.ts`; import and export: `beads-interchange.ts`. */
import assert from 'node:assert/strict'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import { MAX_REMOVED_AT_ONCE } from '../../../src/contract/beads.ts'
import { asMap, at } from '../../support/document.ts'
import { type Answer, assertProblem } from '../../support/http.ts'
import { STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, scenariosOn, type World } from './scenario.ts'

const BASE = '/v0/city/alpha/beads'

class Beads {
  readonly world: World

  constructor(world: World) {
    this.world = world
  }

  send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    this.world.main.api.call(method, `${BASE}${path}`, { headers, ...(body === undefined ? {} : { body }) })

  /** Creates a bead and answers with its path. */
  async bead(more: object = {}): Promise<string> {
    const made = await this.send('POST', '', { title: this.world.unique('bead'), ...more })
    assert.equal(made.status, 201, made.text)
    return `/${String(at(made.body, 'id'))}`
  }

  /** One with more below it than a write deletes. */
  async tall(): Promise<string> {
    const path = await this.bead()
    const below = Array.from({ length: MAX_REMOVED_AT_ONCE }, (_, n) => ({
      id: `${idOf(path)}.${n}`,
      parent: idOf(path),
    }))
    const bytes = below.map((line) => `${JSON.stringify({ ...line, title: 'below' })}\n`).join('')
    await this.world.main.api.call('POST', `${BASE}/import`, { bytes, headers: { 'content-type': LINES_TYPE } })
    return path
  }

  async closed(): Promise<string> {
    const path = await this.bead()
    await this.send('POST', `${path}/close`)
    return path
  }

  async claimed(): Promise<string> {
    const path = await this.bead()
    await this.send('POST', `${path}/claim`, { assignee: 'ann' })
    return path
  }
}

const on = scenariosOn((world) => new Beads(world))

const idOf = (path: string): string => path.slice(1)

/** The refusals of every edit of one bead. */
const edits = (operation: Scenario['operation'], method: string, rest: string, body?: unknown): Scenario[] => [
  on(
    operation,
    'bead-not-found',
    (beads) => beads.send(method, `/al-none${rest}`, body),
    ({ body: problem }) => assert.equal(at(problem, 'detail'), 'not_found: there is no bead al-none'),
  ),
  on(operation, 'precondition-failed', async (beads) =>
    beads.send(method, `${await beads.bead()}${rest}`, body, STALE),
  ),
]

/** Eight times the same at once. */
const atOnce = (send: (key: string) => Promise<Answer>, key: string) =>
  Promise.all(Array.from({ length: 8 }, () => send(key)))
const keyed = (world: World, path: string, body: unknown, key: string) =>
  world.main.api.post(`${BASE}${path}`, body, { headers: { 'idempotency-key': key } })

export const beadScenarios: readonly Scenario[] = [
  on(
    'create-bead',
    201,
    (beads) => beads.send('POST', '', { title: 'one', type: 'bug', labels: ['b', 'a', 'b'] }),
    ({ body }) => {
      const { id, title, status, issue_type, labels, revision } = asMap(body)
      assert.match(String(id), /^al-[a-z0-9]{3,}$/)
      assert.deepEqual([title, status, issue_type, labels, revision], ['one', 'open', 'bug', ['a', 'b'], 1])
    },
  ),
  on('create-bead', 'rig-not-found', (beads) => beads.send('POST', '', { title: 'x', rig: 'none' })),
  on('create-bead', 'bead-not-found', (beads) => beads.send('POST', '', { title: 'x', parent: 'al-none' })),
  inFlight('create-bead', (world, key) => atOnce((one) => keyed(world, '', { title: one }, one), key)),
  mismatch('create-bead', (world, key, second) => keyed(world, '', { title: second ? 'other' : 'one' }, key)),

  on(
    'create-bead-batch',
    201,
    (beads) =>
      beads.send('POST', '/batch', {
        nodes: [
          { key: 'a', title: 'first' },
          { key: 'b', title: 'second', parent_key: 'a', metadata_refs: { first: 'a' } },
        ],
        edges: [{ from_key: 'b', to_key: 'a' }],
      }),
    ({ body }) => assert.deepEqual(Object.keys(asMap(at(body, 'ids'))), ['a', 'b']),
  ),
  on('create-bead-batch', 'rig-not-found', (beads) =>
    beads.send('POST', '/batch', { nodes: [{ key: 'a', title: 'x', rig: 'none' }] }),
  ),
  on('create-bead-batch', 'bead-not-found', (beads) =>
    beads.send('POST', '/batch', { nodes: [{ key: 'a', title: 'x' }], edges: [{ from_key: 'a', to_id: 'al-none' }] }),
  ),
  on('create-bead-batch', 'dependency-cycle', (beads) =>
    beads.send('POST', '/batch', {
      nodes: ['a', 'b'].map((key) => ({ key, title: key })),
      edges: [
        { from_key: 'a', to_key: 'b' },
        { from_key: 'b', to_key: 'a' },
      ],
    }),
  ),
  inFlight('create-bead-batch', (world, key) =>
    atOnce((one) => keyed(world, '/batch', { nodes: [{ key: one, title: one }] }, one), key),
  ),
  mismatch('create-bead-batch', (world, key, second) =>
    keyed(world, '/batch', { nodes: [{ key: 'a', title: second ? 'other' : 'one' }] }, key),
  ),

  on('get-bead', 200, async (beads) => beads.send('GET', await beads.bead())),
  on('get-bead', 'bead-not-found', (beads) => beads.send('GET', '/al-none')),
  on(
    'get-bead-graph',
    200,
    async (beads) => {
      const root = await beads.bead()
      await beads.bead({ parent: idOf(root) })
      return beads.send('GET', `/graph${root}`)
    },
    ({ body }) => {
      assert.equal(at(body, 'membership'), 'direct-root-id+parent-closure')
      assert.equal(at(body, 'deps', 0, 'kind'), 'parent-child')
    },
  ),
  on('get-bead-graph', 'bead-not-found', (beads) => beads.send('GET', '/graph/al-none')),

  on('patch-bead', 200, async (beads) => beads.send('PATCH', await beads.bead(), { priority: 0 })),
  ...edits('patch-bead', 'PATCH', '', {}),
  on('patch-bead', 'conflict-wrong-state', async (beads) =>
    beads.send('PATCH', await beads.closed(), { status: 'in_progress' }),
  ),
  on('patch-bead', 'dependency-cycle', async (beads) => {
    const above = await beads.bead()
    const below = await beads.bead({ parent: idOf(above) })
    return beads.send('PATCH', above, { parent: idOf(below) })
  }),

  on('delete-bead', 200, async (beads) => beads.send('DELETE', await beads.bead())),
  on('delete-bead', 202, async (beads) => beads.send('DELETE', `${await beads.tall()}?cascade=true`)),
  ...edits('delete-bead', 'DELETE', ''),
  on('delete-bead', 'operation-in-progress', async (beads) => {
    const path = await beads.tall()
    const answers = await Promise.all(Array.from({ length: 4 }, () => beads.send('DELETE', `${path}?cascade=true`)))
    const accepted = answers.filter(({ status }) => status === 202)
    assert.equal(accepted.length, 1)
    const refused = answers.find(({ status }) => status === 409)
    assert.ok(refused !== undefined)
    assert.equal(at(refused.body, 'request_id'), at(accepted[0]?.body, 'request_id'))
    return refused
  }),
  inFlight('delete-bead', async (world, key) => {
    const beads = new Beads(world)
    const path = await beads.bead()
    return Promise.all(
      Array.from({ length: 8 }, () => beads.send('DELETE', path, undefined, { 'idempotency-key': key })),
    )
  }),
  scenario('delete-bead', 'idempotency-mismatch', async (world) => {
    const beads = new Beads(world)
    const path = await beads.bead()
    const remove = (query: string) => beads.send('DELETE', `${path}${query}`, undefined, { 'idempotency-key': 'once' })
    const first = await remove('')
    assert.deepEqual((await remove('')).body, first.body, 'also where it is gone by then')
    const other = await remove('?cascade=true')
    assertProblem(other, 'idempotency-mismatch')
    return other
  }),
  on('delete-bead', 'still-referenced', async (beads) => {
    const path = await beads.bead()
    await beads.bead({ needs: [idOf(path)] })
    return beads.send('DELETE', path)
  }),

  on(
    'close-bead',
    200,
    async (beads) =>
      beads.send('POST', `${await beads.bead()}/close`, { reason: 'done', outcome: 'pass', output: [1] }),
    ({ body }) => {
      const { status, close_reason, outcome, metadata } = asMap(body)
      assert.deepEqual([status, close_reason, outcome], ['closed', 'done', 'pass'])
      assert.equal(asMap(metadata)['svc.output_json'], '[1]')
    },
  ),
  ...edits('close-bead', 'POST', '/close'),
  on('close-bead', 'conflict-wrong-state', async (beads) =>
    beads.send('POST', `${await beads.closed()}/close`, { outcome: 'fail' }),
  ),
  on('reopen-bead', 200, async (beads) => beads.send('POST', `${await beads.closed()}/reopen`)),
  ...edits('reopen-bead', 'POST', '/reopen'),
  on('reopen-bead', 'conflict-wrong-state', async (beads) => beads.send('POST', `${await beads.bead()}/reopen`)),

  on('assign-bead', 200, async (beads) => beads.send('POST', `${await beads.bead()}/assign`, { assignee: 'ann' })),
  ...edits('assign-bead', 'POST', '/assign', { assignee: 'ann' }),
  on('assign-bead', 'conflict-assignee', async (beads) =>
    beads.send('POST', `${await beads.claimed()}/assign`, { assignee: 'bob', expected_assignee: 'eve' }),
  ),
  on(
    'route-bead',
    200,
    async (beads) => beads.send('POST', `${await beads.bead()}/route`, { target: 'nobody-yet' }),
    ({ body }) => {
      assert.equal(at(body, 'routed_to'), 'nobody-yet')
      assert.deepEqual(at(body, 'warnings'), ['nobody is called nobody-yet: it waits until somebody is'])
    },
  ),
  ...edits('route-bead', 'POST', '/route', { target: 'pool' }),

  on(
    'claim-bead',
    200,
    async (beads) => beads.send('POST', `${await beads.bead()}/claim`, { assignee: 'ann' }),
    ({ body }) => assert.equal(at(body, 'bead', 'status'), 'in_progress'),
  ),
  ...edits('claim-bead', 'POST', '/claim', { assignee: 'ann' }),
  on(
    'claim-bead',
    'conflict-claimed',
    async (beads) => beads.send('POST', `${await beads.claimed()}/claim`, { assignee: 'bob' }),
    ({ body }) => assert.equal(at(body, 'errors', 0, 'value'), 'ann'),
  ),
  on('claim-bead', 'conflict-wrong-state', async (beads) =>
    beads.send('POST', `${await beads.closed()}/claim`, { assignee: 'bob' }),
  ),
  on('heartbeat-bead', 200, async (beads) => beads.send('POST', `${await beads.claimed()}/heartbeat`)),
  ...edits('heartbeat-bead', 'POST', '/heartbeat'),
  on('heartbeat-bead', 'conflict-claimed', async (beads) =>
    beads.send('POST', `${await beads.claimed()}/heartbeat`, { assignee: 'bob' }),
  ),
  on('heartbeat-bead', 'conflict-wrong-state', async (beads) => beads.send('POST', `${await beads.bead()}/heartbeat`)),
  on(
    'release-bead',
    200,
    async (beads) => beads.send('POST', `${await beads.claimed()}/release`, { assignee: 'ann' }),
    ({ body }) => assert.equal(at(body, 'bead', 'status'), 'open'),
  ),
  ...edits('release-bead', 'POST', '/release'),
  on('release-bead', 'conflict-claimed', async (beads) =>
    beads.send('POST', `${await beads.claimed()}/release`, { assignee: 'bob' }),
  ),
  on('release-bead', 'conflict-wrong-state', async (beads) => beads.send('POST', `${await beads.bead()}/release`)),

  on('list-bead-deps', 200, async (beads) => beads.send('GET', `${await beads.bead()}/deps`)),
  on('list-bead-deps', 'bead-not-found', (beads) => beads.send('GET', '/al-none/deps')),
  on('add-bead-dep', 200, async (beads) =>
    beads.send('POST', `${await beads.bead()}/deps`, { depends_on_id: idOf(await beads.bead()) }),
  ),
  ...edits('add-bead-dep', 'POST', '/deps', { depends_on_id: 'al-other' }),
  on('add-bead-dep', 'dependency-cycle', async (beads) => {
    const one = await beads.bead()
    const other = await beads.bead({ needs: [idOf(one)] })
    return beads.send('POST', `${one}/deps`, { depends_on_id: idOf(other) })
  }),
  on('remove-bead-dep', 200, async (beads) => beads.send('DELETE', `${await beads.bead()}/deps/al-none`)),
  ...edits('remove-bead-dep', 'DELETE', '/deps/al-other'),

  on('add-bead-label', 200, async (beads) => beads.send('PUT', `${await beads.bead()}/labels/ui%2Fnew`)),
  ...edits('add-bead-label', 'PUT', '/labels/ui'),
  on('remove-bead-label', 200, async (beads) => beads.send('DELETE', `${await beads.bead()}/labels/ui`)),
  ...edits('remove-bead-label', 'DELETE', '/labels/ui'),

  on(
    'list-bead-comments',
    200,
    async (beads) => {
      const path = await beads.bead()
      await beads.send('POST', `${path}/comments`, { text: 'first' })
      return beads.send('GET', `${path}/comments`)
    },
    ({ body }) => assert.equal(at(body, 'items', 0, 'text'), 'first'),
  ),
  on('list-bead-comments', 'bead-not-found', (beads) => beads.send('GET', '/al-none/comments')),
  on('list-bead-comments', 'invalid-cursor', async (beads) =>
    beads.send('GET', `${await beads.bead()}/comments?cursor=nonsense`),
  ),
  on('add-bead-comment', 201, async (beads) =>
    beads.send('POST', `${await beads.bead()}/comments`, { text: 'hello', author: 'ann' }),
  ),
  on('add-bead-comment', 'bead-not-found', (beads) => beads.send('POST', '/al-none/comments', { text: 'x' })),
  inFlight('add-bead-comment', async (world, key) => {
    const path = await new Beads(world).bead()
    return atOnce((one) => keyed(world, `${path}/comments`, { text: one }, one), key)
  }),
  scenario('add-bead-comment', 'idempotency-mismatch', async (world) => {
    const path = await new Beads(world).bead()
    await keyed(world, `${path}/comments`, { text: 'one' }, 'comment')
    return keyed(world, `${path}/comments`, { text: 'other' }, 'comment')
  }),
]
