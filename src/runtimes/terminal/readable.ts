/** What a person would have read of the bytes of a terminal (decision 66): taking escapes out is not enough. */
import type xterm from '@xterm/headless'
import { BoundedTerminal } from './bounded.ts'

/** As large as the terminals that agents get: programs go up and down in what they drew by its lines. */
const COLUMNS = 200
const ROWS = 50
/** Nobody reads more lines at once; what is before them is on another page. */
const MAX_LINES = 70_000
const NEWLINE = 10
const NOTHING = new Uint8Array()

export interface Readable {
  readonly text: string
  /** The line that it begins in was drawn anew: the text stands in the place of what was written there. */
  readonly anew: boolean
}

/**
 * What `bytes` add to a terminal that shows `before`, lines that the terminal wrapped joined again: programs draw lines
 * anew from where they stand, so that a prompt must be there. Exact up to the cursor: with the end of the last line where
 * that was ended, and the blanks behind a prompt. What a program drew anew counts once, what was cleared was read before;
 * a program that has a screen of its own shows that at the end.
 */
export async function readableText(bytes: Uint8Array, before: Uint8Array = NOTHING): Promise<Readable> {
  const terminal = new BoundedTerminal({
    cols: COLUMNS,
    rows: ROWS,
    scrollback: MAX_LINES,
    convertEol: true,
    keepsCleared: true,
  })
  try {
    if (before.length > 0) await terminal.write(before)
    const was = shownLines(terminal)
    await terminal.write(bytes)
    return addedTo(was, shownLines(terminal), bytes)
  } finally {
    terminal.dispose()
  }
}

function shownLines({ buffer, scrolling }: BoundedTerminal): string[] {
  const lines = linesOf(scrolling)
  if (buffer.type !== 'alternate') return lines
  if (lines.at(-1) === '') lines.pop()
  return [...lines, ...linesOf(buffer).filter((line) => line !== '')]
}

/** From the first line on that is not as it was. */
function addedTo(was: readonly string[], is: readonly string[], bytes: Uint8Array): Readable {
  const changed = was.findIndex((line, at) => line !== is[at])
  const at = Math.max(0, changed < 0 ? was.length - 1 : changed)
  const [first, ...others] = is.slice(at)
  if (first === undefined) return { text: '', anew: false }
  const kept = was[at] ?? ''
  // Only the last line goes on by itself. The blanks behind a prompt count as long as the cursor is there.
  const goesOn = at === was.length - 1 && (first.startsWith(kept) || first === kept.trimEnd())
  const lines = goesOn ? [first.slice(kept.length), ...others] : [first, ...others]
  return { text: withoutGap(lines, bytes, kept === '' ? 0 : 1).join('\n'), anew: !goesOn }
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

/** Blank lines at the beginning that nobody fed: a program went down to where it draws. `most`: so many may be there all the same. */
function withoutGap(lines: readonly string[], bytes: Uint8Array, most: number): string[] {
  const blank = lines.findIndex((line) => line !== '')
  if (blank <= 0) return [...lines]
  const fed = bytes.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0)
  return lines.slice(Math.max(0, blank - Math.max(fed, most)))
}

/** What is written in the line, and at least what is before the cursor. */
function upTo(column: number, written: string, line: xterm.IBufferLine | undefined): string {
  const before = line?.translateToString(false, 0, column) ?? ''
  return written.length > before.length ? written : before
}
