/**
 * Money as whole nano-dollars (10⁻⁹ US dollars). Sums are exact; what a turn costs is rounded once, to the nearest of them.
 */

/** Nano-dollars. */
export type Nano = bigint

const DIGITS = 9
const ONE = 10n ** BigInt(DIGITS)
const MILLION = 1_000_000n
/** Of prices per million tokens: 10⁻¹² dollars. */
const FINE_DIGITS = 12
const FINE_PER_NANO = 10n ** BigInt(FINE_DIGITS - DIGITS)

/** A decimal as whole units of 10⁻ᵈ, the last digit rounded; undefined for what is no amount. */
function scaled(text: string, digits: number): bigint | undefined {
  const found = /^(\d{1,15})(?:\.(\d+))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text)
  if (found === null) return undefined
  const [, whole = '', fraction = '', exponent = '0'] = found
  const shift = digits + Number(exponent) - fraction.length
  const all = BigInt(whole + fraction)
  if (shift >= 0) return all * 10n ** BigInt(shift)
  return rounded(all, 10n ** BigInt(-shift))
}

const rounded = (amount: bigint, unit: bigint): bigint => (2n * amount + unit) / (2n * unit)

/** A decimal, or a number as JSON and TOML have it: its shortest decimal is what was written. */
export function parseUsd(value: string | number): Nano | undefined {
  return scaled(String(value), DIGITS)
}

/** At least cents: `12.00`, `0.10`, `0.000125`. */
export function formatUsd(nano: Nano): string {
  const fraction = String(nano % ONE)
    .padStart(DIGITS, '0')
    .replace(/0+$/, '')
  return `${nano / ONE}.${fraction.padEnd(2, '0')}`
}

/** A price of a million tokens, exact to 10⁻¹² dollars. */
export function parsePrice(value: number): bigint | undefined {
  return scaled(String(value), FINE_DIGITS)
}

/** What so many tokens cost at such prices: one rounding for all of them. */
export function costOf(parts: readonly { readonly tokens: number; readonly price: bigint }[]): Nano {
  const fine = parts.reduce((sum, { tokens, price }) => sum + BigInt(tokens) * price, 0n)
  return rounded(fine, MILLION * FINE_PER_NANO)
}
