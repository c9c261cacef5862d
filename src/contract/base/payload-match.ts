/** `key=value`, a filter on the payloads of events; the service and its clients read it alike (sheet 02 §6.5). */

export interface PayloadMatch {
  readonly key: string
  readonly value: string
}

type JsonRecord = Readonly<Record<string, unknown>>
type Test = (text: string) => boolean

/** Splits at the first `=`; the value may be empty or hold more of them. Nothing is trimmed. Undefined without a key. */
export function parsePayloadMatch(text: string): PayloadMatch | undefined {
  const at = text.indexOf('=')
  return at < 1 ? undefined : { key: text.slice(0, at), value: text.slice(at + 1) }
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

/**
 * The same for the JSON text of an envelope, as `JSON.stringify` writes it. Most texts are ruled out by a search in them,
 * because parsing costs ten times as much.
 */
export function envelopeTest(matches: readonly PayloadMatch[]): Test {
  const groups = [...Map.groupBy(matches, (match) => match.key).values()].map((ofKey) => ofKey.map(tracesOf))
  return (envelope) => {
    const possible = groups.every((traces) => traces.some((trace) => envelope.includes(trace)))
    return possible && parsedMatches(envelope, matches)
  }
}

/**
 * What every envelope that matches has in its text: the end of the innermost key, and the value behind it where no
 * number, literal, array or object is written like that.
 */
function tracesOf({ key, value }: PayloadMatch): string {
  const ending = `${JSON.stringify(key.slice(key.lastIndexOf('.') + 1)).slice(1)}:`
  return /^(?:[-\d[{]|true$|false$|null$)/.test(value) ? ending : `${ending}${JSON.stringify(value)}`
}

function parsedMatches(envelope: string, matches: readonly PayloadMatch[]): boolean {
  const { payload } = Object(JSON.parse(envelope))
  try {
    return matchesPayload(payload, matches)
  } catch (error) {
    // A value nested too deeply to be written again is equal to no text that a caller can send.
    if (error instanceof RangeError) return false
    throw error
  }
}

/** At each level the whole remaining path as a key first, then its first segment; arrays are not indexable. */
function lookUp(value: JsonRecord, path: string): unknown {
  if (Object.hasOwn(value, path)) return value[path]
  const dot = path.indexOf('.')
  if (dot < 0) return undefined
  const segment = path.slice(0, dot)
  const inner = Object.hasOwn(value, segment) ? value[segment] : undefined
  return isRecord(inner) ? lookUp(inner, path.slice(dot + 1)) : undefined
}

/** How a JSON value is written in a filter. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return numberText(value)
  return JSON.stringify(value, (_, inner: unknown) => (isRecord(inner) ? sortedKeys(inner) : inner))
}

// A record made from entries would take `__proto__` for its prototype: build it without one, defining each key.
function sortedKeys(record: JsonRecord): object {
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

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
