/** Agents: each success and each refusal of their own. What files and sessions do is in test/e2e/agents. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { type Answer, eventually } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { openStream } from '../../support/sse.ts'
import { type EditedCity, onEditedCity, STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import type { Scenario, World } from './scenario.ts'

const START = `[daemon]
patrol_interval = "200ms"
shutdown_timeout = "200ms"
[[rigs]]
name = "shop"
path = "shop"
[[agent]]
name = "lead"
provider = "shell"
[[agent]]
name = "mason"
dir = "shop"
provider = "shell"
`
const NEEDED = `${START}[[agent]]
name = "boss"
provider = "shell"
depends_on = ["lead", "shop/mason"]
`
const PACKED = 'packs/tools/agents/packed/agent.toml'
const MANIFEST = '[pack]\nname = "tools"\nschema = 2\n'
/** It can do nothing without these agents. */
const NEEDS = `requires = [{ scope = "city", agent = "lead" }, { scope = "rig", agent = "mason" }]\n`
const PACK = {
  'packs/tools/pack.toml': MANIFEST,
  [PACKED]: 'provider = "shell"\n',
}
const on = onEditedCity('agents', START)

/** An agent of the city, and one of a rig by two segments or by one: the answers are the same. */
const BOTH = [
  { suffix: '', path: '/agents/lead', none: '/agents/nobody' },
  { suffix: '-qualified', path: '/agents/shop/mason', none: '/agents/shop/nobody' },
  { suffix: '', path: '/agents/shop%2Fmason', none: '/agents/shop%2Fnobody' },
] as const

async function withPack(
  city: EditedCity,
  rig: boolean,
  use: (path: string) => Promise<Answer>,
  more = '',
): Promise<Answer> {
  const pack = city.read('pack.toml')
  const source = 'source = "packs/tools"\n'
  const files = { ...PACK, 'packs/tools/pack.toml': MANIFEST + more }
  if (rig) await city.say(START.replace('path = "shop"\n', `path = "shop"\n[rigs.imports.tools]\n${source}`), files)
  else await city.say(START, { ...files, 'pack.toml': `${pack}\n[imports.tools]\n${source}` })
  const answer = await use(rig ? '/agents/shop/tools.packed' : '/agents/tools.packed')
  await city.say(START, { 'pack.toml': pack })
  return answer
}

/** While a pool of two runs: its output is that of neither. */
async function withPool(city: EditedCity, path: string, use: () => Promise<Answer>): Promise<Answer> {
  const name = path.split(/\/|%2F/).at(-1) ?? ''
  await city.say(START.replace(`name = "${name}"\n`, `name = "${name}"\nmin_active_sessions = 2\n`))
  await eventually('both instances are there', async () =>
    at((await city.send('GET', path)).body, 'sessions') === 2 ? true : undefined,
  )
  const answer = await use()
  await city.say(START)
  await eventually('both are gone', async () =>
    at((await city.send('GET', path)).body, 'sessions') === 0 ? true : undefined,
  )
  return answer
}

/** The head of the stream of an agent of which nothing runs. */
async function opened(city: EditedCity, path: string): Promise<Answer> {
  const stream = await openStream(city.api, `${city.base}${path}`)
  await stream[Symbol.asyncDispose]()
  const { operation, headers } = stream
  assert.equal(headers['svc-agent-status'], 'stopped')
  return { operation, status: 200, headers, text: '', bytes: Buffer.of(), body: undefined }
}

/** Agents of a city that nobody tidies up: each scenario adds some. */
const crowds = new WeakMap<World, Promise<string>>()
function crowded(world: World): Promise<string> {
  const name = world.unique('crowd')
  const path = crowds.get(world) ?? newCity(world.main.api, world.main.work, name).then(() => `/v0/city/${name}/agents`)
  crowds.set(world, path)
  return path
}

const both = BOTH.flatMap(({ suffix, path, none }): Scenario[] => [
  on(
    `get-agent${suffix}`,
    200,
    (city) => city.send('GET', path),
    ({ body }) => assert.equal(at(body, 'definition', 'provider'), 'shell'),
  ),
  on(`get-agent${suffix}`, 'agent-not-found', (city) => city.send('GET', none)),

  on(
    `replace-agent${suffix}`,
    200,
    (city) => city.send('PUT', path, { provider: 'shell', description: 'new' }),
    ({ body }) => assert.equal(at(body, 'description'), 'new'),
  ),
  on(`replace-agent${suffix}`, 'agent-not-found', (city) => city.send('PUT', none, {})),
  on(`replace-agent${suffix}`, 'pack-derived', (city) =>
    withPack(city, suffix !== '', (packed) => city.send('PUT', packed, {})),
  ),
  on(`replace-agent${suffix}`, 'precondition-failed', (city) => city.send('PUT', path, {}, STALE)),
  on(`replace-agent${suffix}`, 'invalid-config', (city) => city.send('PUT', path, { provider: 'none' })),
  on(`replace-agent${suffix}`, 'conflict-config', (city) => {
    city.spoil()
    return city.send('PUT', path, { provider: 'shell', description: 'new' })
  }),

  on(
    `patch-agent${suffix}`,
    200,
    (city) => city.send('PATCH', path, { description: 'new' }),
    ({ body }) => assert.equal(at(body, 'description'), 'new'),
  ),
  on(`patch-agent${suffix}`, 'agent-not-found', (city) => city.send('PATCH', none, {})),
  on(`patch-agent${suffix}`, 'pack-derived', (city) =>
    withPack(city, suffix !== '', (packed) => city.send('PATCH', packed, { description: 'new' })),
  ),
  on(`patch-agent${suffix}`, 'precondition-failed', (city) => city.send('PATCH', path, {}, STALE)),
  on(`patch-agent${suffix}`, 'invalid-config', (city) => city.send('PATCH', path, { provider: 'none' })),
  on(`patch-agent${suffix}`, 'conflict-config', (city) => {
    city.spoil()
    return city.send('PATCH', path, { description: 'new' })
  }),

  on(`delete-agent${suffix}`, 200, (city) => city.send('DELETE', path)),
  on(`delete-agent${suffix}`, 'agent-not-found', (city) => city.send('DELETE', none)),
  on(`delete-agent${suffix}`, 'pack-derived', (city) =>
    withPack(city, suffix !== '', (packed) => city.send('DELETE', packed)),
  ),
  on(`delete-agent${suffix}`, 'still-referenced', async (city) => {
    await city.say(NEEDED)
    return city.send('DELETE', path)
  }),
  on(`delete-agent${suffix}`, 'invalid-config', (city) =>
    withPack(city, suffix !== '', () => city.send('DELETE', path), NEEDS),
  ),
  on(`delete-agent${suffix}`, 'precondition-failed', (city) => city.send('DELETE', path, undefined, STALE)),
  on(`delete-agent${suffix}`, 'conflict-config', (city) => {
    city.spoil()
    return city.send('DELETE', path)
  }),

  on(
    `suspend-agent${suffix}`,
    200,
    (city) => city.send('POST', `${path}/suspend`),
    ({ body }) => assert.equal(at(body, 'state'), 'suspended'),
  ),
  on(`suspend-agent${suffix}`, 'agent-not-found', (city) => city.send('POST', `${none}/suspend`)),
  on(`suspend-agent${suffix}`, 'conflict-config', (city) => {
    city.spoil()
    return city.send('POST', `${path}/suspend`)
  }),
  on(
    `resume-agent${suffix}`,
    200,
    async (city) => {
      await city.send('POST', `${path}/suspend`)
      return city.send('POST', `${path}/resume`)
    },
    ({ body }) => assert.equal(at(body, 'suspended'), false),
  ),
  on(`resume-agent${suffix}`, 'agent-not-found', (city) => city.send('POST', `${none}/resume`)),
  on(`resume-agent${suffix}`, 'conflict-config', async (city) => {
    await city.send('POST', `${path}/suspend`)
    city.spoil()
    return city.send('POST', `${path}/resume`)
  }),

  on(`get-agent-output${suffix}`, 200, (city) => city.send('GET', `${path}/output`)),
  on(`get-agent-output${suffix}`, 'agent-not-found', (city) => city.send('GET', `${none}/output`)),
  on(`get-agent-output${suffix}`, 'ambiguous-session', (city) =>
    withPool(city, path, () => city.send('GET', `${path}/output`)),
  ),
  on(`get-agent-output${suffix}`, 'transcript-cursor-invalidated', async (city) => {
    const name = decodeURIComponent(path.slice('/agents/'.length))
    const accepted = await city.send('POST', '/sessions', { kind: 'agent', name, runtime: 'subprocess' })
    await outcome(city.api, String(at(accepted.body, 'request_id')))
    const answer = await city.send('GET', `${path}/output?before=7-7`)
    await city.send('POST', `/sessions/${String(at(accepted.body, 'session_id'))}/close?delete=true`)
    return answer
  }),
  on(`stream-agent-output${suffix}`, 200, (city) => opened(city, `${path}/output/stream`)),
  on(`stream-agent-output${suffix}`, 'agent-not-found', (city) => city.send('GET', `${none}/output/stream`)),
  on(`stream-agent-output${suffix}`, 'invalid-cursor', (city) =>
    city.send('GET', `${path}/output/stream?after_cursor=x`),
  ),
  on(`stream-agent-output${suffix}`, 'ambiguous-session', (city) =>
    withPool(city, path, () => city.send('GET', `${path}/output/stream`)),
  ),
])

export const agentScenarios: readonly Scenario[] = [
  on(
    'list-agents',
    200,
    (city) => city.send('GET', '/agents'),
    ({ body }) => assert.ok(JSON.stringify(body).includes('"name":"lead"')),
  ),
  on('list-agents', 'rig-not-found', (city) => city.send('GET', '/agents?rig=none')),
  on('list-agents', 'invalid-cursor', (city) => city.send('GET', '/agents?cursor=x')),

  on(
    'create-agent',
    201,
    (city) => city.send('POST', '/agents', { name: 'new', dir: 'shop', provider: 'shell' }),
    ({ body }) => assert.equal(at(body, 'name'), 'shop/new'),
  ),
  on(
    'create-agent',
    'validation-failed',
    (city) => city.send('POST', '/agents', { name: 'output', provider: 'shell' }),
    ({ body }) =>
      assert.equal(
        at(body, 'detail'),
        'validation_failed: body.name: must not be one of ["output","suspend","resume","prompt"]: they are reserved',
      ),
  ),
  on('create-agent', 'name-taken', (city) => city.send('POST', '/agents', { name: 'lead', provider: 'shell' })),
  on('create-agent', 'rig-not-found', (city) => city.send('POST', '/agents', { name: 'new', dir: 'none' })),
  on('create-agent', 'precondition-failed', (city) =>
    city.send('POST', '/agents', { name: 'new', dir: 'shop', provider: 'shell' }, STALE),
  ),
  on('create-agent', 'invalid-config', (city) =>
    city.send('POST', '/agents', { name: 'new', dir: 'shop', provider: 'none' }),
  ),
  on('create-agent', 'conflict-config', (city) => {
    city.spoil()
    return city.send('POST', '/agents', { name: 'new', dir: 'shop', provider: 'shell' })
  }),
  inFlight('create-agent', async (world, key) => {
    const path = await crowded(world)
    const create = () =>
      world.main.api.post(path, { name: key, provider: 'shell' }, { headers: { 'idempotency-key': key } })
    return Promise.all(Array.from({ length: 8 }, create))
  }),
  mismatch('create-agent', async (world, key, second) =>
    world.main.api.post(
      await crowded(world),
      { name: key, provider: 'shell', description: second ? 'other' : 'one' },
      { headers: { 'idempotency-key': key } },
    ),
  ),
  ...both,
]
