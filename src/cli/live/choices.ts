/** What can be answered to a question of an agent, and what the words of a person mean (pure). */
import type { BodyOf } from '../../contract/base/operation.ts'
import type { OperationById } from '../../contract/index.ts'
import type { PendingInteraction } from '../../contract/sessions/session-model.ts'

export type Question = PendingInteraction
export type Reply = BodyOf<OperationById<'respond-session'>>

/** One of the numbered answers; the first has number 1. */
export interface Choice {
  readonly label: string
  readonly id: string
  readonly reply: Reply
}

/** Answers that every approval knows, whatever its choices are called. */
const ACTIONS = ['approve', 'allow', 'approve_always', 'approve_accept_edits', 'deny', 'cancel'] as const

/** What a question is about, where it does not say so itself. */
export const promptOf = ({ prompt, metadata, kind }: Question): string => prompt ?? metadata?.['title'] ?? kind

/** An answer of one's own words fits a question; an approval is one of its choices. */
export const takesText = ({ kind }: Question): boolean => kind === 'question'

export function choicesOf({ kind, options = [], option_ids: ids = [] }: Question): readonly Choice[] {
  if (options.length > 0 || kind === 'question')
    return options.map((label, at) => {
      const id = ids[at] ?? label
      return { label, id, reply: { action: 'option', option_id: id } }
    })
  return [
    { label: 'Approve', id: 'approve', reply: { action: 'approve' } },
    { label: 'Deny', id: 'deny', reply: { action: 'deny' } },
  ]
}

/** `1 Allow, 2 Reject` */
export const numbered = (question: Question): string =>
  choicesOf(question)
    .map(({ label }, at) => `${at + 1} ${label}`)
    .join(', ')

/** Where somebody sees the numbers, a number is never an id. */
interface Reading {
  readonly seesNumbers: boolean
}

/** What a word answers: a number, a label, an id, an action, or free text where the question takes it. */
export function replyTo(
  question: Question,
  word: string,
  { seesNumbers }: Reading,
): Reply | { readonly wrong: string } {
  const choices = choicesOf(question)
  const byNumber = /^[1-9]\d{0,3}$/.test(word) ? choices[Number(word) - 1] : undefined
  const byName = choices.find(({ id, label }) => id === word || label === word)
  if (byNumber !== undefined && (seesNumbers || byName === undefined)) return byNumber.reply
  if (byNumber !== undefined && byName !== byNumber)
    return { wrong: `"${word}" is the number of "${byNumber.label}" and a name of "${byName?.label}": give its label` }
  const found = byName ?? only(choices.filter(({ id, label }) => [id, label].some((name) => fold(name) === fold(word))))
  if (found !== undefined) return found.reply
  const action = question.kind === 'approval' ? actionOf(word) : undefined
  if (action !== undefined) return { action }
  if (takesText(question) && word !== '') return { action: 'approve', text: word }
  return { wrong: `there is no choice "${word}": ${possible(question)}` }
}

/** Everything that could be said. */
export const possible = (question: Question): string =>
  [
    numbered(question),
    ...(question.kind === 'approval' ? [listed(ACTIONS)] : []),
    ...(takesText(question) ? ['an answer in your own words'] : []),
  ]
    .filter((part) => part !== '')
    .join('; or ')

/** An action that needs no look at the question. */
export const actionOf = (word: string): (typeof ACTIONS)[number] | undefined =>
  ACTIONS.find((action) => fold(action) === fold(word))

const listed = (actions: readonly string[]): string => actions.map((action) => action.replaceAll('_', '-')).join(', ')

/** `Allow once`, `allow_once` and `allow-once` are one name. */
const fold = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]+/g, ' ')

const only = <T>(found: readonly T[]): T | undefined => (found.length === 1 ? found[0] : undefined)
