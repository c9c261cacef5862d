// What tests draw is the same in every run, and another where somebody asks for it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc, SEED, seededRandom, seedFrom } from '../support/random.ts'

test('everything that is drawn comes from the one seed', () => {
  assert.equal(fc.readConfigureGlobal().seed, SEED)
  assert.deepEqual(fc.sample(fc.nat(), 5), fc.sample(fc.nat(), { numRuns: 5, seed: SEED }))
  const draw = (random = seededRandom()) => [random.next(), random.next()]
  assert.deepEqual(draw(), draw(seededRandom(SEED)))
  assert.notDeepEqual(draw(), draw(seededRandom(SEED + 1)))
})

test('the seed is the usual one, the one that SVC_SEED names, or a new one; nothing else is taken for one', () => {
  assert.equal(seedFrom(undefined), seedFrom(undefined))
  assert.deepEqual([seedFrom('7'), seedFrom('-5926276')], [7, -5926276])
  assert.notEqual(seedFrom('random'), seedFrom('random'))
  for (const said of ['', 'seven', '1.5']) assert.throws(() => seedFrom(said), /SVC_SEED is a whole number or random/)
})

test('a property that fails names the seed', () => {
  assert.throws(() => fc.assert(fc.property(fc.nat(), (n) => n < 0)), new RegExp(`seed: ${SEED}`))
})
