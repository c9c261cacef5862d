/** Workspace services: each success and each refusal of its own. What services do is in test/e2e/services. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { importCached } from '../../support/cached-pack.ts'
import { at } from '../../support/document.ts'
import { type Answer, eventually } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { type EditedCity, onEditedCity } from './edited-city.ts'
import { assertAnswer, type Scenario, scenario, type World } from './scenario.ts'

const SERVE = "require('node:http').createServer((_, r) => r.end('hello')).listen(process.env.SVC_SERVICE_SOCKET)"
const PAGE = `
[[service]]
name = "page"
[service.process]
command = ["node", "-e", "${SERVE}"]
`
const on = onEditedCity('services', PAGE)

const read = (city: EditedCity, path: string) => city.send('GET', `/services${path}`)
const act = (city: EditedCity, path: string, body?: unknown) => city.send('POST', `/services${path}`, body)
const stateOf = (answer: Answer) => at(answer.body, 'state')

/** Each operation on one service refuses a name that there is not. */
const unknown = (operation: Scenario['operation'], method: string, path: string, body?: object): Scenario =>
  on(
    operation,
    'service-not-found',
    (city) => city.send(method, `/services/none${path}`, body),
    (answer) => assert.equal(at(answer.body, 'detail'), 'not_found: service not found: none'),
  )

/** What stands at the place of the secrets is a link: nothing is read through it, nor written. */
const planted = (operation: Scenario['operation'], method: string, path: string, body?: object): Scenario =>
  scenario(operation, 'conflict-wrong-state', async ({ main, unique }: World) => {
    const name = unique('planted')
    const dir = await newCity(main.api, main.work, name)
    mkdirSync(join(dir, '.svc', 'services', 'page'), { recursive: true })
    symlinkSync(main.work, join(dir, '.svc', 'services', 'page', 'secrets'))
    await declared(main.api, name, dir, PAGE)
    const answer = await main.api.call(
      method,
      `/v0/city/${name}/services/page/secrets${path}`,
      body === undefined ? {} : { body },
    )
    assertAnswer(answer, 'conflict-wrong-state')
    return answer
  })

async function declared(api: World['main']['api'], name: string, dir: string, more: string): Promise<void> {
  appendFileSync(join(dir, 'city.toml'), more)
  await outcome(api, String(at((await api.post(`/v0/city/${name}/config/reload`)).body, 'request_id')))
}

const PACK = {
  name: 'tools',
  commit: 'd'.repeat(40),
  files: { 'pack.toml': `[pack]\nname = "tools"\nschema = 2\n${PAGE}` },
}
/** A service of a pack that nobody has trusted. */
const untrusted = (operation: Scenario['operation'], path: string): Scenario =>
  scenario(operation, 'untrusted-pack', async ({ main, unique }: World) => {
    const name = unique('untrusted')
    const dir = await newCity(main.api, main.work, name)
    await importCached(main.server.home, dir, PACK)
    await declared(main.api, name, dir, '')
    const base = `/v0/city/${name}/services/page`
    await eventually('it says why it is not started', async () => {
      const { body } = await main.api.get(base)
      return at(body, 'state') === 'degraded' && at(body, 'reason') === 'untrusted_pack' ? true : undefined
    })
    return main.api.post(`${base}${path}`)
  })

const SECRET = { value: 'correct-horse' }

export const serviceScenarios: readonly Scenario[] = [
  on('list-services', 200, async (city) => {
    await act(city, '/page/restart')
    return read(city, '')
  }),
  on('get-service', 200, (city) => read(city, '/page')),
  unknown('get-service', 'GET', ''),

  on(
    'restart-service',
    200,
    (city) => act(city, '/page/restart'),
    (answer) => assert.equal(stateOf(answer), 'ready'),
  ),
  on('restart-service', 'conflict-wrong-state', async (city) => {
    await act(city, '/page/suspend')
    const answer = await act(city, '/page/restart')
    await act(city, '/page/resume')
    return answer
  }),
  unknown('restart-service', 'POST', '/restart'),
  untrusted('restart-service', '/restart'),

  on(
    'suspend-service',
    200,
    async (city) => {
      const answer = await act(city, '/page/suspend')
      await act(city, '/page/resume')
      return answer
    },
    (answer) => assert.equal(stateOf(answer), 'suspended'),
  ),
  unknown('suspend-service', 'POST', '/suspend'),
  on(
    'resume-service',
    200,
    async (city) => {
      await act(city, '/page/suspend')
      return act(city, '/page/resume')
    },
    (answer) => assert.equal(stateOf(answer), 'ready'),
  ),
  unknown('resume-service', 'POST', '/resume'),
  untrusted('resume-service', '/resume'),

  on('get-service-log', 200, (city) => read(city, '/page/log?offset=0&limit=100')),
  unknown('get-service-log', 'GET', '/log'),

  on(
    'list-service-secrets',
    200,
    async (city) => {
      await city.send('PUT', '/services/page/secrets/password', SECRET)
      return read(city, '/page/secrets')
    },
    (answer) => assert.doesNotMatch(answer.text, /correct-horse/),
  ),
  unknown('list-service-secrets', 'GET', '/secrets'),
  planted('list-service-secrets', 'GET', ''),
  on(
    'put-service-secret',
    200,
    (city) => city.send('PUT', '/services/page/secrets/password', SECRET),
    (answer) => assert.doesNotMatch(answer.text, /correct-horse/),
  ),
  unknown('put-service-secret', 'PUT', '/secrets/password', SECRET),
  planted('put-service-secret', 'PUT', '/password', SECRET),
  on('delete-service-secret', 200, async (city) => {
    await city.send('PUT', '/services/page/secrets/old', SECRET)
    return city.send('DELETE', '/services/page/secrets/old')
  }),
  on('delete-service-secret', 'secret-not-found', (city) => city.send('DELETE', '/services/page/secrets/none')),
  unknown('delete-service-secret', 'DELETE', '/secrets/password'),
  planted('delete-service-secret', 'DELETE', '/password'),
]
