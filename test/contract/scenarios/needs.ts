/** Needs: each success and each refusal of its own. What opens and clears them is in test/e2e/needs. */
import assert from 'node:assert/strict'
import { asMap, at } from '../../support/document.ts'
import { type Answer, eventually } from '../../support/http.ts'
import { type Scenario, scenariosOn, type World } from './scenario.ts'

const BASE = '/v0/city/alpha'

class Desk {
  readonly world: World

  constructor(world: World) {
    this.world = world
  }

  send(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.world.main.api.call(method, path, body === undefined ? {} : { body })
  }

  /** The need of unread mail, whose id is given back. */
  async need(): Promise<string> {
    await this.send('POST', `${BASE}/mail`, { to: 'human', subject: 'look', body: 'at this' })
    return await eventually('mail is a need', async () => {
      const { body } = await this.send('GET', `${BASE}/needs?kind=mail&snoozed=true`)
      const [first] = [at(body, 'items')].flat()
      return first === undefined ? undefined : String(at(first, 'id'))
    })
  }
}

const on = scenariosOn((world) => new Desk(world))

export const needScenarios: readonly Scenario[] = [
  on('list-needs', 200, async (desk) => {
    const id = await desk.need()
    const answer = await desk.send('GET', '/v0/needs?snoozed=true&limit=1000&city=alpha')
    const items = [at(answer.body, 'items')].flat()
    assert.ok(items.some((item) => asMap(item)['id'] === id))
    return answer
  }),
  on('list-needs', 'invalid-cursor', (desk) => desk.send('GET', '/v0/needs?cursor=x')),
  on('list-city-needs', 200, async (desk) => {
    await desk.need()
    return desk.send('GET', `${BASE}/needs`)
  }),
  on('list-city-needs', 'invalid-cursor', (desk) => desk.send('GET', `${BASE}/needs?cursor=x`)),
  on('snooze-need', 200, async (desk) => {
    const answer = await desk.send('POST', `${BASE}/needs/${await desk.need()}/snooze`, { for: '1h' })
    assert.ok(at(answer.body, 'snoozed_until') !== undefined)
    return answer
  }),
  on('snooze-need', 'need-not-found', (desk) => desk.send('POST', `${BASE}/needs/nd-none/snooze`, { for: '1h' })),
]
