/**
 * A session that waits for beads to be closed (sheet 04 §4.11): told when they are, when time is up, and not at all when
 * it is gone.
 *
 * V1  A wait ends once; its end and the message about it are one write.
 */
import type { ListOrder } from '../../../contract/base/paging.ts'
import { WAIT_STATES, type WaitInfo } from '../../../contract/sessions/session-model.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { problem } from '../../../kernel/problem.ts'
import { oneOf } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import type { Deliveries } from './deliveries.ts'

type WaitState = WaitInfo['state']
const MESSAGE_TTL_MS = 24 * 3_600_000

export interface WaitsDeps {
  readonly db: Database
  readonly log: EventLog
  readonly clock: Clock
  readonly sessions: SessionStore
  readonly deliveries: Deliveries
  readonly random: (bytes: number) => string
  /** Which of these are not closed. */
  readonly open: (ids: readonly string[]) => readonly string[]
}

export interface WaitDraft {
  readonly sessionId: string
  readonly depIds: readonly string[]
  readonly mode: WaitInfo['dep_mode']
  readonly note: string | undefined
  readonly timeoutMs: number
}

export interface WaitFilter {
  readonly state?: WaitState | undefined
  readonly session?: string | undefined
}

const FILTER = '(? IS NULL OR state = ?) AND (? IS NULL OR session_id = ?)'
const filterValues = ({ state, session }: WaitFilter) => [state, state, session, session].map((value) => value ?? null)

export class Waits {
  readonly #deps: WaitsDeps

  constructor(deps: WaitsDeps) {
    this.#deps = deps
  }

  get(id: string): WaitInfo {
    const row = this.#deps.db.get('SELECT * FROM session_waits WHERE id = ?', id)
    if (row === undefined) throw problem('wait-not-found', `there is no wait ${id}`)
    return toWait(row)
  }

  /** Newest first unless asked otherwise, strictly after `after` in that order. */
  page(
    filter: WaitFilter,
    after: readonly [createdAt: number, id: string] | undefined,
    limit: number,
    order: ListOrder = 'desc',
  ): readonly WaitInfo[] {
    const [beyond, start] = order === 'asc' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER]
    return this.#deps.db
      .all(
        `SELECT * FROM session_waits WHERE ${FILTER} AND (created_at, id) ${beyond} (?, ?)
         ORDER BY created_at ${order}, id ${order} LIMIT ?`,
        ...filterValues(filter),
        ...(after ?? [start, '']),
        limit,
      )
      .map(toWait)
  }

  count(filter: WaitFilter): number {
    const row = this.#deps.db.get(`SELECT count(*) AS n FROM session_waits WHERE ${FILTER}`, ...filterValues(filter))
    return Number(row?.n ?? 0)
  }

  create(tx: Tx, draft: WaitDraft, actor: string): WaitInfo {
    const now = this.#deps.clock.now()
    const id = `wait-${this.#deps.random(8)}`
    const deps = [...new Set(draft.depIds)]
    tx.run(
      `INSERT INTO session_waits (id, session_id, state, dep_ids_json, dep_mode, note, created_at, expires_at)
       VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)`,
      id,
      draft.sessionId,
      JSON.stringify(deps),
      draft.mode,
      draft.note ?? null,
      now,
      now + draft.timeoutMs,
    )
    for (const bead of deps) tx.run('INSERT INTO session_wait_deps (bead, wait) VALUES (?, ?)', bead, id)
    const wait = this.#in(tx, id)
    this.#tell(tx, 'wait.created', wait, actor)
    return wait
  }

  cancel(tx: Tx, id: string, actor: string): WaitInfo {
    const wait = this.#in(tx, id)
    if (wait.state !== 'pending') throw problem('conflict-wrong-state', `wait ${id} is ${wait.state}`)
    return this.#end(tx, wait, 'canceled', actor)
  }

  /** The session is gone, or a person wakes it: nobody waits any more. */
  cancelAll(tx: Tx, sessionId: string, actor: string): void {
    const rows = tx.all("SELECT * FROM session_waits WHERE session_id = ? AND state = 'pending'", sessionId)
    for (const row of rows) this.#end(tx, toWait(row), 'canceled', actor)
  }

  remove(tx: Tx, sessionId: string): void {
    tx.run('DELETE FROM session_waits WHERE session_id = ?', sessionId)
  }

  /** What may be over: waits on these beads, or all that are pending. Ids only; cheap where there are none. */
  touched(beads: readonly string[]): readonly string[] {
    // Asked at every commit, and almost always nobody waits for any bead.
    if (this.#deps.db.get('SELECT 1 FROM session_wait_deps LIMIT 1') === undefined) return []
    return [...new Set(beads)].flatMap((bead) =>
      this.#deps.db.all('SELECT wait FROM session_wait_deps WHERE bead = ?', bead).map(({ wait }) => String(wait)),
    )
  }

  pending(): readonly string[] {
    return this.#deps.db
      .all("SELECT id FROM session_waits WHERE state = 'pending' ORDER BY expires_at LIMIT 10000")
      .map(({ id }) => String(id))
  }

  /** The pending wait whose time is up first. */
  nextExpiry(): { readonly id: string; readonly expires_at: number } | undefined {
    const row = this.#deps.db.get(
      "SELECT id, expires_at FROM session_waits WHERE state = 'pending' ORDER BY expires_at LIMIT 1",
    )
    return row === undefined ? undefined : { id: String(row.id), expires_at: Number(row.expires_at) }
  }

  /** A wait that was begun while the clock was ahead takes no longer than was asked for. */
  bringBack(tx: Tx): void {
    const now = this.#deps.clock.now()
    tx.run(
      `UPDATE session_waits SET expires_at = expires_at - (created_at - ?), created_at = ?
         WHERE state = 'pending' AND created_at > ?`,
      now,
      now,
      now,
    )
  }

  /** Ends the wait where what it waits for has come, or its time. */
  check(tx: Tx, id: string): void {
    const row = tx.get("SELECT * FROM session_waits WHERE id = ? AND state = 'pending'", id)
    if (row === undefined) return
    const wait = toWait(row)
    const open = this.#deps.open(wait.dep_ids).length
    const over = wait.dep_mode === 'all' ? open === 0 : open < wait.dep_ids.length
    const late = Number(row.expires_at) <= this.#deps.clock.now()
    if (over || late) this.#end(tx, wait, over ? 'ready' : 'expired', 'supervisor')
  }

  #end(tx: Tx, wait: WaitInfo, state: Exclude<WaitState, 'pending'>, actor: string): WaitInfo {
    const delivery = state === 'canceled' ? undefined : this.#say(tx, wait, state)
    tx.run(
      'UPDATE session_waits SET state = ?, delivery_id = ?, finished_at = ? WHERE id = ?',
      state,
      delivery ?? null,
      this.#deps.clock.now(),
      wait.id,
    )
    tx.run('DELETE FROM session_wait_deps WHERE wait = ?', wait.id)
    const ended = this.#in(tx, wait.id)
    this.#tell(tx, `wait.${state}`, ended, actor)
    return ended
  }

  #say(tx: Tx, { session_id, dep_ids, note }: WaitInfo, state: 'ready' | 'expired'): string | undefined {
    const session = this.#deps.sessions.need(tx, session_id)
    if (session.state === 'closed') return undefined
    const beads = dep_ids.join(', ')
    const outcome = state === 'ready' ? `What you waited for is closed: ${beads}.` : `Time is up, still open: ${beads}.`
    const text = note === undefined ? outcome : `${outcome}\n\n${note}`
    const draft = { source: 'wait', intent: 'default', text, ttlMs: MESSAGE_TTL_MS } as const
    return this.#deps.deliveries.add(tx, session, draft, 'supervisor').id
  }

  #in(tx: Tx, id: string): WaitInfo {
    const row = tx.get('SELECT * FROM session_waits WHERE id = ?', id)
    if (row === undefined) throw problem('wait-not-found', `there is no wait ${id}`)
    return toWait(row)
  }

  #tell(
    tx: Tx,
    type: 'wait.created' | 'wait.ready' | 'wait.canceled' | 'wait.expired',
    wait: WaitInfo,
    actor: string,
  ): void {
    this.#deps.log.append(tx, {
      type,
      actor,
      subject: wait.id,
      payload: { wait_id: wait.id, session_id: wait.session_id, state: wait.state, dep_ids: [...wait.dep_ids] },
    })
  }
}

function toWait(row: Row): WaitInfo {
  const depIds: unknown = JSON.parse(String(row.dep_ids_json))
  return {
    id: String(row.id),
    session_id: String(row.session_id),
    kind: 'deps',
    state: oneOf(WAIT_STATES, row.state),
    dep_ids: Array.isArray(depIds) ? depIds.map(String) : [],
    dep_mode: oneOf(['all', 'any'] as const, row.dep_mode),
    ...(row.note === null ? {} : { note: String(row.note) }),
    ...(row.delivery_id === null ? {} : { delivery_id: String(row.delivery_id) }),
    created_at: isoTime(Number(row.created_at)),
    expires_at: isoTime(Number(row.expires_at)),
    ...(row.finished_at === null ? {} : { finished_at: isoTime(Number(row.finished_at)) }),
  }
}
