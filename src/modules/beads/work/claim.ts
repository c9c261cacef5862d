/**
 * Who works on what (sheet 03 §5, decision 44).
 *
 * C1  A bead has one holder: a claim succeeds for one of any number of callers, in one guarded update.
 * C2  Who holds a bead already may claim it again; that renews the lease and says which session works on it now. Sessions
 *     that share a name, such as those of a pool, are not the same one: what one of them has, another does not get.
 * C3  Only a claim makes a lease. It lapses at `lease_expires_at` unless it is renewed; renewing is no change of the bead.
 *     What a session holds that lives, or that may, is renewed when its time comes, however seldom sessions are looked at.
 * C4  A claim that comes too late leaves an event, in the write that refuses it.
 */
import type { Clock } from '../../../kernel/clock.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Slice } from '../../../kernel/due.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { type Problem, problem } from '../../../kernel/problem.ts'
import type { Reader } from '../store/edges.ts'
import type { BeadRecord } from '../store/record.ts'
import type { BeadStore } from '../store/store.ts'
import { type ClaimRefusal, claimRefusal } from '../store/transitions.ts'
import type { WorkPeople } from './city.ts'
import { losing } from './steps.ts'

export interface Claimant {
  readonly assignee: string
  readonly session_id?: string
  readonly session_name?: string
  readonly branch?: string
}

export type ClaimOutcome =
  | {
      readonly claimed: true
      readonly bead: BeadRecord
      /** `renewed`: they had it already, and were at it. */
      readonly how: 'claimed' | 'renewed'
      /** Ids of the beads that were handed over with it. */
      readonly continuation: readonly string[]
    }
  | { readonly claimed: false; readonly refusal: Problem }

export interface ClaimsDeps {
  readonly beads: BeadStore
  readonly db: Reader
  readonly log: Pick<EventLog, 'append'>
  readonly clock: Clock
  readonly people: WorkPeople
  /** `[work] lease_ttl` as it is now. */
  readonly leaseMs: () => number
  /** False where it is known that no such session runs. */
  readonly lives: (sessionId: string) => boolean
  /** Called after the commit of a claim or a renewal. */
  readonly leased: (expiresAt: number) => void
}

const CONTINUATION_GROUP = 'svc.continuation_group'
const MAX_CONTINUATION = 1_000
const EXPIRED_AT_ONCE = 200
/** Whoever could not be heard has so long after a pause, whatever was left of its lease. */
const AFTER_PAUSE_MS = 5_000

export class Claims {
  readonly #deps: ClaimsDeps

  constructor(deps: ClaimsDeps) {
    this.#deps = deps
  }

  /** Claims it, or says why not; a refusal is returned, since its event must be committed (C4). */
  claim(tx: Tx, bead: string | BeadRecord, claimant: Claimant, actor = claimant.assignee): ClaimOutcome {
    const { beads, people } = this.#deps
    const before = beads.need(bead)
    const { id } = before
    const assignee = people.canonical(claimant.assignee)
    const isOwnName = ownsName(people, claimant)
    const refused = claimRefusal(before, { assignee, session_id: claimant.session_id, isOwnName })
    if (refused !== undefined) return this.#reject(tx, before, { refused, assignee }, actor)
    const renewed = before.assignee === assignee && before.status === 'in_progress'
    const lease = this.#lease(tx)
    const session_id = claimant.session_id ?? (renewed ? before.session_id : null)
    const sameSession = renewed && session_id === before.session_id
    const session_name = claimant.session_name ?? (sameSession ? before.session_name : null)
    const branch = claimant.branch === undefined ? {} : { work_branch: claimant.branch }
    const change = { assignee, status: 'in_progress', session_id, session_name, ...branch, ...lease } as const
    const claimed = beads.change(tx, before, change, actor, {
      also: () => [
        {
          type: 'bead.claimed',
          actor,
          subject: id,
          payload: {
            bead_id: id,
            assignee,
            ...(session_id === null ? {} : { session_id }),
            lease_expires_at: isoTime(lease.lease_expires_at),
          },
        },
      ],
    })
    const continuation = renewed ? [] : this.#handOverGroup(tx, claimed, assignee, actor)
    return { claimed: true, bead: claimed, how: renewed ? 'renewed' : 'claimed', continuation }
  }

  /** Keeps a claim alive; the bead itself does not change (C3). */
  heartbeat(tx: Tx, bead: string | BeadRecord, assignee: string | undefined): BeadRecord {
    const before = this.#held(bead, assignee, 'renewed')
    if (before.lease_ms === null)
      throw problem('conflict-wrong-state', `${before.id} was not claimed: there is no lease to renew`)
    return this.#deps.beads.change(tx, before, this.#lease(tx), 'api')
  }

  /** Gives it back: open, and nobody's. */
  release(
    tx: Tx,
    bead: string | BeadRecord,
    assignee: string | undefined,
    actor = assignee ?? 'api',
    reason = 'released',
  ): BeadRecord {
    const before = this.#held(bead, assignee, 'released')
    const { id } = before
    return this.#open(tx, before, actor, {
      type: 'bead.released',
      actor,
      subject: id,
      payload: { bead_id: id, ...previous(before), reason },
    })
  }

  /** Takes back what nobody renewed, at most a batch; returns how many were looked at. */
  expire(tx: Tx, slice: Slice): number {
    const rows = this.#deps.db.all(
      `SELECT id FROM beads WHERE lease_expires_at <= ? ORDER BY lease_expires_at LIMIT ${EXPIRED_AT_ONCE}`,
      this.#deps.clock.now(),
    )
    for (const row of rows) {
      this.#lapse(tx, this.#deps.beads.need(String(row.id)))
      if (slice.isOver) break
    }
    return rows.length
  }

  #lapse(tx: Tx, bead: BeadRecord): void {
    const { beads, lives } = this.#deps
    const { id, status, session_id: session } = bead
    if (status !== 'in_progress') {
      // Not one that a claim made: it says nothing about anybody.
      beads.change(tx, bead, { lease_ms: null, lease_expires_at: null }, 'supervisor')
    } else if (session !== null && lives(session)) {
      beads.change(tx, bead, this.#lease(tx), 'supervisor')
    } else {
      const payload = { bead_id: id, ...previous(bead) }
      this.#open(tx, bead, 'supervisor', { type: 'bead.lease_expired', actor: 'supervisor', subject: id, payload })
    }
  }

  /** Every lease in full again: while the supervisor was away nobody could renew one. */
  restartLeases(tx: Tx): void {
    tx.run(
      'UPDATE beads SET lease_expires_at = ? + lease_ms WHERE lease_expires_at IS NOT NULL',
      this.#deps.clock.now(),
    )
  }

  /**
   * The clock was set, or the process stood still: leases run on for as long as nobody could renew them, a few seconds at
   * least, and never longer than in full.
   */
  adjustLeases(tx: Tx, pausedMs: number): void {
    const now = this.#deps.clock.now()
    tx.run(
      `UPDATE beads SET lease_expires_at = min(max(lease_expires_at + ?, ?), ? + lease_ms)
        WHERE lease_expires_at IS NOT NULL`,
      pausedMs,
      pausedMs === 0 ? 0 : now + AFTER_PAUSE_MS,
      now,
    )
  }

  /** When the next lease lapses. */
  nextExpiry(): number | undefined {
    const next = this.#deps.db.get(
      'SELECT lease_expires_at AS at FROM beads WHERE lease_expires_at IS NOT NULL ORDER BY lease_expires_at LIMIT 1',
    )
    return next === undefined ? undefined : Number(next.at)
  }

  /** A session shows that it is alive: the leases of all its claims in full again. */
  renewForSession(tx: Tx, sessionId: string): void {
    const { lease_ms, lease_expires_at } = this.#lease(tx)
    tx.run(
      `UPDATE beads SET lease_ms = ?, lease_expires_at = ?
        WHERE session_id = ? AND status = 'in_progress' AND lease_expires_at IS NOT NULL`,
      lease_ms,
      lease_expires_at,
      sessionId,
    )
  }

  /** A session is gone: what it worked on is open again; returns the ids. */
  releaseForSession(tx: Tx, sessionId: string, reason: string): readonly string[] {
    const rows = this.#deps.db.all(
      "SELECT id FROM beads WHERE session_id = ? AND status = 'in_progress' ORDER BY id",
      sessionId,
    )
    const ids = rows.map((row) => String(row.id))
    for (const id of ids) this.release(tx, id, undefined, 'supervisor', reason)
    return ids
  }

  #lease(tx: Tx) {
    const lease_ms = this.#deps.leaseMs()
    const lease_expires_at = this.#deps.clock.now() + lease_ms
    tx.afterCommit(() => this.#deps.leased(lease_expires_at))
    return { lease_ms, lease_expires_at }
  }

  #held(held: string | BeadRecord, assignee: string | undefined, done: string): BeadRecord {
    const bead = this.#deps.beads.need(held)
    const { id } = bead
    if (bead.status !== 'in_progress')
      throw problem('conflict-wrong-state', `${id} is ${bead.status}: only what is in progress can be ${done}`)
    if (assignee !== undefined && bead.assignee !== this.#deps.people.canonical(assignee)) throw heldBy(bead)
    return bead
  }

  #open(tx: Tx, bead: BeadRecord, actor: string, event: Parameters<EventLog['append']>[1]): BeadRecord {
    const change = { status: 'open', assignee: null, ...losing(bead) } as const
    return this.#deps.beads.change(tx, bead, change, actor, { also: () => [event] })
  }

  #reject(
    tx: Tx,
    bead: BeadRecord,
    { refused, assignee }: { readonly refused: ClaimRefusal; readonly assignee: string },
    actor: string,
  ): ClaimOutcome {
    this.#deps.log.append(tx, {
      type: 'bead.claim_rejected',
      actor,
      subject: bead.id,
      payload: {
        bead_id: bead.id,
        ...(bead.assignee === null ? {} : { existing_claimant: bead.assignee }),
        attempted_claimant: assignee,
      },
    })
    return { claimed: false, refusal: REFUSALS[refused](bead) }
  }

  /** Open siblings of the same group go to the same one, still open (sheet 03 §5). */
  #handOverGroup(tx: Tx, bead: BeadRecord, assignee: string, actor: string): readonly string[] {
    const group = bead.metadata[CONTINUATION_GROUP]
    if (group === undefined || bead.root_bead_id === null) return []
    const rows = tx.all(
      `SELECT b.id FROM beads b JOIN bead_metadata m ON m.bead = b.id AND m.key = '${CONTINUATION_GROUP}' AND m.value = ?
        WHERE b.root_bead_id = ? AND b.status = 'open' AND b.assignee IS NULL AND b.routed_to IS ?
        ORDER BY b.created_at, b.id LIMIT ${MAX_CONTINUATION}`,
      group,
      bead.root_bead_id,
      bead.routed_to,
    )
    const ids = rows.map((row) => String(row.id))
    for (const id of ids) this.#deps.beads.change(tx, id, { assignee }, actor)
    return ids
  }
}

/** True where the name is that of the session alone: what was claimed under it is its own, also after a crash. */
export function ownsName(people: WorkPeople, claimant: Omit<Claimant, 'branch'>): boolean {
  const assignee = people.canonical(claimant.assignee)
  const handles = [claimant.session_id, claimant.session_name].filter((handle) => handle !== undefined)
  return handles.some((handle) => people.canonical(handle) === assignee)
}

const previous = ({ assignee }: BeadRecord) => (assignee === null ? {} : { previous_assignee: assignee })

function heldBy({ id, assignee }: BeadRecord): Problem {
  return problem('conflict-claimed', assignee === null ? `nobody has ${id}` : `${assignee} has ${id}`, {
    errors: [
      { location: 'body.assignee', message: 'is not who has it', ...(assignee === null ? {} : { value: assignee }) },
    ],
  })
}

function heldElsewhere({ id, assignee, session_id: session }: BeadRecord): Problem {
  return problem('conflict-claimed', `${assignee} has ${id}, in session ${session}`, {
    errors: [{ location: 'body.session_id', message: 'is not the session that has it', value: session }],
  })
}

const REFUSALS: Readonly<Record<ClaimRefusal, (bead: BeadRecord) => Problem>> = {
  closed: ({ id }) => problem('conflict-wrong-state', `${id} is closed: reopen it first`),
  held: heldBy,
  'held-elsewhere': heldElsewhere,
}
