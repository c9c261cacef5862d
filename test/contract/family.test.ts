/** What the declarations of operations add by themselves, and what they refuse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { family, qualified } from '../../src/contract/base/family.ts'
import { object, optional, string } from '../../src/contract/base/schema.ts'
import { EVENT_TYPES, REQUEST_OPERATIONS } from '../../src/contract/event-types.ts'
import { OPERATIONS } from '../../src/contract/index.ts'

const THINGS = { name: 'Things', about: 'For the tests.' }
const id = string({ description: 'Id.' })
const things = family(
  THINGS,
  '/things',
  { id },
  { replyHeaders: ['X-SVC-Index'], replies: { 200: object({}) }, problems: ['name-taken'] },
)

test('an operation has what its family, its place and itself say', () => {
  const thing = things.at('/{id}', { problems: ['bead-not-found'], headers: ['If-Match'] })
  const done = thing.post('finish-thing', '/finish', {
    summary: 'Finish',
    replies: { 200: object({ late: optional(string()) }) },
    replyHeaders: ['ETag'],
    problems: ['still-referenced'],
  })
  assert.deepEqual(done, {
    id: 'finish-thing',
    method: 'POST',
    path: '/things/{id}/finish',
    family: THINGS,
    summary: 'Finish',
    params: object({ id }),
    headers: ['If-Match'],
    replies: { 200: object({ late: optional(string()) }) },
    replyHeaders: ['X-SVC-Index', 'ETag'],
    problems: ['name-taken', 'bead-not-found', 'still-referenced'],
  })
})

test('a parameter of a path without a schema is found when the contract is loaded', () => {
  assert.throws(() => things.get('get-part', '/{part}', { summary: 'Get' }), /no schema for \{part\}/)
})

test('a 202 that accepts nothing, and something accepted without a 202, are found when the contract is loaded', () => {
  const replies = { 202: object({}) }
  assert.throws(() => things.post('make-thing', '', { summary: 'Make', replies }), /make-thing: who answers 202/)
  assert.throws(
    () => things.post('make-thing', '', { summary: 'Make', accepts: 'pack.add' }),
    /make-thing: who answers 202/,
  )
})

test('a name of two parts has an operation of its own, made from the same declaration', () => {
  const thing = things.get('get-thing', '/{id}', { summary: 'Get' })
  const [plain, twin] = qualified('id', { dir: id, base: id }, [thing])
  assert.equal(plain, thing)
  assert.deepEqual(twin, {
    ...thing,
    id: 'get-thing-qualified',
    path: '/things/{dir}/{base}',
    params: object({ dir: id, base: id }),
    twin: { of: 'get-thing', name: 'id' },
  })
})

test('everything that has a result can be asked for, and ends there where its log says', () => {
  const accepted = new Set(OPERATIONS.map(({ accepts }) => accepts))
  for (const name of REQUEST_OPERATIONS) {
    assert.ok(accepted.has(name), name)
    assert.equal(EVENT_TYPES[`request.result.${name}`].log, name.startsWith('city.') ? 'supervisor' : 'city')
  }
})
