/**
 * Idempotency keys: the first answer is stored with what it created, in the same write, for 24 h (decision 7), or until
 * the answers of later keys need the room.
 *
 * K1  A key that has an answer always gives that answer, also after a crash.
 * K2  A key whose request failed, or died with the process, is free again: nothing was created.
 */
import { createHash } from 'node:crypto'
import type { Reply } from './call.ts'
import { AgeTrust, type Clock } from './clock.ts'
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
/** Keys are kept for so short a time that a smaller error of the clock counts than elsewhere; to keep one longer harms nobody. */
const MAX_STEP_MS = 60_000
/** Of stored answers; what goes beyond it takes the oldest half with it. */
const KEPT_BYTES = 64 * 1024 * 1024
/** What a key takes beside its answer. */
const KEY_BYTES = 256

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
  readonly #ages: AgeTrust
  readonly #running = new Map<string, string>()
  /** Never less than what is stored; undefined until somebody has to know. */
  #bytes: number | undefined

  /** `lastSeen`: the newest time on record, 0 where there is none. */
  constructor(db: Database, clock: Clock, lastSeen: number) {
    this.#db = db
    this.#clock = clock
    this.#ages = new AgeTrust(clock, lastSeen, MAX_STEP_MS)
  }

  /** The stored answer, or the result of `work`, which must store it through `remember` in the write that creates. */
  once<B>(claim: IdempotencyClaim | undefined, work: () => Promise<Reply<B>>): Promise<Reply<B>>
  once<B>(claim: IdempotencyClaim | undefined, work: () => Reply<B> | Promise<Reply<B>>): Reply<B> | Promise<Reply<B>>
  once<B>(claim: IdempotencyClaim | undefined, work: () => Reply<B> | Promise<Reply<B>>): Reply<B> | Promise<Reply<B>> {
    return claim === undefined ? work() : this.#onceFor(claim, work)
  }

  async #onceFor<B>(claim: IdempotencyClaim, work: () => Reply<B> | Promise<Reply<B>>): Promise<Reply<B>> {
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
    const body = JSON.stringify(reply.body)
    if (this.#ages.holds()) tx.run('DELETE FROM idempotency_keys WHERE created_at < ?', now - KEPT_MS)
    tx.run(
      'INSERT OR REPLACE INTO idempotency_keys (scope, key, fingerprint, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?)',
      claim.scope,
      claim.key,
      claim.fingerprint,
      reply.status,
      body,
      now,
    )
    this.#makeRoom(tx, claim, Buffer.byteLength(body) + KEY_BYTES)
    return reply
  }

  #makeRoom(tx: Tx, { scope, key }: IdempotencyClaim, added: number): void {
    this.#bytes = this.#bytes === undefined ? storedBytes(tx) : this.#bytes + added
    if (this.#bytes <= KEPT_BYTES) return
    // Some may have been undone, or forgotten by age.
    this.#bytes = storedBytes(tx)
    if (this.#bytes <= KEPT_BYTES) return
    tx.run(
      `DELETE FROM idempotency_keys WHERE NOT (scope = ? AND key = ?) AND created_at <= (
        SELECT max(created_at) FROM (
          SELECT created_at, sum(octet_length(body) + ${KEY_BYTES}) OVER (ORDER BY created_at DESC) AS held
          FROM idempotency_keys
        ) WHERE held > ?)`,
      scope,
      key,
      KEPT_BYTES / 2,
    )
    this.#bytes = storedBytes(tx)
  }

  #stored<B>({ scope, key, fingerprint }: IdempotencyClaim): Reply<B> | undefined {
    const row = this.#db.get(
      'SELECT fingerprint, status, body FROM idempotency_keys WHERE scope = ? AND key = ? AND created_at >= ?',
      scope,
      key,
      this.#ages.holds() ? this.#clock.now() - KEPT_MS : 0,
    )
    if (row === undefined) return undefined
    if (row.fingerprint !== fingerprint) throw mismatch()
    return { status: Number(row.status), body: JSON.parse(String(row.body)) }
  }
}

function storedBytes(tx: Tx): number {
  const row = tx.get(`SELECT total(octet_length(body) + ${KEY_BYTES}) AS bytes FROM idempotency_keys`)
  return Number(row?.bytes)
}

const mismatch = () => problem('idempotency-mismatch', 'this Idempotency-Key was used with another body')
