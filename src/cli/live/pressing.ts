/** What keys do on every screen with a list: they leave, move, filter, and type into the last line (pure). */
import { EMPTY_LINE, type Key, type Line, textOf, typed } from './keys.ts'
import { MOVES, placeOf, type Selected, selectedAt } from './selecting.ts'

/** What is being typed into the last line, and for what. */
export interface Entry<Purpose> {
  readonly label: string
  readonly line: Line
  readonly purpose: 'filter' | Purpose
}

/** What whoever sits there has chosen to see, on any screen. */
export interface Chosen<Purpose> {
  readonly selected: Selected
  readonly filter: string
  readonly entry: Entry<Purpose> | undefined
  readonly help: boolean
  /** What became of the last thing that was done. */
  readonly note: string | undefined
}

/** What every screen does. */
export interface ScreenAction {
  readonly kind: (typeof SCREEN_ACTIONS)[number]
}
const SCREEN_ACTIONS = ['leave', 'interrupt', 'suspend', 'redraw'] as const

export const isOfScreen = (action: { readonly kind: string }): action is ScreenAction =>
  SCREEN_ACTIONS.some((kind) => kind === action.kind)

/** What changes of what is chosen, and what is to be done. */
export interface Pressed<Choosing, Action> {
  readonly change?: Partial<Choosing>
  readonly action?: Action | ScreenAction
}

/** What is a screen's own. */
interface Keyboard<View, Choosing, Purpose, Action> {
  /** A key by its name, or a letter, where nothing is typed. */
  readonly command: (view: View, word: string) => Pressed<Choosing, Action>
  /** What a typed line leads to. */
  readonly whole: (view: View, purpose: Purpose, text: string) => Pressed<Choosing, Action>
}

/** `view` is what stands on the screen: a key is about what its presser sees. */
export function pressOn<Purpose extends object, Choosing extends Chosen<Purpose>, View extends Choosing, Action>(
  view: View,
  key: Key,
  keyboard: Keyboard<View, Choosing, Purpose, Action>,
): Pressed<Choosing, Action> | Pressed<Chosen<Purpose>, Action> {
  if (key.key === 'interrupt' || key.key === 'suspend' || key.key === 'redraw') return { action: { kind: key.key } }
  if (view.entry !== undefined) return intoEntry(view, view.entry, key, keyboard)
  // What is pasted where nothing is typed was meant for another program.
  if (key.key === 'paste') return {}
  const word = key.key === 'text' ? key.text : key.key
  if (view.help || word === '?') return { change: { help: !view.help } }
  return keyboard.command(view, word)
}

function intoEntry<Purpose extends object, Choosing extends Chosen<Purpose>, View extends Choosing, Action>(
  view: View,
  entry: Entry<Purpose>,
  key: Key,
  { whole }: Keyboard<View, Choosing, Purpose, Action>,
): Pressed<Choosing, Action> | Pressed<Chosen<Purpose>, Action> {
  const { purpose } = entry
  const isFilter = purpose === 'filter'
  if (key.key === 'escape') return { change: { entry: undefined, ...(isFilter ? { filter: '' } : {}) } }
  if (key.key === 'enter') {
    const text = textOf(entry.line).trim()
    // An empty line is a way to think better of it.
    const { change, ...rest } = purpose === 'filter' || text === '' ? {} : whole(view, purpose, text)
    return { change: { entry: undefined, ...change }, ...rest }
  }
  const line = typed(entry.line, key)
  return { change: { entry: { ...entry, line }, filter: isFilter ? textOf(line) : view.filter } }
}

/** What keys do in every list; undefined: nothing. */
export function inList(
  rows: readonly { readonly key: string }[],
  selected: Selected,
  word: string,
): Pressed<Chosen<never>, never> | undefined {
  const move = MOVES[word]
  if (move !== undefined)
    return { change: { selected: placeOf(rows, selectedAt(rows, selected) + move), note: undefined } }
  switch (word) {
    case 'q':
      return { action: { kind: 'leave' } }
    case '/':
      return { change: { entry: { label: 'show only: ', line: EMPTY_LINE, purpose: 'filter' }, filter: '' } }
    case 'escape':
      return { change: { filter: '', note: undefined } }
    default:
      return undefined
  }
}

/** The neighbour of one list among several; undefined where the key leads to none. */
export function turned<T>(all: readonly T[], one: T, word: string): T | undefined {
  const by = word === 'tab' ? 1 : word === 'back-tab' ? -1 : 0
  return by === 0 ? undefined : all[(all.indexOf(one) + by + all.length) % all.length]
}

/** A list from its beginning. */
export const FROM_THE_TOP = { selected: { key: '', at: 0 }, note: undefined } as const

export const said = (note: string) => ({ change: { note } })
export const asked = <Purpose>(label: string, purpose: Purpose) => ({
  change: { entry: { label, line: EMPTY_LINE, purpose }, note: undefined },
})
