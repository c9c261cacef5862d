/** Durable tokens: their hashes in the supervisor's store, all of them in memory, for every request asks. */
import { createHash } from 'node:crypto'
import type { Token } from '../../contract/tokens.ts'
import type { Caller, TokenHolder } from '../../kernel/caller.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import type { Row, Tx } from '../../kernel/database.ts'
import { problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'

export const TOKENS_SCHEMA = `
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('admin', 'viewer')),
  city TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
`
/** How exactly it is known when a token was used: every use would be a write. */
const USE_NOTED_MS = 3_600_000

interface TokenRow extends TokenHolder {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly createdAt: number
  lastUsedAt: number | undefined
}

export interface TokensDeps {
  readonly store: Store
  readonly clock: Clock
  readonly random: (bytes: number) => string
  /** What is open with it is to end. */
  readonly revoked: (isMeant: (caller: Caller) => boolean) => void
}

type Draft = Pick<TokenRow, 'name' | 'role' | 'city'>

export class Tokens {
  readonly #deps: TokensDeps
  readonly #byHash: Map<string, TokenRow>

  constructor(deps: TokensDeps) {
    this.#deps = deps
    this.#byHash = new Map(deps.store.db.all('SELECT * FROM tokens').map((row) => [String(row.hash), toToken(row)]))
  }

  list(): readonly Token[] {
    return [...this.#byHash.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(wireToken)
  }

  /** Whose secret it is. */
  holder(secret: string): TokenHolder | undefined {
    if (this.#byHash.size === 0) return undefined
    const token = this.#byHash.get(hashOf(secret))
    if (token !== undefined) this.#noteUse(token)
    return token
  }

  async create(draft: Draft): Promise<{ readonly token: Token; readonly secret: string }> {
    const { store, clock, random } = this.#deps
    const secret = random(32)
    const row: TokenRow = {
      kind: 'token',
      ...draft,
      id: `tok-${random(8)}`,
      hash: hashOf(secret),
      createdAt: clock.now(),
      lastUsedAt: undefined,
    }
    await store.db.write((tx) => {
      if (tx.get('SELECT 1 FROM tokens WHERE name = ?', row.name) !== undefined)
        throw problem('name-taken', `there is a token of the name ${row.name}`)
      tx.run(
        'INSERT INTO tokens (id, name, hash, role, city, created_at) VALUES (?, ?, ?, ?, ?, ?)',
        row.id,
        row.name,
        row.hash,
        row.role,
        row.city ?? null,
        row.createdAt,
      )
      this.#say(tx, 'token.created', row)
      tx.afterCommit(() => this.#byHash.set(row.hash, row))
    })
    return { token: wireToken(row), secret }
  }

  async delete(handle: string): Promise<Pick<Token, 'id' | 'name'>> {
    return await this.#deps.store.db.write((tx) => {
      const found = tx.get('SELECT * FROM tokens WHERE id = ? OR name = ? ORDER BY id = ? DESC', handle, handle, handle)
      if (found === undefined) throw problem('token-not-found', `no such token: ${handle}`)
      const row = toToken(found)
      tx.run('DELETE FROM tokens WHERE id = ?', row.id)
      this.#say(tx, 'token.deleted', row)
      tx.afterCommit(() => this.#forget(row.hash))
      return { id: row.id, name: row.name }
    })
  }

  #forget(hash: string): void {
    const holder = this.#byHash.get(hash)
    this.#byHash.delete(hash)
    if (holder !== undefined) this.#deps.revoked((caller) => caller === holder)
  }

  #say(tx: Tx, type: 'token.created' | 'token.deleted', { id, name, role, city }: TokenRow): void {
    const payload = { id, name, role, ...(city === undefined ? {} : { city }) }
    this.#deps.store.log.append(tx, { type, actor: 'api', subject: id, payload })
  }

  #noteUse(token: TokenRow): void {
    const { store, clock } = this.#deps
    const now = clock.now()
    if (token.lastUsedAt !== undefined && now - token.lastUsedAt < USE_NOTED_MS) return
    token.lastUsedAt = now
    // Nobody waits for it: a store that takes no writes must not keep people out.
    store.db
      .write((tx) => tx.run('UPDATE tokens SET last_used_at = ? WHERE id = ?', now, token.id))
      .catch(() => undefined)
  }
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

function toToken(row: Row): TokenRow {
  return {
    kind: 'token',
    id: String(row.id),
    name: String(row.name),
    hash: String(row.hash),
    role: row.role === 'admin' ? 'admin' : 'viewer',
    city: row.city === null ? undefined : String(row.city),
    createdAt: Number(row.created_at),
    lastUsedAt: row.last_used_at === null ? undefined : Number(row.last_used_at),
  }
}

function wireToken({ id, name, role, city, createdAt, lastUsedAt }: TokenRow): Token {
  return {
    id,
    name,
    role,
    ...(city === undefined ? {} : { city }),
    created_at: isoTime(createdAt),
    ...(lastUsedAt === undefined ? {} : { last_used_at: isoTime(lastUsedAt) }),
  }
}
