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
  ['a cleared screen leaves nothing', 'secret\u001b[2J\u001b[H', ''],
  ['nothing is nothing', '', ''],
]
for (const [name, bytes, text] of CASES)
  test(name, async () => assert.equal(await readableText(Buffer.from(bytes)), text))
