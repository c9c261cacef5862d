/**
 * Groups: conversations that several sessions share, each called by a handle (sheet 06 §2.5).
 *
 * G1  A conversation has at most one group, and a handle of a group means at most one participant.
 * G2  Whoever has a handle reads the transcript, in its threads too, until the last of its handles there is gone.
 * G3  What a request does not say stays as it is; nothing that changed nothing is told.
 */

import type { FanoutPolicy, FanoutPolicyPatch } from '../../../contract/messaging/participants.ts'
import type { RemovedReason } from '../../../contract/messaging/routing-events.ts'
import type { Tx } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import type { Reader } from '../base/rows.ts'
import { eventTarget } from './bindings.ts'
import { normalHandle } from './handles.ts'
import type { RoutingDeps } from './ports.ts'
import { type GroupRow, groupRow, type Metadata, type ParticipantRow, participantRow } from './rows.ts'
import { sameTarget, type Target } from './targets.ts'
import { leaveThreads } from './threads.ts'
import { placeOf } from './wire.ts'

/** As told to everybody, with bounds that end an argument among agents. */
export const DEFAULT_FANOUT: FanoutPolicy = {
  enabled: true,
  allow_untargeted_publication: true,
  max_peer_triggered_publishes: 3,
  max_total_peer_deliveries: 20,
}

export interface GroupDraft {
  readonly conversation: Conversation
  readonly default_handle?: string | undefined
  readonly fanout?: FanoutPolicyPatch | undefined
  readonly metadata?: Metadata | undefined
}

/** Null clears a field, or a key of the metadata. */
export interface GroupChange {
  readonly default_handle?: string | null | undefined
  readonly last_addressed_handle?: string | null | undefined
  readonly fanout?: FanoutPolicyPatch | null | undefined
  readonly metadata?: Readonly<Record<string, string | null>> | null | undefined
}

export interface ParticipantDraft {
  readonly group_id: string
  readonly handle: string
  readonly target: Target
  readonly public?: boolean | undefined
  readonly metadata?: Metadata | undefined
}

export class Groups {
  readonly #deps: RoutingDeps

  constructor(deps: RoutingDeps) {
    this.#deps = deps
  }

  of(reader: Reader, transcript: string): GroupRow | undefined {
    const row = reader.get('SELECT * FROM chat_groups WHERE transcript_id = ?', transcript)
    return row === undefined ? undefined : groupRow(row)
  }

  need(reader: Reader, id: string): GroupRow {
    const row = reader.get('SELECT * FROM chat_groups WHERE id = ?', id)
    if (row === undefined) throw problem('extmsg-group-not-found', `there is no group ${id}`)
    return groupRow(row)
  }

  /** Makes the group of a conversation, or gives the one that it has what the request says. */
  ensure(tx: Tx, draft: GroupDraft, actor: string): { readonly group: GroupRow; readonly isNew: boolean } {
    const { conversation, default_handle: handle, fanout, metadata } = draft
    const held = this.of(tx, transcriptId(conversation))
    if (held === undefined) return { group: this.#create(tx, draft, actor), isNew: true }
    // Who comes later may be named before; where some are there already, another name is a mistake.
    if (handle !== undefined && normalHandle(handle) !== held.default_handle && this.#hasParticipants(tx, held.id))
      this.#refuseNobody(tx, held.id, 'default_handle', handle)
    return { group: this.change(tx, held, { default_handle: handle, fanout, metadata }, actor), isNew: false }
  }

  /** What was said about it in a request: a handle has to be somebody's. */
  patch(tx: Tx, group: GroupRow, change: GroupChange, actor: string): GroupRow {
    for (const field of ['default_handle', 'last_addressed_handle'] as const) {
      const handle = change[field]
      if (typeof handle === 'string') this.#refuseNobody(tx, group.id, field, handle)
    }
    return this.change(tx, group, change, actor)
  }

  #refuseNobody(tx: Tx, group: string, field: string, handle: string): void {
    if (!this.isTaken(tx, group, normalHandle(handle)))
      throw invalidField(`body.${field}`, 'is the handle of no participant of the group', handle)
  }

  #hasParticipants(reader: Reader, group: string): boolean {
    const sql = 'SELECT 1 FROM chat_participants WHERE group_id = ? AND removed_at IS NULL LIMIT 1'
    return reader.get(sql, group) !== undefined
  }

  change(tx: Tx, group: GroupRow, change: GroupChange, actor: string): GroupRow {
    const { default_handle, last_addressed_handle, ...rest } = group
    const after: GroupRow = {
      ...rest,
      ...given('default_handle', merged(default_handle, change.default_handle)),
      ...given('last_addressed_handle', merged(last_addressed_handle, change.last_addressed_handle)),
      fanout: change.fanout === null ? DEFAULT_FANOUT : { ...group.fanout, ...change.fanout },
      metadata: mergedMetadata(group.metadata, change.metadata),
    }
    if (textOfGroup(after) === textOfGroup(group)) return group
    return this.#save(tx, { ...after, updated_at: this.#deps.clock.now() }, actor)
  }

  /** Who is called by an explicit target is meant from now on where nobody is. */
  remember(tx: Tx, group: GroupRow, handle: string, actor: string): GroupRow {
    return this.change(tx, group, { last_addressed_handle: handle }, actor)
  }

  delete(tx: Tx, group: GroupRow, actor: string): void {
    for (const one of this.participants(tx, group.id)) this.remove(tx, one, 'group_deleted', actor)
    tx.run('DELETE FROM chat_groups WHERE id = ?', group.id)
    this.#deps.store.log.append(tx, {
      type: 'extmsg.group_deleted',
      actor,
      subject: group.id,
      payload: { group_id: group.id, ...placeOf(group.transcript_id, group.conversation) },
    })
  }

  // --- Participants --------------------------------------------------------------------------------------------------

  participants(reader: Reader, group: string): readonly ParticipantRow[] {
    return reader
      .all('SELECT * FROM chat_participants WHERE group_id = ? AND removed_at IS NULL ORDER BY created_at, id', group)
      .map(participantRow)
  }

  participant(reader: Reader, group: string, handle: string): ParticipantRow | undefined {
    const row = reader.get(
      'SELECT * FROM chat_participants WHERE group_id = ? AND handle = ? AND removed_at IS NULL',
      group,
      handle,
    )
    return row === undefined ? undefined : participantRow(row)
  }

  isTaken(reader: Reader, group: string, handle: string): boolean {
    return this.participant(reader, group, handle) !== undefined
  }

  needParticipant(reader: Reader, id: string): ParticipantRow {
    const row = reader.get('SELECT * FROM chat_participants WHERE id = ?', id)
    if (row === undefined) throw problem('participant-not-found', `there is no participant ${id}`)
    return participantRow(row)
  }

  /** Gives somebody a handle, which another may have had. */
  upsert(
    tx: Tx,
    draft: ParticipantDraft,
    actor: string,
  ): { readonly participant: ParticipantRow; readonly isNew: boolean } {
    const group = this.need(tx, draft.group_id)
    const handle = normalHandle(draft.handle)
    if (handle === '') throw invalidField('body.handle', 'has nothing but blanks', draft.handle)
    const held = this.participant(tx, group.id, handle)
    if (held === undefined) return { participant: this.#join(tx, group, handle, draft, actor), isNew: true }
    return { participant: this.#move(tx, held, draft, actor), isNew: false }
  }

  remove(tx: Tx, participant: ParticipantRow, reason: RemovedReason, actor: string): void {
    if (participant.removed_at !== undefined) return
    const { clock } = this.#deps
    const now = clock.now()
    tx.run('UPDATE chat_participants SET removed_at = ?, updated_at = ? WHERE id = ?', now, now, participant.id)
    this.#withdraw(tx, participant, actor)
    this.#deps.store.log.append(tx, {
      type: 'extmsg.participant_removed',
      actor,
      subject: participant.id,
      payload: { ...eventOf(participant), reason },
    })
  }

  /** Of a session that is closed: those that are this session alone. */
  removeOfSession(tx: Tx, session: string, actor: string): void {
    const rows = tx.all('SELECT * FROM chat_participants WHERE session_id = ? AND removed_at IS NULL', session)
    for (const row of rows) this.remove(tx, participantRow(row), 'session_closed', actor)
  }

  #join(tx: Tx, group: GroupRow, handle: string, draft: ParticipantDraft, actor: string): ParticipantRow {
    const { newId, clock } = this.#deps
    const now = clock.now()
    const participant: ParticipantRow = {
      id: newId('pt'),
      group_id: group.id,
      transcript_id: group.transcript_id,
      handle,
      ...draft.target,
      public: draft.public ?? false,
      metadata: draft.metadata ?? {},
      created_at: now,
      updated_at: now,
    }
    tx.run(
      `INSERT INTO chat_participants (id, group_id, transcript_id, handle, mailbox, session_id, session_name, public,
        metadata_json, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      participant.id,
      group.id,
      group.transcript_id,
      handle,
      participant.mailbox,
      participant.session_id ?? null,
      participant.session_name ?? null,
      participant.public ? 1 : 0,
      JSON.stringify(participant.metadata),
      now,
      now,
    )
    this.#admit(tx, participant, actor)
    this.#tell(tx, participant, actor)
    return participant
  }

  #move(tx: Tx, held: ParticipantRow, draft: ParticipantDraft, actor: string): ParticipantRow {
    const { session_id: _, session_name: __, ...rest } = held
    const after: ParticipantRow = {
      ...rest,
      ...draft.target,
      public: draft.public ?? held.public,
      metadata: { ...held.metadata, ...draft.metadata },
      updated_at: this.#deps.clock.now(),
    }
    const stays = sameTarget(held, after)
    if (stays && after.public === held.public && JSON.stringify(after.metadata) === JSON.stringify(held.metadata))
      return held
    tx.run(
      'UPDATE chat_participants SET mailbox = ?, session_id = ?, session_name = ?, public = ?, metadata_json = ?, updated_at = ? WHERE id = ?',
      after.mailbox,
      after.session_id ?? null,
      after.session_name ?? null,
      after.public ? 1 : 0,
      JSON.stringify(after.metadata),
      after.updated_at,
      held.id,
    )
    if (!stays) this.#withdraw(tx, held, actor)
    this.#admit(tx, after, actor)
    this.#tell(tx, after, actor)
    return after
  }

  #admit(tx: Tx, { transcript_id: transcript, mailbox }: ParticipantRow, actor: string): void {
    this.#deps.members.join(tx, transcript, mailbox, { owner: 'group', actor })
  }

  /** G2. */
  #withdraw(tx: Tx, { group_id: id, transcript_id: transcript, mailbox }: ParticipantRow, actor: string): void {
    const other = tx.get(
      'SELECT 1 FROM chat_participants WHERE group_id = ? AND mailbox = ? AND removed_at IS NULL LIMIT 1',
      id,
      mailbox,
    )
    if (other !== undefined) return
    const { members } = this.#deps
    members.leave(tx, transcript, mailbox, 'group', actor)
    const { conversation } = this.need(tx, id)
    leaveThreads(tx, members, { conversation, mailbox, owner: 'group' }, actor)
  }

  #create(
    tx: Tx,
    { conversation, default_handle: handle, fanout, metadata = {} }: GroupDraft,
    actor: string,
  ): GroupRow {
    const { newId, clock, transcripts } = this.#deps
    transcripts.ensure(tx, conversation)
    const now = clock.now()
    const group: GroupRow = {
      id: newId('gr'),
      transcript_id: transcriptId(conversation),
      conversation,
      mode: 'launcher',
      ...given('default_handle', merged(undefined, handle)),
      fanout: { ...DEFAULT_FANOUT, ...fanout },
      metadata,
      created_at: now,
      updated_at: now,
    }
    tx.run(
      `INSERT INTO chat_groups (id, transcript_id, conversation_json, mode, default_handle, fanout_json, metadata_json,
        created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      group.id,
      group.transcript_id,
      JSON.stringify(conversation),
      group.mode,
      group.default_handle ?? null,
      JSON.stringify(group.fanout),
      JSON.stringify(metadata),
      now,
      now,
    )
    this.#tellGroup(tx, group, 'extmsg.group_created', actor)
    return group
  }

  #save(tx: Tx, group: GroupRow, actor: string): GroupRow {
    tx.run(
      'UPDATE chat_groups SET default_handle = ?, last_addressed_handle = ?, fanout_json = ?, metadata_json = ?, updated_at = ? WHERE id = ?',
      group.default_handle ?? null,
      group.last_addressed_handle ?? null,
      JSON.stringify(group.fanout),
      JSON.stringify(group.metadata),
      group.updated_at,
      group.id,
    )
    this.#tellGroup(tx, group, 'extmsg.group_updated', actor)
    return group
  }

  #tellGroup(tx: Tx, group: GroupRow, type: 'extmsg.group_created' | 'extmsg.group_updated', actor: string): void {
    this.#deps.store.log.append(tx, {
      type,
      actor,
      subject: group.id,
      payload: {
        group_id: group.id,
        ...placeOf(group.transcript_id, group.conversation),
        mode: group.mode,
        ...given('default_handle', group.default_handle),
        ...given('last_addressed_handle', group.last_addressed_handle),
        fanout_policy: group.fanout,
      },
    })
  }

  #tell(tx: Tx, participant: ParticipantRow, actor: string): void {
    const type = 'extmsg.participant_upserted'
    this.#deps.store.log.append(tx, { type, actor, subject: participant.id, payload: eventOf(participant) })
  }
}

const eventOf = (participant: ParticipantRow) => {
  const { session_id, agent_name } = eventTarget(participant)
  return {
    participant_id: participant.id,
    group_id: participant.group_id,
    transcript_id: participant.transcript_id,
    handle: participant.handle,
    ...given('session_id', session_id),
    ...given('agent_name', agent_name),
  }
}

const textOfGroup = ({ default_handle: byDefault, last_addressed_handle: last, fanout, metadata }: GroupRow): string =>
  JSON.stringify([byDefault, last, fanout, metadata])

/** A handle as a change says it: null and blanks clear it. */
function merged(before: string | undefined, change: string | null | undefined): string | undefined {
  if (change === undefined) return before
  const handle = normalHandle(change ?? '')
  return handle === '' ? undefined : handle
}

function mergedMetadata(before: Metadata, change: GroupChange['metadata']): Metadata {
  if (change === undefined) return before
  if (change === null) return {}
  const after = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(change)) {
    if (value === null) after.delete(key)
    else after.set(key, value)
  }
  return Object.fromEntries(after)
}
