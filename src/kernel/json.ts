/** How deep JSON from outside may be: whatever walks it later does so on the stack. */

const MAX_JSON_DEPTH = 64

export const TOO_DEEP = `nested deeper than ${MAX_JSON_DEPTH} levels`

/** True where lists and objects lie in each other more than MAX_JSON_DEPTH times. */
export const isTooDeep = (value: unknown): boolean => isDeeper(value, MAX_JSON_DEPTH)

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  for (const part of parts) if (isDeeper(part, levels - 1)) return true
  return false
}

/** An escape sequence of JSON text; with the digits where it is half of a surrogate pair. */
const ESCAPE = /\\(?:u(d[89a-f][0-9a-f]{2})|.)/gs

/**
 * JSON text of `value` as replies, streams and the log have it. Half of a surrogate pair, which `JSON.stringify` escapes and
 * strict readers refuse, becomes U+FFFD: agents and programs sometimes write such texts.
 */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes('\\ud')) return text
  return text.replaceAll(ESCAPE, (sequence, half) => (half === undefined ? sequence : '\ufffd'))
}
