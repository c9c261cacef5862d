/** What a screen means: rows in, meaning out. Nothing here knows a terminal, a clock or a process. */
import { createHash } from 'node:crypto'
import { cut } from '../../contract/base/text.ts'
import type { ApprovalDialog, ScreenRules, StartupDialog } from '../../harnesses/harness.ts'
import type { Activity, Pending, PermissionKind } from '../process/runtime.ts'
import { isBlank, isRule, type Menu, menuAtEnd, unframed } from './menu.ts'
import { brightText, type Row } from './rows.ts'

type Rows = readonly Row[]

/** What is being done is said near the prompt; further up it is history. */
const STATUS_ROWS = 15
/** Hints and status lines below a prompt; an input line further up was left behind. */
const MAX_ROWS_BELOW = 12
/** Between the question and the first option. */
const MAX_GAP_ROWS = 2
/** What a question is about stands right above it. */
const MAX_BODY_ROWS = 30

/** For comparing texts that may be wrapped anywhere. */
const flowing = (texts: readonly string[]) => texts.join(' ').replace(/\s+/g, ' ').trim().toLowerCase()
const said = (rows: Rows) => flowing(rows.map(({ text }) => unframed(text)))

/** How the screens of one harness are read. */
export interface ScreenHints {
  readonly rules: ScreenRules
  /** What its input line begins with; undefined: not known. */
  readonly prompt: string | undefined
}

// ---- the input line -------------------------------------------------------------------------------------------------

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

// ---- busy, ready, idle ----------------------------------------------------------------------------------------------

/** It says that a turn is under way. */
export function showsBusy(rows: Rows, { busy }: Pick<ScreenRules, 'busy'>): boolean {
  const text = said(rows.slice(-STATUS_ROWS))
  return busy.some((words) => text.includes(words))
}

/** A dialog of the start: its words and its options, and no input line below it. */
export function startupDialogOn(
  rows: Rows,
  hints: ScreenHints,
): { readonly dialog: StartupDialog; readonly menu: Menu; readonly option: number } | undefined {
  if (emptyPrompt(rows, hints) !== undefined) return undefined
  const menu = menuAtEnd(rows)
  if (menu === undefined) return undefined
  const text = said(rows.slice(Math.max(0, menu.first - MAX_BODY_ROWS)))
  const dialog = hints.rules.startupDialogs.find(({ match }) => match.every((words) => text.includes(words)))
  const option = menu.options.findIndex(({ label }) => label.toLowerCase().startsWith(dialog?.choose ?? '?'))
  return dialog === undefined || option === -1 ? undefined : { dialog, menu, option }
}

/** What counts as quiet: a TUI that works redraws a clock or a spinner every second at least. */
export const IDLE_QUIET_MS = 1_000
/** Where no prompt is known, quiet is all that there is to go by. */
export const UNKNOWN_QUIET_MS = 3_000

export interface Look {
  readonly busy: boolean
  /** An empty input line; undefined: nobody knows what it looks like. */
  readonly prompt: boolean | undefined
  /** Something on it asks. */
  readonly asks: boolean
  readonly quietMs: number
}

/** Decision 60: idle only where all says so; a dialog belongs to the turn that asks. */
export function activityOf({ busy, prompt, asks, quietMs }: Look): Activity {
  if (busy || asks) return 'in-turn'
  const quiet = quietMs >= (prompt === undefined ? UNKNOWN_QUIET_MS : IDLE_QUIET_MS)
  return prompt !== false && quiet ? 'idle' : 'unknown'
}

// ---- dialogs --------------------------------------------------------------------------------------------------------

/** A question on the screen, with the menu that takes its answer. */
export interface Dialog {
  readonly pending: Pending
  readonly menu: Menu
}

/** The question at the end of a screen; what stands above an empty input line, or before `from`, is history. */
export function dialogOn(rows: Rows, hints: ScreenHints, from = 0): Dialog | undefined {
  const menu = menuAtEnd(rows, Math.max(from, (emptyPrompt(rows, hints) ?? -1) + 1))
  if (menu === undefined || isTyping(rows, menu, hints) || isAnswer(rows, menu, hints)) return undefined
  const { approval } = hints.rules
  const options = menu.options.map(({ id, label }) => ({ id, label, ...kindOf(label) }))
  const pending = (approval && approvalOf(rows, menu, approval, options)) ?? questionOf(rows, menu, options)
  return { pending, menu }
}

/**
 * Its first option is the input line: the cursor of the terminal stands behind what is in it, and the status line stands
 * below a gap. A menu has its cursor elsewhere: at its pointer, behind all that was drawn, or nowhere.
 */
function isTyping(rows: Rows, { by, cursor, first }: Menu, { prompt }: ScreenHints): boolean {
  if (prompt === undefined || by !== 'up-down' || cursor !== 0 || promptRow(rows, prompt) !== first) return false
  const at = rows.findIndex((row) => row.cursor !== undefined)
  const typed = rows.slice(first, at + 1)
  const isWhole = typed.length > 0 && typed.every(({ text }) => !isBlank(text))
  return isWhole && (typed.at(-1)?.cursor ?? 0) >= (typed.at(-1)?.text.length ?? 0) && isGap(rows[at + 1])
}

const isGap = (row: Row | undefined): boolean => row !== undefined && isBlank(row.text)

const BULLET = /^\s*[●•*]\s/

/** What stands right below a message, behind a bullet, is what was answered to it. */
function isAnswer(rows: Rows, { by, cursor, first }: Menu, { prompt }: ScreenHints): boolean {
  if (prompt === undefined || by !== 'up-down' || cursor !== 0 || !BULLET.test(rows[first]?.text ?? '')) return false
  const above = rows.slice(0, first).findLastIndex(({ text }) => !isBlank(text))
  const message = unframed(rows[above]?.text ?? '').trim()
  return message.startsWith(`${prompt.trim()} `)
}

/** It asks for a key without options. */
const ASKS_KEY = /press (?:enter|return|any key) to (?:continue|proceed|confirm|select)|press any key/

/** Something waits that is no menu: by words of the harness, or of everybody. */
export function asksForKey(rows: Rows, hints: ScreenHints): boolean {
  const { dialogs = [] } = hints.rules
  const below = rows.slice((emptyPrompt(rows, hints) ?? -1) + 1).filter(({ text }) => !isBlank(text))
  if (ASKS_KEY.test(said(below.slice(-3)))) return true
  const text = said(rows)
  return dialogs.some((words) => words.every((word) => text.includes(word)))
}

/** An approval dialog as its harness draws it: title, what is asked for, question, options. */
function approvalOf(rows: Rows, menu: Menu, dialog: ApprovalDialog, options: Pending['options']): Pending | undefined {
  const lines = rows.slice(0, menu.first).map(({ text }) => (isRule(text) ? RULED : unframed(text).trim()))
  const question = questionAbove(lines, dialog.questions)
  if (question === -1) return undefined
  const { title, input } = bodyAbove(lines, question, dialog.tools)
  const toolName = dialog.tools[title.toLowerCase()] ?? (title || 'unknown')
  return {
    requestId: idOf(toolName, input),
    kind: 'approval',
    prompt: lines[question] ?? '',
    options,
    metadata: { tool_name: toolName, source: 'screen', input },
  }
}

const RULED = '\u0000'

function questionAbove(lines: readonly string[], questions: readonly string[]): number {
  for (let row = lines.length - 1; row >= 0 && row >= lines.length - 1 - MAX_GAP_ROWS; row--)
    if (questions.some((question) => lines[row]?.toLowerCase().startsWith(question))) return row
  return -1
}

/** From the title, the first line under a rule, down to the question. Dialogs may be ruled inside: a known title counts. */
function bodyAbove(
  lines: readonly string[],
  question: number,
  tools: ApprovalDialog['tools'],
): { title: string; input: string } {
  const above = lines.slice(0, question).filter((line) => line !== '')
  const underRule = [...above.keys()].filter((row) => above[row] !== RULED && (row === 0 || above[row - 1] === RULED))
  const known = underRule.findLast((row) => (above[row] ?? '').toLowerCase() in tools)
  const top = known ?? underRule.at(-1) ?? 0
  const [title = '', ...rest] = above.slice(top).filter((line) => line !== RULED)
  return { title, input: rest.join('\n') }
}

/** What any program asks: the lines right above its options, up to a rule or a gap. */
function questionOf(rows: Rows, menu: Menu, options: Pending['options']): Pending {
  const body = bodyOf(rows, menu.first)
  const own = menu.by === 'word' ? unframed(rows[menu.last]?.text ?? '').trim() : undefined
  const prompt = own ?? body.at(-1)
  const asked = own === undefined ? body.slice(0, -1) : body
  const input = asked.join('\n')
  const kinds = new Set(options.map(({ kind }) => kind))
  return {
    requestId: idOf(prompt ?? '', input, ...options.map(({ label }) => label)),
    kind: kinds.has('allow_once') && kinds.has('reject_once') ? 'approval' : 'question',
    ...(prompt !== undefined && { prompt }),
    options,
    metadata: { source: 'screen', ...(input !== '' && { input }) },
  }
}

function bodyOf(rows: Rows, first: number): string[] {
  const body: string[] = []
  let gaps = 0
  for (let row = first - 1; row >= 0 && body.length < MAX_BODY_ROWS; row--) {
    const text = rows[row]?.text ?? ''
    if (isRule(text)) {
      if (body.length > 0) break
      continue
    }
    const line = unframed(text).trim()
    if (line !== '') body.unshift(line)
    else if (body.length > 0 && ++gaps > 2) break
  }
  return body
}

/** Spinners and clocks are not what is asked. */
const VOLATILE = /[\u2800-\u28ff]|\(\d+(?:\.\d+)?\s?(?:ms|s|m)\b[^)]{0,40}\)?/g

const idOf = (...parts: readonly string[]): string =>
  cut(hashOf(parts.map((part) => part.replaceAll(VOLATILE, '')).join('\0')), 16)

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const EVERY_TIME = /don.t ask|\b(?:always|all|every|session|auto|remember|future|forever|future)\b/i

function kindOf(label: string): { kind?: PermissionKind } {
  const yes = /^(?:yes|y|allow|approve|accept)\b/i.test(label)
  if (yes || /^always\b/i.test(label)) return { kind: EVERY_TIME.test(label) ? 'allow_always' : 'allow_once' }
  if (/^never\b/i.test(label)) return { kind: 'reject_always' }
  return /^(?:no|n|deny|reject|decline|don.t)\b/i.test(label) ? { kind: 'reject_once' } : {}
}
