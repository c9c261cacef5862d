import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineTooLong, lineSplitter } from './lines.ts'

test('lines arrive whole however the bytes are cut', () => {
  const whole = Buffer.from('one\n\ntwo é\nrest')
  for (let size = 1; size <= whole.length; size++) {
    const splitter = lineSplitter(64)
    const lines: string[] = []
    for (let at = 0; at < whole.length; at += size) {
      lines.push(...splitter.push(whole.subarray(at, at + size)).map(String))
    }
    assert.deepEqual([...lines, String(splitter.rest())], ['one\n', '\n', 'two é\n', 'rest'])
  }
})

test('a line over the limit is refused before it is whole, one at the limit is not', () => {
  assert.deepEqual(lineSplitter(4).push(Buffer.from('abc\nabc\n')).map(String), ['abc\n', 'abc\n'])
  const splitter = lineSplitter(4)
  splitter.push(Buffer.from('abc'))
  assert.throws(() => splitter.push(Buffer.from('de')), LineTooLong)
})
