/** Providers: each success and each refusal of its own. What they say and how files change is in test/e2e/providers.test.ts. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { type EditedCity, onEditedCity, STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario } from './scenario.ts'

const on = onEditedCity('providers', '[providers.mine]\ncommand = "cat"\n')
const PACK = { 'packs/tools/pack.toml': '[pack]\nname = "tools"\nschema = 2\n[providers.packed]\ncommand = "cat"\n' }

async function withPack(city: EditedCity, method: string, body?: unknown) {
  const pack = city.read('pack.toml')
  await city.say('', { ...PACK, 'pack.toml': `${pack}\n[imports.tools]\nsource = "packs/tools"\n` })
  const answer = await city.send(method, '/providers/packed', body)
  await city.say('', { 'pack.toml': pack })
  return answer
}

export const providerScenarios: readonly Scenario[] = [
  on(
    'list-providers',
    200,
    (city) => city.send('GET', '/providers'),
    ({ body }) => assert.equal(at(body, 'items', 0, 'name'), 'mine'),
  ),
  on('list-public-providers', 200, (city) => city.send('GET', '/providers/public')),
  on(
    'get-provider',
    200,
    (city) => city.send('GET', '/providers/mine'),
    ({ body }) => assert.equal(at(body, 'command'), 'cat'),
  ),
  on('get-provider', 'provider-not-found', (city) => city.send('GET', '/providers/none')),

  on('create-provider', 201, (city) => city.send('POST', '/providers', { name: 'new', base: 'claude' })),
  on('create-provider', 'name-taken', (city) => city.send('POST', '/providers', { name: 'mine', command: 'tac' })),
  on('create-provider', 'precondition-failed', (city) =>
    city.send('POST', '/providers', { name: 'new', command: 'tac' }, STALE),
  ),
  on('create-provider', 'invalid-config', (city) =>
    city.send('POST', '/providers', { name: 'new', base: 'provider:none' }),
  ),
  on('create-provider', 'conflict-config', (city) => {
    city.spoil()
    return city.send('POST', '/providers', { name: 'new', command: 'tac' })
  }),
  inFlight('create-provider', ({ main }, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        main.api.post(
          '/v0/city/alpha/providers',
          { name: key, command: 'cat' },
          { headers: { 'idempotency-key': key } },
        ),
      ),
    ),
  ),
  mismatch('create-provider', ({ main }, key, second) =>
    main.api.post(
      '/v0/city/alpha/providers',
      { name: key, command: second ? 'tac' : 'cat' },
      { headers: { 'idempotency-key': key } },
    ),
  ),

  on('patch-provider', 200, (city) => city.send('PATCH', '/providers/mine', { command: 'tac' })),
  on('patch-provider', 'provider-not-found', (city) => city.send('PATCH', '/providers/none', {})),
  on('patch-provider', 'provider-builtin', (city) => city.send('PATCH', '/providers/claude', {})),
  on('patch-provider', 'pack-derived', (city) => withPack(city, 'PATCH', {})),
  on('patch-provider', 'precondition-failed', (city) => city.send('PATCH', '/providers/mine', {}, STALE)),
  on('patch-provider', 'invalid-config', (city) => city.send('PATCH', '/providers/mine', { base: 'provider:none' })),
  on('patch-provider', 'conflict-config', (city) => {
    city.spoil()
    return city.send('PATCH', '/providers/mine', { command: 'tac' })
  }),

  on('delete-provider', 200, (city) => city.send('DELETE', '/providers/mine')),
  on('delete-provider', 'provider-not-found', (city) => city.send('DELETE', '/providers/none')),
  on('delete-provider', 'provider-builtin', (city) => city.send('DELETE', '/providers/claude')),
  on('delete-provider', 'pack-derived', (city) => withPack(city, 'DELETE')),
  on('delete-provider', 'still-referenced', async (city) => {
    await city.send('POST', '/providers', { name: 'heir', base: 'provider:mine' })
    return city.send('DELETE', '/providers/mine')
  }),
  on('delete-provider', 'precondition-failed', (city) => city.send('DELETE', '/providers/mine', undefined, STALE)),
  on('delete-provider', 'conflict-config', (city) => {
    city.spoil()
    return city.send('DELETE', '/providers/mine')
  }),
  // A declared name is the same path for all: `public` is a list of its own.
  scenario('list-public-providers', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/city/alpha/providers/public')
    assert.equal(answer.operation?.id, 'list-public-providers')
    return answer
  }),
]
