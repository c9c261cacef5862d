/** The live view as lines: a pure function of what there is to show and of the size of the terminal. */

import type { Need } from '../../contract/needs.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import { relativeTime, stateColor } from '../base/output.ts'
import { cutTo, padTo, widthOf, wrapTo } from '../print/text-width.ts'
import type { Asked } from '../views/needs.ts'
import { howItEnded } from '../views/session-views.ts'
import { todayOf } from '../views/usage-views.ts'
import { choicesOf, takesText } from './choices.ts'
import type { Spot } from './feed.ts'
import type { City } from './fleet.ts'
import {
  age,
  counted,
  filled,
  flow,
  footLine,
  GREEN,
  type LineStyle,
  type Paint,
  type Piece,
  painter,
  RED,
  rowLine,
  type Style,
  safe,
  YELLOW,
} from './paint.ts'
import { askedLines, askerOf } from './question-text.ts'
import { inView, nameOf, PANES, questionAt, type Row, rowsOf, spotAt, type View } from './rows.ts'
import type { Size } from './screen.ts'
import { firstShown, selectedAt } from './selecting.ts'

export interface Drawn {
  readonly lines: readonly string[]
  /** Sessions that can be seen. */
  readonly spots: readonly Spot[]
}

const HELP = [
  'up down, j k     move                   page up, page down, home, end as well',
  'enter, a         attach to the session: watch it, talk to it, answer it',
  'm                send it a message',
  '1 … 9            answer the question of the selected row by the number of the choice',
  'r                answer it by typing: a number, a name, or text',
  '/                show only what has these words; escape shows everything again',
  'tab              sessions, needs, events',
  'c                only the city of the selected row; again: all',
  'ctrl-l           draw anew',
  'q, ctrl-c        leave',
]
const KEYS = 'enter attach  m message  r answer  / filter  tab pane  c city  ? help  q leave'

export function draw(view: View, size: Size): Drawn {
  const { columns, rows: height } = size
  const paint = painter(view.color)
  const rows = rowsOf(view)
  const at = selectedAt(rows, view.selected)
  const head = [...headLines(view, columns, paint), tabs(view, columns, paint)]
  const foot = footLine(view, KEYS, columns, paint)
  const room = Math.max(0, height - head.length - 1)
  if (view.help)
    return { lines: filled([...head, ...HELP.map((line) => cutTo(line, columns))], foot, height), spots: [] }
  const detail = detailLines(rows[at], { columns, lines: room }, paint)
  const space = Math.max(0, room - detail.length)
  const from = firstShown(rows, at, space)
  const shown = rows.slice(from, from + space)
  const grid = gridOf(rows, columns)
  const list = shown.map((row, index) => {
    const style = { grid, columns, paint, isSelected: from + index === at }
    return rowLine(piecesOf(row, view, style), style)
  })
  const body = list.length === 0 && space > 0 ? [cutTo(`  ${emptyText(view)}`, columns)] : list
  const gap = Array.from({ length: Math.max(0, space - body.length) }, () => '')
  return {
    lines: filled([...head, ...body, ...gap, ...detail], foot, height),
    spots: shown.flatMap((row) => (row.kind === 'session' && row.session.running ? (spotAt(row) ?? []) : [])),
  }
}

function headLines({ fleet, now, city }: View, columns: number, paint: Paint): readonly string[] {
  const cities = inView({ fleet, city })
  const sum = (count: (one: City) => number) => cities.reduce((total, one) => total + count(one), 0)
  const work = (of: 'open' | 'ready' | 'in_progress') => sum(({ status }) => status?.work[of] ?? 0)
  const states = Map.groupBy(
    cities.flatMap(({ sessions }) => sessions),
    ({ state }) => state,
  )
  const needs = sum((one) => one.needs.length)
  const unread = sum(({ status }) => status?.mail.unread ?? 0)
  const troubles = cities.filter((one) => problemOf(one, now) !== undefined).length
  const title: readonly Piece[] = [
    { text: 'svcctl top', style: 'bold' },
    fleet.lost === undefined ? { text: fleet.url, style: 'dim' } : { text: safe(fleet.lost), style: RED },
    { text: cities.length === 1 ? '1 city' : `${cities.length} cities` },
    ...(troubles === 0 ? [] : [{ text: `${troubles} with a problem`, style: RED }]),
  ]
  const counts: readonly Piece[] = [
    { text: `beads ${work('open')} open, ${work('ready')} ready, ${work('in_progress')} in progress` },
    { text: `sessions ${[...states].map(([state, of]) => `${of.length} ${state}`).join(', ') || 'none'}` },
    { text: `needs ${needs}`, style: needs > 0 ? YELLOW : undefined },
    ...(unread === 0 ? [] : [{ text: `mail ${unread} unread` }]),
    { text: `${fleet.eventsPerSecond.toFixed(1)} events/s` },
  ]
  return [...flow(title, columns, paint), ...flow(counts, columns, paint)]
}

function tabs({ fleet, pane, filter, city }: View, columns: number, paint: Paint): string {
  const needs = inView({ fleet, city }).reduce((sum, one) => sum + one.needs.length, 0)
  const name = (one: (typeof PANES)[number]) => (one === 'needs' && needs > 0 ? `${one} ${needs}` : one)
  const pieces = PANES.map((one) => (one === pane ? `[${name(one)}]` : ` ${name(one)} `))
  const asked = [...(city === undefined ? [] : [`city ${city}`]), ...(filter === '' ? [] : [`/${filter}`])]
  return paint(padTo(cutTo(`${pieces.join(' ')}  ${safe(asked.join('  '))}`, columns), columns), 'reverse')
}

const emptyText = ({ pane, filter }: View): string =>
  filter === '' ? EMPTY[pane] : `nothing has "${safe(filter)}"; escape shows everything`
const EMPTY = {
  sessions: 'no city is registered; create one with: svcctl city create DIR',
  needs: 'nothing waits for you',
  events: 'no event since this began',
}

interface Room {
  readonly columns: number
  readonly lines: number
}

/** What the selected row asks for: a question with every choice, or what a need says of itself. */
function detailLines(row: Row | undefined, room: Room, paint: Paint): readonly string[] {
  const question = questionAt(row)
  if (question !== undefined) return questionDetail(question, room, paint)
  return row?.kind === 'need' ? needDetail(row.need, room, paint) : []
}

/** Of what is asked as much as there is room for. */
function questionDetail(question: Asked, { columns, lines }: Room, paint: Paint): readonly string[] {
  const how = takesText(question) ? 'answer by number, or r for words of your own' : 'answer by number'
  const head = paint(padTo(cutTo(safe(`${askerOf(question)} asks; ${how}`), columns), columns), 'reverse')
  const choices = choicesOf(question).map(
    ({ label }, at): Piece => ({ text: `${at + 1} ${safe(label)}`, style: YELLOW }),
  )
  const answers = choices.length === 0 ? [] : flow(choices, columns, paint)
  const asked = askedLines(question).flatMap((line) => wrapTo(safe(line), columns))
  // The list must not vanish behind a long question.
  const most = Math.max(1, Math.floor(lines / 2) - answers.length - 1)
  const shown = asked.length <= most ? asked : [...asked.slice(0, most - 1), '…']
  return [head, ...shown, ...answers].slice(0, Math.max(0, lines - 1))
}

/** Why it is one, and the commands that deal with it. */
function needDetail({ title, detail = '', operations }: Need, { columns, lines }: Room, paint: Paint) {
  const head = paint(padTo(cutTo(safe(title), columns), columns), 'reverse')
  const words = detail.split('\n').flatMap((line) => wrapTo(safe(line), columns))
  const most = Math.max(1, Math.floor(lines / 2) - operations.length - 1)
  const commands = operations.map(({ label, command }) => cutTo(safe(`${label}: ${command}`), columns))
  return [head, ...words.slice(0, most), ...commands].slice(0, Math.max(0, lines - 1))
}

interface Grid {
  readonly name: number
  readonly state: number
  readonly bead: number
  readonly since: number
}

const [STATE_WIDTH, SINCE_WIDTH] = [12, 4]

/** Widths of columns, by what is in them; a narrow terminal has no room for all. */
function gridOf(rows: readonly Row[], columns: number): Grid {
  const widest = (texts: readonly string[], most: number) => Math.min(most, Math.max(4, ...texts.map(widthOf)))
  const names = rows.flatMap(rowNames)
  const beads = rows.flatMap((row) => (row.kind === 'session' ? [row.session.active_bead ?? ''] : []))
  const isNarrow = columns < 60
  return {
    name: widest(names, Math.max(8, Math.floor(columns / (isNarrow ? 3 : 4)))),
    state: STATE_WIDTH,
    bead: isNarrow || beads.every((bead) => bead === '') ? 0 : widest(beads, 14),
    since: isNarrow ? 0 : SINCE_WIDTH,
  }
}

function rowNames(row: Row): readonly string[] {
  if (row.kind === 'session') return [nameOf(row.session)]
  if (row.kind === 'agent') return [row.agent.name]
  return row.kind === 'need' ? [row.need.subject.name] : []
}

interface RowStyle extends LineStyle {
  readonly grid: Grid
}

function piecesOf(row: Row, view: View, { grid, columns }: RowStyle): readonly Piece[] {
  const { now } = view
  const cell = (text: string | undefined, width: number, look?: Style): Piece =>
    width === 0 ? { text: '' } : { text: `${padTo(cutTo(safe(text ?? ''), width), width)}  `, style: look }
  switch (row.kind) {
    case 'city':
      return cityPieces(row.of, now)
    case 'session': {
      const { session, question } = row
      const state = stateText(row.session, question !== undefined)
      return [
        cell(`  ${nameOf(session)}`, grid.name + 2),
        cell(state, grid.state, lookOf(state)),
        cell(session.active_bead, grid.bead),
        cell(age(question?.since ?? session.state_since, now), grid.since, 'dim'),
        question === undefined ? lastWords(row, view) : { text: safe(question.prompt ?? question.kind), style: YELLOW },
      ]
    }
    case 'agent': {
      const { name, state, available, unavailable_reason: why } = row.agent
      return [
        cell(`  ${name}`, grid.name + 2, 'dim'),
        cell(state === 'suspended' ? state : 'no session', grid.state, 'dim'),
        { text: available ? '' : safe(why ?? 'not available'), style: RED },
      ]
    }
    case 'need': {
      const { need, question, city } = row
      return [
        cell(city, Math.min(16, Math.floor(columns / 5))),
        cell(need.subject.name, grid.name),
        cell(age(need.since, now), SINCE_WIDTH, 'dim'),
        { text: safe(question?.prompt ?? need.title) },
        {
          text: `  ${safe((question?.options ?? []).map((option, at) => `${at + 1} ${option}`).join(', '))}`,
          style: 'dim',
        },
      ]
    }
    case 'event': {
      const { ts, city = '', type, subject = '', actor, message = '' } = row.event
      return [
        cell(ts.slice(11, 19), 8, 'dim'),
        cell(city, Math.min(16, Math.floor(columns / 5))),
        cell(type, columns < 60 ? 18 : 26),
        { text: safe([subject, message === '' ? actor : message].join(' ')), style: 'dim' },
      ]
    }
  }
}

function cityPieces(of: City, now: number): readonly Piece[] {
  const { info, status, sessions } = of
  const problem = problemOf(of, now)
  const cost = status?.budget === undefined ? undefined : todayOf(status.budget)
  const down = status?.services?.degraded ?? 0
  return [
    { text: safe(info.name), style: 'bold' },
    { text: `  ${info.status}`, style: lookOf(info.status) },
    ...(status === undefined ? [] : [{ text: `  ${counted(sessions.length, 'session')}`, style: 'dim' as const }]),
    ...(status === undefined || status.mail.unread === 0
      ? []
      : [{ text: `  mail ${status.mail.unread} unread`, style: 'dim' as const }]),
    ...(down === 0 ? [] : [{ text: `  ${counted(down, 'service')} degraded`, style: RED }]),
    ...(problem === undefined ? [] : [{ text: `  ${safe(problem)}`, style: RED }]),
    ...(cost === undefined
      ? []
      : [{ text: `  today ${cost}`, style: status?.budget?.crossed_at === undefined ? ('dim' as const) : YELLOW }]),
  ]
}

/** What somebody should look after. */
function problemOf({ info, status, trouble }: City, now: number): string | undefined {
  if (trouble !== undefined) return trouble
  if (info.error !== undefined && !info.running) return info.error
  const rejected = status?.config.last_error
  if (rejected !== undefined) {
    const [issue] = rejected.issues
    const where =
      issue === undefined ? '' : `: ${issue.file}${issue.line > 0 ? `:${issue.line}` : ''}: ${issue.message}`
    return `configuration rejected ${relativeTime(rejected.since, now)}${where}`
  }
  const untrusted = status?.config.untrusted_packs ?? []
  if (untrusted.length > 0) return `not trusted: ${untrusted.join(', ')}`
  return status?.suspended === true ? 'suspended' : undefined
}

function stateText({ state, activity, limited_until: limit }: SessionResponse, asks: boolean): string {
  if (asks) return 'needs answer'
  if (state !== 'active') return state
  if (limit !== undefined) return 'limited'
  return activity === 'in-turn' ? 'in turn' : (activity ?? state)
}

function whyItRests({ reason = '', last_exit: exit }: SessionResponse): string {
  return exit?.classification === 'crash' ? `${reason}: ${howItEnded(exit)}` : reason
}

/** What it said last; of one that does not run, why. */
function lastWords(row: Row & { readonly kind: 'session' }, { fleet }: View): Piece {
  const { session, key } = row
  if (!session.running) return { text: safe(whyItRests(session)), style: 'dim' }
  const said = fleet.outputs
    .get(key)
    ?.split('\n')
    .findLast((line) => /\S/.test(line))
  return { text: safe((said ?? '').trim()), style: 'dim' }
}

const LOOKS: Readonly<Record<string, Style>> = {
  'in turn': GREEN,
  idle: 'dim',
  asleep: 'dim',
  'needs answer': YELLOW,
  limited: YELLOW,
}
const lookOf = (state: string): Style | undefined => LOOKS[state] ?? stateColor(state)
