/** How much of the one thread a write may take before others have their turn: all molecules that it changes share it. */
import type { Tx } from '../../../../kernel/database.ts'

/** Of the clock. */
export const SLICE_MS = 15
/** Processor time of the texts of one step; and of all texts that a molecule ever renders. */
export const TEXTS_OF_STEP_MS = 60
export const TEXTS_OF_MOLECULE_MS = 30_000
/** What is older was of a transaction that was rolled back. */
const STALE_MS = 1_000

const starts = new WeakMap<Tx, number>()

/** Milliseconds since the first molecule of this transaction was looked at. */
export function spentIn(tx: Tx, now: number): number {
  const start = starts.get(tx)
  if (start !== undefined && now - start < STALE_MS) return now - start
  starts.set(tx, now)
  tx.afterCommit(() => starts.delete(tx))
  return 0
}
