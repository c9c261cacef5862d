/**
 * What is said to a session: one durable queue per session (decisions 57–59).
 *
 * D1  A delivery is `delivering` on disk before a byte of it is typed, and is typed at most once: after a crash the
 *     process that it went to says whether it arrived; where nobody knows it is `failed` (`delivery_uncertain`).
 * D2  Deliveries of a session are typed in the order of `seq`, one at a time; urgent ones get their place in front of
 *     others in the write that accepts them.
 * D3  The end of a request and the state of its delivery are one transaction; a request ends once.
 * D4  At most 1,000 wait, and 64 MiB of texts are kept per session: those of what has ended give way first; what nobody could take within its time is `expired`.
 *     Reminders are outside of it: they have a bound of their own, and no text while they wait (digests.ts).
 */
import type { ListOrder } from '../../../contract/base/paging.ts'
import {
  ACKNOWLEDGERS,
  type Acknowledger,
  DELIVERY_SOURCES,
  DELIVERY_STATES,
  type DeliveryInfo,
  MAX_MESSAGE_BYTES,
  type MessageSender,
  SENDER_KINDS,
  SUBMIT_INTENTS,
  type SubmitIntent,
  type WaitsFor,
} from '../../../contract/sessions/session-model.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import type { RequestLedger, TerminalEvent } from '../../../kernel/requests.ts'
import { plainText } from '../../../messaging/hostile-text.ts'
import type { DeliveryOutcome } from '../../../runtimes/process/runtime.ts'
import { oneOf, type SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import {
  type Attachment,
  addAttachments,
  attachmentsOf,
  dropBytes,
  forgetAttachments,
  shownAttachment,
} from './attachments.ts'
import type { DigestQueue } from './digests.ts'
import { SUPERVISOR_SENDER } from './sender.ts'

export type DeliverySource = DeliveryInfo['source']
export type DeliveryState = DeliveryInfo['state']

const MAX_WAITING = 1_000
/** Ended deliveries that are kept per session; older ones are forgotten as new ones end. */
const MAX_KEPT = 2_000
/** How often something is typed that was not taken, by why it was not; once where nothing is said. */
const ATTEMPTS: Readonly<Record<string, number>> = { closed: 3, timeout: 3, unseen: 10, moved: 10 }
/** Of texts, waiting and ended ones, per session. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024
/** Stands in a transcript for what was said. */
const GONE_TEXT = '(its text was removed: `[retention] delivery_texts`)'

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
  /** Unknown of what was queued by an earlier version. */
  readonly sender: MessageSender | undefined
}

/** What tells of mail and chat: its text is made when it is typed. */
const isDigest = ({ source }: Pick<DeliveryRecord, 'source'>): boolean => source === 'mail' || source === 'chat'
/** What asks for a look at something, not what somebody has to say. */
export const isReminder = (source: DeliverySource): boolean => source === 'nudge' || isDigest({ source })
/** What only tells of mail and chat, and wakes nobody, keeps nobody awake. */
const WORTH_WAITING = "(wakes = 1 OR source NOT IN ('mail', 'chat'))"

export interface DeliveryDraft {
  readonly source: DeliverySource
  readonly intent: SubmitIntent
  readonly text: string
  readonly sender?: MessageSender
  /** Typed in front of the text. */
  readonly frame?: string
  readonly attachments?: readonly Attachment[]
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
  readonly acknowledgedBy?: Acknowledger
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

/** What an urgent message is put in front of; the prompt of a conversation stays its first words. */
const NOT_URGENT = "state = 'queued' AND intent <> 'interrupt_now' AND source <> 'prompt' AND with_launch = 0"

/** How many of those whose time comes next are looked at in one step: more of them are due in the step after it. */
const DUE_AT_ONCE = 20

/** Of a long queue, all that a step decides by: its head, one that wakes, and those whose time comes next. */
const FRONT = [
  ['1', 'seq LIMIT 1'],
  ['wakes = 1', 'seq LIMIT 1'],
  ["state = 'queued'", `expires_at LIMIT ${DUE_AT_ONCE}`],
  ["state = 'queued'", `created_at LIMIT ${DUE_AT_ONCE}`],
  ['request_open = 1', `created_at LIMIT ${DUE_AT_ONCE}`],
  ["request_open = 1 AND intent = 'follow_up'", `created_at LIMIT ${DUE_AT_ONCE}`],
]
  .map(([which, order]) => `SELECT * FROM (SELECT id FROM waiting WHERE ${which} ORDER BY ${order})`)
  .join(' UNION ')

const COLUMNS = `id, session_id, seq, source, intent, state, request_id, request_open, with_launch, eager, wakes, attempts, generation,
  end_offset, error_code, error_message, created_at, updated_at, finished_at, expires_at,
  sender_kind, sender_name, sender_session`

/** What becomes of a delivery with this outcome: its end, or undefined: it waits for another try (nothing was typed). */
export function endingOf(
  outcome: DeliveryOutcome,
  attempts: number,
  endOffset: number | undefined,
): Ending | undefined {
  if (outcome.state === 'delivered') return { state: 'delivered', ...(endOffset === undefined ? {} : { endOffset }) }
  if (outcome.state === 'uncertain') return { state: 'failed', code: 'delivery_uncertain', message: outcome.message }
  const most = ATTEMPTS[outcome.code] ?? 0
  const again = isNoAttempt(outcome) || attempts < most
  return again ? undefined : { state: 'failed', code: outcome.code, message: outcome.message }
}

/** A person or an interrupt was in its way: however often that happens, it is not given up for it. */
export const isNoAttempt = (outcome: DeliveryOutcome): boolean =>
  outcome.state === 'failed' && ['held', 'interrupted'].includes(outcome.code)

/** The outcome of a delivery that was under way when nobody was there to hear of it (D1). */
export function outcomeAfterCrash(delivered: 'yes' | 'no' | 'unknown'): DeliveryOutcome {
  if (delivered === 'yes') return { state: 'delivered' }
  if (delivered === 'no') return { state: 'failed', code: 'closed', message: 'it was not typed' }
  return { state: 'uncertain', message: 'whether it was typed could not be found out; it is not typed again' }
}

/** A message within the limit, in bytes as they are stored; or 422. */
export function checkMessage(text: string, location: string): string {
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES) throw invalidField(location, 'must be at most 1 MiB in UTF-8')
  if (plainText(text).trim() === '') throw invalidField(location, 'has nothing in it but blanks and control characters')
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
  readonly digests: () => Pick<DigestQueue, 'begin' | 'requeued' | 'ended'>
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

  /** What the next step is decided by, in order: of a long queue a few, of a short one all. */
  front({ id, queued }: Pick<SessionRecord, 'id' | 'queued'>): readonly DeliveryRecord[] {
    if (queued === 0) return []
    if (queued <= DUE_AT_ONCE) return this.waiting(id)
    return this.#deps.db
      .all(
        `WITH waiting AS MATERIALIZED (
           SELECT id, seq, state, intent, wakes, request_open, created_at, expires_at FROM session_deliveries
           WHERE session_id = ? AND state IN ('queued', 'delivering'))
         SELECT ${COLUMNS} FROM session_deliveries WHERE id IN (${FRONT}) ORDER BY seq`,
        id,
      )
      .map(parseDelivery)
  }

  /** What is typed next. */
  head(sessionId: string): DeliveryRecord | undefined {
    const row = this.#deps.db.get(
      `SELECT ${COLUMNS} FROM session_deliveries
       WHERE session_id = ? AND state IN ('queued', 'delivering') ORDER BY seq LIMIT 1`,
      sessionId,
    )
    return row === undefined ? undefined : parseDelivery(row)
  }

  /** Whether a session is to stay until it was told. */
  isSpokenTo(sessionId: string): boolean {
    const sql = `SELECT 1 FROM session_deliveries
      WHERE session_id = ? AND state IN ('queued', 'delivering') AND ${WORTH_WAITING} LIMIT 1`
    return this.#deps.db.get(sql, sessionId) !== undefined
  }

  /** As it is typed: behind the frame that says who speaks. */
  text(id: string): string {
    const row = this.#deps.db.get('SELECT frame || text AS text FROM session_deliveries WHERE id = ?', id)
    return String(row?.text ?? '')
  }

  /** With their bytes, while it waits. */
  attachments(id: string): readonly Attachment[] {
    return attachmentsOf(this.#deps.db, id)
  }

  info(sessionId: string, id: string): DeliveryInfo | undefined {
    const row = this.#deps.db.get('SELECT * FROM session_deliveries WHERE id = ? AND session_id = ?', id, sessionId)
    return row === undefined ? undefined : toInfo(row, attachmentsOf(this.#deps.db, id))
  }

  /** What was typed into one run of a session: numbers above `after`, where its output was in `[from, to]`; in order. */
  typed(
    sessionId: string,
    generation: number,
    { after, from, to }: { readonly after: number; readonly from: number; readonly to: number },
  ) {
    return this.#deps.db
      .all(
        `SELECT seq, id, frame, text, end_offset, finished_at FROM session_deliveries
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
        text: plainText(`${String(row.frame)}${String(row.text) || GONE_TEXT}`),
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

  /** When it was typed; undefined: it was not. */
  typedAt(id: string): number | undefined {
    const row = this.#deps.db.get("SELECT finished_at FROM session_deliveries WHERE id = ? AND state = 'delivered'", id)
    return row === undefined ? undefined : Number(row.finished_at)
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
      .map((row) => toInfo(row, attachmentsOf(this.#deps.db, String(row.id))))
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

  /** Puts a message at the end of the queue, an urgent one in front of it; 429 where it is full (D4). */
  add(tx: Tx, session: SessionRecord, draft: DeliveryDraft, actor: string): DeliveryRecord {
    const added = this.#add(tx, session, draft, actor)
    if (draft.intent === 'interrupt_now') this.#moveBehind(tx, added, NOT_URGENT)
    return added
  }

  #add(tx: Tx, session: SessionRecord, draft: DeliveryDraft, actor: string): DeliveryRecord {
    if (!isDigest(draft)) this.#refuseFull(tx, session, draft)
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
      sender: draft.sender ?? (actor === SUPERVISOR_SENDER.name ? SUPERVISOR_SENDER : undefined),
    }
    tx.run(
      `INSERT INTO session_deliveries (id, session_id, seq, source, intent, state, text, request_id, request_open,
       with_launch, eager, wakes, created_at, updated_at, expires_at, sender_kind, sender_name, sender_session, frame)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      record.sender?.kind ?? null,
      record.sender?.name ?? null,
      record.sender?.session_id ?? null,
      draft.frame ?? '',
    )
    addAttachments(tx, record.id, draft.attachments ?? [])
    this.#deps.sessions.change(tx, session.id, { deliveries: record.seq, queued: session.queued + 1 }, { actor })
    this.#tell(tx, record, 'queued', actor)
    return record
  }

  /** D4. */
  #refuseFull(tx: Tx, session: SessionRecord, { text }: DeliveryDraft): void {
    if (session.queued >= MAX_WAITING && session.queued - this.#digestsIn(tx, session.id) >= MAX_WAITING)
      throw problem('queue-full', `${MAX_WAITING} messages wait for session ${session.id}`, { retryAfterSec: 5 })
    // So few cannot be too much, and most sessions have no more.
    if (session.deliveries >= MAX_TEXT_BYTES / MAX_MESSAGE_BYTES - 1)
      this.#makeRoom(tx, session.id, Buffer.byteLength(text))
  }

  #digestsIn(tx: Tx, sessionId: string): number {
    return this.#waitingIn(tx, sessionId).filter(isDigest).length
  }

  #makeRoom(tx: Tx, sessionId: string, bytes: number): void {
    const kept = tx.get(
      `SELECT coalesce(sum(octet_length(text)), 0) AS bytes,
         coalesce(sum(octet_length(text)) FILTER (WHERE finished_at IS NULL), 0) AS waiting
       FROM session_deliveries WHERE session_id = ?`,
      sessionId,
    )
    const [all, waiting] = [Number(kept?.bytes ?? 0), Number(kept?.waiting ?? 0)]
    if (waiting + bytes > MAX_TEXT_BYTES)
      throw problem('queue-full', `messages of ${MAX_TEXT_BYTES} bytes wait for session ${sessionId}`, {
        retryAfterSec: 5,
      })
    let excess = all + bytes - MAX_TEXT_BYTES
    if (excess <= 0) return
    const oldest = tx.all(
      `SELECT id, octet_length(text) AS bytes FROM session_deliveries
       WHERE session_id = ? AND text <> '' AND finished_at IS NOT NULL ORDER BY seq`,
      sessionId,
    )
    for (const row of oldest) {
      if (excess <= 0) return
      tx.run("UPDATE session_deliveries SET text = '' WHERE id = ?", String(row.id))
      excess -= Number(row.bytes)
    }
  }

  /** Puts a message before all that wait: the first prompt of a new conversation. */
  addFirst(tx: Tx, session: SessionRecord, draft: DeliveryDraft): DeliveryRecord {
    const added = this.#add(tx, session, draft, 'supervisor')
    this.#moveBehind(tx, added, "state = 'queued'")
    return added
  }

  /** Everything in front of it that `which` selects moves behind it; numbers that were used are never used again. */
  #moveBehind(tx: Tx, added: DeliveryRecord, which: string): void {
    const sql = `SELECT id FROM session_deliveries WHERE session_id = ? AND seq < ? AND ${which} ORDER BY seq`
    const waiting = tx.all(sql, added.session_id, added.seq)
    let { seq } = added
    for (const { id } of waiting) tx.run('UPDATE session_deliveries SET seq = ? WHERE id = ?', ++seq, String(id))
    if (waiting.length > 0)
      this.#deps.sessions.change(tx, added.session_id, { deliveries: seq }, { actor: 'supervisor' })
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

  /** Whether anything was said to its process of that generation. */
  saidIn(id: string, generation: number): boolean {
    const sql =
      'SELECT generation FROM session_deliveries WHERE session_id = ? AND generation IS NOT NULL ORDER BY seq DESC LIMIT 1'
    return this.#deps.db.get(sql, id)?.generation === generation
  }

  /** The clock was set, or the machine slept: what waits is as old as it was, and has as much time left. */
  followClock(tx: Tx, sessionId: string, jump: number): void {
    const now = this.#deps.clock.now()
    tx.run(
      `UPDATE session_deliveries SET created_at = created_at + ?, expires_at = expires_at + ?
       WHERE session_id = ? AND state IN ('queued', 'delivering') AND ${jump > 0 ? 'created_at <= ?' : 'created_at > ?'}`,
      jump,
      jump,
      sessionId,
      jump > 0 ? now - jump : now,
    )
  }

  /** D1: on disk before a byte is typed. False where it no longer waits, or nothing is left to be told. */
  begin(tx: Tx, id: string, generation: number): boolean {
    const row = tx.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE id = ? AND state = 'queued'`, id)
    if (row === undefined) return false
    const record = parseDelivery(row)
    if (isDigest(record) && !this.#putTogether(tx, record)) return false
    const changed = tx.run(
      `UPDATE session_deliveries SET state = 'delivering', generation = ?, attempts = attempts + 1, updated_at = ?
       WHERE id = ? AND state = 'queued'`,
      generation,
      this.#deps.clock.now(),
      id,
    )
    return changed > 0
  }

  /** The text of a reminder, of what it is to be told of now; ends it where that is nothing. */
  #putTogether(tx: Tx, record: DeliveryRecord): boolean {
    const text = this.#deps.digests().begin(tx, record, this.#deps.sessions.need(tx, record.session_id))
    if (text === undefined) {
      const message = 'nothing of what it was to tell of is left'
      this.end(tx, record.id, { state: 'cancelled', code: 'superseded', message }, 'supervisor')
      return false
    }
    tx.run('UPDATE session_deliveries SET text = ? WHERE id = ?', text, record.id)
    return true
  }

  /** It certainly was not typed: it waits again, at its place. */
  requeue(tx: Tx, id: string, { counted = true } = {}): void {
    const row = tx.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE id = ? AND state = 'delivering'`, id)
    if (row === undefined) return
    const record = parseDelivery(row)
    if (isDigest(record)) this.#deps.digests().requeued(tx, record)
    tx.run(
      `UPDATE session_deliveries SET state = 'queued', attempts = attempts - ?, updated_at = ?
       WHERE id = ? AND state = 'delivering'`,
      counted ? 0 : 1,
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
       turn_started_at = ?, acknowledged_by = ?, updated_at = ?, finished_at = ? WHERE id = ?`,
      ending.state,
      ending.code ?? null,
      ending.message ?? null,
      ending.endOffset ?? null,
      ending.turnStartedAt ?? null,
      ending.acknowledgedBy ?? null,
      now,
      now,
      id,
    )
    const session = this.#deps.sessions.need(tx, before.session_id)
    const nudged = ending.state === 'delivered' && isReminder(before.source)
    this.#deps.sessions.change(
      tx,
      session.id,
      { queued: Math.max(session.queued - 1, 0), ...(nudged ? { last_nudge_delivered_at: now } : {}) },
      { actor },
    )
    this.#tell(tx, before, ending.state, actor, ending.code)
    if (before.request_open) this.#endRequest(tx, before, ending)
    if (isDigest(before)) this.#deps.digests().ended(tx, before, ending, session)
    dropBytes(tx, id)
    forgetAttachments(tx, session.id, before.seq - MAX_KEPT)
    tx.run(
      `DELETE FROM session_deliveries WHERE session_id = ? AND seq <= ? AND state NOT IN ('queued', 'delivering')`,
      session.id,
      before.seq - MAX_KEPT,
    )
    return true
  }

  /** False where its end was told before. `failure`: why the turn came to nothing, though the message was taken. */
  closeTurn(tx: Tx, id: string, failure: string | undefined): boolean {
    const closed = 'UPDATE session_deliveries SET turn_started_at = NULL WHERE id = ? AND turn_started_at > 0'
    if (tx.run(closed, id) === 0) return false
    if (failure !== undefined)
      tx.run(
        'UPDATE session_deliveries SET error_code = ?, error_message = ?, updated_at = ? WHERE id = ?',
        'turn_failed',
        failure,
        this.#deps.clock.now(),
        id,
      )
    return true
  }

  /** Its request succeeds although it still waits (decision 59). */
  reportQueued(tx: Tx, id: string, waitsFor: WaitsFor): void {
    const row = tx.get(`SELECT ${COLUMNS} FROM session_deliveries WHERE id = ?`, id)
    const record = row === undefined ? undefined : parseDelivery(row)
    if (record === undefined || !record.request_open || !isWaiting(record)) return
    tx.run('UPDATE session_deliveries SET request_open = 0, updated_at = ? WHERE id = ?', this.#deps.clock.now(), id)
    this.#finishRequest(tx, succeeded(record, true, waitsFor))
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

  /** Takes the texts of what ended before `time` away, at most `limit` of them; rows and their states stay. */
  forgetTexts(tx: Tx, time: number, limit: number): { readonly count: number; readonly bytes: number } {
    const rows = tx.all(
      `SELECT id, octet_length(text) AS bytes FROM session_deliveries
       WHERE finished_at < ? AND text <> '' ORDER BY finished_at LIMIT ?`,
      time,
      limit,
    )
    for (const { id } of rows) tx.run("UPDATE session_deliveries SET text = '' WHERE id = ?", String(id))
    return { count: rows.length, bytes: rows.reduce((sum, row) => sum + Number(row.bytes), 0) }
  }

  remove(tx: Tx, sessionId: string): void {
    forgetAttachments(tx, sessionId)
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
        ...(record.sender === undefined ? {} : { sender: record.sender }),
        ...(code === undefined ? {} : { error_code: code }),
      },
    })
  }
}

const isWaiting = ({ state }: Pick<DeliveryRecord, 'state'>): boolean => state === 'queued' || state === 'delivering'

function succeeded(record: DeliveryRecord, queued: boolean, waitsFor?: WaitsFor): TerminalEvent {
  const envelope = { actor: 'supervisor', subject: record.session_id } as const
  const payload = {
    request_id: record.request_id ?? '',
    session_id: record.session_id,
    delivery_id: record.id,
    queued,
    ...(waitsFor === undefined ? {} : { waits_for: waitsFor }),
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
    sender: row.sender_kind === null ? undefined : parseSender(row),
  }
}

const parseSender = (row: Row): MessageSender => ({
  kind: oneOf(SENDER_KINDS, row.sender_kind),
  name: String(row.sender_name),
  ...(row.sender_session === null ? {} : { session_id: String(row.sender_session) }),
})

function toInfo(row: Row, attachments: readonly Attachment[]): DeliveryInfo {
  const record = parseDelivery(row)
  return {
    id: record.id,
    session_id: record.session_id,
    seq: record.seq,
    source: record.source,
    intent: record.intent,
    state: record.state,
    ...(record.sender === undefined ? {} : { sender: record.sender }),
    text: String(row.text),
    ...(attachments.length === 0 ? {} : { attachments: attachments.map(shownAttachment) }),
    // No message is empty, and a reminder only until it is typed.
    ...(row.text === '' && !(isDigest(record) && record.generation === undefined) ? { text_removed: true } : {}),
    ...(record.request_id === undefined ? {} : { request_id: record.request_id }),
    ...(record.error_code === undefined ? {} : { error_code: record.error_code }),
    ...(record.error_message === undefined ? {} : { error_message: record.error_message }),
    ...(row.acknowledged_by === null ? {} : { acknowledged_by: oneOf(ACKNOWLEDGERS, row.acknowledged_by) }),
    created_at: isoTime(record.created_at),
    updated_at: isoTime(record.updated_at),
    expires_at: isoTime(record.expires_at),
  }
}
