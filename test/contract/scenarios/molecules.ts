/** Molecules and sling: each success and each refusal of their own. What they do is in test/e2e/molecules. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importCached } from '../../support/cached-pack.ts'
import { at } from '../../support/document.ts'
import { type Answer, type Api, assertProblem, eventually } from '../../support/http.ts'
import { newCity, succeeds } from '../../support/running.ts'
import { type EditedCity, onEditedCity, STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const WORKER = '[[agent]]\nname = "worker"\nprovider = "shell"\nsuspended = true\n'
const on = onEditedCity('molecules', WORKER)

const ASKS = `formula = "asks"\ntitle = "Asks"\n[[steps]]\nid = "ask"\ntitle = "Go on?"\ngate = { human = true }\n`
const WORK = `formula = "work"\ntitle = "Work"\n[[steps]]\nid = "do"\ntitle = "Do it"\n`
const FILES = {
  'formulas/asks.toml': ASKS,
  'formulas/work.toml': WORK,
  'formulas/broken.toml': 'formula = "broken"\nnonsense = 1\n',
}

/** The formulas are there, and known. */
async function laid(city: EditedCity): Promise<EditedCity> {
  await city.say(WORKER, FILES)
  await eventually('the formulas are known', async () => {
    const { status } = await city.send('GET', '/formulas/work')
    return status === 200 ? true : undefined
  })
  return city
}
const send = async (city: EditedCity, method: string, path: string, body?: unknown): Promise<Answer> =>
  (await laid(city)).send(method, path, body)
const idOf = ({ body, text }: Answer): string => {
  assert.ok(typeof body === 'object' && body !== null && 'id' in body, text)
  return String(body.id)
}
const start = async (city: EditedCity, body: object = { formula: 'work' }): Promise<string> =>
  idOf(await send(city, 'POST', '/molecules', body))
const bead = async (city: EditedCity, more: object = {}): Promise<string> =>
  idOf(await city.send('POST', '/beads', { title: 'about', ...more }))
const stepBead = async (city: EditedCity, id: string, step = 'do'): Promise<string> =>
  String(at((await city.send('GET', `/molecules/${id}/steps/${step}`)).body, 'bead_id'))
const fail = async (city: EditedCity): Promise<string> => {
  const id = await start(city)
  await city.send('POST', `/beads/${await stepBead(city, id)}/close`, { outcome: 'fail' })
  await eventually('it has failed', async () => {
    const { body } = await city.send('GET', `/molecules/${id}`)
    return at(body, 'status') === 'failed' ? true : undefined
  })
  return id
}
const held = async (city: EditedCity): Promise<string> => bead(city, { assignee: 'ann' })
const closed = async (city: EditedCity): Promise<string> => {
  const id = await bead(city)
  await city.send('POST', `/beads/${id}/close`)
  return id
}
const driven = async (city: EditedCity): Promise<string> => {
  const id = await bead(city)
  await start(city, { formula: 'asks', bead: id })
  return id
}

const PACK = {
  name: 'tools',
  commit: 'd'.repeat(40),
  files: { 'pack.toml': '[pack]\nname = "tools"\nschema = 2\n', 'formulas/work.toml': WORK },
}
/** Some agent of a city. */
async function agentOf(api: Api, base: string): Promise<string> {
  const agents = at((await api.get(`${base}/agents`)).body, 'items')
  assert.ok(Array.isArray(agents))
  return String(at(agents[0], 'name'))
}

/** A formula of a pack that nobody has trusted. */
const untrusted = (operation: Scenario['operation'], path: string, body: object): Scenario =>
  scenario(operation, 'untrusted-pack', async (world: World) => {
    const { api, server, work } = world.main
    const name = world.unique('distrust')
    await newCity(api, work, name)
    await importCached(server.home, join(work, name), PACK)
    const base = `/v0/city/${name}`
    const reload = await api.post(`${base}/config/reload`)
    await succeeds(api, { request_id: String(at(reload.body, 'request_id')) })
    await eventually('it is known', async () =>
      (await api.get(`${base}/formulas/work`)).status === 200 ? true : undefined,
    )
    const target = path === '/sling' ? { target: await agentOf(api, base) } : {}
    const answer = await api.post(`${base}${path}`, { ...body, ...target })
    assertProblem(answer, 'untrusted-pack')
    return answer
  })

/** The city `alpha` has a formula too. */
async function inAlpha({ main }: World): Promise<void> {
  const directory = join(main.work, 'alpha', 'formulas')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'asks.toml'), ASKS)
  await eventually('it is known', async () =>
    (await main.api.get('/v0/city/alpha/formulas/asks')).status === 200 ? true : undefined,
  )
}
const startInAlpha = ({ main }: World, key: string, body: object): Promise<Answer> =>
  main.api.post('/v0/city/alpha/molecules', { formula: 'asks', ...body }, { headers: { 'idempotency-key': key } })
const slingInAlpha = async ({ main }: World, key: string, text: string): Promise<Answer> => {
  const target = await agentOf(main.api, '/v0/city/alpha')
  return main.api.post('/v0/city/alpha/sling', { text, target }, { headers: { 'idempotency-key': key } })
}

/** Operations on one molecule refuse an id alike. */
const unknown = (operation: Scenario['operation'], method: string, tail = ''): Scenario =>
  on(operation, 'molecule-not-found', (city) => send(city, method, `/molecules/mo-none${tail}`))
const stale = (operation: Scenario['operation'], method: string, tail = ''): Scenario =>
  on(operation, 'precondition-failed', async (city) =>
    city.send(method, `/molecules/${await start(city)}${tail}`, undefined, STALE),
  )

/** What cannot be given to a molecule, or away. */
const refusals = (operation: 'start-molecule' | 'sling', path: string, more: object): readonly Scenario[] => {
  const ask = (city: EditedCity, body: object) => send(city, 'POST', path, { ...more, ...body })
  return [
    on(operation, 'formula-not-found', (city) => ask(city, { formula: 'none' })),
    on(operation, 'formula-invalid', (city) => ask(city, { formula: 'broken' })),
    on(operation, 'rig-not-found', (city) => ask(city, { formula: 'work', rig: 'none' })),
    on(operation, 'bead-not-found', (city) => ask(city, { formula: 'work', bead: 'mo-none' })),
    on(operation, 'molecule-live', async (city) => ask(city, { formula: 'work', bead: await driven(city) })),
    on(operation, 'conflict-claimed', async (city) => ask(city, { formula: 'work', bead: await held(city) })),
    on(operation, 'conflict-wrong-state', async (city) => ask(city, { formula: 'work', bead: await closed(city) })),
    untrusted(operation, path, { formula: 'work' }),
  ]
}

/** What beads of molecules refuse. */
const ofBeads: readonly Scenario[] = [
  on('close-bead', 'molecule-live', async (city) => city.send('POST', `/beads/${await driven(city)}/close`)),
  ...(['close', 'land'] as const).map((way) =>
    on(`${way}-convoy`, 'molecule-live', async (city) => {
      const { body } = await city.send('POST', '/convoys', { title: 'batch', owned: true })
      const id = String(at(body, 'id'))
      await start(city, { formula: 'asks', bead: id })
      return city.send('POST', `/convoys/${id}/${way}`, {})
    }),
  ),
  on('patch-bead', 'molecule-live', async (city) =>
    city.send('PATCH', `/beads/${await driven(city)}`, { status: 'closed' }),
  ),
  on('close-bead', 'conflict-claimed', async (city) => {
    const id = await stepBead(city, await start(city))
    await city.send('POST', `/beads/${id}/claim`, { assignee: 'ann', session_id: 's-1' })
    return city.send('POST', `/beads/${id}/close`, { session_id: 's-2' })
  }),
  on('delete-bead', 'conflict-wrong-state', async (city) => city.send('DELETE', `/beads/${await start(city)}`)),
  on('assign-bead', 'conflict-wrong-state', async (city) =>
    city.send('POST', `/beads/${await start(city)}/assign`, { assignee: 'ann' }),
  ),
  on('route-bead', 'conflict-wrong-state', async (city) =>
    city.send('POST', `/beads/${await start(city)}/route`, { target: 'ann' }),
  ),
  on('add-bead-dep', 'conflict-wrong-state', async (city) =>
    city.send('POST', `/beads/${await start(city)}/deps`, { depends_on_id: await bead(city) }),
  ),
  on('remove-bead-dep', 'conflict-wrong-state', async (city) => {
    const about = await bead(city)
    const id = await start(city, { formula: 'asks', bead: about })
    return city.send('DELETE', `/beads/${about}/deps/${id}`)
  }),
  on('create-bead-batch', 'conflict-wrong-state', async (city) =>
    city.send('POST', '/beads/batch', {
      nodes: [{ key: 'a', title: 'A' }],
      edges: [{ from_id: await start(city), to_key: 'a' }],
    }),
  ),
  on('delete-convoy', 'conflict-wrong-state', async (city) => {
    const id = idOf(await send(city, 'POST', '/convoys', { title: 'batch' }))
    await start(city, { formula: 'asks', bead: id })
    return city.send('DELETE', `/convoys/${id}`)
  }),
]

export const moleculeScenarios: readonly Scenario[] = [
  on('list-molecules', 200, async (city) => {
    await start(city)
    return city.send('GET', '/molecules?status=pending&limit=1')
  }),
  on('list-molecules', 'invalid-cursor', (city) => send(city, 'GET', '/molecules?cursor=nonsense')),
  on('list-molecules', 'rig-not-found', (city) => send(city, 'GET', '/molecules?rig=none')),

  on('start-molecule', 201, async (city) => send(city, 'POST', '/molecules', { formula: 'work' })),
  on('start-molecule', 200, async (city) => send(city, 'POST', '/molecules', { formula: 'work', dry_run: true })),
  ...refusals('start-molecule', '/molecules', {}),
  inFlight('start-molecule', async (world, key) => {
    await inAlpha(world)
    return Promise.all(Array.from({ length: 8 }, () => startInAlpha(world, key, {})))
  }),
  mismatch('start-molecule', async (world, key, second) => {
    await inAlpha(world)
    return startInAlpha(world, key, { title: second ? 'other' : 'one' })
  }),

  on('get-molecule', 200, async (city) => city.send('GET', `/molecules/${await start(city)}`)),
  unknown('get-molecule', 'GET'),
  on('list-molecule-steps', 200, async (city) => city.send('GET', `/molecules/${await start(city)}/steps`)),
  on('list-molecule-steps', 'invalid-cursor', async (city) =>
    city.send('GET', `/molecules/${await start(city)}/steps?cursor=nonsense`),
  ),
  unknown('list-molecule-steps', 'GET', '/steps'),
  on('get-molecule-step', 200, async (city) => city.send('GET', `/molecules/${await start(city)}/steps/do`)),
  on('get-molecule-step', 'molecule-step-not-found', async (city) =>
    city.send('GET', `/molecules/${await start(city)}/steps/none`),
  ),
  unknown('get-molecule-step', 'GET', '/steps/do'),
  on('get-molecule-graph', 200, async (city) => city.send('GET', `/molecules/${await start(city)}/graph`)),
  on('get-molecule-graph', 'molecule-step-not-found', async (city) =>
    city.send('GET', `/molecules/${await start(city)}/graph?expand=none`),
  ),
  unknown('get-molecule-graph', 'GET', '/graph'),

  on('cancel-molecule', 200, async (city) => city.send('POST', `/molecules/${await start(city)}/cancel`)),
  on('cancel-molecule', 'conflict-wrong-state', async (city) => {
    const id = await start(city)
    await city.send('POST', `/molecules/${id}/cancel`)
    return city.send('POST', `/molecules/${id}/cancel`)
  }),
  unknown('cancel-molecule', 'POST', '/cancel'),
  stale('cancel-molecule', 'POST', '/cancel'),

  on('retry-molecule', 200, async (city) => city.send('POST', `/molecules/${await fail(city)}/retry`)),
  on('retry-molecule', 'conflict-wrong-state', async (city) =>
    city.send('POST', `/molecules/${await start(city)}/retry`),
  ),
  on('retry-molecule', 'molecule-live', async (city) => {
    const about = await bead(city)
    const id = await start(city, { formula: 'asks', bead: about })
    await city.send('POST', `/beads/${await stepBead(city, id, 'ask')}/close`, { outcome: 'fail' })
    await eventually('another can begin', async () => {
      const { status } = await city.send('POST', '/molecules', { formula: 'asks', bead: about })
      return status === 201 ? true : undefined
    })
    return city.send('POST', `/molecules/${id}/retry`)
  }),
  unknown('retry-molecule', 'POST', '/retry'),
  stale('retry-molecule', 'POST', '/retry'),

  on('delete-molecule', 200, async (city) => city.send('DELETE', `/molecules/${await fail(city)}`)),
  on('delete-molecule', 'conflict-wrong-state', async (city) => city.send('DELETE', `/molecules/${await start(city)}`)),
  unknown('delete-molecule', 'DELETE'),
  on('delete-molecule', 'precondition-failed', async (city) =>
    city.send('DELETE', `/molecules/${await fail(city)}`, undefined, STALE),
  ),

  on('sling', 200, (city) => send(city, 'POST', '/sling', { text: 'do it', target: 'worker' })),
  on('sling', 'target-not-found', (city) => send(city, 'POST', '/sling', { text: 'do it', target: 'none' })),
  on('sling', 'invalid-request', async (city) =>
    send(city, 'POST', '/sling', { bead: await bead(city, { issue_type: 'epic' }), target: 'worker' }),
  ),
  ...refusals('sling', '/sling', { target: 'worker' }),
  inFlight('sling', (world, key) => Promise.all(Array.from({ length: 8 }, () => slingInAlpha(world, key, key)))),
  mismatch('sling', (world, key, second) => slingInAlpha(world, key, second ? 'other' : key)),
  ...ofBeads,
]
