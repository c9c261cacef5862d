/**
 * Bindings: each gives a conversation to one session, agent or mailbox (sheet 06 §2.4).
 *
 * B1  A conversation has at most one that is active; one that has expired is ended by whoever touches it next.
 * B2  Its generation grows with each new one, and no number is used again.
 * B3  Whoever it is for reads the transcript while it lasts, in its threads too; people read mail instead.
 * B4  Each change is told by one event, in its write.
 */

import type { BoundReason, UnboundReason } from '../../../contract/messaging/routing-events.ts'
import type { Tx } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { problem } from '../../../kernel/problem.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import { numberOf, type Reader } from '../base/rows.ts'
import type { RoutingDeps } from './ports.ts'
import { type BindingRow, bindingRow, type Metadata } from './rows.ts'
import { sameTarget, type Target, targetName, wireTarget } from './targets.ts'
import { leaveThreads } from './threads.ts'
import { isActive, placeOf } from './wire.ts'

export interface BindingDraft {
  readonly conversation: Conversation
  readonly target: Target
  readonly replace?: boolean
  readonly expires_at?: number
  readonly metadata?: Metadata
  readonly reason: Exclude<BoundReason, 'refreshed' | 'handoff'>
}

/** Whose bindings; `session`: those that are for it alone. */
interface BindingsOf {
  readonly transcript?: string | undefined
  readonly session?: string | undefined
  readonly mailbox?: Mailbox | undefined
}

interface Made {
  readonly binding: BindingRow
  /** It was not there before, or was another's. */
  readonly isNew: boolean
}

export class Bindings {
  readonly #deps: RoutingDeps
  #expirySet: () => void = () => {}

  constructor(deps: RoutingDeps) {
    this.#deps = deps
  }

  /** Calls after each commit that gives a binding an end. */
  onExpirySet(listener: () => void): void {
    this.#expirySet = listener
  }

  /** When the next one ends by itself. */
  nextExpiry(reader: Reader): number | undefined {
    const row = reader.get(
      'SELECT min(expires_at) AS at FROM chat_bindings WHERE ended_at IS NULL AND expires_at IS NOT NULL',
    )
    return numberOf(row?.at)
  }

  find(reader: Reader, id: string): BindingRow | undefined {
    const row = reader.get('SELECT * FROM chat_bindings WHERE id = ?', id)
    return row === undefined ? undefined : bindingRow(row)
  }

  need(reader: Reader, id: string): BindingRow {
    const found = this.find(reader, id)
    if (found === undefined) throw problem('binding-not-found', `there is no binding ${id}`)
    return found
  }

  /** How many bindings a conversation has had. */
  generation(reader: Reader, transcript: string): number {
    return Number(
      reader.get('SELECT generation FROM chat_generations WHERE transcript_id = ?', transcript)?.generation ?? 0,
    )
  }

  /** The one that counts now. */
  active(reader: Reader, transcript: string): BindingRow | undefined {
    const found = this.#unended(reader, transcript)
    return found !== undefined && isActive(found, this.#deps.clock.now()) ? found : undefined
  }

  /** The same in a write, which ends one that has expired (B1). */
  touch(tx: Tx, transcript: string): BindingRow | undefined {
    const found = this.#unended(tx, transcript)
    if (found === undefined || isActive(found, this.#deps.clock.now())) return found
    this.end(tx, found, 'expired', 'supervisor')
    return undefined
  }

  /** Those of people: where their mail is said. */
  ofHuman(reader: Reader): readonly BindingRow[] {
    const now = this.#deps.clock.now()
    return reader
      .all('SELECT * FROM chat_bindings WHERE mailbox = ? AND ended_at IS NULL ORDER BY bound_at, id', HUMAN)
      .map(bindingRow)
      .filter((row) => isActive(row, now))
  }

  bind(tx: Tx, draft: BindingDraft, actor: string): Made {
    const transcript = transcriptId(draft.conversation)
    const held = this.touch(tx, transcript)
    if (held === undefined) return { binding: this.#create(tx, draft, draft.reason, undefined, actor), isNew: true }
    if (sameTarget(held, draft.target)) return { binding: this.#refresh(tx, held, draft, actor), isNew: false }
    if (draft.replace !== true)
      throw problem(
        'binding-conflict',
        `the conversation is bound to ${targetName(held)} (${held.id}, generation ${held.generation}); \`replace\` takes it over`,
      )
    this.end(tx, held, 'handoff', actor)
    return { binding: this.#create(tx, draft, 'handoff', held.id, actor), isNew: true }
  }

  end(tx: Tx, binding: BindingRow, reason: UnboundReason, actor: string): BindingRow {
    const { store, clock } = this.#deps
    const now = clock.now()
    tx.run('UPDATE chat_bindings SET ended_at = ?, ended_reason = ? WHERE id = ?', now, reason, binding.id)
    this.#withdraw(tx, binding, actor)
    store.log.append(tx, {
      type: 'extmsg.unbound',
      actor,
      subject: targetName(binding),
      payload: {
        ...named(binding),
        reason,
      },
    })
    return { ...binding, ended_at: now, ended_reason: reason }
  }

  /** Ends those that all of this is true of; oldest first. */
  endMatching(
    tx: Tx,
    { transcript, session, mailbox }: BindingsOf,
    reason: UnboundReason,
    actor: string,
  ): readonly BindingRow[] {
    const rows = tx.all(
      `SELECT * FROM chat_bindings WHERE ended_at IS NULL AND transcript_id = coalesce(?, transcript_id)
        AND coalesce(session_id, '') = coalesce(?, session_id, '') AND (? IS NULL OR (mailbox = ? AND session_id IS NULL))
        ORDER BY bound_at, id`,
      transcript ?? null,
      session ?? null,
      mailbox ?? null,
      mailbox ?? null,
    )
    return rows.map((row) => this.end(tx, bindingRow(row), this.#reasonFor(bindingRow(row), reason), actor))
  }

  /** Of a session that is closed: those that are for it alone. */
  endOfSession(tx: Tx, session: string, actor: string): void {
    const rows = tx.all('SELECT * FROM chat_bindings WHERE ended_at IS NULL AND session_id = ?', session)
    for (const row of rows) this.end(tx, bindingRow(row), 'session_closed', actor)
  }

  /** Ends what has expired, as many as `limit`. */
  endExpired(tx: Tx, limit: number): void {
    const now = this.#deps.clock.now()
    const rows = tx.all(
      'SELECT * FROM chat_bindings WHERE ended_at IS NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?',
      now,
      limit,
    )
    for (const row of rows) this.end(tx, bindingRow(row), 'expired', 'supervisor')
  }

  #reasonFor(row: BindingRow, reason: UnboundReason): UnboundReason {
    return isActive(row, this.#deps.clock.now()) ? reason : 'expired'
  }

  #unended(reader: Reader, transcript: string): BindingRow | undefined {
    const row = reader.get('SELECT * FROM chat_bindings WHERE transcript_id = ? AND ended_at IS NULL', transcript)
    return row === undefined ? undefined : bindingRow(row)
  }

  #create(tx: Tx, draft: BindingDraft, reason: BoundReason, replaced: string | undefined, actor: string): BindingRow {
    const { conversation, target, metadata = {} } = draft
    const { clock, newId, transcripts } = this.#deps
    transcripts.ensure(tx, conversation)
    const binding: BindingRow = {
      id: newId('bd'),
      transcript_id: transcriptId(conversation),
      conversation,
      generation: this.#nextGeneration(tx, transcriptId(conversation)),
      ...target,
      metadata,
      bound_at: clock.now(),
      ...given('expires_at', draft.expires_at),
    }
    tx.run(
      `INSERT INTO chat_bindings (id, transcript_id, conversation_json, generation, mailbox, session_id, session_name,
        metadata_json, bound_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      binding.id,
      binding.transcript_id,
      JSON.stringify(conversation),
      binding.generation,
      binding.mailbox,
      binding.session_id ?? null,
      binding.session_name ?? null,
      JSON.stringify(metadata),
      binding.bound_at,
      binding.expires_at ?? null,
    )
    this.#admit(tx, binding, actor)
    this.#tellBound(tx, binding, reason, replaced, actor)
    return binding
  }

  /** Keys of its metadata are added, never taken; its end is as the request says. */
  #refresh(tx: Tx, held: BindingRow, { metadata = {}, expires_at: expires }: BindingDraft, actor: string): BindingRow {
    const { expires_at: before, ...rest } = held
    const binding: BindingRow = {
      ...rest,
      metadata: { ...held.metadata, ...metadata },
      ...given('expires_at', expires),
    }
    this.#admit(tx, binding, actor)
    const changed = before !== expires || Object.entries(metadata).some(([key, value]) => held.metadata[key] !== value)
    if (!changed) return binding
    tx.run(
      'UPDATE chat_bindings SET metadata_json = ?, expires_at = ? WHERE id = ?',
      JSON.stringify(binding.metadata),
      expires ?? null,
      binding.id,
    )
    this.#tellBound(tx, binding, 'refreshed', undefined, actor)
    return binding
  }

  #admit(tx: Tx, { transcript_id: transcript, mailbox }: BindingRow, actor: string): void {
    if (mailbox !== HUMAN) this.#deps.members.join(tx, transcript, mailbox, { owner: 'binding', actor })
  }

  #withdraw(tx: Tx, { transcript_id: transcript, conversation, mailbox }: BindingRow, actor: string): void {
    if (mailbox === HUMAN) return
    const { members } = this.#deps
    members.leave(tx, transcript, mailbox, 'binding', actor)
    leaveThreads(tx, members, { conversation, mailbox, owner: 'binding' }, actor)
  }

  #nextGeneration(tx: Tx, transcript: string): number {
    const row = tx.get(
      `INSERT INTO chat_generations (transcript_id, generation) VALUES (?, 1)
        ON CONFLICT DO UPDATE SET generation = generation + 1 RETURNING generation`,
      transcript,
    )
    return Number(row?.generation)
  }

  #tellBound(tx: Tx, binding: BindingRow, reason: BoundReason, replaced: string | undefined, actor: string): void {
    if (binding.expires_at !== undefined) tx.afterCommit(() => this.#expirySet())
    this.#deps.store.log.append(tx, {
      type: 'extmsg.bound',
      actor,
      subject: targetName(binding),
      payload: {
        ...named(binding),
        reason,
        ...given('replaced_binding_id', replaced),
      },
    })
  }
}

/** Which one it is, in an event. */
const named = (binding: BindingRow) => ({
  binding_id: binding.id,
  binding_generation: binding.generation,
  ...placeOf(binding.transcript_id, binding.conversation),
  ...eventTarget(binding),
})

/** Who it is for, in an event. */
export function eventTarget(target: Target): { session_id?: string; agent_name?: string; mailbox?: string } {
  const { session_id, agent_name, mailbox } = wireTarget(target)
  return { ...given('session_id', session_id), ...given('agent_name', agent_name), ...given('mailbox', mailbox) }
}
