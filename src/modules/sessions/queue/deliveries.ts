/**
 * What is said to a session: one durable queue per session (decisions 57–59).
 *
 * D1  A delivery is `delivering` on disk before a byte of it is typed, and is typed at most once: after a crash the
 *     process that it went to says whether it arrived; where nobody knows it is `failed` (`delivery_uncertain`).
 * D2  Deliveries of a session are typed in the order of `seq`, one at a time.
 * D3  The end of a request and the state of its delivery are one transaction; a request ends once.
 * D4  At most 1,000 wait; what nobody could take within its time is `expired`.
 */
import type { ListOrder } from '../../../contract/base/paging.ts'
import {
  DELIVERY_SOURCES,
  DELIVERY_STATES,
  type DeliveryInfo,
  MAX_MESSAGE_BYTES,
  SUBMIT_INTENTS,
  type SubmitIntent,
} from '../../../contract/session-model.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import type { RequestLedger, TerminalEvent } from '../../../kernel/requests.ts'
import type { DeliveryOutcome } from '../../../runtimes/process/runtime.ts'
import { oneOf, type SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'

export type DeliverySource = DeliveryInfo['source']
export type DeliveryState = DeliveryInfo['state']

const MAX_WAITING = 1_000
/** Ended deliveries that are kept per session; older ones are forgotten as new ones end. */
const MAX_KEPT = 2_000
const MAX_ATTEMPTS = 3

/** Everything about a delivery but its text, which is read when it is typed. */
export interface DeliveryRecord {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly source: DeliverySource
  readonly intent: SubmitIntent
  readonly state: DeliveryState
  readonly request_id: string | undefined
  readonly request_open: boolean
  readonly with_launch: boolean
  readonly eager: boolean
  readonly wakes: boolean
  readonly attempts: number
  readonly generation: number | undefined
  readonly end_offset: number | undefined
  readonly error_code: string | undefined
  readonly error_message: string | undefined
  readonly created_at: number
  readonly updated_at: number
  readonly finished_at: number | undefined
  readonly expires_at: number
}

export interface DeliveryDraft {
  readonly source: DeliverySource
  readonly intent: SubmitIntent
  readonly text: string
  readonly requestId?: string
  readonly ttlMs: number
  /** May become a part of the command line of the next start. */
  readonly withLaunch?: boolean
  /** Typed at once, also into a turn. */
  readonly eager?: boolean
  /** False: a sleeping session sleeps on. */
  readonly wakes?: boolean
}

/** How a delivery ends. */
export interface Ending {
  readonly state: Extract<DeliveryState, 'delivered' | 'failed' | 'cancelled' | 'expired'>
  readonly code?: string
  readonly message?: string
  readonly endOffset?: number
  /** It began a turn whose end is still to be told. */
  readonly turnStartedAt?: number
}

/** A turn whose end is still to be told. */
export interface OpenTurn {
  /** The delivery that began it. */
  readonly id: string
  readonly session_id: string
  readonly source: DeliverySource
  readonly started_at: number
}

const COLUMNS = `id, session_id, seq, source, intent, state, request_id, request_open, with_launch, eager, wakes, attempts, generation,
  end_offset, error_code, error_message, created_at, updated_at, finished_at, expires_at`

/** What becomes of a delivery with this outcome: its end, or undefined: it waits for another try (nothing was typed). */
export function endingOf(
  outcome: DeliveryOutcome,
  attempts: number,
  endOffset: number | undefined,
): Ending | undefined {
  if (outcome.state === 'delivered') return { state: 'delivered', ...(endOffset === undefined ? {} : { endOffset }) }
  if (outcome.state === 'uncertain') return { state: 'failed', code: 'delivery_uncertain', message: outcome.message }
  const again = (outcome.code === 'closed' || outcome.code === 'timeout') && attempts < MAX_ATTEMPTS
  return again ? undefined : { state: 'failed', code: outcome.code, message: outcome.message }
}

/** The outcome of a delivery that was under way when nobody was there to hear of it (D1). */
export function outcomeAfterCrash(delivered: 'yes' | 'no' | 'unknown'): DeliveryOutcome {
  if (delivered === 'yes') return { state: 'delivered' }
  if (delivered === 'no') return { state: 'failed', code: 'closed', message: 'it was not typed' }
  return { state: 'uncertain', message: 'whether it was typed could not be found out; it is not typed again' }
}

/** Only text and line breaks: `ESC[201~` would end a paste and type keys, byte 3 would be an interrupt (decision 57). */
export function plainText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  return text.replaceAll('\r\n', '\n').replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}

/** A message within the limit, in bytes as they are stored; or 422. */
export function checkMessage(text: string, location: string): string {
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES) throw invalidField(location, 'must be at most 1 MiB in UTF-8')
  return text
}

export interface DeliveriesDeps {
  readonly db: Database
  readonly log: EventLog
  readonly requests: RequestLedger
  readonly clock: Clock
  readonly sessions: SessionStore
  readonly random: (bytes: number) => string
  /** The end of a request that a delivery has brought about is on disk. */
  readonly requestEnded: (requestId: string) => void
}

export class Deliveries {
  readonly #deps: DeliveriesDeps

  constructor(deps: DeliveriesDeps) {
    this.#deps = deps
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  /** What waits, in order. */
  waiting(sessionId: string): readonly DeliveryRecord[] {
    return this.#deps.db
      .all(
        `SELECT ${COLUMNS} FROM session_deliveries WHERE session_id = ? AND state IN ('queued', 'delivering') ORDER BY seq`,
        sessionId,
      )
      .map(parseDelivery)
  }

  text(id: string): string {
    return String(this.#deps.db.get('SELECT text FROM session_deliveries WHERE id = ?', id)?.text ?? '')
  }

  info(sessionId: string, id: string): DeliveryInfo | undefined {
    const row = this.#deps.db.get('SELECT * FROM session_deliveries WHERE id = ? AND session_id = ?', id, sessionId)
    return row === undefined ? undefined : toInfo(row)
  }

  /** What was typed into one run of a session: numbers above `after`, where its output was in `[from, to]`; in order. */
  typed(
    sessionId: string,
    generation: number,
    { after, from, to }: { readonly after: number; readonly from: number; readonly to: number },
  ) {
    return this.#deps.db
      .all(
        `SELECT seq, id, text, end_offset, finished_at FROM session_deliveries
         WHERE session_id = ? AND seq > ? AND generation = ? AND state = 'delivered' AND end_offset BETWEEN ? AND ?
         ORDER BY seq`,
        sessionId,
        after,
        generation,
        from,
        to,
      )
      .map((row) => ({
        seq: Number(row.seq),
        id: String(row.id),
        text: String(row.text),
        end_offset: Number(row.end_offset),
        at: Number(row.finished_at),
      }))
  }

  /** The number of the last one that was typed into the run before that offset of its output; 0: none was. */
  lastTyped(sessionId: string, generation: number, offset: number): number {
    const row = this.#deps.db.get(
      `SELECT seq FROM session_deliveries
       WHERE session_id = ? AND generation = ? AND state = 'delivered' AND end_offset < ? ORDER BY seq DESC LIMIT 1`,
      sessionId,
      generation,
      offset,
    )
    return Number(row?.seq ?? 0)
  }

  /** Since when one is being typed; undefined: none is. */
  typingSince(sessionId: string): number | undefined {
    const row = this.#deps.db.get(
      "SELECT updated_at FROM session_deliveries WHERE session_id = ? AND state = 'delivering' ORDER BY seq",
      sessionId,
    )
    return row === undefined ? undefined : Number(row.updated_at)
  }

  /** Turns whose end is still to be told, in order. */
  openTurns(sessionId: string): readonly OpenTurn[] {
    return this.#deps.db
      .all(
        `SELECT id, source, turn_started_at FROM session_deliveries
         WHERE session_id = ? AND turn_started_at IS NOT NULL ORDER BY seq`,
        sessionId,
      )
      .map((row) => ({
        id: String(row.id),
        session_id: sessionId,
        source: oneOf(DELIVERY_SOURCES, row.source),
        started_at: Number(row.turn_started_at),
      }))
  }

  /** Newest first unless asked otherwise, strictly after `after` in that order. */
  page(
    sessionId: string,
    state: DeliveryState | undefined,
    after: number | undefined,
    limit: number,
    order: ListOrder = 'desc',
  ): readonly DeliveryInfo[] {
    const [beyond, start] = order === 'asc' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER]
    return this.#deps.db
      .all(
        `SELECT * FROM session_deliveries WHERE session_id = ? AND seq ${beyond} ? AND (? IS NULL OR state = ?)
         ORDER BY seq ${order} LIMIT ?`,
        sessionId,
        after ?? start,
        state ?? null,
        state ?? null,
        limit,
      )
      .map(toInfo)
  }

  count(sessionId: string, state: DeliveryState | undefined): number {
    const row = this.#deps.db.get(
      'SELECT count(*) AS n FROM session_deliveries WHERE session_id = ? AND (? IS NULL OR state = ?)',
      sessionId,
      state ?? null,
      state ?? null,
    )
    return Number(row?.n ?? 0)
  }

  /** The delivery that a request stands for. */
  ofRequest(requestId: string): DeliveryRecord | undefined {
    const row = this.#deps.db.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE request_id = ?`, requestId)
    return row === undefined ? undefined : parseDelivery(row)
  }

  // --- Changing ----------------------------------------------------------------------------------------------------

  /** Puts a message at the end of the queue; 429 where it is full (D4). */
  add(tx: Tx, session: SessionRecord, draft: DeliveryDraft, actor: string): DeliveryRecord {
    if (session.queued >= MAX_WAITING)
      throw problem('queue-full', `${MAX_WAITING} messages wait for session ${session.id}`, { retryAfterSec: 5 })
    const now = this.#deps.clock.now()
    const record: DeliveryRecord = {
      id: `dlv-${this.#deps.random(8)}`,
      session_id: session.id,
      seq: session.deliveries + 1,
      source: draft.source,
      intent: draft.intent,
      state: 'queued',
      request_id: draft.requestId,
      request_open: draft.requestId !== undefined,
      with_launch: draft.withLaunch === true,
      eager: draft.eager === true,
      wakes: draft.wakes !== false,
      attempts: 0,
      generation: undefined,
      end_offset: undefined,
      error_code: undefined,
      error_message: undefined,
      created_at: now,
      updated_at: now,
      finished_at: undefined,
      expires_at: now + draft.ttlMs,
    }
    tx.run(
      `INSERT INTO session_deliveries (id, session_id, seq, source, intent, state, text, request_id, request_open,
       with_launch, eager, wakes, created_at, updated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      record.id,
      record.session_id,
      record.seq,
      record.source,
      record.intent,
      record.state,
      draft.text,
      record.request_id ?? null,
      record.request_open ? 1 : 0,
      record.with_launch ? 1 : 0,
      record.eager ? 1 : 0,
      record.wakes ? 1 : 0,
      now,
      now,
      record.expires_at,
    )
    this.#deps.sessions.change(tx, session.id, { deliveries: record.seq, queued: session.queued + 1 }, { actor })
    this.#tell(tx, record, 'queued', actor)
    return record
  }

  /** Puts a message before all that wait: the first prompt of a new conversation. */
  addFirst(tx: Tx, session: SessionRecord, draft: DeliveryDraft): DeliveryRecord {
    const added = this.add(tx, session, draft, 'supervisor')
    const waiting = tx.all(
      "SELECT id FROM session_deliveries WHERE session_id = ? AND state = 'queued' AND seq < ? ORDER BY seq",
      session.id,
      added.seq,
    )
    // Everything in front of it moves behind it; numbers that were used are never used again.
    let seq = added.seq
    for (const { id } of waiting) tx.run('UPDATE session_deliveries SET seq = ? WHERE id = ?', ++seq, String(id))
    if (waiting.length > 0) this.#deps.sessions.change(tx, session.id, { deliveries: seq }, { actor: 'supervisor' })
    return added
  }

  /** A message of the creation becomes a part of the first prompt. */
  makePrompt(tx: Tx, id: string, text: string): void {
    tx.run(
      "UPDATE session_deliveries SET source = 'prompt', with_launch = 0, text = ?, updated_at = ? WHERE id = ? AND state = 'queued'",
      text,
      this.#deps.clock.now(),
      id,
    )
  }

  /** D1: on disk before a byte is typed. False where it no longer waits. */
  begin(tx: Tx, id: string, generation: number): boolean {
    const changed = tx.run(
      `UPDATE session_deliveries SET state = 'delivering', generation = ?, attempts = attempts + 1, updated_at = ?
       WHERE id = ? AND state = 'queued'`,
      generation,
      this.#deps.clock.now(),
      id,
    )
    return changed > 0
  }

  /** It certainly was not typed: it waits again, at its place. */
  requeue(tx: Tx, id: string): void {
    tx.run(
      "UPDATE session_deliveries SET state = 'queued', updated_at = ? WHERE id = ? AND state = 'delivering'",
      this.#deps.clock.now(),
      id,
    )
  }

  /** Ends a delivery, and its request with it (D3). False where it has ended before. */
  end(tx: Tx, id: string, ending: Ending, actor: string): boolean {
    const row = tx.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE id = ?`, id)
    const before = row === undefined ? undefined : parseDelivery(row)
    if (before === undefined || !isWaiting(before)) return false
    const now = this.#deps.clock.now()
    tx.run(
      `UPDATE session_deliveries SET state = ?, error_code = ?, error_message = ?, end_offset = ?, request_open = 0,
       turn_started_at = ?, updated_at = ?, finished_at = ? WHERE id = ?`,
      ending.state,
      ending.code ?? null,
      ending.message ?? null,
      ending.endOffset ?? null,
      ending.turnStartedAt ?? null,
      now,
      now,
      id,
    )
    const session = this.#deps.sessions.need(tx, before.session_id)
    const nudged = ending.state === 'delivered' && before.source === 'nudge'
    this.#deps.sessions.change(
      tx,
      session.id,
      { queued: Math.max(session.queued - 1, 0), ...(nudged ? { last_nudge_delivered_at: now } : {}) },
      { actor },
    )
    this.#tell(tx, before, ending.state, actor, ending.code)
    if (before.request_open) this.#endRequest(tx, before, ending)
    tx.run(
      `DELETE FROM session_deliveries WHERE session_id = ? AND seq <= ? AND state NOT IN ('queued', 'delivering')`,
      session.id,
      before.seq - MAX_KEPT,
    )
    return true
  }

  /** False where its end was told before. */
  closeTurn(tx: Tx, id: string): boolean {
    return tx.run('UPDATE session_deliveries SET turn_started_at = NULL WHERE id = ? AND turn_started_at > 0', id) > 0
  }

  /** Its request succeeds although it still waits (decision 59). */
  reportQueued(tx: Tx, id: string): void {
    const row = tx.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE id = ?`, id)
    const record = row === undefined ? undefined : parseDelivery(row)
    if (record === undefined || !record.request_open || !isWaiting(record)) return
    tx.run('UPDATE session_deliveries SET request_open = 0, updated_at = ? WHERE id = ?', this.#deps.clock.now(), id)
    this.#finishRequest(tx, succeeded(record, true))
  }

  cancel(tx: Tx, sessionId: string, id: string, actor: string): void {
    const row = tx.get('SELECT state FROM session_deliveries WHERE id = ? AND session_id = ?', id, sessionId)
    if (row === undefined) throw problem('delivery-not-found', `session ${sessionId} has no delivery ${id}`)
    if (row.state !== 'queued')
      throw problem(
        'conflict-wrong-state',
        `delivery ${id} is ${String(row.state)}: only a queued one can be cancelled`,
      )
    this.end(tx, id, { state: 'cancelled', code: 'cancelled', message: 'it was cancelled' }, actor)
  }

  /** Ends everything that waits: its session is gone for good. What may have been typed says so. */
  failAll(tx: Tx, sessionId: string, code: string, message: string, actor: string): void {
    for (const { id, state } of this.#waitingIn(tx, sessionId)) {
      const uncertain = state === 'delivering'
      this.end(tx, id, { state: 'failed', code: uncertain ? 'delivery_uncertain' : code, message }, actor)
    }
  }

  /** Ends what somebody still waits for with a 202 in hand; the rest waits on: the city stops. */
  failOpenRequests(tx: Tx, code: string, message: string): void {
    const rows = tx.all(
      "SELECT id FROM session_deliveries WHERE request_open = 1 AND state = 'queued' ORDER BY session_id, seq",
    )
    for (const { id } of rows) this.end(tx, String(id), { state: 'failed', code, message }, 'supervisor')
  }

  remove(tx: Tx, sessionId: string): void {
    tx.run('DELETE FROM session_deliveries WHERE session_id = ?', sessionId)
  }

  #waitingIn(tx: Tx, sessionId: string): readonly DeliveryRecord[] {
    return tx
      .all(
        `SELECT ${COLUMNS} FROM session_deliveries WHERE session_id = ? AND state IN ('queued', 'delivering') ORDER BY seq`,
        sessionId,
      )
      .map(parseDelivery)
  }

  #endRequest(tx: Tx, record: DeliveryRecord, { state, code, message }: Ending): void {
    if (state === 'delivered') {
      this.#finishRequest(tx, succeeded(record, false))
      return
    }
    const operation = record.source === 'submit' ? 'session.submit' : 'session.message'
    this.#finishRequest(tx, {
      type: 'request.failed',
      actor: 'supervisor',
      subject: record.session_id,
      payload: {
        request_id: record.request_id ?? '',
        operation,
        error_code: code ?? (record.source === 'submit' ? 'submit_failed' : 'message_failed'),
        error_message: message ?? `the message was ${state}`,
      },
    })
  }

  #finishRequest(tx: Tx, event: TerminalEvent): void {
    if (!this.#deps.requests.finish(tx, event)) return
    tx.afterCommit(() => this.#deps.requestEnded(event.payload.request_id))
  }

  #tell(tx: Tx, record: DeliveryRecord, state: DeliveryState, actor: string, code?: string): void {
    this.#deps.log.append(tx, {
      type: 'session.delivery',
      actor,
      subject: record.session_id,
      payload: {
        session_id: record.session_id,
        delivery_id: record.id,
        state,
        source: record.source,
        ...(code === undefined ? {} : { error_code: code }),
      },
    })
  }
}

const isWaiting = ({ state }: Pick<DeliveryRecord, 'state'>): boolean => state === 'queued' || state === 'delivering'

function succeeded(record: DeliveryRecord, queued: boolean): TerminalEvent {
  const envelope = { actor: 'supervisor', subject: record.session_id } as const
  const payload = {
    request_id: record.request_id ?? '',
    session_id: record.session_id,
    delivery_id: record.id,
    queued,
  }
  if (record.source !== 'submit') return { type: 'request.result.session.message', ...envelope, payload }
  return { type: 'request.result.session.submit', ...envelope, payload: { ...payload, intent: record.intent } }
}

function parseDelivery(row: Row): DeliveryRecord {
  return {
    id: String(row.id),
    session_id: String(row.session_id),
    seq: Number(row.seq),
    source: oneOf(DELIVERY_SOURCES, row.source),
    intent: oneOf(SUBMIT_INTENTS, row.intent),
    state: oneOf(DELIVERY_STATES, row.state),
    request_id: row.request_id === null ? undefined : String(row.request_id),
    request_open: row.request_open === 1,
    with_launch: row.with_launch === 1,
    eager: row.eager === 1,
    wakes: row.wakes === 1,
    attempts: Number(row.attempts),
    generation: row.generation === null ? undefined : Number(row.generation),
    end_offset: row.end_offset === null ? undefined : Number(row.end_offset),
    error_code: row.error_code === null ? undefined : String(row.error_code),
    error_message: row.error_message === null ? undefined : String(row.error_message),
    created_at: Number(row.created_at),
    updated_at: Number(row.updated_at),
    finished_at: row.finished_at === null ? undefined : Number(row.finished_at),
    expires_at: Number(row.expires_at),
  }
}

function toInfo(row: Row): DeliveryInfo {
  const record = parseDelivery(row)
  return {
    id: record.id,
    session_id: record.session_id,
    seq: record.seq,
    source: record.source,
    intent: record.intent,
    state: record.state,
    text: String(row.text),
    ...(record.request_id === undefined ? {} : { request_id: record.request_id }),
    ...(record.error_code === undefined ? {} : { error_code: record.error_code }),
    ...(record.error_message === undefined ? {} : { error_message: record.error_message }),
    created_at: isoTime(record.created_at),
    updated_at: isoTime(record.updated_at),
    expires_at: isoTime(record.expires_at),
  }
}
