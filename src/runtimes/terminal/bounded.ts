/**
 * A terminal that no output can stop. Some sequences of xterm cost by their count, and counts go up to 2³¹; others cost by
 * the size of the screen: a dozen bytes of an agent would keep the supervisor busy for minutes or take gigabytes, and a
 * page full of them would as well.
 *
 * B1  A count beyond the screen does nothing: it would be done as many times as it says.
 * B2  What one `write` may make the screen do is bounded; what is beyond that is left out. No program comes near it.
 * B3  Bytes are taken in small pieces, between which others get the processor.
 */
import { createRequire } from 'node:module'
import type xterm from '@xterm/headless'
import { lazily } from '../../kernel/lazy.ts'

/** Large, and a supervisor without agents on terminals needs none of it. */
const emulator = lazily((): typeof xterm => createRequire(import.meta.url)('@xterm/headless'))

const PIECE_BYTES = 2_048
/** Lines moved or cleared by one `write`: about a quarter of a second. */
const BUDGET = 50_000
/** A reset makes a new scrollback: so many of its lines cost as much as a line that is cleared. */
const RESET_LINES = 300

/** Insert and delete lines, scroll up and down. */
const BY_ROWS = ['L', 'M', 'S', 'T']
/** Tabs forward and back, repeat the last character. */
const BY_COLUMNS = ['I', 'Z', 'b']
/** Erase the display; shift, insert and delete columns. */
const WHOLE_SCREEN = [
  { final: 'J' },
  { prefix: '?', final: 'J' },
  { intermediates: ' ', final: '@' },
  { intermediates: ' ', final: 'A' },
  { intermediates: "'", final: '}' },
  { intermediates: "'", final: '~' },
]
const ERASE_SCROLLBACK = 3
/** Modes that change to another screen and back. */
const OTHER_SCREEN: ReadonlySet<unknown> = new Set([47, 1047, 1049])

interface TerminalSize {
  readonly cols: number
  readonly rows: number
  readonly scrollback: number
  /** A line feed also returns to the first column. */
  readonly convertEol?: boolean
  /** What is cleared from the screen goes into the scrollback, and nothing clears that. */
  readonly keepsCleared?: boolean
}

export class BoundedTerminal {
  readonly #terminal: xterm.Terminal
  #budget = BUDGET

  constructor({ keepsCleared = false, ...size }: TerminalSize) {
    this.#terminal = new (emulator().Terminal)({
      ...size,
      scrollOnEraseInDisplay: keepsCleared,
      allowProposedApi: true,
      logLevel: 'off',
    })
    this.#bound(size)
    if (keepsCleared) this.#terminal.parser.registerCsiHandler({ final: 'J' }, ([how]) => how === ERASE_SCROLLBACK)
  }

  get buffer(): xterm.IBuffer {
    return this.#terminal.buffer.active
  }

  /** The screen that scrolls: what is shown, but for a program that draws on a screen of its own. */
  get scrolling(): xterm.IBuffer {
    return this.#terminal.buffer.normal
  }

  /** Resolves when all of it is on the screen. */
  write(bytes: Uint8Array): Promise<void> {
    this.#budget = BUDGET
    return new Promise((resolve) => {
      for (let from = 0; from + PIECE_BYTES < bytes.length; from += PIECE_BYTES)
        this.#terminal.write(bytes.subarray(from, from + PIECE_BYTES))
      const last = Math.max(0, Math.ceil(bytes.length / PIECE_BYTES) - 1) * PIECE_BYTES
      this.#terminal.write(bytes.subarray(last), resolve)
    })
  }

  reset(): void {
    this.#terminal.reset()
  }

  dispose(): void {
    this.#terminal.dispose()
  }

  /** A handler that answers true takes the place of xterm's own. */
  #bound({ rows, cols, scrollback }: TerminalSize): void {
    const { parser } = this.#terminal
    const reset = rows + Math.ceil(scrollback / RESET_LINES)
    for (const final of BY_ROWS) parser.registerCsiHandler({ final }, ([count]) => this.#refuses(count, rows))
    for (const final of BY_COLUMNS) parser.registerCsiHandler({ final }, ([count]) => this.#refuses(count, cols))
    for (const id of WHOLE_SCREEN) parser.registerCsiHandler(id, () => this.#refuses(rows, rows))
    for (const final of ['h', 'l'])
      parser.registerCsiHandler({ prefix: '?', final }, (modes) =>
        modes.some((mode) => OTHER_SCREEN.has(mode)) ? this.#refuses(rows, rows) : false,
      )
    parser.registerEscHandler({ intermediates: '#', final: '8' }, () => this.#refuses(rows, rows))
    parser.registerEscHandler({ final: 'c' }, () => this.#refuses(reset, reset))
  }

  #refuses(count: number | readonly number[] | undefined, most: number): boolean {
    const cost = typeof count === 'number' ? Math.max(count, 1) : 1
    if (cost > most || cost > this.#budget) return true
    this.#budget -= cost
    return false
  }
}
