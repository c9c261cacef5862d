import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forTerminal } from './terminal-text.ts'

const CASES: readonly [string, string, string][] = [
  ['an escape sequence', 'a\u001b]0;title\u0007b', 'a\\u001b]0;title\\u0007b'],
  ['an escape sequence in one letter', 'a\u009b2Jb', 'a\\u009b2Jb'],
  ['a text that is shown backwards', 'user\u202egnp.exe', 'user\\u202egnp.exe'],
  ['an isolate', '\u2066x\u2069', '\\u2066x\\u2069'],
  ['a backspace and a delete', 'ab\b\u007f', 'ab\\u0008\\u007f'],
  ['a screen that is cleared in the middle', 'a\u001b[H\u001b[2Jb', 'a\\u001b[H\\u001b[2Jb'],
  ['a cursor that is moved', '\u001b[10A\u001b[31m', '\\u001b[10A\u001b[31m'],
]
for (const [what, text, shown] of CASES)
  test(`${what} does not reach a terminal`, () => assert.equal(forTerminal(text), shown))

test('text, tables, colours and progress of our own reach a terminal as they are', () => {
  for (const text of [
    'a\tb\r\n',
    'שלום\u200f ما',
    '日本',
    '\u001b[2mNAME\u001b[22m',
    '\r12 %\u001b[K',
    '\u001b[H\u001b[2Jx',
  ])
    assert.equal(forTerminal(text), text)
})

test('JSON with such characters stays the same JSON', () => {
  const value = { text: 'a\u009b\u202e\u007f\u001b' }
  assert.deepEqual(JSON.parse(forTerminal(JSON.stringify(value))), value)
})
