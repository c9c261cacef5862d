/** Text of any characters for fast-check: `fc.string({ unit: codePoint })`. */
import assert from 'node:assert/strict'
import { fc } from './random.ts'

const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800
const LAST = 0x10ffff

/** The same characters as fast-check's own `binary`, which takes a second to tabulate them all. */
export const codePoint: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES })
  .map((nth) => String.fromCodePoint(nth < FIRST_SURROGATE ? nth : nth + SURROGATES), nthOf)

function nthOf(text: unknown): number {
  assert.ok(typeof text === 'string' && text.isWellFormed() && text.length > 0)
  const code = text.codePointAt(0) ?? 0
  assert.equal(text, String.fromCodePoint(code))
  return code < FIRST_SURROGATE ? code : code - SURROGATES
}
