// Whoever comes late sees the screen that the others see, and what comes then continues it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import xterm from '@xterm/headless'
import { fc } from '../../../test/support/random.ts'
import { BoundedTerminal } from './bounded.ts'
import { colouredRows, escapeText, plainRows } from './escape-text.ts'
import { unfinishedBytes } from './unfinished.ts'

const SIZE = { cols: 24, rows: 6 }

/** Everything that somebody sees. */
function seen(buffer: xterm.IBuffer): string {
  const rows = Array.from({ length: SIZE.rows }, (_, row) => {
    const line = buffer.getLine(buffer.baseY + row)
    return Array.from({ length: SIZE.cols }, (_, column) => {
      const cell = line?.getCell(column)
      if (cell === undefined) return ' '
      const look = [cell.isBold(), cell.isInverse(), cell.isUnderline(), cell.isDim(), cell.isItalic()].map(Number)
      const colours = [cell.getFgColorMode(), cell.getFgColor(), cell.getBgColorMode(), cell.getBgColor()]
      return `${cell.getChars() || ' '}/${cell.getWidth()}/${look}/${colours}`
    })
  })
  return JSON.stringify({ rows, x: buffer.cursorX, y: buffer.cursorY, type: buffer.type })
}

/** A terminal that shows something else already, as that of a person does. */
async function copyOf(text: string): Promise<xterm.Terminal> {
  const copy = new xterm.Terminal({ ...SIZE, allowProposedApi: true })
  await written(copy, `\u001b[31mold\r\n\u001b[2;4r\u001b[?6h\u001b[4h\u001b]0;never ended${text}`)
  return copy
}

const written = (terminal: xterm.Terminal, text: string | Uint8Array) =>
  new Promise<void>((done) => terminal.write(text, done))

const PIECES = [
  'words ',
  'Ünï-漢字 ',
  '🙂',
  '\r\n',
  '\t',
  '\b',
  '\u001b[31m',
  '\u001b[1;4;48;5;200m',
  '\u001b[38;2;1;2;3;7m',
  '\u001b[m',
  '\u001b[22;24m',
  '\u001b[3;5H',
  '\u001b[2A',
  '\u001b[K',
  '\u001b[1J',
  '\u001b[2L',
  '\u001b[3P',
  '\u001b[?1049h',
  '\u001b[?1049l',
  '\u001b[2;5r',
  '\u001b[r',
  '\u001b[?7l',
  '\u001b[?7h',
  '\u001b[?25l',
  '\u001b]2;a title\u0007',
  '\u001b[?2004h',
  '\u001bM',
]

const [ENTER, LEAVE] = ['\u001b[?1049h', '\u001b[?1049l']

/** As programs do: a screen of its own is left once, and by who has entered it; the one before is found as it was left. */
function sane(before: readonly string[], then: readonly string[]) {
  let own = false
  const kept = (piece: string) => {
    if (piece !== ENTER && piece !== LEAVE) return !own || !piece.endsWith('r')
    const changes = own === (piece === LEAVE)
    if (changes) own = !own
    return changes
  }
  return [before.filter(kept), then.filter(kept)] as const
}

suite('a screen as escape text', () => {
  test('shows the same, and what comes then continues it', async () => {
    const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 30 })
    const property = fc.asyncProperty(pieces, pieces, fc.nat(200), async (some, more, cutAt) => {
      const [before, then] = sane(some, more)
      const all = Buffer.from(before.join(''))
      const cut = Math.min(cutAt, all.length)
      const original = new BoundedTerminal({ ...SIZE, scrollback: 50 })
      try {
        const first = all.subarray(0, cut)
        await original.write(first)
        const copy = await copyOf(escapeText(original.picture))
        assert.ok(seen(copy.buffer.active) === seen(original.buffer), 'the screen')
        assert.equal(copy.modes.bracketedPasteMode, original.picture.modes.bracketedPasteMode)
        // What was cut in the middle is not in the text: it comes again.
        const rest = Buffer.concat([first.subarray(cut - unfinishedBytes(first)), all.subarray(cut)])
        await original.write(all.subarray(cut))
        await written(copy, rest)
        assert.ok(seen(copy.buffer.active) === seen(original.buffer), 'what was cut')
        const last = `\u001b[H\u001b[m${then.join('')}`
        await original.write(Buffer.from(last))
        await written(copy, last)
        assert.ok(seen(copy.buffer.active) === seen(original.buffer), 'what comes then')
        copy.dispose()
      } finally {
        original.dispose()
      }
    })
    // Colours of the screen that a program left for its own: it goes on with them.
    const found: [string[], string[], number][] = [
      [['\u001b[31m', ENTER], [LEAVE, 'words '], 13],
      [['\u001b[2;5r', '\u001b[31m', ENTER, '\u001b[1;4;48;5;200m'], [LEAVE, 'words ', '\r\n', '\u001b[2L'], 99],
      // A letter on the second half of a wide one, at the edge of a screen that does not wrap.
      [['\u001b[?7l', '\t', '\t', 'Ünï-漢字 '], [], 20],
      [['\u001b[?7l', '\t', '\t', 'Ünï-漢字 ', 'words ', '\u001b[?7h'], ['words '], 40],
    ]
    await fc.assert(property, { numRuns: 300, examples: found })
  })

  test('rows are read with colours and without', async () => {
    const terminal = new BoundedTerminal({ ...SIZE, scrollback: 50 })
    await terminal.write(Buffer.from('plain \u001b[1;32mgreen\u001b[m  end\r\n\r\n\u001b[48;5;99m \u001b[m'))
    assert.deepEqual(plainRows(terminal.picture), ['plain green  end', '', ' '])
    assert.deepEqual(colouredRows(terminal.picture), [
      'plain \u001b[0;1;32mgreen\u001b[m  end',
      '',
      '\u001b[0;48;5;99m \u001b[m',
    ])
    terminal.dispose()
  })

  test('a letter on half of a wide one at the edge stays in its row, with the rows below as they are', async () => {
    const terminal = new BoundedTerminal({ ...SIZE, scrollback: 50 })
    await terminal.write(
      Buffer.from(`\u001b[2;1Hbelow\u001b[H\u001b[?7l${'-'.repeat(SIZE.cols - 2)}漢\u001b[1mx\u001b[m`),
    )
    const copy = await copyOf(escapeText(terminal.picture))
    assert.ok(seen(copy.buffer.active) === seen(terminal.buffer))
    assert.equal(copy.buffer.active.getLine(1)?.translateToString(true), 'below')
    copy.dispose()
    terminal.dispose()
  })

  for (const [text, rest] of [
    ['whole', 0],
    ['\u001b[31', 4],
    ['\u001b[31mred', 0],
    ['\u001b', 1],
    ['\u001b(', 2],
    ['\u001b(B', 0],
    ['\u001b]0;title', 9],
    ['\u001b]0;title\u0007', 0],
    ['\u001b]0;title\u001b', 10],
    ['\u001b]0;title\u001b\\', 0],
    ['\u001bP1$r', 5],
    [Buffer.from('é').subarray(0, 1), 1],
    [Buffer.from('🙂').subarray(0, 3), 3],
    [Buffer.from('🙂'), 0],
  ] as const)
    test(`of ${JSON.stringify(text.toString())} the last ${rest} bytes go on`, () => {
      assert.equal(unfinishedBytes(Buffer.from(text)), rest)
    })
})
