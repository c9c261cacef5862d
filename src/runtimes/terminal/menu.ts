/**
 * Menus on a screen, whatever program drew them: rows in, options out (decision 224). Whoever waits at one takes any key
 * for an answer, so it errs towards seeing one: a menu that is not seen may approve what nobody approved.
 *
 * N1  A menu has a cursor: a pointer, a mark, other colours; or it ends in a line that asks for one of its words.
 * N2  It is at the end: below it there are a few lines of hints, and no empty prompt.
 */
import { cut } from '../../contract/base/text.ts'
import { brightText, groundOf, paintOf, type Row } from './rows.ts'

export interface MenuOption {
  /** What a client names it by, and what is typed where it has a number or a letter of its own. */
  readonly id: string
  readonly label: string
}

export interface Menu {
  readonly options: readonly MenuOption[]
  /** Place of the option under the cursor; -1 where that cannot be told. */
  readonly cursor: number
  /** How an option is chosen: by its own key, by the arrows and Enter, or by a word and Enter. */
  readonly by: 'number' | 'letter' | 'up-down' | 'left-right' | 'word'
  /** Of the rows that it was found in, both included. */
  readonly first: number
  readonly last: number
}

const POINTERS = '❯›▸▶▷►→➜➤➔⮕⟩»❱⏵▹‣➢⇒☞👉>'
/** These also begin paragraphs. */
const BULLETS = '●◆■▪•*'
/** Begins what a tool has printed. */
const RESULT = '⎿'
const ON = '[xX*✓✔●•■][)\\]]|[◉⦿☑☒✔✓●◼]'
const OFF = '[ _][)\\]]|[○◯◌☐□◻]'
const ITEM = new RegExp(
  `^(?<indent>\\s*)(?:(?<pointer>[${POINTERS}]|[${BULLETS}](?=\\s)|[-=]>)\\s*)?(?:(?:[[(](?=.[)\\]]))?(?:(?<on>${ON})|(?<off>${OFF}))\\s+)?` +
    '(?:[[(]?(?<number>\\d{1,2})[.):\\]]+\\s+|[[(](?<letter>[\\p{L}])[)\\]]\\s+)?(?<label>\\S.*)$',
  'u',
)
const FRAME_BEFORE = /^[\s│┃║┆┊▏▎▌▐█|]+/
const FRAME_AFTER = /[\s│┃║┆┊▏▎▌▐█|]+$/
const RULE = /^[\s╭╮╰╯┌┐└┘├┤┏┓┗┛╔╗╚╝━═─╌┄▔▁▀▄_-]{3,}$/
/** A rule may carry a title. */
const TITLED_RULE = /^\s*[╭┌├┏╔─━═╌]{2}|[╮┐┤┓╗─━═╌]{3}\s*$/
const BARE_PROMPT = new RegExp(`^\\s*[${POINTERS}$%#]$`, 'u')
/** `[y/N]`, `(yes/no/[fingerprint])?`, `[J/n]:`, `[y,n,q,?]` at the end of a line, in whatever language. */
const LETTERED_WORDS = /((?:[([]\p{L}[)\]]\p{L}*[/ ,|]*){2,})(?:.*[:?])?$/u
const WORDS = /[([]\s*(\p{L}{1,5}(?:\s*[/|,]\s*[[(]?[\p{L}?]{1,12}[\])]?){1,8})\s*[)\]]\s*[?:：？›]?$/u
/** `Go on? y/n`, in languages whose words begin so. */
const BARE_WORDS = /(?:^|[\s?？])([yjostдe]\/[nнhi](?:\/\p{L})*)\s*[:?：？]?$/iu
/** A list without a cursor is a menu where it is asked for one of its numbers. */
const ASKS_NUMBER = /(?:#\?|\[\d+\s*[-–/,…]+\s*\d+\]\s*[:?]?|[:：?？])$/

const MAX_HINTS = 10
/** Rows of one option: its label may be wrapped, and explained. */
const MAX_OPTION_ROWS = 6
const MAX_OPTIONS = 40
const MAX_LABEL = 200
/** A bullet with a longer text begins a paragraph. */
const MAX_BULLET_LABEL = 48
const MAX_BUTTON = 64
const MAX_BUTTON_GAP = 12
const MAX_PADDING = 20
/** A list may be padded as well; a bar goes through the terminal. */
const MIN_BAR = 60

/** Without frames at its sides; columns stay where they were. */
export const unframed = (text: string): string =>
  text
    .replaceAll('\u00a0', ' ')
    .replace(FRAME_BEFORE, (frame) => ' '.repeat(frame.length))
    .replace(FRAME_AFTER, '')

export const isRule = (text: string): boolean => RULE.test(text) || TITLED_RULE.test(text)

/** A row that says nothing: blank or a rule. */
export const isBlank = (text: string): boolean => unframed(text) === '' || isRule(text)

interface Item {
  readonly row: number
  readonly indent: number
  readonly pointer: string
  readonly check: 'on' | 'off' | undefined
  readonly number: number | undefined
  readonly letter: string | undefined
  /** Where the label begins. */
  readonly column: number
  readonly label: string
  readonly paint: string
}

/** The menu at the end of these rows; those before `from` are history. */
export function menuAtEnd(rows: readonly Row[], from = 0): Menu | undefined {
  const items = rows.map((row, index) => (index < from ? undefined : itemOf(row, index)))
  const found = [words, numbered, pointed, checked, lettered, painted, buttons]
    .map((find) => find(rows, items))
    .filter((menu) => menu !== undefined)
    .filter((menu) => isAtEnd(rows, items, menu.last))
  return found.reduce<Menu | undefined>(
    (best, menu) => (best === undefined || menu.last > best.last + 1 ? menu : best),
    undefined,
  )
}

function itemOf(row: Row, index: number): Item | undefined {
  const text = unframed(row.text)
  if (text === '' || isRule(row.text)) return undefined
  const groups = ITEM.exec(text)?.groups
  const label = groups?.['label']
  if (groups === undefined || label === undefined) return undefined
  const column = text.length - label.length
  return {
    row: index,
    indent: groups['indent']?.length ?? 0,
    pointer: groups['pointer'] ?? '',
    check: groups['on'] !== undefined ? 'on' : groups['off'] !== undefined ? 'off' : undefined,
    number: groups['number'] === undefined ? undefined : Number(groups['number']),
    letter: groups['letter'],
    column,
    label: label.trimEnd(),
    paint: paintOf(row, column, text.length),
  }
}

/** N2. */
function isAtEnd(rows: readonly Row[], items: Items, last: number): boolean {
  const ruled = rows.findIndex(({ text }, row) => row > last && isRule(text))
  // An input line with something in it.
  if (ruled !== -1 && items.slice(ruled).some((item) => item !== undefined && beginsInput(item))) return false
  const below = rows.slice(last + 1).filter(({ text }) => !isBlank(text))
  return below.length <= MAX_HINTS && !below.some((row) => BARE_PROMPT.test(unframed(brightText(row)).trimEnd()))
}

/** Two of them in a row begin a status line. */
const beginsInput = ({ pointer, indent, column }: Item): boolean =>
  isPointer(pointer) && column > indent + pointer.length

const isPointer = (text: string): boolean => text !== '' && POINTERS.includes(text)

type Items = readonly (Item | undefined)[]

// ---- options below each other ---------------------------------------------------------------------------------------

/** Counted by one, from any number: a long list scrolls. */
function numbered(rows: readonly Row[], items: Items): Menu | undefined {
  const counted = items.filter((item) => item !== undefined).filter(({ number }) => number !== undefined)
  // One number alone below them is of a status line.
  const lists = [counted, counted.slice(0, -1)].map((some) => countedTo(some))
  const found = lists.find((list) => list.length > 1) ?? lists[0] ?? []
  const lastItem = found.at(-1)
  if (lastItem === undefined) return undefined
  const lastRow = lastItem.row
  const cursor = cursorOf(found)
  const isMenu = found.length > 1 || isPointer(lastItem.pointer)
  if (cursor !== undefined) return isMenu ? menuOf(rows, items, found, cursor, 'number') : undefined
  const asking = askingRow(rows)
  const between = rows.slice(lastRow + 1, asking).filter(({ text }) => !isBlank(text)).length
  const asks = asking > lastRow && between <= 2 && ASKS_NUMBER.test(unframed(rows[asking]?.text ?? ''))
  return asks && found.length > 1 ? { ...menuOf(rows, items, found, -1, 'word'), last: asking } : undefined
}

/** Those that are counted up to the last one. */
function countedTo(counted: readonly Item[]): Item[] {
  const found = counted.slice(-1)
  for (const item of counted.slice(0, -1).toReversed()) {
    const [next] = found
    if (next === undefined || next.row - item.row > MAX_OPTION_ROWS || found.length >= MAX_OPTIONS) break
    if (item.number !== (next.number ?? 0) - 1) break
    found.unshift(item)
  }
  return found
}

/** One row has a pointer; those above and below it begin in the same column and have none. */
function pointed(rows: readonly Row[], items: Items): Menu | undefined {
  for (let row = items.length - 1; row >= 0; row--) {
    const item = items[row]
    if (item === undefined || item.pointer === '' || item.check !== undefined || item.number !== undefined) continue
    if (
      brightText(rows[row] ?? { text: '', runs: [] })
        .slice(item.column)
        .trim() === ''
    )
      continue
    if (BULLETS.includes(item.pointer) && item.label.length > MAX_BULLET_LABEL) continue
    const isSibling = (other: Item) =>
      other.pointer === '' &&
      other.indent === item.column &&
      other.check === undefined &&
      !BULLETS.includes(other.label[0] ?? '') &&
      !other.label.startsWith(RESULT)
    const found = [...siblings(rows, items, item, -1, isSibling), item, ...siblings(rows, items, item, 1, isSibling)]
    const options = withoutHeading(found, item)
    if (options.length > 1) return menuOf(rows, items, options, options.indexOf(item), 'up-down')
  }
  return undefined
}

/** Rows with a mark that is on or off. */
function checked(rows: readonly Row[], items: Items): Menu | undefined {
  for (const last of items.toReversed()) {
    if (last === undefined || !isMarked(last)) continue
    const isSibling = (other: Item) => isMarked(other) && other.column === last.column
    const found = [...siblings(rows, items, last, -1, isSibling), last]
    // Bullets alone begin paragraphs.
    if (found.length < 2 || !found.some(({ check }) => check !== undefined)) continue
    const cursor = cursorOf(found)
    return cursor === undefined ? undefined : menuOf(rows, items, found, cursor, 'up-down')
  }
  return undefined
}

/** The mark that is on may be a bullet. */
const isMarked = ({ check, pointer }: Item): boolean =>
  check !== undefined || (pointer !== '' && BULLETS.includes(pointer))

/** Each row names the key that chooses it. */
function lettered(rows: readonly Row[], items: Items): Menu | undefined {
  const last = items.findLast((item) => item?.letter !== undefined)
  if (last === undefined) return undefined
  const isSibling = ({ letter, column }: Item) => letter !== undefined && column === last.column
  const found = [...siblings(rows, items, last, -1, isSibling), last]
  const letters = new Set(found.map(({ letter }) => letter))
  if (found.length < 2 || letters.size !== found.length) return undefined
  return menuOf(rows, items, found, cursorOf(found) ?? -1, 'letter')
}

/** One row looks otherwise than its neighbours, which begin in the same column. */
function painted(rows: readonly Row[], items: Items): Menu | undefined {
  for (let row = items.length - 1; row >= 0; row--) {
    const item = items[row]
    if (item === undefined || item.paint === '' || isStatusBar(rows, row)) continue
    const isSibling = (other: Item) =>
      other.column === item.column && other.paint !== item.paint && !isBar(rows, other.row)
    const [above, below] = [siblings(rows, items, item, -1, isSibling), siblings(rows, items, item, 1, isSibling)]
    const options = withoutHeading(nextTo([...above, item, ...below], item), item)
    const looks = new Set(options.filter((one) => one !== item).map(({ paint }) => paint))
    const pointers = new Set(options.map(({ pointer }) => pointer).filter((pointer) => pointer !== ''))
    // Two kinds of them begin what two have said.
    if (options.length > 1 && looks.size === 1 && pointers.size < 2)
      return menuOf(rows, items, options, options.length > 2 || looks.has('') ? options.indexOf(item) : -1, 'up-down')
  }
  return undefined
}

/** Those without a gap between them and `item`. */
function nextTo(found: readonly Item[], item: Item): Item[] {
  const at = found.indexOf(item)
  return found.filter(({ row }, index) => Math.abs(row - item.row) === Math.abs(index - at))
}

/** The last row of all, painted from its first cell on, with what is around its words. */
function isBar(rows: readonly Row[], row: number): boolean {
  const { text = '', runs = [] } = rows[row] ?? {}
  return row === rows.length - 1 && runs.length === 1 && runs[0]?.from === 0 && runs[0].to > text.length
}

/** A bar through the terminal, which is no option. */
function isStatusBar(rows: readonly Row[], row: number): boolean {
  const { text = '', runs = [] } = rows[row] ?? {}
  return isBar(rows, row) && (runs[0]?.to ?? 0) > Math.max(text.length + MAX_PADDING, MIN_BAR)
}

/** Options next to `item`, without what explains them; a blank row may be between. */
function siblings(
  rows: readonly Row[],
  items: Items,
  item: Item,
  step: 1 | -1,
  isSibling: (other: Item) => boolean,
): Item[] {
  const found: Item[] = []
  for (let row = item.row + step, gap = 0; row >= 0 && row < rows.length && found.length < MAX_OPTIONS; row += step) {
    const other = items[row]
    if (other !== undefined && isSibling(other)) {
      found.push(other)
      gap = 0
    } else if (++gap >= MAX_OPTION_ROWS || isRule(rows[row]?.text ?? '')) break
    else if (other !== undefined && other.indent <= item.indent + 1) break
    else if (other === undefined && isBlankTwice(rows, row, step)) break
  }
  return step === 1 ? found : found.reverse()
}

const isBlankTwice = (rows: readonly Row[], row: number, step: number): boolean =>
  unframed(rows[row]?.text ?? '') === '' && unframed(rows[row + step]?.text ?? '') === ''

/** What asks is no option, though it may begin in the same column. */
function withoutHeading(found: readonly Item[], item: Item): Item[] {
  const heading = found.findLastIndex((one) => one.row < item.row && /[?:？：…]$/.test(one.label))
  return found.slice(heading + 1)
}

/** The one with a pointer, the one that is on, or the one that looks otherwise than all the rest. */
function cursorOf(found: readonly Item[]): number | undefined {
  const only = (marked: readonly boolean[]) => (marked.filter(Boolean).length === 1 ? marked.indexOf(true) : undefined)
  const pointer = only(found.map((item) => isPointer(item.pointer))) ?? only(found.map((item) => item.pointer !== ''))
  if (pointer !== undefined) return pointer
  const on = only(found.map((item) => item.check === 'on' || (item.check === undefined && isMarked(item))))
  if (on !== undefined) return on
  const paints = new Set(found.map(({ paint }) => paint))
  if (paints.size !== 2) return undefined
  const odd = found.findIndex(
    ({ paint }) => paint !== '' && found.filter((other) => other.paint === paint).length === 1,
  )
  return odd === -1 ? undefined : odd
}

function menuOf(rows: readonly Row[], items: Items, found: readonly Item[], cursor: number, by: Menu['by']): Menu {
  const last = found.at(-1)?.row ?? 0
  const ends = [...found.slice(1).map(({ row }) => row), endOfOption(rows, items, found)]
  const options = found.map((item, index) => {
    const more = rows.slice(item.row + 1, ends[index]).map(({ text }) => unframed(text).trim())
    const label = cut([item.label, ...more.filter((text) => text !== '' && !isRule(text))].join(' '), MAX_LABEL)
    const own = by === 'letter' ? item.letter?.toLowerCase() : item.number
    return { id: String(own ?? index + 1), label }
  })
  return { options, cursor, by, first: found[0]?.row ?? 0, last: Math.max(last, (ends.at(-1) ?? last + 1) - 1) }
}

/** The row behind the last option, with what goes on with it. */
function endOfOption(rows: readonly Row[], items: Items, found: readonly Item[]): number {
  const last = found.at(-1)
  if (last === undefined) return 0
  let row = last.row + 1
  while (row < rows.length && row - last.row < MAX_OPTION_ROWS && (items[row]?.indent ?? -1) >= last.column) row++
  return row
}

// ---- options in one row ---------------------------------------------------------------------------------------------

const BUTTON = /\[[^[\]]{1,64}\]|<[^<>]{1,64}>|\S+(?: \S+)*/gu

/** Buttons beside each other, of which one looks otherwise or has the pointer; or nothing but buttons. */
function buttons(rows: readonly Row[], items: Items): Menu | undefined {
  for (let row = items.length - 1; row >= 0; row--) {
    const shown = rows[row]
    if (items[row] === undefined || shown === undefined) continue
    const marks = marksIn(unframed(shown.text))
    if (marks !== undefined) return { ...marks, by: 'left-right', first: row, last: row }
    const isBare = BUTTONS_ONLY.test(unframed(shown.text))
    if (!isBare && shown.runs.length === 0 && !HAS_POINTER.test(shown.text)) continue
    const all = [...unframed(shown.text).matchAll(BUTTON)].map(({ 0: text, index }) => ({
      from: index,
      to: index + text.length,
      label: text.replace(POINTER_BEFORE, '').replaceAll(/^[[<]\s*|\s*[\]>]$/g, ''),
      pointer: POINTER_BEFORE.test(text),
      paint: paintOf(shown, index, index + text.length),
    }))
    const found = closeTogether(all)
    if (found.length < 2 || found.some(({ label }) => label === '' || label.length > MAX_BUTTON)) continue
    const marked = found.filter(({ pointer }) => pointer)
    const cursor =
      marked.length === 1
        ? found.findIndex(({ pointer }) => pointer)
        : oddOne(
            found.map(({ paint }) => paint),
            groundOf(shown),
          )
    if (cursor === -1 && !isBare) continue
    const options = found.map(({ label }, index) => ({ id: String(index + 1), label }))
    return { options, cursor, by: 'left-right', first: row, last: row }
  }
  return undefined
}

const HAS_POINTER = new RegExp(`(?:^|\\s)(?:[-=]>|[${POINTERS}])\\s?\\S`, 'u')
const POINTER_BEFORE = new RegExp(`^(?:[-=]>|[${POINTERS}])\\s?(?=\\S)`, 'u')
const BUTTON_WORD = '(?=[^[\\]<>]*[\\p{L}\\p{Extended_Pictographic}])[^[\\]<>]{1,64}'
const BUTTONS_ONLY = new RegExp(`^\\s*(?:(?:\\[\\s*${BUTTON_WORD}\\]|<\\s${BUTTON_WORD}\\s>)(?:\\s+|$)){2,}$`, 'u')
/** `● Yes / ○ No` */
const MARK = /([●◉⦿◆])\s+|[○◯◌◇]\s+/gu
const MARKS_ONLY = /^\s*[●◉⦿◆○◯◌◇]\s/u

/** Options beside each other of which one is on. */
function marksIn(text: string): Pick<Menu, 'options' | 'cursor'> | undefined {
  if (!MARKS_ONLY.test(text)) return undefined
  const marks = [...text.matchAll(MARK)]
  const on = marks.filter(([, mark]) => mark !== undefined)
  if (marks.length < 2 || on.length !== 1) return undefined
  const labels = marks.map(({ 0: mark, index }, place) =>
    text.slice(index + mark.length, marks[place + 1]?.index).replace(/[\s/|,·]+$/u, ''),
  )
  if (labels.some((label) => label === '' || label.length > MAX_BUTTON)) return undefined
  const options = labels.map((label, index) => ({ id: String(index + 1), label }))
  return { options, cursor: marks.findIndex(([, mark]) => mark !== undefined) }
}

/** Those at the beginning; hints stand apart at the other side. */
function closeTogether<T extends { readonly from: number; readonly to: number }>(all: readonly T[]): readonly T[] {
  const end = all.findIndex(({ from }, index) => index > 0 && from - (all[index - 1]?.to ?? from) > MAX_BUTTON_GAP)
  return end === -1 ? all : all.slice(0, end)
}

function oddOne(paints: readonly string[], ground: string): number {
  const isOdd = (paint: string) => paint !== '' && paint !== ground
  return paints.filter(isOdd).length === 1 ? paints.findIndex(isOdd) : -1
}

// ---- a line that asks -----------------------------------------------------------------------------------------------

/** Where the cursor of the terminal stands behind what is written, above a status line; else the last row. */
function askingRow(rows: readonly Row[]): number {
  const row = rows.findIndex(({ cursor, text }) => cursor !== undefined && cursor >= text.length && !isBlank(text))
  return row === -1 ? rows.findLastIndex(({ text }) => !isBlank(text)) : row
}

/** The last line asks for one of a few words. */
function words(rows: readonly Row[], items: Items): Menu | undefined {
  const row = askingRow(rows)
  const text = items[row] === undefined ? '' : unframed(rows[row]?.text ?? '')
  const lettered = LETTERED_WORDS.exec(text)?.[1]
  if (lettered !== undefined) {
    const options = [...lettered.matchAll(/[([](\p{L})[)\]](\p{L}*)/gu)].map(([, first = '', rest = '']) => ({
      id: first.toLowerCase(),
      label: `${first}${rest}`,
    }))
    return { options, cursor: -1, by: 'word', first: row, last: row }
  }
  const asked = (WORDS.exec(text) ?? BARE_WORDS.exec(text))?.[1]
  if (asked === undefined) return undefined
  const options = asked
    .split(/[/|,]/)
    .map((word) => word.replaceAll(/[\s[\]()]/g, ''))
    .filter((word) => word !== '')
  const known = options.map((word) => ({ id: word.toLowerCase(), label: word }))
  return { options: known, cursor: -1, by: 'word', first: row, last: row }
}
