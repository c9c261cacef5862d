/** Packs: each success and each refusal of its own. Git, the fence and crashes are in test/e2e/packs.test.ts. */
import assert from 'node:assert/strict'
import type { OperationId } from '../../../src/contract/index.ts'
import { importCached } from '../../support/cached-pack.ts'
import { City } from '../../support/city.ts'
import { at } from '../../support/document.ts'
import { type Answer, assertProblem, eventually } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

class OwnCity extends City {
  /** Puts files there and loads them. */
  async load(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, text] of Object.entries(files)) this.write(path, text)
    await outcome(this.api, String((await this.done('POST', '/config/reload')).request_id))
  }
}

/** A running city that nobody else looks at, with the local packs `mine` and `other`, of which it imports the first. */
async function ownCity(world: World): Promise<OwnCity> {
  const name = world.unique('packs')
  const city = new OwnCity(world.main.api, name, await newCity(world.main.api, world.main.work, name))
  await city.load({
    ...packFiles('mine'),
    ...packFiles('other'),
    'pack.toml': `${city.read('pack.toml')}\n[imports.mine]\nsource = "packs/mine"\n`,
  })
  return city
}

const packFiles = (name: string) => ({
  [`packs/${name}/pack.toml`]: `[pack]\nname = "${name}"\nschema = 2\n`,
  [`packs/${name}/agents/lead/agent.toml`]: 'provider = "shell"\n',
})
const TOOLS = {
  name: 'tools',
  commit: 'c'.repeat(40),
  files: { 'pack.toml': '[pack]\nname = "tools"\nschema = 2\n' },
}
const RIGS = ['shop', 'barn'].map(
  (rig) => `[[rigs]]\nname = "${rig}"\npath = "."\n[rigs.imports.twin]\nsource = "packs/mine"\n`,
)
const CITY = `[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n`

const accepted = (id: OperationId, send: (world: World, city: OwnCity) => Promise<Answer>): Scenario =>
  scenario(id, 202, async (world) => {
    const answer = await send(world, await ownCity(world))
    const ended = await outcome(world.main.api, String(at(answer.body, 'request_id')))
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended))
    return answer
  })

const refused = (
  id: OperationId,
  code:
    | 'unreadable-lock'
    | 'pack-not-found'
    | 'pack-exists'
    | 'pack-changed'
    | 'still-referenced'
    | 'precondition-failed',
  send: (world: World, city: OwnCity) => Promise<Answer>,
): Scenario =>
  scenario(id, code, async (world) => {
    const answer = await send(world, await ownCity(world))
    assertProblem(answer, code)
    return answer
  })

const ambiguous = (id: OperationId, method: 'GET' | 'DELETE'): Scenario =>
  scenario(id, 'ambiguous-pack', async (world) => {
    const city = await ownCity(world)
    await city.load({ 'city.toml': CITY + RIGS.join('') })
    const answer = await world.main.api.call(method, `${city.base}/packs/twin`)
    assertProblem(answer, 'ambiguous-pack', /rig:barn, rig:shop/)
    return answer
  })

const remove = ({ main }: World, { base }: OwnCity, headers: Record<string, string> = {}): Promise<Answer> =>
  main.api.call('DELETE', `${base}/packs/mine`, { headers })

export const packScenarios: readonly Scenario[] = [
  scenario('list-packs', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha/packs')
    assert.equal(at(answer.body, 'items', 0, 'name'), 'core')
    return answer
  }),
  scenario('get-pack', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha/packs/core')
    assert.equal(at(answer.body, 'source'), 'builtin:core')
    return answer
  }),
  refused('get-pack', 'pack-not-found', ({ main }, { base }) => main.api.get(`${base}/packs/mine?scope=rig:none`)),
  ambiguous('get-pack', 'GET'),
  accepted('add-pack', ({ main }, { base }) => main.api.post(`${base}/packs`, { source: 'packs/other' })),
  refused('add-pack', 'pack-exists', ({ main }, { base }) => main.api.post(`${base}/packs`, { source: 'packs/mine' })),
  inFlight('add-pack', async (world, key) => {
    const { base } = await ownCity(world)
    const send = () =>
      world.main.api.post(`${base}/packs`, { source: 'packs/other' }, { headers: { 'idempotency-key': key } })
    return Promise.all(Array.from({ length: 8 }, send))
  }),
  mismatch('add-pack', ({ main }, key, second) =>
    main.api.post(
      '/v0/city/alpha/packs',
      { source: 'builtin:core', name: second ? key : `${key}-2` },
      { headers: { 'idempotency-key': key } },
    ),
  ),
  scenario('trust-pack', 200, async (world) => {
    const city = await ownCity(world)
    await importCached(world.main.server.home, city.dir, TOOLS)
    await city.load({})
    const answer = await world.main.api.post(`${city.base}/packs/tools/trust`, { commit: TOOLS.commit })
    assert.equal(at(answer.body, 'trusted'), true)
    return answer
  }),
  refused('trust-pack', 'pack-not-found', ({ main }, { base }) =>
    main.api.post(`${base}/packs/none/trust`, { commit: TOOLS.commit }),
  ),
  refused('trust-pack', 'pack-changed', async ({ main }, city) => {
    await importCached(main.server.home, city.dir, TOOLS)
    return main.api.post(`${city.base}/packs/tools/trust`, { commit: '0'.repeat(40) })
  }),
  scenario('trust-pack', 'ambiguous-pack', async (world) => {
    const city = await ownCity(world)
    await city.load({ 'city.toml': CITY + RIGS.join('') })
    const answer = await world.main.api.post(`${city.base}/packs/twin/trust`, { commit: TOOLS.commit })
    assertProblem(answer, 'ambiguous-pack', /rig:barn, rig:shop/)
    return answer
  }),
  scenario('create-session', 'untrusted-pack', async (world) => {
    const city = await ownCity(world)
    const files = { ...TOOLS.files, 'agents/lead/agent.toml': 'provider = "shell"\n' }
    await importCached(world.main.server.home, city.dir, { ...TOOLS, commit: 'd'.repeat(40), files })
    await city.load({})
    const body = { kind: 'agent', name: 'tools.lead' }
    const answer = await world.main.api.post(`${city.base}/sessions`, body)
    assertProblem(answer, 'untrusted-pack', /the pack tools is not trusted/)
    return answer
  }),
  scenario('remove-pack', 200, async (world) => {
    const answer = await remove(world, await ownCity(world))
    assert.equal(at(answer.body, 'status'), 'deleted')
    return answer
  }),
  refused('remove-pack', 'pack-not-found', ({ main }, { base }) => main.api.call('DELETE', `${base}/packs/none`)),
  ambiguous('remove-pack', 'DELETE'),
  refused('remove-pack', 'precondition-failed', (world, city) => remove(world, city, { 'if-match': '"older"' })),
  refused('remove-pack', 'still-referenced', async (world, city) => {
    await city.load({ 'city.toml': `${CITY}[[patches.agent]]\nname = "mine.lead"\nidle_timeout = "5m"\n` })
    return remove(world, city)
  }),
  scenario('remove-pack', 'conflict-config', async (world) => {
    const city = await ownCity(world)
    await city.load({ 'city.toml': `${CITY}nonsense = 1\n` })
    const answer = await remove(world, city)
    assertProblem(answer, 'conflict-config', /not valid/)
    return answer
  }),
  scenario('remove-pack', 'invalid-config', async (world) => {
    const city = await ownCity(world)
    // Something of a pack is needed by another one: no file of the city names it.
    await city.load({
      'packs/other/pack.toml':
        '[pack]\nname = "other"\nschema = 2\n[[pack.requires]]\nscope = "city"\nagent = "mine.lead"\n',
      'pack.toml': `${city.read('pack.toml')}\n[imports.other]\nsource = "packs/other"\n`,
    })
    await eventually('both are imported', async () =>
      at((await world.main.api.get(`${city.base}/packs`)).body, 'total') === 3 ? true : undefined,
    )
    const answer = await remove(world, city)
    assertProblem(answer, 'invalid-config')
    return answer
  }),
  accepted('install-packs', ({ main }, { base }) => main.api.post(`${base}/packs/install`)),
  inFlight('install-packs', ({ main }, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        main.api.post('/v0/city/alpha/packs/install', undefined, { headers: { 'idempotency-key': key } }),
      ),
    ),
  ),
  accepted('upgrade-packs', ({ main }, { base }) => main.api.post(`${base}/packs/upgrade`, { names: ['mine'] })),
  refused('upgrade-packs', 'pack-not-found', ({ main }, { base }) =>
    main.api.post(`${base}/packs/upgrade`, { names: ['none'] }),
  ),
  inFlight('upgrade-packs', ({ main }, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        main.api.post('/v0/city/alpha/packs/upgrade', undefined, { headers: { 'idempotency-key': key } }),
      ),
    ),
  ),
  mismatch('upgrade-packs', ({ main }, key, second) =>
    main.api.post('/v0/city/alpha/packs/upgrade', second ? {} : { names: ['core'] }, {
      headers: { 'idempotency-key': key },
    }),
  ),
  scenario('check-packs', 200, async ({ main }) => {
    const answer = await main.api.post('/v0/city/alpha/packs/check')
    assert.equal(at(answer.body, 'ok'), true)
    return answer
  }),
  scenario('explain-pack', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha/packs/core/why')
    assert.equal(at(answer.body, 'packs', 0, 'label'), 'builtin:core')
    return answer
  }),
  refused('explain-pack', 'pack-not-found', ({ main }, { base }) => main.api.get(`${base}/packs/none/why`)),
  scenario('list-pack-cache', 200, async (world) => {
    await importCached(world.main.server.home, (await ownCity(world)).dir, { ...TOOLS, commit: 'e'.repeat(40) })
    const answer = await world.main.api.get('/v0/pack-cache')
    assert.ok(Number(at(answer.body, 'total')) > 0)
    return answer
  }),
  scenario('prune-pack-cache', 200, async ({ empty }) => {
    const answer = await empty.api.post('/v0/pack-cache/prune', { dry_run: true })
    assert.deepEqual(at(answer.body, 'removed'), [])
    return answer
  }),
  refused('prune-pack-cache', 'unreadable-lock', async ({ main }, city) => {
    city.write('packs.lock', 'schema = 9\n')
    const answer = await main.api.post('/v0/pack-cache/prune', { dry_run: true })
    city.remove('packs.lock')
    return answer
  }),
]
