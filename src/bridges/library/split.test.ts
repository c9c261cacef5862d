import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effortOf } from '../../../test/support/effort.ts'
import { bounded, linesOf } from './split.ts'

test('lines fit, break at blanks, and lose nothing but blanks', () => {
  const text = Array.from({ length: 500 }, (_, index) => 'wörter-'.repeat(index % 7) + index).join(' ')
  const lines = linesOf(text, 60)
  for (const line of lines) assert.ok(Buffer.byteLength(line) <= 60 && line.trim() === line && line !== '')
  assert.equal(lines.join('').replaceAll(' ', ''), text.replaceAll(' ', ''))
})

test('what is seen as one character is not torn', () => {
  const family = '👨‍👩‍👧‍👦'
  const lines = linesOf(family.repeat(20), 60)
  assert.equal(lines.join(''), family.repeat(20))
  for (const line of lines) assert.equal(line.replaceAll(family, ''), '')
})

test('one character that is larger than a line ends the work all the same', () => {
  const marks = `e${'\u0301'.repeat(500)}`
  const lines = linesOf(marks, 50)
  assert.equal(lines.join(''), marks)
  for (const line of lines) assert.ok(Buffer.byteLength(line) <= 50)
})

test('breaks make lines, controls go, and nothing empty is left', () => {
  assert.deepEqual(linesOf('a\r\nb\rc\u2028d\n\n \u0000\n\u0001e\tf\u007f\u0085', 100), ['a', 'b', 'c', 'd', 'e f'])
  assert.deepEqual(linesOf('', 100), [])
})

test('too many lines are counted, not said', () => {
  assert.deepEqual(bounded(['1', '2', '3', '4'], 3), ['1', '2', '… and 2 more lines: the whole is in the transcript'])
  assert.deepEqual(bounded(['1', '2', '3'], 3), ['1', '2', '3'])
})

test('64 KiB without a blank are split in no time', () => {
  const { result, ms } = effortOf(() => linesOf('x'.repeat(64 * 1024), 400))
  assert.equal(result.join('').length, 64 * 1024)
  assert.ok(ms < 2_000, `${ms} ms`)
})
