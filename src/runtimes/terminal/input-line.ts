/** What an input line is and what stands in it: rows in, meaning out. */
import { cut } from '../../contract/base/text.ts'
import type { ScreenRules } from '../../harnesses/harness.ts'
import { isBlank, isRule, menuAtEnd, unframed } from './menu.ts'
import { brightText, type Row } from './rows.ts'

type Rows = readonly Row[]

/** Hints and status lines below a prompt; an input line further up was left behind. */
const MAX_ROWS_BELOW = 12

/** For comparing texts that may be wrapped anywhere. */
const flowing = (texts: readonly string[]) => texts.join(' ').replace(/\s+/g, ' ').trim().toLowerCase()
export const said = (rows: Rows) => flowing(rows.map(({ text }) => unframed(text)))

/** How the screens of one harness are read. */
export interface ScreenHints {
  readonly rules: ScreenRules
  /** What its input line begins with; undefined: not known. */
  readonly prompt: string | undefined
}

/** The row of the last input line, whatever is in it. */
export function promptRow(rows: Rows, prompt: string): number {
  const wanted = prompt.replaceAll('\u00a0', ' ').trim()
  if (wanted === '') return -1
  return rows.findLastIndex(({ text }) => {
    const line = unframed(text).trim()
    return line === wanted || line.startsWith(`${wanted} `)
  })
}

/** What stands in an input line: nothing, where there is only a hint, behind whose cursor nothing was typed. */
function inputAt(rows: Rows, row: number, prompt: string, { placeholders = [] }: ScreenRules): string {
  const at = rows[row]
  if (at === undefined) return ''
  const line = unframed(brightText(at))
  const behind = line.length - line.trimStart().length + prompt.trim().length
  const rest = line.slice(behind).trim()
  const begins = unframed(at.text).slice(behind).search(/\S/) + behind
  const hint = rest.toLowerCase()
  return cursorIn(at) === begins || placeholders.some((words) => hint.startsWith(words)) ? '' : rest
}

/** The cursor of the terminal, or the one cell that a program draws for it. */
const cursorIn = ({ cursor, runs }: Row): number | undefined =>
  runs.find(({ from, to, inverse }) => inverse && to - from === 1)?.from ?? cursor

/** The row of an empty input line that takes the next message; undefined: there is none, or none is known. */
export function emptyPrompt(rows: Rows, { rules, prompt }: ScreenHints): number | undefined {
  if (prompt === undefined) return undefined
  const row = promptRow(rows, prompt)
  if (row === -1 || inputAt(rows, row, prompt, rules) !== '') return undefined
  const menu = menuAtEnd(rows)
  if (menu !== undefined && menu.first <= row && row <= menu.last) return undefined
  if (isHintOfMenu(rows, row, prompt)) return undefined
  return rows.slice(row + 1).filter(({ text }) => !isBlank(text)).length > MAX_ROWS_BELOW ? undefined : row
}

const FRAMED = /^\s*[│┃║|]/

/** A menu may explain itself in faint words behind the glyph of a prompt, in its own frame. */
function isHintOfMenu(rows: Rows, row: number, prompt: string): boolean {
  if (unframed(rows[row]?.text ?? '').trim() === prompt.trim()) return false
  const above = menuAtEnd(rows.slice(0, row))
  return above !== undefined && rows.slice(above.last, row + 1).every(({ text }) => FRAMED.test(text) && !isRule(text))
}

/** So much of a message tells that it is the one in the input line. */
const UNSENT_CHARACTERS = 30
/** So much of one that is drawn faint tells that it has come. */
const ARRIVED_CHARACTERS = 10
const squeezed = (text: string): string => text.replaceAll(/\s/g, '').toLowerCase()

/** What an input line shows of a message that is being typed into it: `empty` while it has not come; `unknown`: no line is seen. */
export function arrivalOf(rows: Rows, { prompt, rules }: ScreenHints, message: string): 'seen' | 'empty' | 'unknown' {
  const row = prompt === undefined ? -1 : promptRow(rows, prompt)
  if (prompt === undefined || row === -1) return 'unknown'
  if (inputAt(rows, row, prompt, rules) !== '') return 'seen'
  const shown = squeezed(rows.slice(row).reduce((text, one) => text + unframed(one.text), ''))
  return shown.includes(cut(squeezed(message), ARRIVED_CHARACTERS)) ? 'seen' : 'empty'
}

/** A message that stands in the input line and was not entered. */
export interface Unsent {
  /** The row behind it. */
  readonly behind: number
  /** All of it can be seen. */
  readonly whole: boolean
  /** Its Enter was taken for the end of a line: the cursor stands in an empty one below it. */
  readonly newline: boolean
}
/** Harnesses that show a long paste by a name of their own. */
const PASTED = /^\[pasted (?:text|content)[^\]]*\]$/

/**
 * Whether a message stands, and nothing else does, in the input line: Enter was not taken. `withCursor`: only where that is
 * in it, which tells an input line from the same words in the conversation.
 */
export function unsentOn(
  rows: Rows,
  { prompt, rules }: ScreenHints,
  message: string,
  withCursor: boolean,
): Unsent | undefined {
  const row = prompt === undefined ? -1 : promptRow(rows, prompt)
  if (prompt === undefined || row === -1) return undefined
  const end = rows.findIndex(({ text }, index) => index > row && isBlank(text))
  const more = rows.slice(row + 1, end === -1 ? rows.length : end).map(({ text }) => unframed(text))
  const behind = row + 1 + more.length
  const hasCursor = rows.slice(row, behind).some((one) => cursorIn(one) !== undefined)
  const newline = !hasCursor && isNextLine(rows[behind], textColumn(rows[row], prompt))
  if (withCursor && !hasCursor && !newline) return undefined
  const shown = flowing([inputAt(rows, row, prompt, rules), ...more])
  const [input, wanted] = [shown, flowing([message])].map((text) => text.replaceAll(' ', ''))
  if (!wanted || !input) return undefined
  const part = input.length >= UNSENT_CHARACTERS && wanted.startsWith(input)
  if (!PASTED.test(shown) && input !== wanted && !part) return undefined
  return { behind, whole: input === wanted, newline }
}

/** Lines of an input begin below each other. */
const isNextLine = (row: Row | undefined, column: number): boolean =>
  row !== undefined && unframed(row.text) === '' && cursorIn(row) === column

function textColumn(row: Row | undefined, prompt: string): number {
  const line = unframed(row?.text ?? '')
  const behind = line.length - line.trimStart().length + prompt.trim().length
  return behind + line.slice(behind).search(/\S/)
}

/** The name of whoever types, and a glyph: `❯ `, `| `, `you> `. */
const INPUT = /^\s*(?<name>[\p{L}\d@~._-]{0,24}) ?[>❯›»|│┃→▌](?:\s|$)/u
/** A program that asks for one of its options names that. */
const ASKS = /^(?:choi|choose|sele|opt|answer|number|enter|pick|press)/i

/**
 * Whether somebody may type into an input line behind `row`: the cursor is shown there, behind what is in it. A menu above
 * it is text of the conversation, and so is a request for a key.
 */
export function hasInputBelow(rows: Rows, row: number, prompt: string | undefined): boolean {
  const known = prompt === undefined ? -1 : promptRow(rows, prompt)
  return rows.some((one, index) => {
    const column = index > row ? shownCursor(one) : undefined
    if (column === undefined || column < 1) return false
    if (index === known) return true
    const name = INPUT.exec(one.text)?.groups?.['name']
    return name !== undefined && !ASKS.test(name)
  })
}

/** Where a person sees the cursor in this row. */
const shownCursor = ({ cursor, cursorShown, runs }: Row): number | undefined =>
  runs.find(({ from, to, inverse }) => inverse && to - from === 1)?.from ?? (cursorShown === true ? cursor : undefined)
