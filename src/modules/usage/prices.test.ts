import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effortOf } from '../../../test/support/effort.ts'
import { priceOf } from './prices.ts'

const PRICES = [
  { model: 'claude-*-5*', input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
  { model: 'claude-*', input: 1, output: 5 },
  { model: 'free', input: 0, output: 0, cache_read: 0, cache_write: 0 },
]
const used = (input: number, output = 0, cache_read = 0, cache_write = 0) => ({
  input,
  output,
  cache_read,
  cache_write,
})

const CASES: readonly (readonly [string, string, ReturnType<typeof used>, bigint | undefined])[] = [
  ['every kind of token has its price', 'claude-opus-5-1', used(10, 40, 1000, 5), 948_750n],
  ['the first entry that is about the model counts', 'claude-opus-5', used(1_000_000), 3_000_000_000n],
  ['case makes no difference', 'Claude-Haiku', used(1), 1_000n],
  ['what has no price makes the whole unknown', 'claude-haiku', used(1, 1, 1), undefined],
  ['what was not used needs no price', 'claude-haiku', used(1, 1), 6_000n],
  ['a model that nobody has priced is unknown, not free', 'gpt-x', used(1), undefined],
  ['a price of nothing is known', 'free', used(1, 1, 1, 1), 0n],
  ['a glob is anchored', 'my-claude-opus', used(1), undefined],
]

for (const [name, model, tokens, cost] of CASES)
  test(name, () => {
    assert.equal(priceOf(PRICES, model, tokens), cost)
  })

test('a pattern of stars is answered at once', () => {
  const stars = { model: `${'*a'.repeat(100)}b`, input: 1, output: 1 }
  assert.ok(effortOf(() => priceOf([stars], 'a'.repeat(200), used(1))).ms < 100)
})
