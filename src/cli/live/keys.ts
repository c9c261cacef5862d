/** Bytes of a keyboard as keys, and keys as a line that is being typed (pure). */

export type Key =
  | { readonly key: 'text'; readonly text: string }
  /** Text that was pasted: never a command. */
  | { readonly key: 'paste'; readonly text: string }
  | { readonly key: Named }

const SEQUENCES = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  '[H': 'home',
  '[F': 'end',
  '[1~': 'home',
  '[4~': 'end',
  '[3~': 'delete',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[Z': 'back-tab',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  OH: 'home',
  OF: 'end',
} as const
const CONTROLS = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0001': 'home',
  '\u0003': 'interrupt',
  '\u0004': 'end-of-input',
  '\u0005': 'end',
  '\u000c': 'redraw',
  '\u0015': 'clear-line',
  '\u0017': 'clear-word',
  '\u001a': 'suspend',
} as const
type Named = (typeof SEQUENCES)[keyof typeof SEQUENCES] | (typeof CONTROLS)[keyof typeof CONTROLS] | 'escape'

const PASTE_BEGINS = '\u001b[200~'
const PASTE_ENDS = '\u001b[201~'
const ESCAPE = '\u001b'
/** A whole escape sequence: of one letter, or with parameters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what keyboards send.
const WHOLE = /^\u001b(\[[0-9;?]*[@-~]|O[A-Za-z])/
/** What may still become one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what keyboards send.
const BEGUN = /^\u001b(\[[0-9;?]*|O)?$/

/** Puts together what comes in pieces; an escape that nothing follows is known only after a while (`flush`). */
export class KeyReader {
  readonly #decoder = new TextDecoder()
  #rest = ''
  #pasted: string | undefined

  feed(bytes: Uint8Array): readonly Key[] {
    this.#rest += this.#decoder.decode(bytes, { stream: true })
    const keys: Key[] = []
    for (let key = this.#next(); key !== undefined; key = this.#next()) keys.push(key)
    return keys
  }

  /** The beginning of a sequence is held back. */
  get waits(): boolean {
    return this.#pasted === undefined && this.#rest !== ''
  }

  /** No more comes: what was held back is the escape key. */
  flush(): readonly Key[] {
    if (!this.waits) return []
    this.#rest = ''
    return [{ key: 'escape' }]
  }

  #next(): Key | undefined {
    if (this.#pasted !== undefined) return this.#paste(this.#pasted)
    const text = this.#rest
    if (text === '' || BEGUN.test(text)) return undefined
    if (text.startsWith(PASTE_BEGINS)) {
      this.#rest = text.slice(PASTE_BEGINS.length)
      return this.#paste('')
    }
    if (!text.startsWith(ESCAPE)) return this.#letter(text)
    const sequence = WHOLE.exec(text)?.[0] ?? ESCAPE
    this.#rest = text.slice(sequence.length)
    // Keys that nobody knows do nothing.
    return named(SEQUENCES, sequence.slice(1)) ?? (sequence === ESCAPE ? { key: 'escape' } : this.#next())
  }

  #letter(text: string): Key | undefined {
    const letter = String.fromCodePoint(text.codePointAt(0) ?? 0)
    this.#rest = text.slice(letter.length)
    const control = named(CONTROLS, letter)
    if (control !== undefined) return control
    return /\p{Cc}/u.test(letter) ? this.#next() : { key: 'text', text: letter }
  }

  #paste(before: string): Key | undefined {
    const end = this.#rest.indexOf(PASTE_ENDS)
    // The mark itself may come in pieces.
    const keep = end < 0 ? Math.max(0, this.#rest.length - PASTE_ENDS.length + 1) : end
    const text = `${before}${this.#rest.slice(0, keep)}`
    this.#rest = this.#rest.slice(end < 0 ? keep : end + PASTE_ENDS.length)
    this.#pasted = end < 0 ? text : undefined
    return end < 0 ? undefined : { key: 'paste', text }
  }
}

function named(table: Readonly<Record<string, Named>>, sequence: string): Key | undefined {
  const key = Object.hasOwn(table, sequence) ? table[sequence] : undefined
  return key === undefined ? undefined : { key }
}

/** A line that is being typed; `at` counts letters, not code units. */
export interface Line {
  readonly letters: readonly string[]
  readonly at: number
}

export const EMPTY_LINE: Line = { letters: [], at: 0 }
export const textOf = ({ letters }: Line): string => letters.join('')

/** The line after a key. */
export function typed(line: Line, key: Key): Line {
  const { letters, at } = line
  switch (key.key) {
    case 'text':
      return inserted(line, [key.text])
    case 'paste':
      // Enter sends, so a text of several lines becomes one.
      return inserted(line, [...key.text.replaceAll(/[\p{Cc}]+/gu, ' ')])
    case 'backspace':
      return at === 0 ? line : { letters: letters.toSpliced(at - 1, 1), at: at - 1 }
    case 'delete':
      return { letters: letters.toSpliced(at, 1), at }
    case 'clear-line':
      return { letters: letters.slice(at), at: 0 }
    case 'clear-word': {
      const kept = letters
        .slice(0, at)
        .join('')
        .replace(/\S*\s*$/, '')
      return { letters: [...kept, ...letters.slice(at)], at: [...kept].length }
    }
    case 'left':
      return { letters, at: Math.max(0, at - 1) }
    case 'right':
      return { letters, at: Math.min(letters.length, at + 1) }
    case 'home':
      return { letters, at: 0 }
    case 'end':
      return { letters, at: letters.length }
    default:
      return line
  }
}

const inserted = ({ letters, at }: Line, more: readonly string[]): Line => ({
  letters: letters.toSpliced(at, 0, ...more),
  at: at + more.length,
})
