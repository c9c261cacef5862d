/** Which status follows which, and what goes along with it (sheet 03 §1.4). Pure. */
import type { BeadStatus } from '../../../contract/beads.ts'
import type { BeadColumns } from './columns.ts'
import type { BeadRecord } from './record.ts'

type Consequences = Partial<BeadColumns>

const NO_LEASE = { lease_ms: null, lease_expires_at: null } as const
const NO_HOLDER = { ...NO_LEASE, session_id: null, session_name: null } as const
const NOT_DONE = {
  closed_at: null,
  close_reason: null,
  outcome: null,
  output_json: null,
  failure_class: null,
  failure_reason: null,
} as const

/** Undefined: refused. Nothing but a claim gives out a lease, and none outlives `in_progress`. */
const MOVES: Readonly<Record<BeadStatus, Readonly<Record<BeadStatus, ((now: number) => Consequences) | undefined>>>> = {
  open: { open: () => ({}), in_progress: () => ({}), closed: (now) => ({ ...NO_LEASE, closed_at: now }) },
  in_progress: { open: () => NO_HOLDER, in_progress: () => ({}), closed: (now) => ({ ...NO_LEASE, closed_at: now }) },
  closed: {
    open: () => ({ ...NOT_DONE, ...NO_HOLDER, assignee: null }),
    // Whoever works on it again reopens it first, so that what waited for it is blocked before.
    in_progress: undefined,
    closed: () => ({}),
  },
}

export const isAllowed = (from: BeadStatus, to: BeadStatus): boolean => MOVES[from][to] !== undefined

/**
 * What a change of status or assignee brings along. A claimed bead that is handed over keeps a lease, in full, so that it
 * is not lost with somebody who never looks.
 */
export function consequences(before: BeadRecord, change: Partial<BeadColumns>, now: number): Consequences {
  const status = change.status ?? before.status
  const moved = MOVES[before.status][status]?.(now) ?? {}
  const handedOver = change.assignee !== undefined && change.assignee !== before.assignee
  if (!handedOver || before.lease_ms === null || status !== 'in_progress') return moved
  const lease = change.assignee === null ? NO_LEASE : { lease_expires_at: now + before.lease_ms }
  return { ...moved, session_id: null, session_name: null, ...lease }
}

export type ClaimRefusal = 'closed' | 'held' | 'held-elsewhere'

/** Who wants to have it. */
export interface Claiming {
  readonly assignee: string
  readonly session_id: string | undefined
  /** False: other sessions may go by that name too, as those of a pool do. */
  readonly isOwnName: boolean
}

/** Why it cannot be claimed now; undefined where it can, also once more by who has it. */
export function claimRefusal(
  bead: Pick<BeadRecord, 'status' | 'assignee' | 'session_id' | 'lease_expires_at'>,
  claiming: Claiming,
): ClaimRefusal | undefined {
  if (bead.status === 'closed') return 'closed'
  if (bead.assignee === null) return undefined
  if (bead.assignee !== claiming.assignee) return 'held'
  return isHeldElsewhere(bead, claiming) ? 'held-elsewhere' : undefined
}

/** A claim that another session of that name keeps alive: two of them must not work on one bead. */
function isHeldElsewhere(
  { session_id, lease_expires_at }: Pick<BeadRecord, 'session_id' | 'lease_expires_at'>,
  { session_id: own, isOwnName }: Claiming,
): boolean {
  if (isOwnName || own === undefined || session_id === null) return false
  return own !== session_id && lease_expires_at !== null
}
