/**
 * What a bridge must not forget when it is killed. Everything here is on disk when the call returns.
 *
 * J1  A delivery is begun before its first byte goes out, and done before it is acknowledged.
 * J2  What came from the chat stays until the supervisor has it; the order of a conversation is that in which it came.
 * J3  Nothing grows without a bound: what is over is forgotten, the oldest first.
 * J4  One process at a time: two would say everything twice.
 */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import type { Delivery, InboundMessage } from './shapes.ts'
import { Unusable } from './world.ts'

const REMEMBERED = 10_000
const MOST_WAITING = 20_000

const SCHEMA = `
CREATE TABLE IF NOT EXISTS deliveries (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  message_id TEXT,
  acked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS parts (
  delivery TEXT NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (delivery, part)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS inbound (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id TEXT NOT NULL UNIQUE,
  conversation TEXT NOT NULL,
  past INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS inbound_by_conversation ON inbound (conversation, number);
CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

/** How far a delivery got. */
export interface Progress {
  /** It was begun before: parts of it may be in the chat without our knowing. */
  readonly isAgain: boolean
  /** Of the whole, once it is in the chat. */
  readonly messageId: string | undefined
  /** Parts that are in the chat for certain, with the id of each. */
  readonly parts: ReadonlyMap<number, string>
}

export interface Waiting {
  readonly number: number
  readonly past: boolean
  readonly message: InboundMessage
}

export type Taken = 'taken' | 'known' | 'replayed' | 'full'

export class Journal implements Disposable {
  readonly #db: BetterSqlite3.Database

  /** Throws `Unusable` while another process has it. */
  constructor(root: string) {
    this.#db = new BetterSqlite3(join(root, 'journal.db'), { timeout: 0 })
    try {
      this.#db.pragma('locking_mode = EXCLUSIVE')
      this.#db.pragma('journal_mode = WAL')
      this.#db.pragma('synchronous = FULL')
      this.#db.pragma('foreign_keys = ON')
      // The lock is taken by a write, and stays until the process ends, however it ends.
      this.#db.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`)
    } catch (error) {
      this.#db.close()
      if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')
        throw new Unusable(
          `another bridge uses the state root ${root}`,
          'a second one of the same account says everything twice',
        )
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }

  /** Remembers that the delivery is about to be said; tells how far it got before. */
  begin(delivery: Delivery): Progress {
    const before = this.progress(delivery.delivery_id)
    this.#db
      .prepare(
        'INSERT INTO deliveries (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body, acked = 0',
      )
      .run(delivery.delivery_id, JSON.stringify(delivery))
    return before
  }

  progress(id: string): Progress {
    const row = this.#db
      .prepare<[string], { message_id: string | null }>('SELECT message_id FROM deliveries WHERE id = ?')
      .get(id)
    const parts = this.#db
      .prepare<[string], { part: number; message_id: string }>(
        'SELECT part, message_id FROM parts WHERE delivery = ? ORDER BY part',
      )
      .all(id)
    return {
      isAgain: row !== undefined,
      messageId: row?.message_id ?? undefined,
      parts: new Map(parts.map(({ part, message_id }) => [part, message_id])),
    }
  }

  /** This part of it is in the chat. */
  said(id: string, part: number, messageId: string): void {
    this.#db
      .prepare('INSERT OR IGNORE INTO parts (delivery, part, message_id) VALUES (?, ?, ?)')
      .run(id, part, messageId)
  }

  /** All of it is in the chat. */
  done(id: string, messageId: string): void {
    this.#db.prepare('UPDATE deliveries SET message_id = ? WHERE id = ?').run(messageId, id)
  }

  /** The supervisor knows, or does not want to know any more. */
  settled(id: string): void {
    this.#db.transaction(() => {
      this.#db.prepare('UPDATE deliveries SET acked = 1 WHERE id = ?').run(id)
      this.#db
        .prepare('DELETE FROM deliveries WHERE acked = 1 AND number <= (SELECT max(number) FROM deliveries) - ?')
        .run(REMEMBERED)
    })()
  }

  /** Deliveries that were begun and about which the supervisor was not told yet, the oldest first. */
  open(): readonly Delivery[] {
    const rows = this.#db
      .prepare<[], { body: string }>('SELECT body FROM deliveries WHERE acked = 0 ORDER BY number')
      .all()
    return rows.map(({ body }) => parseDelivery(body))
  }

  /**
   * Keeps a message until the supervisor has it. What was once kept is `known`, also long after; another one with the same
   * `proof` is `replayed`.
   */
  keep(message: InboundMessage, past: boolean, proof?: string): Taken {
    const key = seenKey(message)
    return this.#db.transaction((): Taken => {
      if (this.#hasSeen(key)) return 'known'
      if (proof !== undefined && this.#hasSeen(proof)) return 'replayed'
      if (this.waiting() >= MOST_WAITING) return 'full'
      this.#see(key)
      if (proof !== undefined) this.#see(proof)
      this.#db
        .prepare('INSERT INTO inbound (message_id, conversation, past, body) VALUES (?, ?, ?, ?)')
        .run(key, conversationKey(message), past ? 1 : 0, JSON.stringify(message))
      return 'taken'
    })()
  }

  #hasSeen(key: string): boolean {
    return this.#db.prepare('SELECT 1 FROM seen WHERE key = ?').get(key) !== undefined
  }

  #see(key: string): void {
    this.#db.prepare('INSERT INTO seen (key) VALUES (?)').run(key)
    this.#db.prepare('DELETE FROM seen WHERE number <= (SELECT max(number) FROM seen) - ?').run(REMEMBERED)
  }

  /** How many messages the supervisor does not have yet. */
  waiting(): number {
    return this.#db.prepare<[], { n: number }>('SELECT count(*) AS n FROM inbound').get()?.n ?? 0
  }

  /** Conversations with something to post. */
  conversations(): readonly string[] {
    const rows = this.#db
      .prepare<[], { conversation: string }>(
        'SELECT conversation FROM inbound GROUP BY conversation ORDER BY min(number)',
      )
      .all()
    return rows.map(({ conversation }) => conversation)
  }

  /** The next of a conversation: one, or as many of the past as stand together. */
  next(conversation: string, most: number): readonly Waiting[] {
    const rows = this.#db
      .prepare<[string, number], { number: number; past: number; body: string }>(
        'SELECT number, past, body FROM inbound WHERE conversation = ? ORDER BY number LIMIT ?',
      )
      .all(conversation, most)
    const first = rows[0]
    if (first === undefined) return []
    const live = rows.findIndex(({ past }) => past === 0)
    const taken = first.past === 0 ? [first] : rows.slice(0, live === -1 ? rows.length : live)
    return taken.map(({ number, past, body }) => ({ number, past: past === 1, message: parseMessage(body) }))
  }

  /** The supervisor has them, or will never take them. */
  posted(numbers: readonly number[]): void {
    const statement = this.#db.prepare('DELETE FROM inbound WHERE number = ?')
    this.#db.transaction(() => {
      for (const number of numbers) statement.run(number)
    })()
  }

  mark(name: string): string | undefined {
    return this.#db.prepare<[string], { value: string }>('SELECT value FROM marks WHERE name = ?').get(name)?.value
  }

  setMark(name: string, value: string): void {
    this.#db
      .prepare('INSERT INTO marks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
      .run(name, value)
  }
}

const conversationKey = ({
  conversation: { kind, parent_conversation_id: parent = '', conversation_id: id },
}: InboundMessage): string => JSON.stringify([kind, parent, id])

/** Ids of providers are unique in their conversation only. */
const seenKey = (message: InboundMessage): string => `${message.provider_message_id} ${conversationKey(message)}`

// What this file wrote itself is what it reads.
const parseDelivery = (text: string): Delivery => JSON.parse(text)
const parseMessage = (text: string): InboundMessage => JSON.parse(text)
