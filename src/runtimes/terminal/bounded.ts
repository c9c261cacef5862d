/**
 * A terminal that no output can stop. Some sequences of xterm cost by their count, and counts go up to 2³¹; others cost by
 * the size of the screen: a dozen bytes of an agent would keep the supervisor busy for minutes or take gigabytes, and a
 * page full of them would as well.
 *
 * B1  A count beyond the screen does nothing: it would be done as many times as it says.
 * B2  What one `write` may make the screen do is bounded; what is beyond that is left out. No program comes near it.
 * B3  Bytes are taken in small pieces, between which others get the processor. No piece ends within a character: xterm
 *     loses one that is cut behind a byte 0x80, as all quotes, dashes, bullets and `›` have it.
 */
import { createRequire } from 'node:module'
import type xterm from '@xterm/headless'
import { cut } from '../../contract/base/text.ts'
import { lazily } from '../../kernel/lazy.ts'
import type { Picture } from './escape-text.ts'

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
/** Mode of the cursor's visibility. */
const CURSOR = 25
const MAX_PEN = 16
const MAX_TITLE = 500
/** Modes that change to another screen and back. */
const OTHER_SCREEN: ReadonlySet<unknown> = new Set([47, 1047, 1049])

const NOTHING = new Uint8Array()
const LONGEST_CHARACTER = 4

/** `end`, or where the character begins that goes on behind it. */
function endOfCharacter(bytes: Uint8Array, end: number): number {
  for (let at = end - 1; at >= 0 && at > end - LONGEST_CHARACTER; at--) {
    const byte = bytes[at] ?? 0
    if (byte < 0x80) return end
    if (byte >= 0xc0) return at + (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > end ? at : end
  }
  return end
}

/** Of one sequence; those of an array belong together. */
type Parameters = readonly (number | number[])[]

/** Written only for who looks: a flood sets colours a million times. */
const penText = (pen: readonly Parameters[]): string =>
  pen
    .map((parameters) => parameters.map((one) => (Array.isArray(one) ? `:${one.join(':')}` : `;${one}`)).join(''))
    .map((text) => `\u001b[${text.replace(/^[;:]/, '')}m`)
    .join('')

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
  readonly #scrollback: number
  #budget = BUDGET
  /** The beginning of a character whose end has not come. */
  #half: Uint8Array = NOTHING
  #cursorVisible = true
  #title = ''
  /** Parameters of the colours since they were reset, and of the rows that scroll. */
  #pen: readonly Parameters[] = []
  #region = ''
  /** The same of the screen that another one was changed for. */
  #left: { readonly pen: readonly Parameters[]; readonly region: string } | undefined

  constructor({ keepsCleared = false, ...size }: TerminalSize) {
    this.#terminal = new (emulator().Terminal)({
      ...size,
      scrollOnEraseInDisplay: keepsCleared,
      allowProposedApi: true,
      logLevel: 'off',
    })
    this.#scrollback = size.scrollback
    this.#bound()
    this.#follow()
    if (keepsCleared) this.#terminal.parser.registerCsiHandler({ final: 'J' }, ([how]) => how === ERASE_SCROLLBACK)
  }

  get buffer(): xterm.IBuffer {
    return this.#terminal.buffer.active
  }

  /** The screen that scrolls: what is shown, but for a program that draws on a screen of its own. */
  get scrolling(): xterm.IBuffer {
    return this.#terminal.buffer.normal
  }

  get size(): { readonly columns: number; readonly rows: number } {
    const { cols, rows } = this.#terminal
    return { columns: cols, rows }
  }

  get cursorVisible(): boolean {
    return this.#cursorVisible
  }

  /** All that can be told of what is shown. */
  get picture(): Picture {
    const { buffer, modes } = this.#terminal
    return {
      ...this.size,
      normal: buffer.normal,
      active: buffer.active,
      modes,
      cursorVisible: this.#cursorVisible,
      title: this.#title,
      region: this.#region,
      pen: penText(this.#pen),
      left: { region: this.#left?.region ?? '', pen: penText(this.#left?.pen ?? []) },
    }
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows)
    this.#region = ''
  }

  /** Resolves when all of it is on the screen. */
  write(bytes: Uint8Array): Promise<void> {
    this.#budget = BUDGET
    const whole = this.#half.length === 0 ? bytes : Buffer.concat([this.#half, bytes])
    const end = endOfCharacter(whole, whole.length)
    this.#half = Buffer.from(whole.subarray(end))
    return new Promise((resolve) => {
      let from = 0
      while (end - from > PIECE_BYTES) {
        const to = endOfCharacter(whole, from + PIECE_BYTES)
        this.#terminal.write(whole.subarray(from, to))
        from = to
      }
      this.#terminal.write(whole.subarray(from, end), resolve)
    })
  }

  reset(): void {
    this.#half = NOTHING
    this.#anew()
    this.#terminal.reset()
  }

  dispose(): void {
    this.#terminal.dispose()
  }

  /** A handler that answers true takes the place of xterm's own. */
  #bound(): void {
    const terminal = this.#terminal
    const { parser } = terminal
    const reset = () => terminal.rows + Math.ceil(this.#scrollback / RESET_LINES)
    const screen = () => this.#refuses(terminal.rows, terminal.rows)
    for (const final of BY_ROWS) parser.registerCsiHandler({ final }, ([count]) => this.#refuses(count, terminal.rows))
    for (const final of BY_COLUMNS)
      parser.registerCsiHandler({ final }, ([count]) => this.#refuses(count, terminal.cols))
    for (const id of WHOLE_SCREEN) parser.registerCsiHandler(id, screen)
    for (const final of ['h', 'l'])
      parser.registerCsiHandler({ prefix: '?', final }, (modes) =>
        modes.some((mode) => OTHER_SCREEN.has(mode)) ? screen() : false,
      )
    parser.registerEscHandler({ intermediates: '#', final: '8' }, screen)
    parser.registerEscHandler({ final: 'c' }, () => this.#refuses(reset(), reset()))
  }

  /** What xterm knows and does not tell. */
  #follow(): void {
    const { parser } = this.#terminal
    this.#terminal.onTitleChange((title) => {
      this.#title = cut(title, MAX_TITLE)
    })
    const seen = (look: (parameters: Parameters) => void) => (parameters: (number | number[])[]) => {
      look(parameters)
      return false
    }
    const cursor = (visible: boolean) =>
      seen((modes) => {
        if (modes.includes(CURSOR)) this.#cursorVisible = visible
        if (modes.some((mode) => OTHER_SCREEN.has(mode))) this.#change(visible)
      })
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, cursor(true))
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, cursor(false))
    parser.registerCsiHandler(
      { final: 'm' },
      seen((parameters) => this.#paint(parameters)),
    )
    parser.registerCsiHandler(
      { final: 'r' },
      seen((parameters) => {
        this.#region = `\u001b[${parameters.join(';')}r`
      }),
    )
    const anew = seen(() => this.#anew())
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, anew)
    parser.registerEscHandler({ final: 'c' }, () => anew([]))
  }

  /** To another screen, or back: then it goes on as it was left. */
  #change(isOther: boolean): void {
    if (isOther) {
      this.#left ??= { pen: this.#pen, region: this.#region }
      this.#region = ''
      return
    }
    this.#pen = this.#left?.pen ?? this.#pen
    this.#region = this.#left?.region ?? this.#region
    this.#left = undefined
  }

  #anew(): void {
    this.#left = undefined
    this.#cursorVisible = true
    this.#pen = []
    this.#region = ''
  }

  #paint(parameters: Parameters): void {
    const resets = parameters.length === 0 || parameters[0] === 0
    if (resets) this.#pen = []
    // Who never resets sets the same few again and again.
    if (!resets || parameters.length > 1) this.#pen = [...this.#pen.slice(1 - MAX_PEN), parameters]
  }

  #refuses(count: number | readonly number[] | undefined, most: number): boolean {
    const cost = typeof count === 'number' ? Math.max(count, 1) : 1
    if (cost > most || cost > this.#budget) return true
    this.#budget -= cost
    return false
  }
}
