import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readableText } from './readable.ts'

const CASES: readonly [string, string, string][] = [
  ['the end of the last line is kept', 'one\r\ntwo\r\n', 'one\ntwo\n'],
  ['a line that has not ended has no end', 'one\r\ntwo', 'one\ntwo'],
  ['the blank behind a prompt is kept', 'done   \r\n$ ', 'done\n$ '],
  ['blank lines before the cursor are lines', 'a\r\n\r\n\r\n', 'a\n\n\n'],
  ['what was written over is gone', '10%\r20%\r\n', '20%\n'],
  ['colours are no text', '\u001b[31mred\u001b[0m\r\n', 'red\n'],
  ['a line that the terminal wrapped is one', `${'x'.repeat(450)}\r\n`, `${'x'.repeat(450)}\n`],
  ['what was cleared was read before', 'one\r\ntwo\r\n\u001b[H\u001b[2J\u001b[3J$ ', 'one\ntwo\n$ '],
  [
    'a program that draws its lines anew has them once',
    `hello\r\n${drawn(1)}${'\u001b[2K\u001b[1A'.repeat(5)}\u001b[2K\u001b[G${drawn(2)}`,
    'hello\nstep 2\na\nb\nc\nd\n> ',
  ],
  [
    'a program with a screen of its own shows it behind what was there before',
    '$ less file\r\n\u001b[?1049h\u001b[2J\u001b[Hone\r\ntwo\u001b[50;1H(END)',
    '$ less file\none\ntwo\n(END)',
  ],
  ['and leaves none of it behind', '$ vi\r\n\u001b[?1049h\u001b[Htext\u001b[?1049l$ ', '$ vi\n$ '],
  ['where a program draws from the middle on, nothing is above it', '\u001b[30;1Hstatus', 'status'],
  ['nothing is nothing', '', ''],
]
function drawn(step: number): string {
  return `step ${step}\r\na\r\nb\r\nc\r\nd\r\n> `
}
for (const [name, bytes, text] of CASES)
  test(name, async () => assert.equal((await readableText(Buffer.from(bytes))).text, text))

const ADDED: readonly [string, string, string, string, boolean][] = [
  ['a line goes on from where it stands', '$ ', 'ls\r\na\r\n', 'ls\na\n', false],
  ['a new line is one', 'done\r\n', 'next\r\n', 'next\n', false],
  ['the end of a line is all that comes', 'done', '\r\n', '\n', false],
  [
    'what is drawn again as it was is there already',
    '$ \u001b[7mls\u001b[27m',
    '\r\u001b[C\u001b[Cls\r\na',
    '\na',
    false,
  ],
  ['a line that is written over is drawn anew', '$ curl\r\n10%', '\r20%', '20%', true],
  ['lines above that change are told with all below them', 'a\r\nb\r\n> ', '\u001b[A\rc\u001b[B', 'c\n> ', true],
  ['blanks behind a prompt go with it', '$ ', '\r\n$ ', '\n$ ', false],
  ['what only moves adds nothing', 'text', '\u001b[2D\u001b[K'.slice(0, 4), '', false],
  ['what is cleared takes nothing back that was read', 'one\r\n', '\u001b[H\u001b[2Jtwo', 'two', false],
]
for (const [name, before, bytes, text, anew] of ADDED)
  test(name, async () => {
    assert.deepEqual(await readableText(Buffer.from(bytes), Buffer.from(before)), { text, anew })
  })
