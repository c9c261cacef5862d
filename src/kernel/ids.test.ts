import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ulid } from './ids.ts'

test('what is made later sorts later, also within one millisecond', () => {
  const made = [1_000, ...Array.from({ length: 1_000 }, () => 1_001), 1_002].map(ulid)
  assert.deepEqual(made.toSorted(), made)
  assert.equal(new Set(made).size, made.length)
  for (const id of made) assert.match(id, /^[0-9A-HJKMNP-TV-Z]{26}$/)
})
