/** What is known of a fleet, and what an event says has changed of it (pure). */
import type { AnyEvent } from '../../client/events.ts'
import type { AgentResponse } from '../../contract/agents.ts'
import type { CityInfo, StatusBody } from '../../contract/cities.ts'
import type { Need } from '../../contract/needs.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import type { Asked } from '../views/needs.ts'

export interface City {
  readonly info: CityInfo
  /** Absent while it does not run. */
  readonly status?: StatusBody | undefined
  readonly sessions: readonly SessionResponse[]
  readonly agents: readonly AgentResponse[]
  /** What a person must act on, questions among them. */
  readonly needs: readonly Need[]
  /** Open questions of its sessions, as they can be answered. */
  readonly questions: readonly Asked[]
  /** Why it could not be asked. */
  readonly trouble?: string | undefined
}

export interface Fleet {
  readonly url: string
  readonly cities: readonly City[]
  /** Newest first. */
  readonly events: readonly AnyEvent[]
  readonly eventsPerSecond: number
  /** Last lines of sessions, by `keyOf`; of those only that were looked at. */
  readonly outputs: ReadonlyMap<string, string>
  /** Why nothing new comes. */
  readonly lost?: string | undefined
}

/** A session has its id in a city. */
export const keyOf = ({ city, id }: { readonly city: string; readonly id: string }): string => `${city} ${id}`

export const PARTS = ['status', 'sessions', 'agents', 'needs'] as const
/** What of a city is read at once. */
export type Part = (typeof PARTS)[number]

/** First words of the types of events, and what they can have changed. */
const CHANGES: Readonly<Record<string, readonly Part[]>> = {
  bead: ['status', 'sessions'],
  convoy: ['status'],
  session: ['status', 'sessions'],
  agent: ['status', 'agents'],
  config: PARTS,
  pack: ['status', 'agents'],
  rig: ['status', 'agents'],
  city: PARTS,
  mail: ['status'],
  service: ['status'],
  usage: ['status'],
  budget: ['status'],
  need: ['needs'],
}
/** Types that say more exactly what they change, or that they change nothing that is shown. */
const EXACTLY: Readonly<Record<string, readonly Part[]>> = {
  'session.pending': ['sessions', 'needs'],
  'session.pending_cleared': ['sessions', 'needs'],
  'session.closed': ['status', 'sessions', 'needs'],
  'session.deleted': ['status', 'sessions', 'needs'],
  'session.delivery': [],
  'session.updated': ['sessions'],
}

export const changedBy = ({ type }: Pick<AnyEvent, 'type'>): readonly Part[] =>
  EXACTLY[type] ?? CHANGES[type.split('.', 1)[0] ?? ''] ?? []

/** The list of cities itself may have changed. */
export const changesCities = ({ type }: Pick<AnyEvent, 'type'>): boolean =>
  /^(city\.|request\.result\.city\.|request\.failed)/.test(type)

/** How many events came, over the last seconds. */
export class Rate {
  readonly #seconds: number[] = []
  #current = 0

  add(now: number): void {
    this.#advance(now)
    this.#seconds[0] = (this.#seconds[0] ?? 0) + 1
  }

  /** Per second, over the seconds that are over. */
  at(now: number): number {
    this.#advance(now)
    const whole = this.#seconds.slice(1)
    return whole.length === 0 ? 0 : whole.reduce((sum, count) => sum + count, 0) / whole.length
  }

  #advance(now: number): void {
    const second = Math.floor(now / 1000)
    const gone = this.#current === 0 ? 1 : Math.min(second - this.#current, RATE_SECONDS + 1)
    this.#current = second
    for (let at = 0; at < gone; at += 1) this.#seconds.unshift(0)
    this.#seconds.length = Math.min(this.#seconds.length, RATE_SECONDS + 1)
  }
}
const RATE_SECONDS = 5
