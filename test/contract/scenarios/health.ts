/** Health and readiness. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { type Scenario, scenario } from './scenario.ts'

const readiness = (id: 'get-readiness' | 'get-city-readiness', path: string): Scenario[] => [
  scenario(id, 200, async ({ main }) => {
    const answer = await main.api.get(`${path}?items=shell,git,%20git&fresh=true`)
    const items = at(answer.body, 'items')
    assert.deepEqual(Object.keys(Object(items)), ['shell', 'git'])
    assert.equal(at(items, 'git', 'kind'), 'tool')
    assert.equal(at(items, 'git', 'status'), 'configured')
    assert.ok(at(items, 'git', 'observed_at'))
    assert.equal((await main.api.get(path)).status, 200)
    return answer
  }),
  scenario(id, 'invalid-request', async ({ main }) => {
    const answer = await main.api.get(`${path}?items=git,nonsense`)
    assertProblem(answer, 'invalid-request', 'invalid: unsupported items value "nonsense"')
    assertProblem(await main.api.get(`${path}?items=`), 'validation-failed')
    assertProblem(await main.api.get(`${path}?fresh=yes`), 'validation-failed')
    return answer
  }),
]

const providers = (id: 'get-provider-readiness' | 'get-city-provider-readiness', path: string): Scenario[] => [
  scenario(id, 200, async ({ main }) => {
    const answer = await main.api.get(`${path}?providers=shell&fresh=true`)
    assert.equal(at(answer.body, 'providers', 'shell', 'display_name'), 'Shell')
    assert.equal((await main.api.get(path)).status, 200)
    return answer
  }),
  scenario(id, 'invalid-request', async ({ main }) => {
    // A tool is no provider.
    const answer = await main.api.get(`${path}?providers=git`)
    assertProblem(answer, 'invalid-request', 'invalid: unsupported providers value "git"')
    return answer
  }),
]

export const healthScenarios: readonly Scenario[] = [
  scenario('get-health', 200, async ({ main, closed }) => {
    // Open also where everything else needs a token.
    assert.equal((await closed.api.get('/health', { headers: { authorization: undefined } })).status, 200)
    const answer = await main.api.get('/health')
    assert.ok(Number(at(answer.body, 'cities_running')) >= 1)
    return answer
  }),
  ...readiness('get-readiness', '/v0/readiness'),
  ...readiness('get-city-readiness', '/v0/city/alpha/readiness'),
  ...providers('get-provider-readiness', '/v0/provider-readiness'),
  ...providers('get-city-provider-readiness', '/v0/city/alpha/provider-readiness'),
  scenario('get-metrics', 200, async ({ main }) => {
    const answer = await main.api.get('/metrics')
    assert.match(answer.text, /^svc_/m)
    return answer
  }),
]
