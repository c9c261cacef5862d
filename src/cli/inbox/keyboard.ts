/** What a key does to the inbox, and what it asks to be done (pure). */
import type { Message } from '../../contract/messaging/mail.ts'
import type { Key } from '../live/keys.ts'
import {
  asked,
  FROM_THE_TOP,
  inList,
  type Pressed,
  pressOn,
  type ScreenAction,
  said,
  turned,
} from '../live/pressing.ts'
import { MOVES, placeOf, selectedAt } from '../live/selecting.ts'
import { BOXES, type Choosing, type Draft, openMessage, type Purpose, type Row, rowsOf, type View } from './state.ts'

export type Action = ScreenAction | Work

/** What is done with mail. */
export type Work =
  | { readonly kind: 'open' | 'archive' | 'unarchive' | 'mark-unread' | 'delete'; readonly message: Message }
  | { readonly kind: 'reply'; readonly message: Message; readonly body: string }
  | { readonly kind: 'send'; readonly to: string; readonly subject: string; readonly body: string }
  /** In the editor: a reply, or a message whose first lines are known. */
  | { readonly kind: 'write'; readonly about: { readonly message: Message } | { readonly draft: Draft } }

type Answer = Pressed<Choosing, Work>

export const press = (view: View, key: Key): Answer =>
  pressOn<Purpose, Choosing, View, Work>(view, key, { command, whole })

function command(view: View, word: string): Answer {
  const message = openMessage(view)
  if (view.open !== undefined && message !== undefined) return reading(view, view.open, message, word)
  const rows = rowsOf(view)
  const selected = rows[selectedAt(rows, view.selected)]?.message
  const box = turned(BOXES, view.box, word)
  if (box !== undefined) return { change: { box, ...FROM_THE_TOP } }
  if (word === 'enter' || word === ' ') return selected === undefined ? {} : opened(view, selected)
  return inList(rows, view.selected, word) ?? aboutMessage(view, word, selected)
}

/** In a message that is being read, moves scroll. */
function reading(view: View, open: NonNullable<View['open']>, message: Message, word: string): Answer {
  const move = word === ' ' ? MOVES['page-down'] : MOVES[word]
  if (move !== undefined) return { change: { open: { ...open, from: Math.max(0, open.from + move) } } }
  switch (word) {
    case 'q':
    case 'escape':
    case 'enter':
      return { change: closed(view, message) }
    case 'right':
    case 'left': {
      const rows = rowsOf(view)
      const at = rows.findIndex(({ key }) => key === message.id)
      const next = rows[at + (word === 'right' ? 1 : -1)]
      return next === undefined || at < 0 ? said('there is no other') : opened(view, next.message)
    }
    default:
      return aboutMessage(view, word, message)
  }
}

function opened(view: View, message: Message): Answer {
  const selected = placeOf(rowsOf(view), placeIn(rowsOf(view), message))
  return { change: { open: { id: message.id, from: 0 }, selected, note: undefined }, action: { kind: 'open', message } }
}

const placeIn = (rows: readonly Row[], { id }: Message): number =>
  Math.max(
    0,
    rows.findIndex(({ key }) => key === id),
  )

const closed = (view: View, message: Message): Partial<Choosing> => ({
  open: undefined,
  selected: placeOf(rowsOf(view), placeIn(rowsOf(view), message)),
  note: undefined,
})

function aboutMessage(view: View, word: string, message: Message | undefined): Answer {
  switch (word) {
    case 'n':
    case 'N':
      return asked('to: ', { kind: 'to', inEditor: word === 'N' })
    case 'r':
    case 'R':
    case 'a':
    case 'u':
    case 'd':
      return message === undefined ? said('there is no message') : withMessage(view, word, message)
    default:
      return {}
  }
}

function withMessage(view: View, word: 'r' | 'R' | 'a' | 'u' | 'd', message: Message): Answer {
  switch (word) {
    case 'r':
      return asked(`reply to ${message.from}: `, { kind: 'reply', message })
    case 'R':
      return { action: { kind: 'write', about: { message } } }
    case 'a':
      return { change: closed(view, message), action: { kind: archives(message) ? 'archive' : 'unarchive', message } }
    case 'u':
      return message.status === 'read'
        ? { change: closed(view, message), action: { kind: 'mark-unread', message } }
        : said(message.status === 'archived' ? 'it is archived' : 'it is unread')
    case 'd':
      return asked('delete it for good? y or n: ', { kind: 'delete', message })
  }
}

const archives = ({ status }: Message): boolean => status !== 'archived'

/** What a typed line leads to. */
function whole(view: View, purpose: Purpose, text: string): Answer {
  switch (purpose.kind) {
    case 'reply':
      return { action: { kind: 'reply', message: purpose.message, body: text } }
    case 'delete':
      return /^y(es)?$/i.test(text)
        ? { change: closed(view, purpose.message), action: { kind: 'delete', message: purpose.message } }
        : said('not deleted')
    case 'to':
      return asked('subject: ', { kind: 'subject', draft: { to: text, inEditor: purpose.inEditor } })
    case 'subject': {
      const draft = { ...purpose.draft, subject: text }
      return draft.inEditor
        ? { action: { kind: 'write', about: { draft } } }
        : asked(`message to ${draft.to}: `, { kind: 'body', draft })
    }
    case 'body':
      return { action: { kind: 'send', to: purpose.draft.to, subject: purpose.draft.subject ?? '', body: text } }
  }
}
