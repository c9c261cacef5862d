/** What a person would have read of the bytes of a terminal (decision 66): taking escapes out is not enough. */
import type xterm from '@xterm/headless'
import { BoundedTerminal } from './bounded.ts'

/** As large as the terminals that agents get: programs go up and down in what they drew by its lines. */
const COLUMNS = 200
const ROWS = 50
/** Nobody reads more lines at once; what is before them is on another page. */
const MAX_LINES = 70_000
const NEWLINE = 10

/**
 * The text that `bytes` leave on an empty terminal, lines that the terminal wrapped joined again. Exact up to the cursor:
 * with the end of the last line where that was ended, and the blanks behind a prompt. What a program drew anew counts
 * once, what was cleared was read before; a program that has a screen of its own shows that at the end.
 */
export async function readableText(bytes: Uint8Array): Promise<string> {
  const terminal = new BoundedTerminal({
    cols: COLUMNS,
    rows: ROWS,
    scrollback: MAX_LINES,
    convertEol: true,
    keepsCleared: true,
  })
  try {
    await terminal.write(bytes)
    const { buffer, scrolling } = terminal
    const lines = withoutGap(linesOf(scrolling), bytes)
    if (buffer.type !== 'alternate') return lines.join('\n')
    if (lines.at(-1) === '') lines.pop()
    return [...lines, ...linesOf(buffer).filter((line) => line !== '')].join('\n')
  } finally {
    terminal.dispose()
  }
}

function linesOf(buffer: xterm.IBuffer): string[] {
  const cursorY = buffer.baseY + buffer.cursorY
  const lines: string[] = []
  let atCursor = 0
  for (let y = 0; y < buffer.length; y++) {
    const line = buffer.getLine(y)
    const written = line?.translateToString(true) ?? ''
    const text = y === cursorY ? upTo(buffer.cursorX, written, line) : written
    if (line?.isWrapped === true && lines.length > 0) lines[lines.length - 1] += text
    else lines.push(text)
    if (y === cursorY) atCursor = lines.length
  }
  while (lines.length > atCursor && lines.at(-1)?.trim() === '') lines.pop()
  return lines.map((text, index) => (index === atCursor - 1 ? text : text.trimEnd()))
}

/** Blank lines at the beginning that nobody fed: a program went down to where it draws. */
function withoutGap(lines: readonly string[], bytes: Uint8Array): string[] {
  const blank = lines.findIndex((line) => line !== '')
  if (blank <= 0) return [...lines]
  const fed = bytes.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0)
  return lines.slice(Math.max(0, blank - fed))
}

/** What is written in the line, and at least what is before the cursor. */
function upTo(column: number, written: string, line: xterm.IBufferLine | undefined): string {
  const before = line?.translateToString(false, 0, column) ?? ''
  return written.length > before.length ? written : before
}
