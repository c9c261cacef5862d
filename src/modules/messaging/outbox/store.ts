/**
 * Deliveries in the store, and how they move.
 *
 * O1  Of a conversation one delivery is `ready` or `flying`, the oldest that is not over; the others are `behind` it.
 * O2  An attempt is counted before anything is sent; whoever reports of another one than the last changes nothing.
 * O3  What is delivered stays delivered, whoever said it and when.
 */
import {
  type FailureKind,
  MAX_LEASE_SECONDS,
  MAX_RETRY_AFTER_MS,
  type PublishReceipt,
} from '../../../contract/messaging/deliveries.ts'
import type { SqlValue, Tx } from '../../../kernel/database.ts'
import type { AdapterKey } from '../adapters/adapter.ts'
import type { Reader } from '../base/rows.ts'
import { type Delivery, deliveryOf, type OutboxDraft } from './delivery.ts'
import type { Next } from './rules.ts'

/** On its way: at its turn, or behind those of its conversation that came before. */
export function insert(tx: Tx, draft: OutboxDraft, now: number): void {
  const { transcript_id } = draft
  tx.run(
    `INSERT INTO outbox (id, provider, account_id, transcript_id, sequence, conversation_id, session_id, root, since, next_at,
       created_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CASE WHEN ${HAS_HEAD} THEN 'behind' ELSE 'ready' END)`,
    ...valuesOf(draft, now),
    transcript_id,
  )
}

/** There with the commit: nobody has to take it. */
export function insertDelivered(tx: Tx, draft: OutboxDraft, now: number): Delivery {
  const { conversation, id, transcript_id, sequence, session_id, root } = draft
  const { provider, account_id, conversation_id } = conversation
  const row = tx.get(
    `INSERT INTO outbox (id, provider, account_id, transcript_id, sequence, conversation_id, session_id, root, since, next_at,
       created_at, state, receipt_json, settled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'delivered', '{}', ?)
     RETURNING seq`,
    ...valuesOf(draft, now),
    now,
  )
  return {
    ...{ id, provider, account_id, transcript_id, sequence, conversation_id, session_id, root },
    ...{ seq: Number(row?.seq), state: 'delivered', attempts: 0, tries: 0, answered: 0, since: now, next_at: now },
    ...{ lease_until: undefined, failure_kind: undefined, last_error: undefined, receipt: {} },
    ...{ created_at: now, settled_at: now },
  }
}

/** Whether one of its conversation is at its turn (O1). */
const HAS_HEAD = "EXISTS (SELECT 1 FROM outbox WHERE transcript_id = ? AND state IN ('ready', 'flying'))"

function valuesOf({ conversation, ...draft }: OutboxDraft, now: number): readonly SqlValue[] {
  const { provider, account_id, conversation_id } = conversation
  const { id, transcript_id, sequence, session_id = null, root } = draft
  return [id, provider, account_id, transcript_id, sequence, conversation_id, session_id, root, now, now, now]
}

export function find(reader: Reader, id: string): Delivery | undefined {
  const row = reader.get('SELECT * FROM outbox WHERE id = ?', id)
  return row === undefined ? undefined : deliveryOf(row)
}

function need(reader: Reader, id: string): Delivery {
  const found = find(reader, id)
  if (found === undefined) throw new Error(`no delivery ${id}`)
  return found
}

function headOf(tx: Tx, transcript: string): Delivery | undefined {
  const row = tx.get("SELECT * FROM outbox WHERE transcript_id = ? AND state IN ('ready', 'flying')", transcript)
  return row === undefined ? undefined : deliveryOf(row)
}

/** Begins an attempt of what is due, the longest due first. */
export function take(
  tx: Tx,
  key: AdapterKey,
  limit: number,
  now: number,
  leaseUntil: number | undefined,
): readonly Delivery[] {
  const due = tx.all(
    `SELECT seq FROM outbox WHERE provider = ? AND account_id = ? AND state = 'ready' AND next_at <= ?
     ORDER BY next_at, seq LIMIT ?`,
    ...[key.provider, key.account_id, now, limit],
  )
  return due.flatMap(({ seq }) => {
    const row = tx.get(
      "UPDATE outbox SET state = 'flying', attempts = attempts + 1, lease_until = ? WHERE seq = ? RETURNING *",
      leaseUntil ?? null,
      Number(seq),
    )
    return row === undefined ? [] : [deliveryOf(row)]
  })
}

/** When the next one is due; undefined: none waits. */
export function dueAt(reader: Reader, { provider, account_id }: AdapterKey): number | undefined {
  const row = reader.get(
    "SELECT min(next_at) AS at FROM outbox WHERE provider = ? AND account_id = ? AND state = 'ready'",
    provider,
    account_id,
  )
  return row?.at === null || row?.at === undefined ? undefined : Number(row.at)
}

export function setDelivered(tx: Tx, before: Delivery, receipt: PublishReceipt, now: number): Delivery {
  tx.run(
    `UPDATE outbox SET state = 'delivered', lease_until = NULL, failure_kind = NULL, last_error = NULL, receipt_json = ?,
       settled_at = ? WHERE seq = ?`,
    ...[JSON.stringify(receipt), now, before.seq],
  )
  promote(tx, before.transcript_id)
  const over = { lease_until: undefined, failure_kind: undefined, last_error: undefined }
  return { ...before, ...over, state: 'delivered', receipt, settled_at: now }
}

export interface Why {
  readonly kind: FailureKind
  readonly error: string
}

/** What follows from a failed attempt. */
export function setFailed(tx: Tx, { seq, id, transcript_id }: Delivery, next: Next, why: Why, now: number): Delivery {
  const dead = next.state === 'dead'
  tx.run(
    `UPDATE outbox SET state = ?, lease_until = NULL, answered = ?, failure_kind = ?, last_error = ?, settled_at = ?,
       tries = ?, next_at = ? WHERE seq = ?`,
    ...[
      next.state,
      next.answered,
      why.kind,
      why.error,
      dead ? now : null,
      dead ? 0 : next.tries,
      dead ? now : next.at,
      seq,
    ],
  )
  if (dead) promote(tx, transcript_id)
  return need(tx, id)
}

/** Pending again, at its place: before those of its conversation that came later, behind one that is under way. */
export function setPending(tx: Tx, delivery: Delivery, now: number): Delivery {
  const { seq, id, transcript_id } = delivery
  tx.run(
    `UPDATE outbox SET state = 'behind', tries = 0, answered = 0, since = ?, next_at = ?, settled_at = NULL WHERE seq = ?`,
    ...[now, now, seq],
  )
  const head = headOf(tx, transcript_id)
  if (head?.state === 'ready' && head.seq > seq) tx.run("UPDATE outbox SET state = 'behind' WHERE seq = ?", head.seq)
  promote(tx, transcript_id)
  return need(tx, id)
}

/** Due at once. */
export function setDue(tx: Tx, { seq, id }: Delivery, now: number): Delivery {
  tx.run('UPDATE outbox SET next_at = ? WHERE seq = ?', now, seq)
  return need(tx, id)
}

/** Attempts that died with the process: they are made again, under the same id. */
export const releaseUnleased = (tx: Tx, now: number): number =>
  tx.run("UPDATE outbox SET state = 'ready', next_at = ? WHERE state = 'flying' AND lease_until IS NULL", now)

export const remove = (tx: Tx, { seq }: Delivery): number => tx.run('DELETE FROM outbox WHERE seq = ?', seq)
export const removeOf = (tx: Tx, transcript: string, limit: number): number =>
  tx.run('DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE transcript_id = ? LIMIT ?)', transcript, limit)

/** Those that are not over, oldest first; the ones under way are `flying`. */
export const pendingOf = (tx: Tx, { provider, account_id }: AdapterKey, limit: number): readonly Delivery[] =>
  tx
    .all(
      `SELECT * FROM outbox WHERE provider = ? AND account_id = ? AND state IN ('behind', 'ready', 'flying')
       ORDER BY seq LIMIT ?`,
      provider,
      account_id,
      limit,
    )
    .map(deliveryOf)

/** The newest of them: what is behind another never becomes due while they go. */
export const newestPendingOf = (tx: Tx, { provider, account_id }: AdapterKey, limit: number): readonly Delivery[] =>
  tx
    .all(
      `SELECT * FROM outbox WHERE provider = ? AND account_id = ? AND state IN ('behind', 'ready', 'flying')
       ORDER BY seq DESC LIMIT ?`,
      provider,
      account_id,
      limit,
    )
    .map(deliveryOf)

/** The same of a conversation, the newest first; however many were delivered there. */
export const newestPendingIn = (tx: Tx, transcript: string, limit: number): readonly Delivery[] =>
  tx
    .all(
      `SELECT * FROM outbox WHERE transcript_id = ? AND state IN ('ready', 'flying')
       UNION ALL SELECT * FROM outbox WHERE transcript_id = ? AND state = 'behind' ORDER BY seq DESC LIMIT ?`,
      transcript,
      transcript,
      limit,
    )
    .map(deliveryOf)

export const countPendingIn = (tx: Tx, transcript: string): number =>
  Number(
    tx.get(
      `SELECT (SELECT count(*) FROM outbox WHERE transcript_id = ? AND state IN ('ready', 'flying'))
        + (SELECT count(*) FROM outbox WHERE transcript_id = ? AND state = 'behind') AS n`,
      transcript,
      transcript,
    )?.n,
  )

export function countsOf(
  reader: Reader,
  { provider, account_id }: AdapterKey,
): { readonly pending: number; readonly dead: number } {
  const row = reader.get(
    `SELECT count(*) FILTER (WHERE state <> 'dead') AS pending, count(*) FILTER (WHERE state = 'dead') AS dead FROM outbox
     WHERE provider = ? AND account_id = ? AND state IN ('behind', 'ready', 'flying', 'dead')`,
    provider,
    account_id,
  )
  return { pending: Number(row?.pending), dead: Number(row?.dead) }
}

export const pendingCount = (reader: Reader, { provider, account_id }: AdapterKey): number =>
  Number(
    reader.get(
      "SELECT count(*) AS n FROM outbox WHERE provider = ? AND account_id = ? AND state IN ('behind', 'ready', 'flying')",
      provider,
      account_id,
    )?.n,
  )

/** Claims whose lease has ended. */
export const expiredLeases = (tx: Tx, now: number, limit: number): readonly Delivery[] =>
  tx.all('SELECT * FROM outbox WHERE lease_until <= ? ORDER BY lease_until LIMIT ?', now, limit).map(deliveryOf)

/** Those that wait since that time, or longer. */
export const waitingSince = (tx: Tx, time: number, limit: number): readonly Delivery[] =>
  tx
    .all(
      "SELECT * FROM outbox WHERE state IN ('behind', 'ready') AND since <= ? ORDER BY since, seq LIMIT ?",
      time,
      limit,
    )
    .map(deliveryOf)

/** The next end of a lease, and since when the oldest waits. */
export function nextMoments(reader: Reader): {
  readonly lease: number | undefined
  readonly oldest: number | undefined
} {
  const at = (row: { readonly [column: string]: unknown } | undefined) =>
    row?.at === null || row?.at === undefined ? undefined : Number(row.at)
  return {
    lease: at(reader.get('SELECT min(lease_until) AS at FROM outbox WHERE lease_until IS NOT NULL')),
    oldest: at(reader.get("SELECT min(since) AS at FROM outbox WHERE state IN ('behind', 'ready')")),
  }
}

/** Of a pause the leases do not count; nothing waits longer than it may because the clock was ahead when it was set. */
export function adjustTimes(tx: Tx, now: number, pausedMs: number): void {
  tx.run(
    `UPDATE outbox SET since = min(since, ?), next_at = min(next_at, ?), lease_until = min(lease_until + ?, ?)
       WHERE state IN ('behind', 'ready', 'flying') AND (lease_until IS NOT NULL OR since > ? OR next_at > ?)`,
    now,
    now + MAX_RETRY_AFTER_MS,
    pausedMs,
    now + MAX_LEASE_SECONDS * 1_000,
    now,
    now + MAX_RETRY_AFTER_MS,
  )
}

/** Makes the oldest that waits the one whose turn it is (O1). */
function promote(tx: Tx, transcript: string): void {
  tx.run(
    `UPDATE outbox SET state = 'ready' WHERE seq = (
       SELECT seq FROM outbox WHERE transcript_id = ? AND state = 'behind' ORDER BY seq LIMIT 1) AND NOT ${HAS_HEAD}`,
    transcript,
    transcript,
  )
}

export interface Wanted {
  readonly states: readonly string[]
  readonly transcript: string | undefined
  readonly behind: number
  readonly limit: number
}

/** Of an adapter, oldest first. */
export function list(reader: Reader, key: AdapterKey, wanted: Wanted): readonly Delivery[] {
  const { sql, values } = whereOf(key, wanted)
  return reader
    .all(`SELECT * FROM outbox ${sql} AND seq > ? ORDER BY seq LIMIT ?`, ...values, wanted.behind, wanted.limit)
    .map(deliveryOf)
}

export function total(reader: Reader, key: AdapterKey, wanted: Pick<Wanted, 'states' | 'transcript'>): number {
  const { sql, values } = whereOf(key, wanted)
  return Number(reader.get(`SELECT count(*) AS n FROM outbox ${sql}`, ...values)?.n)
}

function whereOf(
  { provider, account_id }: AdapterKey,
  { states, transcript }: Pick<Wanted, 'states' | 'transcript'>,
): { readonly sql: string; readonly values: readonly SqlValue[] } {
  const inStates = `state IN (${states.map(() => '?').join(', ')})`
  const of = transcript === undefined ? '' : 'AND transcript_id = ?'
  return {
    sql: `WHERE provider = ? AND account_id = ? AND ${inStates} ${of}`,
    values: [provider, account_id, ...states, ...(transcript === undefined ? [] : [transcript])],
  }
}
