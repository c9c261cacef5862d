/** Looking for work: each success and each refusal of its own. What is found is in test/e2e/beads/reading.test.ts. */
import assert from 'node:assert/strict'
import { createBead } from '../../../src/contract/beads.ts'
import { at } from '../../support/document.ts'
import type { Api } from '../../support/http.ts'
import { type Scenario, scenario, scenariosOn } from './scenario.ts'

const BASE = '/v0/city/alpha/beads'
const STALE_CURSOR = encodeURIComponent('v1:nonsense')

const on = scenariosOn(({ main }) => main.api)

const create = async (api: Api, body: object): Promise<string> =>
  (await api.ask(createBead, BASE, { body: { title: 'scenario', ...body } })).id

/** A list that has a bead of this label, and nothing else. */
const finds = (operation: Scenario['operation'], path: (label: string) => string): Scenario =>
  scenario(operation, 200, async ({ main, unique }) => {
    const label = unique('label')
    const id = await create(main.api, { labels: [label] })
    const got = await main.api.get(path(label))
    assert.equal(at(got.body, 'items', 0, 'id'), id)
    assert.equal(at(got.body, 'total'), 1)
    return got
  })

export const readingScenarios: readonly Scenario[] = [
  finds('list-beads', (label) => `${BASE}?label=${label}`),
  on('list-beads', 'invalid-cursor', (api) => api.get(`${BASE}?cursor=${STALE_CURSOR}`)),
  on('list-beads', 'rig-not-found', (api) => api.get(`${BASE}?rig=none`)),
  finds('list-ready-beads', (label) => `${BASE}/ready?label=${label}`),
  on('list-ready-beads', 'invalid-cursor', (api) => api.get(`${BASE}/ready?cursor=${STALE_CURSOR}`)),
  on('list-ready-beads', 'rig-not-found', (api) => api.get(`${BASE}/ready?rig=none`)),
  finds('query-beads', (label) => `${BASE}/query?q=${encodeURIComponent(`label:${label} AND status=open`)}`),
  on('query-beads', 'invalid-cursor', (api) => api.get(`${BASE}/query?q=is:open&cursor=${STALE_CURSOR}`)),
  on('list-hook', 200, async (api) => {
    const id = await create(api, { assignee: 'reader-of-hooks' })
    const got = await api.get(`${BASE}/hook?agent=reader-of-hooks`)
    assert.deepEqual([at(got.body, 'items', 0, 'id'), at(got.body, 'items', 0, 'tier')], [id, 'assigned'])
    return got
  }),
  on('claim-hook', 200, async (api) => {
    const id = await create(api, { assignee: 'taker-of-hooks' })
    const got = await api.post(`${BASE}/hook/claim`, { agent: 'taker-of-hooks' })
    assert.deepEqual([at(got.body, 'action'), at(got.body, 'bead_id')], ['work', id])
    return got
  }),
]
