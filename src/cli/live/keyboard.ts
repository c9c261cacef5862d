/** What a key does to the live view, and what it asks to be done (pure). */
import type { Asked } from '../views/needs.ts'
import { choicesOf } from './choices.ts'
import type { Spot } from './feed.ts'
import type { Key } from './keys.ts'
import { asked, FROM_THE_TOP, inList, type Pressed, pressOn, type ScreenAction, said, turned } from './pressing.ts'
import { askerOf } from './question-text.ts'
import { type Choosing, PANES, type Purpose, questionAt, type Row, rowsOf, spotAt, type View } from './rows.ts'
import { selectedAt } from './selecting.ts'

export type Action =
  | ScreenAction
  | { readonly kind: 'attach'; readonly spot: Spot }
  | { readonly kind: 'say'; readonly spot: Spot; readonly text: string }
  | Answering

export interface Answering {
  readonly kind: 'answer'
  readonly question: Asked
  readonly word: string
  /** By one key, which may have been meant for another question. */
  readonly isKey: boolean
}

type Answer = Pressed<Choosing, Action>

export const press = (view: View, key: Key): Answer =>
  pressOn<Purpose, Choosing, View, Action>(view, key, { command, whole })

function command(view: View, word: string): Answer {
  const rows = rowsOf(view)
  const pane = turned(PANES, view.pane, word)
  if (pane !== undefined) return { change: { pane, ...FROM_THE_TOP } }
  return inList(rows, view.selected, word) ?? aboutRow(view, word, rows[selectedAt(rows, view.selected)])
}

function aboutRow(view: View, word: string, row: Row | undefined): Answer {
  const spot = spotAt(row)
  const question = questionAt(row)
  switch (word) {
    case 'c':
      return { change: { city: view.city === undefined ? row?.city : undefined } }
    case 'enter':
    case 'a':
      return spot === undefined ? said('select a session to attach to') : { action: { kind: 'attach', spot } }
    case 'm':
      return spot === undefined
        ? said('select a session to speak to')
        : asked(`message to ${spot.name}: `, { kind: 'say', spot })
    case 'r':
      return question === undefined
        ? said('nothing is asked there')
        : asked(`answer to ${askerOf(question)}: `, { kind: 'answer', question })
    default:
      return /^[1-9]$/.test(word) && question !== undefined ? byNumber(question, word) : {}
  }
}

/** Of more than nine choices the others are typed. */
function byNumber(question: Asked, word: string): Answer {
  if (choicesOf(question)[Number(word) - 1] === undefined) return said(`there is no choice ${word}`)
  return { action: { kind: 'answer', question, word, isKey: true } }
}

/** What a typed line asks for. */
const whole = (_: View, purpose: Purpose, text: string): Answer =>
  purpose.kind === 'say'
    ? { action: { kind: 'say', spot: purpose.spot, text } }
    : { action: { kind: 'answer', question: purpose.question, word: text, isKey: false } }
