/** The inbox as lines: a pure function of what there is to show and of the size of the terminal. */
import type { Message } from '../../contract/messaging/mail.ts'
import {
  age,
  counted,
  filled,
  flow,
  footLine,
  type Paint,
  type Piece,
  painter,
  RED,
  rowLine,
  type Style,
  safe,
  YELLOW,
} from '../live/paint.ts'
import type { Size } from '../live/screen.ts'
import { firstShown, selectedAt } from '../live/selecting.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo, padTo, widthOf, wrapWords } from '../print/text-width.ts'
import { printableLines } from '../views/turn-text.ts'
import { BOXES, openMessage, othersOf, type Row, rowsOf, type View } from './state.ts'

const HELP = [
  'up down, j k     move                   page up, page down, home, end as well',
  'enter, space     read it, with its thread; escape leads back, left and right to others',
  'r                reply in one line      R  reply in the editor',
  'n                a new message          N  one that is written in the editor',
  'a                archive it; in the archive: take it back',
  'u                mark it unread',
  'd                delete it for good',
  '/                show only what has these words; escape shows everything again',
  'tab              inbox, unread, archived, sent',
  'ctrl-l           draw anew',
  'q, ctrl-c        leave',
]
const KEYS = 'enter read  r reply  n new  a archive  d delete  / find  tab box  ? help  q end'
const READING = 'r reply  R in the editor  a archive  u unread  d delete  escape back  ? help'

export interface Drawn {
  readonly lines: readonly string[]
  /** The first line that is shown of the message that is being read. */
  readonly from: number
}

export function draw(view: View, size: Size): Drawn {
  const { columns, rows: height } = size
  const paint = painter(view.color)
  const message = openMessage(view)
  const head = [...headLines(view, columns, paint), bar(view, message, columns, paint)]
  const foot = footLine(view, message === undefined ? KEYS : READING, columns, paint)
  const room = Math.max(0, height - head.length - 1)
  if (view.help) return { lines: filled([...head, ...HELP.map((line) => cutTo(line, columns))], foot, height), from: 0 }
  if (message === undefined)
    return { lines: filled([...head, ...listLines(view, columns, room, paint)], foot, height), from: 0 }
  const all = openLines(view, message, columns, paint)
  const from = Math.min(view.open?.from ?? 0, Math.max(0, all.length - room))
  return { lines: filled([...head, ...all.slice(from, from + room)], foot, height), from }
}

function headLines({ mail }: View, columns: number, paint: Paint): readonly string[] {
  const { city, owner, counts, lost } = mail
  const pieces: readonly Piece[] = [
    { text: 'svcctl mail inbox', style: 'bold' },
    { text: safe(city) },
    ...(lost === undefined ? [] : [{ text: safe(lost), style: RED }]),
    { text: `mail of ${safe(owner)}: ${counted(counts.total, 'message')}` },
    { text: `${counts.unread} unread`, style: counts.unread > 0 ? YELLOW : undefined },
  ]
  return flow(pieces, columns, paint)
}

/** The boxes; of a message that is being read, what it is about. */
function bar({ box, filter }: View, message: Message | undefined, columns: number, paint: Paint): string {
  const boxes = BOXES.map((one) => (one === box ? `[${one}]` : ` ${one} `)).join(' ')
  const text = message === undefined ? `${boxes}  ${safe(filter === '' ? '' : `/${filter}`)}` : safe(message.subject)
  return paint(padTo(cutTo(text, columns), columns), 'reverse')
}

function listLines(view: View, columns: number, room: number, paint: Paint): readonly string[] {
  const rows = rowsOf(view)
  if (rows.length === 0) return [cutTo(`  ${emptyText(view)}`, columns)]
  const at = selectedAt(rows, view.selected)
  const more = view.mail.more && room > 1 ? ['  there are more: svcctl mail list, svcctl mail search'] : []
  const space = Math.max(0, room - more.length)
  const from = firstShown(rows, at, space)
  const grid = gridOf(rows, view, columns)
  const shown = rows.slice(from, from + space).map((row, index) => {
    const isSelected = from + index === at
    return rowLine(piecesOf(row.message, view, grid), { columns, paint, isSelected })
  })
  return [...shown, ...more.map((line) => paint(cutTo(line, columns), 'dim'))]
}

function emptyText({ box, filter, mail }: View): string {
  if (mail.messages === undefined) return 'looking …'
  return filter === '' ? EMPTY[box] : `nothing has "${safe(filter)}"; escape shows everything`
}
const EMPTY = {
  inbox: 'no mail',
  unread: 'nothing is unread',
  archived: 'nothing is archived',
  sent: 'nothing was sent',
}

interface Grid {
  readonly name: number
  readonly age: number
}
const AGE_WIDTH = 4

function gridOf(rows: readonly Row[], view: View, columns: number): Grid {
  const most = Math.max(8, Math.floor(columns / 4))
  const widest = Math.max(4, ...rows.map(({ message }) => widthOf(safe(otherOf(message, view)))))
  return { name: Math.min(most, widest), age: AGE_WIDTH }
}

/** Whom the owner of the box has it from; of what was sent, who has it. */
const otherOf = ({ from, to }: Message, { box }: Pick<View, 'box'>): string => (box === 'sent' ? `to ${to}` : from)

function piecesOf(message: Message, view: View, grid: Grid): readonly Piece[] {
  const { status, created_at, subject, body, priority } = message
  const isUnread = status === 'unread' && view.box !== 'sent'
  const look: Style | undefined = isUnread ? 'bold' : undefined
  const preview = safe(body).trim()
  return [
    { text: isUnread ? '* ' : '  ', style: YELLOW },
    { text: `${padTo(cutTo(safe(otherOf(message, view)), grid.name), grid.name)}  `, style: look },
    { text: `${padTo(age(created_at, view.now), grid.age)}  `, style: 'dim' },
    { text: priority > 0 ? `${priority} ` : '', style: YELLOW },
    { text: safe(subject), style: look },
    { text: preview === '' || preview === safe(subject) ? '' : `  ${preview}`, style: 'dim' },
  ]
}

/** The message, then the others of its thread. */
function openLines(view: View, message: Message, columns: number, paint: Paint): readonly string[] {
  const others = othersOf(view, message)
  return [
    ...fieldLines(message, view.now, columns, paint),
    '',
    ...bodyLines(message, columns),
    ...others.flatMap((other) => ['', ruleOf(other, view.now, columns, paint), ...bodyLines(other, columns)]),
  ]
}

function fieldLines(message: Message, now: number, columns: number, paint: Paint): readonly string[] {
  const { id, from, to, cc, created_at, priority, status } = message
  const fields: readonly (readonly [string, string])[] = [
    ['from', from],
    ['to', [to, ...(cc.length > 0 ? [`cc ${cc.join(', ')}`] : [])].join('; ')],
    ['sent', `${created_at}, ${age(created_at, now)} ago`.replace('now ago', 'now')],
    [
      'id',
      [id, ...(status === 'archived' ? ['archived'] : []), ...(priority > 0 ? [`priority ${priority}`] : [])].join(
        ', ',
      ),
    ],
  ]
  return fields.map(([name, text]) => {
    const label = padTo(name, 6)
    return `${paint(label, 'dim')}${cutTo(safe(text), Math.max(1, columns - label.length))}`
  })
}

const ruleOf = ({ from, to, created_at }: Message, now: number, columns: number, paint: Paint): string => {
  const text = cutTo(`── ${safe(from)} to ${safe(to)}, ${age(created_at, now)} `, columns)
  return paint(`${text}${'─'.repeat(Math.max(0, columns - widthOf(text)))}`, 'dim')
}

const bodyLines = ({ body }: Message, columns: number): readonly string[] =>
  body === ''
    ? ['(no text)']
    : forTerminal(printableLines(body.trimEnd()))
        .split('\n')
        .flatMap((line) => wrapWords(line, columns))
