import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { backoffMs } from './backoff.ts'

test('a delay lies in the upper half of its step, and never below what the server asked for', () => {
  fc.assert(
    fc.property(
      fc.nat(100_000),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.nat(1_000), { nil: undefined }),
      (attempt, random, asked) => {
        const delay = backoffMs(attempt, random, asked)
        const step = Math.min(30_000, 1_000 * 2 ** Math.min(attempt, 20))
        const floor = Math.min(120_000, (asked ?? 0) * 1000)
        assert.ok(delay >= Math.max(step / 2, floor))
        assert.ok(delay <= Math.max(step, floor))
      },
    ),
  )
})
