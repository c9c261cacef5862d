/** Ends bindings when their time has come, so that everybody hears of it then and not when somebody next looks. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Bindings } from './bindings.ts'

/** Bindings that one write ends. */
const ENDED_AT_ONCE = 100
const RETRY_MS = 10_000

interface ExpiryDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly bindings: Bindings
}

export class BindingExpiry {
  readonly #deps: ExpiryDeps
  #cancel: () => void = () => {}
  #closed = false

  constructor(deps: ExpiryDeps) {
    this.#deps = deps
    deps.bindings.onExpirySet(() => this.#arm())
  }

  start(): void {
    this.#arm()
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  /** Looks again when the next one is due. */
  #arm(delayMs = 0): void {
    this.#cancel()
    const { db, clock, bindings } = this.#deps
    const next = this.#closed ? undefined : bindings.nextExpiry(db)
    if (next !== undefined) this.#cancel = clock.after(Math.max(delayMs, next - clock.now()), () => void this.#end())
  }

  async #end(): Promise<void> {
    const { db, log, bindings } = this.#deps
    try {
      await db.write((tx) => bindings.endExpired(tx, ENDED_AT_ONCE))
      this.#arm()
    } catch (error) {
      log.warn({ err: error }, 'bindings that have expired could not be ended')
      this.#arm(RETRY_MS)
    }
  }
}
