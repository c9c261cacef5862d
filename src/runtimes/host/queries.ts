/**
 * What programs ask their terminal, answered by the host: whoever gets no answer hangs for a while, or gives up, and nobody
 * may be attached. A person's own terminal answers too: that is left out.
 *
 * A1  Answers come in the order of the questions; there are at most so many in a second, whatever is printed.
 * A2  Only who reads key by key is answered: elsewhere an answer would stand in the next line that is typed.
 */
import type { Clock } from '../../kernel/clock.ts'
import { cursorAfter, type Place, type Size } from './cursor-place.ts'

/** What it is: a terminal with the abilities that all have; it is well; where the cursor stands; its colours. */
const NEEDLES = ['\u001b[c', '\u001b[0c', '\u001b[5n', '\u001b[6n', '\u001b]10;?', '\u001b]11;?'].map((text) =>
  Buffer.from(text),
)
const LONGEST = 6
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is asked.
const QUESTIONS = /\u001b\[(0?c|[56]n)|\u001b\](1[01]);\?(\u0007)?/g
const ATTRIBUTES = '\u001b[?1;2c'
const WELL = '\u001b[0n'
/** Light on dark, as most harnesses are drawn for. */
const COLOURS: Readonly<Record<string, string>> = { 10: 'cccc/cccc/cccc', 11: '0000/0000/0000' }
const ANSWERS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is answered.
  /\u001b\[\?[\d;]*c|\u001b\[0n|\u001b\[\d+;\d+R|\u001b\]1[01];rgb:[^\u0007\u001b]*(?:\u0007|\u001b\\)/g

const MOST_IN_A_SECOND = 20
const SECOND_MS = 1_000
/** So late a person's terminal may answer the same. */
const LATE_MS = 2_000
/** Of the output: what tells where the cursor stands. */
const KEPT_BYTES = 16 * 1024
const NOTHING: Buffer = Buffer.alloc(0)

interface QueriesDeps {
  readonly clock: Clock
  readonly size: () => Size
  /** A2. */
  readonly readsKeys: () => boolean
  readonly answer: (text: string) => void
}

export class Queries {
  readonly #deps: QueriesDeps
  /** The end of the output, and where the cursor stood before it. */
  #kept: Buffer = NOTHING
  #before: Place = { row: 0, column: 0 }
  /** Behind that: what may be the beginning of a question. */
  #cut: Buffer = NOTHING
  #second = 0
  #answered = 0
  #answeredAt = Number.NEGATIVE_INFINITY

  constructor(deps: QueriesDeps) {
    this.#deps = deps
  }

  look(bytes: Buffer): void {
    const fresh = this.#cut.length === 0 ? bytes : Buffer.concat([this.#cut, bytes])
    const behind = NEEDLES.some((needle) => fresh.includes(needle)) ? this.#answerAll(fresh) : 0
    const last = fresh.lastIndexOf(0x1b)
    const isCut = last >= behind && fresh.length - last < LONGEST
    const whole = isCut ? fresh.subarray(0, last) : fresh
    this.#cut = isCut ? Buffer.from(fresh.subarray(last)) : NOTHING
    this.#keep(whole)
  }

  /** What a person's terminal sends, without its answers to what was answered. */
  withoutAnswers(bytes: Uint8Array): Uint8Array {
    if (this.#deps.clock.monotonic() > this.#answeredAt + LATE_MS) return bytes
    return Buffer.from(Buffer.from(bytes).toString('latin1').replaceAll(ANSWERS, ''), 'latin1')
  }

  /** Where the last question ends. */
  #answerAll(fresh: Buffer): number {
    const questions = [...fresh.toString('latin1').matchAll(QUESTIONS)]
    const readsKeys = questions.length > 0 && this.#deps.readsKeys()
    let behind = 0
    for (const { 0: asked, 1: sequence, 2: colour, 3: bell, index } of questions) {
      behind = index + asked.length
      if (!readsKeys || !this.#mayAnswer()) continue
      if (colour !== undefined) this.#deps.answer(`\u001b]${colour};rgb:${COLOURS[colour]}${bell ?? '\u001b\\'}`)
      else if (sequence === '6n') this.#deps.answer(this.#cursorBehind(fresh.subarray(0, behind)))
      else this.#deps.answer(sequence === '5n' ? WELL : ATTRIBUTES)
    }
    return behind
  }

  #cursorBehind(fresh: Buffer): string {
    const { row, column } = cursorAfter(Buffer.concat([this.#kept, fresh]), this.#deps.size(), this.#before)
    return `\u001b[${row + 1};${column + 1}R`
  }

  /** A1. */
  #mayAnswer(): boolean {
    const now = this.#deps.clock.monotonic()
    if (now >= this.#second + SECOND_MS) {
      this.#second = now
      this.#answered = 0
    }
    this.#answeredAt = now
    return ++this.#answered <= MOST_IN_A_SECOND
  }

  /** What is in front goes where it is too much: the cursor is taken to be at the bottom then. */
  #keep(bytes: Buffer): void {
    const whole = Buffer.concat([this.#kept, bytes.subarray(-KEPT_BYTES)])
    const isTooMuch = this.#kept.length + bytes.length > KEPT_BYTES
    this.#kept = isTooMuch ? Buffer.from(whole.subarray(-KEPT_BYTES / 2)) : whole
    if (isTooMuch) this.#before = { row: this.#deps.size().rows - 1, column: 0 }
  }
}
