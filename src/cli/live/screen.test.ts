// What stands on a terminal after updates is what was drawn last, whatever it was before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import xterm from '@xterm/headless'
import { fc } from '../../../test/support/random.ts'
import { changes } from './screen.ts'

const [COLUMNS, ROWS] = [10, 5]

function rowsOf(terminal: InstanceType<typeof xterm.Terminal>): string[] {
  return Array.from({ length: ROWS }, (_, at) => terminal.buffer.active.getLine(at)?.translateToString(true) ?? '')
}

test('updates of some lines leave the screen that was drawn', async () => {
  const text = fc.array(fc.constantFrom('a', 'b', ' ', '語'), { maxLength: COLUMNS }).map((letters) => {
    let [line, width] = ['', 0]
    for (const letter of letters) {
      width += letter === '語' ? 2 : 1
      if (width <= COLUMNS) line += letter
    }
    return line
  })
  const screens = fc.array(fc.array(text, { minLength: 1, maxLength: ROWS }), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(screens, async (drawn) => {
      const terminal = new xterm.Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true })
      const write = (bytes: string) => new Promise<void>((done) => terminal.write(bytes, done))
      // As on the screen of the program: lines do not wrap.
      await write('\u001b[?7lleft by others\r\nand more')
      let shown: readonly string[] = []
      for (const lines of drawn) {
        await write(changes(shown, lines))
        shown = lines
        const wanted = Array.from({ length: ROWS }, (_, at) => (lines[at] ?? '').trimEnd())
        assert.deepEqual(
          rowsOf(terminal).map((row) => row.trimEnd()),
          wanted,
        )
      }
      terminal.dispose()
    }),
    { numRuns: 60 },
  )
})

test('what has not changed is not written again', () => {
  assert.equal(changes(['a', 'b'], ['a', 'b']), '')
  const update = changes(['a', 'b', 'c'], ['a', 'B', 'c'])
  assert.ok(update.includes('B') && !update.includes('a') && !update.includes('c'), JSON.stringify(update))
})
