/** Ends bindings when their time has come, so that everybody hears of it then and not when somebody next looks. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Bindings } from './bindings.ts'

/** Bindings that one write ends. */
const ENDED_AT_ONCE = 100

interface ExpiryDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly bindings: Bindings
}

export function bindingExpiry({ db, clock, log, bindings }: ExpiryDeps): Due {
  const due = new Due({
    name: 'bindings',
    db,
    clock,
    log,
    next: () => bindings.nextExpiry(db),
    work: () => db.write((tx) => void bindings.endExpired(tx, ENDED_AT_ONCE)),
  })
  bindings.onExpirySet(() => due.changed())
  return due
}
