/** Accepted requests. */
import assert from 'node:assert/strict'
import { listRequests } from '../../../src/contract/requests.ts'
import { at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { type Scenario, scenario } from './scenario.ts'

export const requestScenarios: readonly Scenario[] = [
  scenario('list-requests', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/requests?operation=city.create&city=alpha&status=succeeded')
    assert.equal(at(answer.body, 'total'), 1)
    assert.equal(at(answer.body, 'items', 0, 'city'), 'alpha')
    assert.equal(at(answer.body, 'items', 0, 'result', 'name'), 'alpha')
    return answer
  }),
  scenario('list-requests', 'invalid-cursor', async ({ main }) => {
    for (const cursor of ['x', 'v1:', 'v1:AAAA', `v1:${Buffer.from('["city","a"]').toString('base64url')}`, '']) {
      assertProblem(await main.api.get(`/v0/requests?cursor=${cursor}`), 'invalid-cursor', /^invalid_cursor: cursor /)
    }
    return main.api.get('/v0/requests?cursor=v0')
  }),
  scenario('get-request', 200, async ({ main }) => {
    const { items } = await main.api.ask(listRequests, '/v0/requests?city=alpha&operation=city.create')
    const answer = await main.api.get(`/v0/requests/${items[0]?.request_id}`)
    assert.deepEqual(answer.body, items[0])
    return answer
  }),
  scenario('get-request', 'request-not-found', async ({ main }) => {
    const answer = await main.api.get('/v0/requests/req-0123456789abcdef01234567')
    assertProblem(answer, 'request-not-found', 'not_found: no such request: req-0123456789abcdef01234567')
    return answer
  }),
]
