/** A line of input below what was printed: typed key by key, so that the end of the input is not an empty line. */

import { Interrupted, type Io, type TakenTerminal, type Terminal } from '../base/io.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo, widthOf } from '../print/text-width.ts'
import { EMPTY_LINE, type Key, type Line, textOf, typed } from './keys.ts'
import { keyHandler } from './screen.ts'

const INTERRUPTED = 130

/** The line, which `hidden` does not show; undefined at the end of the input (Ctrl-D on an empty line). Throws `Interrupted` on Ctrl-C. */
export async function askLine(
  io: Io,
  terminal: Terminal,
  question: string,
  { hidden = false }: { readonly hidden?: boolean } = {},
): Promise<string | undefined> {
  const done = Promise.withResolvers<string | undefined>()
  let line = EMPTY_LINE
  let drawn = Promise.resolve()
  const draw = () => {
    drawn = drawn
      .then(() => taken.write(lineText(question, hidden ? EMPTY_LINE : line, terminal.columns)))
      .catch(done.reject)
  }
  const onKey = (key: Key) => {
    if (key.key === 'enter') return done.resolve(textOf(line))
    if (key.key === 'interrupt') return done.reject(new Interrupted(INTERRUPTED))
    if (key.key === 'end-of-input' && line.letters.length === 0) return done.resolve(undefined)
    if (key.key === 'suspend') return taken.suspend()
    line = typed(line, key)
    draw()
  }
  const taken: TakenTerminal = terminal.take('line', {
    onBytes: keyHandler(io.clock, onKey),
    onResize: draw,
    onReturn: draw,
  })
  const stop = () => done.reject(io.signal.reason)
  io.signal.addEventListener('abort', stop, { once: true })
  try {
    draw()
    return await done.promise
  } finally {
    io.signal.removeEventListener('abort', stop)
    await drawn
    await taken.write('\r\n').catch(() => undefined)
    taken.release()
  }
}

/** The question and the line, in one row: of a line that is too long, the part around the cursor. */
function lineText(question: string, line: Line, columns: number): string {
  const label = cutTo(forTerminal(question), Math.floor(columns / 2))
  const { text, cursor } = windowOf(line, columns - widthOf(label) - 1)
  return `\r\u001b[K${label}${text}\r\u001b[${widthOf(label) + cursor}C`
}

/** As much of a line as fits, with the column of the cursor in it. */
export function windowOf({ letters, at }: Line, width: number): { readonly text: string; readonly cursor: number } {
  let from = at
  let cursor = 0
  for (; from > 0; from -= 1) {
    const more = widthOf(letters[from - 1] ?? '')
    if (cursor + more > width - 1) break
    cursor += more
  }
  let [to, used] = [at, cursor]
  for (; to < letters.length; to += 1) {
    used += widthOf(letters[to] ?? '')
    if (used > width) break
  }
  return { text: letters.slice(from, to).join(''), cursor }
}
