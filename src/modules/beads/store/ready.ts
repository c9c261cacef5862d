/**
 * What is ready: the one definition, for the list, the query language, the hook and the demand of pools (sheet 03 §3).
 *
 * I1  Ready is a matter of the bead's own row and the time: `blockers` and `workable` are kept in the write that changes
 *     them. `deferred` only says whose date must be compared with the time (Q1 of schema.ts). What depends on a bead that
 *     has just opened, with very many others, is looked at itself (shifts.ts).
 * I2  A pool's demand and what its hook offers are the same set: both are IS_POOL_WORK.
 */
import type { Database, Tx } from '../../../kernel/database.ts'
import { hasLabel } from './labels.ts'
import { IS_FREE } from './shifts.ts'

/** Nothing in its way; takes the time. `b` is the bead. */
export const IS_UNHINDERED = `b.blockers = 0 AND ${IS_FREE} AND (b.defer_until IS NULL OR b.defer_until <= ?)`
/** Takes the time. */
export const IS_READY = `b.status = 'open' AND b.workable = 1 AND ${IS_UNHINDERED}`
/** Parked: counts as somebody's, and is offered to nobody. */
export const IS_NOT_HELD = `NOT (${['hold:mayor', 'hold:external'].map(hasLabel).join(' OR ')})`
/** What a pool may take; takes the time, then the pool. */
export const IS_POOL_WORK = `${IS_READY} AND b.assignee IS NULL AND b.routed_to IS NOT NULL AND b.issue_type <> 'epic'
  AND ${IS_NOT_HELD} AND b.routed_to = ?`

/** Halves of IS_READY, each as its index has it; both take the time. */
const WORK = `b.status = 'open' AND b.blockers = 0 AND b.workable = 1 AND ${IS_FREE}`
export const READY_SOURCES = [
  `beads b INDEXED BY beads_ready WHERE ${WORK} AND b.deferred = 0 AND (b.defer_until IS NULL OR b.defer_until <= ?)`,
  `beads b INDEXED BY beads_deferred WHERE ${WORK} AND b.deferred = 1 AND b.defer_until <= ?`,
] as const

/** How many beads are ready. */
export function countReady(reader: Pick<Tx, 'get'>, now: number): number {
  return READY_SOURCES.reduce(
    (sum, source) => sum + Number(reader.get(`SELECT count(*) AS total FROM ${source}`, now)?.total),
    0,
  )
}

/** When the next bead may become ready by its date alone: no date of a bead comes before. */
export function nextReady(reader: Pick<Tx, 'get'>, now: number): number {
  const next = reader.get(
    'SELECT defer_until FROM beads INDEXED BY beads_deferred WHERE deferred = 1 AND defer_until > ? ORDER BY defer_until LIMIT 1',
    now,
  )
  return next === undefined ? Number.POSITIVE_INFINITY : Number(next.defer_until)
}

/** How many beads wait for this pool or agent. */
export function countDemand(db: Database | Tx, target: string, now: number): number {
  return Number(
    db.get(`SELECT count(*) AS demand FROM beads b INDEXED BY beads_routed WHERE ${IS_POOL_WORK}`, now, target)?.demand,
  )
}
