/** The contract's own documents. */
import assert from 'node:assert/strict'
import { openapi } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { type Scenario, scenario } from './scenario.ts'

export const documentScenarios: readonly Scenario[] = [
  scenario('get-openapi', 200, async ({ main }) => {
    const answer = await main.api.get('/openapi.json')
    assert.deepEqual(answer.body, openapi)
    return answer
  }),
  scenario('get-event-schema', 200, ({ main }) => main.api.get('/events.json')),
  scenario('get-city-schema', 200, ({ main }) => main.api.get('/city.schema.json')),
  scenario('get-agent-schema', 200, ({ main }) => main.api.get('/agent.schema.json')),
  scenario('get-formula-schema', 200, ({ main }) => main.api.get('/formula.schema.json')),
  scenario('get-order-schema', 200, ({ main }) => main.api.get('/order.schema.json')),
  scenario('get-docs', 200, async ({ main }) => {
    const answer = await main.api.get('/docs')
    assert.match(String(answer.headers['content-security-policy']), /default-src 'self'/)
    return answer
  }),
  scenario('get-docs-asset', 200, ({ main }) => main.api.get('/docs/start.js')),
  scenario('get-docs-asset', 'route-not-found', async ({ main }) => {
    const answer = await main.api.get('/docs/nothing.js')
    assertProblem(answer, 'route-not-found', 'not_found: no such file: nothing.js')
    return answer
  }),
]
