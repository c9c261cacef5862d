/**
 * Deleting very much: the work behind the 202 of a delete (decision 240).
 *
 * D1  A write deletes some beads with their events, children before their parents; the bead that was asked for goes last, so
 *     that a crash leaves a smaller tree of the same root, and the next start goes on with it.
 * D2  What is put below it meanwhile goes too; what is moved elsewhere before its turn comes stays.
 * D3  Without `cascade` only edges to it are dropped; once something open refers to it, the request fails.
 * D4  What belongs to a molecule, or is worked on by one, keeps all of it from going.
 */
import { nextTurn } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Finish, Job } from '../../../kernel/jobs.ts'
import type { UnfinishedRequest } from '../../../kernel/requests.ts'
import type { Store } from '../../../kernel/store.ts'
import type { BeadRecord } from '../store/record.ts'
import { type BeadStore, MAX_REMOVED_IN_SLICE } from '../store/store.ts'
import { assertMayRemove, type WorkSteps } from './steps.ts'

export interface RemovalCity {
  readonly store: Pick<Store, 'db'>
  readonly beads: BeadStore
  readonly steps: WorkSteps
}

/** What a crash must not lose. */
export interface RemovalInput {
  readonly id: string
  readonly cascade: boolean
  readonly actor: string
}

const DEADLINE_MS = 60 * 60_000
/** Children that are read at once, and beads that are asked for children, between two turns of others. */
const READ_AT_ONCE = 1_000
const ASKED_AT_ONCE = 200

export const removalJob = (city: RemovalCity): Job<'bead.delete'> => ({
  operation: 'bead.delete',
  deadlineMs: DEADLINE_MS,
  resumable: true,
  run: (request, signal) => new Removal(city, request, signal).run(),
})

/** A bead that is to go, below the parent that it had when it was found. */
interface Going {
  readonly id: string
  readonly parent: string
}

class Removal {
  readonly #city: RemovalCity
  readonly #request: string
  readonly #input: RemovalInput
  readonly #signal: AbortSignal

  constructor(city: RemovalCity, { id, input }: UnfinishedRequest, signal: AbortSignal) {
    this.#city = city
    this.#request = id
    this.#input = { id: String(input['id']), cascade: input['cascade'] === true, actor: String(input['actor']) }
    this.#signal = signal
  }

  async run(): Promise<Finish<'bead.delete'>> {
    const { beads } = this.#city
    const { id, cascade } = this.#input
    // Until nothing came below it while the rest went.
    while (beads.find(id) !== undefined) {
      const below = cascade ? await this.#below(id) : []
      await this.#removeAll([...below.toReversed(), { id, parent: '' }])
    }
    return (tx) => this.#finish(tx)
  }

  /** What is below a bead, parents first; read in parts. */
  async #below(root: string): Promise<readonly Going[]> {
    const found: Going[] = []
    const parents = [root]
    for (let asked = 0; asked < parents.length; asked++) {
      const parent = parents[asked] ?? ''
      if (asked % ASKED_AT_ONCE === 0) await this.#turn()
      for (let page = this.#children(parent); page.length > 0; page = this.#children(parent, page.at(-1))) {
        for (const { id } of page) {
          found.push({ id, parent })
          parents.push(id)
        }
        if (page.length < READ_AT_ONCE) break
        await this.#turn()
      }
    }
    return found
  }

  #children(parent: string, after: { readonly at: number; readonly id: string } = { at: -1, id: '' }) {
    return this.#city.store.db
      .all(
        `SELECT id, created_at FROM beads WHERE parent = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id
          LIMIT ${READ_AT_ONCE}`,
        parent,
        after.at,
        after.id,
      )
      .map((row) => ({ id: String(row.id), at: Number(row.created_at) }))
  }

  /** Each once: what is not to go by now is left to the next round. */
  async #removeAll(going: readonly Going[]): Promise<void> {
    const { beads, store, steps } = this.#city
    // All of them before the first one goes.
    for (let from = 0; from < going.length; from += READ_AT_ONCE) {
      await this.#turn()
      assertMayRemove(
        steps,
        going.slice(from, from + READ_AT_ONCE).map(({ id }) => id),
      )
    }
    for (let from = 0; from < going.length; ) {
      await this.#turn()
      const next = going.slice(from, from + MAX_REMOVED_IN_SLICE)
      const slice = next.slice(0, beads.sliceOf(next.map(({ id }) => id)))
      if (await store.db.write((tx) => this.#removeSlice(tx, slice))) from += slice.length
    }
  }

  /** False where edges of others are in the way still. */
  #removeSlice(tx: Tx, slice: readonly Going[]): boolean {
    const { beads, steps } = this.#city
    const { id, cascade, actor } = this.#input
    assertMayRemove(
      steps,
      slice.map((one) => one.id),
    )
    if (!cascade && beads.find(id) !== undefined) beads.refuseReferred(id)
    const records = this.#ripe(tx, slice)
    const removed = beads.removeSome(tx, records, actor, MAX_REMOVED_IN_SLICE)
    this.#count(tx, removed)
    return removed === records.length
  }

  /** Those of a slice that are where they were, and have no children but such as go with them. */
  #ripe(tx: Tx, slice: readonly Going[]): readonly BeadRecord[] {
    const { id: root, cascade } = this.#input
    const parents = new Map(slice.map(({ id, parent }) => [id, parent]))
    const records = this.#city.beads
      .load([...parents.keys()])
      .filter(({ id, parent }) => id === root || parent === parents.get(id))
    if (!cascade) return records
    const ids = JSON.stringify(records.map(({ id }) => id))
    const rows = tx.all(
      `SELECT DISTINCT parent FROM beads INDEXED BY beads_parent WHERE parent IN (SELECT value FROM json_each(?))
        AND id NOT IN (SELECT value FROM json_each(?))`,
      ids,
      ids,
    )
    const kept = new Set(rows.map(({ parent }) => String(parent)))
    // Children come before their parents.
    for (const { id, parent } of records) if (kept.has(id) && parent !== null) kept.add(parent)
    return records.filter(({ id }) => !kept.has(id))
  }

  #count(tx: Tx, removed: number): void {
    tx.run(
      `INSERT INTO bead_removals (request, deleted) VALUES (?, ?)
        ON CONFLICT (request) DO UPDATE SET deleted = deleted + excluded.deleted`,
      this.#request,
      removed,
    )
  }

  #finish(tx: Tx) {
    const deleted = Number(tx.get('SELECT deleted FROM bead_removals WHERE request = ?', this.#request)?.deleted ?? 0)
    // With those of requests that failed.
    tx.run(
      `DELETE FROM bead_removals WHERE request = ?
        OR request NOT IN (SELECT id FROM requests WHERE status IN ('accepted', 'running'))`,
      this.#request,
    )
    return {
      type: 'request.result.bead.delete',
      actor: this.#input.actor,
      subject: this.#input.id,
      payload: { request_id: this.#request, bead_id: this.#input.id, deleted },
    } as const
  }

  async #turn(): Promise<void> {
    await nextTurn()
    this.#signal.throwIfAborted()
  }
}
