/** Convoys: each success and each refusal of its own. What convoys do is in test/e2e/convoys. */
import assert from 'node:assert/strict'
import { createBead } from '../../../src/contract/beads.ts'
import { createConvoy } from '../../../src/contract/convoys.ts'
import { at } from '../../support/document.ts'
import { type Answer, assertProblem } from '../../support/http.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenariosOn, type World } from './scenario.ts'

const BASE = '/v0/city/alpha'
const STALE = { 'if-match': '"0"' }

/** What scenarios do in the city `alpha`. */
class Desk {
  readonly world: World

  constructor(world: World) {
    this.world = world
  }

  send(method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
    const options = body === undefined ? { headers } : { headers, body }
    return this.world.main.api.call(method, `${BASE}/convoys${path}`, options)
  }

  async bead(): Promise<string> {
    return (await this.world.main.api.ask(createBead, `${BASE}/beads`, { body: { title: 'work' } })).id
  }

  async convoy(items: readonly string[] = [], owned = false): Promise<string> {
    const body = { title: 'batch', items, owned }
    return (await this.world.main.api.ask(createConvoy, `${BASE}/convoys`, { body })).id
  }
}

const on = scenariosOn((world) => new Desk(world))

/** What each operation on one convoy refuses: none of this id, a bead of another type, another version than the one meant. */
function refusals(operation: Scenario['operation'], method: string, tail: string, body?: unknown): readonly Scenario[] {
  const unknown = on(operation, 'convoy-not-found', async (desk) => {
    const other = operation === 'get-convoy' ? 'convoy-not-found' : 'invalid-request'
    assertProblem(await desk.send(method, `/${await desk.bead()}${tail}`, body), other)
    return desk.send(method, `/al-none${tail}`, body)
  })
  const stale = on(operation, 'precondition-failed', async (desk) =>
    desk.send(method, `/${await desk.convoy([], true)}${tail}`, body, STALE),
  )
  return method === 'GET' ? [unknown] : [unknown, stale]
}

export const convoyScenarios: readonly Scenario[] = [
  on('list-convoys', 200, async (desk) => {
    const id = await desk.convoy([await desk.bead()])
    const answer = await desk.send('GET', '?limit=1000')
    const items = at(answer.body, 'items')
    assert.ok(Array.isArray(items))
    assert.deepEqual(
      at(
        items.find((item) => at(item, 'id') === id),
        'progress',
      ),
      { total: 1, closed: 0 },
    )
    return answer
  }),
  on('list-convoys', 'invalid-cursor', (desk) => desk.send('GET', '?cursor=nonsense')),

  on('create-convoy', 201, async (desk) => desk.send('POST', '', { title: 'batch', items: [await desk.bead()] })),
  on('create-convoy', 'rig-not-found', (desk) => desk.send('POST', '', { title: 'batch', rig: 'none' })),
  on('create-convoy', 'bead-not-found', (desk) => desk.send('POST', '', { title: 'batch', items: ['al-none'] })),
  inFlight('create-convoy', ({ main }, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        main.api.post(`${BASE}/convoys`, { title: key }, { headers: { 'idempotency-key': key } }),
      ),
    ),
  ),
  mismatch('create-convoy', ({ main }, key, second) =>
    main.api.post(`${BASE}/convoys`, { title: second ? 'other' : key }, { headers: { 'idempotency-key': key } }),
  ),

  on('list-stranded', 200, async (desk) => {
    const bead = await desk.bead()
    await desk.convoy([bead])
    const answer = await desk.send('GET', '/stranded?limit=1000')
    assert.ok(answer.text.includes(`"${bead}"`))
    return answer
  }),
  on('list-stranded', 'invalid-cursor', (desk) => desk.send('GET', '/stranded?cursor=nonsense')),
  on('check-convoys', 200, (desk) => desk.send('POST', '/check')),

  on('get-convoy', 200, async (desk) => desk.send('GET', `/${await desk.convoy([await desk.bead()])}`)),
  on('get-convoy', 'invalid-cursor', async (desk) => desk.send('GET', `/${await desk.convoy()}?cursor=nonsense`)),
  ...refusals('get-convoy', 'GET', ''),

  on('patch-convoy', 200, async (desk) => desk.send('PATCH', `/${await desk.convoy()}`, { owner: 'ann' })),
  ...refusals('patch-convoy', 'PATCH', '', { owner: 'ann' }),

  on('delete-convoy', 200, async (desk) => desk.send('DELETE', `/${await desk.convoy([await desk.bead()])}`)),
  on('delete-convoy', 'still-referenced', async (desk) => {
    const inner = await desk.convoy()
    await desk.convoy([inner])
    return desk.send('DELETE', `/${inner}`)
  }),
  ...refusals('delete-convoy', 'DELETE', ''),

  on('check-convoy', 200, async (desk) => desk.send('GET', `/${await desk.convoy()}/check`)),
  ...refusals('check-convoy', 'GET', '/check'),

  on('add-to-convoy', 200, async (desk) =>
    desk.send('POST', `/${await desk.convoy()}/add`, { items: [await desk.bead()] }),
  ),
  on('add-to-convoy', 'bead-not-found', async (desk) =>
    desk.send('POST', `/${await desk.convoy()}/add`, { items: ['al-none'] }),
  ),
  on('add-to-convoy', 'conflict-wrong-state', async (desk) => {
    const id = await desk.convoy()
    await desk.send('POST', `/${id}/close`)
    return desk.send('POST', `/${id}/add`, { items: [await desk.bead()] })
  }),
  ...refusals('add-to-convoy', 'POST', '/add', { items: ['al-x'] }),

  on('remove-from-convoy', 200, async (desk) => {
    const bead = await desk.bead()
    return desk.send('POST', `/${await desk.convoy([bead])}/remove`, { items: [bead] })
  }),
  on('remove-from-convoy', 'bead-not-found', async (desk) =>
    desk.send('POST', `/${await desk.convoy()}/remove`, { items: ['al-none'] }),
  ),
  ...refusals('remove-from-convoy', 'POST', '/remove', { items: ['al-x'] }),

  on('close-convoy', 200, async (desk) => desk.send('POST', `/${await desk.convoy()}/close`, { reason: 'enough' })),
  ...refusals('close-convoy', 'POST', '/close', {}),

  on('land-convoy', 200, async (desk) => desk.send('POST', `/${await desk.convoy([], true)}/land`)),
  on('land-convoy', 'conflict-wrong-state', async (desk) =>
    desk.send('POST', `/${await desk.convoy([await desk.bead()], true)}/land`),
  ),
  ...refusals('land-convoy', 'POST', '/land', {}),
]
