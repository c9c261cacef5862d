/** What the beads of a city need of their surroundings. */
import type { Jobs } from '../../../kernel/jobs.ts'
import type { Store } from '../../../kernel/store.ts'
import type { BeadStore } from '../store/store.ts'
import type { Claims } from './claim.ts'
import type { WorkSteps } from './steps.ts'

export interface BeadPolicy {
  readonly storage?: 'history' | 'no_history' | 'ephemeral'
  readonly delete_after_close?: string
}

/** The configuration in force, as far as work is concerned. */
export interface WorkConfig {
  /** Of the ids of the city's own beads. */
  readonly prefix: string
  readonly rigs: readonly { readonly name: string; readonly prefix: string }[]
  readonly agents: readonly { readonly identity: string }[]
  readonly named_sessions: readonly { readonly identity: string }[]
  /** What is said of beads of a type. */
  readonly beads: { readonly policies?: Readonly<Record<string, BeadPolicy>> }
}

/** Who is meant by a name (decision 42): sessions know more names of theirs than the configuration does. */
export interface WorkPeople {
  /** The one name that is stored; a name that nobody has stays as it is. */
  canonical(name: string): string
  /** Every name under which work of this one may be stored. */
  identities(name: string): readonly string[]
  /** Every name under which work that this one may take is routed: its own, and that of the agent whose instance it is. */
  routes(name: string): readonly string[]
}

/** One running city, for handlers. */
export interface WorkCity {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'keys' | 'log' | 'requests'>
  readonly beads: BeadStore
  readonly claims: Claims
  readonly people: WorkPeople
  readonly steps: WorkSteps
  readonly launch: Jobs['launch']
  config(): WorkConfig
  /** True where a session has ended, or is to end: whatever asks in its name gets no work. */
  ended(sessionId: string): boolean
}
