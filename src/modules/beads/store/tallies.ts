/**
 * How many beads there are of each combination of the columns that are counted: what comes and goes is added up in memory
 * and written once in a commit, in the same one.
 */
import type { Participant, SqlValue, Tx } from '../../../kernel/database.ts'
import type { BeadColumns } from './columns.ts'

/** What is counted: the columns of `bead_counts`. */
export const COUNTED = ['status', 'issue_type', 'rig', 'priority'] as const satisfies readonly (keyof BeadColumns)[]
type Counted = Pick<BeadColumns, (typeof COUNTED)[number]>

const SAME = COUNTED.map((column) => `${column} IS ?`).join(' AND ')
const ADD = `UPDATE bead_counts SET beads = beads + ? WHERE ${SAME}`
const BEGIN = `INSERT INTO bead_counts (beads, ${COUNTED.join(', ')}) VALUES (?, ${COUNTED.map(() => '?').join(', ')})`
const END = `DELETE FROM bead_counts WHERE beads = 0 AND ${SAME}`

interface Change {
  readonly values: readonly SqlValue[]
  readonly by: number
}

export class Tallies implements Participant {
  readonly #changes: Change[] = []

  came(bead: Counted): void {
    this.#changes.push({ values: valuesOf(bead), by: 1 })
  }

  went(bead: Counted): void {
    this.#changes.push({ values: valuesOf(bead), by: -1 })
  }

  changed(before: Counted, after: Counted): void {
    if (COUNTED.every((column) => before[column] === after[column])) return
    this.went(before)
    this.came(after)
  }

  mark(): number {
    return this.#changes.length
  }

  undo(mark: number): void {
    this.#changes.length = mark
  }

  beforeCommit(tx: Tx): void {
    for (const { values, by } of summed(this.#changes)) {
      if (by === 0) continue
      if (tx.run(ADD, by, ...values) === 0) tx.run(BEGIN, by, ...values)
      if (by < 0) tx.run(END, ...values)
    }
  }

  committed(): void {
    this.#changes.length = 0
  }
}

const valuesOf = (bead: Counted): readonly SqlValue[] => COUNTED.map((column) => bead[column])

function summed(changes: readonly Change[]): Iterable<Change> {
  const sums = new Map<string, Change>()
  for (const { values, by } of changes) {
    const key = JSON.stringify(values)
    sums.set(key, { values, by: by + (sums.get(key)?.by ?? 0) })
  }
  return sums.values()
}
