/** A database with everything that a scope has: its event log, its ledger of requests, its idempotency keys. */
import { type Clock, nextTurn } from './clock.ts'
import { Database, type Migrations, type StoreWatch } from './database.ts'
import { EVENT_LOG_SCHEMA, EventLog, type Retention, type StoredEvent } from './event-log.ts'
import { IDEMPOTENCY_SCHEMA, IdempotencyKeys } from './idempotency.ts'
import { REQUESTS_SCHEMA, RequestLedger } from './requests.ts'

/** Tables that every store has; its first migration starts with them. */
export const STORE_SCHEMA = `${EVENT_LOG_SCHEMA}${REQUESTS_SCHEMA}${IDEMPOTENCY_SCHEMA}
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

export interface Store {
  readonly db: Database
  readonly log: EventLog
  readonly requests: RequestLedger
  readonly keys: IdempotencyKeys
}

export interface StoreObserver extends StoreWatch {
  /** Sees each batch of events after its commit. */
  readonly appended?: ((events: readonly StoredEvent[]) => void) | undefined
}

export interface StoreOptions {
  readonly path: string
  readonly migrations: Migrations
  readonly owner: string
  readonly lockWaitMs?: number
  readonly clock: Clock
  readonly watch?: StoreObserver
}

export function openStore({ clock, ...options }: StoreOptions): Store {
  const db = Database.open(options)
  try {
    const log = new EventLog(db, clock)
    if (options.watch?.appended !== undefined) log.onCommit(options.watch.appended)
    return {
      db,
      log,
      requests: new RequestLedger(db, log, clock),
      keys: new IdempotencyKeys(db, clock, log.newestAt),
    }
  } catch (error) {
    db.close()
    throw error
  }
}

export function readMeta(store: Store, key: string): string | undefined {
  const value = store.db.get('SELECT value FROM meta WHERE key = ?', key)?.value
  return value === undefined ? undefined : String(value)
}

/** A small write that tells whether the disk takes writes again; without it only the next caller would find out. */
export async function probeWrites(store: Store, clock: Clock): Promise<void> {
  await store.db.write((tx) => {
    tx.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('probed_at', ?)", String(clock.now()))
  })
}

/** Less than this is used again soon, and not worth the writes. */
const WORTH_GIVING_BACK = 1_024
/** Pages that one write gives back, and writes of one round. */
const GIVEN_AT_ONCE = 200
const MAX_GIVING = 100

/** Gives disk back that nothing needs any more. */
async function giveBack(db: Database): Promise<void> {
  if (db.freePages < WORTH_GIVING_BACK) return
  for (let round = 0; round < MAX_GIVING && db.freePages > 0; round++) {
    await db.giveBackPages(GIVEN_AT_ONCE)
    await nextTurn()
  }
}

/** One round of housekeeping; the caller repeats it from time to time. */
export async function tidy(store: Store, retention: Retention): Promise<void> {
  if (store.db.failure !== undefined && !store.db.inPlace) return
  while (store.log.needsPruning(retention)) {
    const gone = await store.db.write((tx) => store.log.prune(tx, retention))
    if (gone === 0) break
    await nextTurn()
  }
  await giveBack(store.db)
  if (store.log.isAhead) await store.db.write((tx) => store.log.bringBack(tx))
  if (store.requests.needsPruning()) await store.db.write((tx) => store.requests.prune(tx))
}
