import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EMPTY_LINE, type Key, KeyReader, type Line, textOf, typed } from './keys.ts'

/** As words: letters as they are, keys by name. */
const said = (keys: readonly Key[]) => keys.map((key) => ('text' in key ? `${key.key}:${key.text}` : key.key))

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['a1é語😀', ['text:a', 'text:1', 'text:é', 'text:語', 'text:😀']],
  ['\u001b[A\u001b[B\u001bOA\u001b[5~\u001b[6~', ['up', 'down', 'up', 'page-up', 'page-down']],
  [
    '\u001b[Z\t\r\u007f\u0003\u0004\u001a',
    ['back-tab', 'tab', 'enter', 'backspace', 'interrupt', 'end-of-input', 'suspend'],
  ],
  // Keys that nobody knows: with modifiers, control characters without a meaning.
  ['\u001b[1;5Cx\u0002y', ['text:x', 'text:y']],
  ['\u001b[200~q\r1\u001b[A\u001b[201~z', ['paste:q\r1\u001b[A', 'text:z']],
  ['\u001bq', ['escape', 'text:q']],
]

for (const [bytes, keys] of CASES)
  test(`keys of ${JSON.stringify(bytes)}, whole and byte by byte`, () => {
    assert.deepEqual(said(new KeyReader().feed(Buffer.from(bytes))), keys)
    const reader = new KeyReader()
    assert.deepEqual(said([...Buffer.from(bytes)].flatMap((byte) => reader.feed(Uint8Array.of(byte)))), keys)
  })

test('an escape is held back until it is known to be one', () => {
  const reader = new KeyReader()
  assert.deepEqual(reader.feed(Buffer.from('\u001b')), [])
  assert.equal(reader.waits, true)
  assert.deepEqual(said(reader.flush()), ['escape'])
  assert.equal(reader.waits, false)
})

test('a line is typed, mended and pasted into', () => {
  const after = (...keys: readonly Key[]) => keys.reduce<Line>(typed, EMPTY_LINE)
  const letters = (text: string): Key[] => [...text].map((letter) => ({ key: 'text', text: letter }))
  assert.equal(textOf(after(...letters('ab語'), { key: 'backspace' }, ...letters('c'))), 'abc')
  assert.equal(textOf(after(...letters('bc'), { key: 'home' }, ...letters('a'), { key: 'delete' })), 'ac')
  assert.equal(textOf(after(...letters('one two'), { key: 'clear-word' })), 'one ')
  assert.equal(textOf(after(...letters('one'), { key: 'clear-line' })), '')
  assert.equal(textOf(after({ key: 'paste', text: 'a\r\nb' })), 'a b')
})
