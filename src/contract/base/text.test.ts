import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { cut, cutStart, isBlank } from './text.ts'

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

test('isBlank: a text of zero-width characters, spaces and fillers shows nothing', () => {
  for (const text of ['', ' ', '\u200b', '\u2060\ufeff', '\u3164', '\u00a0\u2003\t', '\u202e', '\ufe0f', '\u2800'])
    assert.ok(isBlank(text), JSON.stringify(text))
  for (const text of ['a', '\u200ba', '😀', '日本', '.', 'é', '👩\u200d💻']) assert.ok(!isBlank(text), text)
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
