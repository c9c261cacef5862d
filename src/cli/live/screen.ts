/**
 * The one way to draw on a terminal: whole screens, of which only the lines that changed are written.
 *
 * Plain escape codes, no library: what is needed are five of them (go to a line, clear its rest, begin and end of an
 * update, and those of `process-terminal.ts`). A terminal-UI library would bring a layout engine and a component model
 * for screens that are lists of lines, and would have to be kept from writing what others wrote unfiltered.
 *
 * S1  A screen is drawn when the one before has been taken by the terminal; of those that come meanwhile, the last.
 * S2  What is drawn has been filtered: a line is text of ours with colours in it.
 */
import { delay } from '../../client/clock.ts'
import type { Io, TakenTerminal, Terminal } from '../base/io.ts'
import { type Key, KeyReader } from './keys.ts'

const ESC = '\u001b'
/** Terminals that know them show all of an update at once; others ignore them. */
const [BEGIN, END] = [`${ESC}[?2026h`, `${ESC}[?2026l`]
/** An escape that nothing follows for this long is the key of that name. */
const ESCAPE_MS = 50

export interface Size {
  readonly columns: number
  readonly rows: number
}

export class Screen implements Disposable {
  readonly #terminal: Terminal
  readonly #taken: TakenTerminal
  readonly #redraw: () => void
  #shown: readonly string[] = []
  #next: readonly string[] | undefined
  #writing: Promise<void> | undefined

  /** `redraw` is called when what stood there is gone, or has another size. */
  constructor(terminal: Terminal, onBytes: (bytes: Uint8Array) => void, redraw: () => void) {
    this.#terminal = terminal
    this.#redraw = redraw
    const again = () => this.redraw()
    this.#taken = terminal.take('screen', { onBytes, onResize: again, onReturn: again })
  }

  get size(): Size {
    return { columns: this.#terminal.columns, rows: this.#terminal.rows }
  }

  /** Shows these lines and nothing else (S1). */
  draw(lines: readonly string[]): void {
    this.#next = lines
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    // Who draws next, or waits for the end, is told that nobody looks any more.
    this.#writing.catch(() => undefined)
  }

  /** Everything anew. */
  redraw(): void {
    this.#shown = []
    this.#redraw()
  }

  suspend(): void {
    this.#taken.suspend()
  }

  lend<T>(work: () => Promise<T>): Promise<T> {
    return this.#taken.lend(work)
  }

  [Symbol.dispose](): void {
    this.#next = undefined
    this.#taken.release()
  }

  async #write(): Promise<void> {
    while (this.#next !== undefined) {
      const lines = this.#next
      const text = changes(this.#shown, lines)
      this.#next = undefined
      this.#shown = lines
      if (text !== '') await this.#taken.write(text)
    }
  }
}

/** What turns one screen into the other; all of it, where nothing is known to stand there. */
export function changes(shown: readonly string[], lines: readonly string[]): string {
  const fresh = shown.length === 0
  const clean = fresh
    ? [`${ESC}[H${ESC}[2J`]
    : lines.length < shown.length
      ? [`${ESC}[${lines.length + 1}H${ESC}[J`]
      : []
  // A line is cleared before: behind a text as wide as the terminal the cursor stands on its last letter.
  const written = lines.flatMap((line, at) => (shown[at] === line ? [] : [`${ESC}[${at + 1}H${ESC}[m${ESC}[K${line}`]))
  return clean.length + written.length === 0 ? '' : `${BEGIN}${[...clean, ...written].join('')}${ESC}[m${END}`
}

/** Keys out of bytes, with an eye on the clock for the escape key. */
export function keyHandler(clock: Io['clock'], onKey: (key: Key) => void): (bytes: Uint8Array) => void {
  const reader = new KeyReader()
  let waiting = new AbortController()
  return (bytes) => {
    waiting.abort()
    for (const key of reader.feed(bytes)) onKey(key)
    if (!reader.waits) return
    waiting = new AbortController()
    delay(clock, ESCAPE_MS, waiting.signal).then(
      () => {
        for (const key of reader.flush()) onKey(key)
      },
      () => undefined,
    )
  }
}
