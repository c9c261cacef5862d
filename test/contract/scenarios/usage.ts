/** Usage. What is recorded, and when, is in test/e2e/usage. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { type Scenario, scenario } from './scenario.ts'

const BASE = '/v0/city/alpha'
const NOTHING = { turns: 0, input: 0, output: 0, cache_read: 0, cache_write: 0, unpriced_turns: 0 }

export const usageScenarios: readonly Scenario[] = [
  scenario('list-usage', 200, async ({ main }) => {
    const answer = await main.api.get(`${BASE}/usage?by=day&since=2020-01-01&until=24h`)
    assert.deepEqual(at(answer.body, 'sum'), NOTHING)
    return answer
  }),
  scenario('list-usage', 'invalid-cursor', ({ main }) => main.api.get(`${BASE}/usage?cursor=x`)),
  scenario('get-budget', 200, async ({ main }) => {
    const answer = await main.api.get(`${BASE}/budget`)
    assert.deepEqual([at(answer.body, 'today'), at(answer.body, 'action')], [NOTHING, 'warn'])
    return answer
  }),
]
