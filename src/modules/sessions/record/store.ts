/**
 * Sessions in the city's store: every change of a row goes through `insert`, `change`, `move` and `remove`, which derive
 * its events from the difference.
 *
 * S1  Generation and token of a process are committed before it is started: whatever runs can be named after a crash.
 * S2  A change and its events are one transaction; where nothing changed, nothing is written and nothing is told.
 * S3  One open session per alias, runtime name and configured identity (unique indexes; refused before they trip).
 * S4  `revision` grows with every change that a client can see, and with no other.
 */
import type { ListOrder } from '../../../contract/base/paging.ts'
import type { SessionResponse, SessionState } from '../../../contract/sessions/session-model.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, SqlValue, Tx } from '../../../kernel/database.ts'
import type { EventDraft, EventLog } from '../../../kernel/event-log.ts'
import { problem } from '../../../kernel/problem.ts'
import { nextState, type SessionSignal } from './lifecycle.ts'
import type { Lookup } from './names.ts'
import {
  columnOf,
  columnValue,
  isQuiet,
  parseSession,
  type SessionChange,
  type SessionField,
  type SessionRecord,
} from './record.ts'

type LifecycleType =
  | 'session.created'
  | 'session.waking'
  | 'session.starting'
  | 'session.woke'
  | 'session.stopped'
  | 'session.asleep'
  | 'session.crashed'
  | 'session.start_failed'
  | 'session.killed'
  | 'session.draining'
  | 'session.undrained'
  | 'session.quarantined'
  | 'session.suspended'
  | 'session.idle_killed'
  | 'session.max_age_killed'
  | 'session.reset'
  | 'session.closed'
  | 'session.deleted'
  | 'session.unknown_state'

/** What a change is told as; the rest follows from the difference. */
export interface Note {
  /** `api` for a caller's wish, `supervisor` for the reconciler's. */
  readonly actor: string
  /** A better word than the one that the edge has, `crash` by idleness for one. */
  readonly event?: LifecycleType
  /** Text beside the payload: the last screen of a crash. */
  readonly message?: string
}

export interface MoveNote extends Note {
  readonly reason?: string | undefined
  readonly deadlineMs?: number | undefined
  readonly fields?: SessionChange
}

export interface SessionFilter {
  readonly states?: readonly SessionState[]
  readonly template?: string
  readonly rig?: string
}

type SessionKey = readonly [createdAt: number, id: string]

const EVENT_OF: { readonly [Signal in SessionSignal]?: LifecycleType } = {
  prewake: 'session.starting',
  ready: 'session.woke',
  'start-failed': 'session.start_failed',
  'roll-back': 'session.start_failed',
  drain: 'session.draining',
  undrain: 'session.undrained',
  rest: 'session.stopped',
  suspend: 'session.suspended',
  crash: 'session.crashed',
  kill: 'session.killed',
  quarantine: 'session.quarantined',
  close: 'session.closed',
}

export interface SessionStoreDeps {
  readonly db: Database
  readonly log: EventLog
  readonly clock: Clock
  /** How a session is shown: events carry it. */
  readonly view: (record: SessionRecord) => SessionResponse
}

type Listener = (after: SessionRecord | undefined, id: string) => void

export class SessionStore implements Lookup {
  readonly #deps: SessionStoreDeps
  readonly #listeners = new Set<Listener>()

  constructor(deps: SessionStoreDeps) {
    this.#deps = deps
  }

  /** Called after the commit of each change, with what was committed; undefined where the record is gone. */
  onChange(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  byId(id: string): SessionRecord | undefined {
    return this.#one('SELECT * FROM sessions WHERE id = ?', id)
  }

  byNamed(identity: string): SessionRecord | undefined {
    return this.#one("SELECT * FROM sessions WHERE named = ? AND state <> 'closed'", identity)
  }

  openByName(name: string): SessionRecord | undefined {
    return this.#one("SELECT * FROM sessions WHERE session_name = ? AND state <> 'closed'", name)
  }

  openByAlias(alias: string): SessionRecord | undefined {
    return this.#one("SELECT * FROM sessions WHERE alias = ? AND state <> 'closed'", alias)
  }

  openByAgent(agent: string): readonly SessionRecord[] {
    return this.#deps.db
      .all("SELECT * FROM sessions WHERE agent = ? AND state <> 'closed' ORDER BY created_at, id LIMIT 100", agent)
      .map(parseSession)
  }

  /** Sessions of an agent, or of one of its instances; closed ones too, newest first. */
  ofAgent(name: string): readonly SessionRecord[] {
    return this.#deps.db
      .all(
        'SELECT * FROM sessions WHERE template = ? OR agent = ? ORDER BY created_at DESC, id DESC LIMIT 100',
        name,
        name,
      )
      .map(parseSession)
  }

  openByFormerAlias(alias: string): readonly SessionRecord[] {
    return this.#deps.db
      .all(
        `SELECT s.* FROM session_former_aliases AS f JOIN sessions AS s ON s.id = f.session_id
         WHERE f.alias = ? AND s.state <> 'closed' ORDER BY s.created_at DESC, s.id DESC LIMIT 20`,
        alias,
      )
      .map(parseSession)
  }

  closedByHandle(handle: string): readonly SessionRecord[] {
    return this.#deps.db
      .all(
        `SELECT * FROM sessions WHERE state = 'closed' AND (alias = ? OR session_name = ?
           OR id IN (SELECT session_id FROM session_former_aliases WHERE alias = ?))
         ORDER BY created_at DESC, id DESC LIMIT 20`,
        handle,
        handle,
        handle,
      )
      .map(parseSession)
  }

  /** Every session that is not closed, oldest first. */
  open(): readonly SessionRecord[] {
    return this.#deps.db.all("SELECT * FROM sessions WHERE state <> 'closed' ORDER BY created_at, id").map(parseSession)
  }

  /** Closed ones whose process may still run: a close that a crash interrupted. */
  leftovers(): readonly SessionRecord[] {
    return this.#deps.db.all("SELECT * FROM sessions WHERE state = 'closed' AND process = 1").map(parseSession)
  }

  /** Whose process has the token of that hash, while it may run. */
  withAccess(hash: string): SessionRecord | undefined {
    const row = this.#deps.db.get('SELECT * FROM sessions WHERE access_hash = ? AND process = 1', hash)
    return row === undefined ? undefined : parseSession(row)
  }

  /** Newest first unless asked otherwise, strictly after `after` in that order. */
  page(
    filter: SessionFilter,
    after: SessionKey | undefined,
    limit: number,
    order: ListOrder = 'desc',
  ): readonly SessionRecord[] {
    const { where, values } = filterSql(filter)
    const beyond = after === undefined ? '' : `AND (created_at, id) ${order === 'asc' ? '>' : '<'} (?, ?)`
    return this.#deps.db
      .all(
        `SELECT * FROM sessions WHERE ${where} ${beyond} ORDER BY created_at ${order}, id ${order} LIMIT ?`,
        ...values,
        ...(after ?? []),
        limit,
      )
      .map(parseSession)
  }

  count(filter: SessionFilter): number {
    const { where, values } = filterSql(filter)
    return Number(this.#deps.db.get(`SELECT count(*) AS n FROM sessions WHERE ${where}`, ...values)?.n ?? 0)
  }

  /** Ids of sessions that were closed before `time`, oldest first. */
  closedBefore(time: number, limit: number): readonly string[] {
    return this.#deps.db
      .all("SELECT id FROM sessions WHERE state = 'closed' AND closed_at < ? ORDER BY closed_at LIMIT ?", time, limit)
      .map(({ id }) => String(id))
  }

  // --- Changing ----------------------------------------------------------------------------------------------------

  /** The session as it is in this transaction, or 404. */
  need(tx: Tx, id: string): SessionRecord {
    const row = tx.get('SELECT * FROM sessions WHERE id = ?', id)
    if (row === undefined) throw problem('session-not-found', `there is no session ${id}`)
    return parseSession(row)
  }

  insert(tx: Tx, record: SessionRecord, note: MoveNote): SessionRecord {
    this.#refuseTaken(tx, record)
    const fields = fieldsOf(record)
    tx.run(
      `INSERT INTO sessions (${fields.map(columnOf).join(', ')}) VALUES (${fields.map(() => '?').join(', ')})`,
      ...fields.map((field) => columnValue(field, record[field])),
    )
    this.#tell(tx, { type: 'session.created', from: 'none', to: record.state, record, note, reason: note.reason })
    this.#committed(tx, record.id, record)
    return record
  }

  /** Changes fields; `state` only through `move`. */
  change(tx: Tx, id: string, change: Omit<SessionChange, 'state'>, note: Note): SessionRecord {
    const before = this.need(tx, id)
    const after = this.#write(tx, before, change)
    if (after === before) return before
    const changed = visible(before, after)
    if (changed.length > 0) this.#tellUpdate(tx, after, changed, note)
    return after
  }

  /** Takes the edge of `signal`; 409 where there is none. Nothing happens where it leads to the same state. */
  move(tx: Tx, id: string, signal: SessionSignal, note: MoveNote): SessionRecord {
    const before = this.need(tx, id)
    const state = nextState(before, signal)
    const now = this.#deps.clock.now()
    const moved = state !== before.state
    // A start goes on for the reason that began it.
    const reason = note.reason ?? (signal === 'prewake' || signal === 'ready' ? before.reason : undefined)
    const after = this.#write(tx, before, {
      ...note.fields,
      ...(moved
        ? {
            state,
            state_since: now,
            // Why it does not run: what runs has none.
            reason: state === 'active' ? undefined : reason,
            deadline: note.deadlineMs === undefined ? undefined : now + note.deadlineMs,
            ...(state === 'closed' ? { closed_at: now, desired: 'closed' } : {}),
          }
        : {}),
    })
    if (after === before) return before
    const type = moved ? (note.event ?? eventOf(before.state, state, signal)) : undefined
    if (type === undefined) {
      const changed = visible(before, after)
      if (changed.length > 0) this.#tellUpdate(tx, after, changed, note)
    } else {
      this.#tell(tx, { type, from: before.state, to: state, record: after, note, reason })
    }
    return after
  }

  /** An event about the session beside those that its changes make. */
  tell(tx: Tx, record: SessionRecord, type: LifecycleType, note: MoveNote): void {
    this.#tell(tx, { type, from: record.state, to: record.state, record, note, reason: note.reason })
  }

  /** Forgets a closed session; its deliveries and waits are their owners' business, in the same write. */
  remove(tx: Tx, id: string, note: MoveNote): void {
    const record = this.need(tx, id)
    tx.run('DELETE FROM sessions WHERE id = ?', id)
    tx.run('DELETE FROM session_former_aliases WHERE session_id = ?', id)
    this.#tell(tx, { type: 'session.deleted', from: record.state, to: 'none', record, note, reason: note.reason })
    this.#committed(tx, id, undefined)
  }

  #write(tx: Tx, before: SessionRecord, change: SessionChange): SessionRecord {
    const fields = fieldsOf(change).filter((field) => differs(field, before[field], change[field]))
    if (fields.length === 0) return before
    const now = this.#deps.clock.now()
    const seen = fields.some((field) => !isQuiet(field))
    const after: SessionRecord = {
      ...before,
      ...Object.fromEntries(fields.map((field) => [field, change[field]])),
      updated_at: now,
      revision: before.revision + (seen ? 1 : 0),
    }
    if (fields.includes('alias') || fields.includes('session_name')) this.#refuseTaken(tx, after)
    const columns = [...new Set<SessionField>([...fields, 'updated_at', 'revision'])]
    tx.run(
      `UPDATE sessions SET ${columns.map((field) => `${columnOf(field)} = ?`).join(', ')} WHERE id = ?`,
      ...columns.map((field) => columnValue(field, after[field])),
      before.id,
    )
    rememberAlias(tx, before, after)
    this.#committed(tx, before.id, after)
    return after
  }

  #refuseTaken(tx: Tx, { id, alias, session_name, named }: SessionRecord): void {
    const taken = (sql: string, value: string | undefined) =>
      value === undefined
        ? undefined
        : tx.get(`SELECT id FROM sessions WHERE ${sql} = ? AND state <> 'closed' AND id <> ?`, value, id)
    const byAlias = taken('alias', alias)
    if (byAlias !== undefined) throw problem('name-taken', `session ${String(byAlias.id)} has the alias ${alias}`)
    const byName = taken('session_name', session_name)
    if (byName !== undefined) throw problem('name-taken', `session ${String(byName.id)} is named ${session_name}`)
    const byIdentity = taken('named', named)
    if (byIdentity !== undefined) throw problem('name-taken', `session ${String(byIdentity.id)} is ${named}`)
  }

  #tell(tx: Tx, told: Told): void {
    const { record, note, reason } = told
    const lifecycle = {
      session_id: record.id,
      template: record.template,
      from: told.from,
      to: told.to,
      ...(reason === undefined ? {} : { reason }),
      ...(record.attempts > 0 ? { attempt: record.attempts } : {}),
    }
    const draft: EventDraft = {
      type: told.type,
      actor: note.actor,
      subject: record.id,
      ...(note.message === undefined ? {} : { message: note.message }),
      payload: lifecycle,
    }
    this.#deps.log.append(tx, draft)
  }

  #tellUpdate(tx: Tx, record: SessionRecord, changed: readonly SessionField[], { actor }: Note): void {
    this.#deps.log.append(tx, {
      type: 'session.updated',
      actor,
      subject: record.id,
      payload: {
        session_id: record.id,
        template: record.template,
        changed: [...changed],
        revision: record.revision,
        session: this.#deps.view(record),
      },
    })
  }

  #committed(tx: Tx, id: string, after: SessionRecord | undefined): void {
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(after, id)
    })
  }

  #one(sql: string, value: SqlValue): SessionRecord | undefined {
    const row = this.#deps.db.get(sql, value)
    return row === undefined ? undefined : parseSession(row)
  }
}

/** A closed session that gives up its alias is not to be found by it any more: that is what it is done for. */
function rememberAlias(tx: Tx, { id, alias, state }: SessionRecord, after: SessionRecord): void {
  if (alias === undefined || alias === after.alias || state === 'closed') return
  tx.run('INSERT OR IGNORE INTO session_former_aliases (alias, session_id) VALUES (?, ?)', alias, id)
}

interface Told {
  readonly type: LifecycleType
  readonly from: SessionState | 'none'
  readonly to: SessionState | 'none'
  readonly record: SessionRecord
  readonly note: Note
  readonly reason?: string | undefined
}

/** What an edge is told as; undefined: as an update of the session. */
function eventOf(from: SessionState, to: SessionState, signal: SessionSignal): LifecycleType | undefined {
  if (signal === 'wake') return from === 'draining' ? 'session.undrained' : 'session.waking'
  if (signal === 'expire') return to === 'failed-create' ? 'session.start_failed' : 'session.asleep'
  // What had no process did not stop: it merely is no longer wanted.
  if (signal === 'rest' && from !== 'active' && from !== 'draining') return 'session.asleep'
  return EVENT_OF[signal]
}

const fieldsOf = (change: SessionChange): readonly SessionField[] =>
  Object.keys(change).filter((key): key is SessionField => key in change)

const differs = <Field extends SessionField>(field: Field, before: SessionRecord[Field], after: SessionChange[Field]) =>
  columnValue(field, before) !== columnValue(field, after)

function visible(before: SessionRecord, after: SessionRecord): readonly SessionField[] {
  return fieldsOf(after).filter((field) => !isQuiet(field) && differs(field, before[field], after[field]))
}

function filterSql({ states, template, rig }: SessionFilter): { where: string; values: SqlValue[] } {
  const parts: string[] = []
  const values: SqlValue[] = []
  if (states === undefined) parts.push("state <> 'closed'")
  else {
    parts.push(`state IN (${states.map(() => '?').join(', ') || 'NULL'})`)
    values.push(...states)
  }
  for (const [column, value] of [['template', template] as const, ['rig', rig] as const]) {
    if (value === undefined) continue
    parts.push(`${column} = ?`)
    values.push(value)
  }
  return { where: parts.join(' AND '), values }
}

/** How many sessions of a rig are not closed. */
export const sessionsOfRig = (reader: Pick<Database, 'get'>, rig: string): number =>
  Number(reader.get("SELECT count(*) AS live FROM sessions WHERE rig = ? AND state <> 'closed'", rig)?.live)
