/**
 * Durations as text: Go's grammar (`30s`, `1h30m`, `1.5h`, `0`) plus `d`, without a sign. The one parser for the API,
 * the configuration and the command line (sheet 02 §6.3). Free of schemas, so that a command loads it at no cost.
 */
import { cut } from './text.ts'

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const PART = '(?:[0-9]{1,15}(?:\\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))'
export const DURATION_PATTERN = new RegExp(`^(?:0|${PART}+)$`)
/** Longest duration anything accepts: a hundred years. */
const MAX_DURATION_MS = 100 * 366 * 86_400_000

/** Milliseconds (fractions kept) of a duration; throws `RangeError` with a sentence that quotes the text. */
export function parseDurationMs(text: string): number {
  if (!DURATION_PATTERN.test(text)) {
    throw new RangeError(`not a duration: "${cut(text, 64)}" (write 30s, 5m, 1h30m or 7d)`)
  }
  let total = 0
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h|d)/g)) {
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0)
  }
  if (total > MAX_DURATION_MS) throw new RangeError(`duration too long: "${text}" (at most 100 years)`)
  return total
}

const WHOLE_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/** Text that is this long again: `1h30m`, `0s`. */
export function formatDuration(ms: number): string {
  let left = Math.round(ms)
  let text = ''
  for (const [unit, length] of WHOLE_UNITS) {
    const amount = Math.floor(left / length)
    if (amount > 0) text += `${amount}${unit}`
    left -= amount * length
  }
  return text === '' ? '0s' : text
}
