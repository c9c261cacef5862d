/**
 * Whether a person has half a line in a terminal: counted from what was typed, since nobody can ask the program. What a
 * person's own terminal sends by itself (reports of the mouse, of the focus, answers to questions) is no typing.
 */

/** Escape and bell, as expressions can name them; typed bytes have no such characters. */
const NAMED: Readonly<Record<string, string>> = { '\x1b': '␛', '\x07': '␇' }
const REPORTS = /␛\[[?>]?[\d;$]*[Rcnty]|␛\[\?\d+u|␛\[[IO]|␛\[<[\d;]*[Mm]|␛[\]P][^␇␛]*(?:␇|␛\\)/g
/** Keys that change what stands in the line: arrows bring a line of the history, a paste brings its text. */
const SEQUENCES = /␛(?:\[[\d;]*[A-Za-z~]|O[A-Za-z])/g
const MARK = '␣'

/** Keys that bring text which nobody has typed: of the history, by completion, back from where it was cut. */
const BRINGING = /␛\[[\d;]*[ABZ]|␛O[AB]|\t/
const BRINGING_KEYS: ReadonlySet<string> = new Set(['\x0e', '\x10', '\x12', '\x18', '\x19', '\x1f'])
const PASTE = /␛\[200~(.*?)␛\[201~/gs
const PASTE_BEGINS = '␛[200~'

/** Enter, and the keys that throw the line away: interrupt, kill. */
const ENDS: ReadonlySet<string> = new Set(['\r', '\n', '\x03', '\x15'])
const ERASES: ReadonlySet<string> = new Set(['\x7f', '\b'])
/** The end of the line, then what throws all before it away: line editors know both, a terminal that reads lines the latter. */
const THROW_AWAY = '\x05\x15'
const END_OF_LINE = '\x05'
const BACKSPACE = '\x7f'

export class HalfLine {
  #characters = 0
  /** There may be more in it than was typed. */
  #brought = false
  readonly #onChange: (typing: boolean) => void

  constructor(onChange: (typing: boolean) => void) {
    this.#onChange = onChange
  }

  get open(): boolean {
    return this.#characters > 0
  }

  typed(bytes: Uint8Array): void {
    const keys = named(Buffer.from(bytes).toString('latin1')).replaceAll(REPORTS, '')
    const pasted = keys.replaceAll(PASTE, (_, text: string) => MARK.repeat(text.length + 1))
    if (BRINGING.test(pasted) || pasted.includes(PASTE_BEGINS) || [...pasted].some((key) => BRINGING_KEYS.has(key)))
      this.#brought = true
    this.#become(countedFrom(this.#characters, pasted.replaceAll(SEQUENCES, MARK)))
  }

  /** Keys of a bot or of ours end a line that a person has begun, and begin none. */
  keyed(keys: string): void {
    if ([...keys].some((key) => ENDS.has(key))) this.#become(0)
  }

  /** It stands there no longer. */
  gone(): void {
    this.#become(0)
  }

  /**
   * What takes it back. A shell throws its line away whatever is in it; the input of another program may have several
   * lines, of which only what was typed can be erased: undefined where there may be more. One erases the key before them
   * in a program that takes it for text.
   */
  eraser(ofShell: boolean): string | undefined {
    if (ofShell) return THROW_AWAY
    return this.#brought ? undefined : END_OF_LINE + BACKSPACE.repeat(this.#characters + 1)
  }

  #become(characters: number): void {
    const before = this.open
    this.#characters = characters
    if (characters === 0) this.#brought = false
    if (before !== this.open) this.#onChange(this.open)
  }
}

const named = (typed: string): string => [...typed].map((key) => NAMED[key] ?? key).join('')

function countedFrom(characters: number, typed: string): number {
  let count = characters
  for (const key of typed) {
    if (ENDS.has(key)) count = 0
    else if (ERASES.has(key)) count = Math.max(count - 1, 0)
    else if (key !== NAMED['\x1b'] && !isContinuation(key)) count++
  }
  return count
}

/** The rest of a character of several bytes. */
const isContinuation = (byte: string): boolean => byte >= '\x80' && byte <= '\xbf'
