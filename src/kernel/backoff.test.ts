import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffMs } from './backoff.ts'

const PAUSES = { firstMs: 1_000, longestMs: 30_000 }

test('back-off: doubles from the first pause to the longest', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 6, 1_000_000].map((failures) => backoffMs(PAUSES, failures)),
    [1_000, 1_000, 2_000, 4_000, 30_000, 30_000],
  )
})

test('back-off: chance spreads a pause over its upper half', () => {
  assert.equal(backoffMs(PAUSES, 1, 0), 500)
  assert.equal(backoffMs(PAUSES, 2, 0.5), 1_500)
  assert.ok(backoffMs(PAUSES, 6, 0.999) < 30_000)
})
