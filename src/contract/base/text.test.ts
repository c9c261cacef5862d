import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { cut, cutStart } from './text.ts'

test('cut: a text within its limit stays as it is', () => {
  assert.equal(cut('abc', 3), 'abc')
  assert.equal(cut('', 0), '')
})

test('cut: an emoji at the limit is left out as a whole', () => {
  assert.equal(cut('ab😀', 3), 'ab')
  assert.equal(cut('ab😀c', 4), 'ab😀')
  assert.equal(cut('ab😀c', 4, '…'), 'ab…')
  assert.equal(cutStart('😀ab', 3), 'ab')
  assert.equal(cutStart('x😀ab', 4), '😀ab')
})

test('cut: any text with any limit stays well-formed and within its limit', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), fc.constantFrom('', '…', '...'), (text, limit, mark) => {
      const start = cut(text, limit, mark)
      assert.ok(start.isWellFormed())
      assert.ok(start.length <= Math.max(limit, mark.length))
      assert.ok(text.startsWith(start.slice(0, start.length - mark.length)) || start === text)
      const end = cutStart(text, limit)
      assert.ok(end.isWellFormed())
      assert.ok(end.length <= limit || text.length <= limit)
      assert.ok(text.endsWith(end))
    }),
  )
})
