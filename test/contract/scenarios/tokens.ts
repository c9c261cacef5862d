/** Tokens. */
import { strict as assert } from 'node:assert'
import { createToken } from '../../../src/contract/tokens.ts'
import { at } from '../../support/document.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const made = ({ main, unique }: World, more: { readonly city?: string } = {}) =>
  main.api.ask(createToken, '/v0/tokens', { body: { name: unique('token'), role: 'viewer', ...more } })

export const tokenScenarios: readonly Scenario[] = [
  scenario('create-token', 201, async ({ main, unique }) => {
    const name = unique('token')
    const answer = await main.api.post('/v0/tokens', { name, role: 'admin', city: 'alpha' })
    assert.match(String(at(answer.body, 'token')), /^[0-9a-f]{64}$/)
    assert.deepEqual([at(answer.body, 'name'), at(answer.body, 'city')], [name, 'alpha'])
    return answer
  }),
  scenario('create-token', 'name-taken', async (world) => {
    const { name } = await made(world)
    return world.main.api.post('/v0/tokens', { name, role: 'admin' })
  }),
  scenario('list-tokens', 200, async (world) => {
    const { token, ...shown } = await made(world, { city: 'alpha' })
    const answer = await world.main.api.get('/v0/tokens')
    assert.ok(!answer.text.includes(token))
    const items = at(answer.body, 'items')
    assert.ok(Array.isArray(items))
    assert.deepEqual(
      items.find((item) => at(item, 'id') === shown.id),
      shown,
    )
    return answer
  }),
  scenario('delete-token', 200, async (world) => {
    const { name } = await made(world)
    const { id } = await made(world)
    assert.equal((await world.main.api.call('DELETE', `/v0/tokens/${name}`)).status, 200)
    return world.main.api.call('DELETE', `/v0/tokens/${id}`)
  }),
  scenario('delete-token', 'token-not-found', async ({ main }) => main.api.call('DELETE', '/v0/tokens/nobody')),
]
