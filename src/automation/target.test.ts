import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveTarget } from './target.ts'

const city = {
  agents: [{ identity: 'worker' }, { identity: 'shop/worker' }, { identity: 'shop/core.polecat' }],
  named_sessions: [{ identity: 'mayor' }, { identity: 'shop/clerk' }],
}

test('a word is the agent of the rig, else that of the city; with a slash it is what it says', () => {
  for (const [word, rig, target] of [
    ['worker', 'shop', 'shop/worker'],
    ['worker', '', 'worker'],
    ['worker', 'yard', 'worker'],
    ['clerk', 'shop', 'shop/clerk'],
    ['mayor', 'shop', 'mayor'],
    ['shop/worker', 'yard', 'shop/worker'],
    ['core.polecat', 'shop', 'shop/core.polecat'],
  ] as const)
    assert.deepEqual(resolveTarget(city, word, rig), { target, known: true }, `${word} in ${rig}`)
  for (const word of ['clerk', 'yard/worker', 'polecat', '', 'constructor'])
    assert.deepEqual(resolveTarget(city, word, ''), { target: word, known: false }, word)
})
