/** Rigs: each success and each refusal of its own. Files, git and clones are in test/e2e/rigs*.test.ts. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { onEditedCity, STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import type { Scenario } from './scenario.ts'

const START = `[[rigs]]
name = "shop"
path = "shop"
`
const on = onEditedCity('rigs', START)
const MASON = '[[agent]]\nname = "mason"\ndir = "shop"\nprovider = "shell"\n'
/** A name that no resolver knows: the request is accepted, and fails. */
const NOWHERE = 'https://nowhere.invalid/x.git'
const ATTEMPTS = 30

export const rigScenarios: readonly Scenario[] = [
  on(
    'list-rigs',
    200,
    (city) => city.send('GET', '/rigs'),
    ({ body }) => assert.equal(at(body, 'items', 0, 'name'), 'shop'),
  ),
  on(
    'get-rig',
    200,
    (city) => city.send('GET', '/rigs/shop?git=true'),
    ({ body }) => assert.equal(at(body, 'prefix'), 'sh'),
  ),
  on('get-rig', 'rig-not-found', (city) => city.send('GET', '/rigs/none')),

  on('create-rig', 201, (city) => city.send('POST', '/rigs', { name: 'barn', path: 'barn' })),
  on('create-rig', 202, (city) => city.send('POST', '/rigs', { name: 'lost', git_url: NOWHERE })),
  on('create-rig', 'name-taken', (city) => city.send('POST', '/rigs', { name: 'shop', path: 'x' })),
  on('create-rig', 'operation-in-progress', async (city) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const name = city.world.unique('rig')
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => city.send('POST', '/rigs', { name, git_url: NOWHERE })),
      )
      const refused = answers.find(({ status }) => status === 409)
      if (refused === undefined) continue
      assert.ok(
        answers.some(({ status, body }) => status === 202 && at(body, 'request_id') === at(refused.body, 'request_id')),
      )
      return refused
    }
    assert.fail('no request found another under way')
  }),
  on('create-rig', 'precondition-failed', (city) => city.send('POST', '/rigs', { name: 'barn', path: 'barn' }, STALE)),
  on('create-rig', 'invalid-config', (city) =>
    city.send('POST', '/rigs', { name: 'barn', path: 'barn', prefix: 'sh' }),
  ),
  on('create-rig', 'conflict-config', (city) => {
    city.spoil()
    return city.send('POST', '/rigs', { name: 'barn', path: 'barn' })
  }),
  inFlight('create-rig', ({ main }, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        main.api.post(
          '/v0/city/alpha/rigs',
          { name: key, path: key, prefix: key },
          { headers: { 'idempotency-key': key } },
        ),
      ),
    ),
  ),
  mismatch('create-rig', ({ main }, key, second) =>
    main.api.post(
      '/v0/city/alpha/rigs',
      { name: key, path: second ? 'elsewhere' : key, prefix: key },
      { headers: { 'idempotency-key': key } },
    ),
  ),

  on('patch-rig', 200, (city) => city.send('PATCH', '/rigs/shop', { default_branch: 'main' })),
  on('patch-rig', 'rig-not-found', (city) => city.send('PATCH', '/rigs/none', {})),
  on('patch-rig', 'precondition-failed', (city) => city.send('PATCH', '/rigs/shop', {}, STALE)),
  on('patch-rig', 'invalid-config', (city) => city.send('PATCH', '/rigs/shop', { default_sling_target: 'nobody' })),
  on('patch-rig', 'still-referenced', async (city) => {
    // A rig of its own: the shop is deleted by another, which takes one without work.
    await city.say(`${START}[[rigs]]\nname = "yard"\npath = "yard"\n`)
    await city.send('POST', '/beads', { title: 'of the yard', rig: 'yard' })
    return city.send('PATCH', '/rigs/yard', { prefix: 'other' })
  }),
  on('patch-rig', 'conflict-config', (city) => {
    city.spoil()
    return city.send('PATCH', '/rigs/shop', { default_branch: 'main' })
  }),

  on('delete-rig', 200, (city) => city.send('DELETE', '/rigs/shop')),
  on('delete-rig', 'rig-not-found', (city) => city.send('DELETE', '/rigs/none')),
  on('delete-rig', 'still-referenced', async (city) => {
    await city.say(START + MASON)
    return city.send('DELETE', '/rigs/shop')
  }),
  on('delete-rig', 'precondition-failed', (city) => city.send('DELETE', '/rigs/shop', undefined, STALE)),
  on('delete-rig', 'invalid-config', async (city) => {
    // What goes with the rig is needed by what stays.
    await city.say(`${START}${MASON}[[agent]]\nname = "lead"\nprovider = "shell"\ndepends_on = ["shop/mason"]\n`)
    return city.send('DELETE', '/rigs/shop?cascade=true')
  }),
  on('delete-rig', 'conflict-config', (city) => {
    city.spoil()
    return city.send('DELETE', '/rigs/shop')
  }),

  on(
    'act-on-rig',
    200,
    (city) => city.send('POST', '/rigs/shop/restart'),
    ({ body }) => assert.equal(at(body, 'name'), 'shop'),
  ),
  on('act-on-rig', 'rig-not-found', (city) => city.send('POST', '/rigs/none/suspend')),
  on('act-on-rig', 'precondition-failed', (city) => city.send('POST', '/rigs/shop/suspend', undefined, STALE)),
]
