/**
 * Who is to be told of mail and chat, and when (decision 136): wishes that outlive sessions, each of which has at most one
 * delivery in the queue of whoever reads that mailbox now.
 *
 * G1  At most one delivery waits per mailbox, source and reference; a wish that comes while one is being typed makes one more.
 * G2  A wish goes when its delivery was typed, is superseded or was cancelled by somebody; what failed, or may have been
 *     typed and nobody knows, is told again, later each time.
 * G3  The wish for an agent follows it to its next session, which it wakes or makes if it may, unless a person closed the
 *     one before; that for a session ends with it.
 * G4  Whoever is suspended is not woken; a wish never fails the transaction that it is made in.
 */

import { type Backoff, backoffMs } from '../../../kernel/backoff.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import { Due } from '../../../kernel/due.ts'
import type { Logger } from '../../../kernel/log.ts'
import { Problem } from '../../../kernel/problem.ts'
import { type Mailbox, mailboxOfAgent, mailboxOfSession, parseMailbox } from '../../../messaging/address.ts'
import { DIGEST_SOURCES, type Digests, type DigestWish } from '../../../messaging/digest.ts'
import type { DigestPort } from '../record/ports.ts'
import { oneOf, type SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import type { DeliveryDraft, DeliveryRecord, Ending } from './deliveries.ts'

/** Reminders that wait in one queue; those of other conversations get their place as these are typed. */
const MAX_QUEUED = 100
const TTL_MS = 30 * 86_400_000
const RETRY: Backoff = { firstMs: 5_000, longestMs: 600_000 }
/** Wishes that one look takes up. */
const MAX_LOOKED_AT = 200

export interface DigestQueueDeps {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: SessionStore
  readonly port: DigestPort
  readonly add: (tx: Tx, session: SessionRecord, draft: DeliveryDraft) => DeliveryRecord
  /** Made for a configured agent that has no session and may run; undefined where it may not be made. */
  readonly make: (tx: Tx, identity: string) => SessionRecord | undefined
  readonly takesNudges: (session: SessionRecord) => boolean
  /** What waits for this session has changed. */
  readonly poke: (sessionId: string) => void
  readonly log: Logger
  readonly failed: (error: unknown) => void
}

interface Wished {
  readonly mailbox: Mailbox
  readonly source: DigestWish['source']
  readonly reference: string
  readonly wakes: boolean
  readonly again: boolean
  readonly delivery: string | undefined
  readonly failures: number
  readonly retryAt: number | undefined
}

const KEY = 'mailbox = ? AND source = ? AND reference = ?'
const keyOf = ({ mailbox, source, reference }: Wished) => [mailbox, source, reference] as const

export class DigestQueue implements Digests {
  readonly #deps: DigestQueueDeps
  readonly #retries: Due
  #closed = false

  constructor(deps: DigestQueueDeps) {
    this.#deps = deps
    const { db, clock, log } = deps
    this.#retries = new Due({
      name: 'reminders of sessions',
      db,
      clock,
      log,
      next: () => this.#nextRetry(),
      work: (now) => db.write((tx) => this.#retry(tx, now)),
      // A reminder waits no longer than it can: where the clock was ahead it is due sooner.
      adjust: () =>
        db.write((tx) => {
          const latest = clock.now() + RETRY.longestMs
          tx.run('UPDATE session_digests SET retry_at = ? WHERE retry_at > ?', latest, latest)
        }),
    })
  }

  start(): Promise<void> {
    return this.#retries.start()
  }

  close(): Promise<void> {
    this.#closed = true
    return this.#retries.stop()
  }

  wish(tx: Tx, { mailbox }: { readonly mailbox: Mailbox }, { source, reference, wakes }: DigestWish): void {
    if (mailbox === 'human') return
    tx.run(
      `INSERT INTO session_digests (mailbox, source, reference, wakes) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET wakes = max(wakes, excluded.wakes)`,
      mailbox,
      source,
      reference,
      wakes ? 1 : 0,
    )
    const row = tx.get(`SELECT * FROM session_digests WHERE ${KEY}`, mailbox, source, reference)
    if (row !== undefined) this.#place(tx, parse(row))
  }

  /** The text of what is about to be typed, and that it is; undefined: nothing is left to be told. */
  begin(tx: Tx, { id }: DeliveryRecord, session: SessionRecord): string | undefined {
    const wished = this.#ofDelivery(tx, id)
    if (wished === undefined) return undefined
    const reader = {
      mailbox: wished.mailbox,
      sessionId: session.id,
      conversation: `${session.id}.${session.continuation_epoch}`,
      delivery: id,
    }
    return this.#deps.port.source(wished.source)?.begin(tx, reader, wished.reference)
  }

  /** Nothing of it was typed: it waits again, and its text is made anew. */
  requeued(tx: Tx, { id, source }: DeliveryRecord): void {
    this.#tellSource(tx, source, id, false)
  }

  /** G2; called in the write that ends the delivery. */
  ended(tx: Tx, before: DeliveryRecord, { state }: Ending, session: SessionRecord): void {
    const delivered = state === 'delivered'
    if (before.state === 'delivering') this.#tellSource(tx, before.source, before.id, delivered)
    const wished = this.#ofDelivery(tx, before.id)
    if (wished === undefined) return
    const over = delivered ? !wished.again : state === 'cancelled'
    if (over) tx.run(`DELETE FROM session_digests WHERE ${KEY}`, ...keyOf(wished))
    else if (delivered || isDismissed(session)) this.#release(tx, wished, 0, undefined)
    else {
      const failures = wished.failures + 1
      this.#release(tx, wished, failures, this.#deps.clock.now() + backoffMs(RETRY, failures))
      tx.afterCommit(() => this.#retries.changed())
    }
    // A place is free, for this one or another that waits for one.
    if (session.state !== 'closed') this.#fill(tx, wished.mailbox, 1)
  }

  /** G3; called before the end of all that waits for it. A person who closes a session does not want it back for a reminder. */
  sessionClosed(tx: Tx, session: SessionRecord): void {
    const { id, agent } = session
    tx.run('DELETE FROM session_digests WHERE mailbox = ?', mailboxOfSession(id))
    if (!isDismissed(session)) return
    tx.run('UPDATE session_digests SET wakes = 0, retry_at = NULL WHERE mailbox = ?', mailboxOfAgent(agent))
  }

  /** It starts: it is told of what has waited for a session of its agent, and in a new conversation of all that is unread. */
  sessionStarts(tx: Tx, session: SessionRecord, { isNew }: { readonly isNew: boolean }): void {
    const { port, takesNudges } = this.#deps
    if (!takesNudges(session)) return
    const mailbox = port.mailboxOf(session)
    for (const source of isNew ? DIGEST_SOURCES : [])
      for (const reference of port.source(source)?.unread(tx, mailbox) ?? [])
        this.wish(tx, { mailbox }, { source, reference, wakes: false })
    this.#fill(tx, mailbox, MAX_QUEUED)
  }

  /** What may have its place now: a hold was lifted. Never rejects. */
  async look(): Promise<void> {
    if (this.#closed || this.#waking(this.#deps.db).length === 0) return
    try {
      await this.#deps.db.write((tx) => {
        for (const wished of this.#waking(tx)) this.#placeAgain(tx, wished)
      })
    } catch (error) {
      this.#deps.failed(error)
    }
  }

  /** Wishes without a delivery that may make a session. */
  #waking(store: Pick<Tx, 'all'>): readonly Wished[] {
    return store
      .all(
        `SELECT * FROM session_digests WHERE delivery_id IS NULL AND retry_at IS NULL AND wakes = 1 LIMIT ${MAX_LOOKED_AT}`,
      )
      .map(parse)
  }

  #nextRetry(): number | undefined {
    const row = this.#deps.db.get('SELECT min(retry_at) AS at FROM session_digests WHERE delivery_id IS NULL')
    return typeof row?.at === 'number' ? row.at : undefined
  }

  /** Their pause is over; what has no place yet waits for one. */
  #retry(tx: Tx, now: number): void {
    const due = tx
      .all(
        `SELECT * FROM session_digests WHERE delivery_id IS NULL AND retry_at <= ? ORDER BY retry_at LIMIT ${MAX_LOOKED_AT}`,
        now,
      )
      .map(parse)
    for (const wished of due) {
      tx.run(`UPDATE session_digests SET retry_at = NULL WHERE ${KEY}`, ...keyOf(wished))
      this.#placeAgain(tx, wished)
    }
  }

  #placeAgain(tx: Tx, wished: Wished): void {
    this.#place(tx, { ...wished, again: false, delivery: undefined, retryAt: undefined })
  }

  /** G1 */
  #place(tx: Tx, wished: Wished): void {
    if (wished.delivery !== undefined) {
      this.#joinQueued(tx, wished, wished.delivery)
      return
    }
    if (wished.retryAt !== undefined && wished.retryAt > this.#deps.clock.now()) return
    const session = this.#readerOf(tx, wished)
    if (session === undefined) return
    if (!this.#deps.takesNudges(session)) {
      tx.run(`DELETE FROM session_digests WHERE ${KEY}`, ...keyOf(wished))
      return
    }
    if (this.#queuedIn(tx, session.id) >= MAX_QUEUED) return
    const { source, wakes } = wished
    const draft = { source, intent: 'default', text: '', ttlMs: TTL_MS, wakes } as const
    const { id } = this.#deps.add(tx, session, draft)
    tx.run(`UPDATE session_digests SET delivery_id = ?, again = 0, retry_at = NULL WHERE ${KEY}`, id, ...keyOf(wished))
  }

  #joinQueued(tx: Tx, wished: Wished, delivery: string): void {
    const row = tx.get('SELECT session_id, state, wakes FROM session_deliveries WHERE id = ?', delivery)
    if (row?.state === 'delivering') tx.run(`UPDATE session_digests SET again = 1 WHERE ${KEY}`, ...keyOf(wished))
    if (!wished.wakes || row === undefined || row.wakes === 1) return
    tx.run('UPDATE session_deliveries SET wakes = 1 WHERE id = ?', delivery)
    tx.afterCommit(() => this.#deps.poke(String(row.session_id)))
  }

  /** Who reads that mailbox now; made where it is configured and the wish is worth it. */
  #readerOf(tx: Tx, wished: Wished): SessionRecord | undefined {
    const { mailbox, wakes } = wished
    const { sessions, make } = this.#deps
    if (mailbox === 'human') return undefined
    const [kind, name] = split(mailbox)
    const row =
      kind === 'session'
        ? tx.get("SELECT id FROM sessions WHERE id = ? AND state <> 'closed'", name)
        : tx.get("SELECT id FROM sessions WHERE agent = ? AND state <> 'closed' ORDER BY created_at, id LIMIT 1", name)
    if (row !== undefined) return sessions.need(tx, String(row.id))
    if (kind === 'session') tx.run(`DELETE FROM session_digests WHERE ${KEY}`, ...keyOf(wished))
    if (kind === 'session' || !wakes) return undefined
    try {
      return make(tx, name)
    } catch (error) {
      // G4: its name may have been taken by another session.
      if (error instanceof Problem) return undefined
      throw error
    }
  }

  #queuedIn(tx: Tx, sessionId: string): number {
    const row = tx.get(
      `SELECT count(*) AS n FROM session_deliveries
       WHERE session_id = ? AND state IN ('queued', 'delivering') AND source IN ('mail', 'chat')`,
      sessionId,
    )
    return Number(row?.n ?? 0)
  }

  /** There may be room for one that had none, or a session for those that had none. */
  #fill(tx: Tx, mailbox: Mailbox, places: number): void {
    const rows = tx.all(
      'SELECT * FROM session_digests WHERE mailbox = ? AND delivery_id IS NULL AND retry_at IS NULL LIMIT ?',
      mailbox,
      places,
    )
    for (const row of rows) this.#place(tx, parse(row))
  }

  #release(tx: Tx, wished: Wished, failures: number, retryAt: number | undefined): void {
    tx.run(
      `UPDATE session_digests SET delivery_id = NULL, again = 0, failures = ?, retry_at = ? WHERE ${KEY}`,
      failures,
      retryAt ?? null,
      ...keyOf(wished),
    )
  }

  #tellSource(tx: Tx, source: DeliveryRecord['source'], delivery: string, delivered: boolean): void {
    this.#deps.port.source(oneOf(DIGEST_SOURCES, source))?.ended(tx, delivery, delivered)
  }

  #ofDelivery(tx: Tx, id: string): Wished | undefined {
    const row = tx.get('SELECT * FROM session_digests WHERE delivery_id = ?', id)
    return row === undefined ? undefined : parse(row)
  }
}

/** Somebody closed it; it did not end because nothing needed it, or could not start. */
const isDismissed = ({ state, reason }: SessionRecord): boolean => state === 'closed' && reason === 'requested'

function split(mailbox: Exclude<Mailbox, 'human'>): readonly ['agent' | 'session', string] {
  const at = mailbox.indexOf(':')
  return [mailbox.startsWith('agent:') ? 'agent' : 'session', mailbox.slice(at + 1)]
}

const parse = (row: Row): Wished => ({
  mailbox: parseMailbox(String(row.mailbox)),
  source: oneOf(DIGEST_SOURCES, row.source),
  reference: String(row.reference),
  wakes: row.wakes === 1,
  again: row.again === 1,
  delivery: row.delivery_id === null ? undefined : String(row.delivery_id),
  failures: Number(row.failures),
  retryAt: row.retry_at === null ? undefined : Number(row.retry_at),
})
