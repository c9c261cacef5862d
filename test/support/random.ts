/**
 * Chance in tests: all of it comes from one seed, which is the same in every run, so that what is red is red because of
 * what was changed. `SVC_SEED=7` is another one, `SVC_SEED=random` another each time; with `npm test -- --random` and
 * `npm run soak` all files have the same new one. Whatever fails says its seed.
 */
import fc from 'fast-check'

const USUAL = 20_260_101

/** What `SVC_SEED` says, a number or `random`; throws for anything else. */
export function seedFrom(said: string | undefined): number {
  if (said === undefined) return USUAL
  if (said === 'random') return Math.floor(Math.random() * 2 ** 31)
  const seed = Number(said)
  if (said.trim() === '' || !Number.isSafeInteger(seed))
    throw new Error(`SVC_SEED is a whole number or random, not ${JSON.stringify(said)}`)
  return seed
}

export const SEED = seedFrom(process.env['SVC_SEED'])
fc.configureGlobal({ seed: SEED })

export { fc }

export interface Random {
  readonly seed: number
  /** 0 ≤ x < 1 */
  next(): number
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number
  pick<T>(items: readonly T[]): T | undefined
  chance(probability: number): boolean
}

/** Its own source of chance for each who asks: one that draws more takes nothing from the others. */
export function seededRandom(seed: number = SEED): Random {
  let state = seed >>> 0
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    seed,
    next,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    pick: (items) => items[Math.floor(next() * items.length)],
    chance: (probability) => next() < probability,
  }
}
