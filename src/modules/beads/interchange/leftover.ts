/** What a line says beyond what we would write, and how it finds its way back (X1, X2 of interchange.ts). Pure. */
import { type Json, type JsonObject, own, parseExact, sameJson } from './exact-json.ts'

/** A key of which a line says something else than we would: what it says, and what we would have; absent is absent. */
interface Difference {
  readonly in?: Json
  readonly ours?: Json
}
type Differences = Readonly<Record<string, Difference>>

/** What the columns `interchange` hold, as JSON. */
export interface Leftover {
  readonly keys?: Differences | undefined
  /** Of `metadata`, by its keys. */
  readonly metadata?: Differences | undefined
  /** Older names that the line has for keys of ours: ours → theirs. */
  readonly names?: Readonly<Record<string, string>>
  /** Keys of metadata that came as `gc.*`. */
  readonly gc?: readonly string[] | undefined
  /** Position in the line's list, where that is not in our order. */
  readonly n?: number
}

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** By key, where the two differ; always for `hidden` keys that came in: those go out only if they came in. */
export function differences(given: JsonObject, ours: JsonObject, hidden: readonly string[] = []): Differences {
  const found: [string, Difference][] = []
  for (const [key, value] of Object.entries(given)) {
    const mine = own(ours, key)
    if (!hidden.includes(key) && sameJson(value, mine)) continue
    found.push([key, mine === undefined ? { in: value } : { in: value, ours: mine }])
  }
  for (const [key, mine] of Object.entries(ours)) {
    if (!Object.hasOwn(given, key) && !hidden.includes(key)) found.push([key, { ours: mine }])
  }
  // In one order, so that the same line leaves the same text.
  return Object.fromEntries(found.sort(([a], [b]) => compareText(a, b)))
}

/** Ours, with what came in wherever ours is what it was then. */
export function restored(ours: JsonObject, kept: Differences, hidden: readonly string[] = []): JsonObject {
  const line = new Map<string, Json>(Object.entries(ours))
  for (const key of hidden) if (!Object.hasOwn(kept, key)) line.delete(key)
  for (const [key, difference] of Object.entries(kept)) {
    if (!sameJson(own(ours, key), difference.ours)) continue
    if (difference.in === undefined) line.delete(key)
    else line.set(key, difference.in)
  }
  return Object.fromEntries(line)
}

/** JSON of what is left over, or null where nothing is. */
export function compact({ keys = {}, metadata = {}, names = {}, gc = [], n }: Leftover): string | null {
  const leftover = {
    ...(isEmpty(keys) ? {} : { keys }),
    ...(isEmpty(metadata) ? {} : { metadata }),
    ...(isEmpty(names) ? {} : { names }),
    ...(gc.length === 0 ? {} : { gc }),
    ...(n === undefined ? {} : { n }),
  }
  return isEmpty(leftover) ? null : JSON.stringify(leftover)
}

function isEmpty(object: object): boolean {
  for (const _ in object) return false
  return true
}

const NOTHING: Leftover = {}

/** What `compact` wrote. */
export function leftoverOf(text: string | null): Leftover {
  return text === null ? NOTHING : (parseExact(text) as Leftover)
}
