import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_HELD_BYTES, rewinds, settledLength } from './settled.ts'

const CASES: readonly [string, string, string][] = [
  ['text is settled', 'answer\n$ ', ''],
  ['the beginning of a colour waits for its end', 'red \u001b[3', '\u001b[3'],
  ['a colour is settled', 'red \u001b[31m', ''],
  ['the beginning of a title waits for its end', '\u001b]0;a title', '\u001b]0;a title'],
  ['half of the end of a title is none', '\u001b]0;a title\u001b', '\u001b]0;a title\u001b'],
  ['a title is settled', '\u001b]0;a title\u0007\u001b]0;another\u001b\\', ''],
  ['an escape alone is the beginning of something', 'a\u001b', '\u001b'],
  ['a return may be half of the end of a line', '50%\r', '\r'],
  ['a return before the beginning of an escape waits with it', '50%\r\u001b[', '\r\u001b['],
  ['the end of a line is settled', 'line\r\n', ''],
]
for (const [name, bytes, held] of CASES)
  test(name, () => {
    const all = Buffer.from(bytes)
    assert.equal(all.subarray(settledLength(all)).toString(), held)
  })

test('a character is never cut, and little is ever held back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, cut) => {
      const all = Buffer.from(text)
      const some = all.subarray(0, cut % (all.length + 1))
      const length = settledLength(some)
      assert.ok(some.length - length <= MAX_HELD_BYTES)
      const settled = some.subarray(0, length)
      assert.ok(text.startsWith(settled.toString()), 'it reads as the beginning of the text')
    }),
  )
})

test('output that goes back in its line is told from the end of a line', () => {
  assert.deepEqual(
    ['\r20%', '\r\r20%', '\r\n', '\r\r\n', '20%', '\r'].map((text) => rewinds(Buffer.from(text))),
    [true, true, false, false, false, false],
  )
})
