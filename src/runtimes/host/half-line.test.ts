import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HalfLine } from './half-line.ts'

/** What was typed, and whether that leaves half a line. */
const CASES: readonly (readonly [what: string, typed: readonly string[], open: boolean])[] = [
  ['text', ['git'], true],
  ['text and Enter', ['git', '\r'], false],
  ['text behind an Enter', ['git\rst'], true],
  ['text that was erased again', ['äb', '\x7f', '\x7f'], false],
  ['more erased than was there, then text', ['\x7f\x7f\x7f', 'a'], true],
  ['an interrupt', ['git', '\x03'], false],
  ['the line thrown away', ['git', '\x15'], false],
  ['a line of the history', ['\x1b[A'], true],
  ['the same in the other mode of the keys', ['\x1bOA'], true],
  ['a paste', ['\x1b[200~two\rlines\x1b[201~'], true],
  ['Escape alone', ['\x1b'], false],
  ['the mouse', ['\x1b[<0;12;30M\x1b[<0;12;30m'], false],
  ['the focus', ['\x1b[I\x1b[O'], false],
  [
    'answers of the terminal',
    ['\x1b[12;3R\x1b[?62;22c\x1b[?2026;2$y\x1b]11;rgb:1e1e/1e1e/1e1e\x07\x1bP>|term 1\x1b\\'],
    false,
  ],
]

for (const [what, typed, open] of CASES)
  test(`${what} ${open ? 'leaves' : 'is not'} half a line`, () => {
    const told: boolean[] = []
    const line = new HalfLine((typing) => told.push(typing))
    for (const bytes of typed) line.typed(Buffer.from(bytes))
    assert.equal(line.open, open)
    assert.equal(told.at(-1) ?? false, open)
  })

test('keys of a bot end a half line and begin none', () => {
  const line = new HalfLine(() => {})
  line.keyed('abc')
  assert.equal(line.open, false)
  line.typed(Buffer.from('git'))
  line.keyed('x')
  assert.equal(line.open, true)
  line.keyed('\r')
  assert.equal(line.open, false)
})

const left = (ofShell: boolean, typed: string): string | undefined => {
  const line = new HalfLine(() => {})
  line.typed(Buffer.from(typed))
  return line.eraser(ofShell)
}

test('a shell throws its line away, whatever stands there', () => {
  for (const typed of ['git', '\x1b[A', 'gi\t']) assert.equal(left(true, typed), '\x05\x15')
})

test('of another program what was typed is erased, lines of a paste as well', () => {
  assert.equal(left(false, 'git\x1b[D'), `\x05${'\x7f'.repeat(5)}`)
  assert.equal(left(false, '\x1b[200~two\rlines\x1b[201~'), `\x05${'\x7f'.repeat(11)}`)
})

test('what keys have brought that nobody typed cannot be erased', () => {
  for (const typed of ['\x1b[A', 'gi\t', 'a\x12', '\x1b[200~the begin of a paste'])
    assert.equal(left(false, typed), undefined)
})
