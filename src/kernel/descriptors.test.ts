import assert from 'node:assert/strict'
import { test } from 'node:test'
import { descriptorLimit } from './descriptors.ts'

test('the limit of descriptors is what the system says, and the usual one where it says nothing', () => {
  const limits = (soft: string) =>
    `Limit   Soft Limit  Hard Limit  Units\nMax open files            ${soft}    4096    files\n`
  assert.equal(
    descriptorLimit(() => limits('600')),
    600,
  )
  assert.equal(
    descriptorLimit(() => limits('unlimited')),
    10_240,
  )
  assert.equal(
    descriptorLimit(() => {
      throw new Error('ENOENT')
    }),
    10_240,
  )
})
