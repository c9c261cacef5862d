/**
 * Ids of new beads (decision 47): short while there are few, never used twice. They come in runs that share a random head
 * and have its tails in a random order: neighbours in time are neighbours in every index that starts with an id, so that a
 * commit of many new beads writes few pages.
 */
import type { Tx } from '../../../kernel/database.ts'
import { randomBase36, randomBelow } from '../../../kernel/ids.ts'

const SHORTEST = 3
const LONGEST = 32
const TAIL = 2
const TAILS = 36 ** TAIL
/** Taken ids in a row that say that a head is used up, and used-up heads in a row that say so of a length. */
const TRIES_PER_HEAD = 3
const HEADS_PER_LENGTH = 3

export type Suffix = (length: number) => string
/** A whole number below `limit`. */
export type Draw = (limit: number) => number

/** The ids of one head, in their order; `at` are given out. */
interface Run {
  readonly head: string
  readonly tails: Uint16Array
  at: number
}

/** Makes ids for one city; remembers the run and the length of each kind, and asks the store about every id. */
export class BeadIds {
  readonly #runs = new Map<string, Run>()
  readonly #suffix: Suffix
  readonly #draw: Draw

  constructor(suffix: Suffix = randomBase36, draw: Draw = randomBelow) {
    this.#suffix = suffix
    this.#draw = draw
  }

  /** An id that no bead has or had, and that no edge waits for. */
  next(tx: Tx, prefix: string, ephemeral: boolean): string {
    const start = ephemeral ? `${prefix}-wisp-` : `${prefix}-`
    const current = this.#runs.get(start)
    const found = current === undefined ? undefined : fromRun(tx, start, current)
    if (found !== undefined) return found
    for (let length = current === undefined ? SHORTEST : current.head.length + TAIL; length <= LONGEST; length++) {
      for (let attempt = 0; attempt < HEADS_PER_LENGTH; attempt++) {
        const run = this.#begin(length)
        const id = fromRun(tx, start, run)
        if (id === undefined) continue
        this.#runs.set(start, run)
        return id
      }
    }
    throw new Error(`no id left for ${start}`)
  }

  #begin(length: number): Run {
    const tails = Uint16Array.from({ length: TAILS }, (_, tail) => tail)
    for (let at = TAILS - 1; at > 0; at--) {
      const other = this.#draw(at + 1)
      const tail = tails[at] ?? 0
      tails[at] = tails[other] ?? 0
      tails[other] = tail
    }
    return { head: this.#suffix(length - TAIL), tails, at: 0 }
  }
}

/** The next id of a run that is free; undefined where it is used up, be it by an earlier one with the same head. */
function fromRun(tx: Tx, start: string, run: Run): string | undefined {
  for (let attempt = 0; attempt < TRIES_PER_HEAD && run.at < TAILS; attempt++) {
    const tail = run.tails[run.at++] ?? 0
    const id = `${start}${run.head}${tail.toString(36).padStart(TAIL, '0')}`
    if (!isTaken(tx, id)) return id
  }
  return undefined
}

const TAKEN = `SELECT 1 WHERE EXISTS (SELECT 1 FROM beads WHERE id = ?) OR EXISTS (SELECT 1 FROM bead_ids_gone WHERE id = ?)
  OR EXISTS (SELECT 1 FROM bead_deps WHERE depends_on_id = ?)`

/** True for an id that was given out, or that a dangling edge names. */
const isTaken = (tx: Pick<Tx, 'get'>, id: string): boolean => tx.get(TAKEN, id, id, id) !== undefined
