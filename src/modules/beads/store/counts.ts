/** How much work there is, in a city and in a rig: looked up where it is kept, closed beads not looked at. */
import type { Store } from '../../../kernel/store.ts'
import type { Reader } from './edges.ts'
import { countReady, nextReady } from './ready.ts'

export interface WorkCounts {
  readonly open: number
  readonly in_progress: number
  readonly ready: number
}

const COUNT = `SELECT sum(beads) FILTER (WHERE status = 'open') AS open,
  sum(beads) FILTER (WHERE status = 'in_progress') AS in_progress FROM bead_counts`

/**
 * The counts of a city, taken again when they may be others: each change of work that counts here is in the log, and the
 * rest is dates that come.
 */
export class KeptCounts {
  readonly #store: Pick<Store, 'db' | 'log'>
  #kept: { readonly head: number; readonly until: number; readonly counts: WorkCounts } | undefined

  constructor(store: Pick<Store, 'db' | 'log'>) {
    this.#store = store
  }

  read(now: number): WorkCounts {
    const { db, log } = this.#store
    if (this.#kept === undefined || this.#kept.head !== log.head || now >= this.#kept.until)
      this.#kept = { head: log.head, until: nextReady(db, now), counts: countWork(db, now) }
    return this.#kept.counts
  }
}

function countWork(reader: Reader, now: number): WorkCounts {
  const row = reader.get(COUNT)
  return { open: Number(row?.open), in_progress: Number(row?.in_progress), ready: countReady(reader, now) }
}

/** How many beads belong to a rig, closed ones included. */
export const beadsOfRig = (reader: Reader, rig: string): number =>
  Number(reader.get('SELECT coalesce(sum(beads), 0) AS beads FROM bead_counts WHERE rig = ?', rig)?.beads)

const OF_AGENT = `SELECT b.id FROM beads b INDEXED BY beads_live
  WHERE b.status <> 'closed' AND (b.routed_to = ? OR b.assignee = ?) ORDER BY b.created_at DESC, b.id DESC LIMIT ?`

/** Beads that are not closed and that an agent is to do: routed or assigned to it, the newest ones. */
export const openBeadsOfAgent = (reader: Reader, identity: string, limit: number): readonly string[] =>
  reader.all(OF_AGENT, identity, identity, limit).map(({ id }) => String(id))

const OF_RIG = `SELECT b.id FROM beads b INDEXED BY beads_live WHERE b.status <> 'closed' AND b.rig = ?
  ORDER BY b.created_at DESC, b.id DESC LIMIT ?`

/** Beads of a rig that are not closed, the newest ones. */
export const openBeadsOfRig = (reader: Reader, rig: string, limit: number): readonly string[] =>
  reader.all(OF_RIG, rig, limit).map(({ id }) => String(id))
