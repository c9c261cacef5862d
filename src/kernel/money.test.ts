import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { costOf, formatUsd, parsePrice, parseUsd } from './money.ts'

test('money is read and shown without losing a digit', () => {
  for (const text of ['0.00', '0.10', '12.00', '0.000125', '0.000000001', '123456789.987654321'])
    assert.equal(formatUsd(parseUsd(text) ?? -1n), text)
  assert.equal(formatUsd(parseUsd(0.1 + 0.2) ?? -1n), '0.30')
  assert.equal(formatUsd(parseUsd(1e-7) ?? -1n), '0.0000001')
  for (const wrong of ['', '-1', '1,5', 'NaN', '1.', '.5', '1e400']) assert.equal(parseUsd(wrong), undefined, wrong)
})

test('any whole number of nano-dollars comes back as it was', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n }), (nano) => {
      assert.equal(parseUsd(formatUsd(nano)), nano)
    }),
  )
})

test('a turn is rounded once, not once for each kind of token', () => {
  const price = parsePrice(0.0004) ?? -1n
  // Four tenths of a nano-dollar each: alone they would be nothing, together they are one and two tenths.
  assert.equal(costOf([1, 1, 1].map((tokens) => ({ tokens, price }))), 1n)
  assert.equal(costOf([{ tokens: 1_000_000, price: parsePrice(3.75) ?? -1n }]), 3_750_000_000n)
  assert.equal(costOf([{ tokens: 9_007_199_254_740_991, price: parsePrice(15) ?? -1n }]), 135_107_988_821_114_865_000n)
})
