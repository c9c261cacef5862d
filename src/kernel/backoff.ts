/** Pauses between tries of one thing that failed. */

export interface Backoff {
  /** Pause after the first failure, in ms. */
  readonly firstMs: number
  /** No pause is longer, in ms. */
  readonly longestMs: number
}

/**
 * Pause after `failures` failures in a row (at least 1), in ms: doubled each time. With `chance` (0 ≤ x < 1) the pause lies
 * in the upper half of that, so that many callers do not come back at once.
 */
export function backoffMs({ firstMs, longestMs }: Backoff, failures: number, chance?: number): number {
  const full = Math.min(firstMs * 2 ** Math.min(Math.max(failures - 1, 0), 40), longestMs)
  return chance === undefined ? full : full / 2 + (chance * full) / 2
}
