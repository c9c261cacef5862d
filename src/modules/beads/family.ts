/** Work, as the supervisor joins it: the beads of each running city, and their leases. */

import { parseDurationMs } from '../../contract/base/durations.ts'
import { beadOperations } from '../../contract/beads.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Store } from '../../kernel/store.ts'
import { createBeadHandlers } from './handlers.ts'
import { createInterchangeHandlers } from './interchange-handlers.ts'
import { createBeadReadHandlers } from './read-handlers.ts'
import { KeptCounts } from './store/counts.ts'
import { Deferrals } from './store/deferrals.ts'
import { BEADS_SCHEMA } from './store/schema.ts'
import { BeadStore } from './store/store.ts'
import type { WorkCity, WorkConfig, WorkPeople } from './work/city.ts'
import { Claims } from './work/claim.ts'
import { LeaseTimer } from './work/lease.ts'

export interface WorkContext {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'keys' | 'log'>
  readonly clock: Clock
  readonly log: Logger
  readonly people: WorkPeople
  config(): WorkConfig & { readonly work: { readonly lease_ttl?: string } }
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
    const { store, clock, log, lives } = context
    const deferrals = new Deferrals({ db: store.db, clock, log })
    const deferred = (until: number) => deferrals.noticed(until)
    const beads = new BeadStore({ db: store.db, log: store.log, clock, deferred })
    const claims = new Claims({
      ...context,
      beads,
      db: store.db,
      log: store.log,
      leaseMs: () => parseDurationMs(context.config().work.lease_ttl ?? DEFAULT_LEASE),
      lives,
      leased: (expiresAt) => leases.noticed(expiresAt),
    })
    const leases = new LeaseTimer({ db: store.db, claims, clock, log })
    // Before anybody works: leases that nobody could renew while the city was down begin anew.
    await leases.start()
    deferrals.start()
    // After a crash, or a migration; whoever looks for words before it is done waits for it.
    beads.words.settle().catch((error: unknown) => log.warn({ err: error }, 'words of beads are not indexed yet'))
    const work: WorkCity = { ...context, beads, claims }
    return { ...work, leases, deferrals, counts: new KeptCounts(store) }
  },
  close: ({ leases, deferrals }) => {
    leases.stop()
    deferrals.stop()
  },
})
