/**
 * Idempotency keys: the first answer is stored with what it created, in the same write, for 24 h (decision 7).
 *
 * K1  A key that has an answer always gives that answer, also after a crash.
 * K2  A key whose request failed, or died with the process, is free again: nothing was created.
 */
import { createHash } from 'node:crypto'
import type { Reply } from './call.ts'
import type { Clock } from './clock.ts'
import type { Database, Tx } from './database.ts'
import { problem } from './problem.ts'

export const IDEMPOTENCY_SCHEMA = `
CREATE TABLE idempotency_keys (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
`
const KEPT_MS = 24 * 3_600_000

/** What a caller sent with its key. */
export interface IdempotencyClaim {
  /** Method and path. */
  readonly scope: string
  readonly key: string
  /** Hash of the decoded body. */
  readonly fingerprint: string
}

export function fingerprintOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body) ?? '')
    .digest('hex')
}

/** The keys of one database. */
export class IdempotencyKeys {
  readonly #db: Database
  readonly #clock: Clock
  readonly #running = new Map<string, string>()

  constructor(db: Database, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  /** The stored answer, or the result of `work`, which must store it through `remember` in the write that creates. */
  async once<B>(claim: IdempotencyClaim | undefined, work: () => Reply<B> | Promise<Reply<B>>): Promise<Reply<B>> {
    if (claim === undefined) return work()
    const id = `${claim.scope}\n${claim.key}`
    const running = this.#running.get(id)
    if (running !== undefined) {
      if (running !== claim.fingerprint) throw mismatch()
      throw problem('idempotency-in-flight', 'the first request with this Idempotency-Key is still running', {
        retryAfterSec: 1,
      })
    }
    const stored = this.#stored<B>(claim)
    if (stored !== undefined) return stored
    this.#running.set(id, claim.fingerprint)
    try {
      return await work()
    } finally {
      this.#running.delete(id)
    }
  }

  /** Stores the answer; inside the write that makes it true. */
  remember<B>(tx: Tx, claim: IdempotencyClaim | undefined, reply: Reply<B>): Reply<B> {
    if (claim === undefined) return reply
    const now = this.#clock.now()
    tx.run('DELETE FROM idempotency_keys WHERE created_at < ?', now - KEPT_MS)
    tx.run(
      'INSERT OR REPLACE INTO idempotency_keys (scope, key, fingerprint, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?)',
      claim.scope,
      claim.key,
      claim.fingerprint,
      reply.status,
      JSON.stringify(reply.body),
      now,
    )
    return reply
  }

  #stored<B>({ scope, key, fingerprint }: IdempotencyClaim): Reply<B> | undefined {
    const row = this.#db.get(
      'SELECT fingerprint, status, body FROM idempotency_keys WHERE scope = ? AND key = ? AND created_at >= ?',
      scope,
      key,
      this.#clock.now() - KEPT_MS,
    )
    if (row === undefined) return undefined
    if (row.fingerprint !== fingerprint) throw mismatch()
    return { status: Number(row.status), body: JSON.parse(String(row.body)) }
  }
}

const mismatch = () => problem('idempotency-mismatch', 'this Idempotency-Key was used with another body')
