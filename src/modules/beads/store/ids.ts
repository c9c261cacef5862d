/** Ids of new beads (decision 47): short while there are few, never used twice. */
import type { Tx } from '../../../kernel/database.ts'
import { randomBase36 } from '../../../kernel/ids.ts'

const SHORTEST = 3
/** Collisions in a row that say that a length is used up: about a tenth of it is taken when that becomes likely. */
const TRIES_PER_LENGTH = 3
const LONGEST = 32

export type Suffix = (length: number) => string

/** Makes ids for one city; remembers only how long suffixes have become. */
export class BeadIds {
  readonly #lengths = new Map<string, number>()
  readonly #suffix: Suffix

  constructor(suffix: Suffix = randomBase36) {
    this.#suffix = suffix
  }

  /** An id that no bead has or had, and that no edge waits for. */
  next(tx: Tx, prefix: string, ephemeral: boolean): string {
    const start = ephemeral ? `${prefix}-wisp-` : `${prefix}-`
    for (let length = this.#lengths.get(start) ?? SHORTEST; length <= LONGEST; length++) {
      for (let attempt = 0; attempt < TRIES_PER_LENGTH; attempt++) {
        const id = start + this.#suffix(length)
        if (isTaken(tx, id)) continue
        this.#lengths.set(start, length)
        return id
      }
    }
    throw new Error(`no id left for ${start}`)
  }
}

const TAKEN = `SELECT 1 WHERE EXISTS (SELECT 1 FROM beads WHERE id = ?) OR EXISTS (SELECT 1 FROM bead_ids_gone WHERE id = ?)
  OR EXISTS (SELECT 1 FROM bead_deps WHERE depends_on_id = ?)`

/** True for an id that was given out, or that a dangling edge names. */
const isTaken = (tx: Pick<Tx, 'get'>, id: string): boolean => tx.get(TAKEN, id, id, id) !== undefined
