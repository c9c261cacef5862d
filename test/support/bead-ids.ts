import { BeadIds } from '../../src/modules/beads/store/ids.ts'
import { type Random, seededRandom } from './random.ts'

const DIGITS = [...'0123456789abcdefghijklmnopqrstuvwxyz']

/** Ids of beads that are the same with the same seed: beads of one moment are in the order of their ids. */
export const seededIds = (random: Random = seededRandom()): BeadIds =>
  new BeadIds(
    (length) => Array.from({ length }, () => random.pick(DIGITS)).join(''),
    (limit) => random.between(0, limit - 1),
  )
