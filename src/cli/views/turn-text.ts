/**
 * Turns of a transcript as text that flows (pure). A stream sends an entry in pieces, all with its id: they are joined as
 * they are. Text of a terminal is one text whatever it was cut into.
 */
import type { OutputTurn } from '../../contract/sessions/session-transcript.ts'
import { printable } from '../base/failure.ts'

type Turn = Pick<OutputTurn, 'id' | 'role' | 'text'>

/** Stands before every line of a role; `next` where it differs from the second line on. */
const MARKS: Readonly<Record<OutputTurn['role'], { readonly first: string; readonly next: string }>> = {
  user: { first: '> ', next: '> ' },
  assistant: { first: '', next: '' },
  system: { first: '· ', next: '  ' },
  result: { first: '  ', next: '  ' },
  output: { first: '', next: '' },
}
/** Roles whose entries come in pieces; those of the others are whole. */
const FLOWING: readonly OutputTurn['role'][] = ['assistant', 'output']
/** Lines of one's own whose way back is waited for. */
const MOST_OWN = 100

/** Text of several lines keeps them; everything else that could command a terminal is shown, not obeyed. */
export const printableLines = (text: string): string =>
  printable(text.replaceAll('\r\n', '\n').replaceAll('\t', '    '))

export class TurnText {
  /** What goes back to the beginning of a line that is written anew. */
  readonly #rewind: string
  #last: Turn | undefined
  #inLine = false
  /** What the terminal is about to repeat of what was typed into it, and how much of that has come. */
  #echo = ''
  #withheld = ''
  readonly #own: string[] = []

  constructor(toTerminal: boolean) {
    this.#rewind = toTerminal ? '\r' : '\n'
  }

  /** What to print of the turn; nothing, where it only repeats what is there already. */
  add(turn: Turn): string {
    if (turn.role === 'user' && this.#isOwn(turn.text)) {
      this.#last = turn
      this.#expectEcho(turn.text)
      return ''
    }
    const text = turn.role === 'output' ? this.#withoutEcho(turn.text) : turn.text
    if (text === '') return ''
    const lead = this.#goesOn(turn) ? '' : this.breakLine()
    this.#last = turn
    const shown = `${lead}${this.#marked(turn.role, text)}`
    if (turn.role === 'user') this.#expectEcho(turn.text)
    return shown
  }

  /** A line was typed where this text is shown: it stands there already, and so does the end of the line. */
  typed(line: string): void {
    if (line.trim() !== '') this.#own.push(line)
    if (this.#own.length > MOST_OWN) this.#own.shift()
    this.#inLine = false
  }

  /** The end of the line that the text is in, where something else is to be shown. */
  breakLine(): string {
    if (!this.#inLine) return ''
    this.#inLine = false
    return '\n'
  }

  /** The turn has ended: no more comes of what was being said. A terminal's line may well go on. */
  pause(): string {
    return this.#last?.role === 'output' ? '' : this.breakLine()
  }

  #isOwn(text: string): boolean {
    const at = this.#own.indexOf(text)
    if (at < 0) return false
    this.#own.splice(0, at + 1)
    return true
  }

  #goesOn({ id, role }: Turn): boolean {
    const last = this.#last
    return last?.role === role && (role === 'output' || (last.id === id && FLOWING.includes(role)))
  }

  #expectEcho(text: string): void {
    this.#echo = `${text}\n`
    this.#withheld = ''
  }

  /** The text behind the echo; what may be a part of the echo is held back until it is known. */
  #withoutEcho(text: string): string {
    const echo = this.#echo
    if (echo === '') return text
    if (text.length < echo.length && echo.startsWith(text)) {
      this.#withheld += text
      this.#echo = echo.slice(text.length)
      return ''
    }
    const rest = text.startsWith(echo) ? text.slice(echo.length) : `${this.#withheld}${text}`
    this.#echo = ''
    this.#withheld = ''
    return rest
  }

  #marked(role: OutputTurn['role'], text: string): string {
    const rewinds = role === 'output' && /^\r(?!\n)/.test(text)
    const start = rewinds && this.#inLine ? this.#rewind : ''
    const { first, next } = MARKS[role]
    const lines = printableLines(rewinds ? text.slice(1) : text)
    const begins = this.#inLine ? '' : first
    const whole = FLOWING.includes(role) || lines.endsWith('\n') ? lines : `${lines}\n`
    this.#inLine = lines === '' ? this.#inLine : !whole.endsWith('\n')
    const body = next === '' ? whole : whole.replaceAll(/\n(?!$)/g, `\n${next}`)
    return `${start}${begins}${body}`
  }
}
