import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestName, unknownName } from './near-names.ts'

const KNOWN = ['core.worker', 'web/reviewer', 'api/reviewer', 'mayor', 'ci']

for (const [name, meant] of [
  ['worker', 'core.worker'],
  ['reviewer', undefined],
  ['mayro', 'mayor'],
  ['MAYOR', 'mayor'],
  ['co', 'ci'],
  ['cd2', undefined],
  ['nobody', undefined],
] as const) {
  test(`${name} is probably ${meant ?? 'none of them'}`, () => assert.equal(nearestName(name, KNOWN), meant))
}

test('a name that nobody knows is refused with the one that was meant', () => {
  const refused = unknownName('agent-not-found', 'agent', 'worker', KNOWN)
  assert.equal(refused.detail, 'not_found: there is no agent worker: did you mean core.worker?')
  assert.equal(unknownName('agent-not-found', 'agent', 'nobody', KNOWN).detail, 'not_found: there is no agent nobody')
})
