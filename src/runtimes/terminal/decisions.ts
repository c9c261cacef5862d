/** What a screen means: rows in, meaning out. Nothing here knows a terminal, a clock or a process. */
import { createHash } from 'node:crypto'
import { cut } from '../../contract/base/text.ts'
import type { ApprovalDialog, StartupDialog } from '../../harnesses/harness.ts'
import type { Activity, Pending, PermissionKind } from '../process/runtime.ts'
import { emptyPrompt, hasInputBelow, promptRow, type ScreenHints, said } from './input-line.ts'
import { isBlank, isRule, type Menu, menuAtEnd, unframed } from './menu.ts'
import type { Row } from './rows.ts'

type Rows = readonly Row[]

/** Between the question and the first option. */
const MAX_GAP_ROWS = 2
/** What a question is about stands right above it. */
const MAX_BODY_ROWS = 30

// ---- ready, idle ----------------------------------------------------------------------------------------------------

/**
 * A dialog of the start: its words and its options, and no input line below it. A request for approval is none, whatever
 * words it asks about: this one is answered without a person.
 */
export function startupDialogOn(
  rows: Rows,
  hints: ScreenHints,
): { readonly dialog: StartupDialog; readonly menu: Menu; readonly option: number } | undefined {
  if (emptyPrompt(rows, hints) !== undefined) return undefined
  const menu = menuAtEnd(rows)
  if (menu === undefined || hasInputBelow(rows, menu.last, hints.prompt)) return undefined
  const { approval } = hints.rules
  if (approval !== undefined && approvalOf(rows, menu, approval, []) !== undefined) return undefined
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
  if (menu.by !== 'word' && hasInputBelow(rows, menu.last, hints.prompt)) return undefined
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

/** A program waits for a key, without a menu: the words are the last that is drawn, and there is no input line. */
export function asksForKey(rows: Rows, hints: ScreenHints): boolean {
  const below = rows.slice((emptyPrompt(rows, hints) ?? -1) + 1).filter(({ text }) => !isBlank(text))
  return ASKS_KEY.test(said(below.slice(-3))) && !hasInputBelow(rows, -1, hints.prompt)
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
  const texts = unwrapped(body)
  const place = placeOfQuestion(texts)
  const prompt = own ?? texts[place]
  const asked = own === undefined ? texts.filter((_, index) => index !== place) : texts
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

const ASKS = /[?？؟](?:["'”»)\s]|$)/
const IS_STATEMENT = /[.。]$/

/** The question stands right above its options, or above the sentences that explain it. */
function placeOfQuestion(texts: readonly string[]): number {
  const last = texts.length - 1
  if (!IS_STATEMENT.test(texts[last] ?? '')) return last
  const question = texts.findLastIndex((text) => ASKS.test(text))
  return question === -1 ? last : question
}

/** Sentences that a terminal has broken over rows, each as one; what is not wrapped stays a line. */
function unwrapped(lines: readonly string[]): string[] {
  const width = Math.max(0, ...lines.map((line) => line.length))
  const texts: string[] = []
  let above = ''
  for (const line of lines) {
    const [word = ''] = line.split(' ', 1)
    const isWrapped = /^\p{Ll}/u.test(line) && above.length + 1 + word.length > width
    if (isWrapped) texts.push(`${texts.pop() ?? ''} ${line}`)
    else texts.push(line)
    above = line
  }
  return texts
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
