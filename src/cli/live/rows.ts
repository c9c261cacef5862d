/** What the panes of the live view list, and which of it is selected (pure). */
import type { AnyEvent } from '../../client/events.ts'
import type { AgentResponse } from '../../contract/agents.ts'
import type { Need } from '../../contract/needs.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import type { Asked } from '../views/needs.ts'
import type { Spot } from './feed.ts'
import { type City, type Fleet, keyOf } from './fleet.ts'
import type { Chosen } from './pressing.ts'

export const PANES = ['sessions', 'needs', 'events'] as const
export type Pane = (typeof PANES)[number]

/** What a line is typed for. */
export type Purpose =
  | { readonly kind: 'say'; readonly spot: Spot }
  | { readonly kind: 'answer'; readonly question: Asked }

/** What whoever sits there has chosen to see. */
export interface Choosing extends Chosen<Purpose> {
  readonly pane: Pane
  /** Only this one. */
  readonly city: string | undefined
}

/** Everything that is on the screen. */
export interface View extends Choosing {
  readonly fleet: Fleet
  readonly now: number
  readonly color: boolean
}

export type Row = { readonly key: string; readonly city: string } & (
  | { readonly kind: 'city'; readonly of: City }
  | { readonly kind: 'session'; readonly session: SessionResponse; readonly question: Asked | undefined }
  | { readonly kind: 'agent'; readonly agent: AgentResponse }
  | { readonly kind: 'need'; readonly need: Need; readonly question: Asked | undefined }
  | { readonly kind: 'event'; readonly event: AnyEvent }
)

/** Those of the cities that are not left out. */
export const inView = ({ fleet, city }: Pick<View, 'fleet' | 'city'>): readonly City[] =>
  fleet.cities.filter(({ info }) => city === undefined || info.name === city)

/** Rows of the pane that is shown, as far as the filter lets them through. */
export function rowsOf({ fleet, pane, filter, city }: View): readonly Row[] {
  const cities = inView({ fleet, city })
  if (pane === 'sessions') return cities.flatMap((one) => cityRows(one, filter))
  const rows =
    pane === 'needs'
      ? cities.flatMap(needRows).toSorted((a, b) => compareNeeds(a.need, b.need))
      : fleet.events.filter((event) => city === undefined || event.city === city).map(eventRow)
  return rows.filter((row) => passes(row, filter))
}

/** The city, its sessions, then agents that have none. A city of which nothing passes is not there. */
function cityRows(of: City, filter: string): readonly Row[] {
  const { info, sessions, agents, questions } = of
  const city = info.name
  const questionOf = new Map(questions.map((question) => [question.session_id, question]))
  const busy = new Set(sessions.map(({ template }) => template))
  const head: Row = { kind: 'city', key: city, city, of }
  const below: readonly Row[] = [
    ...sessions
      .map((session) => ({
        ...{ kind: 'session' as const, key: keyOf({ city, id: session.id }), city },
        ...{ session, question: questionOf.get(session.id) },
      }))
      .toSorted((a, b) => compare(nameOf(a.session), nameOf(b.session))),
    ...agents
      .filter(({ name, pool }) => pool === undefined && !busy.has(name))
      .map((agent) => ({ kind: 'agent' as const, key: `${city} agent ${agent.name}`, city, agent })),
  ]
  if (passes(head, filter)) return [head, ...below]
  const passing = below.filter((row) => passes(row, filter))
  return passing.length === 0 ? [] : [head, ...passing]
}

function needRows({ info, needs, questions }: City) {
  return needs.map((need) => ({
    kind: 'need' as const,
    key: `${info.name} need ${need.id}`,
    city: info.name,
    need,
    question: questions.find(({ session_id }) => session_id === need.subject.id),
  }))
}

/** What holds up more comes first, then what is older. */
const compareNeeds = (one: Need, other: Need): number =>
  other.holds_up - one.holds_up || compare(one.since, other.since)

const eventRow = (event: AnyEvent): Row => {
  const city = event.city ?? ''
  return { kind: 'event', key: `${city} event ${event.seq}`, city, event }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** What people call a session. */
export const nameOf = ({ alias, agent, template, id }: SessionResponse): string => alias ?? (agent || template || id)

function passes(row: Row, filter: string): boolean {
  if (filter === '') return true
  const wanted = filter.toLowerCase()
  return wordsOf(row).some((word) => word?.toLowerCase().includes(wanted))
}

function wordsOf(row: Row): readonly (string | undefined)[] {
  switch (row.kind) {
    case 'city':
      return [row.city]
    case 'session': {
      const { session, question } = row
      const { id, alias, agent, template, title, state, activity, active_bead: bead } = session
      return [id, alias, agent, template, title, state, activity, bead, question?.prompt]
    }
    case 'agent':
      return [row.agent.name, row.agent.state]
    case 'need':
      return [row.city, row.need.subject.name, row.need.subject.id, row.need.kind, row.need.title]
    case 'event':
      return [row.city, row.event.type, row.event.actor, row.event.subject, row.event.message]
  }
}

/** The question that an answer would be for. */
export function questionAt(row: Row | undefined): Asked | undefined {
  return row?.kind === 'need' || row?.kind === 'session' ? row.question : undefined
}

/** The session that would be attached to, or spoken to. */
export function spotAt(row: Row | undefined): (Spot & { readonly name: string }) | undefined {
  if (row?.kind === 'session') return { city: row.city, id: row.session.id, name: nameOf(row.session) }
  if (row?.kind === 'need' && row.need.subject.kind === 'session')
    return { city: row.city, id: row.need.subject.id, name: row.need.subject.name }
  return undefined
}
