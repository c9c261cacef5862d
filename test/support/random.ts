/** A seeded source of chance: a failed run is repeated with `SVC_SEED=<number printed by the test>`. */

export interface Random {
  readonly seed: number
  /** 0 ≤ x < 1 */
  next(): number
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number
  pick<T>(items: readonly T[]): T | undefined
  chance(probability: number): boolean
}

export function seededRandom(env: NodeJS.ProcessEnv = process.env): Random {
  const seed = Number(env['SVC_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
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
