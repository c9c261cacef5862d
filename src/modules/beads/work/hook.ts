/**
 * The hook: what is somebody's to run now (sheet 03 §5).
 *
 * H1  Looking changes nothing; taking looks and claims in one write, so that nobody comes in between.
 * H2  Work under way comes before work handed over, and that before work of the pool; parked work is never offered.
 * H3  A candidate that cannot be claimed does not keep the next one from it.
 * H4  Work under way in one session is offered to no other one, also where both go by the name of their pool.
 */
import type { HookClaimRequest, HookClaimResponse } from '../../../contract/beads.ts'
import type { SqlValue, Tx } from '../../../kernel/database.ts'
import { IS_NOT_HELD, IS_POOL_WORK, IS_READY, IS_UNHINDERED } from '../store/ready.ts'
import { wireBead } from '../store/record.ts'
import type { WorkCity } from './city.ts'
import { ownsName } from './claim.ts'

type Tier = 'in_progress' | 'assigned' | 'routed'
export interface Candidate {
  readonly tier: Tier
  readonly id: string
  readonly assignee: string | null
}
/** Who asks. */
export type Asker = Pick<HookClaimRequest, 'agent' | 'session_id' | 'session_name'>

/** Of each tier: more than one, so that a head that cannot be claimed does not starve the rest. */
const MAX_OF_TIER = 20
const REASONS = { in_progress: 'existing_assignment', assigned: 'ready_assignment', routed: 'claimed' } as const

/** What is on the hook, in the order in which it is offered. */
export function candidates(city: WorkCity, asker: Asker, now: number): readonly Candidate[] {
  const names = namesOf(city, asker)
  const mine = `b.assignee IN (${names.map(() => '?').join(', ')})`
  const handed = 'beads b INDEXED BY beads_assigned_open'
  const urgency = 'coalesce(b.priority, 2), b.created_at, b.id'
  const session = stranger(city, asker)
  return [
    ...ofTier(
      city,
      'in_progress',
      `FROM ${handed} WHERE b.status <> 'closed' AND ${mine} AND b.status = 'in_progress' AND b.issue_type <> 'message'
        AND ${IS_UNHINDERED} AND ${IS_NOT_HELD} AND ${IS_NOT_ELSEWHERE} ORDER BY ${urgency}`,
      [...names, now, session, session],
    ),
    ...ofTier(
      city,
      'assigned',
      `FROM ${handed} WHERE b.status <> 'closed' AND ${mine} AND ${IS_READY} AND ${IS_NOT_HELD} ORDER BY ${urgency}`,
      [...names, now],
    ),
    ...routed(city, asker, now),
  ]
}

/** As in `claimRefusal`; takes the session twice, null where all of that name is its own. */
const IS_NOT_ELSEWHERE = '(? IS NULL OR b.session_id IS NULL OR b.session_id = ? OR b.lease_expires_at IS NULL)'

/** Work of its pool, oldest first; each name that it may be routed to is a walk of its own along the index. */
function routed(city: WorkCity, asker: Asker, now: number): readonly Candidate[] {
  const sessions = asker.session_id === undefined ? [] : city.people.routes(asker.session_id)
  const targets = new Set([asker.agent, ...city.people.routes(asker.agent), ...sessions])
  const found = [...targets].flatMap((target) =>
    city.store.db.rows(
      `SELECT b.id, b.created_at FROM beads b INDEXED BY beads_routed WHERE ${IS_POOL_WORK}
        ORDER BY b.created_at, b.id LIMIT ${MAX_OF_TIER}`,
      now,
      target,
    ),
  )
  return found
    .map(([id, createdAt]) => ({ id: String(id), createdAt: Number(createdAt) }))
    .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    .slice(0, MAX_OF_TIER)
    .map(({ id }) => ({ tier: 'routed', id, assignee: null }))
}

function ofTier({ store }: WorkCity, tier: Tier, from: string, values: readonly SqlValue[]): readonly Candidate[] {
  const rows = store.db.rows(`SELECT b.id, b.assignee ${from} LIMIT ${MAX_OF_TIER}`, ...values)
  return rows.map(([id, assignee]) => ({ tier, id: String(id), assignee: assignee === null ? null : String(assignee) }))
}

/** Work is claimed under the name of the session where it has one; a session that the city knows has one. */
function nameOf({ people }: WorkCity, { agent, session_id: session, session_name: name }: Asker): string {
  const known = session === undefined ? undefined : people.canonical(session)
  return known === undefined || known === session ? people.canonical(name ?? agent) : known
}

/** Its session, where others may go by its name too. */
function stranger(city: WorkCity, asker: Asker): string | null {
  const isOwnName = ownsName(city.people, { ...asker, assignee: nameOf(city, asker) })
  return isOwnName ? null : (asker.session_id ?? null)
}

function namesOf(city: WorkCity, asker: Asker): readonly string[] {
  const name = nameOf(city, asker)
  const session = asker.session_id === undefined ? [] : [asker.session_id]
  return [...new Set([name, ...city.people.identities(name), ...session])]
}

/** Claims the first candidate that can be claimed. */
export function claimNext(tx: Tx, city: WorkCity, asker: Asker, now: number): HookClaimResponse {
  const found = candidates(city, asker, now)
  for (const candidate of found) {
    const taken = take(tx, city, candidate, asker)
    if (taken !== undefined) return taken
  }
  return { action: 'drain', reason: found.length === 0 ? 'no_work' : 'claims_errored' }
}

function take(
  tx: Tx,
  city: WorkCity,
  { tier, id, assignee: holder }: Candidate,
  asker: Asker,
): HookClaimResponse | undefined {
  const assignee = nameOf(city, asker)
  // Stored under another name of the same one.
  if (holder !== null && holder !== assignee) city.beads.change(tx, id, { assignee }, assignee)
  const outcome = city.claims.claim(tx, id, { ...asker, assignee })
  if (!outcome.claimed) return undefined
  const { bead: claimed, continuation } = outcome
  const group = claimed.metadata['svc.continuation_group']
  return {
    action: 'work',
    reason: REASONS[tier],
    bead_id: claimed.id,
    assignee,
    bead: wireBead(claimed),
    ...(claimed.routed_to === null ? {} : { route: claimed.routed_to }),
    ...(claimed.root_bead_id === null ? {} : { root_bead_id: claimed.root_bead_id }),
    ...(group === undefined ? {} : { continuation_group: group }),
    ...(continuation.length === 0 ? {} : { continuation_assigned: [...continuation] }),
  }
}
