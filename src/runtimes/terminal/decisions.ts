/** What a screen means: lines in, meaning out. Nothing here knows a terminal, a clock or a process. */
import { createHash } from 'node:crypto'
import type { Activity, Answer, Pending, PermissionKind } from '../process/runtime.ts'
import type { ApprovalDialog, Harness, StartupDialog } from './harnesses.ts'

type Lines = readonly string[]

/** A prompt is looked for in so many last lines: below it there are hints and status lines. */
const PROMPT_LINES = 120
/** What is being done is said near the prompt; further up it is history. */
const STATUS_LINES = 15
/** Dialogs are drawn at the end, whatever is above. */
const DIALOG_LINES = 60
/** Between the question and the first option, and from the last option to the end. */
const MAX_GAP_LINES = 2
const MAX_TAIL_LINES = 6

const FRAME = /^[\s│┃║|]+|[\s│┃║|]+$/g
const RULE = /^[\s╭╮╰╯┌┐└┘├┤─━═╌┄▔▁-]{3,}$/

/** Without frames and margins; odd spaces are spaces. */
const bare = (line: string) => line.replaceAll('\u00a0', ' ').replace(FRAME, '')
const lastLines = (lines: Lines, count: number) => lines.slice(-count).map(bare)
/** For comparing texts that may be wrapped anywhere. */
const flowing = (lines: Lines) => lines.join(' ').replace(/\s+/g, ' ').toLowerCase()

/** The harness shows its prompt. The prefix may be the whole line: what ends a line in spaces has none. */
export function showsPrompt(lines: Lines, prefix: string): boolean {
  const wanted = prefix.replaceAll('\u00a0', ' ').trimEnd()
  if (wanted === '') return false
  return lastLines(lines, PROMPT_LINES).some((line) => line === wanted || line.startsWith(`${wanted} `))
}

/** So much of a message tells that it is the one in the input line. */
const UNSENT_CHARACTERS = 30
/** Harnesses that show a long paste by a name of their own. */
const PASTED = /^\[pasted (?:text|content)/

/** The message still stands in the input line, which is the last prompt: Enter was not taken. */
export function showsUnsent(lines: Lines, prefix: string, message: string): boolean {
  const wanted = prefix.replaceAll('\u00a0', ' ').trimEnd()
  const last = lastLines(lines, PROMPT_LINES).findLast((line) => line === wanted || line.startsWith(`${wanted} `))
  if (wanted === '' || last === undefined) return false
  const [input, said] = [last.slice(wanted.length), message].map((text) => flowing([text]).trim())
  if (input === undefined || said === undefined || said === '') return false
  return PASTED.test(input) || input.slice(0, UNSENT_CHARACTERS) === said.slice(0, UNSENT_CHARACTERS)
}

/** It says that a turn is under way. */
export function showsBusy(lines: Lines, { busy }: Pick<Harness, 'busy'>): boolean {
  const text = flowing(lastLines(lines, STATUS_LINES))
  return busy.some((words) => text.includes(words))
}

export function startupDialogOn(
  lines: Lines,
  { startupDialogs }: Pick<Harness, 'startupDialogs'>,
): StartupDialog | undefined {
  const text = flowing(lastLines(lines, DIALOG_LINES))
  return startupDialogs.find(({ match }) => match.every((words) => text.includes(words)))
}

export interface Look {
  readonly busy: boolean
  readonly prompt: boolean
  readonly dialog: boolean
  readonly quietMs: number
}

/** What counts as quiet: a TUI that works redraws a clock or a spinner every second at least. */
export const IDLE_QUIET_MS = 1_000

/** Decision 60: idle only where all says so; a dialog belongs to the turn that asks. */
export function activityOf({ busy, prompt, dialog, quietMs }: Look): Activity {
  if (busy || dialog) return 'in-turn'
  return prompt && quietMs >= IDLE_QUIET_MS ? 'idle' : 'unknown'
}

export interface Approval extends Pending {
  readonly kind: 'approval'
}

const OPTION = /^([❯›>●]?)\s*(\d)[.)]\s+(\S.*)$/

/** The approval dialog at the end of a screen: title, what is asked for, question, numbered options with a cursor. */
export function approvalOn(lines: Lines, dialog: ApprovalDialog): Approval | undefined {
  const shown = lastLines(lines, DIALOG_LINES)
  const options = optionsAtEnd(shown)
  if (options === undefined) return undefined
  const question = questionAbove(shown, options.firstLine, dialog.questions)
  if (question === -1) return undefined
  const { title, input } = bodyAbove(shown, question, dialog.tools)
  const toolName = dialog.tools[title.toLowerCase()] ?? (title || 'unknown')
  return {
    requestId: createHash('sha256').update(`${toolName}\0${input}`).digest('hex').slice(0, 16),
    kind: 'approval',
    prompt: shown[question] ?? '',
    options: options.found.map(({ digit, label }) => ({ id: digit, label, ...kindOf(label) })),
    metadata: { tool_name: toolName, source: 'screen', input },
  }
}

interface FoundOptions {
  readonly firstLine: number
  readonly found: readonly { readonly digit: string; readonly label: string }[]
}

/** Counted up from 1, one of them under the cursor; a long label goes on in the next line. */
function optionsAtEnd(shown: Lines): FoundOptions | undefined {
  const firstLine = shown.findLastIndex((line) => OPTION.exec(line)?.[2] === '1')
  if (firstLine === -1) return undefined
  const found: { digit: string; label: string }[] = []
  let cursors = 0
  let lastLine = firstLine
  for (const [index, line] of shown.slice(firstLine).entries()) {
    const [, cursor, digit, label] = OPTION.exec(line) ?? []
    const last = found.at(-1)
    if (digit === String(found.length + 1) && label !== undefined) {
      found.push({ digit, label })
      if (cursor !== '') cursors++
      lastLine = firstLine + index
    } else if (line === '' || RULE.test(line) || last === undefined) break
    else last.label = `${last.label} ${line}`
  }
  const below = shown.slice(lastLine + 1).filter((line) => line !== '' && !RULE.test(line))
  // Options that have scrolled up are history; the cursor is what tells a menu from a list.
  if (found.length < 2 || cursors !== 1 || below.length > MAX_TAIL_LINES) return undefined
  return { firstLine, found }
}

function questionAbove(shown: Lines, firstOption: number, questions: readonly string[]): number {
  for (let index = firstOption - 1; index >= 0 && index >= firstOption - 1 - MAX_GAP_LINES; index--) {
    const line = (shown[index] ?? '').toLowerCase()
    if (questions.some((question) => line.startsWith(question))) return index
  }
  return -1
}

/** From the title, the first line under a rule, down to the question. Dialogs may be ruled inside: a known title counts. */
function bodyAbove(shown: Lines, question: number, tools: ApprovalDialog['tools']): { title: string; input: string } {
  const above = shown.slice(0, question).filter((line) => line !== '')
  const underRule = [...above.keys()].filter(
    (index) => !isRule(above[index]) && (index === 0 || isRule(above[index - 1])),
  )
  const known = underRule.findLast((index) => (above[index] ?? '').toLowerCase() in tools)
  const top = known ?? underRule.at(-1) ?? 0
  const [title = '', ...rest] = above.slice(top).filter((line) => !isRule(line))
  return { title, input: rest.join('\n') }
}

const isRule = (line: string | undefined) => line !== undefined && RULE.test(line)

function kindOf(label: string): { kind?: PermissionKind } {
  if (/^yes\b.*(don.t ask|always|allow all|all edits|this session)/i.test(label)) return { kind: 'allow_always' }
  if (/^yes\b/i.test(label)) return { kind: 'allow_once' }
  return /^no\b/i.test(label) ? { kind: 'reject_once' } : {}
}

const WANTED: Readonly<Record<'approve' | 'approve_always' | 'deny', readonly PermissionKind[]>> = {
  approve: ['allow_once'],
  approve_always: ['allow_always'],
  deny: ['reject_once', 'reject_always'],
}

/** The keys that give this answer; undefined where the dialog has none for it. */
export function keysFor(pending: Pick<Pending, 'options'>, answer: Answer, dialog: ApprovalDialog): string | undefined {
  if (answer.action === 'cancel') return dialog.cancelKey
  if (answer.action === 'option') return pending.options.find(({ id }) => id === answer.optionId)?.id
  const option = WANTED[answer.action]
    .map((kind) => pending.options.find((candidate) => candidate.kind === kind))
    .find((candidate) => candidate !== undefined)
  if (option !== undefined) return option.id
  return answer.action === 'deny' ? dialog.cancelKey : undefined
}
