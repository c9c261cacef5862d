/** What a key does to the live view, and what it asks to be done (pure). */
import type { Need } from '../views/needs.ts'
import { choicesOf } from './choices.ts'
import type { Spot } from './feed.ts'
import { EMPTY_LINE, type Key, textOf, typed } from './keys.ts'
import { askerOf } from './question-text.ts'
import { type Choosing, type Entry, needAt, PANES, type Row, rowsOf, selectedAt, spotAt, type View } from './rows.ts'

export type Action =
  | { readonly kind: 'leave' | 'interrupt' | 'suspend' | 'redraw' }
  | { readonly kind: 'attach'; readonly spot: Spot }
  | { readonly kind: 'say'; readonly spot: Spot; readonly text: string }
  | Answering

export interface Answering {
  readonly kind: 'answer'
  readonly need: Need
  readonly word: string
  /** By one key, which may have been meant for another question. */
  readonly isKey: boolean
}

/** What changes of what is chosen, and what is to be done. */
export interface Pressed {
  readonly change?: Partial<Choosing>
  readonly action?: Action
}

const PAGE = 10
const MOVES: Readonly<Record<string, number>> = {
  up: -1,
  k: -1,
  down: 1,
  j: 1,
  'page-up': -PAGE,
  'page-down': PAGE,
  home: Number.NEGATIVE_INFINITY,
  g: Number.NEGATIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
  G: Number.POSITIVE_INFINITY,
}

/** `view` is what stands on the screen: a key is about what its presser sees. */
export function press(view: View, key: Key): Pressed {
  if (key.key === 'interrupt' || key.key === 'suspend' || key.key === 'redraw') return { action: { kind: key.key } }
  if (view.entry !== undefined) return intoEntry(view, view.entry, key)
  // What is pasted where nothing is typed was meant for another program.
  if (key.key === 'paste') return {}
  const word = key.key === 'text' ? key.text : key.key
  if (view.help) return { change: { help: false } }
  const rows = rowsOf(view)
  const at = selectedAt(rows, view.selected)
  const move = MOVES[word]
  if (move !== undefined) return { change: { selected: placeOf(rows, at + move), note: undefined } }
  return command(view, word, rows[at])
}

function command(view: View, word: string, row: Row | undefined): Pressed {
  const spot = spotAt(row)
  const need = needAt(row)
  switch (word) {
    case 'q':
      return { action: { kind: 'leave' } }
    case '?':
      return { change: { help: true } }
    case 'tab':
      return { change: turned(view, 1) }
    case 'back-tab':
      return { change: turned(view, -1) }
    case '/':
      return { change: { entry: { label: 'show only: ', line: EMPTY_LINE, purpose: { kind: 'filter' } }, filter: '' } }
    case 'escape':
      return { change: { filter: '', note: undefined } }
    case 'c':
      return { change: { city: view.city === undefined ? row?.city : undefined } }
    case 'enter':
    case 'a':
      return spot === undefined ? said('select a session to attach to') : { action: { kind: 'attach', spot } }
    case 'm':
      return spot === undefined
        ? said('select a session to speak to')
        : entry(`message to ${spot.name}: `, { kind: 'say', spot })
    case 'r':
      return need === undefined
        ? said('nothing is asked there')
        : entry(`answer to ${askerOf(need)}: `, { kind: 'answer', need })
    default:
      return /^[1-9]$/.test(word) && need !== undefined ? byNumber(need, word) : {}
  }
}

const said = (note: string): Pressed => ({ change: { note } })
const entry = (label: string, purpose: Entry['purpose']): Pressed => ({
  change: { entry: { label, line: EMPTY_LINE, purpose }, note: undefined },
})

/** Of more than nine choices the others are typed. */
function byNumber(need: Need, word: string): Pressed {
  if (choicesOf(need)[Number(word) - 1] === undefined) return said(`there is no choice ${word}`)
  return { action: { kind: 'answer', need, word, isKey: true } }
}

function turned({ pane }: View, by: number): Partial<Choosing> {
  const next = PANES[(PANES.indexOf(pane) + by + PANES.length) % PANES.length] ?? pane
  return { pane: next, selected: { key: '', at: 0 }, note: undefined }
}

function placeOf(rows: readonly Row[], wanted: number): Choosing['selected'] {
  const at = Math.max(0, Math.min(wanted, rows.length - 1))
  return { key: rows[at]?.key ?? '', at }
}

function intoEntry(view: View, entry: Entry, key: Key): Pressed {
  const { purpose } = entry
  if (key.key === 'escape')
    return { change: { entry: undefined, ...(purpose.kind === 'filter' ? { filter: '' } : {}) } }
  if (key.key === 'enter') return { change: { entry: undefined }, ...whole(purpose, textOf(entry.line).trim()) }
  const line = typed(entry.line, key)
  return { change: { entry: { ...entry, line }, filter: purpose.kind === 'filter' ? textOf(line) : view.filter } }
}

/** What a typed line asks for; an empty one is a way to think better of it. */
function whole(purpose: Entry['purpose'], text: string): Pick<Pressed, 'action'> {
  if (purpose.kind === 'filter' || text === '') return {}
  return purpose.kind === 'say'
    ? { action: { kind: 'say', spot: purpose.spot, text } }
    : { action: { kind: 'answer', need: purpose.need, word: text, isKey: false } }
}
