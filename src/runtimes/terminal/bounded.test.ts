import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedTerminal } from './bounded.ts'

const SIZE = { cols: 200, rows: 50, scrollback: 100 }
const lineOf = ({ buffer }: BoundedTerminal, y: number) => buffer.getLine(y)?.translateToString(true)

test('a sequence with a count of two thousand million costs nothing and is left out', { timeout: 20_000 }, async () => {
  const terminal = new BoundedTerminal(SIZE)
  const counts = ['I', 'Z', 'L', 'M', 'S', 'T', 'b', 'A', 'B', 'C', 'D', 'G', 'X', '@', 'P', 'd']
  await terminal.write(Buffer.from(counts.map((final) => `x\u001b[2147483647${final}`).join('')))
  await terminal.write(Buffer.from('\u001bcstill here'))
  assert.equal(lineOf(terminal, 0), 'still here')
  terminal.dispose()
})

test('a page of nothing but expensive sequences ends, and the next one is read', { timeout: 60_000 }, async () => {
  const expensive = ['[2J', '[50L', '[50M', '[50S', '[50T', '[200I', '[200b', 'c', '#8', '[?1049h', '[?1049l', "[50'}"]
  for (const rows of [50, 2]) {
    const terminal = new BoundedTerminal({ cols: 200, rows, scrollback: 70_000 })
    for (const sequence of expensive) await terminal.write(Buffer.from(`\u001b${sequence}`.repeat(10_000)))
    await terminal.write(Buffer.from('\u001b[?1049l\u001bcstill here'))
    assert.equal(lineOf(terminal, 0), 'still here')
    terminal.dispose()
  }
})

test('what a program means is done', async () => {
  const terminal = new BoundedTerminal(SIZE)
  await terminal.write(Buffer.from('one\r\ntwo\u001b[H\u001b[2Lx\u001b[3b\u001b[?1049hother\u001b[?1049l'))
  assert.deepEqual(
    [0, 2, 3].map((y) => lineOf(terminal, y)),
    ['xxxx', 'one', 'two'],
  )
  await terminal.write(Buffer.from('\u001b[2J\u001b[Hclear'))
  assert.equal(lineOf(terminal, terminal.buffer.baseY), 'clear')
  terminal.dispose()
})

test('output in many pieces arrives whole, also where a character is cut by their borders', async () => {
  for (const length of [0, 1, 2_047, 2_048, 2_049, 4_096, 10_000]) {
    const terminal = new BoundedTerminal({ ...SIZE, scrollback: 1_000 })
    const text = 'é世x'.repeat(length).slice(0, length)
    await terminal.write(Buffer.from(text))
    let shown = ''
    for (let y = 0; y < terminal.buffer.length; y++) shown += lineOf(terminal, y) ?? ''
    assert.equal(shown, text)
    terminal.dispose()
  }
})
