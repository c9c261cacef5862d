/**
 * Who reads a transcript, and up to where: a reading position and a list of whom to tell, no access control (decision 155).
 * A membership has owners, and ends with the last of them (sheet 06 §2.7).
 */

import type { BackfillPolicy, MembershipOwner } from '../../../contract/messaging/memberships.ts'
import { BACKFILL_POLICIES, MEMBERSHIP_OWNERS } from '../../../contract/messaging/memberships.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { given } from '../../../kernel/present.ts'
import { type Address, type Mailbox, parseMailbox } from '../../../messaging/address.ts'
import type { Reader } from '../base/rows.ts'

export interface MembershipRow {
  readonly transcriptId: string
  readonly mailbox: Mailbox
  readonly owners: readonly MembershipOwner[]
  /** Which applies: everything for a group, what was asked for by hand, else from the joining on. */
  readonly policy: BackfillPolicy
  readonly manual: BackfillPolicy | undefined
  readonly joinedSequence: number
  readonly lastRead: number
  readonly metadata: Readonly<Record<string, string>>
  readonly joinedAt: number
}

export interface Joining {
  readonly owner: MembershipOwner
  /** Only by hand; `all` where absent. */
  readonly policy?: BackfillPolicy
  readonly metadata?: Readonly<Record<string, string>>
  readonly actor: string
}

interface MembersDeps {
  readonly db: Database
  readonly log: Pick<EventLog, 'append'>
  readonly clock: Clock
  readonly addressOf: (mailbox: Mailbox) => Address
  /** Somebody reads a transcript no longer; after the commit. */
  readonly left: (transcriptId: string, mailbox: Mailbox) => void
}

export class Members {
  readonly #deps: MembersDeps

  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  of(transcriptId: string, reader: Reader = this.#deps.db): readonly MembershipRow[] {
    return reader
      .all('SELECT * FROM transcript_members WHERE transcript_id = ? ORDER BY mailbox', transcriptId)
      .map(membershipOf)
  }

  find(transcriptId: string, mailbox: Mailbox, reader: Reader = this.#deps.db): MembershipRow | undefined {
    const row = reader.get(
      'SELECT * FROM transcript_members WHERE transcript_id = ? AND mailbox = ?',
      transcriptId,
      mailbox,
    )
    return row === undefined ? undefined : membershipOf(row)
  }

  /** Transcripts that somebody reads. */
  transcriptsOf(mailbox: Mailbox, reader: Reader = this.#deps.db): readonly string[] {
    return reader
      .all('SELECT transcript_id FROM transcript_members WHERE mailbox = ? ORDER BY transcript_id', mailbox)
      .map((row) => String(row.transcript_id))
  }

  /** One owner more; who reads it already keeps place and time. Tells of what has changed. */
  join(tx: Tx, transcriptId: string, mailbox: Mailbox, { owner, policy, metadata, actor }: Joining): MembershipRow {
    const before = this.find(transcriptId, mailbox, tx)
    const head =
      Number(tx.get('SELECT next_sequence FROM transcripts WHERE id = ?', transcriptId)?.next_sequence ?? 1) - 1
    const owners = new Set([...(before?.owners ?? []), owner])
    const manual = owner === 'manual' ? (policy ?? 'all') : undefined
    tx.run(
      `INSERT INTO transcript_members (transcript_id, mailbox, owners, manual_policy, joined_sequence, last_read_sequence,
         metadata_json, joined_at) VALUES (?, ?, ?, ?, ?, 0, ?, ?)
       ON CONFLICT DO UPDATE SET owners = excluded.owners, metadata_json = excluded.metadata_json,
         manual_policy = coalesce(excluded.manual_policy, manual_policy)`,
      transcriptId,
      mailbox,
      lettersOf(owners),
      manual ?? null,
      head,
      JSON.stringify({ ...before?.metadata, ...metadata }),
      this.#deps.clock.now(),
    )
    const after = this.find(transcriptId, mailbox, tx)
    if (after === undefined) throw new Error('the store lost a membership')
    if (before === undefined) this.#tell(tx, after, 'joined', actor)
    else if (JSON.stringify(before) !== JSON.stringify(after)) this.#tell(tx, after, 'changed', actor)
    return after
  }

  /** One owner less; false where it was none. */
  leave(tx: Tx, transcriptId: string, mailbox: Mailbox, owner: MembershipOwner, actor: string): boolean {
    const before = this.find(transcriptId, mailbox, tx)
    if (before === undefined || !before.owners.includes(owner)) return false
    const owners = before.owners.filter((one) => one !== owner)
    if (owners.length === 0) {
      tx.run('DELETE FROM transcript_members WHERE transcript_id = ? AND mailbox = ?', transcriptId, mailbox)
      this.#tell(tx, { ...before, owners: [] }, 'left', actor)
      return true
    }
    tx.run(
      `UPDATE transcript_members SET owners = ?, manual_policy = CASE WHEN ? THEN NULL ELSE manual_policy END
       WHERE transcript_id = ? AND mailbox = ?`,
      lettersOf(new Set(owners)),
      owner === 'manual' ? 1 : 0,
      transcriptId,
      mailbox,
    )
    this.#tell(tx, { ...before, owners }, 'changed', actor)
    return true
  }

  /** All memberships of somebody end, whoever owns them. */
  leaveAll(tx: Tx, mailbox: Mailbox, actor: string): void {
    for (const transcriptId of this.transcriptsOf(mailbox, tx)) {
      const before = this.find(transcriptId, mailbox, tx)
      tx.run('DELETE FROM transcript_members WHERE transcript_id = ? AND mailbox = ?', transcriptId, mailbox)
      if (before !== undefined) this.#tell(tx, { ...before, owners: [] }, 'left', actor)
    }
  }

  /** Read up to there; never back. Undefined: reads it not. */
  ack(tx: Tx, transcriptId: string, mailbox: Mailbox, sequence: number): number | undefined {
    tx.run(
      'UPDATE transcript_members SET last_read_sequence = max(last_read_sequence, ?) WHERE transcript_id = ? AND mailbox = ?',
      sequence,
      transcriptId,
      mailbox,
    )
    return this.find(transcriptId, mailbox, tx)?.lastRead
  }

  #tell(tx: Tx, row: MembershipRow, change: 'joined' | 'changed' | 'left', actor: string): void {
    const { transcriptId, mailbox } = row
    if (change === 'left')
      tx.afterCommit(() => {
        // Somebody may have joined it again in the same commit.
        if (this.find(transcriptId, mailbox) === undefined) this.#deps.left(transcriptId, mailbox)
      })
    const { display, session_id } = this.#deps.addressOf(row.mailbox)
    this.#deps.log.append(tx, {
      type: 'extmsg.membership_changed',
      actor,
      subject: row.transcriptId,
      payload: {
        transcript_id: row.transcriptId,
        mailbox: row.mailbox,
        name: display,
        ...given('session_id', session_id),
        change,
        owners: [...row.owners],
        backfill_policy: row.policy,
      },
    })
  }
}

const LETTERS = { manual: 'm', binding: 'b', group: 'g' } as const satisfies Record<MembershipOwner, string>

const lettersOf = (owners: ReadonlySet<MembershipOwner>): string =>
  MEMBERSHIP_OWNERS.filter((owner) => owners.has(owner))
    .map((owner) => LETTERS[owner])
    .join('')

function membershipOf(row: Row): MembershipRow {
  const letters = String(row.owners)
  const owners = MEMBERSHIP_OWNERS.filter((owner) => letters.includes(LETTERS[owner]))
  const manual = BACKFILL_POLICIES.find((policy) => policy === row.manual_policy)
  return {
    transcriptId: String(row.transcript_id),
    mailbox: parseMailbox(String(row.mailbox)),
    owners,
    policy: owners.includes('group') ? 'all' : owners.includes('manual') ? (manual ?? 'all') : 'since_join',
    manual: owners.includes('manual') ? (manual ?? 'all') : undefined,
    joinedSequence: Number(row.joined_sequence),
    lastRead: Number(row.last_read_sequence),
    metadata: JSON.parse(String(row.metadata_json)),
    joinedAt: Number(row.joined_at),
  }
}
