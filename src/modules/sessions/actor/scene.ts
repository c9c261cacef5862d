/** What the parts of one session's actor share. */
import type { Tx } from '../../../kernel/database.ts'
import type { Launcher } from '../launch/launcher.ts'
import type { Deliveries } from '../queue/deliveries.ts'
import type { Policy } from '../record/policy.ts'
import type { SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import type { Permissions } from '../reports/permissions.ts'
import type { Journal } from './journal.ts'
import type { DriftKind, Want } from './reconcile.ts'
import type { Slots } from './slots.ts'
import type { Turns } from './turns.ts'
import type { Watch } from './watch.ts'

export interface ActorDeps extends SessionsDeps {
  readonly sessions: SessionStore
  readonly deliveries: Deliveries
  readonly launcher: Launcher
  readonly slots: Slots
  readonly policy: () => Policy
  readonly want: (id: string) => Want
  readonly drift: (session: SessionRecord) => DriftKind
  /** Why it may not start now. */
  readonly blocked: (session: SessionRecord) => string | undefined
  /** Somebody watches, or did a moment ago. */
  readonly attended: (id: string) => boolean
  /** Somebody watches. */
  readonly attached: (id: string) => boolean
  /** Takes over what its hooks told while nobody listened; never rejects. */
  readonly hearMissed: (session: SessionRecord) => Promise<void>
  readonly permissions: Pick<Permissions, 'ruled' | 'decided'>
  /** What else ends with a session that is closed, in the same write. */
  readonly closeOut: (tx: Tx, session: SessionRecord) => void
  /** It is about to be started; `isNew`: its agent will know nothing of what it was told before. */
  readonly starts: (tx: Tx, session: SessionRecord, how: { readonly isNew: boolean }) => void
  /** There is more output, or something else that is in no row has changed. */
  readonly changed: (id: string) => void
  /** It has become idle. */
  readonly rests: () => void
}

export interface Scene {
  readonly id: string
  readonly deps: ActorDeps
  readonly watch: Watch
  readonly journal: Journal
  readonly turns: Turns
  /** The supervisor ends: nothing is touched any more. */
  closed(): boolean
  /** Aborts then: of what comes before a process, nothing outlives us. */
  readonly left: AbortSignal
  /** Why an effect was cut that nobody else wanted to end. */
  cutFor(): 'city-stop' | 'kill' | undefined
}

export const SUPERVISOR = { actor: 'supervisor' } as const
/** How long a runtime may take to say what it knows. */
export const LOOK_MS = 5_000

export const NO_INTERRUPT = 'its turns cannot be interrupted'

export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
