/** Values and keys as TOML. */
import type { PlainValue } from './toml.ts'

/** A key as TOML: bare where that is possible. */
export function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quote(key)
}

/** Keys as one dotted key. */
export function dotted(path: readonly (string | number)[]): string {
  return path.map((part) => formatKey(String(part))).join('.')
}

/** A value as TOML, on one line. */
export function formatValue(value: PlainValue): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `[${value.map((item: PlainValue) => formatValue(item)).join(', ')}]`
  const pairs = Object.entries(value).map(([key, child]) => `${formatKey(key)} = ${formatValue(child)}`)
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
}

function quote(text: string): string {
  // JSON's escapes are TOML's, except for DEL, which TOML wants escaped.
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f')
}
