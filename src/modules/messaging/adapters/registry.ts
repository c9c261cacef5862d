/**
 * Adapters of a city: what is registered, with which secrets, and whether it is there.
 *
 * A1  A registration lasts until it is removed; the end of a lease changes its status and nothing else.
 * A2  A secret is shown to whoever made it, once. A changed one is good for 24 h more.
 * A3  What is announced of the status of an adapter is what its row says, in the same write.
 */
import { createHash } from 'node:crypto'
import { cut } from '../../../contract/base/text.ts'
import { type AdapterAddedReason, MAX_ADAPTERS } from '../../../contract/messaging/adapters.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, SqlValue, Tx } from '../../../kernel/database.ts'
import { Due, type TimeChange } from '../../../kernel/due.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { createSecret } from '../../../messaging/signature.ts'
import type { Reader } from '../base/rows.ts'
import {
  type Adapter,
  type AdapterDefinition,
  type AdapterKey,
  nameOfKey,
  normalKey,
  parseAdapter,
  sameDefinition,
  statusAt,
} from './adapter.ts'

const OLD_SECRET_MS = 24 * 3_600_000
/** Secrets of one adapter that are good at the same time: whoever changes more often loses the oldest earlier. */
const MAX_SECRETS = 4
/** A call renews the lease on disk at most so often. */
const RENEWED_APART_MS = 10_000

export interface AdaptersDeps {
  readonly db: Database
  readonly events: EventLog
  readonly clock: Clock
  readonly log: Logger
}

export interface StoredSecret {
  readonly secret: string
  /** When it ends; undefined: it is the newest. */
  readonly until: number | undefined
}

export interface Registered {
  readonly adapter: Adapter
  readonly created: boolean
  /** Made for it now. */
  readonly secret: string | undefined
}

export class Adapters {
  readonly #deps: AdaptersDeps
  /** Nobody could call before. */
  #since: number
  /** Those that wait for deliveries are there. */
  readonly #waiting = new Map<string, number>()
  readonly #leases: Due

  constructor(deps: AdaptersDeps) {
    this.#deps = deps
    this.#since = deps.clock.now()
    const { db, clock, log } = deps
    this.#leases = new Due({
      name: 'leases of adapters',
      db,
      clock,
      log,
      next: () => this.#nextLapse(),
      work: () => this.#expire(),
      adjust: (change) => this.#adjust(change),
    })
  }

  /** Begins to watch leases. */
  start(): Promise<void> {
    return this.#leases.start()
  }

  close(): Promise<void> {
    return this.#leases.stop()
  }

  find(provider: string, accountId: string, reader: Reader = this.#deps.db): Adapter | undefined {
    const key = normalKey(provider, accountId)
    const row = reader.get('SELECT * FROM adapters WHERE provider = ? AND account_id = ?', key.provider, key.account_id)
    return row === undefined ? undefined : parseAdapter(row)
  }

  /** 404 where there is none. */
  need(provider: string, accountId: string, reader: Reader = this.#deps.db): Adapter {
    const found = this.find(provider, accountId, reader)
    if (found === undefined)
      throw problem('adapter-not-found', `adapter not found: ${cut(provider, 80)}/${cut(accountId, 80)}`)
    return found
  }

  /** By provider and account, from behind a key. */
  list(
    provider: string | undefined,
    behind: readonly [provider: string, account: string] | undefined,
    limit: number,
  ): readonly Adapter[] {
    const { db } = this.#deps
    const of = provider === undefined ? '' : 'AND provider = ?'
    return db
      .all(
        `SELECT * FROM adapters WHERE (provider, account_id) > (?, ?) ${of} ORDER BY provider, account_id LIMIT ?`,
        ...(behind ?? ['', '']),
        ...(provider === undefined ? [] : [provider.trim().toLowerCase()]),
        limit,
      )
      .map(parseAdapter)
  }

  all(): readonly Adapter[] {
    return this.list(undefined, undefined, MAX_ADAPTERS)
  }

  count(provider: string | undefined): number {
    const { db } = this.#deps
    const row =
      provider === undefined
        ? db.get('SELECT count(*) AS n FROM adapters')
        : db.get('SELECT count(*) AS n FROM adapters WHERE provider = ?', provider.trim().toLowerCase())
    return Number(row?.n)
  }

  /** Those that are good now, newest first. */
  secrets({ provider, account_id }: AdapterKey, reader: Reader = this.#deps.db): readonly StoredSecret[] {
    return reader
      .all(
        `SELECT secret, until FROM adapter_secrets WHERE provider = ? AND account_id = ? AND (until IS NULL OR until > ?)
         ORDER BY until IS NOT NULL, made_at DESC LIMIT ${MAX_SECRETS}`,
        provider,
        account_id,
        this.#deps.clock.now(),
      )
      .map((row) => ({ secret: String(row.secret), until: row.until === null ? undefined : Number(row.until) }))
  }

  /** The adapter that has this secret; looked up by its hash, which tells nothing by its duration. */
  bySecret(secret: string): AdapterKey | undefined {
    const row = this.#deps.db.get(
      'SELECT provider, account_id FROM adapter_secrets WHERE hash = ? AND (until IS NULL OR until > ?)',
      hashOf(secret),
      this.#deps.clock.now(),
    )
    return row === undefined ? undefined : { provider: String(row.provider), account_id: String(row.account_id) }
  }

  /** A secret says which adapter calls: one that two have would say it of one of them alone. */
  #refuseSharedSecret({ provider, account_id }: AdapterKey, secret: string | undefined): void {
    const other = secret === undefined ? undefined : this.bySecret(secret)
    if (other === undefined || (other.provider === provider && other.account_id === account_id)) return
    throw invalidField(
      'body.secret',
      'is the secret of another adapter already: give each adapter its own, or have one made with `generate_secret`',
    )
  }

  /** A new one, the same one again, or another one in its place. Who may replace it has been looked at. */
  register(
    tx: Tx,
    definition: AdapterDefinition,
    wanted: { readonly secret: string | undefined; readonly generate: boolean; readonly actor: string },
  ): Registered {
    const { actor } = wanted
    const known = this.find(definition.provider, definition.account_id, tx)
    this.#refuseSharedSecret(definition, wanted.secret)
    if (known === undefined) this.#insert(tx, definition)
    else if (!sameDefinition(known, definition)) this.#replace(tx, definition)
    const made = this.#secure(tx, definition, wanted)
    const adapter = this.#renew(tx, this.need(definition.provider, definition.account_id, tx), actor)
    if (known === undefined) this.#added(tx, adapter, 'registered', actor)
    else if (!sameDefinition(known, definition)) this.#added(tx, adapter, 'replaced', actor)
    return { adapter, created: known === undefined, secret: made }
  }

  /** Changes what it says of itself, as whoever uses the API likes. */
  change(tx: Tx, adapter: Adapter, definition: AdapterDefinition, actor: string): Adapter {
    if (sameDefinition(adapter, definition)) return adapter
    this.#replace(tx, definition)
    const after = this.#announce(tx, this.need(adapter.provider, adapter.account_id, tx), actor)
    this.#added(tx, after, 'changed', actor)
    return after
  }

  /** A new secret; those before end in 24 h at the latest. */
  rotate(tx: Tx, adapter: Adapter, actor: string): string {
    const { provider, account_id } = adapter
    const now = this.#deps.clock.now()
    tx.run(
      'UPDATE adapter_secrets SET until = ? WHERE provider = ? AND account_id = ? AND until IS NULL',
      now + OLD_SECRET_MS,
      provider,
      account_id,
    )
    const secret = createSecret()
    this.#addSecret(tx, adapter, secret)
    tx.run(
      `DELETE FROM adapter_secrets WHERE provider = ? AND account_id = ? AND (until <= ? OR hash IN (
         SELECT hash FROM adapter_secrets WHERE provider = ? AND account_id = ? AND until IS NOT NULL
         ORDER BY until DESC LIMIT -1 OFFSET ${MAX_SECRETS - 1}))`,
      ...[provider, account_id, now, provider, account_id],
    )
    this.#added(tx, adapter, 'secret_rotated', actor)
    return secret
  }

  remove(tx: Tx, adapter: Adapter, dead: number, actor: string): void {
    const { provider, account_id, name } = adapter
    tx.run('DELETE FROM adapters WHERE provider = ? AND account_id = ?', provider, account_id)
    this.#deps.events.append(tx, {
      type: 'extmsg.adapter_removed',
      actor,
      subject: nameOfKey(adapter),
      payload: { provider, account_id, name, dead_deliveries: dead },
    })
  }

  /** It has called: its lease begins anew. */
  seen(tx: Tx, adapter: Adapter): void {
    this.#renew(tx, adapter, nameOfKey(adapter))
  }

  /** The same outside a write; not on disk each time. */
  touch(adapter: Adapter): void {
    const { db, clock, log } = this.#deps
    const { last_seen_at, lease_ms = Number.POSITIVE_INFINITY } = adapter
    const apart = Math.min(RENEWED_APART_MS, lease_ms / 4)
    if (adapter.status !== 'stale' && clock.now() < last_seen_at + apart) return
    db.write((tx) => {
      const now = this.find(adapter.provider, adapter.account_id, tx)
      if (now !== undefined) this.seen(tx, now)
    }).catch((error: unknown) => log.warn({ err: error, adapter: nameOfKey(adapter) }, 'lease not renewed'))
  }

  /** It is there for as long as it waits; disposing of what is returned says that it does no longer. */
  waits(adapter: Adapter): Disposable {
    const key = nameOfKey(adapter)
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1)
    return {
      [Symbol.dispose]: () => {
        const left = (this.#waiting.get(key) ?? 1) - 1
        if (left > 0) this.#waiting.set(key, left)
        else this.#waiting.delete(key)
      },
    }
  }

  /** An attempt has ended well: it is there. */
  succeeded(tx: Tx, key: AdapterKey): void {
    const now = this.#deps.clock.now()
    const row = tx.get(
      `UPDATE adapters SET failures = 0, last_error = NULL, last_seen_at = ?, last_delivery_at = ?
       WHERE provider = ? AND account_id = ? RETURNING *`,
      ...[now, now, key.provider, key.account_id],
    )
    if (row !== undefined) this.#announce(tx, parseAdapter(row), nameOfKey(key))
  }

  /** An attempt has failed. `pauseMs`: it asked for no more for so long. `counts`: it is a fault of the adapter. */
  failed(
    tx: Tx,
    key: AdapterKey,
    failure: { readonly error: string; readonly counts: boolean; readonly pauseMs: number },
  ): void {
    const { error, counts, pauseMs } = failure
    const row = tx.get(
      `UPDATE adapters SET failures = failures + ?, last_error = ?, paused_until = max(paused_until, ?)
       WHERE provider = ? AND account_id = ? RETURNING *`,
      counts ? 1 : 0,
      error,
      pauseMs > 0 ? this.#deps.clock.now() + pauseMs : 0,
      key.provider,
      key.account_id,
    )
    if (row !== undefined) this.#announce(tx, parseAdapter(row), nameOfKey(key))
  }

  #renew(tx: Tx, adapter: Adapter, actor: string): Adapter {
    const { provider, account_id } = adapter
    const now = this.#deps.clock.now()
    tx.run('UPDATE adapters SET last_seen_at = ? WHERE provider = ? AND account_id = ?', now, provider, account_id)
    tx.afterCommit(() => this.#leases.changed())
    return this.#announce(tx, { ...adapter, last_seen_at: now }, actor)
  }

  #announce(tx: Tx, adapter: Adapter, actor: string): Adapter {
    const { provider, account_id, status: from, last_error } = adapter
    const to = statusAt(adapter, this.#deps.clock.now(), this.#since)
    if (to === from) return adapter
    tx.run('UPDATE adapters SET status = ? WHERE provider = ? AND account_id = ?', to, provider, account_id)
    tx.afterCommit(() => this.#leases.changed())
    this.#deps.events.append(tx, {
      type: 'extmsg.adapter_changed',
      actor,
      subject: nameOfKey(adapter),
      payload: {
        provider,
        account_id,
        from,
        to,
        ...(to === 'failing' && last_error !== undefined ? { error: last_error } : {}),
      },
    })
    return { ...adapter, status: to }
  }

  #added(tx: Tx, adapter: Adapter, reason: AdapterAddedReason, actor: string): void {
    const { provider, account_id, name, transport } = adapter
    this.#deps.events.append(tx, {
      type: 'extmsg.adapter_added',
      actor,
      subject: nameOfKey(adapter),
      payload: { provider, account_id, name, transport, reason },
    })
  }

  #insert(tx: Tx, definition: AdapterDefinition): void {
    const count = Number(tx.get('SELECT count(*) AS n FROM adapters')?.n)
    if (count >= MAX_ADAPTERS) throw problem('too-many-adapters', `a city has at most ${MAX_ADAPTERS} adapters`)
    const now = this.#deps.clock.now()
    tx.run(
      `INSERT INTO adapters (provider, account_id, name, transport, callback_url, capabilities_json, metadata_json, lease_ms,
         status, registered_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'online', ?, ?)`,
      definition.provider,
      definition.account_id,
      ...columnsOf(definition),
      now,
      now,
    )
  }

  /** What it failed at was another one. */
  #replace(tx: Tx, definition: AdapterDefinition): void {
    tx.run(
      `UPDATE adapters SET name = ?, transport = ?, callback_url = ?, capabilities_json = ?, metadata_json = ?, lease_ms = ?,
         failures = 0, last_error = NULL, paused_until = 0 WHERE provider = ? AND account_id = ?`,
      ...columnsOf(definition),
      definition.provider,
      definition.account_id,
    )
  }

  /** The secret that was made, where one was. One that it has is changed by nobody who registers. */
  #secure(
    tx: Tx,
    key: AdapterKey,
    { secret, generate }: { readonly secret: string | undefined; readonly generate: boolean },
  ): string | undefined {
    if ((secret === undefined && !generate) || this.secrets(key, tx).length > 0) return undefined
    const made = secret ?? createSecret()
    this.#addSecret(tx, key, made)
    return secret === undefined ? made : undefined
  }

  #addSecret(tx: Tx, { provider, account_id }: AdapterKey, secret: string): void {
    tx.run(
      'INSERT INTO adapter_secrets (provider, account_id, hash, secret, made_at) VALUES (?, ?, ?, ?, ?)',
      ...[provider, account_id, hashOf(secret), secret, this.#deps.clock.now()],
    )
  }

  #nextLapse(): number | undefined {
    const row = this.#deps.db.get(
      "SELECT min(max(last_seen_at, ?) + lease_ms) AS at FROM adapters WHERE status <> 'stale' AND lease_ms IS NOT NULL",
      this.#since,
    )
    return row?.at === null || row?.at === undefined ? undefined : Number(row.at)
  }

  /** Nobody could call in a pause; what was seen while the clock was ahead was seen now. */
  #adjust({ stepMs, pausedMs }: TimeChange): Promise<unknown> {
    const now = this.#deps.clock.now()
    if (pausedMs > 0 || stepMs < 0) this.#since = now
    return this.#deps.db.write((tx) => tx.run('UPDATE adapters SET last_seen_at = ? WHERE last_seen_at > ?', now, now))
  }

  #expire(): Promise<void> {
    return this.#deps.db.write((tx) => {
      for (const row of tx.all("SELECT * FROM adapters WHERE status <> 'stale' AND lease_ms IS NOT NULL")) {
        const adapter = parseAdapter(row)
        if (this.#waiting.has(nameOfKey(adapter))) this.seen(tx, adapter)
        else this.#announce(tx, adapter, nameOfKey(adapter))
      }
    })
  }
}

const columnsOf = (one: AdapterDefinition): readonly SqlValue[] => [
  one.name,
  one.transport,
  one.callback_url ?? null,
  JSON.stringify(one.capabilities),
  JSON.stringify(one.metadata),
  one.lease_ms ?? null,
]

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')
