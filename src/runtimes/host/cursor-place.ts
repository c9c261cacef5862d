/**
 * Where the cursor stands behind what a program has written, as far as its last output tells: for who asks (`queries.ts`). A
 * whole terminal is more than a host should hold. Margins of scrolling are not followed.
 */

export interface Place {
  readonly row: number
  readonly column: number
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

const TAB = 8
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is read.
  /\u001b\[([?<=>]?)([\d;:]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[ -/]*([0-~])|([\u0000-\u001f\u007f])|([^\u0000-\u001f\u007f])/gsu
/** Letters that take no place, and those that take two. */
const NONE = /^[\p{M}\u200b-\u200f\ufeff]$/u
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u

/** `from`: where it stood before the first byte. */
export function cursorAfter(output: Uint8Array, size: Size, from: Place): Place {
  const cursor = new Cursor(size, from)
  for (const [, prefix = '', numbers, final, escaped, control, letter] of Buffer.from(output)
    .toString('utf8')
    .matchAll(SEQUENCE)) {
    if (letter !== undefined) cursor.write(letter)
    else if (control !== undefined) cursor.control(control)
    else if (escaped !== undefined) cursor.escape(escaped)
    else if (final !== undefined) cursor.move(prefix + final, (numbers ?? '').split(/[;:]/).map(Number))
  }
  return cursor.place
}

class Cursor {
  readonly #size: Size
  #row: number
  #column: number
  /** Behind the last column: the next letter begins a row. */
  #full = false
  #saved: Place = { row: 0, column: 0 }

  constructor(size: Size, { row, column }: Place) {
    this.#size = size
    this.#row = row
    this.#column = column
  }

  get place(): Place {
    return { row: this.#row, column: this.#column }
  }

  write(letter: string): void {
    if (NONE.test(letter)) return
    const width = WIDE.test(letter) ? 2 : 1
    if (this.#full || this.#column + width > this.#size.columns) this.#to(this.#row + 1, 0)
    const column = this.#column + width
    this.#to(this.#row, column)
    this.#full = column >= this.#size.columns
  }

  control(key: string): void {
    if (key === '\n' || key === '\u000b' || key === '\f') this.#to(this.#row + 1, this.#column)
    else if (key === '\r') this.#to(this.#row, 0)
    else if (key === '\b') this.#to(this.#row, this.#column - 1)
    else if (key === '\t') this.#to(this.#row, (Math.floor(this.#column / TAB) + 1) * TAB)
  }

  escape(final: string): void {
    if (final === '7') this.#saved = this.place
    else if (final === '8') this.#to(this.#saved.row, this.#saved.column)
    else if (final === 'D') this.#to(this.#row + 1, this.#column)
    else if (final === 'E') this.#to(this.#row + 1, 0)
    else if (final === 'M') this.#to(this.#row - 1, this.#column)
    else if (final === 'c') this.#to(0, 0)
  }

  /** A sequence by its last letter, with what stands before its numbers. */
  move(what: string, [first = 0, second = 0]: readonly number[]): void {
    const count = first || 1
    const [row, column] = [this.#row, this.#column]
    if (what === 'A' || what === 'F') this.#to(row - count, what === 'A' ? column : 0)
    else if (what === 'B' || what === 'e' || what === 'E') this.#to(row + count, what === 'E' ? 0 : column)
    else if (what === 'C' || what === 'a') this.#to(row, column + count)
    else if (what === 'D') this.#to(row, column - count)
    else if (what === 'G' || what === '`') this.#to(row, count - 1)
    else if (what === 'd') this.#to(count - 1, column)
    else if (what === 'H' || what === 'f') this.#to(count - 1, (second || 1) - 1)
    else if (what === 'r') this.#to(0, 0)
    else if (what === 's' || (what === '?h' && first === ALTERNATE)) this.#saved = this.place
    else if (what === 'u' || (what === '?l' && first === ALTERNATE)) this.#to(this.#saved.row, this.#saved.column)
  }

  #to(row: number, column: number): void {
    this.#full = false
    this.#row = Math.max(0, Math.min(row, this.#size.rows - 1))
    this.#column = Math.max(0, Math.min(column, this.#size.columns - 1))
  }
}

/** The mode of a screen of its own, which keeps the cursor for the way back. */
const ALTERNATE = 1049
