/** What routing needs of its surroundings. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Addresses } from '../../../messaging/address.ts'
import type { Members } from '../entries/members.ts'
import type { Transcripts } from '../entries/store.ts'

/** A session, as far as it can be bound. */
export interface ChatSession {
  readonly id: string
  readonly name: string
  readonly closed: boolean
  /** False: a program that is told nothing of ours (prompt mode `omit`). */
  readonly takesMessages: boolean
}

export interface ChatTargets {
  /** By its exact id. */
  session(id: string): ChatSession | undefined
  /** Whether the configured agent or named session takes messages. */
  agentTakesMessages(identity: string): boolean
}

/** `[[extmsg.default_route]]`, checked by the configuration. */
export interface DefaultRoute {
  readonly provider: string
  readonly account_id?: string
  readonly agent: string
}

export interface RoutingDeps {
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  /** A new id behind this prefix. */
  readonly newId: (prefix: string) => string
  readonly transcripts: Pick<Transcripts, 'ensure'>
  readonly members: Pick<Members, 'join' | 'leave' | 'leaveAll'>
  /** Looked up when somebody is named: sessions are opened late. */
  readonly addresses: () => Addresses
  readonly targets: ChatTargets
  readonly defaultRoutes: () => readonly DefaultRoute[]
}
