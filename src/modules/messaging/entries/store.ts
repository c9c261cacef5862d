/**
 * Transcripts of conversations, and what was said in them.
 *
 * T1  Sequences of a transcript are 1, 2, 3 … in the order of the commits, and none is used twice.
 * T2  Of inbound entries with one `dedupe` there is one.
 * T3  Who listens hears of an entry, and of the end of its delivery, after the commit.
 * T4  What is before `earliest_sequence`, or of a transcript that was deleted, is gone for everybody, also while its rows
 *     are still there.
 */
import { cut } from '../../../contract/base/text.ts'
import type { EntryDeliveryStatus } from '../../../contract/messaging/entries.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, SqlValue, Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import { spaced } from '../../../messaging/search.ts'
import type { Reader } from '../base/rows.ts'
import { attach } from './attached.ts'
import { type EntryDraft, type EntryRow, entryOf, type TranscriptRow, transcriptOf } from './rows.ts'

export interface TranscriptsDeps {
  readonly db: Database
  readonly clock: Clock
}

/** What happened to a transcript that somebody follows. */
export type TranscriptChange =
  | { readonly kind: 'entry'; readonly entry: EntryRow }
  | { readonly kind: 'delivery'; readonly sequence: number; readonly status: EntryDeliveryStatus }
  | { readonly kind: 'deleted' }

/** T4. */
const ENTRIES = `SELECT e.* FROM transcript_entries AS e
  JOIN transcripts AS t ON t.id = e.transcript_id AND e.sequence >= t.earliest_sequence`
const MAX_PAGE_CHARACTERS = 512 * 1024
const NEAR_ENTRIES = 1_000

type Listener = (change: TranscriptChange) => void

export class Transcripts {
  readonly #db: Database
  readonly #clock: Clock
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor({ db, clock }: TranscriptsDeps) {
    this.#db = db
    this.#clock = clock
  }

  /** That of a conversation, which is made where there is none. */
  ensure(tx: Tx, conversation: Conversation): TranscriptRow {
    const id = transcriptId(conversation)
    const known = this.find(id, tx)
    if (known !== undefined) return known
    const before = tx.get('SELECT next_sequence FROM transcript_tombstones WHERE id = ?', id)
    const next = Number(before?.next_sequence ?? 1)
    if (before !== undefined) tx.run('DELETE FROM transcript_tombstones WHERE id = ?', id)
    insert(tx, 'transcripts', {
      id,
      ...conversation,
      parent_conversation_id: conversation.parent_conversation_id ?? '',
      next_sequence: next,
      earliest_sequence: next,
      created_at: this.#clock.now(),
    })
    return this.need(id, tx)
  }

  find(id: string, reader: Reader = this.#db): TranscriptRow | undefined {
    const row = reader.get('SELECT * FROM transcripts WHERE id = ?', id)
    return row === undefined ? undefined : transcriptOf(row)
  }

  /** 404 where there is none. */
  need(id: string, reader: Reader = this.#db): TranscriptRow {
    const found = this.find(id, reader)
    if (found === undefined) throw notFound(id)
    return found
  }

  /** Adds what was said at the end. Who gives a `dedupe` has asked `byDedupe` in this write. */
  append(tx: Tx, id: string, draft: EntryDraft): EntryRow {
    const now = this.#clock.now()
    const { sequence, earliest } = nextIn(tx, id, now)
    if (draft.dedupe !== undefined && earliest > 1) removeHidden(tx, id, draft.dedupe, earliest)
    const { deliveryStatus: status } = draft
    const entry: EntryRow = {
      transcriptId: id,
      sequence,
      kind: draft.kind,
      provenance: draft.provenance ?? 'live',
      providerMessageId: draft.providerMessageId,
      actor: draft.actor,
      text: draft.text,
      explicitTarget: draft.explicitTarget,
      replyTo: draft.replyTo,
      attachments: attach(tx, id, sequence, draft.attachments ?? []),
      metadata: draft.metadata ?? {},
      sessionId: draft.sessionId,
      mailbox: draft.mailbox,
      deliveryId: draft.deliveryId,
      deliveryStatus: status,
      root: draft.root ?? this.#rootAt(tx, id, sequence, draft),
      receivedAt: draft.receivedAt,
      createdAt: now,
    }
    insertEntry(tx, entry, draft.dedupe)
    tx.afterCommit(() => {
      this.#tellOf(id, sequence)
      if (status !== undefined && status !== 'pending') this.#tell(id, { kind: 'delivery', sequence, status })
    })
    return entry
  }

  /** The delivery of an outbound entry has come to an end, or begins anew; nothing where the entry is gone. */
  settle(
    tx: Tx,
    id: string,
    sequence: number,
    { status, providerMessageId }: { readonly status: EntryDeliveryStatus; readonly providerMessageId?: string },
  ): EntryRow | undefined {
    const row = tx.get(
      `UPDATE transcript_entries SET delivery_status = ?, provider_message_id = coalesce(?, provider_message_id)
       WHERE transcript_id = ? AND sequence = ? AND sequence >= (SELECT earliest_sequence FROM transcripts WHERE id = ?)
       RETURNING *`,
      status,
      providerMessageId ?? null,
      id,
      sequence,
      id,
    )
    if (row === undefined) return undefined
    tx.afterCommit(() => this.#tell(id, { kind: 'delivery', sequence, status }))
    return entryOf(row)
  }

  entry(id: string, sequence: number, reader: Reader = this.#db): EntryRow | undefined {
    const row = reader.get(`${ENTRIES} WHERE e.transcript_id = ? AND e.sequence = ?`, id, sequence)
    return row === undefined ? undefined : entryOf(row)
  }

  /** At most `limit` of those after one sequence, ascending. */
  entriesAfter(id: string, after: number, limit: number, reader: Reader = this.#db): readonly EntryRow[] {
    const sql = `${ENTRIES} WHERE e.transcript_id = ? AND e.sequence > ? ORDER BY e.sequence LIMIT ?`
    return reader.all(sql, id, after, limit).map(entryOf)
  }

  /** The same up to as many bytes of text as a page may have; undefined where some of it is gone. */
  pageAfter(id: string, after: number, limit: number): readonly EntryRow[] | undefined {
    const transcript = this.find(id)
    if (transcript === undefined || after < transcript.earliest - 1) return undefined
    const entries: EntryRow[] = []
    let characters = 0
    for (let at = after + 1; at < transcript.next && entries.length < limit && characters < MAX_PAGE_CHARACTERS; at++) {
      const entry = this.entry(id, at)
      if (entry === undefined) return undefined
      entries.push(entry)
      characters += entry.text.length
    }
    return entries
  }

  /** Sequences of the newest that went out, up to one. */
  newestOutbound(id: string, upTo: number, limit: number): readonly number[] {
    const sql = `SELECT sequence FROM transcript_entries WHERE transcript_id = ? AND sequence <= ? AND kind = 'outbound'
      AND sequence > ? ORDER BY sequence DESC LIMIT ?`
    // Only what is near is looked through: nobody waits for the end of a delivery of long ago.
    return this.#db.all(sql, id, upTo, upTo - NEAR_ENTRIES, limit).map((row) => Number(row.sequence))
  }

  /** The entry that has this name already, and what was answered then. */
  byDedupe(tx: Tx, id: string, dedupe: string): { readonly entry: EntryRow; readonly result: unknown } | undefined {
    const row = tx.get(`${ENTRIES} WHERE e.transcript_id = ? AND e.dedupe = ?`, id, dedupe)
    if (row === undefined) return undefined
    return { entry: entryOf(row), result: row.result_json === null ? undefined : JSON.parse(String(row.result_json)) }
  }

  /** What a repetition of an inbound message is answered. */
  keepResult(tx: Tx, id: string, sequence: number, result: object): void {
    const text = JSON.stringify(result)
    tx.run('UPDATE transcript_entries SET result_json = ? WHERE transcript_id = ? AND sequence = ?', text, id, sequence)
  }

  /** Sequence of the message from outside that what is said now comes of: the newest of a person. 0: none. */
  rootOf(tx: Tx, id: string): number {
    const row = tx.get(
      `SELECT root FROM transcript_entries WHERE transcript_id = ? AND kind = 'inbound' AND provenance = 'live'
       ORDER BY sequence DESC LIMIT 1`,
      id,
    )
    return Number(row?.root ?? 0)
  }

  /** A bot begins nothing: what it says may be an answer to us. */
  #rootAt(tx: Tx, id: string, sequence: number, { kind, actor }: EntryDraft): number {
    if (kind === 'outbound') return 0
    return actor.is_bot ? this.rootOf(tx, id) : sequence
  }

  /** Hears of what happens to a transcript; the returned function ends it. */
  onChange(id: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id)
    }
  }

  /** It goes with what was said in it; its rows follow. How many entries there were. */
  delete(tx: Tx, { id, next, earliest }: TranscriptRow): number {
    tx.run('DELETE FROM transcripts WHERE id = ?', id)
    tx.run('DELETE FROM transcript_members WHERE transcript_id = ?', id)
    tx.run(
      'INSERT OR REPLACE INTO transcript_tombstones (id, next_sequence, deleted_at) VALUES (?, ?, ?)',
      id,
      next,
      this.#clock.now(),
    )
    tx.afterCommit(() => this.#tell(id, { kind: 'deleted' }))
    return next - earliest
  }

  /** As it is by now: what was changed in the same write is in it. */
  #tellOf(id: string, sequence: number): void {
    if (!this.#listeners.has(id)) return
    const entry = this.entry(id, sequence)
    if (entry !== undefined) this.#tell(id, { kind: 'entry', entry })
  }

  #tell(id: string, change: TranscriptChange): void {
    for (const listener of this.#listeners.get(id) ?? []) listener(change)
  }
}

const notFound = (id: string) => problem('transcript-not-found', `transcript not found: ${cut(id, 80)}`)

/** The place of one more entry; 404 where there is no transcript. */
function nextIn(tx: Tx, id: string, now: number): { readonly sequence: number; readonly earliest: number } {
  const row = tx.get(
    `UPDATE transcripts SET next_sequence = next_sequence + 1, last_entry_at = ? WHERE id = ?
     RETURNING next_sequence - 1 AS sequence, earliest_sequence AS earliest`,
    now,
    id,
  )
  if (row === undefined) throw notFound(id)
  return { sequence: Number(row.sequence), earliest: Number(row.earliest) }
}

function insertEntry(tx: Tx, entry: EntryRow, dedupe: string | undefined): void {
  const words = spaced(entry.text)
  insert(tx, 'transcript_entries', {
    transcript_id: entry.transcriptId,
    sequence: entry.sequence,
    kind: entry.kind,
    provenance: entry.provenance,
    provider_message_id: entry.providerMessageId,
    actor_id: entry.actor.id,
    actor_name: entry.actor.display_name,
    actor_is_bot: entry.actor.is_bot ? 1 : 0,
    text: entry.text,
    words: words === entry.text ? undefined : words,
    explicit_target: entry.explicitTarget,
    reply_to_message_id: entry.replyTo,
    attachments_json: JSON.stringify(entry.attachments),
    metadata_json: JSON.stringify(entry.metadata),
    source_session_id: entry.sessionId,
    source_mailbox: entry.mailbox,
    delivery_id: entry.deliveryId,
    delivery_status: entry.deliveryStatus,
    root: entry.root,
    dedupe,
    received_at: entry.receivedAt,
    created_at: entry.createdAt,
  })
  tx.run(
    'INSERT INTO transcript_search (rowid, tag, text) VALUES (last_insert_rowid(), ?, ?)',
    entry.transcriptId.slice('cv-'.length),
    words,
  )
}

/** An entry that is out of sight does not keep its name. */
function removeHidden(tx: Tx, id: string, dedupe: string, earliest: number): void {
  const sql = 'DELETE FROM transcript_entries WHERE transcript_id = ? AND dedupe = ? AND sequence < ?'
  tx.run(sql, id, dedupe, earliest)
}

function insert(tx: Tx, table: string, fields: Readonly<Record<string, SqlValue | undefined>>): void {
  const names = Object.keys(fields)
  tx.run(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    ...Object.values(fields).map((value) => value ?? null),
  )
}
