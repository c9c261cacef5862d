// Where the cursor stands is where a whole terminal has it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { BoundedTerminal } from '../terminal/bounded.ts'
import { cursorAfter } from './cursor-place.ts'

const SIZE = { columns: 20, rows: 6 }
const number = fc.constantFrom('', '1', '2', '7', '19', '20', '999')
const PIECES = [
  fc.constantFrom('a', 'word ', 'é', 'e\u0301', '漢字', '\r', '\n', '\r\n', '\b', '\t', 'long enough to go on below'),
  fc.tuple(number, fc.constantFrom(...'ABCDEFGde`a')).map(([n, final]) => `\u001b[${n}${final}`),
  fc.tuple(number, number, fc.constantFrom('H', 'f')).map(([row, column, final]) => `\u001b[${row};${column}${final}`),
  fc.constantFrom('\u001bD', '\u001bM', '\u001bE', '\u001b[2J', '\u001b[K'),
  fc.constantFrom('\u001b[31m', '\u001b[?25l', '\u001b]0;title\u0007', '\u001b]8;;x\u001b\\', '\u001b[?2004h'),
]

test('what was kept of it comes back', () => {
  const at = (text: string) => cursorAfter(Buffer.from(text), SIZE, { row: 5, column: 0 })
  assert.deepEqual(at('\u001b[2;3H\u001b7\u001b[5;5Hx\u001b8'), { row: 1, column: 2 })
  assert.deepEqual(at('\u001b[2;3H\u001b[?1049h\u001b[5;5Hx\u001b[?1049l'), { row: 1, column: 2 })
})

test('the cursor is where a whole terminal has it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(...PIECES), { maxLength: 30 }), async (pieces) => {
      const output = Buffer.from(pieces.join(''))
      const terminal = new BoundedTerminal({ cols: SIZE.columns, rows: SIZE.rows, scrollback: 100 })
      await terminal.write(output)
      const { cursorX, cursorY } = terminal.buffer
      terminal.dispose()
      // One that stands behind the last column says that it is in it.
      const expected = { row: cursorY, column: Math.min(cursorX, SIZE.columns - 1) }
      assert.deepEqual(cursorAfter(output, SIZE, { row: 0, column: 0 }), expected)
    }),
    { numRuns: 300 },
  )
})
