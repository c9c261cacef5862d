/** `--payload-match key=value`: a filter on payloads, applied here (sheet 02 §6.5). */
import { isRecord } from '../../client/problems.ts'
import { usageError } from '../base/failure.ts'

export interface PayloadMatch {
  readonly key: string
  readonly value: string
}

/** Splits at the first `=`; the value may be empty or hold more of them. Nothing is trimmed. */
export function parsePayloadMatch(text: string): PayloadMatch {
  const at = text.indexOf('=')
  if (at < 1) throw usageError(`invalid --payload-match "${text}": expected key=value`)
  return { key: text.slice(0, at), value: text.slice(at + 1) }
}

/** Different keys must all match; of one key, any value. */
export function matchesPayload(payload: unknown, matches: readonly PayloadMatch[]): boolean {
  if (matches.length === 0) return true
  if (!isRecord(payload)) return false
  return [...Map.groupBy(matches, (match) => match.key)].every(([key, ofKey]) => {
    const found = lookUp(payload, key)
    if (found === undefined) return false
    const text = textOf(found)
    return ofKey.some((match) => match.value === text)
  })
}

/** At each level the whole remaining path as a key first, then its first segment; arrays are not indexable. */
function lookUp(value: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(value, path)) return value[path]
  const dot = path.indexOf('.')
  if (dot < 0) return undefined
  const segment = path.slice(0, dot)
  const inner = Object.hasOwn(value, segment) ? value[segment] : undefined
  return isRecord(inner) ? lookUp(inner, path.slice(dot + 1)) : undefined
}

/** How a JSON value is written on the command line. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return numberText(value)
  return JSON.stringify(value, (_, inner: unknown) => (isRecord(inner) ? sortedKeys(inner) : inner))
}

// A record made from entries would take `__proto__` for its prototype: build it without one, defining each key.
function sortedKeys(record: Readonly<Record<string, unknown>>): object {
  const sorted: object = Object.create(null)
  for (const key of Object.keys(record).sort()) {
    Object.defineProperty(sorted, key, { value: record[key], enumerable: true })
  }
  return sorted
}

/** Shortest decimal that reads back as the same number, never with an exponent. */
function numberText(value: number): string {
  const text = String(value)
  const parts = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (parts === null) return text
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts
  const shift = Number(exponent)
  const digits = `${whole}${fraction}`
  const point = whole.length + shift
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  return `${sign}${digits.padEnd(point, '0')}`
}
