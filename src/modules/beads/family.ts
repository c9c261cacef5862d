/** Work, as the supervisor joins it: the beads of each running city, and their leases. */

import { parseDurationMs } from '../../contract/base/durations.ts'
import { beadOperations } from '../../contract/beads.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { Jobs } from '../../kernel/jobs.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Store } from '../../kernel/store.ts'
import { createBeadHandlers } from './handlers.ts'
import { createInterchangeHandlers } from './interchange-handlers.ts'
import { createBeadReadHandlers } from './read-handlers.ts'
import { KeptCounts } from './store/counts.ts'
import { deferralsOf } from './store/deferrals.ts'
import { BEADS_SCHEMA } from './store/schema.ts'
import { BeadStore } from './store/store.ts'
import type { WorkCity, WorkConfig, WorkPeople } from './work/city.ts'
import { Claims } from './work/claim.ts'
import { Expiry } from './work/expiry.ts'
import { leaseTimer } from './work/lease.ts'
import { removalJob } from './work/removal.ts'
import { shiftingOf } from './work/shifting.ts'
import { assertMayRemove, type WorkSteps } from './work/steps.ts'

export interface WorkContext {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'keys' | 'log' | 'requests'>
  readonly clock: Clock
  readonly log: Logger
  readonly people: WorkPeople
  readonly steps: WorkSteps
  readonly launch: Jobs['launch']
  config(): WorkConfig & { readonly work: { readonly lease_ttl?: string } }
  /** Calls the listener whenever another configuration is in force. */
  onReconfigured(listener: () => void): () => void
  /** The session is known to have ended, or is to end: it gets no more work. */
  ended(sessionId: string): boolean
  /** False where it is known that no such session runs. */
  lives(sessionId: string): boolean
}

const DEFAULT_LEASE = '15m'

export const beads = defineFamily({
  operations: beadOperations,
  schema: migrationsOf('beads', ...BEADS_SCHEMA),
  handlers: (host: { readonly clock: Clock }) => ({
    ...createBeadHandlers(host),
    ...createBeadReadHandlers(host),
    ...createInterchangeHandlers(host),
  }),
  open: async (context: WorkContext) => {
    const { store, clock, log, lives, steps } = context
    const deferrals = deferralsOf({ db: store.db, clock, log })
    const deferred = (until: number) => deferrals.noticed(until)
    const left = () => shifting.changed()
    const mayRemove = (ids: readonly string[]) => assertMayRemove(steps, ids)
    const beads = new BeadStore({ db: store.db, log: store.log, clock, deferred, shifting: left, mayRemove })
    const shifting = shiftingOf({ db: store.db, beads, clock, log })
    const claims = new Claims({
      ...context,
      beads,
      db: store.db,
      log: store.log,
      leaseMs: () => parseDurationMs(context.config().work.lease_ttl ?? DEFAULT_LEASE),
      lives,
      leased: (expiresAt) => leases.noticed(expiresAt),
    })
    const policies = () => context.config().beads.policies
    const expiry = new Expiry({ db: store.db, events: store.log, beads, clock, log, steps, policies })
    const leases = leaseTimer({ db: store.db, claims, clock, log })
    // Before anybody works: leases that nobody could renew while the city was down begin anew.
    await leases.start()
    await deferrals.start()
    await shifting.start()
    await expiry.start()
    const unlisten = context.onReconfigured(() => expiry.configured())
    // After a crash, or a migration; whoever looks for words before it is done waits for it.
    beads.words.settle().catch((error: unknown) => log.warn({ err: error }, 'words of beads are not indexed yet'))
    const work: WorkCity = { ...context, beads, claims }
    return { ...work, leases, deferrals, shifting, expiry, unlisten, counts: new KeptCounts(store) }
  },
  jobs: (city) => [removalJob(city)],
  close: async ({ leases, deferrals, shifting, expiry, unlisten }) => {
    unlisten()
    await Promise.all([expiry, leases, deferrals, shifting].map((one) => one.stop()))
  },
})
