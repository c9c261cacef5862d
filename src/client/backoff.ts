/** How long to wait before another try: 1 s doubling to 30 s, jittered, so that many clients do not return at once. */

const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000
/** A server may ask for more with Retry-After, up to this. */
const LONGEST_RETRY_AFTER_MS = 120_000

/** Delay before try number `attempt` (0 is the first retry); `random` in [0, 1) spreads it over its upper half. */
export function backoffMs(attempt: number, random: number, retryAfterSec?: number): number {
  const base = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt, 10))
  const jittered = base / 2 + (random * base) / 2
  const asked = Math.min(LONGEST_RETRY_AFTER_MS, (retryAfterSec ?? 0) * 1000)
  return Math.max(jittered, asked)
}
