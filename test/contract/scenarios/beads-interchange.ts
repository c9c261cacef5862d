/** Import and export of beads: each answer once. What they do is in test/e2e/beads/interchange.test.ts. */
import assert from 'node:assert/strict'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import { at } from '../../support/document.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const BASE = '/v0/city/alpha/beads'
const LINE = '{"id":"al-imported","title":"Imported","mystery":1}'

const send = ({ main }: World, path: string, bytes: string) =>
  main.api.call('POST', `${BASE}/import${path}`, { bytes, headers: { 'content-type': LINES_TYPE } })

export const interchangeScenarios: readonly Scenario[] = [
  scenario('import-beads', 200, async (world) => {
    const answer = await send(world, '', `${LINE}\nnonsense\n`)
    assert.equal(at(answer.body, 'failed'), 1)
    assert.equal(at(answer.body, 'errors', 0, 'line'), 2)
    return answer
  }),
  scenario('import-beads', 'rig-not-found', (world) => send(world, '?rig=nowhere', LINE)),
  scenario('export-beads', 200, async (world) => {
    await send(world, '', LINE)
    const answer = await world.main.api.get(`${BASE}/export`)
    assert.match(answer.text, /^\{.*"id":"al-imported","title":"Imported".*"mystery":1/m)
    return answer
  }),
  scenario('export-beads', 'rig-not-found', ({ main }) => main.api.get(`${BASE}/export?rig=nowhere`)),
]
