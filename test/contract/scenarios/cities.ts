/** Cities: each success and each refusal of their own. The rules of their life are in test/e2e. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCity, startCity } from '../../../src/contract/cities.ts'
import type { OperationId } from '../../../src/contract/index.ts'
import { at } from '../../support/document.ts'
import { type Answer, assertProblem } from '../../support/http.ts'
import { cityItem, newCity, outcome, succeeds } from '../../support/running.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const ATTEMPTS = 30

/** A running city of its own; answers with its name. */
async function anyCity(world: World): Promise<string> {
  const name = world.unique()
  await newCity(world.main.api, world.main.work, name)
  return name
}

/** The directory of a city that is not registered any more. */
async function leftBehind(world: World): Promise<string> {
  const { api, work } = world.main
  const name = world.unique()
  const dir = await newCity(api, work, name)
  const { body } = await api.post(`/v0/city/${name}/unregister`)
  await outcome(api, String(at(body, 'request_id')))
  return dir
}

const settled = async (world: World, answer: Answer): Promise<Answer> => {
  await succeeds(world.main.api, { request_id: String(at(answer.body, 'request_id')) })
  return answer
}

/** The same request many times at once, until one finds the same operation under way. */
const inProgress = (
  operation: OperationId,
  detail: RegExp,
  send: (world: World) => Promise<() => Promise<Answer>>,
): Scenario =>
  scenario(operation, 'operation-in-progress', async (world) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const again = await send(world)
      const answers = await Promise.all(Array.from({ length: 8 }, again))
      const refused = answers.find(({ status, body }) => status === 409 && at(body, 'code') === 'operation-in-progress')
      if (refused === undefined) continue
      const problem = assertProblem(refused, 'operation-in-progress', detail)
      const ids = answers.filter(({ status }) => status === 202).map(({ body }) => at(body, 'request_id'))
      if (problem.request_id !== undefined) assert.ok(ids.includes(problem.request_id))
      return refused
    }
    assert.fail('no request found another under way')
  })

const launches = (id: 'start-city' | 'restart-city', verb: string): Scenario[] => [
  scenario(id, 202, async (world) => {
    const name = await anyCity(world)
    const answer = await world.main.api.post(`/v0/city/${name}/${verb}`)
    const request = await succeeds(world.main.api, { request_id: String(at(answer.body, 'request_id')) })
    assert.equal(request.operation, `city.${verb}`)
    assert.equal((await cityItem(world.main.api, name))?.running, true)
    return answer
  }),
  scenario(id, 'city-not-found', async ({ main }) => {
    const answer = await main.api.post(`/v0/city/nowhere/${verb}`)
    assertProblem(answer, 'city-not-found', 'not_found: city not found or not running: nowhere')
    return answer
  }),
  inProgress(id, new RegExp(`^conflict: city\\.${verb} of [\\w-]+ is already under way$`), async (world) => {
    const name = await anyCity(world)
    return () => world.main.api.post(`/v0/city/${name}/${verb}`)
  }),
  inFlight(id, async (world, key) => {
    const name = await anyCity(world)
    const headers = { 'idempotency-key': key }
    return Promise.all(
      Array.from({ length: 8 }, () => world.main.api.post(`/v0/city/${name}/${verb}`, undefined, { headers })),
    )
  }),
]

const createScenarios: readonly Scenario[] = [
  scenario('create-city', 202, async (world) => {
    const { api, work } = world.main
    const name = world.unique()
    const body = { dir: join(work, name), provider: 'shell', bootstrap_profile: 'single-host-compat' }
    return settled(world, await api.post('/v0/city', body))
  }),
  scenario('create-city', 'city-already-initialized', async ({ main }) => {
    const dir = join(main.work, 'alpha')
    const answer = await main.api.post('/v0/city', { dir, name: 'another' })
    assertProblem(answer, 'city-already-initialized', `conflict: city already initialized at ${dir}`)
    return answer
  }),
  scenario('create-city', 'city-name-taken', async ({ main }) => {
    const dir = join(main.work, 'elsewhere', 'alpha')
    const answer = await main.api.post('/v0/city', { dir })
    assertProblem(
      answer,
      'city-name-taken',
      `conflict: a city named alpha is registered at ${join(main.work, 'alpha')}`,
    )
    return answer
  }),
  inProgress('create-city', /^conflict: city initialization already in progress at /, async (world) => {
    const { api, work } = world.main
    const dir = join(work, world.unique())
    return () => api.post('/v0/city', { dir })
  }),
  scenario('create-city', 'missing-dependency', async ({ gitless }) => {
    const answer = await gitless.api.post('/v0/city', { dir: join(gitless.work, 'alpha') })
    const { errors } = assertProblem(answer, 'missing-dependency', 'missing_dependency: the host lacks git')
    assert.equal(errors?.[0]?.location, 'host.git')
    assert.match(String(errors?.[0]?.message), /git is not installed: /)
    assert.ok(!readdirSync(gitless.work).includes('alpha'))
    return answer
  }),
  scenario('create-city', 'provider-not-ready', async ({ empty }) => {
    const answer = await empty.api.post('/v0/city', { dir: join(empty.work, 'alpha') })
    const { errors } = assertProblem(
      answer,
      'provider-not-ready',
      /^provider_not_ready: provider shell is not ready: not_installed /,
    )
    assert.equal(errors?.[0]?.location, 'body.provider')
    assert.ok(!readdirSync(empty.work).includes('alpha'))
    return answer
  }),
  scenario('create-city', 'unsupported', async ({ unwired }) => {
    const answer = await unwired.api.post('/v0/city', { dir: join(unwired.work, 'alpha') })
    assertProblem(answer, 'unsupported', 'unsupported: this supervisor has no initializer wired')
    return answer
  }),
  scenario('create-city', 'validation-failed', refusedBodies),
  inFlight('create-city', async ({ main, unique }, key) => {
    const body = { dir: join(main.work, unique()) }
    const headers = { 'idempotency-key': key }
    return Promise.all(Array.from({ length: 6 }, () => main.api.post('/v0/city', body, { headers })))
  }),
  mismatch('create-city', ({ main }, key, second) =>
    main.api.post(
      '/v0/city',
      { dir: join(main.work, key), ...(second ? { provider: 'shell' } : {}) },
      { headers: { 'idempotency-key': key } },
    ),
  ),
]

/** Everything about a body of `POST /v0/city` that is refused with 422, and nothing written for any of it. */
async function refusedBodies({ main, unique }: World): Promise<Answer> {
  const { api, work } = main
  const parent = join(work, unique('refused'))
  mkdirSync(parent)
  const file = join(parent, 'file')
  writeFileSync(file, 'x')
  const loop = join(parent, 'loop')
  symlinkSync(loop, loop)
  const dir = join(parent, 'city')
  const before = readdirSync(parent)
  const wrong: readonly (readonly [object, string, string?])[] = [
    [{}, 'body.dir', 'validation_failed: body.dir: is required'],
    [{ dir: '' }, 'body.dir'],
    [{ dir: 7 }, 'body.dir'],
    [{ dir: `${parent}/../x` }, 'body.dir', 'validation_failed: body.dir: must not contain ".."'],
    [{ dir: `${dir}\u0000` }, 'body.dir', 'validation_failed: body.dir: must not contain a NUL character'],
    [{ dir: `${parent}/white space` }, 'body.dir'],
    [{ dir: `${parent}/${'n'.repeat(65)}` }, 'body.dir'],
    [{ dir: '/' }, 'body.dir'],
    [{ dir: '/proc/nobody/makes-this' }, 'body.dir'],
    [{ dir: file, name: 'city' }, 'body.dir'],
    [{ dir: join(file, 'below'), name: 'city' }, 'body.dir'],
    [{ dir: join(loop, 'below'), name: 'city' }, 'body.dir'],
    [{ dir, name: '-dash' }, 'body.name'],
    [{ dir, name: '' }, 'body.name'],
    [{ dir, name: 'a/b' }, 'body.name'],
    [{ dir, name: '__supervisor__' }, 'body.name'],
    [{ dir, provider: 'nobody' }, 'body.provider', 'validation_failed: body.provider: invalid provider'],
    [{ dir, provider: '' }, 'body.provider'],
    [{ dir, start_command: '' }, 'body.start_command'],
    [
      { dir, provider: 'shell', start_command: 'sh' },
      'body.start_command',
      'validation_failed: body.start_command: cannot be combined with provider',
    ],
    [{ dir, bootstrap_profile: 'mainframe' }, 'body.bootstrap_profile'],
    [{ dir, colour: 'red' }, 'body.colour', 'validation_failed: body.colour: is not a known field'],
  ]
  for (const [body, location, detail] of wrong) {
    const answer = await api.post('/v0/city', body)
    const { errors } = assertProblem(answer, 'validation-failed', detail)
    assert.ok(
      errors?.some((error) => error.location === location),
      `${JSON.stringify(body)}: ${JSON.stringify(errors)}`,
    )
  }
  assert.deepEqual(readdirSync(parent), before)
  return api.post('/v0/city', { dir, provider: 'nobody' })
}

const adoptScenarios: readonly Scenario[] = [
  scenario('adopt-city', 202, async (world) => {
    const path = await leftBehind(world)
    return settled(world, await world.main.api.post('/v0/cities', { path }))
  }),
  scenario('adopt-city', 200, async ({ main }) => {
    const answer = await main.api.post('/v0/cities', { path: join(main.work, 'alpha') })
    assert.equal(at(answer.body, 'name'), 'alpha')
    assert.equal(at(answer.body, 'running'), true)
    return answer
  }),
  scenario('adopt-city', 'directory-not-found', async ({ main }) => {
    const path = join(main.work, 'void')
    const answer = await main.api.post('/v0/cities', { path })
    assertProblem(answer, 'directory-not-found', `not_found: no city at ${path}`)
    return answer
  }),
  scenario('adopt-city', 'city-name-taken', async (world) => {
    const path = await leftBehind(world)
    const answer = await world.main.api.post('/v0/cities', { path, name: 'alpha' })
    assertProblem(
      answer,
      'city-name-taken',
      `conflict: a city named alpha is registered at ${join(world.main.work, 'alpha')}`,
    )
    return answer
  }),
  inProgress('adopt-city', /^conflict: city initialization already in progress at /, async (world) => {
    const path = await leftBehind(world)
    return () => world.main.api.post('/v0/cities', { path })
  }),
  scenario('adopt-city', 'unsupported', async ({ unwired }) => {
    const answer = await unwired.api.post('/v0/cities', { path: join(unwired.work, 'alpha') })
    assertProblem(answer, 'unsupported', 'unsupported: this supervisor has no initializer wired')
    return answer
  }),
  inFlight('adopt-city', async (world, key) => {
    const path = await leftBehind(world)
    const headers = { 'idempotency-key': key }
    return Promise.all(Array.from({ length: 8 }, () => world.main.api.post('/v0/cities', { path }, { headers })))
  }),
  mismatch('adopt-city', async (world, key, second) => {
    const path = join(world.main.work, 'moved', key)
    if (!existsSync(path)) {
      mkdirSync(join(world.main.work, 'moved'), { recursive: true })
      renameSync(await leftBehind(world), path)
    }
    return world.main.api.post(
      '/v0/cities',
      { path, ...(second ? { name: 'other' } : {}) },
      { headers: { 'idempotency-key': key } },
    )
  }),
]

export const cityScenarios: readonly Scenario[] = [
  scenario('list-cities', 200, ({ main }) => main.api.get('/v0/cities?limit=1')),
  scenario('list-cities', 'invalid-cursor', async ({ main }) => {
    const answer = await main.api.get('/v0/cities?cursor=nonsense')
    assertProblem(answer, 'invalid-cursor', 'invalid_cursor: cursor not a page of this list: "nonsense"')
    return answer
  }),
  ...createScenarios,
  ...adoptScenarios,
  scenario('get-city', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha')
    assert.equal(answer.headers.etag, `"${at(answer.body, 'revision')}"`)
    return answer
  }),
  scenario('patch-city', 200, ({ main }) => main.api.call('PATCH', '/v0/city/alpha', { body: {} })),
  scenario('patch-city', 'precondition-failed', async ({ main }) => {
    const { revision } = await main.api.ask(getCity, '/v0/city/alpha')
    const answer = await main.api.call('PATCH', '/v0/city/alpha', {
      body: { suspended: true },
      headers: { 'if-match': '"other"' },
    })
    assertProblem(answer, 'precondition-failed', `precondition_failed: the item has changed: its ETag is "${revision}"`)
    assert.equal((await main.api.ask(getCity, '/v0/city/alpha')).suspended, false)
    return answer
  }),
  scenario('patch-city', 'validation-failed', async ({ main }) => {
    for (const body of [{ suspended: 'yes' }, { suspended: null }, { name: 'x' }, []]) {
      assertProblem(await main.api.call('PATCH', '/v0/city/alpha', { body }), 'validation-failed')
    }
    return main.api.call('PATCH', '/v0/city/alpha', { body: { suspended: 1 } })
  }),
  scenario('get-city-status', 200, ({ main }) => main.api.get('/v0/city/alpha/status')),
  scenario('get-city-health', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha/health')
    assert.equal(at(answer.body, 'city'), 'alpha')
    return answer
  }),
  ...launches('start-city', 'start'),
  ...launches('restart-city', 'restart'),
  scenario('stop-city', 200, async (world) => {
    const name = await anyCity(world)
    const answer = await world.main.api.post(`/v0/city/${name}/stop`)
    assert.deepEqual(answer.body, {
      status: 'stopped',
      city: name,
      already_stopped: false,
      sessions_stopped: 0,
      forced: false,
    })
    return answer
  }),
  scenario('stop-city', 'city-not-found', async ({ main }) => {
    const answer = await main.api.post('/v0/city/nowhere/stop')
    assertProblem(answer, 'city-not-found', 'not_found: city not found or not running: nowhere')
    return answer
  }),
  scenario('stop-city', 'validation-failed', async ({ main }) => {
    assertProblem(await main.api.post('/v0/city/alpha/stop', { timeout: 'soon' }), 'validation-failed')
    assertProblem(await main.api.post('/v0/city/alpha/stop', { force: 'yes' }), 'validation-failed')
    const answer = await main.api.post('/v0/city/alpha/stop', { timeout: '121s' })
    assertProblem(answer, 'validation-failed', 'validation_failed: body.timeout: must be at most 2m')
    return answer
  }),
  scenario('stop-city', 'gateway-timeout', async (world) => {
    const { api } = world.main
    const name = await anyCity(world)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const answer = await api.post(`/v0/city/${name}/stop`, { timeout: '1ns' })
      if (answer.status === 504) {
        assertProblem(answer, 'gateway-timeout', `timeout: ${name} is not stopped yet; the stop goes on`)
        return answer
      }
      await succeeds(api, await api.ask(startCity, `/v0/city/${name}/start`))
    }
    assert.fail('every stop was faster than a nanosecond')
  }),
  scenario('stop-city', 'conflict-wrong-state', async (world) => {
    const { api } = world.main
    const name = await anyCity(world)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const [answer, start] = await Promise.all([
        api.post(`/v0/city/${name}/stop`),
        api.ask(startCity, `/v0/city/${name}/start`),
      ])
      // The other way round the stop comes upon a start that is under way, and ends it.
      const started = await outcome(api, start.request_id)
      if (started.status === 'failed') assert.equal(started.error_code, 'stopped')
      if (answer.status === 409) {
        assertProblem(answer, 'conflict-wrong-state', `conflict: ${name} was started again before it had stopped`)
        return answer
      }
    }
    assert.fail('no start overtook a stop')
  }),
  scenario('unregister-city', 202, async (world) => {
    const name = await anyCity(world)
    return settled(world, await world.main.api.post(`/v0/city/${name}/unregister`))
  }),
  scenario('unregister-city', 'city-not-found', async ({ main }) => {
    const answer = await main.api.post('/v0/city/nowhere/unregister')
    assertProblem(answer, 'city-not-found', 'not_found: city not registered with supervisor: nowhere')
    return answer
  }),
  scenario('unregister-city', 'unsupported', async ({ unwired }) => {
    const answer = await unwired.api.post('/v0/city/nowhere/unregister')
    assertProblem(answer, 'unsupported', 'unsupported: this supervisor has no initializer wired')
    return answer
  }),
  inFlight('unregister-city', async (world, key) => {
    const name = await anyCity(world)
    const headers = { 'idempotency-key': key }
    return Promise.all(
      Array.from({ length: 8 }, () => world.main.api.post(`/v0/city/${name}/unregister`, undefined, { headers })),
    )
  }),
]
